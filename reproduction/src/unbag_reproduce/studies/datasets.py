"""The size of each data set: Table 2 of the paper. Nothing is fitted: it must come out exactly."""

from unbag_reproduce.data import load
from unbag_reproduce.plan import Plan, Study
from unbag_reproduce.published import published_figure
from unbag_reproduce.tables import Table, comparison_table

#: Column of the table, key of the published figure, decimals as printed.
COLUMNS = (
    ("classes", "classes", 0),
    ("features", "dimension", 0),
    ("bags", "bags", 0),
    ("instances", "instances", 0),
    ("instances per bag", "instances_per_bag", 1),
    ("labels per bag", "labels_per_bag", 1),
)

#: As many labels as the paper calls many, when it leaves expensive bags out.
MANY = 10


def compared(ours: float, published: float | None, decimals: int) -> tuple[str, float | None]:
    """Write a count next to the published one, both with the decimals that were printed.

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
    return f"{text} ({published:.{decimals}f})", round(float(text) - published, decimals)


def sizes_of(name: str, draw: int) -> dict[str, float]:
    """Return how large a data set is, by the keys of the published figures.

    Examples
    --------
    >>> sizes_of("letter-frost", 0)["bags"]
    144
    """
    bags, y = load(name, draw)
    return {
        "classes": y.shape[1],
        "dimension": bags.n_features,
        "bags": len(bags),
        "instances": bags.n_instances,
        "instances_per_bag": float(bags.sizes.mean()),
        "labels_per_bag": float(y.sum(axis=1).mean()),
    }


def size_table(plan: Plan) -> Table:
    """Make the table of sizes."""
    records, cells = [], {}
    for name in plan.data:
        sizes = sizes_of(name, plan.seed)
        for column, known_as, decimals in COLUMNS:
            ours = sizes[known_as]
            published = published_figure("datasets", name).get(known_as)
            cells[name, column], difference = compared(ours, published, decimals)
            records.append(
                {
                    "data": name, "quantity": column, "ours": ours, "published": published,
                    "difference": difference,
                }
            )  # fmt: skip
    n_compared = sum(record["published"] is not None for record in records)
    n_equal = sum(record["difference"] == 0 for record in records)
    return comparison_table(
        "datasets",
        "Size of the data sets",
        records,
        [
            f"{n_equal} of {n_compared} figures agree as printed. The "
            "paper has no row for the union version of HJA bird; it differs from HJA bird in its "
            "labels alone, so all but the labels per bag can be compared. Counted, not drawn: the "
            "same for every seed and level."
        ],
        row="data",
        column="quantity",
        write=lambda record: cells[record["data"], record["quantity"]],
    )


def label_table(plan: Plan) -> Table:
    """Make the table of bags of many labels, which cost the most."""
    records = []
    for name in plan.data:
        n_labels = load(name, plan.seed)[1].sum(axis=1)
        counts = {
            "most labels of a bag": n_labels.max(),
            f"bags of {MANY} labels or more": (n_labels >= MANY).sum(),
        }
        records += [
            {"data": name, "quantity": quantity, "ours": int(count)}
            for quantity, count in counts.items()
        ]
    return comparison_table(
        "datasets-labels",
        "Bags of many labels",
        records,
        ["The paper says that few bags of the letters have ten classes, and gives no number."],
        row="data",
        column="quantity",
        write=lambda record: str(record["ours"]),
    )


STUDY = Study(
    "datasets",
    "classes, features, bags, instances and labels of each data set",
    units=lambda plan, ledger: [],
    present=lambda plan, ledger: [size_table(plan), label_table(plan)],
)
