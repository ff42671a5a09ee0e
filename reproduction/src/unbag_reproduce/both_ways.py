"""Labels of new bags, and of training bags given their label sets; and how sure models are."""

import numpy as np

from .additions import BOTH_WAYS, both_ways_units, made
from .calibration import N_BINS, calibration_error
from .comparison import measured
from .ledger import Results
from .plan import Plan
from .statistics import spread
from .tables import Table, comparison_table
from .unit import Values

#: What is measured, in the words of the table, in its order.
GIVEN = "accuracy on training bags, given their label sets"
ERRORS = {
    "new_bins": "calibration error on new bags",
    "given_bins": "calibration error on training bags, given their label sets",
}


def both_ways_records(plan: Plan, ledger: Results) -> list[Values]:
    """Return records of accuracy given label sets, and of calibration errors without and with."""
    fits = {
        (row, name): both_ways_units(plan, ledger, name, row)
        for row in made(plan, ledger, BOTH_WAYS)
        for name in plan.data
    }
    records = [
        {
            "data": name, "variant": row, "measure": GIVEN,
            **spread(measured(ledger, units, "given")),
        }
        for (row, name), units in fits.items()
    ]  # fmt: skip
    for key, measure in ERRORS.items():
        for (row, name), units in fits.items():
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
    return comparison_table(
        "beyond-both-ways",
        "Training bags given their label sets (%), and how sure models are",
        records,
        [
            "Training bags are nine of ten folds. The calibration error is the mean difference "
            "between the probability of the answered label and how often such labels are right, in "
            f"{N_BINS} bins of that probability. Nothing here is tested."
        ],
        row=lambda record: f"{record['measure']}: {record['variant']}",
        column="data",
    )
