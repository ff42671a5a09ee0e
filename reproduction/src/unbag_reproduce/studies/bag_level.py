"""Predicting the label sets of bags: Table 7 of the paper.

The paper's section 6.4 does not say which measure chose the settings, so there are two tables: each
measure at the setting that is best for it, and all of them at the setting of the best Hamming loss.
"""

import numpy as np

from unbag_reproduce import (
    BAG_MEASURES,
    BOLD,
    Comparison,
    Figure,
    Plan,
    Results,
    Study,
    Table,
    beside,
    comparison_figure,
    comparison_table,
    datasets,
    draw_note,
    fold,
    published_figure,
    record_cell,
    some_methods,
    tuning_note,
    with_bold,
    words,
)
from unbag_reproduce.notes import OVER_FOLDS, at_best, choice_note

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
    records = with_bold(
        [
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
        ]
    )  # fmt: skip
    return comparison_table(
        f"bag-level-{tuned_by}",
        f"Measures of bag label sets (%), tuned by {TUNED_BY[tuned_by]}",
        records,
        [
            "In brackets: published, and the difference. Average precision is better high, the "
            f"others low; coverage is divided by the number of classes. {BOLD} SLR, the dummy, "
            f"more steps than published and unbag's default stay outside. {OVER_FOLDS} "
            f"{tuning_note(COMPARISON, plan)} {choice_note(COMPARISON, plan)} {plan.describe()}.",
            *draw_note(records),
            *(unit_length_note(plan, ledger) if tuned_by == "measure" else []),
            *COMPARISON.missing(plan, ledger),
        ],
        row=lambda record: f"{record['data']}, {words(record['measure'])}",
        column="method",
    )


def unit_length_note(plan: Plan, ledger: Results) -> list[str]:
    """Say what bringing instances to length one does to the methods that measure distances.

    Nothing where it was not tried both ways.
    """
    reached = []
    for method in ("mimlsvm", "mimlnn"):
        compared = COMPARISON.methods[method]
        settings = compared.grids[plan.level]
        for name in plan.data:
            figures = [
                at_best(
                    COMPARISON, plan, ledger, name, method,
                    [each for each in settings if each["unit_length"] == unit_length],
                    tuned_by="average_precision", measure="average_precision",
                )
                for unit_length in (False, True)
            ]  # fmt: skip
            if None not in figures:
                reached.append("{}, {} {:.1f} and {:.1f}".format(compared.title, name, *figures))
    if not reached:
        return []
    return [
        "Average precision on the folds that tune, at the best setting without and with instances "
        f"brought to length one: {'; '.join(reached)}."
    ]


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
    """Make the table of constant answers, beside the published loss of the dummy."""
    records, lowest = [], []
    for name in plan.data:
        known, one_error = (
            published_figure("bag-level", name, "dummy", measure).get("mean")
            for measure in ("hamming_loss", "one_error")
        )
        if known is None:
            continue
        data = datasets.load(name, random_state=plan.seed)
        lowest.append(f"{name} {100 - 100 * data.y.mean(axis=0).max():.1f} ({one_error})")
        losses = 100 * constant_losses(data.y)
        away = np.abs(losses - known)
        nearest = np.flatnonzero(away <= away.min() + ROUNDING)
        most_frequent = data.y.sum(axis=0).argmax(keepdims=True)
        frequent = data.y.mean(axis=0) > 0.5
        answers = {
            "the nearest": (" or ".join(data.class_names[nearest]), losses[nearest[0]]),
            "the most frequent": (data.class_names[most_frequent][0], losses[most_frequent][0]),
            "the first": (data.class_names[0], losses[0]),
            "those of more than half of the bags": (
                " and ".join(data.class_names[frequent]) or "none",
                100 * (data.y != frequent).mean(),
            ),
        }
        records += [
            {"data": name, "answer": answer, "class": classes, **beside(float(loss), known)}
            for answer, (classes, loss) in answers.items()
        ]
    return comparison_table(
        "bag-level-constant",
        "Hamming loss (%) of answering the same for every bag",
        records,
        [
            "In brackets: published for the dummy, and the difference. The paper's dummy is to "
            "name all classes that are in more than half of the training bags: the last column, "
            "where no such class leaves the empty set. Before it, one class alone: those whose "
            "loss is the nearest to the published figure, the most frequent, and the first in the "
            "order of the data, of the letters in that of the alphabet. Counted over all bags, "
            "whose label sets are the same in all draws. The dummy of the tables "
            "above takes the most frequent class of the training bags, where none is in more than "
            "half; that may change from fold to fold, which costs more where two classes are about "
            "as frequent, as on Letter Frost.",
            "The lowest one-error of any answer that is the same for every bag, the share of bags "
            "without the most frequent class (in brackets: published for the dummy): "
            f"{', '.join(lowest)}.",
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
The paper does not say in 6.4 by what it tuned: hence two tables, tuned by each measure and by
Hamming loss. MLR and SLR fall short on HJA in all five measures with 50 steps; with 200 they are
within a point of what was published (for what that says, see [inductive](#inductive)).

MIMLSVM and MIMLNN measure distances, so they depend on how features are scaled, which the paper
does not say. Here features lie between zero and one, and whether instances are brought to length
one as well is a setting that is tuned; a note below the first table has what it does. MIMLNN on
Letter Frost stays short of its published average precision by any scale, bias and penalty that we
tried; two other distances between bags pass it, and on Letter Carroll go far beyond what is
published ([distances](#distances)), so the paper's is unlikely to have been one of those either.

By the paper's definition its dummy would answer no class at all on these data, and have a lower
Hamming loss than published. On each data set one fixed class has the published loss. That the
paper's dummy answered such a class is a conjecture. On HJA and MSRCv2 it would be the first class
of the data, which a program takes that looks for the largest of many zeros; of the letters it
would be N in both sets, and not the first of the alphabet. In which order the paper has them, it
does not say.
""",
)
