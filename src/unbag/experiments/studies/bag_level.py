"""Predicting the label sets of bags: Table 7 of the paper.

The paper does not say which measure chose the settings, so there are two tables: each measure
at the setting that is best for it, and all of them at the setting of the best Hamming loss.
"""

import numpy as np

from unbag import datasets
from unbag.experiments import (
    BAG_MEASURES,
    Comparison,
    Figure,
    Plan,
    Results,
    Study,
    Table,
    beside,
    cell,
    comparison_figure,
    comparison_table,
    fold,
    published_figure,
    record_cell,
    some_methods,
    tuning_note,
    words,
)

COMPARISON = Comparison(
    fold,
    some_methods(
        "mlr",
        "mlr-200",
        "mlr-end",
        "unbag",
        "sim",
        "mimlfast",
        "lsbcmm",
        "mimlsvm",
        "mimlnn",
        "slr",
        "slr-200",
        "slr-end",
        "dummy-bags",
    ),
    tuned_by=tuple(BAG_MEASURES),
)
#: Half of the last digit that is published, in percent.
ROUNDING = 0.05
TUNED_BY = {"measure": "each measure", "hamming": "Hamming loss"}


def bag_table(plan: Plan, ledger: Results, tuned_by: str) -> Table:
    """Make the table of all measures on all data sets."""
    records = [
        record
        for name in plan.data
        for measure in BAG_MEASURES
        for record in COMPARISON.records(
            plan, ledger, name, measure,
            tuned_by=measure if tuned_by == "measure" else "hamming_loss",
            published=lambda name, method, measure=measure: published_figure(
                "bag-level", name, method, measure
            ),
            labels={"tuned_by": TUNED_BY[tuned_by]},
        )
    ]  # fmt: skip
    return comparison_table(
        f"bag-level-{tuned_by}",
        f"Measures of bag label sets (%), tuned by {TUNED_BY[tuned_by]}",
        records,
        [
            "In brackets: published, and the difference. Average precision is better high, the "
            "others low; coverage is divided by the number of classes. Bold: the best, and what a "
            "paired t-test (two-tailed, 95 %) over the folds of all draws does not tell from it; "
            "SLR, the dummy, more steps than published and our default stay outside. "
            f"{tuning_note(COMPARISON, plan)} {plan.describe()}.",
            *COMPARISON.missing(plan, ledger),
        ],
        row=lambda record: f"{record['data']}, {words(record['measure'])}",
        column="method",
        write=lambda record: cell(record["ours"], None, record["published"], record["bold"]),
    )


def constant_losses(y: np.ndarray) -> np.ndarray:
    """Return, for each class, the Hamming loss of answering it alone for every bag.

    Examples
    --------
    >>> constant_losses(np.array([[1, 1], [0, 1]]))
    array([0.75, 0.25])
    """
    # Of a bag: its labels but for a right answer, and a wrong one.
    return (y.sum(axis=1, keepdims=True) + 1 - 2 * y).mean(axis=0) / y.shape[1]


def constant_table(plan: Plan) -> Table:
    """Make the table of the one class whose constant answer has the dummy's published loss."""
    records = []
    for name in plan.data:
        known = published_figure("bag-level", name, "dummy", "hamming_loss").get("mean")
        if known is None:
            continue
        data = datasets.load(name, random_state=plan.seed)
        losses = 100 * constant_losses(data.y)
        away = np.abs(losses - known)
        answers = {
            "the nearest": np.flatnonzero(away <= away.min() + ROUNDING),
            "the most frequent": data.y.sum(axis=0).argmax(keepdims=True),
        }
        records += [
            {
                "data": name, "answer": answer, "class": " or ".join(data.class_names[places]),
                **beside(float(losses[places[0]]), known),
            }
            for answer, places in answers.items()
        ]  # fmt: skip
    return comparison_table(
        "bag-level-constant",
        "Hamming loss (%) of answering one class for every bag",
        records,
        [
            "In brackets: published for the dummy, and the difference. Of all classes, those whose "
            "loss is the nearest to the published figure; and the most frequent one, which the "
            "dummy of the tables above answers where no class is in half of the bags. Counted "
            f"over all bags, draw {plan.seed} of the letters."
        ],
        row="data",
        column="answer",
        write=lambda record: f"{record['class']}: {record_cell(record)}",
    )


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make both tables, the one about the dummy, and a figure of average precision."""
    tables = [bag_table(plan, ledger, tuned_by) for tuned_by in TUNED_BY]
    constant = constant_table(plan)
    figure = comparison_figure(
        "bag-level",
        "Average precision of bag label sets",
        [record for record in tables[0].records if record["measure"] == "average_precision"],
        x_label="average precision, %",
    )
    return [*tables, *([constant] if constant.records else []), figure]


STUDY = Study(
    "bag-level",
    "Hamming loss, ranking loss, average precision, one-error and coverage of bag label sets",
    units=COMPARISON.units,
    present=present,
    comparison=COMPARISON,
    remarks="""\
MLR and SLR fall short on HJA in all five measures because 50 steps do: with more steps they are as
published. MIMLSVM and MIMLNN measure distances, so they depend on how features are scaled, which
the paper does not say. Features from zero to one reach the published figures on HJA; on MSRC v2
instances have to be brought to length one as well, which is therefore a setting that is tuned.
MIMLNN on Letter Frost stays short of its published average precision by any scale, bias and
penalty that we tried; another distance between bags passes it, and on Letter Carroll passes far
beyond what is published ([distances](#distances)), so the paper's cannot have been that one
either. The published Hamming loss of the dummy is that of one fixed class, which is not always the
most frequent one that ours answers.
""",
)
