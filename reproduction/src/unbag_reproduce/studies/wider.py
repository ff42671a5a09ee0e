"""The rivals in the paper's tables, where their grids do not end.

The tables of the paper have its own grids. Here each is widened around the setting that is best,
until what lies next to it is not better: penalties, variances, kernel widths of bags, and of
MIMLfast the number of epochs, which the paper does not give; its other numbers stay those of the
table.
"""

from itertools import product

from unbag_reproduce.comparison import Comparison, fit_fold, some_methods
from unbag_reproduce.figures import Figure
from unbag_reproduce.ledger import Results
from unbag_reproduce.methods import METHODS
from unbag_reproduce.plan import Plan, Study
from unbag_reproduce.statistics import BAG_MEASURES, spread, words
from unbag_reproduce.tables import Table, comparison_table
from unbag_reproduce.unit import Unit, Values
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
    ACCURACY: Comparison(fit_fold, some_methods("sim", "mimlfast", "lsbcmm"), (ACCURACY,)),
    **{
        measure: Comparison(
            fit_fold, some_methods("sim", "lsbcmm", "mimlsvm", "mimlnn"), (measure,)
        )
        for measure in BAG_MEASURES
    },
}
WIDER = {
    measure: Comparison(fit_fold, each.methods, each.tuned_by, ladders=LADDERS)
    for measure, each in PUBLISHED.items()
}


def units(plan: Plan, ledger: Results) -> list[Unit]:
    """List the fits of the paper's grids, which other experiments share, and those around them."""
    compared = [*PUBLISHED.values(), *WIDER.values()]
    return list(dict.fromkeys(unit for each in compared for unit in each.units(plan, ledger)))


def records_of(plan: Plan, ledger: Results) -> list[Values]:
    """Return a record for each data set, measure and method: the paper's grid, and a wider one."""
    records = []
    for name, (measure, published) in product(plan.data, PUBLISHED.items()):
        for method in published.methods:
            at_grid, at_wider = (
                each.tuned(plan, ledger, name, method, measure)
                for each in (published, WIDER[measure])
            )
            assert at_grid is not None
            assert at_wider is not None
            before, after = (
                published.scores(plan, ledger, name, method, setting, measure)
                for setting in (at_grid, at_wider)
            )
            values = spread(after)
            records.append(
                {
                    "data": name, "method": METHODS[method].title, "measure": words(measure),
                    **values, "of_published_grid": float(before.mean()),
                    "gain": values["ours"] - float(before.mean()),
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


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make the table of what rivals reach by wider grids."""
    records = records_of(plan, ledger)
    return [
        comparison_table(
            "wider",
            "Rivals with wider grids (%), and with the paper's",
            records,
            [
                "In brackets, where a wider grid has a better setting: what the grid of the main "
                "tables reaches."
            ],
            row=lambda record: f"{record['data']}, {record['measure']}",
            column="method",
            write=write,
        )
    ]


STUDY = Study(
    "wider",
    "rivals whose grids are widened until no end is chosen",
    units=units,
    present=present,
)
