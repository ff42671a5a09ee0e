"""From a table to a fitted model: settings, reading for a fit, `unbag.fit`.

This is the only way. The command line, searches, and fits out of core and on clusters build models
by `Settings`, take the roles of a call by `Roles.given`, and learn from a `TrainingSet`: bags
without the truth that a table may carry, their labels, and labels of instances that people gave.
"""

import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone

from unbag._extras import require
from unbag._files import PathLike, check, refuse
from unbag._messages import argument, listed, shortened
from unbag._warnings import warn_caller
from unbag.bags import Bags
from unbag.estimators import ORLogisticRegression
from unbag.estimators.contract import BagClassifier
from unbag.fitting import Rate
from unbag.frames import ColumnRoles
from unbag.io.bag_table import BagTable, Progress
from unbag.io.extracted import left_out
from unbag.io.roles import (
    KNOWN_LABEL,
    NOT_LEARNT_FROM,
    OF_LABELS,
    USUAL,
    Roles,
    check_has_columns,
)
from unbag.io.table import Source, open_source
from unbag.labels import LabelSets, LabelSetsLike, doubtful_names, rare_classes
from unbag.model_selection.folds import read_label_sets
from unbag.pipeline import BagPipeline, bag_pipeline
from unbag.preprocessing import BagContext
from unbag.tagging import Tagging, is_missing, warn_of_unused_names
from unbag.validation import as_labels

if TYPE_CHECKING:
    from unbag.torch import ORNetwork

#: Tables of fewer bags are examples.
A_FEW_BAGS = 20
#: Models that have a name.
NAMES = ("linear", "network", "auto")
# Settings that a given model has itself, and those that networks do not have.
OF_NAMED_MODELS = ("alpha", "background", "background_cost", "missed", "false", "max_iter")
OF_LINEAR_MODELS = ("alpha", "context", "kernel", "dictionary")

#: The least probability at which a model teaches a label to one with context.
SURE = 0.9

logger: logging.Logger = logging.getLogger(__name__)
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
    background_cost: float | None = None
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
            names = ", ".join(map(repr, NAMES))
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
        own: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("background", "background_cost", "missed", "false")
        }
        if self.max_iter is not None:
            own["max_iter"] = self.max_iter
        if not isinstance(self.model, str):
            model: Any = clone(self.model)
        elif self.model == "auto":
            raise ValueError("model='auto' is chosen by a search: there is nothing to build yet.")
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
    known : ndarray of shape (n_instances,) or None
        Labels of instances that people gave, from which a model learns too; None where a label is
        not known.
    roles : Roles or None
        None where bags came without a table.
    path : Path
        What messages call the table.
    columns : sequence of str
        Of the table, whether they are used or not.
    unused_names : sequence of str
        Labels that were to be renamed, and that the table does not have.
    """

    bags: Any
    labels: Any
    known: Any = None
    roles: Roles | None = None
    path: Path = Path("y")
    columns: Sequence[str] = ()
    unused_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.roles is not None and isinstance(self.labels, LabelSets):
            labels = self.labels.with_groups_of(self.roles.tagging)
            object.__setattr__(self, "labels", labels)

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
            self.n_known > 0 or labels.is_tagged.any(),
            f"{self.path}: no bag has a label, and nothing can be learnt without: tag some bags.",
        )
        for sentence in doubtful_names(labels):
            warn_caller(f"{self.path}: {sentence}.")
        # Corrections are renamed, too, and known labels on a cluster, where nobody has noted it.
        new_names = {} if self.roles is None else dict(self.roles.rename)
        known = set() if self.known is None else set(self.known)
        unused = [name for name in self.unused_names if new_names.get(name) not in known]
        warn_of_unused_names(self.path, unused, labels.classes.tolist())
        taxonomy = None if self.roles is None else self.roles.tagging.taxonomy_of_labels
        if taxonomy is not None:
            named = taxonomy.parents.keys() | taxonomy.children.keys()
            if named.isdisjoint(map(str, labels.classes)):
                warn_caller(
                    f"{self.path}: the taxonomy names none of the labels "
                    f"({listed(labels.classes.tolist())}), so it changes nothing. If only their "
                    f"capitals differ, use {argument('fold_case', True)}."
                )
        # Labels in columns of their own, and those of Python, are separated by nothing.
        if self.roles is None or self.roles.label_columns:
            return self
        names = {str(name) for name in labels.classes}
        delimiter, any_of = self.roles.delimiter or "", self.roles.any_of
        for mark in ";,/+".replace(delimiter, ""):
            several = (
                name
                for name in names
                if mark in name and names.issuperset(map(str.strip, name.split(mark)))
            )
            refuse(
                several,
                lambda name, mark=mark: (
                    f"{self.path}: the label {name!r} is not divided, since none of its parts is a "
                    f"label by itself; but a longer label, with {mark!r} between its members, "
                    f"names them. Write another separator there, and in {argument('any_of')}."
                    if mark == any_of
                    else f"{self.path}: the label {name!r} looks like several, separated by "
                    f"{mark!r} rather than {delimiter!r}: use {argument('delimiter', mark)}, or "
                    f"{argument('any_of', mark)} if one of them is meant."
                ),
            )
        return self

    @property
    def n_known(self) -> int:
        """How many labels of instances are known."""
        known = () if self.known is None else np.asarray(self.known, dtype=object)
        # In arrays of columns of y, -1 is no label.
        return sum(each is not None and each == each and each != -1 for each in known)

    @property
    def feature_names(self) -> list[str]:
        """The names of the features; empty where they have none."""
        names = self.bags.feature_names if self.roles is not None else None
        return [] if names is None else list(map(str, names))

    @property
    def unused(self) -> list[str]:
        """The columns of the table that have no role, texts and categories among them."""
        roles = [] if self.roles is None else self.roles.columns()
        used = {column for role, column in roles if role != "carry"}
        return [name for name in self.columns if name not in used]

    def announced(self) -> "TrainingSet":
        """Log which columns are used and which are not; commands print what is logged."""
        if self.roles is not None and self.columns:
            used, others = used_and_not(self.roles)
            logger.info("Roles: %s.", "; ".join(used))
            if self.roles.instance_labels is not None:
                logger.info(
                    "Not learnt from: %s. instance_labels are to compare with; if people gave them "
                    "and the model should learn from them, use %s.",
                    "; ".join(others), argument("known", self.roles.instance_labels),
                )  # fmt: skip
        if self.n_known:
            logger.info("Labels of instances that people gave, learnt from: %d.", self.n_known)
        if names := self.feature_names:
            logger.info("Features (%d): %s.", len(names), listed(names))
        if names := self.unused:
            logger.info("Columns that are not used (%d): %s.", len(names), listed(names))
        return self

    def fit(self, model: Any, teacher: Any = None) -> Any:
        """Fit a model in place; it remembers the roles of columns. Return it.

        One with a context is taught by `teacher`, by default by what it is without.
        """
        labels_known = self.known
        if (plain := without_context(model)) is not None and isinstance(self.bags, Bags):
            plain = plain if teacher is None else teacher
            with warnings.catch_warnings():
                # The fit with context will say it.
                warnings.simplefilter("ignore")
                plain.fit(self.bags, self.label_sets, **known_of(labels_known))
            labels_known = taught_labels(plain, self.bags, self.label_sets, labels_known)
        model.fit(self.bags, self.labels, **known_of(labels_known))
        self.remember(model)
        return model

    def remember(self, model: Any) -> None:
        """Let a model keep the roles of columns, for the tables to come."""
        if self.roles is not None:
            model.roles_ = self.roles.remembered()
            taxonomy = self.roles.tagging.taxonomy_of_labels
            if taxonomy is not None:
                # Of a list of all species, a model needs what its classes belong to.
                rows = taxonomy.above(map(str, model.classes_)).rows
                model.roles_["taxonomy"] = [list(row) for row in rows]
            if not self.n_known:
                # A column that nobody has filled in.
                model.roles_.pop("known", None)


def known_of(known: Any) -> dict[str, Any]:
    """Return known labels of instances as an argument of `fit`: not every model has that."""
    return {} if known is None else {"instance_labels": known}


def without_context(model: Any) -> Any:
    """Return an unfitted copy of a pipeline without its context; None if it has none."""
    step = getattr(model, "named_steps", {}).get("context")
    if not isinstance(step, BagContext) or not step.weight:
        return None
    return clone(model).set_params(context="passthrough")


def taught_labels(plain: Any, bags: Bags, labels: LabelSets, known: Any) -> np.ndarray:
    """Return labels of instances for a fit with context: those of which a model without is sure.

    By itself, a context can recognise the bag, recite its label set, and give the labels to the
    wrong instances at no cost in likelihood. So it is taught by a model that sees each instance by
    itself. Labels that are known stay as they are. A bag is left alone if its other instances
    could not have the rest of its labels.

    Parameters
    ----------
    plain : estimator
        Fitted, without a context.
    bags : Bags
    labels : LabelSets
    known : array-like of shape (n_instances,), or None

    Returns
    -------
    ndarray of object of shape (n_instances,)
        None where nothing is taught.
    """
    proba = plain.annotate_proba(bags, labels, **known_of(known))
    classes = plain.model.classes_ if isinstance(plain, BagPipeline) else plain.classes_
    found = proba.argmax(axis=1)
    is_taught = (proba.max(axis=1) >= SURE) & (found < len(classes))
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    # A model that believes label sets to be wrong may be sure of a label that its bag lacks.
    is_taught[is_taught] = labels.indicator[bag[is_taught], found[is_taught]] != 0
    covered = np.zeros((len(bags), len(classes)), dtype=bool)
    covered[bag[is_taught], found[is_taught]] = True
    n_free = np.bincount(bag[~is_taught], minlength=len(bags))
    n_left = (labels.required & ~covered).sum(axis=1)
    if labels.groups is not None:
        n_left += labels.groups.per_bag
    is_taught &= (n_left <= n_free)[bag]
    taught = np.full(bags.n_instances, None, dtype=object)
    taught[is_taught] = np.asarray(classes, dtype=object)[found[is_taught]]
    if known is not None:
        given = np.asarray(known, dtype=object)
        is_known = np.array([not is_missing(each) and each != -1 for each in given], dtype=bool)
        taught[is_known] = given[is_known]
    return taught


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
    data: Any,
    y: LabelSetsLike | None,
    roles: Roles | None,
    /,
    corrections: PathLike | None = None,
    ignore_known: bool = False,
    **named: Any,
) -> TrainingSet:
    """Read what was given to a function that learns: a table and roles, or bags and label sets.

    Roles by name win over `roles`; with bags, there is only `known`, an array. Labels that only
    evaluate are refused.
    """
    refuse_truth(named.get("instance_labels"))
    refuse_contradiction(ignore_known, corrections=corrections, known=named.get("known"))
    # An array without label sets is rather meant to be a table: then the error says what is one.
    if is_table(data) or (y is None and not isinstance(data, Bags | list | tuple)):
        if y is not None:
            raise TypeError("y is for Bags: name the column of the labels by labels=.")
        with open_table(data) as source:
            given = Roles.given(roles, **named)
            return read_source(source, given, corrections=corrections, ignore_known=ignore_known)
    tagging = Roles(**{name: named.pop(name) for name in OF_LABELS if name in named}).tagging
    known = named.pop("known", None)
    given = {"roles": roles, "corrections": corrections, **named,
             "known": known if isinstance(known, str) else None}  # fmt: skip
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
    chosen = {name: getattr(tagging, name) for name in OF_LABELS}
    return LabelSets.parse(as_labels(y, bags, are_sets=True), **chosen)


def refuse_truth(instance_labels: Any) -> None:
    """Raise an error if labels that only evaluate are given to what learns."""
    check(
        instance_labels is None,
        f"{argument('instance_labels')} is for labels to compare with: nothing learns from them. "
        f"Pass the column of labels that people gave with {argument('known')}, and a table that "
        f"annotate wrote and people corrected with {argument('corrections')}.",
    )


def refuse_corrections(corrections: Any) -> None:
    """Raise an error if a corrected table is given to what does not have its data in memory."""
    check(
        corrections is None,
        f"{argument('corrections')} is for tables in memory: fit to {corrections} itself, in which "
        f"people have filled in the column {KNOWN_LABEL}, or use unbag.fit.",
    )


def refuse_contradiction(ignore_known: bool, **given: Any) -> None:
    """Raise an error if labels that people gave are passed and ignored at the same time."""
    refuse(
        (name for name, value in given.items() if ignore_known and value is not None),
        lambda name: f"{argument(name)} and {argument('ignore_known', True)}: choose one.",
    )


def used_and_not(roles: Roles) -> tuple[list[str], list[str]]:
    """Write the roles of columns that a fit learns from, and those that it does not.

    Examples
    --------
    >>> used_and_not(Roles(bag="night", labels="tags", instance_labels="truth", start="s"))
    (['bag = night', 'labels = tags'], ['instance_labels = truth', 'start = s'])
    """
    columns = {}
    for role, column in roles.columns():
        if role not in ("features", "carry"):
            columns.setdefault(role, []).append(column)
    if roles.label_table is not None:
        columns["label_table"] = [roles.label_table]
    texts = {role: f"{role} = {listed(names)}" for role, names in columns.items()}
    used = [text for role, text in texts.items() if role not in NOT_LEARNT_FROM]
    return used, [text for role, text in texts.items() if role in NOT_LEARNT_FROM]


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


def read_source(
    source: Source,
    roles: Roles,
    *,
    corrections: PathLike | None = None,
    ignore_known: bool = False,
    progress: Progress | None = None,
) -> TrainingSet:
    """Read an open table as a fit may see it.

    Parameters
    ----------
    source : Source
    roles : Roles
        If `known` is not named, the column ``known_label`` has this role, if there is one.
    corrections : str or path, optional
        A table that ``unbag annotate`` wrote and a person corrected; or the log of a review, whose
        corrected tags count as well.
    ignore_known : bool, default=False
        Whether to do without the labels that people gave.
    progress : callable, optional
        As in `unbag.io.read`.
    """
    from unbag.io.guess import with_known

    check_has_columns(source, roles)
    is_named = roles.known is not None
    roles = with_known(source, roles, ignore_known) if source.columns else roles
    data = source.read(roles, progress=progress)
    if (sentence := left_out(source)) is not None:
        logger.info("%s", sentence)
    known = data.known
    if is_named and not source.columns:
        known = labels_in_bag_file(data, roles)
    elif not is_named and known is not None and not any(each is not None for each in known):
        # A column that nobody has filled in.
        known = None
    labels = data.labels
    if corrections is not None:
        from unbag.corrections import corrected_label_sets, corrected_labels

        new = corrected_labels(corrections, data)
        labels = corrected_label_sets(corrections, data)
        pairs = zip(new, new if known is None else known, strict=True)
        known = np.array([one if one is not None else other for one, other in pairs], object)
    bags = without_truth(data.bags)
    return TrainingSet(
        bags, labels, known, data.roles, data.path, source.columns, data.unused_names
    )


def labels_in_bag_file(data: BagTable, roles: Roles) -> Any:
    """Return the labels of instances in a file without columns, if they are to be learnt from."""
    name = USUAL["instance_labels"]
    check(
        roles.known == name and data.bags.instance_labels is not None,
        f"{data.path} has no column {roles.known!r}: files of this format have labels of instances "
        f"or none; to learn from them, use {argument('known', name)}.",
    )
    return data.bags.instance_labels


# From a table to a model.


class _Seeded(ColumnRoles, total=False):
    seed: int


class _NetworkSettings(_Seeded, total=False):
    background: bool | Literal["auto"]
    background_cost: float | None
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
def fit(table: Any, y: LabelSetsLike | None = None, *, model: Literal["auto"],
        minutes: float | None = None, **settings: Unpack[_KernelSettings]
        ) -> "ORLogisticRegression | BagPipeline | ORNetwork": ...
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
    known: str | ArrayLike | None = None,
    corrections: PathLike | None = None,
    ignore_known: bool = False,
    instance_labels: str | None = None,
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
    any_of: str | None = None,
    taxonomy: Any = None,
    roles: Roles | None = None,
    model: Any = None,
    alpha: float = 1.0,
    background: bool | Literal["auto"] = "auto",
    background_cost: float | None = None,
    missed: Rate = 0.0,
    false: Rate = 0.0,
    context: float = 0.0,
    kernel: float | None = None,
    dictionary: int = 600,
    max_iter: int | None = None,
    minutes: float | None = None,
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
    known : str or array-like, optional
        The column of labels of instances that people gave, from which the model learns too; by
        default ``known_label``, if there is one. With bags, an array of shape (n_instances,), with
        None where a label is not known.
    corrections : str or path, optional
        A table that ``unbag annotate`` wrote and people corrected, in its column ``known_label``;
        or the log of a review, ``table.answers.jsonl``, with the tags that were corrected there.
    ignore_known : bool, default=False
        Whether to do without the labels that people gave, where a table has some.
    instance_labels : str, optional
        Refused: labels to compare with are not learnt from. Use `known` or `corrections`.
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
    any_of : str, optional
        What is written between labels of which at least one is meant: with ``"/"``, ``owl/hawk``
        says that an instance is an owl or a hawk.
    taxonomy : path, list of (child, parent, rank) or dict of child to parent, optional
        Names that mean any class below them, such as a genus: a table with the columns ``child``,
        ``parent`` and ``rank``.
    roles : Roles, optional
        Roles of columns; what is named beside it wins.
    model : "linear", "network", "auto" or estimator, optional
        Any model of this library, of which a clone is fitted; or the name of one: by default an
        `ORLogisticRegression` with the next settings, or an `unbag.torch.ORNetwork`, which needs
        torch, with those that it has. With "auto", held-out bags choose between linear models,
        kernels and, if torch is installed, networks: see `unbag.tune`.
    alpha, background, background_cost, missed, false
        As in :class:`unbag.ORLogisticRegression`.
    context : float, default=0.0
        Weight of the bag's mean, as more features; see :class:`unbag.BagContext`.
    kernel : float, optional
        Width of a kernel; without, the model is as it is. See :class:`unbag.RBFDictionary`.
    dictionary : int, default=600
        Instances in the kernel's dictionary.
    max_iter : int, optional
        Most iterations; by default 1000, and 400 of networks.
    minutes : float, optional
        Time for ``model="auto"``; by default as long as it takes.
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
    is_chosen = isinstance(model, str) and model == "auto"
    if minutes is not None and not is_chosen:
        raise ValueError('minutes is the time for model="auto": leave it out.')
    unfitted = None if is_chosen else settings.unfitted()
    named = {name: given[name] for name in Roles.__dataclass_fields__}
    data = training_set(
        table, y, roles, corrections=corrections, ignore_known=ignore_known, **named
    ).check_learnable()
    # In a handful of bags every class is rare, and everybody sees it.
    sentence = rare_classes(data.label_sets) if len(data.label_sets) >= A_FEW_BAGS else None
    if sentence is not None:
        warn_caller(f"{data.path}: {sentence}.")
    if is_chosen:
        # By name, since a search is built on this module.
        return import_module("unbag.tuning").tune_around(
            settings, data.announced(), minutes=minutes
        )
    return data.announced().fit(unfitted)
