"""Pipelines that answer for instances, and how they are put together."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toys import EveryMethod, NearestInstance
from unbag import DummyInstances, ORLogisticRegression, load
from unbag.bags import Bags
from unbag.pipeline import BagPipeline, kernel_pipeline
from unbag.preprocessing import (
    BagContext,
    OnInstances,
    RBFDictionary,
)
from unbag.settings import Settings
from unbag.validation import is_whitened


def two_groups(rng, n_bags=12):
    """Bags whose instances all lie at 0 or all at 5, and the group of each bag."""
    y = np.arange(n_bags) % 2
    sizes = np.arange(n_bags) % 3 + 1
    X = rng.normal(scale=0.1, size=(sizes.sum(), 2)) + 5 * np.repeat(y, sizes)[:, None]
    return Bags(X, np.concatenate([[0], np.cumsum(sizes)])), y


def test_bags_may_come_as_a_list_of_arrays(rng):
    bags, y = two_groups(rng)
    model = kernel_pipeline(NearestInstance(), context=0.5, n_components=4, random_state=0)
    expected = model.fit(bags, y)[:-1].transform(bags)
    listed = list(bags)
    found = model.fit(listed, y)[:-1].transform(listed)
    np.testing.assert_array_equal(found.X, expected.X)
    assert found.offsets.tolist() == bags.offsets.tolist()
    np.testing.assert_array_equal(model.predict(listed), model.predict(bags))
    np.testing.assert_array_equal(model.predict_instances(listed), model.predict_instances(bags))


def test_kernel_pipeline_does_its_steps_in_order(rng):
    bags, y = two_groups(rng)
    model = kernel_pipeline(
        NearestInstance(), context=0.5, scale=2.0, n_components=4, random_state=0
    ).fit(bags, y)
    assert isinstance(model, BagPipeline)
    assert list(model.named_steps) == ["scale", "context", "kernel", "model"]
    by_hand = OnInstances(StandardScaler()).fit_transform(bags)
    by_hand = BagContext(0.5).fit_transform(by_hand)
    by_hand = RBFDictionary(2.0, 4, random_state=0).fit_transform(by_hand)
    np.testing.assert_array_equal(model[:-1].transform(bags).X, by_hand.X)
    np.testing.assert_array_equal(model.predict(bags), y)
    np.testing.assert_array_equal(model.predict_instances(bags), np.repeat(y, bags.sizes))


def test_kernel_pipeline_leaves_out_context_and_standardising():
    estimator = NearestInstance(scaling="standard")
    whitened = kernel_pipeline(estimator)
    assert list(whitened.named_steps) == ["scale", "kernel", "model"]
    assert whitened["model"].scaling is None
    assert estimator.scaling == "standard"
    plain = kernel_pipeline(estimator, whiten=False)
    assert plain["model"].scaling == "standard"
    assert plain["kernel"].whiten is False
    assert plain["model"] is not estimator
    kernel_pipeline(LogisticRegression())  # has no such parameter


def test_kernel_pipeline_takes_as_many_instances_as_fit_does(rng):
    bags = Bags(rng.normal(size=(700, 2)), np.arange(0, 701, 2))
    model = kernel_pipeline(NearestInstance(), random_state=0).fit(bags, np.arange(350) % 2)
    chosen = Settings(kernel=1.0).unfitted()
    assert model["kernel"].n_components == chosen["kernel"].n_components
    assert len(model["kernel"].dictionary_) == 600


def test_pipeline_hands_on_each_method(rng):
    bags, y = two_groups(rng)
    steps = [("context", BagContext()), ("off", "passthrough"), ("model", EveryMethod())]
    model = BagPipeline(steps).fit(bags, y)
    expected = BagContext().fit_transform(bags)
    for method in ["predict_instances", "predict_instances_proba", "instance_log_proba"]:
        name, X = getattr(model, method)(bags)
        assert name == method
        np.testing.assert_array_equal(X.X, expected.X)
    for method in ["annotate", "annotate_proba", "log_likelihood"]:
        name, X, labels, options = getattr(model, method)(bags, y, joint=True)
        assert name == method
        np.testing.assert_array_equal(X.X, expected.X)
        assert labels is y
        assert options == {"joint": True}
        assert getattr(model, method)(bags, y=y)[2] is y
    assert list(inspect.signature(model.annotate).parameters) == ["X", "y", "options"]


def test_pipeline_has_a_method_only_where_the_model_has_it(rng):
    model = kernel_pipeline(NearestInstance())
    assert hasattr(model, "annotate")
    for method in ["annotate_proba", "predict_instances_proba", "log_likelihood", "predict_proba"]:
        assert not hasattr(model, method)
    assert not hasattr(model, "instance_log_proba")
    assert not hasattr(model[:-1], "annotate")
    assert not hasattr(BagPipeline([("off", "passthrough")]), "annotate")
    with pytest.raises(NotFittedError):
        model.annotate(two_groups(rng)[0], [])


def test_the_model_of_a_pipeline_goes_on_and_is_watched(rng):
    bags, y = two_groups(rng)
    model = kernel_pipeline(ORLogisticRegression(max_iter=3), n_components=5, random_state=0)
    start = model.fit(bags, y).model.progress_
    seen = []
    model.set_params(model__max_iter=6, model__tol=0).fit(bags, y, start=start, watch=seen.append)
    assert [len(reached.history) for reached in seen] == [4, 5, 6]
    assert seen[-1].history[:3] == start.history


def test_the_model_of_a_pipeline_is_its_last_step():
    estimator = DummyInstances()
    pipeline = kernel_pipeline(estimator)
    assert pipeline.model is pipeline["model"]
    assert pipeline.model.model is pipeline.model
    assert estimator.model is estimator


def test_pipeline_of_a_model_alone(rng):
    bags, y = two_groups(rng)
    model = BagPipeline([("model", NearestInstance())]).fit(bags, y)
    np.testing.assert_array_equal(model.predict_instances(bags), np.repeat(y, bags.sizes))


def test_pipeline_clones_pickles_and_sets_parameters(rng, tmp_path):
    bags, y = two_groups(rng)
    model = kernel_pipeline(NearestInstance(), context=1.0).set_params(
        kernel__scale=3.0, scale__transformer__with_mean=False, memory=str(tmp_path)
    )
    fitted = clone(model).fit(bags, y)
    assert isinstance(fitted, BagPipeline)
    assert fitted["kernel"].scale == 3
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_instances(bags), fitted.predict_instances(bags))
    features, labels, joint = again.annotate(bags, y, joint=True)
    assert is_whitened(features)
    assert labels is y
    assert joint


def test_grid_search_over_bags(rng):
    bags, y = two_groups(rng)
    grid = {
        "kernel__scale": [0.5, 2.0],
        "kernel__n_components": [3, 1.0],
        "model__power": [1.0, 2.0],
    }
    model = kernel_pipeline(NearestInstance(), context=0.5, random_state=0)
    search = GridSearchCV(model, grid, cv=2, n_jobs=2, error_score="raise").fit(bags, y)
    assert search.best_score_ == 1
    instances = search.best_estimator_.predict_instances(bags)
    np.testing.assert_array_equal(instances, np.repeat(y, bags.sizes))
    np.testing.assert_array_equal(cross_val_predict(model, bags, y, cv=2), y)


def test_set_output_reaches_the_steps_of_a_pipeline_and_a_model_file(tmp_path):
    bags = Bags([[1.0], [2.0], [4.0]], [0, 2, 3], feature_names=["pitch"])
    steps = [("scale", OnInstances(StandardScaler())), ("model", ORLogisticRegression())]
    pipeline = BagPipeline(steps).set_output(transform="pandas").fit(bags, [{0, 1}, {1}])
    pipeline.save(tmp_path / "m.unbag")
    read = load(tmp_path / "m.unbag")
    np.testing.assert_array_equal(read.predict_instances(bags), pipeline.predict_instances(bags))
    assert isinstance(read[:-1].transform(pd.DataFrame({"pitch": [1.0]})), pd.DataFrame)


@pytest.mark.parametrize("pipeline", [make_pipeline, lambda *steps: BagPipeline(list(steps))])
def test_a_transformer_of_arrays_in_a_pipeline_of_bags_is_told_apart(pipeline):
    bags = Bags([[1.0], [2.0], [4.0]], [0, 2, 3])
    steps = StandardScaler(), ORLogisticRegression()
    if pipeline is not make_pipeline:
        steps = [("scale", steps[0]), ("model", steps[1])]
    with pytest.raises(TypeError, match=r"OnInstances\(StandardScaler\(\)\)"):
        pipeline(*steps).fit(bags, [{0, 1}, {1}])


def test_transformers_and_models_show_their_parts_in_a_notebook():
    pipeline = make_pipeline(OnInstances(StandardScaler()), ORLogisticRegression(alpha=0.5))
    page = pipeline._repr_html_()
    for part in ["OnInstances", "StandardScaler", "ORLogisticRegression", "0.5"]:
        assert part in page
    bags = Bags([[1.0], [2.0], [4.0]], [0, 2, 3])
    assert "ORLogisticRegression" in pipeline.fit(bags, [{0, 1}, {1}])._repr_html_()
