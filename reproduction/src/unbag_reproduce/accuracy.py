"""Studies of the instance accuracy of methods, tuned by that or by the Hamming loss."""

from .comparison import Comparison
from .figures import Figure, comparison_figure
from .ledger import Results
from .plan import Plan, Study
from .published import published_figure
from .statistics import with_bold, words
from .tables import Table, comparison_table


def accuracy_study(
    name: str,
    title: str,
    comparison: Comparison,
    *,
    labels: str,
    figure_title: str,
    note: str,
    remarks: str,
) -> Study:
    """Make an experiment of two tables of accuracies, and a figure of the first."""
    measure = f"{name}_accuracy"
    tuned_by = {
        "accuracy": (measure, "instance accuracy"), "hamming": ("hamming_loss", "Hamming loss"),
    }  # fmt: skip

    def table(plan: Plan, results: Results, known_as: str) -> Table:
        chosen_by, in_words = tuned_by[known_as]
        records = with_bold(
            [
                record
                for data in plan.data
                for record in comparison.records(
                    plan, results, data, measure, tuned_by=chosen_by,
                    published=lambda *of: published_figure(name, known_as, *of),
                    labels={"measure": words(measure), "tuned_by": in_words},
                )
            ]
        )  # fmt: skip
        return comparison_table(
            f"{name}-{known_as}",
            f"Instance accuracy (%), bag labels {labels}, tuned by {in_words}",
            records,
            [note] if known_as == "accuracy" else [],
            row="method",
            column="data",
        )

    def present(plan: Plan, results: Results) -> list[Table | Figure]:
        tables = [table(plan, results, known_as) for known_as in tuned_by]
        figure = comparison_figure(
            name, figure_title, tables[0].records, x_label="instance accuracy, %"
        )
        return [*tables, figure]

    return Study(
        name, title, units=comparison.units, present=present, comparison=comparison,
        remarks=remarks,
    )  # fmt: skip
