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
from unbag.estimators.rivals.miml_nn import ridge
from unbag.metrics import bag_measures
from unbag_reproduce import (
    BAG_MEASURES,
    Comparison,
    Figure,
    Method,
    Plan,
    Results,
    Study,
    Table,
    Unit,
    comparison_table,
    grid,
    levels,
    load_fold,
    published_figure,
    tuning_note,
    words,
)
from unbag_reproduce.plan import DRAWN

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

    Parameters
    ----------
    of, to : Bags
    kind : {"max", "mean", "min"}
        The largest, the mean or the least of the distances of instances, of either bag, to the
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


def fold(unit: Unit) -> dict[str, float]:
    """Fit ridge regression on the distances to all training bags; measure on the test bags.

    Returns
    -------
    dict of str to float
        The five measures of bag label sets, in percent.
    """
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
    fold,
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
                "In brackets: published, and the difference. Every training bag is a medoid. Each "
                "distance is at the setting of its best average precision among five ways to scale "
                "features, with and without a bias, and the four published penalties. "
                f"{tuning_note(COMPARISON, plan)} {plan.describe()}.",
                *COMPARISON.missing(plan, ledger),
            ],
            row=lambda record: f"{record['data']}, {words(record['measure'])}",
            column="method",
        )
    ]


STUDY = Study(
    "distances",
    "MIMLNN on the letters by other distances between bags and scalings (evidence)",
    units=COMPARISON.units,
    present=present,
    data=DRAWN,
    comparison=COMPARISON,
    remarks="""\
No distance explains both data sets. By the authors' own, Letter Carroll comes out within two points
of what was published but for its one-error and its coverage, Letter Frost but for its average
precision and its one-error. By the minimal one Letter Frost comes near but for its one-error, and
the average precision on Letter Carroll lies nine points above what was published. How far such
one-errors move with folds and draws is in [partitions](#partitions); the difference of the average
precision on Letter Frost stays unexplained. By the average distance MIMLNN comes within six
points of the average precision of MLR on the letters ([bag-level](#bag-level)).
""",
)
