"""What rivals reach in the paper's tables where their grids do not end.

The tables of the paper have its own grids. Here each is widened around the setting that is best,
until what lies next to it is not better: penalties, variances, kernel widths of bags, and of
MIMLfast the number of epochs, which the paper does not give; its other numbers stay those of the
table.
"""

from itertools import product

from unbag_reproduce import (
    BAG_MEASURES,
    METHODS,
    Comparison,
    Figure,
    Plan,
    Results,
    Study,
    Table,
    Unit,
    Values,
    are_done,
    comparison_table,
    fold,
    measured,
    some_methods,
    spread,
    words,
)
from unbag_reproduce.widening import at_an_end

ACCURACY = "inductive_accuracy"
LADDERS = {
    "sim": {"alpha": tuple(10.0**power for power in range(-11, 4))},
    "mimlfast": {"n_epochs": (3, 10, 30, 100, 300, 1000)},
    "lsbcmm": {"variance": tuple(10.0**power for power in range(-3, 9))},
    "mimlsvm": {"gamma": (0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6)},
    "mimlnn": {"alpha": (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)},
}
#: Measure to the methods that are tuned by it: as in the paper's tables, and with wider grids.
PUBLISHED = {
    ACCURACY: Comparison(fold, some_methods("sim", "mimlfast", "lsbcmm"), (ACCURACY,)),
    **{
        measure: Comparison(fold, some_methods("sim", "lsbcmm", "mimlsvm", "mimlnn"), (measure,))
        for measure in BAG_MEASURES
    },
}
WIDER = {
    measure: Comparison(fold, each.methods, each.tuned_by, ladders=LADDERS)
    for measure, each in PUBLISHED.items()
}


def units(plan: Plan, ledger: Results) -> list[Unit]:
    """List the fits of the paper's grids, which other experiments share, and those around them."""
    compared = [*PUBLISHED.values(), *WIDER.values()]
    return list(dict.fromkeys(unit for each in compared for unit in each.units(plan, ledger)))


def records_of(plan: Plan, ledger: Results) -> list[Values]:
    """Return a record for each data set, measure and method: the paper's grid beside a wider one.

    What is not finished is left out.
    """
    records = []
    for name, (measure, published) in product(plan.data, PUBLISHED.items()):
        for method in published.methods:
            at_grid, at_wider = (
                each.tuned(plan, ledger, name, method, measure)
                for each in (published, WIDER[measure])
            )
            if at_grid is None or at_wider is None:
                continue
            of_grid, of_wider = (
                published.units_of(plan, name, method, setting) for setting in (at_grid, at_wider)
            )
            if not (are_done(ledger, of_grid) and are_done(ledger, of_wider)):
                continue
            before = float(measured(ledger, of_grid, measure).mean())
            values = spread(measured(ledger, of_wider, measure))
            records.append(
                {
                    "data": name, "method": METHODS[method].title, "measure": words(measure),
                    **values, "of_published_grid": before, "gain": values["ours"] - before,
                    "at_an_end": ", ".join(at_an_end(at_wider, LADDERS[method])),
                    "setting": at_wider,
                }
            )  # fmt: skip
    return records


def write(record: Values) -> str:
    """Write the cell of a record."""
    if record["gain"] == 0:
        return f"{record['ours']:.1f}"
    return f"{record['ours']:.1f} ({record['of_published_grid']:.1f})"


def settings_note(records: list[Values]) -> str:
    """Say what was chosen where a wider grid has something better."""
    listed = "; ".join(
        f"{each['data']}, {each['measure']}, {each['method']} "
        + ", ".join(
            f"{entry.replace('_', ' ')} {each['setting'][entry]:g}" for entry in LADDERS[key]
        )
        for each in records
        if each["gain"] != 0
        for key in [key for key in LADDERS if METHODS[key].title == each["method"]]
    )
    ends = [each for each in records if each["at_an_end"]]
    still = (
        " At an end still: "
        + ", ".join(f"{each['data']}, {each['measure']}, {each['method']}" for each in ends)
        + "."
        if ends
        else " No end of a ladder is chosen."
    )
    return f"Chosen beyond the grid: {listed or 'nothing'}.{still}"


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make the table of what rivals reach by wider grids."""
    records = records_of(plan, ledger)
    return [
        comparison_table(
            "wider",
            "What rivals reach with wider grids (%), and with the paper's",
            records,
            [
                "Where a wider grid has a better setting: in brackets, what the grid of the main "
                "tables reaches, which is the paper's, but for the penalty of SIM and the scale of "
                "features. Each is chosen by the measure it stands for, on the folds that are "
                "reported, the letters' as in the main tables. "
                f"{settings_note(records)} {plan.describe()}.",
                *(note for each in WIDER.values() for note in each.missing(plan, ledger)),
            ],
            row=lambda record: f"{record['data']}, {record['measure']}",
            column="method",
            write=write,
        )
    ]


STUDY = Study(
    "wider",
    "what rivals reach where their grids are widened until no end is chosen (evidence)",
    units=units,
    present=present,
)
