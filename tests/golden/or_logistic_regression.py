"""ORLogisticRegression with everything that it can be asked to do."""

import numpy as np
from scipy import sparse

from fixed_data import DATA, converted, digits, frost, noisy, synthetic
from model_answers import answers, fitted, learnt
from recording import CONVERGED, attempted, recording
from renamed import parameters
from unbag import Bags, ORLogisticRegression, SupervisedLogisticRegression
from unbag.datasets import make_bags


def model(**settings):
    """Return an unfitted model; few iterations, unless told otherwise."""
    settings = {"max_iter": 15, **settings}
    return ORLogisticRegression(**parameters(ORLogisticRegression, **settings))


def fitted_model(data_name, settings):
    """Fit a model with these settings."""
    return fitted(model(**settings), DATA[data_name]())


SETTINGS = {
    "em": {"solver": "em", "max_iter": 50},
    "em_without_penalty": {"solver": "em", "max_iter": 50, "alpha": 0},
    "stochastic": {"solver": "stochastic", "random_state": 0, "max_iter": 50},
    "stochastic_half": {"solver": "stochastic", "random_state": 1, "sample_fraction": 0.5},
    "em_as_it_is": {"solver": "em", "max_iter": 50, "standardize": False},
    "background": {"background": True},
    "background_em": {"background": True, "solver": "em", "max_iter": 50},
    "prune": {"prune": 0.25},
    "prune_all": {"prune": 1.0},
    "published_inference": {"inference": "fast"},
    "forward_inference": {"inference": "forward"},
    "chain_inference": {"inference": "chain"},
    "one_thread": {"n_threads": 1},
    "two_threads": {"n_threads": 2},
    "tight": {"alpha": 10.0},
}
for name, settings in SETTINGS.items():
    for data_name in ("synthetic", "frost") if name in ("em", "background") else ("synthetic",):
        recording(f"or_logistic_regression/{name}/{data_name}", data_name, settings)(fitted_model)
for name in ("relax", "drop", "raise"):
    settings = {"on_impossible": name}
    recording(f"or_logistic_regression/impossible/{name}", "noisy", settings)(fitted_model)
for name in ("em", "stochastic"):
    settings = {"solver": name, "random_state": 0, "max_iter": 100}
    recording(f"or_logistic_regression/digits/{name}", "digits", settings, rtol=CONVERGED)(
        fitted_model
    )


@recording("or_logistic_regression/unknown_labels")
def unknown_labels():
    """Every third entry of the label sets is unknown."""
    data = synthetic()
    y = np.where(np.arange(data.y.size).reshape(data.y.shape) % 3 == 0, -1, data.y)
    one = model().fit(data.bags, y)
    test_y = np.where(np.arange(data.test_y.size).reshape(-1, 4) % 3 == 0, -1, data.test_y)
    return {"learnt": learnt(one), "answers": answers(one, data.test, test_y)}


@recording("or_logistic_regression/pinned_instances")
def pinned_instances():
    """Some labels of instances are known, in the fit and in the answers."""
    data = synthetic()
    pinned, test_pinned = (
        np.where(np.arange(bags.n_instances) % 4 == 0, bags.instance_labels, -1)
        for bags in (data.bags, data.test)
    )
    one = model()
    known = {"instance_labels": test_pinned}
    return fitted(one, data, instance_labels=pinned) | {
        "annotate": one.annotate(data.test, data.test_y, **known),
        "annotate_jointly": one.annotate(data.test, data.test_y, joint=True, **known),
        "annotate_proba": one.annotate_proba(data.test, data.test_y, **known),
    }


@recording("or_logistic_regression/pinned_names")
def pinned_names():
    """The labels that are known are names, None elsewhere."""
    data = frost()
    names = np.array(data.bags.instance_labels, dtype=object)
    names[np.arange(len(names)) % 3 > 0] = None
    return fitted(model(), data, instance_labels=names)


@recording("or_logistic_regression/sample_weight")
def sample_weight():
    """Bags count from nothing to three times."""
    data = synthetic()
    return {
        solver: fitted(model(solver=solver), data, sample_weight=np.arange(len(data.bags)) % 4)
        for solver in ("lbfgs", "em")
    }


@recording("or_logistic_regression/partial_fit")
def partial_fit():
    """Bags come ten at a time; then some with pins and weights."""
    data = synthetic()
    one = model()
    steps = {}
    for start in range(0, 30, 10):
        batch = slice(start, start + 10)
        one.partial_fit(data.bags[batch], data.y[batch], classes=range(4))
        steps[f"after_{start}"] = learnt(one)
    last = data.bags[30:]
    one.partial_fit(
        last, data.y[30:], instance_labels=last.instance_labels, sample_weight=np.arange(10)
    )
    return steps | {"learnt": learnt(one), "answers": answers(one, data.test, data.test_y)}


@recording("or_logistic_regression/partial_fit_after_fit")
def partial_fit_after_fit():
    """A stream goes on from a fit."""
    data = synthetic()
    return learnt(model().fit(data.bags, data.y).partial_fit(data.test, data.test_y))


@recording("or_logistic_regression/partial_fit_refused")
def partial_fit_refused():
    """What a stream cannot begin or go on with."""
    data = synthetic()
    begun = model().partial_fit(data.bags, data.y, classes=range(4))
    return {
        "no_classes": attempted(lambda: model().partial_fit(data.bags, data.y)),
        "other_classes": attempted(lambda: begun.partial_fit(data.bags, data.y, classes=range(5))),
    }


@recording("or_logistic_regression/warm_start")
def warm_start():
    """Five iterations, then five more; other classes are refused."""
    data = synthetic()
    one = model(warm_start=True, max_iter=5).fit(data.bags, data.y)
    first = learnt(one)
    return {
        "first": first,
        "second": learnt(one.fit(data.bags, data.y)),
        "other_classes": attempted(lambda: one.fit(data.bags, data.y[:, :3])),
    }


@recording("or_logistic_regression/callback")
def callback():
    """It is told of every iteration, and may stop the fit."""
    data = synthetic()
    told = []
    one = model(callback=lambda *progress: told.append(progress) or len(told) == 4)
    return {"learnt": learnt(one.fit(data.bags, data.y)), "told": told}


@recording("or_logistic_regression/sparse")
def sparse_features():
    """Features in CSR."""
    data = converted(digits(), sparse.csr_matrix)
    return {
        "standardised": fitted(model(), data),
        "as_they_are": fitted(model(standardize=False), data),
    }


@recording("or_logistic_regression/float32", rtol=1e-4)
def single_precision():
    """Features in single precision: products are, too."""
    data = converted(digits(), np.float32)
    return {"lbfgs": fitted(model(), data), "em": fitted(model(solver="em"), data)}


@recording("or_logistic_regression/inputs")
def inputs():
    """Bags as a list of arrays, label sets as sets, and a bag without instances."""
    data = synthetic()
    arrays, sets = [np.array(bag) for bag in data.bags], [set(np.flatnonzero(y)) for y in data.y]
    empty = Bags(data.bags.X, np.append(data.bags.offsets, data.bags.n_instances))
    none = np.zeros((1, 4), dtype=int)
    last_y = np.vstack([data.y[-2:], none])
    return {
        "lists": learnt(model().fit(arrays, sets)),
        "empty_bag": attempted(lambda: learnt(model().fit(empty, np.vstack([data.y, none])))),
        "labelled_empty_bag": attempted(lambda: model().fit(empty, np.vstack([data.y, none + 1]))),
        "answers_of_empty_bag": answers(
            model().fit(data.bags, data.y),
            empty[len(data.bags) - 2 :],
            last_y,
        ),
    }


@recording("or_logistic_regression/answers_of_impossible_bags")
def answers_of_impossible_bags():
    """Label sets that no labelling can produce are taken as optional."""
    data = noisy()
    full, nothing = np.ones_like(data.test_y), np.zeros_like(data.test_y)
    one = model().fit(synthetic().bags, synthetic().y)
    return {"all": answers(one, data.test, full), "none": answers(one, data.test, nothing)}


def many_labels():
    """Thirty classes, and two bags that must show all of them with few instances."""
    data = make_bags(60, n_features=8, n_classes=30, bag_size=(3, 6), random_state=5)
    tough = make_bags(2, n_features=8, n_classes=30, bag_size=34, labels_per_bag=30, random_state=6)
    sizes = np.append(data.bags.sizes, tough.bags.sizes)
    bags = Bags(np.vstack([data.bags.X, tough.bags.X]), np.append(0, np.cumsum(sizes)))
    return bags, np.vstack([data.y, tough.y]), tough


@recording("or_logistic_regression/intractable/relax")
def intractable_bags():
    """Labels of a bag with too many of them are relaxed, in the fit and in the answers."""
    bags, y, tough = many_labels()
    one = model(max_iter=5)
    fitting = attempted(lambda: one.fit(bags, y) and None)
    return {"fit": fitting, "learnt": learnt(one), "answers": answers(one, tough.bags, tough.y)}


@recording("or_logistic_regression/intractable/raise")
def refused_intractable_bags():
    """They are refused, in the fit and in the answers."""
    bags, y, tough = many_labels()
    easy = model(max_iter=5, on_intractable="raise").fit(bags[:60], y[:60])
    supervised = SupervisedLogisticRegression(max_iter=5).fit(
        bags[:60], y[:60], instance_labels=np.arange(bags[:60].n_instances) % 30
    )
    return {
        "fit": attempted(lambda: model(on_intractable="raise").fit(bags, y)),
        "answers": answers(easy, tough.bags, tough.y),
        "supervised": answers(supervised, tough.bags, tough.y),
    }
