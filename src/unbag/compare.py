"""Methods compared on a table of the user's own, by cross-validation over its bags."""

import csv
import io
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t
from sklearn.model_selection import KFold
from sklearn.preprocessing import MinMaxScaler, Normalizer

from unbag._files import DataError, check, check_outputs, make_folder, write_text
from unbag._messages import argument, require
from unbag._scikit_learn import ConvergenceWarning
from unbag._threads import completed, describe_machine, job_count, one_blas_thread, versions
from unbag.bags import Bags
from unbag.estimators import (
    DummyBags,
    DummyInstances,
    ORLogisticRegression,
)
from unbag.fitting.linear import interruptions_raised
from unbag.labels import LabelSets
from unbag.model_selection import all_measures
from unbag.paper import LSBCMM, MIMLNN, MIMLSVM, MLR, SIM, SLR, MIMLFast
from unbag.pipeline import BagPipeline
from unbag.preprocessing import OnInstances
from unbag.tables import Roles, read

Values = dict[str, Any]

#: Measures, and whether more is better.
HIGHER_IS_BETTER = {
    "inductive_accuracy": True,
    "transductive_accuracy": True,
    "hamming_loss": False,
    "ranking_loss": False,
    "average_precision": True,
    "one_error": False,
    "coverage": False,
}
#: The measure by which the setting of a method is chosen.
TUNED_BY = "hamming_loss"
#: At most so often may a test, or one of a family of them, find a difference where there is none.
SIGNIFICANT = 0.05
BOLD = (
    "Bold: the best, and methods that a paired t-test (two-tailed, 95 %) cannot distinguish from "
    "it. Folds are its units, with the correction of Nadeau and Bengio; p-values are corrected by "
    "Holm's method over all tests of the table."
)


@dataclass(frozen=True)
class Method:
    """A method, the settings that are tried, and those that are tried for a first look."""

    title: str
    build: Callable[..., Any]
    settings: Sequence[Values] = ({},)
    quick: Sequence[Values] | None = None

    def settings_at(self, quick: bool) -> Sequence[Values]:
        """Return the settings to try."""
        return self.quick if quick and self.quick is not None else self.settings

    def model(self, setting: Values, seed: int) -> Any:
        """Build the estimator, unfitted, with one of the settings."""
        return seeded(self.build(**setting), seed)


def seeded(model: Any, seed: int) -> Any:
    """Give an estimator and its steps a seed, wherever something is random."""
    names = [name for name in model.get_params() if name.rpartition("__")[2] == "random_state"]
    return model.set_params(**dict.fromkeys(names, seed))


def grid(**values: Sequence[Any]) -> list[Values]:
    """Return all combinations of values."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def of_distances(kind: Callable[..., Any], unit_length: bool = False, **setting: Any) -> Any:
    """Build a method that measures distances between instances, on features from zero to one.

    Whether instances are brought to length one as well is a setting: the paper does not say how
    it scaled features, and these methods depend on it.
    """
    model = kind(scaling=None, **setting)
    length = [("length", OnInstances(Normalizer()))] if unit_length else []
    return BagPipeline([("scale", OnInstances(MinMaxScaler())), *length, ("model", model)])


def network(**setting: Any) -> Any:
    """Build unbag's network; torch is imported only now."""
    from unbag.torch import ORNetwork

    return ORNetwork(**setting)


RATIOS = [0.2, 0.4, 0.6, 0.8, 1.0]
NAMES_OF_FAST = (
    "scaling", "n_dimensions", "norm_bound", "n_concepts", "learning_rate", "decay", "divisor",
)  # fmt: skip
#: Twelve of the settings that were published for MIMLfast, drawn at random.
OF_FAST = [
    {"n_epochs": 10, **dict(zip(NAMES_OF_FAST, drawn, strict=True))}
    for drawn in (
        ("minmax", 200, 5.0, 15, 0.001, 1e-06, 0.1),
        ("standard", 200, 1.0, 15, 0.0005, 1e-06, 0.1),
        ("standard", 100, 5.0, 5, 0.0005, 1e-05, 100.0),
        ("standard", 50, 1.0, 15, 0.0005, 1e-06, 0.03),
        ("standard", 50, 1.0, 5, 0.005, 1e-06, 100.0),
        ("minmax", 200, 10.0, 5, 0.0001, 1e-05, 0.3),
        ("minmax", 100, 1.0, 5, 0.0001, 1e-06, 1000.0),
        ("minmax", 200, 10.0, 5, 0.0001, 1e-06, 3.0),
        ("standard", 50, 5.0, 5, 0.005, 1e-06, 3.0),
        ("minmax", 200, 10.0, 10, 0.0001, 1e-06, 100.0),
        ("standard", 50, 5.0, 10, 0.0001, 1e-05, 0.1),
        ("standard", 200, 10.0, 10, 0.0001, 1e-05, 30.0),
    )
]  # fmt: skip

#: Methods by name. Those with probabilities predict what is more probable than not, as users get
#: it, in place of the paper's own rule.
METHODS = {
    "mlr": Method("MLR", partial(MLR, threshold=0.5)),
    "unbag": Method("MLR, unbag's default", ORLogisticRegression),
    "network": Method("network, unbag's default", partial(network, threshold=0.5)),
    "sim": Method(
        "SIM",
        SIM,
        grid(alpha=[10.0**power for power in range(-9, 2)]),
        grid(alpha=[1e-3, 1e-2]),
    ),
    "mimlfast": Method("MIMLfast", MIMLFast, OF_FAST, grid(n_epochs=[10, 30])),
    "lsbcmm": Method(
        "LSB-CMM",
        partial(LSBCMM, threshold=0.5),
        grid(variance=[10.0**power for power in range(-2, 6)], scaling=["standard"]),
        grid(variance=[10.0]),
    ),
    "mimlsvm": Method(
        "MIMLSVM",
        partial(of_distances, MIMLSVM, C=1.0),
        grid(gamma=[0.1, 0.2, 0.4, 0.8], ratio=RATIOS)[::2],
        grid(gamma=[0.2], ratio=[0.6, 1.0]),
    ),
    "mimlnn": Method(
        "MIMLNN",
        partial(of_distances, MIMLNN),
        grid(alpha=[0.01, 0.1, 1.0, 10.0], ratio=RATIOS)[::2],
        grid(alpha=[1.0, 10.0], ratio=[1.0]),
    ),
    "slr": Method("SLR", partial(SLR, threshold=0.5)),
    "dummy": Method("dummy", DummyInstances),
    "dummy-bags": Method("dummy, bags alone", DummyBags),
}
#: The methods that are compared by default: on all tables, and on those with labels of instances.
ALWAYS = ("mlr", "unbag", "sim", "mimlfast", "lsbcmm", "mimlsvm", "mimlnn", "dummy-bags")
WITH_INSTANCE_LABELS = ("slr", "dummy")
#: Outside the comparison: they see instance labels, or nothing.
BOUNDS = ("slr", "dummy", "dummy-bags")


@dataclass(frozen=True)
class Table:
    """A table for people (header, and body in Markdown) and the records behind it, one per figure.

    All records have the same keys. The name is that of its files. Notes say how it was made.
    """

    name: str
    title: str
    header: list[str]
    body: list[list[str]]
    records: list[Values]
    notes: list[str] = field(default_factory=list)

    def to_markdown(self) -> str:
        """Write the table, its title above and its notes below."""
        rows = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.body]
        table = "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)
        return "\n\n".join([f"### {self.title}", table, *self.notes]) + "\n"

    def to_csv(self) -> str:
        """Write the records, numbers in full."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return text.getvalue()


def compare(
    path: str | Path,
    roles: Roles | None = None,
    *,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int = 1,
    out: str | Path = "results",
    progress: Callable[[int, int], object] | None = None,
) -> Table:
    """Compare methods on a table, and write the figures to the folder ``compare`` in `out`."""
    n_jobs = job_count(n_jobs)
    path = Path(path).resolve()
    check(
        roles is None or roles.known is None,
        "The methods that are compared learn from labels of bags alone: leave out "
        f"{argument('known')}, or pass labels to compare with by {argument('instance_labels')}.",
    )
    table = read(path, roles)
    labels = table.labels
    if labels is None:
        raise DataError(f"{path} has no labels to fit to: name their column.")
    if methods is None:
        more = () if table.bags.instance_labels is None else WITH_INSTANCE_LABELS
        methods = [name for name in METHODS if name in ALWAYS or name in more]
    for name in methods:
        check(name in METHODS, f"Unknown method {name!r}; there are {', '.join(METHODS)}.")
    if "network" in methods:
        require("torch")
    n_folds = 3 if quick else 10
    check(
        len(table.bags) >= n_folds,
        f"{path} has only {len(table.bags)} bags: {n_folds} folds need at least {n_folds}.",
    )
    folder = Path(out) / "compare"
    made = [folder / name for name in ("compare.md", "compare.csv", "about.json")]
    second = [] if table.roles.label_table is None else [table.roles.label_table]
    check_outputs([], [path, *second], in_folders=made)
    # Before the hours of work that would be lost if it cannot be made.
    make_folder(folder)
    settings = {name: METHODS[name].settings_at(quick) for name in methods}
    measure = partial(measured, table.bags, labels, settings, n_folds, seed)
    found = cross_validated(measure, settings, n_folds, n_jobs, progress)
    records = with_bold(
        [
            {"data": path.name, **record}
            for measure in HIGHER_IS_BETTER
            for record in measure_records(measure, found, settings, quick)
        ]
    )
    result = Table(
        "compare",
        f"{path.name}: methods compared (%)",
        *arranged(records, [METHODS[name].title for name in methods]),
        records,
        [
            "Accuracies and average precision are better high, the others low. Each method is at "
            "the setting of its best Hamming loss on these same folds, which flatters methods of "
            f"many settings. {BOLD} {n_folds} folds; seed {seed}."
        ],
    )
    about = {
        "data": str(path), "level": "quick" if quick else "standard", "seed": seed,
        "tables": ["compare"], **versions(), "machine": describe_machine(),
    }  # fmt: skip
    write_text(folder / "compare.md", result.to_markdown())
    write_text(folder / "compare.csv", result.to_csv())
    write_text(folder / "about.json", json.dumps(about, indent=2) + "\n")
    return result


#: One method, one of its settings by its place, and one fold.
Trial = tuple[str, int, int]


def cross_validated(
    measure: Callable[[Trial], dict[str, float]],
    settings: Mapping[str, Sequence[Values]],
    n_folds: int,
    n_jobs: int,
    progress: Callable[[int, int], object] | None,
) -> dict[str, tuple[Values, dict[str, np.ndarray]]]:
    """Return the best setting of each method, after the fact, and its measures on the folds."""
    trials = [
        (name, place, fold)
        for name, tried in settings.items()
        for place in range(len(tried))
        for fold in range(n_folds)
    ]
    done: dict[Trial, dict[str, float]] = {}
    for trial, measures in completed(measure, trials, min(n_jobs, len(trials))):
        done[trial] = measures
        if progress is not None:
            progress(len(done), len(trials))
    found = {}
    for name, tried in settings.items():
        by_setting = [
            [done[name, place, fold] for fold in range(n_folds)] for place in range(len(tried))
        ]
        losses = [np.mean([each[TUNED_BY] for each in folds]) for folds in by_setting]
        folds = by_setting[int(np.argmin(losses))]
        measures = {name: np.array([each[name] for each in folds]) for name in folds[0]}
        found[name] = tried[int(np.argmin(losses))], measures
    return found


def measured(
    bags: Bags,
    labels: LabelSets,
    settings: Mapping[str, Sequence[Values]],
    n_folds: int,
    seed: int,
    trial: Trial,
) -> dict[str, float]:
    """Fit to the training bags of a fold; return measures of its test bags in percent."""
    name, place, fold = trial
    folds = KFold(n_folds, shuffle=True, random_state=seed)
    train, test = list(folds.split(range(len(bags))))[fold]
    model = METHODS[name].model(settings[name][place], seed)
    # An interrupted fit is no result, and that a fit ends at its last iteration is no fault here.
    with one_blas_thread(), warnings.catch_warnings(), interruptions_raised():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = all_measures(model.fit(bags[train], labels[train]), bags[test], labels[test])
    return {measure: 100.0 * float(value) for measure, value in found.items()}


def measure_records(
    measure: str,
    found: Mapping[str, tuple[Values, Mapping[str, np.ndarray]]],
    settings: Mapping[str, Sequence[Values]],
    quick: bool,
) -> list[Values]:
    """Return a record for each method that has a measure; in a first look nothing is tested."""
    scores = {name: of[measure] for name, (_, of) in found.items() if measure in of}
    competing = {} if quick else {name: scores[name] for name in scores if name not in BOUNDS}
    sign = 1 if HIGHER_IS_BETTER[measure] else -1
    best = max(competing, key=lambda name: sign * competing[name].mean(), default=None)
    return [
        {
            "method": METHODS[name].title, "measure": measure, "ours": float(values.mean()),
            "std": float(values.std(ddof=1)),
            "p_value": paired_p_value(values, scores[best])
            if best is not None and name in competing and name != best else None,
            "p_holm": None, "bold": name == best,
            "settings_tried": len(settings[name]), "setting": found[name][0],
        }
        for name, values in scores.items()
    ]  # fmt: skip


def arranged(records: list[Values], titles: list[str]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table: a method in each row, a measure in each column."""
    measures = list(dict.fromkeys(record["measure"] for record in records))
    cells = {
        (record["method"], record["measure"]): f"{record['ours']:.1f} ± {record['std']:.1f}"
        for record in records
    }
    for record in records:
        if record["bold"]:
            place = record["method"], record["measure"]
            cells[place] = f"**{cells[place]}**"
    header = ["", *(words(measure) for measure in measures)]
    return header, [
        [title, *(cells.get((title, each), "") for each in measures)] for title in titles
    ]


def words(measure: str) -> str:
    """Return the name of a measure in words."""
    return measure.replace("_", " ").replace("hamming", "Hamming")


def paired_p_value(some: ArrayLike, others: ArrayLike) -> float:
    """Return the p-value of a paired t-test, two-tailed, of measures of the same folds.

    Folds are the units; several figures of a fold count as their mean. Training sets of a
    cross-validation overlap, so the variance is corrected as Nadeau and Bengio do: by
    1/n + 1/(n - 1) in place of 1/n, for n folds. Differences without spread need no test: 1
    if they are zero, else 0.

    Examples
    --------
    >>> round(paired_p_value([70, 72, 71], [69, 69, 69]), 3)
    0.16
    """
    differences = np.asarray(some, dtype=float) - np.asarray(others, dtype=float)
    differences = differences.reshape(len(differences), -1).mean(axis=1)
    if np.allclose(differences, differences[0]):
        return float(np.allclose(differences, 0))
    n_folds = len(differences)
    error = np.sqrt(fold_variance_factor(n_folds) * differences.var(ddof=1))
    return float(2 * t.sf(abs(differences.mean()) / error, n_folds - 1))


def fold_variance_factor(n_folds: int) -> float:
    """Return the factor from the variance of folds to that of their mean (Nadeau and Bengio)."""
    return 1 / n_folds + 1 / (n_folds - 1)


def holm(p_values: ArrayLike) -> np.ndarray:
    """Correct the p-values of a family of tests, by Holm's method.

    Where those of at most 0.05 are believed, the chance that any of them is wrong is at most 0.05.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values)
    steps = np.arange(len(p_values), 0, -1) * p_values[order]
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def with_bold(records: Sequence[Values]) -> list[Values]:
    """Make bold the methods that the tests of a whole table cannot distinguish from the best."""
    family = [each["p_value"] for each in records if each["p_value"] is not None]
    corrected = iter(holm(family).tolist())
    found = []
    for record in records:
        p_holm = None if record["p_value"] is None else next(corrected)
        is_tied = p_holm is not None and p_holm > SIGNIFICANT
        found.append({**record, "p_holm": p_holm, "bold": record["bold"] or is_tied})
    return found
