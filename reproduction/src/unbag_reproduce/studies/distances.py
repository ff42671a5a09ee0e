"""MIMLNN by other distances between bags: evidence on the one rival that falls short of the paper.

The published figures of MIMLNN on the letters lie well above ours. The paper says neither how
features were scaled nor which distance was taken; its authors take the maximal Hausdorff distance.
Here scalings, a bias and penalties are tried with that, and with two other Hausdorff distances.
"""

import numpy as np
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)

from unbag.bags import Bags
from unbag.metrics import bag_measures
from unbag.paper.mimlnn import ridge
from unbag_reproduce.comparison import Comparison
from unbag_reproduce.data import load_fold
from unbag_reproduce.figures import Figure
from unbag_reproduce.ledger import Results
from unbag_reproduce.methods import Method, grid, levels
from unbag_reproduce.plan import DRAWN, Plan, Study
from unbag_reproduce.published import published_figure
from unbag_reproduce.statistics import BAG_MEASURES, words
from unbag_reproduce.tables import Table, comparison_table
from unbag_reproduce.unit import Unit, task

SCALERS = {
    "none": (FunctionTransformer,),
    "minmax": (MinMaxScaler,),
    "minmax, unit length": (MinMaxScaler, Normalizer),
    "standard": (StandardScaler,),
    "standard, unit length": (StandardScaler, Normalizer),
}
DISTANCES = {
    "max": "maximal Hausdorff (the authors')",
    "mean": "average Hausdorff",
    "min": "minimal Hausdorff",
}
SETTINGS = grid(scaling=list(SCALERS), bias=[False, True], alpha=[0.01, 0.1, 1.0, 10.0])


def hausdorff(of: Bags, to: Bags, kind: str) -> np.ndarray:
    """Measure the distances of bags to others; shape (n_bags, n_others).

    That is the largest, the mean or the least of the distances of instances, of either bag, to the
    nearest instance of the other.

    Examples
    --------
    >>> one, other = Bags.from_list([[[0.0], [1.0]]]), Bags.from_list([[[1.0], [4.0]]])
    >>> [float(hausdorff(one, other, kind)[0, 0]) for kind in DISTANCES]
    [3.0, 1.0, 0.0]
    """
    between = pairwise_distances(of.X, to.X)
    forth = np.minimum.reduceat(between, to.offsets[:-1], axis=1)
    back = np.minimum.reduceat(between, of.offsets[:-1], axis=0)
    if kind == "mean":
        sums = np.add.reduceat(forth, of.offsets[:-1], axis=0) + np.add.reduceat(
            back, to.offsets[:-1], axis=1
        )
        return sums / np.add.outer(of.sizes, to.sizes)
    if kind == "min":
        return np.minimum.reduceat(forth, of.offsets[:-1], axis=0)
    return np.maximum(
        np.maximum.reduceat(forth, of.offsets[:-1], axis=0),
        np.maximum.reduceat(back, to.offsets[:-1], axis=1),
    )


@task
def fit_distances(unit: Unit) -> dict[str, float]:
    """Fit ridge regression on the distances to all training bags; measure on the test bags."""
    train, y_train, test, y_test = load_fold(unit)
    scaler = make_pipeline(*(each() for each in SCALERS[unit.setting["scaling"]])).fit(train.X)
    near, far = (bags.with_features(scaler.transform(bags.X)) for bags in (train, test))
    known, new = (hausdorff(bags, near, unit.method) for bags in (near, far))
    if unit.setting["bias"]:
        known, new = (np.column_stack([each, np.ones(len(each))]) for each in (known, new))
    scores = new @ ridge(known, 2.0 * y_train - 1, unit.setting["alpha"])
    found = bag_measures(y_test, (scores >= 0).astype(int), scores)
    return {name: 100.0 * value for name, value in found.items()}


COMPARISON = Comparison(
    fit_distances,
    {
        kind: Method(title, ridge, levels(SETTINGS, quick=SETTINGS[8:12]), "mimlnn")
        for kind, title in DISTANCES.items()
    },
    tuned_by=("average_precision",),
)


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make the table of all measures at the setting of the best average precision."""
    records = [
        record
        for name in plan.data
        for measure in BAG_MEASURES
        for record in COMPARISON.records(
            plan, ledger, name, measure, tuned_by="average_precision", outside=DISTANCES,
            published=lambda name, method, measure=measure: published_figure(
                "bag-level", name, method, measure
            ),
        )
    ]  # fmt: skip
    return [
        comparison_table(
            "distances",
            "MIMLNN, measures of bag label sets (%) by the distance between bags",
            records,
            [
                "Every training bag is a medoid. Each distance is at the "
                "setting of its best average precision among five ways to scale features, with and "
                "without a bias, and the four published penalties."
            ],
            row=lambda record: f"{record['data']}, {words(record['measure'])}",
            column="method",
        )
    ]


STUDY = Study(
    "distances",
    "MIMLNN on the letters by other distances between bags and scalings",
    units=COMPARISON.units,
    present=present,
    data=DRAWN,
    comparison=COMPARISON,
    remarks="""\
No distance explains both data sets. With the authors' own, Carroll comes within two points of the
published figures except in one-error and coverage, Frost except in average precision and one-error.
With the minimal one, Frost comes near except in one-error, and the average precision on Carroll
lies nine points above the published one. [Partitions](#partitions) shows how far such one-errors
move with folds and draws; the difference in average precision on Frost stays unexplained.
""",
)
