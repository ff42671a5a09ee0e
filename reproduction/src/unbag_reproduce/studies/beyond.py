"""Additions to the published model: a penalty, context, background, a whitened kernel; networks.

Nothing is chosen on a test fold: the likelihood of held-out bag labels, within the training bags,
chooses settings. The same models fitted to instance labels say how far bag labels fall short; the
rivals with the same context and kernel, at their best on the test folds, how far they come; and
the same network, taught by the losses that people use in place of the exact one, what that costs.
A committee pools networks of several kinds, a linear model and a kernel; its rows are of the
committee before networks were trained side by side.
"""

from collections import Counter

import numpy as np

from unbag_reproduce import additions
from unbag_reproduce.additions import (
    COMMITTEE,
    LOSSES,
    NETWORK,
    OURS,
    ROWS,
    TOLD,
    VARIANTS,
    cases,
    is_made,
    made,
    row_units,
    scores,
)
from unbag_reproduce.figures import Figure, comparison_figure
from unbag_reproduce.ledger import Results
from unbag_reproduce.losses import loss_records, loss_table
from unbag_reproduce.methods import BOUNDS, METHODS
from unbag_reproduce.nested import N_INNER
from unbag_reproduce.plan import Plan, Study
from unbag_reproduce.published import published, published_figure
from unbag_reproduce.rivals import RIVALS
from unbag_reproduce.statistics import (
    BAG_MEASURES,
    UNTESTED,
    judged,
    outcome,
    p_value_beside_published,
    paired_p_value,
    spread,
    words,
)
from unbag_reproduce.tables import (
    Table,
    cell,
    comparison_table,
    difference,
    judged_cell,
    record_cell,
)
from unbag_reproduce.unit import Unit, Values
from unbag_reproduce.widening import at_an_end

#: Rows whose bag measures are compared with the best published ones.
OF_BAGS = (OURS, NETWORK, COMMITTEE)
#: What the study is about, and what rivals are tuned by.
ACCURACY = "inductive_accuracy"
#: The most epochs that MIMLfast is tuned over, and how many are tried where these are chosen.
FAST, MOST_EPOCHS, STILL_MORE_EPOCHS = "mimlfast", 300, 1000


def best_published(name: str, method: str) -> float | None:
    """Return the best published accuracy of the model, or of its bound, linear or kernel."""
    figures = [
        published_figure(*table, name, method) for table in (("inductive", "accuracy"), ("kernel",))
    ]
    return max((figure["mean"] for figure in figures if figure), default=None)


def accuracy_table(plan: Plan, ledger: Results) -> Table:
    """Make the table of what each addition does to the inductive accuracy."""
    found = {
        (row, name): scores(plan, ledger, name, row, ACCURACY)
        for row in made(plan, ledger, ROWS)
        for name in plan.data
    }
    records = []
    for (row, name), values in found.items():
        best = best_published(name, "slr" if row in TOLD or row == ROWS[-1] else "mlr")
        records.append(
            {
                "data": name, "variant": row, "measure": words(ACCURACY), **spread(values),
                "best_published": best, "difference": difference(float(values.mean()), best),
            }
        )  # fmt: skip
    return comparison_table(
        "beyond-accuracy",
        "Instance accuracy (%), bag labels not known: what each addition does",
        records,
        [
            "In brackets: the best published figure of the model, linear or kernel (for rows told "
            "instance labels, the best of SLR). Settings are chosen by the likelihood of held-out "
            f"bag labels in {N_INNER} inner folds of the training bags; the published figures are "
            "the best of their grids on the test folds.",
            *network_notes(plan, ledger),
        ],
        row="variant",
        column="data",
        write=lambda record: cell(record["ours"], record["std"], record["best_published"]),
    )


def network_notes(plan: Plan, ledger: Results) -> list[str]:
    """Say where networks were trained; or which are left out."""
    left_out = [row for row in (*ROWS, *LOSSES) if not is_made(plan, ledger, row)]
    if left_out:
        return [f"Networks need PyTorch and a GPU, and are left out: {'; '.join(left_out)}."]
    fits = (row_units(plan, ledger, name, COMMITTEE) for name in plan.data)
    devices = {ledger[unit]["device"] for folds in fits for fold in folds for unit in fold}
    return [f"Networks were trained on: {', '.join(sorted(devices))}."]


def most_tried(plan: Plan, ledger: Results, name: str, row: str) -> int:
    """Return the number of settings that a row was chosen from, where these were most."""
    return max(
        len(case.settings(VARIANTS[row], ledger)) for draws in cases(plan, name) for case in draws
    )


def rival_records(plan: Plan, ledger: Results) -> list[Values]:
    """Return records of the rivals at their best, then of ours, tested against the best of them."""
    titles = {rival.title: method for method, rival in RIVALS.methods.items()}
    ours = made(plan, ledger, (OURS, NETWORK, COMMITTEE))
    records: list[Values] = []
    for name in plan.data:
        rivals = RIVALS.records(
            plan, ledger, name, ACCURACY, tuned_by=ACCURACY, outside=RIVALS.methods,
            labels={"measure": words(ACCURACY)},
        )  # fmt: skip
        for record in rivals:
            del record["bold"], record["p_value"], record["p_holm"]
        records += [{**each, "best_rival": None, "difference": None, **UNTESTED} for each in rivals]
        best = max(
            (each for each in rivals if titles[each["method"]] not in BOUNDS),
            key=lambda each: each["ours"],
        )
        theirs = RIVALS.scores(
            plan, ledger, name, titles[best["method"]], best["setting"], ACCURACY
        )
        for row in ours:
            values = scores(plan, ledger, name, row, ACCURACY)
            gain = float((values - theirs).mean())
            records.append(
                {
                    "data": name, "method": row, "measure": words(ACCURACY), **spread(values),
                    "settings_tried": most_tried(plan, ledger, name, row),
                    "setting": "its defaults" if row == COMMITTEE else "chosen in each fold",
                    "best_rival": best["method"],
                    "difference": gain, **outcome(gain, paired_p_value(values, theirs)),
                }
            )  # fmt: skip
    return records


def rivals_at_ends(records: list[Values]) -> list[str]:
    """List the rivals whose best setting lies at an end of what was tried, and in what."""
    titles = {rival.title: method for method, rival in RIVALS.methods.items()}
    return [
        f"{record['method']} on {record['data']} ({', '.join(ends)})"
        for record in records
        if record["method"] in titles
        for ends in [at_an_end(record["setting"], RIVALS.ladders[titles[record["method"]]])]
        if ends
    ]


def longer_units(plan: Plan, ledger: Results) -> dict[str, tuple[list[Unit], list[Unit]]]:
    """Return fits of MIMLfast with 1,000 epochs and with 300, by data set, where 300 are chosen.

    They are those of the folds that choose, and choose nothing themselves.
    """
    found = {}
    for name in plan.data if plan.level != "quick" else ():
        setting = RIVALS.tuned(plan, ledger, name, FAST, ACCURACY)
        if setting is not None and setting["n_epochs"] == MOST_EPOCHS:
            longer, chosen = (
                [unit for draws in RIVALS.tuning_units(plan, name, FAST, each) for unit in draws]
                for each in ({**setting, "n_epochs": STILL_MORE_EPOCHS}, setting)
            )
            found[name] = longer, chosen
    return found


def longer_note(plan: Plan, ledger: Results) -> str:
    """Say what still more epochs of MIMLfast do, where the most are chosen."""
    means = {
        name: [np.mean([ledger[unit][ACCURACY] for unit in units]) for units in fits]
        for name, fits in longer_units(plan, ledger).items()
    }
    said = ", ".join("{:.1f} instead of {:.1f} on {}".format(*each, n) for n, each in means.items())
    return f" On the folds that choose, {STILL_MORE_EPOCHS:,} epochs give {said}." if said else ""


def units(plan: Plan, ledger: Results) -> list[Unit]:
    """List the fits of our rows and of the rivals, and of what still more epochs do."""
    longer = [unit for fits, _ in longer_units(plan, ledger).values() for unit in fits]
    return list(dict.fromkeys([*additions.units(plan, ledger), *longer]))


def rival_table(plan: Plan, ledger: Results, records: list[Values]) -> Table:
    """Make the table of rivals that also have context and kernel."""
    at_ends = "; ".join(rivals_at_ends(records)) or "none"
    return comparison_table(
        "beyond-rivals",
        "Instance accuracy (%), bag labels not known: rivals with context and kernel",
        records,
        [
            "Each rival, with and without the bag's mean as context and a whitened kernel, is at "
            "the setting of the best mean over these very test folds, which flatters it. Ours are "
            "chosen within the training folds. SLR is told instance labels. In brackets: ours "
            "compared with the best rival. The settings one step from the best were tried as well, "
            f"until none was better. Best settings at an end of what was tried: {at_ends}."
            f"{longer_note(plan, ledger)} MIMLfast has fewer settings of its own here than in "
            "[inductive](#inductive) and [kernel](#kernel), and may be better there: the first "
            "page takes its best of all three.",
        ],
        row="method",
        column="data",
        write=judged_cell,
    )


def beside_best(values: np.ndarray, rivals: Values, measure: str) -> Values:
    """Return the entries of a record that compare a measure with the best published method's."""
    sign = 1 if BAG_MEASURES[measure] else -1
    best = max(rivals, key=lambda method: sign * rivals[method][measure]["mean"])
    figure, ours = rivals[best][measure], spread(values)
    gain = ours["ours"] - figure["mean"]
    return {
        **ours, "best_published_method": best, "best_published": figure["mean"],
        "best_published_std": figure["std"], "difference": gain,
        **outcome(sign * gain, p_value_beside_published(values, figure["mean"], figure["std"])),
    }  # fmt: skip


def bag_records(plan: Plan, ledger: Results, row: str) -> list[Values]:
    """Return records of a row's bag measures, each with its best published method."""
    rivals = {
        name: {m: figures for m, figures in methods.items() if m not in ("slr", "dummy")}
        for name, methods in published()["bag-level"].items()
    }
    return [
        {
            "variant": row, "data": name, "measure": measure,
            **beside_best(scores(plan, ledger, name, row, measure), rivals[name], measure),
        }
        for name in plan.data
        if is_made(plan, ledger, row)
        for measure in BAG_MEASURES
    ]  # fmt: skip


def bag_table(records: list[Values]) -> Table:
    """Make the table of the bag measures of our rows, with the best published ones."""
    counts: dict[str, Counter[str]] = {}
    for each in records:
        counts.setdefault(each["variant"], Counter())[each["verdict"]] += 1
    listed = "; ".join(
        f"{row}: {', '.join(f'{word} {n}' for word, n in found.items())}"
        for row, found in counts.items()
    )
    return comparison_table(
        "beyond-bags",
        "Measures of bag label sets (%), compared with the best published method",
        records,
        [
            f"{listed}. In brackets: the best published method and its figure. The verdicts are by "
            "Welch's t-test between our folds and the published mean and deviation."
        ],
        row=lambda record: f"{record['data']}, {words(record['measure'])}",
        column="variant",
        write=lambda record: (
            f"{record_cell(record)} ({METHODS[record['best_published_method']].title} "
            f"{record['best_published']:.1f}, {record['verdict']})"
        ),
    )


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make the tables, whose tests are judged as one family, and a figure of the accuracies."""
    accuracies = accuracy_table(plan, ledger)
    found = judged(
        {
            "bags": [each for row in OF_BAGS for each in bag_records(plan, ledger, row)],
            "rivals": rival_records(plan, ledger),
            "losses": loss_records(plan, ledger),
        }
    )
    tables = [
        bag_table(found["bags"]),
        rival_table(plan, ledger, found["rivals"]),
        loss_table(plan, found["losses"]),
    ]
    figure = comparison_figure(
        "beyond",
        "Effect of each addition",
        accuracies.records,
        x_label="instance accuracy, %",
        row="variant",
        published="best_published",
    )
    return [accuracies, *(table for table in tables if table.records), figure]


STUDY = Study(
    "beyond",
    "a penalty, context, kernels and networks, with settings chosen without test folds",
    units=units,
    present=present,
    listed=("beyond-bags",),
    remarks="""\
Bag labels alone choose settings, within the training bags: anyone without instance labels can do
that. The published figures are the best of their grids on the reported folds. All tests of this
experiment are judged as one family of 104, by Holm's method.

These figures flatter our own models in three ways. The candidates of linear and kernel models came
from a first look at these folds; the present, wider grids were fixed before they were tried, and
then widened around the best, as the rivals' were. The candidates of networks and their common
defaults come from prototypes that were tried on these four data sets. The committee, which is
`ORNetwork` at its defaults, has no setting to choose here, but its parts were chosen by instance
accuracies on other folds of the same bags, and on synthetic families
([decisions](decisions.md#committees)). So networks may gain less on other data. The rows of the
earlier committee were measured on a GPU before its networks were trained side by side on small
batches, as they are today; that was not measured on all of these folds.

The other rows of networks have `committee=False` and eight members. All rows predict the label set
of a bag by the paper's rule, the union of its instances' labels. Distillation is chosen if it makes
held-out label sets more likely; that need not help on instances.

A network sees the whole bag through its context: its answers are for bags as they come, not for
single instances. Most of what the exact loss gains over pooling, noisy-or of a softmax also gains,
perhaps because both give every instance one label. Posteriors given the label set, which
distillation needs, take exact inference anyway.
""",
)
