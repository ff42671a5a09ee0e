"""A window of a signal for a report: its channels as lines, with their surroundings."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag._files import TABLES, PathLike
from unbag.extract.descriptions import vectors_of
from unbag.extract.layouts import SignalLayout, rows_of
from unbag.extract.windows import is_blank, is_measured, longest_step, seconds_of
from unbag.tables.table import open_source

from .clips import Place

# Length of the surroundings on each side, as a share of the window.
AROUND = 1.0
# Strips of channels that are drawn, lines of each, and points of a line.
MOST_STRIPS, MOST_LINES, MOST_POINTS = 3, 3, 40
LEFT, TOP, WIDTH, HEIGHT, SPACE, BOTTOM = 30, 4, 270, 44, 14, 16


def layout_of(settings: Mapping[str, Any]) -> SignalLayout | None:
    """Return the layout of tables of signals, by the settings that a table of windows keeps."""
    try:
        return SignalLayout(
            str(settings["time"]), str(settings["time_unit"]),
            tuple(map(str, settings["channels"])), settings["recording"],
        )  # fmt: skip
    except (KeyError, TypeError):
        return None


def traces(
    path: PathLike, layout: SignalLayout, wanted: Sequence[tuple[str | None, Place]]
) -> list[str | None]:
    """Draw windows of a table of signals, in one pass over it."""
    found: list[list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = [[] for _ in wanted]
    with open_source(path, TABLES) as source:
        layout.check(source)
        first = _first_stamps(source, layout)
        for rows in rows_of(source, layout, "", with_values=True):
            codes = {name: code for code, name in enumerate(rows.names)}
            spans = {}
            for name, code in codes.items():
                own = (rows.codes == code) & ~is_blank(rows.times)
                times = (
                    rows.times[own] - first.get(name, 0) if layout.has_stamps else rows.times[own]
                )
                spans[name] = seconds_of(times), rows.values[own]
            for number, (recording, place) in enumerate(wanted):
                name = recording if layout.recording is not None else ""
                if name not in spans:
                    continue
                times, values = spans[name]
                around = AROUND * (place.end - place.start)
                own = (times >= place.start - around) & (times < place.end + around)
                if own.any():
                    found[number].append((times[own], values[own]))
    drawings: list[str | None] = []
    for parts, (_, place) in zip(found, wanted, strict=True):
        if not parts:
            drawings.append(None)
            continue
        times, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        drawings.append(_drawing(times, values, layout, place))
    return drawings


def _first_stamps(source: Any, layout: SignalLayout) -> dict[str, int]:
    """Return the earliest time stamp of each recording: seconds count from there."""
    found: dict[str, int] = {}
    if not layout.has_stamps:
        return found
    for rows in rows_of(source, layout, "", with_values=False):
        for code, name in enumerate(rows.names):
            times = rows.times[(rows.codes == code) & ~is_blank(rows.times)]
            if len(times):
                found[name] = min(int(times.min()), found.get(name, int(times.min())))
    return found


def strips_of(channels: Sequence[str]) -> list[list[int]]:
    """Return which channels are drawn together: those of a vector; at most `MOST_STRIPS`."""
    strips = [list(columns) for columns in vectors_of(channels).values()]
    taken = {place for strip in strips for place in strip}
    strips += [[place] for place in range(len(channels)) if place not in taken]
    return sorted(strips)[:MOST_STRIPS]


def _drawing(times: Any, values: Any, layout: SignalLayout, place: Place) -> str:
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    length = place.end - place.start
    begin, end = place.start - AROUND * length, place.end + AROUND * length
    strips = strips_of(layout.channels)
    height = TOP + len(strips) * (HEIGHT + SPACE) + BOTTOM

    def x(time: Any) -> Any:
        return LEFT + WIDTH * (time - begin) / (end - begin)

    step = float(np.median(np.diff(times))) if len(times) > 1 else length
    longest = longest_step(step, length)
    parts = [
        f'<svg class="trace" viewBox="0 0 {LEFT + WIDTH + 8} {height}" role="img" '
        f'aria-label="Signal, from {begin:.1f} to {end:.1f} s">'
    ]
    bottom = TOP + len(strips) * (HEIGHT + SPACE)
    parts.append(
        f'<rect class="window" x="{x(place.start):.1f}" y="{TOP}" '
        f'width="{max(x(place.end) - x(place.start), 1):.1f}" height="{bottom - TOP}"/>'
    )
    for number, strip in enumerate(strips):
        top = TOP + SPACE + number * (HEIGHT + SPACE)
        own = values[:, strip[:MOST_LINES]]
        is_there = is_measured(own)
        if not is_there.any():
            continue
        low, high = float(own[is_there].min()), float(own[is_there].max())
        room = (high - low) or 1.0
        names = "".join(
            f'<tspan class="name-{place + 1}" dx="4">{escape(layout.channels[channel])}</tspan>'
            for place, channel in enumerate(strip[:MOST_LINES])
        )
        parts.append(f'<text x="{LEFT - 4}" y="{top - 3}" class="right">{names}</text>')
        for line in range(own.shape[1]):
            kept = is_there[:, line]
            heights = top + HEIGHT * (1 - (own[kept, line] - low) / room)
            path = _path(x(times[kept]), heights, times[kept], longest)
            parts.append(f'<path class="line-{line + 1}" transform="scale(.5)" d="{path}"/>')
        for value, at in ((high, top + 7), (low, top + HEIGHT)):
            parts.append(f'<text x="{LEFT - 3}" y="{at}" class="left">{value:.3g}</text>')
    for time in (place.start, place.end):
        parts.append(f'<text x="{x(time):.1f}" y="{height - 4}">{time:.2f}</text>')
    parts.append(f'<text x="{LEFT - 3}" y="{height - 4}" class="left">s</text></svg>')
    return "".join(parts)


def _path(x: Any, y: Any, times: Any, longest: float) -> str:
    """Return a line through points, broken at gaps; if there are many, through extremes only."""
    if len(x) > 2 * MOST_POINTS:
        bins = np.array_split(np.arange(len(x)), MOST_POINTS)
        kept = np.unique([[each[y[each].argmin()], each[y[each].argmax()]] for each in bins])
        # Neighbours of two bins may be this far apart.
        longest += 2 * float(np.median([times[each[-1]] - times[each[0]] for each in bins]))
        x, y, times = x[kept], y[kept], times[kept]
    is_new = np.append(True, np.diff(times) > longest)[: len(x)]
    # Steps of half a pixel, which take the least room.
    points = np.round(2 * np.column_stack([x, y])).astype(int)
    steps = np.diff(points, axis=0, prepend=points[:1])
    return "".join(
        f"M{point[0]} {point[1]}" if new else f"l{step[0]} {step[1]}"
        for point, step, new in zip(points.tolist(), steps.tolist(), is_new, strict=True)
    )
