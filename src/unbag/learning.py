"""From a table to a fitted model: settings, reading for a fit, `unbag.fit`.

This is the only way. The command line, searches, and fits out of core and on clusters build models
by `Settings`, take the roles of a call by `Roles.given`, and learn from a `TrainingSet`: bags
without the truth that a table may carry, their labels, and labels of instances that were named.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone

from unbag._extras import require
from unbag._files import PathLike, check, refuse
from unbag._messages import argument, shortened
from unbag._warnings import warn_caller
from unbag.bags import Bags
from unbag.estimators import ORLogisticRegression
from unbag.estimators.contract import BagClassifier
from unbag.fitting import Rate
from unbag.frames import ColumnRoles
from unbag.io.bag_table import Progress
from unbag.io.roles import OF_LABELS, Roles
from unbag.io.table import Source, open_source
from unbag.labels import LabelSets, LabelSetsLike, Tagging, doubtful_names, rare_classes
from unbag.model_selection.folds import read_label_sets
from unbag.pipeline import BagPipeline, bag_pipeline
from unbag.validation import as_labels

if TYPE_CHECKING:
    from unbag.torch import ORNetwork

#: Tables of fewer bags are examples.
A_FEW_BAGS = 20
#: Models that have a name.
NAMES = ("linear", "network")
# Settings that a given model has itself, and those that networks do not have.
OF_NAMED_MODELS = ("alpha", "background", "missed", "false", "max_iter")
OF_LINEAR_MODELS = ("alpha", "context", "kernel", "dictionary")

Estimator = TypeVar("Estimator", bound=BagClassifier | BagPipeline)


# Settings.


@dataclass(frozen=True)
class Settings:
    """Which model is fitted, and how: see `fit`.

    A setting that the model does not have is an error.

    Examples
    --------
    >>> Settings(alpha=0.1).unfitted()
    ORLogisticRegression(alpha=0.1, background='auto')
    >>> Settings(alpha=0.1, max_iter=20).chosen()
    {'alpha': 0.1, 'max_iter': 20}
    """

    model: Any = "linear"
    alpha: float = 1.0
    background: bool | Literal["auto"] = "auto"
    missed: Rate = 0.0
    false: Rate = 0.0
    context: float = 0.0
    kernel: float | None = None
    dictionary: int = 600
    max_iter: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.model, str):
            where = "the model that fit builds: where a model is given, set it there"
            self._refuse(OF_NAMED_MODELS, where)
            if not hasattr(self.model, "get_params") or isinstance(self.model, type):
                raise ValueError(
                    f"model must be a model of this library, such as unbag.ORLogisticRegression() "
                    f"or unbag.torch.ORNetwork(), not {shortened(self.model)}."
                )
        elif self.model not in NAMES:
            names = " or ".join(map(repr, NAMES))
            raise ValueError(f"model is {self.model!r}: give {names}, or a model.")
        elif self.model == "network":
            self._refuse(OF_LINEAR_MODELS, "linear models, not of networks")
            require("torch")

    def _refuse(self, names, whose):
        """Raise an error for settings that would have no effect."""
        for name in self.chosen():
            if name in names:
                raise ValueError(f"{argument(name)} is a setting of {whose}.")

    def chosen(self) -> dict[str, Any]:
        """Return the settings that are not the usual ones, by name, but for model and seed."""
        given = [(each, getattr(self, each.name)) for each in fields(self)[1:-1]]
        # Rates may be one for each class.
        return {
            each.name: value for each, value in given if np.ndim(value) or value != each.default
        }

    def unfitted(self) -> Any:
        """Build the model, with the transformers before it that it needs."""
        own: dict[str, Any] = {"background": self.background, "missed": self.missed,
                               "false": self.false}  # fmt: skip
        if self.max_iter is not None:
            own["max_iter"] = self.max_iter
        if not isinstance(self.model, str):
            model: Any = clone(self.model)
        elif self.model == "linear":
            model = ORLogisticRegression(self.alpha, **own)
        else:
            from unbag.torch import ORNetwork

            return ORNetwork(**own, random_state=self.seed)
        if self.kernel is None and self.context == 0:
            return model
        return bag_pipeline(
            model, context=self.context, kernel=self.kernel, dictionary=self.dictionary,
            random_state=self.seed,
        )  # fmt: skip


# What a fit may see.


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Bags and their labels, as a fit may see them.

    Attributes
    ----------
    bags : Bags
        Without the labels of instances that a table may carry: they are for evaluation. Or bags
        that are not in memory.
    labels : label sets, or None
        As `LabelSets` where they were read.
    instance_labels : ndarray of shape (n_instances,) or None
        Those that were named, from which a model learns too.
    roles : Roles or None
        None where bags came without a table.
    path : Path
        What messages call the table.
    """

    bags: Any
    labels: Any
    instance_labels: Any = None
    roles: Roles | None = None
    path: Path = Path("y")

    @property
    def label_sets(self) -> LabelSets:
        """The labels as `LabelSets`."""
        if isinstance(self.labels, LabelSets):
            return self.labels
        return read_label_sets(self.labels, self.bags)

    def check_learnable(self) -> "TrainingSet":
        """Raise an error where nothing can be learnt, or one label looks like several.

        Warn of names that look like one class, or like none.
        """
        check(self.labels is not None, f"{self.path} has no labels to fit to: name their column.")
        labels = self.label_sets
        check(
            self.instance_labels is not None or (labels.indicator == 1).any(),
            f"{self.path}: no bag has a label, and nothing can be learnt without: tag some bags.",
        )
        for sentence in doubtful_names(labels):
            warn_caller(f"{self.path}: {sentence}.")
        # Labels in columns of their own, and those of Python, are separated by nothing.
        if self.roles is None or self.roles.label_columns:
            return self
        names = {str(name) for name in labels.classes}
        delimiter = self.roles.delimiter or ""
        for mark in ";,/+".replace(delimiter, ""):
            several = (
                name
                for name in names
                if mark in name and names.issuperset(map(str.strip, name.split(mark)))
            )
            refuse(
                several,
                lambda name, mark=mark: (
                    f"{self.path}: the label {name!r} looks like several, separated by {mark!r} "
                    f"rather than {delimiter!r}: use {argument('delimiter', mark)}."
                ),
            )
        return self

    def fit(self, model: Any) -> Any:
        """Fit a model in place; it remembers the roles of columns. Return it."""
        # Not every model can be told of known labels.
        known = {} if self.instance_labels is None else {"instance_labels": self.instance_labels}
        model.fit(self.bags, self.labels, **known)
        self.remember(model)
        return model

    def remember(self, model: Any) -> None:
        """Let a model keep the roles of columns, for the tables to come."""
        if self.roles is not None:
            model.roles_ = self.roles.remembered()


def is_table(data: Any) -> bool:
    """Return whether data are a table, a frame or files of any kind, and not bags or arrays.

    Examples
    --------
    >>> is_table("nights.csv"), is_table(["a.csv", "b.csv"]), is_table([[[1.0], [2.0]]])
    (True, True, False)
    """
    if isinstance(data, list | tuple):
        return all(isinstance(each, str | os.PathLike) for each in data)
    has_no_columns = isinstance(data, Bags | np.ndarray) or sparse.issparse(data)
    return not has_no_columns and not hasattr(data, "offsets")


def training_set(
    data: Any, y: LabelSetsLike | None, roles: Roles | None, /, **named: Any
) -> TrainingSet:
    """Read what was given to a function that learns: a table and roles, or bags and label sets.

    Roles by name win over `roles`; with bags, there is only `instance_labels`, an array.
    """
    # An array without label sets is rather meant to be a table: then the error says what is one.
    if is_table(data) or (y is None and not isinstance(data, Bags | list | tuple)):
        if y is not None:
            raise TypeError("y is for Bags: name the column of the labels by labels=.")
        with open_table(data) as source:
            return read_source(source, Roles.given(roles, **named))
    tagging = Roles(**{name: named.pop(name) for name in OF_LABELS if name in named}).tagging
    known = named.pop("instance_labels", None)
    given = {"roles": roles, **named, "instance_labels": known if isinstance(known, str) else None}
    if strange := [name for name, value in given.items() if value is not None and np.size(value)]:
        raise TypeError(
            f"expected a DataFrame or a path, since {', '.join(strange)} name columns; got "
            f"{type(data).__name__}."
        )
    if y is None:
        raise TypeError("y is missing: give the label sets of the bags.")
    return TrainingSet(without_truth(data), read_tags(y, data, tagging), known)


def read_tags(y: LabelSetsLike, bags: Any, tagging: Tagging) -> LabelSetsLike:
    """Read the labels of bags as `tagging` says; if that is the usual, models do so themselves."""
    if tagging == Tagging():
        return y
    return LabelSets.parse(as_labels(y, bags, are_sets=True), **asdict(tagging))


def without_truth(bags: Any) -> Any:
    """Return bags without their labels of instances; what is no `Bags` has none."""
    if not isinstance(bags, Bags) or bags.instance_labels is None:
        return bags
    return Bags(bags.X, bags.offsets, bags.ids, feature_names=bags.feature_names, rows=bags.rows)


def open_table(table: Any) -> Source:
    """Open a frame, or a file, without reading its rows."""
    if isinstance(table, str | os.PathLike | list | tuple):
        return open_source(table)
    from unbag.io.frame import open_frame

    return open_frame(table)


def read_source(source: Source, roles: Roles, *, progress: Progress | None = None) -> TrainingSet:
    """Read an open table as a fit may see it.

    The `instance_labels` of roles may also be a file: a table which ``unbag annotate`` wrote and a
    person corrected.
    """
    if roles.instance_labels is None:
        data, known = source.read(roles, progress=progress), None
    else:
        from unbag.corrections import corrected_labels, without_corrected_table

        roles, corrected = without_corrected_table(roles, source.columns)
        data = source.read(roles, progress=progress)
        known = data.bags.instance_labels
        if corrected is not None:
            known = corrected_labels(corrected, data)
    return TrainingSet(without_truth(data.bags), data.labels, known, data.roles, data.path)


# From a table to a model.


class _Seeded(ColumnRoles, total=False):
    seed: int


class _NetworkSettings(_Seeded, total=False):
    background: bool | Literal["auto"]
    missed: Rate
    false: Rate
    max_iter: int | None


class _LinearSettings(_NetworkSettings, total=False):
    alpha: float


class _FeatureSettings(TypedDict, total=False):
    context: float
    kernel: float | None
    dictionary: int


class _KernelSettings(_LinearSettings, _FeatureSettings, total=False): ...


class _SeededFeatures(_Seeded, _FeatureSettings, total=False): ...


# fmt: off
@overload
def fit(table: Any, y: LabelSetsLike | None = None, *, model: Literal["linear"] | None = None,
        **settings: Unpack[_LinearSettings]) -> ORLogisticRegression: ...
@overload
def fit(table: Any, y: LabelSetsLike | None = None, *, model: Literal["linear"] | None = None,
        **settings: Unpack[_KernelSettings]) -> ORLogisticRegression | BagPipeline: ...
@overload
def fit(table: Any, y: LabelSetsLike | None = None, *, model: Literal["network"],
        **settings: Unpack[_NetworkSettings]) -> "ORNetwork": ...
@overload
def fit(table: Any, y: LabelSetsLike | None = None, *, model: Estimator,
        **settings: Unpack[_Seeded]) -> Estimator: ...
@overload
def fit(table: Any, y: LabelSetsLike | None = None, *, model: Estimator,
        **settings: Unpack[_SeededFeatures]) -> Estimator | BagPipeline: ...
# fmt: on
def fit(
    table: Any,
    y: LabelSetsLike | None = None,
    *,
    bag: str | None = None,
    labels: str | None = None,
    label_columns: str | Sequence[str] | None = None,
    unknown: str | None = None,
    label_table: PathLike | None = None,
    features: Sequence[str] | None = None,
    embedding: str | None = None,
    instance_labels: str | ArrayLike | None = None,
    instance_id: str | None = None,
    carry: Sequence[str] = (),
    delimiter: str | None = None,
    media: str | None = None,
    start: str | None = None,
    end: str | None = None,
    missing_values: str | None = None,
    untagged: str | None = None,
    none: str | Sequence[str] = (),
    fold_case: bool | None = None,
    rename: Mapping[str, str] | PathLike | None = None,
    roles: Roles | None = None,
    model: Any = None,
    alpha: float = 1.0,
    background: bool | Literal["auto"] = "auto",
    missed: Rate = 0.0,
    false: Rate = 0.0,
    context: float = 0.0,
    kernel: float | None = None,
    dictionary: int = 600,
    max_iter: int | None = None,
    seed: int = 0,
) -> Any:
    """Learn to label the instances of a table from the labels of their bags.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, polars.LazyFrame, pyarrow.Table, str, path or Bags
        One row per instance, in any order; or one per bag, with lists. A path is that of a file of
        any format that `unbag.io.read` takes, of a folder, or a pattern; a list of them is one
        table. Or bags, as estimators take them.
    y : label sets
        Only with bags, as in :meth:`unbag.ORLogisticRegression.fit`.
    bag, labels, label_columns, unknown, label_table, features, embedding, instance_id, carry
        Which column is what, as in :class:`unbag.io.Roles`.
    instance_labels : str, optional
        The column of known labels of instances, from which the model learns too; or a table that
        ``unbag annotate`` wrote and a person corrected. With bags, an array of shape
        (n_instances,), with None where a label is not known.
    delimiter, media, start, end, missing_values
        As in :class:`unbag.io.Roles`.
    untagged : {"refuse", "unknown", "absent"}, optional
        What it means that a bag has nothing in place of labels (an empty cell, NaN, None): nobody
        looked (unknown), or somebody looked and found none (absent). By default it is an error.
    none : str or list of str, optional
        Words in place of labels that mean that a bag has none of them, such as ``"none"``.
    fold_case : bool, optional
        Whether labels that differ in upper and lower case are one.
    rename : dict of str to str, or path, optional
        New names of labels, by their old ones; or a table with columns ``old`` and ``new``.
    roles : Roles, optional
        Roles of columns; what is named beside it wins.
    model : "linear", "network" or estimator, optional
        Any model of this library, of which a clone is fitted; or the name of one: by default an
        `ORLogisticRegression` with the next settings, or an `unbag.torch.ORNetwork`, which needs
        torch, with those that it has.
    alpha, background, missed, false
        As in :class:`unbag.ORLogisticRegression`.
    context : float, default=0.0
        Weight of the bag's mean, as more features; see :class:`unbag.BagContext`.
    kernel : float, optional
        Width of a kernel; without, the model is as it is. See :class:`unbag.RBFDictionary`.
    dictionary : int, default=600
        Instances in the kernel's dictionary.
    max_iter : int, optional
        Most iterations; by default 1000, and 400 of networks.
    seed : int, default=0
        Of the dictionary, or of the networks.

    Returns
    -------
    estimator or BagPipeline
        Fitted. It remembers the roles, so that ``annotate_frame`` and ``predict_frame``, and the
        command line once it is saved, need no more of them.

    Examples
    --------
    >>> import polars
    >>> frame = polars.DataFrame({
    ...     "file": ["a", "a", "b", "b", "c"],
    ...     "tags": ["owl|wren", "owl|wren", "owl", "owl", "wren"],
    ...     "pitch": [0.0, 9.0, 1.0, 0.0, 8.0],
    ... })
    >>> model = fit(frame, bag="file", labels="tags")
    >>> model.annotate_frame(frame)["annotation"].to_list()
    ['owl', 'wren', 'owl', 'owl', 'wren']
    """
    given = dict(locals())
    settings = Settings(
        **{name: given[name] for name in Settings.__dataclass_fields__ if name != "model"},
        model="linear" if model is None else model,
    )
    unfitted = settings.unfitted()
    named = {name: given[name] for name in Roles.__dataclass_fields__}
    data = training_set(table, y, roles, **named).check_learnable()
    # In a handful of bags every class is rare, and everybody sees it.
    sentence = rare_classes(data.label_sets) if len(data.label_sets) >= A_FEW_BAGS else None
    if sentence is not None:
        warn_caller(f"{data.path}: {sentence}.")
    return data.fit(unfitted)
