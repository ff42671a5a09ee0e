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


def number(value: float) -> str:
    """Format a number with as few digits as necessary.

    Examples
    --------
    >>> number(0.25), number(1200.0), number(-3.14159)
    ('0.25', '1,200', '-3.14')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


class Axis(NamedTuple):
    """An axis from 0 to its end, with ticks at round numbers."""

    name: str
    high: float
    ticks: list[float]
    texts: list[str]


def axis(name: str, high: float, *, whole: bool = False) -> Axis:
    """Choose ticks for values from 0 to high; for `whole` numbers, the axis ends at a tick."""
    step = round_step(high / (MOST_TICKS - 1))
    if whole:
        step = max(step, 1.0)
        high = math.ceil(high / step - 1e-6) * step
    ticks = [count * step for count in range(math.floor(high / step + 1e-6) + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-6))
    return Axis(name, high, ticks, [f"{tick:,.{digits}f}" for tick in ticks])


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
        return self.left + (WIDTH - self.left - RIGHT) * (value / self.across.high)

    def y(self, value: float) -> float:
        """Return the place of a value from top to bottom."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / self.up.high)

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


def histogram(
    counts: Sequence[int], edges: Sequence[float], *, x_label: str, y_label: str, title: str
) -> str:
    """Draw a histogram of values from 0 on."""
    axes = Axes(axis(x_label, edges[-1]), axis(y_label, max(*counts, 1), whole=True), title)
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
    axes = Axes(axis("probability", 1), axis("share that is right", 1), title)
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
