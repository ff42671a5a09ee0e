"""Small charts as SVG text, which follow the colours of the page they stand in."""

from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 420, 220
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 40


def number(value: float) -> str:
    """Write a number with as few digits as it takes.

    Examples
    --------
    >>> number(0.25), number(1200.0), number(-3.14159)
    ('0.25', '1,200', '-3.14')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


class Frame:
    """Axes of a chart: from data to places on the picture.

    Parameters
    ----------
    x_range, y_range : (float, float)
    x_label, y_label : str
    title : str
        Read out to those who cannot see the chart.
    """

    def __init__(
        self,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        x_label: str,
        y_label: str,
        title: str,
    ):
        self.x_range: tuple[float, float] = x_range
        self.y_range: tuple[float, float] = y_range
        self.labels: tuple[str, str] = (x_label, y_label)
        self.title: str = title
        self.shapes: list[str] = []

    def x(self, value: float) -> float:
        """Return the place of a value from left to right."""
        low, high = self.x_range
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / ((high - low) or 1)

    def y(self, value: float) -> float:
        """Return the place of a value from top to bottom."""
        low, high = self.y_range
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / ((high - low) or 1)

    def svg(self) -> str:
        """Write the chart."""
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        parts = [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self.title)}">',
            f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>',
        ]
        for place in range(5):
            share = place / 4
            x = self.x_range[0] + share * (self.x_range[1] - self.x_range[0])
            y = self.y_range[0] + share * (self.y_range[1] - self.y_range[0])
            parts.append(
                f'<text x="{self.x(x):.1f}" y="{bottom + 15}" class="tick mid">{number(x)}</text>'
            )
            parts.append(
                f'<text x="{LEFT - 6}" y="{self.y(y) + 4:.1f}" class="tick end">{number(y)}</text>'
            )
            if place:
                parts.append(f'<path class="grid" d="M{LEFT} {self.y(y):.1f}H{right}"/>')
        x_label, y_label = map(escape, self.labels)
        middle = (LEFT + right) / 2
        parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" class="name mid">{x_label}</text>')
        turned = f"translate(11 {(TOP + bottom) / 2}) rotate(-90)"
        parts.append(f'<text transform="{turned}" class="name mid">{y_label}</text>')
        return "".join([*parts, *self.shapes, "</svg>"])


def line_chart(values: Sequence[float], *, x_label: str, y_label: str, title: str) -> str:
    """Draw values against their number, from 1 on.

    Parameters
    ----------
    values : sequence of float
        At least one.

    Returns
    -------
    str
    """
    low, high = min(values), max(values)
    frame = Frame((1, max(len(values), 2)), (low, high), x_label, y_label, title)
    points = " ".join(
        f"{frame.x(place):.1f},{frame.y(value):.1f}" for place, value in enumerate(values, start=1)
    )
    frame.shapes.append(f'<polyline class="line" points="{points}"/>')
    return frame.svg()


def histogram(
    counts: Sequence[int], edges: Sequence[float], *, x_label: str, y_label: str, title: str
) -> str:
    """Draw counts as bars.

    Parameters
    ----------
    counts : sequence of int of length n
    edges : sequence of float of length n + 1

    Returns
    -------
    str
    """
    frame = Frame((edges[0], edges[-1]), (0, max(max(counts), 1)), x_label, y_label, title)
    for count, left, right in zip(counts, edges[:-1], edges[1:], strict=True):
        x, width = frame.x(left) + 1, frame.x(right) - frame.x(left) - 2
        y = frame.y(count)
        frame.shapes.append(
            f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{HEIGHT - BOTTOM - y:.1f}"><title>{number(left)} to {number(right)}: '
            f"{number(count)}</title></rect>"
        )
    return frame.svg()


def calibration_chart(
    confidence: Sequence[float], accuracy: Sequence[float], counts: Sequence[int], *, title: str
) -> str:
    """Draw how often labels are right against how sure the model is; the diagonal is ideal.

    Parameters
    ----------
    confidence, accuracy, counts : sequences of the same length
        Bins without instances are left out.

    Returns
    -------
    str
    """
    frame = Frame((0, 1), (0, 1), "probability", "share that is right", title)
    frame.shapes.append(
        f'<path class="ideal" d="M{frame.x(0)} {frame.y(0)}L{frame.x(1)} {frame.y(1)}"/>'
    )
    largest = max(max(counts), 1)
    for x, y, count in zip(confidence, accuracy, counts, strict=True):
        if count:
            radius = 3 + 7 * (count / largest) ** 0.5
            frame.shapes.append(
                f'<circle class="point" cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" '
                f'r="{radius:.1f}"><title>{number(count)} instances: probability {x:.2f}, '
                f"right {y:.2f}</title></circle>"
            )
    return frame.svg()
