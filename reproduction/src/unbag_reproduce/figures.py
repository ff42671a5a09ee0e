"""How figures look, and how they are written: readable, and without colour too."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unbag._files import atomic_write
from unbag._messages import require

from .tables import in_names
from .unit import Values

#: Okabe and Ito's colours, which colour-blind people can tell apart; a marker and a dash each,
#: for those who print in grey.
STYLES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", (0, (5, 1))),
    ("#56B4E9", "P", (0, (3, 1, 1, 1))),
    ("#000000", "X", (0, (1, 1))),
    ("#777777", "*", (0, (7, 2))),
)


@dataclass(frozen=True)
class Figure:
    """A drawing and the name of its files."""

    name: str
    title: str
    draw: Callable[[], Any]

    def save(self, folder: Path) -> None:
        """Write it as PNG, the same bytes for the same data."""
        matplotlib = require("matplotlib")
        matplotlib.use("agg")
        with atomic_write(folder / f"{self.name}.png") as file:
            self.draw().savefig(file, format="png", dpi=150, metadata={"Software": None})


def panels(
    n_panels: int, *, n_columns: int = 2, size: tuple[float, float] = (4.6, 3.4)
) -> tuple[Any, list[Any]]:
    """Make a figure of some panels, in rows."""
    from matplotlib.figure import Figure as Canvas

    n_columns = min(n_columns, n_panels)
    n_rows = -(-n_panels // n_columns)
    canvas = Canvas(figsize=(size[0] * n_columns, size[1] * n_rows), layout="constrained")
    # Not in the last places of the last row, where nothing is to be drawn.
    axes = [canvas.add_subplot(n_rows, n_columns, place + 1) for place in range(n_panels)]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#dddddd", linewidth=0.7)
        axis.set_axisbelow(True)
    return canvas, axes


def legend_below(figure: Any, n_columns: int) -> None:
    """Put one legend of all panels below them."""
    handles = {}
    for axis in figure.axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center",
        ncols=min(n_columns, len(handles)),
    )  # fmt: skip


def curve_figure(
    name: str,
    title: str,
    records: list[Values],
    *,
    line: str,
    x: str,
    x_label: str,
    y_label: str,
    panel: str | Callable[[Values], str] = "data",
    y: str = "ours",
    logarithmic: bool = False,
    y_logarithmic: bool = False,
    marked: bool = False,
) -> Figure:
    """Make a figure of lines, from one record for each of their points."""
    lines: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for record in records:
        where = panel(record) if callable(panel) else record[panel]
        points = lines.setdefault(where, {}).setdefault(record[line], [])
        points.append((record[x], record[y]))

    def draw():
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

        figure, axes = panels(len(lines))
        places = {}
        for axis, (heading, of_panel) in zip(axes, lines.items(), strict=True):
            for label, points in of_panel.items():
                place = places.setdefault(label, len(places)) % len(STYLES)
                colour, marker, dash = STYLES[place]
                horizontal, vertical = zip(*points, strict=True)
                axis.plot(
                    horizontal, vertical, label=label, markersize=5, color=colour, marker=marker,
                    linestyle=dash,
                )  # fmt: skip
            axis.set(
                title=in_names(heading), xlabel=x_label, ylabel=y_label,
                xscale="log" if logarithmic else "linear",
                yscale="log" if y_logarithmic else "linear",
            )  # fmt: skip
            if marked and logarithmic:
                axis.set_xticks(horizontal, [str(each) for each in horizontal])
                axis.set_xticks([], minor=True)
            if marked and y_logarithmic:
                axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
                axis.yaxis.set_minor_formatter(NullFormatter())
        legend_below(figure, 4)
        return figure

    return Figure(name, title, draw)


def comparison_figure(
    name: str,
    title: str,
    records: list[Values],
    *,
    x_label: str,
    row: str = "method",
    published: str = "published",
) -> Figure:
    """Make a figure of ours (filled, with deviation) and the published figures (hollow)."""
    groups: dict[str, list[Values]] = {}
    for record in records:
        groups.setdefault(record["data"], []).append(record)

    def draw():
        n_rows = max(len(group) for group in groups.values())
        figure, axes = panels(len(groups), size=(4.6, 0.7 + 0.33 * max(n_rows, 4)))
        for axis, (data, group) in zip(axes, groups.items(), strict=True):
            for place, record in enumerate(group):
                axis.errorbar(
                    record["ours"], place, xerr=record.get("std"), fmt="o", color=STYLES[0][0],
                    capsize=2, label="unbag",
                )  # fmt: skip
                if record[published] is not None:
                    axis.plot(
                        record[published], place, "D", color=STYLES[1][0], fillstyle="none",
                        label="published",
                    )  # fmt: skip
            axis.set_yticks(range(len(group)), [record[row] for record in group])
            axis.set_ylim(len(group) - 0.5, -0.5)
            axis.grid(axis="x", color="#dddddd", linewidth=0.7)
            axis.set(title=in_names(data), xlabel=x_label)
        legend_below(figure, 2)
        return figure

    return Figure(name, title, draw)
