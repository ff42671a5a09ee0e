"""The size of each data set: Table 2 of the paper. Nothing is fitted: it must come out exactly."""

from unbag import datasets

from .experiment import Experiment
from .published import published_figure
from .tables import Table

#: Column of the table, key of the published figure, key of ours, decimals as printed.
COLUMNS = (
    ("classes", "classes", "classes", 0),
    ("features", "dimension", "dimension", 0),
    ("bags", "bags", "bags", 0),
    ("instances", "instances", "instances", 0),
    ("instances per bag", "instances_per_bag", "instances_per_bag", 1),
    ("labels per bag", "labels_per_bag", "classes_per_bag", 1),
)


def compared(ours, published, decimals):
    """Write a count beside the published one, both with the decimals that were printed.

    Returns
    -------
    text : str
        Ours; and in brackets, where there is one, the published figure.
    difference : float or None
        Of the rounded figures.

    Examples
    --------
    >>> compared(4.319, 4.3, 1)
    ('4.3 (4.3)', 0.0)
    >>> compared(16, None, 0)
    ('16', None)
    """
    text = f"{ours:.{decimals}f}"
    if published is None:
        return text, None
    difference = round(float(text) - published, decimals)
    return f"{text} ({published:.{decimals}f})", difference


def size_table(plan):
    """Make the table of sizes."""
    sizes = datasets.describe(plan.data)
    records, body = [], []
    for place, name in enumerate(sizes["name"]):
        row = [name]
        for column, known_as, key, decimals in COLUMNS:
            ours = sizes[key][place]
            published = published_figure("datasets", name).get(known_as)
            text, difference = compared(ours, published, decimals)
            row.append(text)
            records.append(
                {
                    "data": name, "quantity": column, "ours": ours, "published": published,
                    "difference": difference,
                }
            )  # fmt: skip
        body.append(row)
    n_compared = sum(record["published"] is not None for record in records)
    n_equal = sum(record["difference"] == 0 for record in records)
    return Table(
        "datasets",
        "Size of the data sets",
        ["", *(column for column, *_ in COLUMNS)],
        body,
        records,
        [
            f"In brackets: published. {n_equal} of {n_compared} figures agree as printed. The "
            "paper has no row for the union version of HJA bird; it differs from HJA bird in its "
            "labels alone, so all but the labels per bag can be compared. Counted, not drawn: the "
            "same for every seed and level."
        ],
    )


EXPERIMENT = Experiment(
    "datasets",
    "classes, features, bags, instances and labels of each data set",
    units=lambda plan, ledger: [],
    present=lambda plan, ledger: [size_table(plan)],
)
