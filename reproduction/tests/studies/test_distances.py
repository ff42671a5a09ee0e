import numpy as np
import pytest

from unbag import Bags
from unbag.paper import MIMLNN
from unbag_reproduce.comparison import fit_and_measure
from unbag_reproduce.data import load_fold
from unbag_reproduce.studies import distances
from unbag_reproduce.studies.distances import hausdorff
from unbag_reproduce.unit import Unit


@pytest.mark.parametrize("kind", distances.DISTANCES)
def test_distances_are_those_of_the_definition(rng, kind):
    one, other = (
        Bags.from_list([rng.normal(size=(n, 2)) for n in sizes]) for sizes in ((1, 3), (2, 1, 4))
    )
    found = hausdorff(one, other, kind)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            between = np.linalg.norm(a[:, None] - b[None], axis=2)
            nearest = np.concatenate([between.min(axis=1), between.min(axis=0)])
            assert found[i, j] == pytest.approx(getattr(np, kind)(nearest))


def test_the_authors_distance_gives_the_figures_of_the_estimator():
    setting = {"scaling": "minmax", "bias": False, "alpha": 1.0}
    unit = Unit(
        distances.fit_distances, "letter-frost", 0, "max", setting, fold=0, n_folds=10, seed=0
    )  # fmt: skip
    known = fit_and_measure(MIMLNN(1.0, alpha=1.0, random_state=0), *load_fold(unit))
    for measure, value in distances.fit_distances(unit).items():
        assert value == pytest.approx(known[measure])
