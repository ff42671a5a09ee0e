"""The contract: every estimator there is, discovered, under the same checks."""

import importlib
import importlib.util
import inspect
import pickle
import pkgutil

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import unbag
from toys import answers, make_colours, seeded
from unbag import BagPipeline, Bags, LabelSets, OnInstances, kernel_pipeline
from unbag.estimators.contract import INSTANCE_METHODS, BagClassifier
from unbag.model_selection import SCORERS, cross_validate_bags

NAMES = np.array(["wren", "tit", "owl"])
# What none of these can do: they do not look at the features, or not at all of them.
BLIND = {"DummyInstances", "DummyBags"}
# Their answers depend on the order of bags or classes, by the random draws made for each.
DRAWING = {"MIMLFast", "MIMLSVM", "MIMLNN", "ORNetwork"}
# Enough for the bags here, where the default takes longer than all others together.
SMALL = {"ORNetwork": {"hidden": (32, 32), "n_members": 2, "max_iter": 100, "device": "cpu"}}
# Folders of estimators; one of them needs an extra of the package.
FOLDERS = ["unbag.estimators", "unbag.paper"]
if importlib.util.find_spec("torch") is not None:
    FOLDERS.append("unbag.torch")


def modules():
    for folder in map(importlib.import_module, FOLDERS):
        for module in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
            # Kernels of Triton's can be loaded only where there is a GPU for them.
            if not module.name.startswith(("unbag.torch.cuda", "unbag.torch.triton_")):
                yield module


def discovered():
    """Every public estimator in any module of the folders of estimators."""
    found = {}
    for module in modules():
        for name, thing in vars(importlib.import_module(module.name)).items():
            is_estimator = inspect.isclass(thing) and issubclass(thing, BagClassifier)
            if is_estimator and not name.startswith("_") and "fit" in dir(thing):
                found[name] = thing
    return [found[name] for name in sorted(found)]


def unfitted(kind):
    return seeded(kind, **SMALL.get(kind.__name__, {}))


ESTIMATORS = discovered()
every_estimator = pytest.mark.parametrize(
    "model", [unfitted(kind) for kind in ESTIMATORS], ids=lambda model: type(model).__name__
)


def name_of(model):
    return type(model).__name__


def instance_methods(model):
    return [name for name in INSTANCE_METHODS if hasattr(model, name)]


def assert_same(first, second, **tolerances):
    assert first.keys() == second.keys()
    for name in first:
        if first[name].dtype.kind == "f":
            np.testing.assert_allclose(first[name], second[name], **tolerances)
        else:
            np.testing.assert_array_equal(first[name], second[name])


@pytest.fixture(scope="module")
def colours():
    """Bags of one to three points in three corners; with names, and with the truth."""
    bags, y = make_colours(np.random.default_rng(0), n_bags=90, largest=3)
    return bags.with_features(bags.X, ["pitch", "length"]), y


@pytest.fixture(scope="module")
def fitted(colours):
    """Each estimator, fitted once."""
    bags, y = colours
    return {kind.__name__: unfitted(kind).fit(bags, y) for kind in ESTIMATORS}


def test_every_estimator_is_public():
    assert {kind.__name__ for kind in ESTIMATORS} >= {
        "ORLogisticRegression", "SupervisedLogisticRegression", "SIM", "MIMLFast", "LSBCMM",
        "MIMLSVM", "MIMLNN", "MLR", "SLR", "DummyInstances", "DummyBags",
    }  # fmt: skip
    for kind in ESTIMATORS:
        folder = kind.__module__.rpartition(".")[0]
        assert kind.__name__ in importlib.import_module(folder).__all__
        if folder == "unbag.estimators":
            assert getattr(unbag, kind.__name__) is kind


@every_estimator
def test_parameters_can_be_read_and_set(model):
    parameters = model.get_params()
    assert parameters.keys() == inspect.signature(type(model)).parameters.keys()
    assert ("random_state" in parameters) == (name_of(model) in {*DRAWING, "MLR"})
    assert clone(model).get_params() == parameters
    assert clone(model).set_params(classes=[0, 1, 2]).classes == [0, 1, 2]
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        clone(model).set_params(colour="red")


@every_estimator
def test_what_fit_learns(model, colours, fitted):
    bags, y = colours
    before = pickle.dumps((bags.X, y))
    model = clone(model)
    assert model.fit(bags, y) is model
    assert pickle.dumps((bags.X, y)) == before
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["pitch", "length"]
    assert_same(answers(model, bags, y), answers(fitted[name_of(model)], bags, y), rtol=0)


@every_estimator
def test_answers_have_the_shapes_of_the_contract(model, colours, fitted):
    bags, y = colours
    said = answers(fitted[name_of(model)], bags, y)
    for name, answer in said.items():
        per_instance = "instances" in name or "annotate" in name
        rows = bags.n_instances if per_instance else len(bags)
        flat = name in ("predict_instances", "annotate", "log_likelihood")
        assert answer.shape == ((rows,) if flat else (rows, 3)), name
        assert not np.isnan(answer).any()
    assert set(np.unique(said["predict"])) <= {0, 1}
    for name in ("predict_instances_proba", "annotate_proba"):
        if name in said:
            np.testing.assert_allclose(said[name].sum(axis=1), 1)
    if "annotate" in said:
        assert np.repeat(y, bags.sizes, axis=0)[np.arange(bags.n_instances), said["annotate"]].all()


@every_estimator
def test_a_missing_method_says_why(model, fitted):
    model = fitted[name_of(model)]
    for name in INSTANCE_METHODS:
        if not hasattr(model, name):
            with pytest.raises(AttributeError, match=f"{name_of(model)} has no {name}: it"):
                getattr(model, name)
    assert hasattr(model, "annotate") == hasattr(model, "predict_instances")


@every_estimator
def test_learns_what_is_plain_to_see(model, colours, fitted):
    if name_of(model) in BLIND:
        pytest.skip("does not look at the features")
    test, y = make_colours(np.random.default_rng(1), largest=3)
    model = fitted[name_of(model)]
    assert np.mean(model.predict(test) == y) > 0.9
    if "predict_instances" in instance_methods(model):
        assert np.mean(model.predict_instances(test) == test.instance_labels) > 0.9
        assert np.mean(model.annotate(test, y) == test.instance_labels) > 0.93


@every_estimator
def test_columns_follow_the_classes(model, colours, fitted):
    """Names in any order: what is said of a class stays with the class."""
    bags, y = colours
    order = [2, 0, 1]
    labels = LabelSets(y[:, order], NAMES[order])
    if name_of(model) in ("SupervisedLogisticRegression", "SLR"):
        named = clone(model).fit(bags, labels, instance_labels=NAMES[bags.instance_labels])
    else:
        named = clone(model).fit(bags, labels)
    np.testing.assert_array_equal(named.classes_, NAMES[order])
    expected, said = answers(fitted[name_of(model)], bags, y), answers(named, bags, labels)
    if name_of(model) in DRAWING:
        assert np.mean(said["predict"] == expected["predict"][:, order]) > 0.95
        return
    for name, answer in said.items():
        if name in ("predict_instances", "annotate"):
            np.testing.assert_array_equal(answer, NAMES[expected[name]])
        else:
            aligned = expected[name][:, order] if answer.ndim == 2 else expected[name]
            np.testing.assert_allclose(answer, aligned, rtol=1e-3, atol=1e-3, err_msg=name)


@every_estimator
def test_order_is_kept_when_bags_and_instances_are_shuffled(model, colours, fitted, rng):
    bags, y = colours
    model = fitted[name_of(model)]
    bag_order = rng.permutation(len(bags))
    instance_order = np.concatenate(
        [rng.permutation(np.arange(bags.offsets[b], bags.offsets[b + 1])) for b in bag_order]
    )
    shuffled = Bags(
        bags.X[instance_order], np.append(0, np.cumsum(bags.sizes[bag_order])),
        feature_names=bags.feature_names,
    )  # fmt: skip
    expected = answers(model, bags, y)
    for name, answer in answers(model, shuffled, y[bag_order]).items():
        per_instance = "instances" in name or "annotate" in name
        order = instance_order if per_instance else bag_order
        np.testing.assert_allclose(
            answer, expected[name][order], rtol=1e-9, atol=1e-9, err_msg=name
        )


@every_estimator
def test_order_of_training_bags_does_not_matter(model, colours, fitted, rng):
    if name_of(model) in DRAWING:
        pytest.skip("draws bags at random")
    bags, y = colours
    order = rng.permutation(len(bags))
    again = clone(model).fit(bags[order], y[order])
    expected = fitted[name_of(model)].decision_function(bags)
    np.testing.assert_allclose(again.decision_function(bags), expected, rtol=1e-3, atol=1e-3)


@every_estimator
def test_same_seed_same_answers(model, colours, fitted):
    bags, y = colours
    expected = answers(fitted[name_of(model)], bags, y)
    assert_same(answers(clone(model).fit(bags, y), bags, y), expected, rtol=0)
    # A fit is not disturbed by one before it, nor by the global generator.
    used = clone(model).fit(bags[::-1], y[::-1])
    np.random.random(3)  # noqa: NPY002
    assert_same(answers(used.fit(bags, y), bags, y), expected, rtol=0)


@every_estimator
def test_copies_answer_alike(model, colours, fitted):
    bags, y = colours
    model = fitted[name_of(model)]
    copy = pickle.loads(pickle.dumps(model))
    assert_same(answers(copy, bags, y), answers(model, bags, y), rtol=0)


@every_estimator
def test_label_sets_in_other_forms(model, colours, fitted):
    bags, y = colours
    expected = fitted[name_of(model)].decision_function(bags)
    for form in ([set(np.flatnonzero(row).tolist()) for row in y], sparse.csr_matrix(y)):
        again = clone(model).fit(bags, form)
        np.testing.assert_array_equal(again.decision_function(bags), expected)
    listed = clone(model)
    if name_of(model) in ("SupervisedLogisticRegression", "SLR"):
        listed.fit(list(bags), y, instance_labels=bags.instance_labels)
    else:
        listed.fit(list(bags), y)
    np.testing.assert_array_equal(listed.decision_function(list(bags)), expected)


@every_estimator
def test_unknown_labels_and_absent_classes(model, colours):
    bags, y = colours
    partly = y.copy()
    partly[::7, 0] = -1
    partly = np.column_stack([partly, np.zeros(len(y), dtype=int)])
    model = clone(model).fit(bags, partly)
    said = answers(model, bags, partly)
    assert said["decision_function"].shape == (len(bags), 4)
    for name, answer in said.items():
        if answer.dtype.kind == "f":
            assert not np.isnan(answer).any(), name
    if name_of(model) not in BLIND:
        known = partly[:, :3] >= 0
        assert np.mean((said["predict"][:, :3] == y)[known]) > 0.9
        assert not said["predict"][:, 3].any()


@every_estimator
def test_empty_bags_have_no_classes(model, colours):
    bags, y = colours
    hollow = Bags(
        bags.X, np.insert(bags.offsets, 3, bags.offsets[3]), instance_labels=bags.instance_labels
    )
    labels = np.insert(y, 3, 0, axis=0)
    model = clone(model).fit(hollow, labels)
    assert not model.predict(hollow)[3].any()
    assert not np.isnan(model.decision_function(hollow)).any()
    for name in ("predict_instances", "annotate"):
        if hasattr(model, name):
            assert len(answers(model, hollow, labels)[name]) == bags.n_instances


@every_estimator
def test_bad_input_is_named(model, colours):
    bags, y = colours
    broken = bags.X.copy()
    broken[bags.offsets[5], 1] = np.nan
    with pytest.raises(ValueError, match=r"Bag 5 .* has NaN in column 1 \(length\)"):
        clone(model).fit(bags.with_features(broken, bags.feature_names), y)
    with pytest.raises(ValueError, match="X has 90 bags, y has 89 label sets"):
        clone(model).fit(bags, y[:-1])
    with pytest.raises(ValueError, match="the target y is None"):
        clone(model).fit(bags, None)
    fitted = clone(model).fit(bags, y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 2 features"):
        fitted.predict(Bags(np.zeros((4, 3)), [0, 2, 4]))
    with pytest.raises(ValueError, match="Column 1 is width, but in fit it was length"):
        fitted.predict(bags.with_features(bags.X, ["pitch", "width"]))
    if hasattr(fitted, "annotate"):
        with pytest.raises(ValueError, match="not among the classes"):
            fitted.annotate(bags[:1], [{"owl"}])
    scattered = Bags(sparse.csr_matrix(bags.X), bags.offsets, instance_labels=bags.instance_labels)
    if fitted.__sklearn_tags__().input_tags.sparse:
        assert clone(model).fit(scattered, y).predict(scattered).shape == y.shape
    else:
        with pytest.raises(TypeError, match=r"takes dense features only.*toarray"):
            clone(model).fit(scattered, y)


@every_estimator
def test_bad_parameters_are_named(model, colours):
    for name, default in model.get_params().items():
        if name in ("random_state", "verbose", "n_jobs"):
            continue
        if isinstance(default, bool):
            continue
        with pytest.raises(ValueError, match=f"{name} must be"):
            clone(model).set_params(**{name: "purple"}).fit(*colours)


@every_estimator
def test_pipelines_pass_on_what_a_model_can_do(model, colours):
    bags, y = colours
    pipeline = BagPipeline([("scale", OnInstances(StandardScaler())), ("model", clone(model))])
    pipeline.fit(bags, y)
    assert instance_methods(pipeline) == instance_methods(pipeline[-1])
    assert_same(answers(pipeline, bags, y), answers(pipeline[-1], pipeline[0].transform(bags), y))


@every_estimator
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_fit_that_fails_leaves_the_model_as_it_was(model, in_pipeline, colours):
    bags, y = colours
    fitted = clone(model)
    if in_pipeline:
        fitted = BagPipeline([("scale", OnInstances(StandardScaler())), ("model", fitted)])
    fitted.fit(bags, y)
    before = answers(fitted, bags, y)
    others = Bags(np.random.default_rng(0).normal(size=(6, 5)), [0, 2, 4, 6])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.fit(others, [{"wren"}, {"owl"}])
    assert_same(answers(fitted, bags, y), before)


@every_estimator
def test_kernel_versions(model, colours):
    bags, y = colours
    pipeline = kernel_pipeline(model, n_components=30, random_state=0).fit(bags, y)
    assert pipeline.predict(bags).shape == y.shape
    if name_of(model) not in BLIND:
        assert np.mean(pipeline.predict(bags) == y) > 0.85


@every_estimator
def test_searches_and_cross_validation(model, colours):
    bags, y = colours
    search = GridSearchCV(
        clone(model), {"classes": [None, [0, 1, 2]]}, scoring=SCORERS["neg_hamming_loss"], cv=2,
        error_score="raise",
    ).fit(bags, y)  # fmt: skip
    assert search.predict(bags).shape == y.shape
    folds = cross_validate_bags(clone(model), bags, y, cv=2, random_state=0)
    assert ("inductive_accuracy" in folds) == hasattr(model, "predict_instances")
    assert np.isfinite(folds["hamming_loss"]).all()
