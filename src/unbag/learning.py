"""From a table to a fitted model: settings, reading for a fit, `unbag.fit`.

This is the only way. The command line, searches, and fits out of core and on clusters build models
by `Settings`, take the roles of a call by `Roles.given`, and learn from a `TrainingSet`: bags
without the truth that a table may carry, their labels, and labels of instances that people gave.
"""

import logging
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

import numpy as np
from scipy import sparse
from sklearn.base import clone

from unbag._declared import documented
from unbag._files import PathLike, check, refuse
from unbag._messages import argument, listed, suggestion, warn_caller, words
from unbag.bags import Bags
from unbag.corrections import corrected, not_tagged
from unbag.estimators import ORLogisticRegression
from unbag.estimators.contract import BagClassifier
from unbag.labels import (
    LabelSets,
    LabelSetsLike,
    doubtful_names,
    hard_to_tell,
    rare_classes,
    without_contrast,
)
from unbag.model_selection import read_label_sets
from unbag.pipeline import BagPipeline
from unbag.preprocessing import BagContext
from unbag.settings import SETTINGS, FitArguments, ModelArguments, Settings
from unbag.tables.answers import corrected_tags
from unbag.tables.bag_table import BagTable, Progress
from unbag.tables.extracted import extraction_of, left_out
from unbag.tables.roles import (
    KNOWN_LABEL,
    NOT_LEARNT_FROM,
    OF_LABELS,
    USUAL,
    ColumnRoles,
    Roles,
    check_has_columns,
)
from unbag.tables.table import Source, open_source
from unbag.tagging import DELIMITER, Tagging, is_missing, is_word_for_none, warn_of_unused_names
from unbag.validation import as_labels

if TYPE_CHECKING:
    from unbag.torch import ORNetwork

#: Tables of fewer bags are examples.
A_FEW_BAGS = 20
#: The least probability at which a model teaches a label to one with context.
SURE = 0.9

logger: logging.Logger = logging.getLogger(__name__)
Estimator = TypeVar("Estimator", bound=BagClassifier | BagPipeline)


# What a fit may see.


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Bags and their labels, as a fit may see them."""

    bags: Any
    labels: Any
    known: Any = None
    roles: Roles | None = None
    path: Path = Path("y")
    columns: Sequence[str] = ()
    unused_names: Sequence[str] = ()
    extraction: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.roles is not None and isinstance(self.labels, LabelSets):
            labels = self.labels.with_groups_of(self.roles.tagging)
            object.__setattr__(self, "labels", self._with_known(labels))

    def _with_known(self, labels: LabelSets) -> LabelSets:
        """Let known labels of instances be tags of their bags, as in a review; warn of them."""
        if self.known is None or self.roles is None:
            return labels
        classes = list(map(str, labels.classes.tolist()))
        found = not_tagged(self.known, self.bags, labels)
        tagging, delimiter = self.roles.tagging, self.roles.label_separator or DELIMITER
        is_new = {
            label: tagging.is_class(label, classes, delimiter) and not is_word_for_none(label)
            for label in {label for _, _, label in found}.difference(classes)
        }
        ids = list(map(str, self.bags.ids)) if found else []
        tags = {(ids[b], label): "present" for _, b, label in found if is_new.get(label, True)}
        if not tags:
            return labels
        (bag, label), *_ = tags
        new = sorted(label for label, is_class in is_new.items() if is_class)
        untold = f"; no {words().bag} is tagged with {listed(new)}" if new else ""
        near = suggestion(new[0], classes) if new else ""
        warn_caller(
            f"{self.path}: {len(tags):,} known labels of {words().instances} are none of the tags "
            f"of their {words().bags}, such as {label!r} in {words().bag} {bag}, and are taken for "
            f"tags too{untold}. Correct the labels if they are wrong.{near}"
        )
        return corrected_tags(labels, self.bags, tags) or labels

    @property
    def label_sets(self) -> LabelSets:
        """The labels as `LabelSets`."""
        if isinstance(self.labels, LabelSets):
            return self.labels
        return read_label_sets(self.labels, self.bags)

    def check_learnable(self) -> "TrainingSet":
        """Raise an error where nothing can be learnt, or one label looks like several.

        Warn of names that look like one class, or like none, and where tags cannot tell classes
        apart.
        """
        check(self.labels is not None, f"{self.path} has no labels to fit to: name their column.")
        labels = self.label_sets
        unsure = (
            " Labels that are only unsure do not count, such as tags of whole recordings in the "
            "pieces into which extract cuts them."
        )
        check(
            self.n_known > 0 or labels.is_tagged.any(),
            f"{self.path}: no {words().bag} has a label, and nothing can be learnt without: tag "
            f"some {words().bags}.{unsure if labels.optional.any() else ''}",
        )
        sentences = doubtful_names(labels)
        if not self.n_known and (sentence := without_contrast(labels)) is not None:
            sentences.append(sentence)
        elif not self.n_known and len(labels) >= A_FEW_BAGS:
            sentences += hard_to_tell(labels)
        for sentence in sentences:
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
        delimiter, any_of = self.roles.label_separator or "", self.roles.any_of
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
                    f"{mark!r} rather than {delimiter!r}: use "
                    f"{argument('label_separator', mark)}, or {argument('any_of', mark)} if one "
                    "of them is meant."
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

    def facts(self) -> dict[str, Any]:
        """Return what a model file remembers of the table."""
        return {
            "source": self.path.name,
            "bags": len(self.bags),
            "instances": self.bags.n_instances,
            "known_instance_labels": self.n_known,
        }

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
            one = words().instances
            logger.info("Labels of %s that people gave, learnt from: %d.", one, self.n_known)
        if names := self.feature_names:
            logger.info("Features (%d): %s.", len(names), listed(names))
        if names := self.unused:
            shown = listed(name or "one without a name" for name in names)
            logger.info("Columns that are not used (%d): %s.", len(names), shown)
        return self

    def fit(
        self,
        model: Any,
        decision: Any = None,
        watch: Callable[[Any], object] | None = None,
    ) -> Any:
        """Fit a model in place; it remembers the roles of columns. Return it.

        One with a context is taught by what it is without. `decision` and `watch` are those of
        `ORLogisticRegression.fit`.
        """
        labels_known = self.known
        # Not every model can be watched, or decides something.
        watched = {} if watch is None else {"watch": watch}
        decided = {} if decision is None else {"decision": decision}
        if (plain := without_context(model)) is not None and isinstance(self.bags, Bags):
            with warnings.catch_warnings():
                # The fit with context will say it.
                warnings.simplefilter("ignore")
                plain.fit(self.bags, self.label_sets, **known_of(labels_known), **watched)
            labels_known = taught_labels(plain, self.bags, self.label_sets, labels_known)
        model.fit(self.bags, self.labels, **known_of(labels_known), **watched, **decided)
        self.remember(model)
        return model

    def remember(self, model: Any) -> None:
        """Let a model keep what tables to come need: roles, and how instances were found."""
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
        if self.extraction is not None:
            model.extraction_ = self.extraction


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
    """Return labels of instances for a fit with context: those that a model without one is sure of.

    By itself, a context can recognise the bag, recite its label set, and give the labels to the
    wrong instances at no cost in likelihood. So it is taught by a model that sees each instance by
    itself. Labels that are known stay as they are. A bag is left alone if its other instances
    could not have the rest of its labels.
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
    """Return whether data are a table, a frame or files of any kind, and not bags or arrays."""
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
    check(
        not isinstance(known, Mapping),
        "known is an array with a label for each instance, or None where it is not known, not a "
        "dict: put those of the bags one after the other.",
    )
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
    """Write the roles of columns that a fit learns from, and those that it does not."""
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
    from unbag.tables.frame import open_frame

    return open_frame(table)


def read_source(
    source: Source,
    roles: Roles,
    *,
    corrections: PathLike | None = None,
    ignore_known: bool = False,
    progress: Progress | None = None,
) -> TrainingSet:
    """Read an open table as a fit may see it."""
    from unbag.tables.guess import with_known

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
    data = replace(data, known=known)
    if corrections is not None:
        data = corrected(corrections, data)
    bags = without_truth(data.bags)
    return TrainingSet(
        bags, data.labels, data.known, data.roles, data.path, source.columns, data.unused_names,
        extraction_of(source),
    )  # fmt: skip


def labels_in_bag_file(data: BagTable, roles: Roles) -> Any:
    """Return the labels of instances in a file without columns, if they are to be learnt from."""
    name = USUAL["instance_labels"]
    check(
        roles.known == name and data.bags.instance_labels is not None,
        f"{data.path} has no column {roles.known!r}: files of this format have labels of instances "
        f"or none; to learn from them, use {argument('known', name)}.",
    )
    return data.bags.instance_labels


# What is said of a fitted model.


def decided(fitted: Any) -> dict[str, Any]:
    """Return what was decided before a fit, and the figures on held-out bags that say why."""
    decision = fitted.decision_
    names = (
        "kind", "alpha", "background_cost", "temperature_new", "temperature_given", "held_out",
    )  # fmt: skip
    return {name: getattr(decision, name) for name in names}


def learns_rates(model: Any) -> bool:
    """Return whether a model learns how often labels are wrong."""
    return any(isinstance(rate, str) for rate in (model.missed_rate, model.false_rate))


def sentence_about_rates(model: Any, bags: Bags, labels: LabelSets) -> str:
    """Return a sentence about the rates of wrong labels that were learnt.

    The rate of unnoticed instances is none of labels, and takes up what the model cannot explain:
    shown is how often all instances of a label that was given would have gone unnoticed.
    """
    fitted = model.model
    n_classes = len(fitted.classes_)
    expected = np.zeros((len(bags), n_classes))
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    np.add.at(expected, bag, model.annotate_proba(bags, labels)[:, :n_classes])
    given = labels.reindex(fitted.classes_).required
    missing = np.mean((fitted.missed_rate_**expected)[given]) if given.any() else 0.0
    return (
        f"Wrong labels, an estimate: {100 * missing:.1f} % of the labels that should be there are "
        f"missing, and a class that is not there is named in {100 * fitted.false_rate_.mean():.1f} "
        f"% of the {words().bags}."
    )


# From a table to a model.


# fmt: off
@overload
def fit(table: Any, y: LabelSetsLike | None = None, *, model: Literal["linear"] | None = None,
        **named: Unpack[ModelArguments]) -> ORLogisticRegression: ...
@overload
def fit(table: Any, y: LabelSetsLike | None = None, *, model: str | None = None,
        minutes: float | None = None, **named: Unpack[FitArguments]
        ) -> "ORLogisticRegression | BagPipeline | ORNetwork": ...
@overload
def fit(table: Any, y: LabelSetsLike | None = None, *, model: Estimator,
        **named: Unpack[ColumnRoles]) -> Estimator: ...
@overload
def fit(table: Any, y: LabelSetsLike | None = None, *, model: Estimator,
        **named: Unpack[FitArguments]) -> Estimator | BagPipeline: ...
# fmt: on
@documented(Roles, Settings)
def fit(
    table: Any,
    y: LabelSetsLike | None = None,
    *,
    model: Any = None,
    minutes: float | None = None,
    **named: Unpack[FitArguments],
) -> Any:
    """Learn to label the instances of a table from the labels of their bags.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, polars.LazyFrame, pyarrow.Table, str, path or Bags
        One row per instance, in any order; or one per bag, with lists. A path is that of a file of
        any format that `unbag.tables.read` takes, of a folder, or a pattern; a list of them is one
        table. Or bags, as estimators take them.
    y : label sets
        Only with bags, as in :meth:`unbag.ORLogisticRegression.fit`. The only role of bags is
        `known`, an array of shape (n_instances,) with None where a label is not known.
    minutes : float, optional
        Time for ``model="auto"``; by default as long as it takes.
    roles : Roles, optional
        Roles of columns; those that are named as well win.
    corrections : str or path, optional
        A table that ``unbag annotate`` wrote and people corrected, in its column ``known_label``;
        or the log of a review, ``table.answers.jsonl``, with the tags that were corrected there.
    ignore_known : bool, default=False
        Whether to do without the labels that people gave, where a table has some.
    ...

    Returns
    -------
    estimator or BagPipeline
        Fitted. It remembers the roles, so that ``annotate_frame`` and ``predict_frame``, and the
        command line once it is saved, need no more of them.

    Notes
    -----
    A model that is given is cloned. It may be any of this library; only `context`, `kernel`,
    `dictionary` and `seed` are then settings. By default it is an `ORLogisticRegression`. A network
    is an `unbag.torch.ORNetwork`. With "auto", held-out bags choose between linear models, kernels
    and, if torch is installed, networks: see `unbag.tune`. Roles of columns are described in
    :class:`unbag.tables.Roles`. Labels to compare with, `instance_labels`, are refused: nothing
    learns from them.

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
    given: dict[str, Any] = {"model": "linear" if model is None else model, **named}
    settings = Settings(**{name: given.pop(name) for name in SETTINGS if name in given})
    is_chosen = isinstance(settings.model, str) and settings.model == "auto"
    if minutes is not None and not is_chosen:
        raise ValueError('minutes is the time for model="auto": leave it out.')
    unfitted = None if is_chosen else settings.unfitted()
    data = training_set(table, y, given.pop("roles", None), **given).check_learnable()
    # In a handful of bags every class is rare, and everybody sees it.
    sentence = rare_classes(data.label_sets) if len(data.label_sets) >= A_FEW_BAGS else None
    if sentence is not None:
        warn_caller(f"{data.path}: {sentence}.")
    if unfitted is None:
        # By name, since a search is built on this module.
        return import_module("unbag.tuning").tune_around(
            settings, data.announced(), minutes=minutes
        )
    return data.announced().fit(unfitted)
