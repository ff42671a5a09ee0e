"""The same network taught by the exact loss and by those that people use in its place."""

from unbag.model_selection.statistics import paired_p_value, spread
from unbag.model_selection.tables import Table

from .additions import LOSSES, is_made, made, scores
from .ledger import Results
from .notes import OVER_FOLDS
from .plan import Plan
from .statistics import TEST, UNTESTED, outcome
from .tables import comparison_table, judged_cell
from .unit import Values

#: Accuracies that are compared, and what they are called in the table.
UNKNOWN = "label sets unknown"
MEASURES = {"inductive_accuracy": UNKNOWN, "transductive_accuracy": "label sets known"}


def loss_records(plan: Plan, ledger: Results) -> list[Values]:
    """Return records of the same network by the exact loss and by others, tested against it."""
    exact, *others = LOSSES
    records = []
    for name in made(plan, ledger, exact):
        for measure, known in MEASURES.items():
            by_exact = scores(plan, ledger, name, exact, measure)
            entries = {"data": name, "loss": exact, "measure": known}
            records.append({**entries, **spread(by_exact), "difference": None, **UNTESTED})
            for row in others:
                if is_made(plan, ledger, name, row):
                    values = scores(plan, ledger, name, row, measure)
                    gain = float((values - by_exact).mean())
                    records.append(
                        {
                            **entries, "loss": row, **spread(values), "difference": gain,
                            **outcome(gain, paired_p_value(values, by_exact)),
                        }
                    )  # fmt: skip
    return records


def loss_table(plan: Plan, records: list[Values], family: str) -> Table:
    """Make the table of the same network taught by the exact loss and by approximations."""
    return comparison_table(
        "beyond-losses",
        "Accuracy on the instances of test bags (%), the same network by other losses",
        records,
        [
            "For each loss, the encoding of inputs is chosen by the likelihood that the loss "
            "itself gives to held-out bag labels; without distillation, which needs exact "
            "inference. Where label sets are known, all are asked for labels by exact inference. "
            f"In brackets: beside the exact loss, by {TEST} {OVER_FOLDS} {family} "
            f"{plan.describe()}.",
            *loss_note(records),
        ],
        row="loss",
        column=lambda record: f"{record['data']}, {record['measure']}",
        write=judged_cell,
    )


def loss_note(records: list[Values]) -> list[str]:
    """Say what other losses cost beside the exact one, where label sets are unknown.

    Examples
    --------
    >>> record = {"loss": "max pooling", "measure": "label sets unknown", "difference": -8.4}
    >>> loss_note([record, {**record, "difference": -13.9}])
    ['Points below the exact loss, label sets unknown: max pooling 8.4 to 13.9.']
    """
    below: dict[str, list[float]] = {}
    for record in records:
        if record["measure"] == UNKNOWN and record["difference"] is not None:
            below.setdefault(record["loss"], []).append(-record["difference"])
    listed = "; ".join(f"{loss} {min(each):.1f} to {max(each):.1f}" for loss, each in below.items())
    return [f"Points below the exact loss, {UNKNOWN}: {listed}."] if listed else []
