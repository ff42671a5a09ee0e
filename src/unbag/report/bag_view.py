"""A bag as reports and reviews show it: its tags, and where its instances lie in time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbag.groups import Groups
from unbag.io.answers import STATE_NAMES
from unbag.labels import LabelSets
from unbag.tagging import group_name

from .clips import Place

#: A time line in its own units, and the edge above and below what has no frequencies.
WIDE, HIGH, EDGE = 1000, 72, 8
#: Instances in a time line, and how wide and high each is at least.
MOST_MARKS, LEAST_MARK = 2000, 3
#: Classes of a group that are written out.
MOST_MEMBERS = 3


class GroupTag(NamedTuple):
    """A tag that names several classes.

    Attributes
    ----------
    name : str
        As the table has it, such as ``owl/hawk`` or a genus.
    columns : tuple of int
    state : int
        1 where one of them is present, 0 where none is, -1 where that is unknown.
    """

    name: str
    columns: tuple[int, ...]
    state: int = 1


class Timeline(NamedTuple):
    """Where instances lie in their recording: a drawing, its seconds, and how many are drawn."""

    drawing: str
    seconds: float
    n_instances: int


def group_tags(
    groups: Groups | None,
    b: int,
    names: Sequence[str],
    group_names: Mapping[frozenset[str], str] | None = None,
) -> list[GroupTag]:
    """Return the tags of a bag that name several classes.

    Parameters
    ----------
    groups : Groups or None
    b : int
    names : sequence of str
        Of the classes.
    group_names : mapping of frozenset of str to str, optional
        What the table calls groups, by their classes.
    """
    found = []
    of_bag: list[list[int]] = [] if groups is None else groups[b]
    for columns in of_bag:
        members = frozenset(names[c] for c in columns)
        name = (group_names or {}).get(members) or group_name(members)
        found.append(GroupTag(name, tuple(columns)))
    return found


def group_text(name: str, members: Sequence[str]) -> str:
    """Return what people read: the classes of a group, or its name if it has one of its own.

    Examples
    --------
    >>> group_text("owl/hawk", ["hawk", "owl"]), group_text("raptor", ["hawk", "owl"])
    ('hawk or owl', 'raptor')
    """
    if len(members) > MOST_MEMBERS or not all(each in name for each in members):
        return name
    return " or ".join(members)


def tag_views(
    states: NDArray[np.integer],
    names: Sequence[str],
    expected: Mapping[str, float],
    *,
    groups: Iterable[GroupTag] = (),
    is_open: bool = False,
    also: Iterable[str] = (),
) -> list[dict[str, Any]]:
    """Describe the tags of a bag: those that are present first, then those nobody knows of.

    Parameters
    ----------
    states : ndarray of int of shape (n_classes,)
        1, 0 and -1, as in `LabelSets`.
    names : sequence of str
    expected : mapping of str to float
        How many instances of each class there are, by the model.
    groups : iterable of GroupTag
    is_open : bool
        Whether nobody has looked at the bag: then it may hold every class, and that is not listed.
    also : iterable of str
        Absent classes that are shown all the same.
    """
    groups = list(groups)
    grouped = {c for group in groups for c in group.columns}
    is_any = is_open and not (states == 0).any()
    unknown = [] if is_any else np.flatnonzero(states == -1).tolist()
    also = set(also)
    struck = [c for c in np.flatnonzero(states == 0).tolist() if names[c] in also]

    def of_class(c: int) -> dict[str, Any]:
        return _view(names[c], names[c], int(states[c]), [names[c]], expected)

    def of_groups(state: int) -> list[dict[str, Any]]:
        found = []
        for group in groups:
            members = [names[c] for c in group.columns]
            if group.state == state:
                text = group_text(group.name, members)
                found.append(_view(group.name, text, state, members, expected))
        return found

    present = [of_class(c) for c in np.flatnonzero(states == 1).tolist()]
    doubtful = [of_class(c) for c in unknown if c not in grouped]
    # What somebody has struck out can be put back.
    absent = [of_class(c) for c in struck]
    return [*present, *of_groups(1), *doubtful, *of_groups(-1), *absent, *of_groups(0)]


def _view(
    label: str, text: str, state: int, members: list[str], expected: Mapping[str, float]
) -> dict[str, Any]:
    return {
        "label": label, "text": text, "state": STATE_NAMES[state], "members": members,
        "expected": round(sum(float(expected.get(each, 0.0)) for each in members), 2),
    }  # fmt: skip


def views_of(
    labels: LabelSets,
    b: int,
    expected: Mapping[str, float],
    group_names: Mapping[frozenset[str], str] | None = None,
) -> list[dict[str, Any]]:
    """Describe the tags of one bag of label sets: see `tag_views`."""
    names = [str(name) for name in labels.classes.tolist()]
    return tag_views(
        labels.indicator[b], names, expected, is_open=bool(labels.open[b]),
        groups=group_tags(labels.groups, b, names, group_names),
    )  # fmt: skip


def timeline(places: Sequence[Any]) -> Timeline | None:
    """Draw where the instances of a bag lie in their recording; None if nobody knows.

    Parameters
    ----------
    places : sequence of Place, Outline or None
        Of the instances of a bag; only a `Place` is in time. If it has frequencies, the mark of an
        instance is as high. The number of an instance in its bag is the mark's ``data-place``.

    Examples
    --------
    >>> found = timeline([Place(0.0, 1.0), None, Place(2.0, 4.0)])
    >>> found.seconds, found.n_instances, found.drawing.count("<rect")
    (4.0, 2, 2)
    """
    spans = [
        (i, each) for i, each in enumerate(places)
        if isinstance(each, Place) and 0 <= each.start < each.end < math.inf
    ][:MOST_MARKS]  # fmt: skip
    if not spans:
        return None
    seconds = max(each.end for _, each in spans)
    top = max((each.high or 0.0 for _, each in spans), default=0.0)

    def y(frequency: float | None, otherwise: float) -> float:
        if frequency is None or top <= 0:
            return otherwise
        return HIGH - EDGE - frequency / top * (HIGH - 2 * EDGE)

    marks = []
    for i, each in spans:
        upper, lower = y(each.high, EDGE), y(each.low, HIGH - EDGE)
        width = max((each.end - each.start) / seconds * WIDE, LEAST_MARK)
        marks.append(
            f'<rect data-place="{i}" x="{each.start / seconds * WIDE:.1f}" y="{upper:.1f}" '
            f'width="{width:.1f}" height="{max(lower - upper, LEAST_MARK):.1f}" rx="2"/>'
        )
    drawing = (
        f'<svg viewBox="0 0 {WIDE} {HIGH}" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(marks)}</svg>"
    )
    return Timeline(drawing, seconds, len(spans))
