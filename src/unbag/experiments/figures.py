"""How figures look, and how they are written: readable, and without colour too."""

from dataclasses import dataclass

from unbag._files import atomic_write

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
    """A drawing and the name of its files.

    Parameters
    ----------
    name : str
    title : str
    draw : callable
        Takes nothing and returns a matplotlib figure.
    """

    name: str
    title: str
    draw: object

    def save(self, folder):
        """Write it as PNG and SVG, the same bytes for the same data."""
        import matplotlib

        matplotlib.use("agg")
        with matplotlib.rc_context({"svg.hashsalt": self.name, "svg.fonttype": "none"}):
            figure = self.draw()
            with atomic_write(folder / f"{self.name}.png") as file:
                figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
            with atomic_write(folder / f"{self.name}.svg") as file:
                figure.savefig(file, format="svg", metadata={"Date": None})


def panels(n_panels, *, n_columns=2, size=(4.6, 3.4)):
    """Make a figure of some panels, in rows.

    Returns
    -------
    figure, axes
        A matplotlib figure and a list of `n_panels` axes.
    """
    from matplotlib.figure import Figure as Canvas

    n_columns = min(n_columns, n_panels)
    n_rows = -(-n_panels // n_columns)
    canvas = Canvas(figsize=(size[0] * n_columns, size[1] * n_rows), layout="constrained")
    axes = list(canvas.subplots(n_rows, n_columns, squeeze=False).ravel())
    for unused in axes[n_panels:]:
        unused.remove()
    for axis in axes[:n_panels]:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#dddddd", linewidth=0.7)
        axis.set_axisbelow(True)
    return canvas, axes[:n_panels]


def style_of(index):
    """Return colour, marker and dashes for a line, by its place."""
    colour, marker, dashes = STYLES[index % len(STYLES)]
    return {"color": colour, "marker": marker, "linestyle": dashes, "markersize": 5}


def line_panels(
    panels_of_lines, *, x_label, y_label, logarithmic=False, y_logarithmic=False, n_columns=2
):
    """Draw one panel of lines for each data set.

    Parameters
    ----------
    panels_of_lines : dict of str to (dict of str to (list, list))
        Title to lines; name of a line to its x and y.
    x_label, y_label : str
    logarithmic, y_logarithmic : bool
        Whether x is, and whether y is.

    Returns
    -------
    matplotlib figure
    """
    figure, axes = panels(len(panels_of_lines), n_columns=n_columns)
    places = {}
    for axis, (title, lines) in zip(axes, panels_of_lines.items(), strict=True):
        axis.set_title(title)
        for name, (x, y) in lines.items():
            place = places.setdefault(name, len(places))
            axis.plot(x, y, label=name, **style_of(place))
        axis.set_xlabel(x_label)
        axis.set_ylabel(y_label)
        if logarithmic:
            axis.set_xscale("log")
        if y_logarithmic:
            axis.set_yscale("log")
    handles = {}
    for axis in axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=min(4, len(handles))
    )
    return figure


def beside_published(groups, *, x_label):
    """Draw our figures (filled, with their deviation) and the published ones (hollow).

    Parameters
    ----------
    groups : dict of str to (dict of str to (ours, std, published))
        Data set to methods; deviation and published figure may be None.
    x_label : str

    Returns
    -------
    matplotlib figure
    """
    n_rows = max(len(group) for group in groups.values())
    figure, axes = panels(len(groups), size=(4.6, 0.7 + 0.33 * n_rows))
    for axis, (title, group) in zip(axes, groups.items(), strict=True):
        axis.set_title(title)
        for place, (ours, std, known) in enumerate(group.values()):
            colour = STYLES[0][0]
            axis.errorbar(ours, place, xerr=std, fmt="o", color=colour, capsize=2, label="unbag")
            if known is not None:
                axis.plot(
                    known, place, "D", color=STYLES[1][0], fillstyle="none", label="published"
                )
        axis.set_yticks(range(len(group)), list(group))
        axis.invert_yaxis()
        axis.grid(axis="x", color="#dddddd", linewidth=0.7)
        axis.set_xlabel(x_label)
    handles = dict(
        pair[::-1] for axis in axes for pair in zip(*axis.get_legend_handles_labels(), strict=True)
    )
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
    return figure
