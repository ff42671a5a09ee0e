"""Frames in, frames out: tables as a model needs them, and its answers as their columns.

The command line reads files in the same way. Nothing here knows a model but by its methods.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from unbag._declared import documented
from unbag._files import DataError, PathLike, check
from unbag._messages import argument, listed, suggestion, words
from unbag._scikit_learn import available_if
from unbag.annotations import AnnotateOptions, AnnotateSettings, annotate, predictions
from unbag.bags import Bags
from unbag.corrections import corrected
from unbag.labels import ColumnOfLabel, LabelSets
from unbag.tables.annotated import annotated_frame, written_columns, written_predictions
from unbag.tables.bag_table import BagTable, Progress
from unbag.tables.extracted import (
    are_same_networks,
    described_network,
    extracted_facts,
    extraction_of,
    network_of,
)
from unbag.tables.roles import (
    REMEMBERED,
    USUAL,
    ColumnRoles,
    Roles,
    check_column,
    check_has_columns,
)
from unbag.tables.table import Source
from unbag.tagging import DELIMITER, USUAL_TAGGING, Tagging

#: A frame of any kind; what comes back is of the same.
Frame = TypeVar("Frame")


class FrameArguments(AnnotateOptions, ColumnRoles, total=False):
    """Arguments of `annotate_frame` by name."""


class FrameAnswers:
    """The methods of models that answer for frames.

    Attributes
    ----------
    roles_ : dict
        The roles of the columns of the table that the model was fitted to, where it was fitted to
        one; they hold for tables to come.
    extraction_ : dict
        How the instances of that table were found and described, where `unbag.extract` did it: the
        ``kind`` of media, and its ``settings``, with the ``network`` if there was one.
    tuning_ : dict
        How `unbag.tune` has chosen the settings, where it has.
    """

    roles_: dict[str, Any]
    extraction_: dict[str, Any]
    tuning_: dict[str, Any]

    @available_if(lambda model: hasattr(model, "predict_instances_proba"))
    @documented(AnnotateSettings)
    def annotate_frame(
        self, frame: Frame, *, ignore_labels: bool = False, **named: Unpack[FrameArguments]
    ) -> Frame:
        """Label every instance of a frame; bag labels are used if there are any.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame, polars.LazyFrame or pyarrow.Table
            One row per instance, in any order; or one per bag, with lists.
        ignore_labels : bool, default=False
            Whether to do without bag labels, even if there are any.
        **named
            Roles of columns, `roles` and `corrections`, as in :func:`unbag.fit`; by default the
            roles are those of the frame that the model was fitted to. Known labels of instances in
            the corrections go into the column ``known_label``, if there is none. All others are
            options of :func:`unbag.annotations.annotate`:
        ...

        Returns
        -------
        frame
            Of the same kind, with the same rows and index, and the columns that ``unbag annotate``
            writes: ``annotation``, ``status``, ``probability``, ``second_choice``,
            ``second_probability``, ``entropy``, ``review`` and ``known_label``. They take the place
            of those that were written before, except ``known_label``, which people fill in.
        """
        from unbag.tables.frame import open_frame

        columns_named: dict[str, Any] = dict(named)
        options = {
            name: columns_named.pop(name)
            for name in AnnotateOptions.__annotations__
            if name in columns_named
        }
        corrections = columns_named.pop("corrections", None)
        given = Roles.given(columns_named.pop("roles", None), **columns_named)
        use_labels = not ignore_labels
        source = open_frame(frame)
        wanted = roles_for_model(self, source, given, use_labels=use_labels)
        written = written_columns(source, wanted)
        data, tags = read_for_model(
            self, source, wanted, use_labels=use_labels, corrections=corrections
        )
        answers = annotate(self, data.bags, tags, **options)
        # The copy of the features goes before there are new columns.
        data = without_features(data)
        columns = answers.columns(None if corrections is None else data.known)
        return annotated_frame(data, columns, written)

    def predict_frame(self, frame: Frame, **named: Unpack[ColumnRoles]) -> Frame:
        """Predict which classes occur in the bags of a frame; bag labels are not looked at.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame, polars.LazyFrame or pyarrow.Table
            One row per instance, in any order; or one per bag, with lists.
        **named
            Roles of columns and `roles`, as in :func:`unbag.fit`; by default those of the frame
            that the model was fitted to.

        Returns
        -------
        frame
            Of the same kind, with the same rows and index, and the columns that ``unbag predict``
            writes, the same in all rows of a bag: ``predicted``, its labels, and the probability
            of each class, as ``p(wren)``.
        """
        from unbag.tables.frame import open_frame

        columns_named: dict[str, Any] = dict(named)
        given = Roles.given(columns_named.pop("roles", None), **columns_named)
        source = open_frame(frame)
        wanted = roles_for_model(self, source, given, use_labels=False)
        data, _ = read_for_model(self, source, wanted, use_labels=False)
        answers = predictions(self, data.bags, data.roles.label_separator or DELIMITER)
        data = without_features(data)
        written = written_predictions(source.columns, list(answers))
        return annotated_frame(data, answers, written, per_bag=True)


class BagModel(FrameAnswers):
    """A loaded model, as type checkers see it: any attribute may exist."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return an attribute of its class."""


def roles_for_model(model: Any, source: Source, given: Roles, *, use_labels: bool = True) -> Roles:
    """Put roles that people name over those that a model remembers, for one table.

    Columns that are named must be in the table; those that are remembered need not. A column that
    was only carried through when the model was fitted may have a role now. If bag labels are not
    wanted, their columns are carried through unread.
    """
    check_has_columns(source, given)
    _check_network(model, source)
    # Labels that people gave were for the fit; evaluations ask for them by `known_when_fitted`.
    remembered = replace(remembered_roles(model), known=None)
    facts = extracted_facts(source)
    if facts is not None and facts.roles.get("bag") in source.columns:
        # Bags may be recordings in one table, and stretches of them in another.
        remembered = replace(remembered, bag=facts.roles["bag"])
    # In their order, and looked up at once.
    present = dict.fromkeys(source.columns)
    for role in ("labels", "unknown", "media", "start", "end"):
        column = getattr(given, role)
        if present and column is not None:
            check_column(source.path, column, present, role)
        if present and getattr(remembered, role) not in present:
            remembered = replace(remembered, **{role: None})
    # Seconds are carried, so that they do not become features: that is no other role.
    seconds = {remembered.start, remembered.end}
    given = replace(given, carry=tuple(name for name in given.carry if name not in seconds))
    taken = {column for _, column in given.columns()}
    carried = tuple(name for name in remembered.carry if name in present and name not in taken)
    roles = replace(remembered, carry=carried).overridden_by(given)
    if not use_labels:
        unread = {roles.labels, roles.unknown, "labels", *(roles.label_columns or ())} - {None}
        roles = replace(roles, labels=None, unknown=None, label_table=None, label_columns=None)
        taken = {column for _, column in roles.columns()}
        unread = (unread - taken) & set(present)
        roles = replace(roles, carry=(*roles.carry, *sorted(unread)))
    return roles


def _check_network(model: Any, source: Source) -> None:
    """Raise an error if the features of a table are numbers of another network than the model's."""
    found = extraction_of(source)
    wanted = network_of(getattr(model, "extraction_", None))
    check(
        found is None or not wanted or are_same_networks(wanted, network_of(found)),
        f"{source.path} holds numbers of {described_network(network_of(found))}, and the model was "
        f"fitted to those of {described_network(wanted)}: extract again with that network.",
    )


def remembered_roles(model: Any) -> Roles:
    """Return the roles of columns that a model remembers, its features among them."""
    known: Mapping[str, Any] = getattr(model, "roles_", None) or {}
    remembered = Roles.stored({name: known[name] for name in REMEMBERED if known.get(name)})
    return replace(remembered, features=features_beside(model, remembered.embedding))


def feature_names(model: Any) -> tuple[str, ...] | None:
    """Return the names of the features that a model expects, or None."""
    found = getattr(model, "feature_names_in_", None)
    return None if found is None else tuple(str(name) for name in found)


def features_beside(model: Any, embedding: str | None) -> tuple[str, ...] | None:
    """Return the columns of numbers that a model expects, except the numbers of its vectors."""
    names = feature_names(model)
    if names is None or embedding is None:
        return names
    return tuple(name for name in names if not name.startswith(f"{embedding}["))


def read_for_model(
    model: Any,
    source: Source,
    roles: Roles,
    *,
    use_labels: bool = True,
    corrections: PathLike | None = None,
    remedy: tuple[str, bool] = ("ignore_labels", True),
    progress: Progress | None = None,
) -> tuple[BagTable, LabelSets | None]:
    """Read a table, and its labels in the classes of a model; see `in_classes`.

    The labels are None if the table has none, or they are not wanted. `corrections` are what
    people corrected of the table: see `unbag.corrections`.
    """
    check(
        use_labels or corrections is None,
        f"{argument('corrections')} corrects tags: leave out {argument(*remedy)}, or "
        f"{argument('corrections')}.",
    )
    table = source.read(roles, need_labels=False, progress=progress)
    check_features(model, table)
    if corrections is not None:
        table = corrected(corrections, table, [str(each) for each in model.classes_])
    if table.labels is None or not use_labels:
        return table, None
    tagging = table.roles.tagging
    return table, in_classes(table.labels, model.classes_, table.bags, table.path, remedy, tagging)


def check_features(model: Any, table: BagTable) -> None:
    """Raise an error if a table has other features than a model needs, or in another order."""
    expected = feature_names(model)
    found = table.bags.feature_names
    if expected is not None and found is not None and tuple(map(str, found)) != expected:
        present = set(map(str, found))
        missing = [name for name in expected if name not in present]
        if missing:
            raise DataError(f"{table.path} lacks features that the model needs: {listed(missing)}.")
        raise DataError(f"{table.path} has the features of the model in another order.")


def known_when_fitted(model: Any, source: Source, roles: Roles, info: Mapping[str, Any]) -> Roles:
    """Return roles that also name the labels of instances that the model was told, if it was.

    If the column is not named, it is the one that the model remembers, or ``known_label``: but only
    in a table that the model was fitted to, as far as the `info` of its file says.
    """
    from unbag.tables.annotated import known_label_column

    remembered = (getattr(model, "roles_", None) or {}).get("known")
    is_told = remembered is not None or info.get("known_instance_labels", 0)
    is_same = "source" not in info or source.path.name in (info["source"], info.get("corrections"))
    column = remembered if remembered in source.columns else known_label_column(source)
    if roles.known is not None or column is None or not (is_told and is_same):
        return roles
    if column == (roles.instance_labels or USUAL["instance_labels"]):
        # The model was told the very labels that answers are to be compared with.
        return replace(roles, known=column, instance_labels=None)
    used = {name for role, name in roles.columns() if role != "carry"}
    rest = tuple(name for name in roles.carry if name != column)
    return roles if column in used else replace(roles, known=column, carry=rest)


def without_known(table: BagTable) -> tuple[BagTable, int]:
    """Return a table without the truth of instances that the model was told, and their number."""
    bags = table.bags
    if bags.instance_labels is None or table.known is None:
        return table, n_given(table.known)
    truth = np.array(bags.instance_labels, dtype=object)
    told = [label is not None for label in table.known]
    left_out = [place for place, each in enumerate(told) if each and truth[place] is not None]
    truth[left_out] = None
    bags = Bags(bags.X, bags.offsets, bags.ids, truth, bags.feature_names, bags.rows)
    return replace(table, bags=bags), len(left_out)


def n_given(labels: NDArray[Any] | None) -> int:
    """Count labels of instances that are not None."""
    return 0 if labels is None else sum(each is not None for each in labels)


def without_features(table: BagTable) -> BagTable:
    """Return a table that still knows its bags and rows, in less memory."""
    return replace(table, bags=table.bags.with_features(np.empty((table.bags.n_instances, 0))))


def in_classes(
    labels: LabelSets,
    classes: np.ndarray,
    bags: Any,
    path: PathLike,
    remedy: tuple[str, bool] = ("ignore_labels", True),
    tagging: Tagging = USUAL_TAGGING,
) -> LabelSets:
    """Return the label sets of a table in the classes of a model; a strange label is an error.

    It names the table by its path, and as a remedy the argument by which a caller would do without
    labels of bags. The bags need not be in memory. Labels that stand for groups of classes, as
    `tagging` says, become groups.
    """
    labels = labels.with_groups_of(tagging, [str(each) for each in classes])
    # By their text, as files have it; the classes of a model may be numbers.
    column_of = ColumnOfLabel(map(str, classes))
    indicator = np.zeros((len(bags), len(classes)), labels.indicator.dtype)
    # No class is known of bags that were not looked at, whether the table has it or not.
    indicator[labels.open] = -1
    for states, label in zip(labels.indicator.T, labels.classes, strict=True):
        if (column := column_of[str(label)]) >= 0:
            indicator[:, column] = states
        elif (states == 1).any():
            bag = f"{words().bag} {bags.ids[(states == 1).argmax()]}"
            known = listed(sorted(map(str, classes)))
            raise DataError(
                f"{path}: {bag} has the unknown label {str(label)!r}; the model knows {known}. "
                f"Correct the label, fit again with it, or use {argument(*remedy)}."
                f"{suggestion(str(label), list(map(str, classes)))}"
            )
    groups = labels.groups
    if groups is not None:
        columns = [column_of[str(label)] for label in labels.classes]
        # A group that may have been a class that the model does not know says nothing.
        is_known = np.array(columns) >= 0
        groups = groups.chosen(~groups.any_of(np.broadcast_to(~is_known, labels.shape)))
        groups = groups.in_columns(columns, len(classes))
    return LabelSets(indicator, classes, labels.open, groups)
