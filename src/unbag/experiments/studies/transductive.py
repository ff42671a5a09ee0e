"""Instance accuracy on bags whose label sets are known: Tables 5 and 6 of the paper.

Every method is fitted to all bags, and labels their instances with the labels of their bags. The
settings are chosen by the accuracy reached, or by the Hamming loss on the same bags.
"""

from unbag.experiments import (
    Comparison,
    Figure,
    Plan,
    Results,
    Study,
    Table,
    comparison_figure,
    comparison_table,
    published_figure,
    some_methods,
    whole,
)

COMPARISON = Comparison(
    whole,
    some_methods("mlr", "unbag", "sim", "mimlfast", "lsbcmm", "dummy"),
    cross_validated=False,
)
#: Name of the table to the measure that chooses settings, and its name in words.
TUNED_BY = {
    "accuracy": ("transductive_accuracy", "instance accuracy"),
    "hamming": ("hamming_loss", "Hamming loss"),
}


def accuracy_table(plan: Plan, ledger: Results, tuned_by: str) -> Table:
    """Make the table of accuracies, tuned by one measure."""
    chosen_by, in_words = TUNED_BY[tuned_by]
    records = [
        record
        for name in plan.data
        for record in COMPARISON.records(
            plan, ledger, name, "transductive_accuracy", tuned_by=chosen_by,
            published=lambda *of: published_figure("transductive", tuned_by, *of),
            labels={"measure": "transductive accuracy", "tuned_by": in_words},
        )
    ]  # fmt: skip
    return comparison_table(
        f"transductive-{tuned_by}",
        f"Instance accuracy (%), bag labels known, tuned by {in_words}",
        records,
        [
            "In brackets: published, and the difference. Bold: the best, our default and the dummy "
            "left aside; one fit to all bags, so there is nothing to test. "
            f"{plan.describe(folds=False)}."
        ],
        row="method",
        column="data",
    )


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make both tables and a figure of the first."""
    tables = [accuracy_table(plan, ledger, tuned_by) for tuned_by in TUNED_BY]
    figure = comparison_figure(
        "transductive",
        "Instance accuracy, bag labels known",
        tables[0].records,
        x_label="instance accuracy, %",
    )
    return [*tables, figure]


STUDY = Study(
    "transductive",
    "instance accuracy on bags of known labels, tuned by instance accuracy and by Hamming loss",
    units=COMPARISON.units,
    present=present,
    comparison=COMPARISON,
    remarks="""\
The paper does not say on what the Hamming loss was measured that tuned its second table; here it
is that of the training bags. For rivals without a model of label sets, an instance gets the label
of its bag that scores highest.
""",
)
