"""Saving models: what goes in comes out, to the last bit."""

import inspect
import json
import os
import pickle

import hypothesis.extra.numpy as of_numpy
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, PolynomialFeatures

import unbag
from sample_models import RECIPES, content, new_encoder, parts
from toys import BAGS, MODELS, SCALERS, Y, answers, assert_equal, seeded
from unbag import (
    BagPipeline,
    Bags,
    OnInstances,
    ORLogisticRegression,
    RBFDictionary,
    kernel_pipeline,
)
from unbag.models import ModelFileError, read_header
from unbag.models.container import FORMAT, save
from unbag.models.kinds import KINDS, Decoder, Encoder

every_model = pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS)


def saved_and_loaded(model, path, **options):
    model.save(path, **options)
    return unbag.load(path)


# Round trips.


def test_every_estimator_and_transformer_is_listed():
    assert {"ORLogisticRegression", "SupervisedLogisticRegression", "DummyBags"} <= MODELS.keys()
    assert {"BagPipeline", "OnInstances", "RBFDictionary", *MODELS, *SCALERS} <= KINDS.keys()
    for name, listed in {**MODELS, **SCALERS}.items():
        assert KINDS[name].listed_class is listed


def kinds_in(node):
    """Names of all kinds of values in a part of a header."""
    if isinstance(node, dict):
        found = {node["is"]} if isinstance(node.get("is"), str) else set()
        return found.union(*map(kinds_in, node.values()))
    return set().union(*map(kinds_in, node)) if isinstance(node, list) else set()


@pytest.mark.torch
def test_every_kind_has_a_sample():
    assert set().union(*(kinds_in(parts(name)[0]["model"]) for name in RECIPES)) >= KINDS.keys()


@pytest.mark.parametrize("name", RECIPES)
def test_samples_are_written_again_as_they_were(name, path):
    path.write_bytes(content(name))
    save(unbag.load(path, encoder=new_encoder(name)), path)
    assert path.read_bytes() == content(name)


@every_model
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_models_answer_as_before(kind, dtype, path):
    bags = BAGS.with_features(BAGS.X.astype(dtype), BAGS.feature_names)
    model = seeded(kind).fit(bags, Y)
    again = saved_and_loaded(model, path)
    assert_equal(vars(again), vars(model))
    assert_equal(answers(again, bags), answers(model, bags))
    with pytest.raises(ValueError, match="Column 1 is width, but in fit it was length"):
        again.predict(bags.with_features(bags.X, ["pitch", "width"]))


@every_model
def test_pipelines_answer_as_before(kind, path):
    model = kernel_pipeline(seeded(kind), context=0.5, n_components=20, random_state=0)
    model.fit(BAGS, Y)
    again = saved_and_loaded(model, path)
    assert_equal(vars(again), vars(model))
    assert_equal(answers(again, BAGS), answers(model, BAGS))
    assert_equal(clone(again).fit(BAGS, Y).predict(BAGS), model.predict(BAGS))


@pytest.mark.parametrize("scaler", SCALERS.values(), ids=SCALERS)
def test_scalers_answer_as_before(scaler, path):
    options = {"n_quantiles": 10} if "n_quantiles" in inspect.signature(scaler).parameters else {}
    steps = [("scale", OnInstances(scaler(**options))), ("model", unbag.DummyInstances())]
    model = BagPipeline(steps).fit(BAGS, Y)
    again = saved_and_loaded(model, path)
    assert_equal(vars(again), vars(model))
    assert_equal(again[0].transform(BAGS).X, model[0].transform(BAGS).X)


@pytest.mark.parametrize(
    "classes",
    [[3, 5, 8], [1.0, 2.0, 5.0], ["wren", "tit", "the long-tailed tit 🐦"], [False, True]],
    ids=lambda classes: type(classes[0]).__name__,
)
def test_classes_keep_their_type(classes, path):
    y = np.array(classes)[np.arange(len(BAGS)) % len(classes)]
    for labels in (y, [{label} for label in y.tolist()]):
        model = ORLogisticRegression(max_iter=3).fit(BAGS, labels)
        again = saved_and_loaded(model, path)
        assert_equal(again.classes_, model.classes_)
        assert_equal(answers(again, BAGS, labels), answers(model, BAGS, labels))
        assert read_header(path)["classes"] == model.classes_.tolist()


def test_sparse_dictionaries(path):
    bags = Bags(sparse.csr_matrix(np.maximum(BAGS.X, 0)), BAGS.offsets)
    model = BagPipeline([
        ("scale", OnInstances(MaxAbsScaler())), ("kernel", unbag.RBFDictionary(n_components=20)),
        ("model", ORLogisticRegression(scaling=None, max_iter=3)),
    ]).fit(bags, Y)  # fmt: skip
    again = saved_and_loaded(model, path)
    assert type(again[1].dictionary_) is type(model[1].dictionary_)
    assert_equal(answers(again, bags), answers(model, bags))


def test_steps_that_pass_on(path):
    model = BagPipeline([("scale", "passthrough"), ("model", unbag.DummyBags())]).fit(BAGS, Y)
    assert_equal(answers(saved_and_loaded(model, path), BAGS), answers(model, BAGS))
    assert read_header(path)["features"] == {"count": 2, "names": ["pitch", "length"]}


def test_background_and_relaxed_bags(path):
    y = np.vstack([Y[:-1], [1, 1, 1]])
    bags = Bags.from_list([*BAGS[:-1], BAGS[0][:1]], ids=[f"night {b}" for b in range(40)])
    with pytest.warns(UserWarning, match="night 39"):
        model = ORLogisticRegression(background=True, max_iter=3).fit(bags, y)
    again = saved_and_loaded(model, path)
    assert_equal(again.relaxed_, model.relaxed_)
    assert list(again.relaxed_) == ["night 39"]
    assert_equal(answers(again, bags, y), answers(model, bags, y))


@pytest.mark.parametrize("options", [{}, {"background": "auto", "missed_rate": "learn"}])
def test_a_fit_goes_on_where_it_was(options, path):
    model = ORLogisticRegression(max_iter=3, **options).fit(BAGS, Y)
    again = saved_and_loaded(model, path)
    for other in (model, again):
        before = other.coef_
        other.set_params(max_iter=6).fit(BAGS, Y, start=other.progress_)
        assert other.n_iter_ > 3
        assert not np.allclose(other.coef_, before)
    assert_equal(vars(again), vars(model))


def test_arrays_in_either_order_of_memory(path):
    model = ORLogisticRegression(max_iter=3).fit(BAGS, Y)
    model.coef_ = np.asfortranarray(model.coef_)
    again = saved_and_loaded(model, path)
    assert again.coef_.flags.f_contiguous
    assert again.coef_.flags.writeable
    assert_equal(answers(again, BAGS), answers(model, BAGS))


def test_shared_arrays_are_written_once(path):
    model = unbag.SupervisedLogisticRegression(max_iter=3).fit(BAGS, Y)
    model.same_coef_ = model.coef_
    again = saved_and_loaded(model, path)
    assert again.coef_ is again.same_coef_
    assert "same_coef_" not in read_header(path)["arrays"]


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.floats(width=32).map(np.float32), st.floats().map(np.float64), st.booleans().map(np.bool_),
    st.integers(-(2**63), 2**63 - 1).map(np.int64), st.text(max_size=5).map(np.str_),
)  # fmt: skip
ARRAYS = st.one_of(
    of_numpy.arrays(
        st.one_of(of_numpy.boolean_dtypes(), of_numpy.integer_dtypes(endianness="="),
                  of_numpy.unsigned_integer_dtypes(endianness="="),
                  of_numpy.floating_dtypes(sizes=(16, 32, 64), endianness="=")),
        of_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    ).flatmap(lambda array: st.sampled_from([array, np.asfortranarray(array)])),
    st.lists(st.text("aß🐦", max_size=4)).map(lambda names: np.array(names, dtype="<U4")),
    st.lists(SCALARS, max_size=4).map(lambda items: np.array([*items, None], dtype=object)[:-1]),
)  # fmt: skip
KEYS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS | ARRAYS,
    lambda values: st.one_of(
        st.lists(values, max_size=3), st.lists(values, max_size=3).map(tuple),
        st.dictionaries(KEYS, values, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


@given(VALUES)
def test_values_survive(value):
    encoder = Encoder()
    header = json.dumps(encoder.encode(value, "value"), allow_nan=False)
    arrays = safetensors.numpy.load(safetensors.numpy.save(encoder.arrays))
    assert_equal(Decoder(arrays).decode(json.loads(header)), value)


# What the header tells, and what is left out.


def test_header(path, pipeline):
    info = {"roles": {"bag": "night", "labels": "birds"}, "n_bags": 40}
    pipeline.save(path, info=info)
    header = read_header(path)
    assert header["format"] == FORMAT
    assert header["kind"] == "BagPipeline"
    assert header["versions"]["unbag"] == unbag.__version__
    assert header["features"] == {"count": 2, "names": ["pitch", "length"]}
    assert header["classes"] == [0, 1, 2]
    assert [step["name"] for step in header["steps"]] == ["scale", "context", "kernel", "model"]
    assert header["steps"][2]["parameters"]["n_components"] == 20
    assert header["steps"][3]["class"] == "ORLogisticRegression"
    assert header["training"]["n_iter_"] == 5
    assert header["training"]["history_"] == pipeline[-1].history_.tolist()
    assert header["training"]["log_likelihood_"] == pipeline[-1].log_likelihood_
    assert header["training"]["has_background_"] is False
    assert header["training"]["converged_"] is False
    assert header["info"] == info
    assert header["arrays"]["steps.kernel.whitener_"] == {"dtype": "F64", "shape": [20, 20]}
    assert "model" not in header
    json.dumps(header, allow_nan=False)


def test_files_are_reproducible(path, pipeline):
    pipeline.save(path)
    first = path.read_bytes()
    unbag.load(path).save(path)
    assert path.read_bytes() == first


def test_what_is_left_out(path, tmp_path):
    kernel = RBFDictionary(n_components=20, random_state=np.random.RandomState(0))
    steps = [("kernel", kernel), ("model", ORLogisticRegression(scaling=None, max_iter=3))]
    model = BagPipeline(steps, memory=str(tmp_path / "cache")).fit(BAGS, Y)
    again = saved_and_loaded(model, path)
    assert again.memory is None
    assert again[0].random_state is None
    assert_equal(answers(again, BAGS), answers(model, BAGS))
    assert read_header(path)["notes"] == [
        "memory was left out",
        "steps.kernel.random_state, a random generator, was left out",
    ]


class Foreign(ORLogisticRegression):
    """Not of the library, so that no file can bring it back."""


# Neither is what has the name of a class of the library.
Namesake = type("MaxAbsScaler", (MaxAbsScaler,), {})


@pytest.mark.parametrize(
    ("attribute", "value", "named"),
    [
        ("odd_", {1, 2}, r"steps\.model\.odd_ is of the type set"),
        ("odd_", [1, (2, object())], r"steps\.model\.odd_\[1\]\[1\] is of the type object"),
        ("odd_", {"a": {2: print}}, r"odd_\['a'\]\[2\] is of the type builtin_function"),
        ("odd_", np.array([1j]), "odd_ is an array of complex128"),
        ("odd_", np.array(["2024"], dtype="M8[D]"), "odd_ is an array of datetime64"),
        ("odd_", np.array([b"x"]), "odd_ is an array of"),
        ("odd_", np.zeros(2, dtype="f4,i4"), "odd_ is an array of"),
        ("odd_", np.array([{1}, None], dtype=object), r"odd_\[0\] is of the type set"),
        ("odd_", np.longdouble(1), "odd_ has the type"),
        ("odd_", np.array(["x" * 2**20] * 80), "odd_ holds strings of"),
        ("odd_", np.ma.array([1, 2]), "odd_ is of the type numpy.ma"),
        ("odd_", sparse.coo_matrix([[1.0]]), "odd_ is of the type scipy.sparse"),
        ("odd_", PolynomialFeatures(), "odd_ is of the type sklearn"),
        ("odd_", Foreign(), "odd_ is of the type .*Foreign"),
        ("odd_", Namesake(), "odd_ is of the type .*MaxAbsScaler"),
        ("odd_", FunctionTransformer(np.log), r"odd_\.func is of the type numpy.ufunc"),
        ("odd", 1, r"steps\.model\.odd is not a learnt attribute"),
        ("predict", 1, r"steps\.model\.predict is not a learnt attribute"),
        ("alpha", lambda: 1, r"steps\.model\.alpha is of the type function"),
    ],
)
def test_what_a_file_cannot_hold_is_named(attribute, value, named, pipeline, saved):
    model = BagPipeline([*pipeline.steps[:-1], ("model", pickle.loads(pickle.dumps(pipeline[-1])))])
    setattr(model[-1], attribute, value)
    before = saved.read_bytes()
    with pytest.raises(ModelFileError, match=named) as caught:
        model.save(saved)
    assert "\n" not in str(caught.value)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


@pytest.mark.parametrize("info", [[1], {"a": np.int64(1)}, {"a": np.nan}, {"a": (1,)}, {1: 2}])
def test_info_must_be_json(info, path, pipeline):
    with pytest.raises(ModelFileError, match="info must be a dict that JSON can represent"):
        pipeline.save(path, info=info)
    assert not path.exists()


def test_only_fitted_models_of_ours_are_written(path, monkeypatch):
    with pytest.raises(NotFittedError):
        ORLogisticRegression().save(path)
    with pytest.raises(ModelFileError, match=r"Foreign: only models of unbag"):
        Foreign(max_iter=1).fit(BAGS, Y).save(path)
    model = unbag.DummyBags().fit(BAGS, Y)
    monkeypatch.setattr("unbag.models.container.LONGEST_TABLE", 2**10)
    with pytest.raises(ModelFileError, match="shorten the names of features"):
        model.save(path)
    assert os.listdir(path.parent) == []


def test_a_pipeline_within_a_pipeline(path):
    inner = unbag.BagPipeline([("context", unbag.BagContext())])
    model = unbag.BagPipeline([("inner", inner), ("model", ORLogisticRegression(max_iter=3))])
    model.fit(BAGS, Y)
    again = saved_and_loaded(model, path)
    assert_equal(answers(again, BAGS), answers(model, BAGS))
    assert read_header(path)["features"]["count"] == BAGS.n_features
