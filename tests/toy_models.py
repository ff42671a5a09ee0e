"""A small fitted pipeline, and when two models are the same."""

import inspect

import numpy as np
from sklearn import decomposition, preprocessing
from sklearn.base import BaseEstimator

from toy_bags import make_colours
from unbag import ORLogisticRegression, estimators, kernel_pipeline
from unbag.estimators.contract import INSTANCE_METHODS

BAGS, Y = make_colours(np.random.default_rng(0), n_bags=40, largest=3)
BAGS = BAGS.with_features(BAGS.X, ["pitch", "length"])

MODELS = {
    name: kind
    for name in estimators.__all__
    if isinstance(kind := getattr(estimators, name), type) and issubclass(kind, BaseEstimator)
}
SCALERS = {
    kind.__name__: kind
    for kind in (
        preprocessing.FunctionTransformer,
        preprocessing.MaxAbsScaler,
        preprocessing.MinMaxScaler,
        preprocessing.Normalizer,
        preprocessing.PowerTransformer,
        preprocessing.QuantileTransformer,
        preprocessing.RobustScaler,
        preprocessing.StandardScaler,
        decomposition.PCA,
    )
}


def fitted_pipeline():
    model = ORLogisticRegression(max_iter=5)
    return kernel_pipeline(model, context=0.5, n_components=20, random_state=0).fit(BAGS, Y)


def answers(model, bags, y=Y):
    """Everything a fitted model says, by method."""
    said = {name: getattr(model, name)(bags) for name in ("predict", "decision_function")}
    for name in INSTANCE_METHODS:
        if hasattr(model, name):
            method = getattr(model, name)
            said[name] = method(bags, y) if "y" in inspect.signature(method).parameters else (
                method(bags))  # fmt: skip
    return said


def assert_equal(first, second):
    """Equal to the last bit, and of the same types all the way down."""
    assert type(first) is type(second)
    if isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        assert first.shape == second.shape
        if first.dtype == object:
            assert_equal(first.tolist(), second.tolist())
        else:
            assert first.tobytes() == second.tobytes()
            assert first.flags.f_contiguous == second.flags.f_contiguous
    elif isinstance(first, list | tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            assert_equal(one, other)
    elif isinstance(first, dict):
        assert_equal(list(first.items()), list(second.items()))
    elif isinstance(first, float | np.floating):
        assert repr(first) == repr(second)
    elif hasattr(first, "__dict__"):
        assert_equal(vars(first), vars(second))
    else:
        assert first == second
