"""Studies of the instance accuracy of methods, tuned by that or by the Hamming loss."""

from unbag.model_selection.statistics import with_bold, words
from unbag.model_selection.tables import Table

from .comparison import Comparison, tuning_note
from .figures import Figure, comparison_figure
from .ledger import Results
from .notes import OVER_FOLDS, choice_note, sim_note
from .plan import Plan, Study
from .published import published_figure
from .tables import comparison_table, draw_note


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
    """Make an experiment of two tables of accuracies, and a figure of the first.

    Parameters
    ----------
    name : str
        Of the experiment, of its published tables, and of the accuracy that is compared.
    title : str
    comparison : Comparison
    labels : str
        What is known of the labels of bags, as in the titles of the tables.
    figure_title : str
    note : str
        Below each table.
    remarks : str
        As in `Study`.
    """
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
        said = [
            note,
            OVER_FOLDS if comparison.cross_validated else "",
            tuning_note(comparison, plan),
            choice_note(comparison, plan),
            f"{plan.describe(folds=comparison.cross_validated)}.",
        ]
        return comparison_table(
            f"{name}-{known_as}",
            f"Instance accuracy (%), bag labels {labels}, tuned by {in_words}",
            records,
            [
                " ".join(filter(None, said)),
                *draw_note(records),
                *sim_note(comparison, plan, results, tuned_by=chosen_by, measure=measure),
                *comparison.missing(plan, results),
            ],
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
