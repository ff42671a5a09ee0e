"""The paper's comparison on a table of the user's own."""

from dataclasses import asdict
from pathlib import Path

from unbag.io import read

from .bag_level import MEASURES, words
from .cross_validation import fold_scores, fold_units, tuned
from .data import table_name
from .ledger import Ledger
from .methods import BOUNDS, METHODS
from .plan import Plan
from .reproduce import write
from .runner import run
from .tables import Table, best_methods, cell

METHODS_OF_INSTANCES = ("mlr", "unbag", "sim", "mimlfast", "lsbcmm")
METHODS_OF_BAGS = ("mimlsvm", "mimlnn")


def compare(
    path, roles=None, *, methods=None, level="standard", seed=0, n_jobs=1, out="results",
    console=None,
):  # fmt: skip
    """Compare the paper's methods on a table, by cross-validation over its bags.

    Parameters
    ----------
    path : path
        Of any format that `unbag.io.read` knows.
    roles : Roles, optional
        Which column is what. With instance labels, instance accuracies are compared too.
    methods : sequence of str, optional
        Some of `METHODS`; by default all that the data allow.
    level, seed, n_jobs, out, console
        As in `reproduce`.

    Returns
    -------
    list of Table
    """
    path = Path(path).resolve()
    table = read(path, roles)
    has_truth = table.bags.instance_labels is not None
    if methods is None:
        bounds = ("slr", "dummy", "dummy-bags") if has_truth else ("dummy-bags",)
        methods = (*METHODS_OF_INSTANCES, *METHODS_OF_BAGS, *bounds)
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"There is no method {method!r}; there are {', '.join(METHODS)}.")
    given = {name: value for name, value in asdict(table.roles).items() if value is not None}
    plan = Plan((table_name(path, given),), level, seed)
    if len(table.bags) < plan.n_folds:
        raise ValueError(
            f"{path} has {len(table.bags)} bags, too few for {plan.n_folds} folds: a comparison "
            "needs more bags."
        )
    ledger = Ledger(Path(out) / "units")
    run(fold_units(plan, methods), ledger, n_jobs=n_jobs, console=console, title="compare")
    shown = [comparison(plan, ledger, methods, path.name, has_truth)]
    write(shown, Path(out) / "compare", plan)
    return shown


def comparison(plan, ledger, methods, title, has_truth):
    """Make the table: a row for each method, a column for each measure."""
    (name,) = plan.data
    measures = {"inductive_accuracy": True, "transductive_accuracy": True} if has_truth else {}
    measures |= MEASURES
    records, cells = [], {}
    for measure, higher in measures.items():
        scores = {}
        for method in methods:
            setting, place = tuned(plan, ledger, name, method, "hamming_loss", False)
            if has_measure(plan, ledger, name, method, measure):
                scores[method] = fold_scores(plan, ledger, name, method, measure)[place], setting
        rivals = {m: values for m, (values, _) in scores.items() if m not in BOUNDS}
        bold = best_methods(rivals, higher_is_better=higher)
        for method, (values, setting) in scores.items():
            mean, std = float(values.mean()), float(values.std(ddof=1))
            cells[method, measure] = cell(mean, std, bold=method in bold)
            records.append(
                {
                    "data": title, "method": METHODS[method].title, "measure": measure,
                    "ours": mean, "std": std, "bold": method in bold, "setting": setting,
                }
            )  # fmt: skip
    return Table(
        "compare",
        f"{title}: methods compared (%)",
        ["", *(words(measure) for measure in measures)],
        [
            [METHODS[method].title, *(cells.get((method, measure), "") for measure in measures)]
            for method in methods
        ],
        records,
        [
            "Accuracies and average precision are better high, the others low. Each method is at "
            "the setting of its best Hamming loss on these same folds, which flatters methods of "
            "many settings. Bold: the best, and what a paired t-test (two-tailed, 95 %) over the "
            f"folds does not tell from it. {plan.describe()}."
        ],
    )


def has_measure(plan, ledger, name, method, measure):
    """Tell whether a method could be measured so."""
    setting = METHODS[method].grids[plan.level][0]
    (unit, *_) = (u for u in fold_units(plan, [method]) if u["setting"] == setting)
    return measure in ledger[unit]
