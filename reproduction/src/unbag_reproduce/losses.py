"""The same network taught by the exact loss and by those that people use in its place."""

from itertools import product

from .additions import LOSSES, made, scores
from .ledger import Results
from .plan import Plan
from .statistics import UNTESTED, outcome, paired_p_value, spread
from .tables import Table, comparison_table, judged_cell
from .unit import Values

#: Accuracies that are compared, and what they are called in the table.
UNKNOWN = "label sets unknown"
MEASURES = {"inductive_accuracy": UNKNOWN, "transductive_accuracy": "label sets known"}


def loss_records(plan: Plan, ledger: Results) -> list[Values]:
    """Return records of the same network by the exact loss and by others, tested against it."""
    losses, records = made(plan, ledger, LOSSES), []
    for name, (measure, known), row in product(plan.data, MEASURES.items(), losses):
        by_exact, values = (scores(plan, ledger, name, each, measure) for each in (losses[0], row))
        gain = float((values - by_exact).mean())
        tested = {"difference": gain, **outcome(gain, paired_p_value(values, by_exact))}
        untested = {"difference": None, **UNTESTED}
        records.append(
            {
                "data": name, "loss": row, "measure": known, **spread(values),
                **(untested if row == losses[0] else tested),
            }
        )  # fmt: skip
    return records


def loss_table(plan: Plan, records: list[Values]) -> Table:
    """Make the table of the same network taught by the exact loss and by approximations."""
    return comparison_table(
        "beyond-losses",
        "Accuracy on the instances of test bags (%), the same network by other losses",
        records,
        [
            "In brackets: compared with the exact loss. The likelihood that each loss gives to "
            "held-out bag labels chooses the encoding of inputs. Nothing is distilled. Where label "
            "sets are known, all are asked for labels by exact inference.",
        ],
        row="loss",
        column=lambda record: f"{record['data']}, {record['measure']}",
        write=judged_cell,
    )
