"""The paper's comparison on a table of the user's own."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.model_selection import KFold

from unbag._extras import require
from unbag._files import check, check_outputs
from unbag._machine import describe_machine, versions
from unbag._messages import argument
from unbag.io import BagTable, Roles, read
from unbag.labels import digest_of

from .folds import cross_validate_bags
from .ledger import Ledger, Values, Work
from .methods import (
    BOUNDS,
    METHODS,
    WITH_PROBABILITIES,
    Method,
    n_folds_at,
)
from .statistics import (
    BOLD,
    HIGHER_IS_BETTER,
    beside_best,
    best_setting,
    spread,
    with_bold,
    words,
)
from .tables import ABOUT, Table, comparison_table, write_tables
from .work import check_process_count, run

#: What is compared with and without instance labels, and what needs them.
ALWAYS = ("mlr", "unbag", "sim", "mimlfast", "lsbcmm", "mimlsvm", "mimlnn")
WITH_INSTANCE_LABELS = ("slr", "dummy")
#: Settings of one method that are tried at level "standard": who compares has no week for it.
MOST_SETTINGS = 12
#: What chooses among the settings of a method.
TUNED_BY = "hamming_loss"


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
    level : {"quick", "standard", "full"}
        How thoroughly, as in `unbag.model_selection.methods`; "standard" tries at most
        `MOST_SETTINGS` settings of each method.
    seed : int
        Of folds and methods. The same seed gives the same table.
    n_jobs : int
        Number of processes.
    out : path
        The table and the ledger of finished work go to ``out/compare``; a run that was
        interrupted goes on there.
    console : rich Console, optional
        Where to show progress.
    """
    check_process_count(n_jobs)
    path = Path(path).resolve()
    check(
        roles is None or roles.known is None,
        "The methods that are compared learn from labels of bags alone: leave out "
        f"{argument('known')}, or pass labels to compare with by {argument('instance_labels')}.",
    )
    table = read(path, roles)
    if methods is None:
        more = () if table.bags.instance_labels is None else WITH_INSTANCE_LABELS
        methods = (*ALWAYS, *more, "dummy-bags")
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"There is no method {method!r}; there are {', '.join(METHODS)}.")
    if "network" in methods:
        require("torch")
    n_folds = n_folds_at(level)
    if len(table.bags) < n_folds:
        raise ValueError(
            f"{path} has {len(table.bags)} bags, too few for {n_folds} folds: a comparison "
            "needs more bags."
        )
    given = {name: value for name, value in asdict(table.roles).items() if value is not None}
    data = table_name(path, given, digest_of(table.labels, table.bags.instance_labels))
    compared = {name: compared_method(name) for name in methods}
    if {"dummy", "dummy-bags"} <= set(compared):
        compared["dummy-bags"] = replace(compared["dummy-bags"], title="dummy, bags alone")
    trials = {
        name: [
            [Trial(data, name, setting, fold, n_folds, seed) for fold in range(n_folds)]
            for setting in method.grids[level]
        ]
        for name, method in compared.items()
    }
    folder = Path(out) / "compare"
    made = [folder / f"compare{suffix}" for suffix in (".md", ".csv")]
    second = [] if table.roles.label_table is None else [table.roles.label_table]
    check_outputs([], [path, *second], in_folders=[*made, folder / ABOUT])
    ledger = Ledger(folder)
    with ledger.writing():
        units = [trial for tried in trials.values() for folds in tried for trial in folds]
        run(units, ledger, n_jobs=n_jobs, console=console, title="compare")
    chosen = {name: best_trials(tried, ledger) for name, tried in trials.items()}
    records = with_bold(
        [
            {"data": path.name, **record}
            for measure in HIGHER_IS_BETTER
            for record in measure_records(measure, compared, chosen, ledger, level)
        ]
    )
    result = comparison_table(
        "compare",
        f"{path.name}: methods compared (%)",
        records,
        [
            "Accuracies and average precision are better high, the others low. Each method is at "
            "the setting of its best Hamming loss on these same folds, which flatters methods of "
            f"many settings. {BOLD} {n_folds} folds; {level} grids; seed {seed}."
        ],
        row="method",
        column=lambda record: words(record["measure"]),
        rows=[method.title for method in compared.values()],
    )
    about = {
        "data": [data], "level": level, "seed": seed, "tables": [result.name], **versions(),
        "machine": describe_machine(),
    }  # fmt: skip
    write_tables([result], ledger.folder, about)
    return [result]


@dataclass(frozen=True)
class Trial(Work):
    """One method with one setting, on one fold of the bags of a table.

    The table is named by `table_name`, and the method is one of `METHODS`.
    """

    data: str
    method: str
    setting: Values
    fold: int
    n_folds: int
    seed: int

    def describe(self) -> Values:
        """Return the trial as JSON can hold it."""
        return asdict(self)

    def result(self) -> Values:
        """Fit to the training bags; return measures of the test bags in percent, and seconds."""
        table = read_table(self.data)
        folds = KFold(self.n_folds, shuffle=True, random_state=self.seed)
        split = list(folds.split(range(len(table.bags))))[self.fold]
        model = METHODS[self.method].model(self.setting, self.seed)
        found = cross_validate_bags(model, table.bags, table.labels, cv=[split])
        measures = {
            name: 100.0 * float(found[name][0]) for name in HIGHER_IS_BETTER if name in found
        }
        return {**measures, "seconds": float(found["fit_time"][0])}


def table_name(path: Path, roles: Values, labels: str) -> str:
    """Return a name by which `read_table` finds a table: where it lies, its state, its columns.

    It is JSON. If the table changes, its name changes too, because its results are no longer valid.
    `labels` is a digest of the labels, which may come from a second table.
    """
    state = path.stat()
    named = {
        "path": str(path), "changed": state.st_mtime_ns, "size": state.st_size, "roles": roles,
        "labels": labels,
    }  # fmt: skip
    return json.dumps(named, sort_keys=True, default=str)


@lru_cache(maxsize=1)
def read_table(name: str) -> BagTable:
    """Read the table of a name that `table_name` gave, once per process."""
    named = json.loads(name)
    return read(named["path"], Roles(**named["roles"]))


def best_trials(tried: list[list[Trial]], results: Ledger) -> list[Trial]:
    """Return the trials of the setting that is the best after the fact."""
    if len(tried) == 1:
        return tried[0]
    scores = [scores_of(TUNED_BY, trials, results) for trials in tried]
    return tried[best_setting(scores, higher_is_better=HIGHER_IS_BETTER[TUNED_BY])]


def scores_of(measure: str, trials: list[Trial], results: Ledger) -> np.ndarray:
    """Return a measure of trials, of shape (n_folds,)."""
    return np.array([results[trial][measure] for trial in trials])


def measure_records(
    measure: str,
    compared: dict[str, Method],
    chosen: dict[str, list[Trial]],
    results: Ledger,
    level: str,
) -> list[Values]:
    """Return a record for each method that has a measure; in a first look nothing is tested."""
    scores = {
        name: scores_of(measure, trials, results)
        for name, trials in chosen.items()
        if measure in results[trials[0]]
    }
    competing = {
        name: values for name, values in scores.items() if name not in BOUNDS and level != "quick"
    }
    p_values = beside_best(competing, higher_is_better=HIGHER_IS_BETTER[measure])
    return [
        {
            "method": compared[name].title, "measure": measure, **spread(values),
            "p_value": p_values.get(name), "p_holm": None,
            "bold": p_values.get(name, 1.0) is None,
            "settings_tried": len(compared[name].grids[level]), "setting": chosen[name][0].setting,
        }
        for name, values in scores.items()
    ]  # fmt: skip


def compared_method(name: str) -> Method:
    """Return one of `METHODS` with the defaults of unbag instead of those of the paper.

    The paper has its own rule to predict label sets. Here, methods with probabilities use a
    threshold of 0.5, as users get it by default.
    """
    method = METHODS[name]
    grids = method.grids | {"standard": thinned(method.grids["standard"], MOST_SETTINGS)}
    # Those of unbag's default are its own already.
    if name in WITH_PROBABILITIES and name != "unbag":
        grids = {
            level: [{**setting, "threshold": 0.5} for setting in settings]
            for level, settings in grids.items()
        }
    return replace(method, grids=grids)


def thinned(settings: Sequence[Any], n_most: int) -> list[Any]:
    """Return at most so many settings, spread evenly over all.

    Examples
    --------
    >>> thinned([1, 2, 3, 4, 5], 3)
    [1, 3, 5]
    """
    return list(settings[:: -(-len(settings) // n_most)])
