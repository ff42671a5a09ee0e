"""The paper's comparison on a table of the user's own."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from unbag._extras import require
from unbag.estimators import ORLogisticRegression
from unbag.io import Roles, read

from .comparison import HIGHER_IS_BETTER, Comparison, fold, words
from .data import table_name
from .ledger import Ledger
from .methods import BOUNDS, METHODS, PENALISED, WITH_PROBABILITIES, Method, levels, thinned
from .plan import Plan
from .reproduce import write
from .runner import check_process_count, run
from .tables import Table, comparison_table

#: What is compared with and without instance labels, and what needs them.
ALWAYS = ("mlr", "unbag", "sim", "mimlfast", "lsbcmm", "mimlsvm", "mimlnn")
WITH_INSTANCE_LABELS = ("slr", "dummy")
#: Settings of one method that are tried at level "standard": who compares has no week for it.
MOST_SETTINGS = 12
#: What `unbag.ORLogisticRegression` has where nothing is said.
USERS_DEFAULT = {name: ORLogisticRegression().get_params()[name] for name in PENALISED}


def compare(
    path: str | Path,
    roles: Roles | None = None,
    *,
    methods: Sequence[str] | None = None,
    level: str = "standard",
    seed: int = 0,
    n_jobs: int = 1,
    out: str | Path = "results",
    console: Console | None = None,
) -> list[Table]:
    """Compare the paper's methods on a table, by cross-validation over its bags.

    Parameters
    ----------
    path : path
        Of any format that `unbag.io.read` knows.
    roles : Roles, optional
        Which column is what. With instance labels, instance accuracies are compared too.
    methods : sequence of str, optional
        Some of `METHODS`; by default all that the data allow but the network, which takes
        the longest.
    level, seed, n_jobs, out, console
        As in `reproduce`.

    Returns
    -------
    list of Table
    """
    check_process_count(n_jobs)
    path = Path(path).resolve()
    table = read(path, roles)
    if methods is None:
        more = () if table.bags.instance_labels is None else WITH_INSTANCE_LABELS
        methods = (*ALWAYS, *more, "dummy-bags")
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"There is no method {method!r}; there are {', '.join(METHODS)}.")
    if "network" in methods:
        require("torch")
    given = {name: value for name, value in asdict(table.roles).items() if value is not None}
    plan = Plan((table_name(path, given),), level, seed)
    if len(table.bags) < plan.n_folds:
        raise ValueError(
            f"{path} has {len(table.bags)} bags, too few for {plan.n_folds} folds: a comparison "
            "needs more bags."
        )
    compared = {name: as_users_have_it(name) for name in methods}
    if {"dummy", "dummy-bags"} <= set(compared):
        compared["dummy-bags"] = replace(compared["dummy-bags"], title="dummy, bags alone")
    comparison = Comparison(fold, compared, tuned_by=("hamming_loss",))
    ledger = Ledger(out, "compare")
    with ledger.writing():
        units = comparison.units(plan, ledger)
        run(units, ledger, n_jobs=n_jobs, console=console, title="compare")
    records = [
        record
        for measure in HIGHER_IS_BETTER
        for record in comparison.records(
            plan, ledger, plan.data[0], measure, tuned_by="hamming_loss", outside=BOUNDS,
            labels={"data": path.name},
        )
    ]  # fmt: skip
    compared_table = comparison_table(
        "compare",
        f"{path.name}: methods compared (%)",
        records,
        [
            "Accuracies and average precision are better high, the others low. Each method is at "
            "the setting of its best Hamming loss on these same folds, which flatters methods of "
            "many settings. Bold: the best, and what a paired t-test (two-tailed, 95 %) over the "
            f"folds does not tell from it. {plan.describe()}."
        ],
        row="method",
        column=lambda record: words(record["measure"]),
        rows=[method.title for method in comparison.methods.values()],
    )
    write([compared_table], Path(out) / "compare", plan)
    return [compared_table]


def as_users_have_it(name: str) -> Method:
    """Return one of `METHODS`, with bags answered for by their probabilities where it has any.

    The paper's tables have its own rule for label sets; who compares wants to know what he gets.
    """
    method = METHODS[name]
    if name == "unbag":
        return replace(method, title="MLR, unbag's default", grids=levels([USERS_DEFAULT]))
    grids = method.grids | {"standard": thinned(method.grids["standard"], MOST_SETTINGS)}
    if name in WITH_PROBABILITIES:
        grids = {
            level: [{**setting, "threshold": 0.5} for setting in settings]
            for level, settings in grids.items()
        }
    return replace(method, grids=grids)
