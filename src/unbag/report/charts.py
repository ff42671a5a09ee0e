"""Small charts as SVG, in the colours of the page."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from unbag._messages import words

WIDTH, HEIGHT = 420, 220
RIGHT, TOP, BOTTOM = 16, 12, 40
#: Room for the name of the vertical axis, and for each character of its ticks.
NAME_WIDTH, CHARACTER_WIDTH, TICK_GAP = 22, 6.6, 6
MOST_TICKS = 6
#: Larger values are written with an exponent.
LARGEST_IN_FULL = 1e12


def number(value: float) -> str:
    """Format a number with as few digits as necessary.

    Examples
    --------
    >>> number(0.25), number(1200.0), number(-3.14159)
    ('0.25', '1,200', '-3.14')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


class Axis(NamedTuple):
    """An axis: its ends, and its ticks at round numbers.

    The tick labels have as many digits as necessary to distinguish them.
    """

    name: str
    low: float
    high: float
    ticks: list[float]
    texts: list[str]

    def share(self, value: float) -> float:
        """Return the position of a value between the ends: 0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)


def axis(
    name: str, low: float, high: float, *, whole: bool = False, ends_at_ticks: bool = False
) -> Axis:
    """Choose ticks at round numbers for values from low to high.

    With `whole`, ticks are integers. With `ends_at_ticks`, the axis is extended to the next ticks.
    """
    # No ticks between values that only differ by rounding.
    least = 1e-9 * max(abs(low), abs(high)) or 1e-9
    if high - low < least:
        margin = 0.1 * max(abs(low), abs(high)) or 1.0
        low, high = low - margin, high + margin
    step = round_step((high - low) / (MOST_TICKS - 1))
    if whole:
        step = max(step, 1.0)
    first, last = low / step, high / step
    first = math.floor(first + 1e-6) if ends_at_ticks else math.ceil(first - 1e-6)
    last = math.ceil(last - 1e-6) if ends_at_ticks else math.floor(last + 1e-6)
    ticks = [count * step for count in range(first, last + 1)]
    if ends_at_ticks:
        low, high = ticks[0], ticks[-1]
    digits = max(0, -math.floor(math.log10(step) + 1e-6))
    texts = [
        f"{tick:,.{digits}f}" if abs(tick) < LARGEST_IN_FULL else f"{tick:.6g}" for tick in ticks
    ]
    return Axis(name, low, high, ticks, texts)


def round_step(least: float) -> float:
    """Return the smallest of ..., 0.1, 0.2, 0.5, 1, 2, 5, 10, ... that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


class Axes:
    """Axes of a chart, which map data to positions. Screen readers read the title."""

    def __init__(self, across: Axis, up: Axis, title: str):
        self.across: Axis = across
        self.up: Axis = up
        self.title: str = title
        self.shapes: list[str] = []
        widest = max(map(len, up.texts), default=0)
        self.left: float = NAME_WIDTH + CHARACTER_WIDTH * widest + TICK_GAP

    def x(self, value: float) -> float:
        """Return the place of a value from left to right."""
        return self.left + (WIDTH - self.left - RIGHT) * self.across.share(value)

    def y(self, value: float) -> float:
        """Return the place of a value from top to bottom."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.up.share(value)

    def svg(self) -> str:
        """Write the chart."""
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        parts = [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self.title)}">'
        ]
        for tick, text in zip(self.up.ticks, self.up.texts, strict=True):
            y = self.y(tick)
            parts.append(f'<path class="grid" d="M{self.left:.1f} {y:.1f}H{right}"/>')
            parts.append(
                f'<text x="{self.left - TICK_GAP:.1f}" y="{y + 4:.1f}" class="tick end">'
                f"{text}</text>"
            )
        for tick, text in zip(self.across.ticks, self.across.texts, strict=True):
            x = self.x(tick)
            parts.append(f'<path class="axis" d="M{x:.1f} {bottom}v4"/>')
            parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" class="tick mid">{text}</text>')
        parts.append(f'<path class="axis" d="M{self.left:.1f} {TOP}V{bottom}H{right}"/>')
        middle = (self.left + right) / 2
        parts.append(
            f'<text x="{middle:.1f}" y="{HEIGHT - 6}" class="name mid">'
            f"{escape(self.across.name)}</text>"
        )
        turned = f"translate(12 {(TOP + bottom) / 2}) rotate(-90)"
        parts.append(f'<text transform="{turned}" class="name mid">{escape(self.up.name)}</text>')
        return "".join([*parts, *self.shapes, "</svg>"])


def line_chart(values: Sequence[float], *, x_label: str, y_label: str, title: str) -> str:
    """Draw values as a line against their position, beginning with 1."""
    across = axis(x_label, 1, max(len(values), 2), whole=True)
    axes = Axes(across, axis(y_label, min(values), max(values), ends_at_ticks=True), title)
    points = " ".join(
        f"{axes.x(place):.1f},{axes.y(value):.1f}" for place, value in enumerate(values, start=1)
    )
    axes.shapes.append(f'<polyline class="line" points="{points}"/>')
    return axes.svg()


def histogram(
    counts: Sequence[int], edges: Sequence[float], *, x_label: str, y_label: str, title: str
) -> str:
    """Draw a histogram."""
    up = axis(y_label, 0, max(*counts, 1), whole=True, ends_at_ticks=True)
    axes = Axes(axis(x_label, edges[0], edges[-1]), up, title)
    for count, left, right in zip(counts, edges[:-1], edges[1:], strict=True):
        x, width = axes.x(left) + 1, axes.x(right) - axes.x(left) - 2
        y = axes.y(count)
        axes.shapes.append(
            f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{HEIGHT - BOTTOM - y:.1f}"><title>{number(left)} to {number(right)}: '
            f"{number(count)}</title></rect>"
        )
    return axes.svg()


def calibration_chart(
    confidence: Sequence[float], accuracy: Sequence[float], counts: Sequence[int], *, title: str
) -> str:
    """Draw how often labels are right against how sure the model is; the diagonal is ideal.

    Bins without instances are left out.
    """
    axes = Axes(axis("probability", 0, 1), axis("share that is right", 0, 1), title)
    axes.shapes.append(
        f'<path class="ideal" d="M{axes.x(0):.1f} {axes.y(0):.1f}'
        f'L{axes.x(1):.1f} {axes.y(1):.1f}"/>'
    )
    largest = max(max(counts), 1)
    for x, y, count in zip(confidence, accuracy, counts, strict=True):
        if count:
            radius = 3 + 7 * (count / largest) ** 0.5
            axes.shapes.append(
                f'<circle class="point" cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" '
                f'r="{radius:.1f}"><title>{number(count)} {words().instances}: '
                f"probability {x:.2f}, right {y:.2f}</title></circle>"
            )
    return axes.svg()
