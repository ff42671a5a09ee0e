"""A table of predictions, made by any program on the folds of the benchmark, and what it is worth.

One row for each instance: ``data`` (and ``draw``, where a data set is drawn several times),
``instance``, and what the program says of it: ``label``, ``label_given_tags``, or one column of
probabilities for each class.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
from pyarrow import csv, parquet

from unbag.bags import Bags
from unbag.model_selection.methods import n_folds_at
from unbag.model_selection.tables import Table

from . import datasets
from .benchmark import N_DRAWS, Answers, draws_of, fold_of_bags, table_of, written
from .data import load
from .unit import Values

#: Columns that are not probabilities.
TEXTS = ("data", "label", "label_given_tags")
COLUMNS = (*TEXTS, "draw", "fold", "bag", "instance")


def benchmark_predictions(
    path: str | Path,
    data: list[str] | None = None,
    *,
    level: str = "standard",
    out: str | Path = "results",
) -> Table:
    """Measure a table of predictions.

    Parameters
    ----------
    path : path
        A CSV or Parquet file.
    data : list of str, optional
        The data set that all rows are of, where the table has no column ``data``; else some of
        those that it has.
    level : {"quick", "standard", "full"}
        Whose folds were used, as in `unbag_reproduce.benchmark.benchmark_estimator`.
    out : path
        The table of results goes to ``out/benchmark``.
    """
    path = Path(path)
    table = read_predictions(path)
    if "data" not in table.column_names:
        if data is None or len(data) != 1:
            raise ValueError(f"{path} has no column data: name its data set with --data.")
        table = table.append_column("data", pa.array([data[0]] * len(table)))
    names = list(dict.fromkeys(table["data"].to_pylist()))
    for name in names:
        if name not in N_DRAWS:
            raise ValueError(
                f"{path}, column data: the benchmark has no data set {name!r}; it has "
                f"{', '.join(N_DRAWS)}."
            )
        if not datasets.is_available(name):
            raise ValueError(
                f"{path}: {name} is not on this machine, so its predictions cannot be measured."
            )
    found: dict[tuple[str, int, int], Values] = {}
    for name in names if data is None else [name for name in names if name in data]:
        rows = table.filter(pa.compute.equal(table["data"], name))
        found |= measured(path, rows, name, level)
    if not found:
        raise ValueError(f"{path} has no predictions for {', '.join(data or ())}.")
    few = [
        name
        for name in dict.fromkeys(name for name, _, _ in found)
        if len({draw for data_, draw, _ in found if data_ == name}) < len(draws_of(name, level))
    ]
    note = f" Not all draws of {', '.join(few)} are predicted." if few else ""
    return written(table_of(path.stem, found, note), out)


def read_predictions(path: Path) -> pa.Table:
    """Read a CSV or Parquet file, and check that it has the columns that are needed."""
    if not path.exists():
        raise ValueError(f"{path} does not exist.")
    try:
        if path.suffix == ".parquet":
            table = parquet.read_table(path)
        else:
            texts = csv.ConvertOptions(column_types=dict.fromkeys(TEXTS, pa.string()))
            table = csv.read_csv(path, convert_options=texts)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if "instance" not in table.column_names:
        raise ValueError(f"{path} has no column instance: the number of an instance in its file.")
    if not len(table):
        raise ValueError(f"{path} has no rows.")
    return table


def measured(
    path: Path, rows: pa.Table, name: str, level: str
) -> dict[tuple[str, int, int], Values]:
    """Measure the rows of one data set, draw by draw and fold by fold."""
    column = {each: rows[each].to_numpy(zero_copy_only=False) for each in rows.column_names}
    all_draws = draws_of(name, level)
    if "draw" not in column and len(all_draws) > 1:
        raise ValueError(f"{path} has no column draw, but {name} has {len(all_draws)} draws.")
    draws = column.get("draw", np.zeros(len(rows), dtype=int))
    if strange := sorted(set(draws.tolist()) - set(all_draws)):
        raise ValueError(
            f"{path}: {name} has draws 0 to {all_draws[-1]}, and the table has draw {strange[0]}."
        )
    found = {}
    for draw in sorted(set(draws.tolist())):
        of_draw = {each: values[draws == draw] for each, values in column.items()}
        where = f"{path}, {name}" + (f", draw {draw}" if len(all_draws) > 1 else "")
        bags, y = load(name, int(draw))
        folds = fold_of_bags(len(bags), n_folds_at(level))
        of_draw = in_order(where, of_draw, bags, folds)
        answers = answers_in(where, of_draw, bags, y, datasets.load(name).class_names)
        of_instance = np.repeat(folds, bags.sizes)
        for place in range(n_folds_at(level)):
            here = of_instance == place
            found[name, int(draw), place] = answers.of(here).measures(bags.instance_labels[here])
    return found


def in_order(
    where: str, column: dict[str, np.ndarray], bags: Bags, folds: np.ndarray
) -> dict[str, np.ndarray]:
    """Return columns in the order of the instances, each of which must be there once."""
    instance = column["instance"]
    n_instances, bag_of = bags.n_instances, np.repeat(np.arange(len(bags)), bags.sizes)
    if (
        not np.issubdtype(instance.dtype, np.integer)
        or not ((instance >= 0) & (instance < n_instances)).all()
    ):
        raise ValueError(f"{where}: instances are numbers from 0 to {n_instances - 1}.")
    counts = np.bincount(instance, minlength=n_instances)
    if (counts == 0).any():
        first = int(np.argmin(counts))
        raise ValueError(
            f"{where}: {int((counts == 0).sum())} of {n_instances} instances have no row; the "
            f"first is instance {first} of bag {bag_of[first]}, fold {folds[bag_of[first]]}."
        )
    if (counts > 1).any():
        raise ValueError(f"{where}: instance {int(np.argmax(counts))} has several rows.")
    order = np.argsort(instance)
    column = {each: values[order] for each, values in column.items()}
    for entry, right in (("bag", bag_of), ("fold", folds[bag_of])):
        if entry in column and (wrong := np.flatnonzero(column[entry] != right)).size:
            raise ValueError(
                f"{where}: instance {wrong[0]} is in {entry} {right[wrong[0]]}, not "
                f"{column[entry][wrong[0]]}; the folds are those that --folds writes."
            )
    return column


def answers_in(
    where: str, column: dict[str, np.ndarray], bags: Bags, y: np.ndarray, class_names: np.ndarray
) -> Answers:
    """Return what the columns of a table say of every instance."""
    names = class_names.tolist()
    # Of other data sets in the same table, columns are empty here.
    others = [
        each for each, values in column.items() if each not in COLUMNS and not is_empty(values)
    ]
    proba = None
    if others:
        if wrong := [each for each in others if each not in names]:
            raise ValueError(
                f"{where}: column {wrong[0]!r} is no class; the classes are {', '.join(names)}."
            )
        if missing := [each for each in names if each not in others]:
            raise ValueError(f"{where}: there is no column of probabilities for {missing[0]!r}.")
        try:
            proba = np.column_stack([column[each] for each in names]).astype(float)
        except ValueError:
            raise ValueError(f"{where}: probabilities must be numbers.") from None
        sums = proba.sum(axis=1)
        if not ((proba >= 0).all() and np.allclose(sums, 1.0, atol=1e-4)):
            row = int(np.argmax(~((proba >= 0).all(axis=1) & np.isclose(sums, 1.0, atol=1e-4))))
            raise ValueError(
                f"{where}: the probabilities of instance {row} are no probabilities; they must not "
                "be negative, and must sum to 1."
            )

    def columns(entry):
        if entry not in column or is_empty(column[entry]):
            return None
        places = {name: place for place, name in enumerate(names)}
        texts = [str(each) for each in column[entry].tolist()]
        if wrong := [row for row, each in enumerate(texts) if each not in places]:
            raise ValueError(
                f"{where}, column {entry}: instance {wrong[0]} has {texts[wrong[0]]!r}, which is "
                f"no class; the classes are {', '.join(names)}."
            )
        return np.array([places[each] for each in texts])

    labels, given, given_proba = columns("label"), columns("label_given_tags"), None
    if proba is not None:
        labels = proba.argmax(axis=1) if labels is None else labels
        # Where the tags are known, only their classes can be.
        allowed = np.where(np.repeat(y == 1, bags.sizes, axis=0), proba + 1e-300, 0.0)
        given_proba = allowed / allowed.sum(axis=1, keepdims=True)
        given = given_proba.argmax(axis=1) if given is None else given
    if labels is None:
        raise ValueError(
            f"{where}: there is neither a column label nor one of probabilities for each class."
        )
    return Answers(labels, given, proba, given_proba)


def is_empty(values: np.ndarray) -> bool:
    """Return whether a column has no value at all."""
    return all(each is None or each != each for each in values.tolist())
