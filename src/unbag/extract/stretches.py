"""Bags that are stretches of recordings, and the tags that apply to each of them.

Calls are found in whole recordings; when the table is written, each goes to the bag of its middle.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unbag.tagging import Unknown

#: Start and end in seconds.
Span = tuple[float, float]
Members = frozenset[Any]
#: Tags of a recording by the stretch that they are about; None is the whole recording. Tags that
#: are None are not known.
TagsByStretch = Mapping[Span | None, Members | None]


@dataclass(frozen=True)
class Stretch:
    """A bag that is a stretch of a recording, and its tags; None if they are not known."""

    bag: str
    start: float
    end: float
    tags: Members | None


@dataclass(frozen=True)
class Stretches:
    """How recordings are cut into bags: every `split` seconds, or where their tags begin and end.

    `tags` are those of recordings by name.
    """

    split: float | None
    tags: Mapping[str, TagsByStretch]

    @property
    def are_needed(self) -> bool:
        """Whether bags are anything else than whole recordings."""
        return self.split is not None or any(are_timed(each) for each in self.tags.values())

    def cut(self, name: str, seconds: float) -> list[Stretch]:
        """Cut a recording into bags.

        Without `split`, a bag is a stretch that has tags, or several that overlap. All
        that lies in none of them is one more bag, called like the recording, and comes last.
        """
        given = self.tags.get(name, {})
        if self.split is not None:
            spans = even_spans(seconds, self.split)
        else:
            spans = joined_spans(span for span in given if span is not None)
        # The end of a recording to a millionth of a second is no name.
        digits = 3 if self.split is None else 1
        bags = [
            Stretch(f"{name} {round(start, 3):.10g}-{round(end, digits):.10g}", start, end,
                    tags_within((start, end), given, max(seconds, end)))
            for start, end in spans
        ]  # fmt: skip
        if self.split is None:
            rest = given.get(None)
            bags.append(Stretch(name, 0.0, math.inf, rest if not spans else unsure(rest)))
        return bags


def are_timed(tags: TagsByStretch) -> bool:
    """Return whether tags are about stretches of a recording."""
    return any(span is not None for span in tags)


def n_after(tags: TagsByStretch, seconds: float) -> int:
    """Count the stretches with tags that begin after the end of a recording."""
    return sum(span is not None and span[0] >= seconds for span in tags)


def even_spans(seconds: float, split: float) -> list[Span]:
    """Return stretches of a length; the last one is from half to one and a half times as long.

    Examples
    --------
    >>> even_spans(150.5, 60.0), even_spans(149.0, 60.0)
    ([(0.0, 60.0), (60.0, 120.0), (120.0, 150.5)], [(0.0, 60.0), (60.0, 149.0)])
    """
    n = max(1, math.floor(seconds / split + 0.5))
    return [(place * split, split * (place + 1) if place < n - 1 else seconds)
            for place in range(n)]  # fmt: skip


def joined_spans(spans: Iterable[Span]) -> list[Span]:
    """Return stretches in order, those that overlap as one.

    Examples
    --------
    >>> joined_spans([(5, 9), (0, 3), (2, 4), (9, 10)])
    [(0, 4), (5, 9), (9, 10)]
    """
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def tags_within(span: Span, given: TagsByStretch, seconds: float) -> Members | None:
    """Return the tags of a stretch of a recording, of all that is known of what it overlaps.

    A tag holds in a bag that is at least as long as its own stretch, and has half of it or more. In
    others that it overlaps it is unsure.

    Examples
    --------
    >>> given = {None: frozenset({"owl"}), (58.0, 61.0): frozenset({"wren"})}
    >>> tags_within((0.0, 60.0), given, 120.0) == {"wren", Unknown("owl")}
    True
    >>> tags_within((60.0, 120.0), given, 120.0) == {Unknown("wren"), Unknown("owl")}
    True
    """
    start, end = span
    present: set[Any] = set()
    open_: set[Any] = set()
    is_known = False
    for other, members in given.items():
        first, last = (0.0, seconds) if other is None else (other[0], min(other[1], seconds))
        common, length = min(last, end) - max(first, start), last - first
        if members is None or common < 0 or (common == 0 and not start <= first == last < end):
            continue
        is_known = True
        (present if length / 2 <= common and length <= end - start else open_).update(members)
    return unsure(open_, present) if is_known else None


def unsure(members: Collection[Any] | None, present: Collection[Any] = ()) -> Members | None:
    """Return tags that may or may not be there, with others that are `present`."""
    if members is None:
        return None
    names = {each for each in present if not isinstance(each, Unknown)}
    open_ = {each if isinstance(each, Unknown) else Unknown(each)
             for each in (*members, *(set(present) - names))}  # fmt: skip
    return frozenset(names | {each for each in open_ if each.label not in names})


def bags_of(stretches: list[Stretch], middles: ArrayLike) -> list[str]:
    """Return the bag of each instance, by its middle."""
    bags = np.full(np.shape(middles), len(stretches) - 1)
    for place, each in reversed([*enumerate(stretches)]):
        bags[(np.asarray(middles) >= each.start) & (np.asarray(middles) < each.end)] = place
    return [stretches[place].bag for place in bags.tolist()]
