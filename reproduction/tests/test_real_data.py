"""The model on the paper's data, where the machine has them: see UNBAG_DATA in CONTRIBUTING.md."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, cross_val_score

from toys import seeded
from unbag import (
    Bags,
    ORLogisticRegression,
    SupervisedLogisticRegression,
    kernel_pipeline,
)
from unbag.model_selection import inductive_accuracy, transductive_accuracy
from unbag.paper import LSBCMM, MLR, SIM, MIMLFast
from unbag_reproduce import datasets

FOLDS = KFold(10, shuffle=True, random_state=0)

# Inductive and transductive accuracy, in %, that a prototype reached; for MLR, close to the
# published ones.
PROTOTYPE = {
    "hja-union": {"MLR": (70.3, 87.7), "ours": (72.6, 87.9)},
    "msrcv2": {"MLR": (55.2, 84.8), "ours": (55.5, 84.2)},
    "letter-carroll": {"MLR": (69.1, 90.5), "ours": (69.9, 90.9)},
    "letter-frost": {"MLR": (68.9, 92.4), "ours": (69.0, 92.2)},
}
# Folds and letters are drawn again: a fold's standard deviation is 3 to 6 points.
NOISE = 2.5


def load(name, draw=0):
    """Bags with their instance labels, and their label sets."""
    data = datasets.load(name, random_state=draw)
    return data.bags, data.y


def draws(name):
    return range(1) if name in ("hja-union", "msrcv2") else range(5)


@pytest.mark.parametrize("kind", ["MLR", "ours"])
@pytest.mark.parametrize("name", PROTOTYPE)
def test_as_accurate_as_the_prototype(name, kind):
    model = MLR() if kind == "MLR" else ORLogisticRegression()
    inductive, transductive = [], []
    for draw in draws(name):
        bags, y = load(name, draw)
        scores = cross_val_score(model, bags, y, cv=FOLDS, scoring=inductive_accuracy)
        inductive.append(100 * scores.mean())
        transductive.append(100 * transductive_accuracy(model.fit(bags, y), bags, y))
    reached = np.mean(inductive), np.mean(transductive)
    print(f"{name} {kind}: {reached[0]:.1f} inductive, {reached[1]:.1f} transductive")
    for figure, expected in zip(reached, PROTOTYPE[name][kind], strict=True):
        assert figure > expected - NOISE


@pytest.mark.parametrize(
    ("name", "settings", "alpha", "least"),
    [
        # The best published figures of this model are 72.8, 61.0 and 72.1.
        ("hja-union", {"context": 0.5, "scale": 1.0, "n_components": 600}, 0.1, 80.0),
        # About a minute each, and 7 seconds for the first.
        pytest.param("msrcv2", {"context": 1.0, "scale": 0.5}, 0.03, 68.0, marks=pytest.mark.slow),
        pytest.param("letter-carroll", {"scale": 0.5}, 0.03, 74.0, marks=pytest.mark.slow),
    ],
)
def test_context_and_kernel_beat_what_was_published(name, settings, alpha, least):
    model = kernel_pipeline(
        ORLogisticRegression(alpha=alpha, max_iter=60), random_state=0, **settings
    )
    reached = []
    for draw in draws(name):
        bags, y = load(name, draw)
        scores = cross_val_score(model, bags, y, cv=FOLDS, scoring=inductive_accuracy)
        reached.append(100 * scores.mean())
    print(f"{name} with context and kernel: {np.mean(reached):.1f} inductive")
    assert np.mean(reached) >= least


@pytest.mark.parametrize(
    ("rival", "name", "reached", "published"),
    [
        (SIM, "hja-union", 58.9, 62.7),
        (SIM, "letter-carroll", 55.6, 54.2),
        (MIMLFast, "hja-union", 58.7, 61.3),
        (MIMLFast, "letter-carroll", 56.2, 56.1),
        (LSBCMM, "hja-union", 66.3, 72.0),
        (LSBCMM, "letter-carroll", 61.0, 55.9),
        (SupervisedLogisticRegression, "hja-union", 73.4, 74.6),
        (SupervisedLogisticRegression, "letter-carroll", 70.7, 70.5),
    ],
)
def test_rivals_are_as_good_as_they_were_and_as_published(rival, name, reached, published):
    """With default parameters on raw features; the published ones were tuned on these folds."""
    bags, y = load(name)
    folds = list(FOLDS.split(bags))[:4]
    scores = cross_val_score(
        seeded(rival), bags, y, cv=folds, scoring=inductive_accuracy, error_score="raise"
    )
    print(f"{name} {rival.__name__}: {100 * scores.mean():.1f} inductive")
    # Folds and seeds are the same each time: what moves a figure is a change of the rival.
    assert 100 * scores.mean() == pytest.approx(reached, abs=3.0)
    # Six points, and some for the noise of four folds.
    assert 100 * scores.mean() > published - 7.5


@pytest.mark.parametrize("kind", [ORLogisticRegression, SupervisedLogisticRegression])
@pytest.mark.parametrize("name", PROTOTYPE)
def test_a_default_fit_converges(name, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        kind().fit(*load(name))


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_background_is_found_where_classes_lose_their_labels(share):
    bags, y = load("hja-union")
    labels = bags.instance_labels
    sizes = np.array([np.mean(labels == c) for c in range(y.shape[1])])
    order = np.random.default_rng(0).permutation(y.shape[1])
    kept = np.sort(order[np.cumsum(sizes[order]) > share])
    model = ORLogisticRegression(background="auto").fit(Bags(bags.X, bags.offsets), y[:, kept])
    assert model.has_background_ == (share > 0)
