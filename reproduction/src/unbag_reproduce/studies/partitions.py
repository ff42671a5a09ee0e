"""How far a mean over ten folds moves when the folds, and the letters, are drawn again.

The paper's folds are not known, nor are its draws of the letters. Each method, at the setting that
the main tables chose for it, is measured on several partitions of the bags; so a difference from
the paper can be held to what another partition does by itself.
"""

from itertools import product

from unbag_reproduce.comparison import Comparison, fit_fold, measured, some_methods
from unbag_reproduce.figures import Figure
from unbag_reproduce.ledger import Results
from unbag_reproduce.methods import METHODS
from unbag_reproduce.plan import Plan, Study
from unbag_reproduce.statistics import BAG_MEASURES, spread, words
from unbag_reproduce.tables import Table, comparison_table
from unbag_reproduce.unit import Unit, Values

ACCURACY = "inductive_accuracy"
#: The partition of the main tables, and as many as there are others.
N_PARTITIONS = {"quick": 2, "standard": 6}
#: What the settings of methods are chosen by.
CHOSEN = {
    ACCURACY: Comparison(
        fit_fold, some_methods("mlr", "sim", "mimlfast", "lsbcmm", "slr", "dummy"), (ACCURACY,)
    ),
    "average_precision": Comparison(
        fit_fold, some_methods("mimlsvm", "mimlnn", "dummy-bags"), ("average_precision",)
    ),
}


def partition_units(plan: Plan, name: str, method: str, setting: Values) -> list[list[Unit]]:
    """Return the fits of a method: for each fold, a list over partitions.

    The partitions take the draws of the letters in turn.
    """
    draws = plan.draws(name)
    return [
        [
            Unit(
                fit_fold, name, draws[place % len(draws)], method, setting, fold=number,
                n_folds=plan.n_folds, seed=plan.seed + place,
            )
            for place in range(N_PARTITIONS[plan.level])
        ]
        for number in range(plan.n_folds)
    ]  # fmt: skip


def chosen_units(plan: Plan, ledger: Results) -> dict[tuple[str, str], list[list[Unit]]]:
    """Return the fits of each method on each data set, as far as its setting is chosen."""
    found = {}
    for name, (by, comparison) in product(plan.data, CHOSEN.items()):
        for method in comparison.methods:
            setting = comparison.tuned(plan, ledger, name, method, by)
            if setting is not None:
                found[name, method] = partition_units(plan, name, method, setting)
    return found


def units(plan: Plan, ledger: Results) -> list[Unit]:
    """List the fits that choose settings, which the main tables share; then those of partitions."""
    tuning = [unit for each in CHOSEN.values() for unit in each.units(plan, ledger)]
    chosen = chosen_units(plan, ledger).values()
    return list(
        dict.fromkeys([*tuning, *(unit for folds in chosen for each in folds for unit in each)])
    )


def records_of(plan: Plan, ledger: Results) -> list[Values]:
    """Return a record for each data set, measure and method, in the order of the main tables."""
    records = []
    found = chosen_units(plan, ledger)
    for name, measure in product(plan.data, (ACCURACY, *BAG_MEASURES)):
        for method in METHODS:
            folds = found.get((name, method))
            if folds is None or not has(method, measure):
                continue
            values = measured(ledger, folds, measure)
            records.append(
                {
                    "data": name, "method": METHODS[method].title, "measure": words(measure),
                    "ours": float(values.mean()), "std": spread(values)["draw_std"],
                    "main": float(values[:, 0].mean()), "others": float(values[:, 1:].mean()),
                    "setting": folds[0][0].setting,
                }
            )  # fmt: skip
    return records


def selection_note(plan: Plan, records: list[Values]) -> str:
    """Say what is left of accuracies on partitions that did not choose the settings."""
    tuned = {
        each.title for each in CHOSEN[ACCURACY].methods.values() if len(each.grids[plan.level]) > 1
    }
    listed = ", ".join(
        f"{each['method']} on {each['data']} {each['main']:.1f} and {each['others']:.1f}"
        for each in records
        if each["measure"] == words(ACCURACY)
        and each["method"] in tuned
        and len(plan.draws(each["data"])) == 1
    )
    return (
        "Instance accuracy on the partition that chose the settings, and on the others, which did "
        f"not: {listed}."
        if listed
        else ""
    )


def has(method: str, measure: str) -> bool:
    """Return whether the main tables have a measure of a method: there are two dummies."""
    if measure == ACCURACY:
        return method in CHOSEN[ACCURACY].methods
    return method != "dummy"


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make the table of means, and how far they move."""
    records = records_of(plan, ledger)
    return [
        comparison_table(
            "partitions",
            "Means over ten folds (%), and their deviation from partition to partition",
            records,
            [
                f"{N_PARTITIONS[plan.level]} partitions of the bags into folds; the first is also "
                "in the main tables, which chose the settings. They take the draws of the letters "
                "in turn.",
                *filter(None, [selection_note(plan, records)]),
            ],
            row=lambda record: f"{record['data']}, {record['measure']}",
            column="method",
        )
    ]


STUDY = Study(
    "partitions",
    "means over ten folds when folds, and letters, are drawn again",
    units=units,
    present=present,
    listed=("partitions",),
    remarks="""\
These deviations decide whether a difference from the paper is within what folds and letters vary by
([differences](#differences)). All partitions share the same bags, so their means are much closer to
each other than means over other bags would be. The difference of two such means, ours and the
paper's, deviates by 1.4 times as much; on the letters, where ours are means over five draws, by 1.1
times.
""",
)
