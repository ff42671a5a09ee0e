"""A bag as reports and reviews show it: its tags, and where its instances lie in time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbag.groups import Groups
from unbag.labels import LabelSets
from unbag.tables.answers import STATE_NAMES
from unbag.tagging import group_name

from .clips import Place

#: Size of a time line in its own units, and the margin above and below.
WIDE, HIGH, EDGE = 1000, 72, 8
#: Instances in a time line, and how wide and high each is at least.
MOST_MARKS, LEAST_MARK = 2000, 3
#: Classes of a group that are written out.
MOST_MEMBERS = 3


class GroupTag(NamedTuple):
    """A tag that names several classes."""

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
    """Return the tags of a bag that name several classes."""
    found = []
    of_bag: list[list[int]] = [] if groups is None else groups[b]
    for columns in of_bag:
        members = frozenset(names[c] for c in columns)
        name = (group_names or {}).get(members) or group_name(members)
        found.append(GroupTag(name, tuple(columns)))
    return found


def group_text(name: str, members: Sequence[str]) -> str:
    """Return the classes of a group for people to read, or its name if it has its own."""
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
    """Describe the tags of a bag: present ones first, then unknown, then absent ones."""
    groups, also = list(groups), set(also)
    grouped = {c for group in groups for c in group.columns}
    is_any = is_open and not (states == 0).any()
    found = []
    for c, (name, state) in enumerate(zip(names, states.tolist(), strict=True)):
        is_doubtful = state == -1 and not is_any and c not in grouped
        # A tag that was struck out can be put back.
        if state == 1 or is_doubtful or (state == 0 and name in also):
            found.append((name, name, state, [name]))
    for group in groups:
        members = [names[c] for c in group.columns]
        found.append((group.name, group_text(group.name, members), group.state, members))
    found.sort(key=lambda each: (1, -1, 0).index(each[2]))
    return [
        {"label": label, "text": text, "state": STATE_NAMES[state], "members": members,
         "expected": round(sum(float(expected.get(each, 0.0)) for each in members), 2)}
        for label, text, state, members in found
    ]  # fmt: skip


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
    """Draw where the instances of a bag lie in their recording; None if they have no places."""
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
