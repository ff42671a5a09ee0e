"""Labels of new bags and of training bags given their label sets, and how sure models are of both.

Which is what people have who tag bags and want to know what is in them: the bags that they tagged,
and those that nobody has.
"""

import numpy as np

from unbag.model_selection.statistics import spread
from unbag.model_selection.tables import Table

from .additions import BOTH_WAYS, all_done, both_ways_units
from .calibration import N_BINS, calibration_error
from .comparison import measured
from .ledger import Results
from .notes import OVER_FOLDS
from .plan import Plan
from .tables import comparison_table, draw_note
from .unit import Values

#: What is measured, in the words of the table, in its order.
GIVEN = "accuracy on training bags, given their label sets"
ERRORS = {
    "new_bins": "calibration error on new bags",
    "given_bins": "calibration error on training bags, given their label sets",
}


def both_ways_records(plan: Plan, ledger: Results) -> list[Values]:
    """Return records of accuracy given label sets, and of calibration errors without and with.

    Rows that are not made on a data set are left out there.
    """
    made = {
        (row, name): units
        for row in BOTH_WAYS
        for name in plan.data
        if all_done(plan, ledger, name, units := both_ways_units(plan, ledger, name, row))
    }
    records = [
        {
            "data": name, "variant": row, "measure": GIVEN,
            **spread(measured(ledger, units, "given")),
        }
        for (row, name), units in made.items()
    ]  # fmt: skip
    for key, measure in ERRORS.items():
        for (row, name), units in made.items():
            # Shape (n_folds, n_draws, n_bins, 3).
            bins = measured(ledger, units, key)
            of_draws = [calibration_error(bins[:, draw]) for draw in range(bins.shape[1])]
            records.append(
                {
                    "data": name, "variant": row, "measure": measure,
                    "ours": calibration_error(bins.reshape(-1, N_BINS, 3)), "std": None,
                    "draw_std": float(np.std(of_draws, ddof=1)) if len(of_draws) > 1 else None,
                }
            )  # fmt: skip
    return records


def both_ways_table(plan: Plan, records: list[Values]) -> Table:
    """Make the table of accuracy given label sets, and of calibration errors."""

    def row(record: Values) -> str:
        return f"{record['measure']}: {record['variant']}"

    present = {record["variant"] for record in records}
    absent = [each for each in BOTH_WAYS if each not in present]
    left_out = [f"Not made, and so left out: {'; '.join(absent)}."] if absent else []
    return comparison_table(
        "beyond-both-ways",
        "Training bags given their label sets (%), and how sure models are",
        records,
        [
            "Training bags are nine of ten folds here; the paper's [transductive](#transductive) "
            "accuracy is of all bags. The calibration error is the mean difference between the "
            "probability of the label that is answered and how often such labels are right, in "
            f"{N_BINS} bins of that probability over all folds and draws together. Higher "
            "accuracies and lower errors are better. Nothing here is tested. "
            f"{OVER_FOLDS} {plan.describe()}.",
            *draw_note(records, "variant"),
            *left_out,
        ],
        row=row,
        column="data",
    )
