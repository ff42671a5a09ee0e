"""Time a fit of every estimator, with its default parameters, on HJA union.

    python benchmarks/rivals.py

If the data set is not on this machine, random bags of the same size are used instead.
"""

import numpy as np
from rich.console import Console
from rich.table import Table

import unbag.estimators
from measure import alternate, machine, save
from unbag import datasets
from unbag.estimators.contract import BagClassifier


def hja_union():
    """Load the data set; or make bags of as many instances, features and classes."""
    if datasets.is_available("hja-union"):
        data = datasets.load("hja-union")
        return data.bags, data.y, "HJA union"
    data = datasets.make_bags(
        548, n_features=38, n_classes=13, bag_size=(4, 14), labels_per_bag=2, random_state=0
    )
    return data.bags, data.y, "made bags of HJA's size"


def estimators():
    """Every public estimator with its defaults, the paper's model first."""
    kinds = (getattr(unbag.estimators, name) for name in unbag.estimators.__all__)
    kinds = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BagClassifier)]
    kinds.sort(key=lambda kind: (kind.__name__ != "ORLogisticRegression", kind.__name__))
    return {kind.__name__: kind(random_state=0) for kind in kinds}


def main():
    console = Console()
    bags, y, name = hja_union()
    models = estimators()
    for model in models.values():  # compiled before they are timed
        model.fit(bags[:40], y[:40])
    seconds = alternate({name: lambda m=m: m.fit(bags, y) for name, m in models.items()}, rounds=1)
    ours = seconds["ORLogisticRegression"]
    table = Table(title=f"One fit with default parameters, {name}: {bags.n_instances:,} instances")
    for column in ("estimator", "seconds", "over ORLogisticRegression", "instance accuracy"):
        table.add_column(column, justify="left" if column == "estimator" else "right")
    rows = {}
    for estimator, model in models.items():
        shown = "-"
        rows[estimator] = {"seconds": seconds[estimator], "ratio": seconds[estimator] / ours}
        if hasattr(model, "annotate"):
            accuracy = float(np.mean(model.annotate(bags, y) == bags.instance_labels))
            rows[estimator]["transductive_accuracy"] = accuracy
            shown = f"{accuracy:.1%}"
        row = rows[estimator]
        table.add_row(estimator, f"{row['seconds']:.3f}", f"{row['ratio']:.2f}", shown)
    console.print(table)
    save("rivals", {"machine": machine(), "data": name, "fits": rows}, console)


if __name__ == "__main__":
    main()
