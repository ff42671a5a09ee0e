"""A benchmark for anyone's method: fixed folds, on data that most people have.

A method is an estimator under the contract of `unbag.estimators`, or a table of what it predicts.
Of every fold, what is measured is how many instances of its bags get their true label, without and
with the labels of the bags, and how far the probabilities are from how often they are right.
"""

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console

from unbag._files import make_folder, write_text, written_together
from unbag.bags import Bags
from unbag.model_selection.methods import n_folds_at
from unbag.model_selection.scorers import innermost_model
from unbag.model_selection.statistics import spread
from unbag.model_selection.tables import Table, comparison_table, with_deviation
from unbag.model_selection.work import run

from . import datasets
from .calibration import calibration_error, reliability
from .data import load, load_fold, split
from .datasets.made import MADE
from .ledger import Ledger
from .unit import Unit, Values

NAME = "benchmark"
#: Of the folds, the same for everybody.
SEED = 0
#: The data sets, and how often each is drawn: once, where it is not drawn at random.
N_DRAWS = {
    "hja-union": 1, "msrcv2": 1, "letter-carroll": 5, "letter-frost": 5, "digits": 3,
    **dict.fromkeys(MADE, 3),
}  # fmt: skip
#: What is measured, in the words of the table.
ACCURACIES = {"new": "new bags", "given": "given the tags"}
CALIBRATIONS = {
    "new_bins": "calibration error, new bags", "given_bins": "calibration error, given the tags",
}  # fmt: skip


@dataclass(frozen=True)
class Answers:
    """What a method says of the instances of some bags, by the columns of their label sets.

    Parameters
    ----------
    labels : ndarray of int of shape (n_instances,)
        Without the labels of their bags.
    given : ndarray of int of shape (n_instances,), optional
        With the labels of their bags.
    proba, given_proba : ndarray of shape (n_instances, n_columns), optional
        Probabilities of the classes, without and with the labels of their bags.
    """

    labels: np.ndarray
    given: np.ndarray | None = None
    proba: np.ndarray | None = None
    given_proba: np.ndarray | None = None

    def of(self, here: np.ndarray) -> "Answers":
        """Return the answers for some of the instances."""
        given, proba, given_proba = (
            None if each is None else each[here]
            for each in (self.given, self.proba, self.given_proba)
        )
        return Answers(self.labels[here], given, proba, given_proba)

    def measures(self, truth: np.ndarray) -> Values:
        """Compare the answers with the true labels.

        Returns
        -------
        dict
            ``new`` and ``given``: the share of instances that are labelled rightly, in percent;
            ``new_bins`` and ``given_bins``: as `reliability` has them. What the method does not
            say is not there.
        """
        found: Values = {"new": 100.0 * float((self.labels == truth).mean())}
        if self.given is not None:
            found["given"] = 100.0 * float((self.given == truth).mean())
        for key, proba in (("new_bins", self.proba), ("given_bins", self.given_proba)):
            if proba is not None:
                found[key] = reliability(proba, proba.argmax(axis=1) == truth)
        return found


# Estimators.


def find_factory(name: str) -> Callable[[], Any]:
    """Return what builds an estimator.

    Parameters
    ----------
    name : str
        ``module:factory``, where the module lies in the working folder or is installed, and the
        factory is a class or a function that can be called without arguments.
    """
    module_name, _, factory_name = name.partition(":")
    if not (module_name and factory_name):
        raise ValueError(f"--estimator is {name!r}: give module:factory, such as mine:Model.")
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise ValueError(
            f"--estimator {name}: the module {module_name} cannot be imported: {error}."
        ) from error
    factory = getattr(module, factory_name, None)
    if not callable(factory):
        raise ValueError(
            f"--estimator {name}: {module_name} has no class or function of this name."
        )
    return factory


def build(name: str) -> Any:
    """Build an estimator, and check that it can take part."""
    factory = find_factory(name)
    try:
        model = factory()
    except TypeError as error:
        raise ValueError(f"--estimator {name} cannot be called without arguments: {error}.") from (
            error
        )
    needed = [each for each in ("fit", "predict_instances") if not hasattr(model, each)]
    # A pipeline of scikit-learn has what its last step has.
    if needed and not hasattr(model, "steps") and not hasattr(model, "best_estimator_"):
        raise ValueError(
            f"--estimator {name} gives a {type(model).__name__}, which has no {needed[0]}: see "
            "docs/howto/benchmark.md for what an estimator must have."
        )
    return model


def source_of(name: str) -> str:
    """Return a digest of the file that an estimator is written in, so that a change is noticed."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(find_factory(name)))
    except TypeError:
        file = None
    return "" if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12]


def fold(unit: Unit) -> Values:
    """Fit an estimator to the training bags of a fold, and measure it on the others.

    Neither sees the true labels of instances.
    """
    train, y, test, y_test = load_fold(unit)
    name = unit.setting["estimator"]
    model = build(name)
    where = f"{unit.data}, draw {unit.draw}, fold {unit.fold}"
    start = perf_counter()
    try:
        fitted = model.fit(without_labels(train), y)
        seconds = perf_counter() - start
        found = answers_of(fitted, without_labels(test), y_test)
    except Exception as error:
        raise ValueError(f"{name} fails on {where}: {type(error).__name__}: {error}") from error
    return {**found.measures(test.instance_labels), "seconds": seconds}


def without_labels(bags: Bags) -> Bags:
    """Return bags that do not know what their instances are."""
    return Bags(bags.X, bags.offsets, feature_names=bags.feature_names)


def answers_of(estimator: Any, bags: Bags, y: np.ndarray) -> Answers:
    """Ask a fitted estimator all that it can answer."""
    model, X = innermost_model(estimator, bags)
    n_classes = y.shape[1]
    classes = np.asarray(getattr(model, "classes_", range(n_classes)))

    def asked(method, *of):
        return getattr(model, method)(*of) if hasattr(model, method) else None

    def columns(labels):
        # What belongs to the background has no column.
        found = [-1 if each is None else each for each in np.asarray(labels).tolist()]
        if len(found) != bags.n_instances:
            raise ValueError(f"it has {len(found)} labels for {bags.n_instances} instances")
        if wrong := [each for each in found if each not in range(-1, n_classes)]:
            raise ValueError(
                f"it labels an instance {wrong[0]!r}; the classes are the columns of y, 0 to "
                f"{n_classes - 1}"
            )
        return np.array(found, dtype=int)

    def probabilities(proba):
        if proba is None:
            return None
        proba = np.asarray(proba)
        n_columns = proba.shape[1] if proba.ndim == 2 else 0
        if len(proba) != bags.n_instances or n_columns - len(classes) not in (0, 1):
            raise ValueError(
                f"its probabilities have shape {proba.shape}, for {bags.n_instances} instances and "
                f"{len(classes)} classes"
            )
        # One more column is the background, and comes last.
        of_columns = np.zeros((len(proba), n_classes + 1))
        of_columns[:, np.append(classes, n_classes)[:n_columns]] = proba
        return of_columns

    return Answers(
        columns(model.predict_instances(X)),
        columns(model.annotate(X, y)) if hasattr(model, "annotate") else None,
        probabilities(asked("predict_instances_proba", X)),
        probabilities(asked("annotate_proba", X, y)),
    )


# Units and tables.


def draws_of(name: str, level: str) -> range:
    """Return which draws of a data set are taken."""
    return range(1 if level == "quick" else N_DRAWS[name])


def units_of(estimator: str, names: list[str], level: str) -> list[Unit]:
    """List the fits of an estimator: one for each fold of each draw."""
    n_folds, source = n_folds_at(level), {"source": source_of(estimator)}
    return [
        Unit(
            fold, name, draw, "estimator", {"estimator": estimator}, source, fold=place,
            n_folds=n_folds, seed=SEED,
        )
        for name in names
        for draw in draws_of(name, level)
        for place in range(n_folds)
    ]  # fmt: skip


def chosen_data(data: list[str] | None, console: Console | None = None) -> list[str]:
    """Return the data sets that are on this machine, with a line about each that is not."""
    for name in data or ():
        if name not in N_DRAWS:
            raise ValueError(
                f"The benchmark has no data set {name!r}; it has {', '.join(N_DRAWS)}."
            )
    names = [name for name in N_DRAWS if data is None or name in data]
    found = [name for name in names if datasets.is_available(name)]
    for name in names:
        if name not in found and console is not None:
            console.print(f"[yellow]{name} is not on this machine: left out.[/yellow]")
    if not found:
        raise ValueError("None of these data sets is on this machine: there is nothing to do.")
    return found


def benchmark_estimator(
    estimator: str,
    data: list[str] | None = None,
    *,
    level: str = "standard",
    n_jobs: int = 1,
    out: str | Path = "results",
    console: Console | None = None,
) -> Table:
    """Run an estimator through the folds, or go on with a run that was interrupted.

    Parameters
    ----------
    estimator : str
        As in `find_factory`.
    data : list of str, optional
        Some of the data sets of `N_DRAWS`; by default all that are on this machine.
    level : {"quick", "standard", "full"}
        "quick" takes three folds of one draw of each data set; the others take ten of all draws.
    n_jobs : int
        Number of processes.
    out : path
        The ledger of finished fits, and the table, go to ``out/benchmark``.
    console : rich Console, optional
        Where to show progress.
    """
    build(estimator)
    units = units_of(estimator, chosen_data(data, console), level)
    ledger = Ledger(out, NAME, use_stale=False)
    with ledger.writing():
        run(units, ledger, n_jobs=n_jobs, console=console, title=NAME)
    found = {(unit.data, unit.draw, unit.fold): ledger[unit] for unit in units}
    return written(table_of(estimator, found), out)


def table_of(row: str, found: Mapping[tuple[str, int, int], Values], notes: str = "") -> Table:
    """Make a table of what was measured, one line for each measure.

    Parameters
    ----------
    row : str
        What the method is called.
    found : dict of (data set, draw, fold) to dict
        As `Answers.measures` returns it.
    notes : str
        What else to say below the table.
    """
    records = []
    for name in dict.fromkeys(data for data, _, _ in found):
        draws = sorted({draw for data, draw, _ in found if data == name})
        folds = sorted({fold for data, _, fold in found if data == name})
        of_data = [[found[name, draw, fold] for draw in draws] for fold in folds]
        common = {"method": row, "data": name, "n_draws": len(draws), "n_folds": len(folds)}
        measured = set.intersection(*(set(each) for of_fold in of_data for each in of_fold))
        for key, title in ACCURACIES.items():
            if key in measured:
                values = [[each[key] for each in of_fold] for of_fold in of_data]
                records.append({**common, "measure": title, **spread(values)})
        for key, title in CALIBRATIONS.items():
            if key in measured:
                errors = [
                    calibration_error([of_fold[place][key] for of_fold in of_data])
                    for place in range(len(draws))
                ]
                deviation = float(np.std(errors, ddof=1)) if len(errors) > 1 else None
                records.append(
                    {
                        **common, "measure": title, "ours": float(np.mean(errors)), "std": None,
                        "draw_std": deviation,
                    }
                )  # fmt: skip
    return comparison_table(
        f"{NAME}-{''.join(c if c.isalnum() else '-' for c in row)}",
        f"{row}: instances labelled rightly (%), and calibration error (points)",
        records,
        [
            "± is the deviation over the folds of one draw; for the calibration error, which takes "
            "all folds of a draw together, that over draws. New bags: the labels of a test bag are "
            f"not known. Given the tags: they are. {folds_note(records)}{notes}"
        ],
        row=lambda record: f"{record['method']}, {record['measure']}",
        column="data",
        write=lambda record: with_deviation(
            record["ours"], record["std"] if record["std"] is not None else record["draw_std"]
        ),
    )


def folds_note(records: list[Values]) -> str:
    """Say how many folds and draws figures rest on."""
    counts = {each["data"]: f"{each['n_folds']} x {each['n_draws']}" for each in records}
    return "Folds x draws: " + ", ".join(f"{name} {each}" for name, each in counts.items()) + "."


def written(table: Table, out: str | Path) -> Table:
    """Write a table as Markdown and CSV to the folder of the benchmark, and return it."""
    with written_together():
        folder = Path(out) / NAME
        make_folder(folder)
        write_text(folder / f"{table.name}.md", table.to_markdown())
        write_text(folder / f"{table.name}.csv", table.to_csv())
    return table


# Folds for other programs.


def fold_of_bags(n_bags: int, n_folds: int) -> np.ndarray:
    """Return the fold in which each bag is a test bag."""
    folds = np.empty(n_bags, dtype=int)
    for place in range(n_folds):
        folds[split(n_bags, n_folds, place, SEED)[1]] = place
    return folds


def write_folds(
    folder: str | Path,
    data: list[str] | None = None,
    *,
    level: str = "standard",
    console: Console | None = None,
) -> list[Path]:
    """Write each draw of each data set as a CSV file, with the fold of every bag.

    Returns
    -------
    list of Path
        Files with the columns ``bag``, ``instance``, ``fold``, ``labels`` (of the bag, separated by
        ``|``) and one per feature. True labels of instances are left out.
    """
    folder, paths = Path(folder), []
    make_folder(folder)
    for name in chosen_data(data, console):
        class_names = datasets.load(name).class_names
        for draw in draws_of(name, level):
            bags, y = load(name, draw)
            folds = fold_of_bags(len(bags), n_folds_at(level))
            labels = ["|".join(class_names[row == 1]) for row in y]
            path = folder / f"{name}-{draw}.csv"
            features = [str(each).replace(",", ";") for each in bags.feature_names]
            lines = [",".join(["bag", "instance", "fold", "labels", *features])]
            for b in range(len(bags)):
                for i in range(bags.offsets[b], bags.offsets[b + 1]):
                    values = ",".join(f"{value:.17g}" for value in np.asarray(bags.X[i]).ravel())
                    lines.append(f"{b},{i},{folds[b]},{labels[b]},{values}")
            write_text(path, "\n".join(lines) + "\n")
            paths.append(path)
    return paths
