"""Instance accuracy on new bags whose label sets are not known: Tables 3 and 4 of the paper.

Every method is fitted to the training bags of each fold; each rival is reported at the setting
with the best mean over the test folds, by instance accuracy or by Hamming loss.
"""

from .cross_validation import fold_scores, fold_units, tuned
from .experiment import Experiment
from .figures import Figure, beside_published
from .methods import BOUNDS, METHODS
from .published import published_figure
from .tables import Table, best_methods, cell

COMPARED = ("mlr", "unbag", "sim", "mimlfast", "lsbcmm", "slr", "dummy")
TUNED_BY = {
    "accuracy": ("inductive_accuracy", True, "instance accuracy"),
    "hamming": ("hamming_loss", False, "Hamming loss"),
}


def accuracy_table(plan, ledger, tuned_by):
    """Make the table of accuracies, tuned by one measure."""
    measure, higher, words = TUNED_BY[tuned_by]
    records, cells = [], {}
    for name in plan.data:
        accuracies, settings = {}, {}
        for method in COMPARED:
            setting, place = tuned(plan, ledger, name, method, measure, higher)
            settings[method] = setting
            accuracies[method] = fold_scores(plan, ledger, name, method, "inductive_accuracy")[
                place
            ]
        rivals = {m: values for m, values in accuracies.items() if m not in BOUNDS}
        bold = best_methods(rivals)
        for method, values in accuracies.items():
            known = published_figure("inductive", tuned_by, name, method)
            mean, std = float(values.mean()), float(values.std(ddof=1))
            cells[method, name] = cell(mean, std, known.get("mean"), bold=method in bold)
            records.append(
                {
                    "data": name, "method": METHODS[method].title, "measure": "inductive accuracy",
                    "tuned_by": words, "ours": mean, "std": std,
                    "published": known.get("mean"), "published_std": known.get("std"),
                    "difference": mean - known["mean"] if known else None,
                    "bold": method in bold, "setting": settings[method],
                }
            )  # fmt: skip
    return Table(
        f"inductive-{tuned_by}",
        f"Instance accuracy (%), bag labels not known, tuned by {words}",
        ["", *plan.data],
        [[METHODS[m].title, *(cells[m, name] for name in plan.data)] for m in COMPARED],
        records,
        [
            "In brackets: published, and the difference. Bold: the best, and what a paired t-test "
            "(two-tailed, 95 %) over the folds does not tell from it; SLR sees the instance labels "
            f"and the dummy nothing, so they stay outside. {plan.describe()}."
        ],
    )


def present(plan, ledger):
    """Make both tables and a figure of the first."""
    tables = [accuracy_table(plan, ledger, tuned_by) for tuned_by in TUNED_BY]
    groups = {}
    for record in tables[0].records:
        group = groups.setdefault(record["data"], {})
        group[record["method"]] = record["ours"], record["std"], record["published"]
    return [
        *tables,
        Figure(
            "inductive",
            "Instance accuracy on new bags",
            lambda: beside_published(groups, x_label="instance accuracy, %"),
        ),
    ]


EXPERIMENT = Experiment(
    "inductive",
    "instance accuracy on new bags, tuned by instance accuracy and by Hamming loss",
    units=lambda plan, ledger: fold_units(plan, COMPARED),
    present=present,
)
