"""Every array of every sample, spoilt: the file is refused, or the model answers in numbers."""

from dataclasses import replace

import numpy as np
import pytest

import unbag
from sample_models import ASKED, RECIPES, new_encoder, parts
from toys import answers
from unbag.models import ModelFileError, container

NAN = {"is": "float", "value": "nan"}
FLOATS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 2.0, 1e300, -1e300, 1e10]
INTEGERS = [-1, 0, 7, 2**31 - 1, -(2**62), 2**62]
# What is wrong with numbers that no fit ends in, but that are numbers.
TOO_LARGE = "must lie within"


def spoilt(array, rng):
    """Yield copies of an array in which an entry, or all, or the shape is another."""
    numbers = FLOATS if array.dtype.kind == "f" else INTEGERS if array.dtype.kind in "iu" else []
    for number in numbers if array.size else ():
        if array.dtype.kind == "f" or abs(number) <= np.iinfo(array.dtype).max:
            one, every = array.copy(), array.copy()
            # In single precision, the largest are infinite.
            with np.errstate(over="ignore"):
                one.flat[rng.integers(array.size)] = number
                every[...] = number
            yield from (one, every)
    if array.ndim:
        yield from (array[:0], array[:-1], np.concatenate([array, array]), array.T.copy())
        yield from (array[None], np.nan_to_num(array).astype(np.uint8))


def assert_finite(said):
    for method, answer in said.items():
        answer = np.asarray(answer)
        if answer.dtype.kind == "f":
            # A label set may be impossible, of which the logarithm is minus infinity.
            impossible = np.isneginf(answer) & (method == "log_likelihood")
            assert (np.isfinite(answer) | impossible).all(), method
        if "proba" in method:
            assert (np.abs(answer - 0.5) <= 0.5 + 1e-9).all(), method


@pytest.mark.parametrize("kept", RECIPES)
def test_spoilt_arrays_are_refused_or_do_no_harm(kept, path):
    rng = np.random.default_rng(0)
    bags, labels = ASKED
    header, arrays = parts(kept)
    for name, array in arrays.items():
        for changed in spoilt(array, rng):
            container.write(path, header, {**arrays, name: changed})
            try:
                model = unbag.load(path, encoder=new_encoder(kept))
            except ModelFileError:
                continue
            try:
                with np.errstate(all="ignore"):
                    if hasattr(model, "transform"):
                        X = model.transform(bags).X
                        found = {"transform": X.toarray() if hasattr(X, "toarray") else X}
                    elif model.classes_.dtype.kind == "U":
                        found = answers(model, bags, labels)
                    else:
                        found = {"decision_function": model.decision_function(bags)}
            except ValueError as error:
                if TOO_LARGE not in str(error):
                    raise
                continue
            assert_finite(found)


def in_state(**values):
    return lambda model: model["state"].update(values)


def in_params(**values):
    return lambda model: model["params"].update(values)


EDITS = [
    ("BagContext", in_params(weight=NAN), "parameter weight of BagContext must be a number"),
    ("ORLogisticRegression", in_params(alpha=NAN), "parameter alpha of ORLogisticRegression must"),
    ("MIMLSVM", in_params(C=[1.0, NAN]), "parameter C of MIMLSVM must be a number, but holds nan"),
    ("BagContext", in_params(weight={"is": "float", "value": "inf"}), "weight is inf, by which"),
    ("BagContext", in_state(n_features_in_=0), "n_features_in_ of BagContext is 0"),
    ("DummyBags", in_state(n_features_in_=2.0), "n_features_in_ of DummyBags is 2.0"),
    ("DummyBags", in_state(n_features_in_=True), "n_features_in_ of DummyBags is True"),
    ("SIM", in_state(feature_names_in_=-1), "feature_names_in_ of SIM is not a list of 2 names"),
    ("SIM", in_state(feature_names_in_=None), "feature_names_in_ of SIM is not a list of 2 names"),
    ("SIM", in_state(feature_names_in_="ab"), "feature_names_in_ of SIM is not a list of 2 names"),
    ("SIM", in_state(classes_=[]), "classes_ is not a list of classes"),
    ("LSBCMM", lambda model: model["state"]["classes_"].update(
        items=["owl"] * len(model["state"]["classes_"]["items"])), "Class 'owl' occurs twice"),
    ("OnInstances-QuantileTransformer", lambda model: model["state"]["transformer_"][
        "params"].update(output_distribution="xyz"), "do not fit together"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kept", "change", "why"), EDITS, ids=[f"{kept}-{why[:40]}" for kept, _, why in EDITS]
)
def test_what_is_no_array_is_checked_too(kept, change, why, path):
    header, arrays = parts(kept)
    change(header["model"])
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match=why):
        unbag.load(path)


@pytest.mark.parametrize(
    ("kept", "array", "change", "why"),
    [
        ("LSBCMM", "component_proba_", np.zeros_like, "component_proba_ .* does not sum to 1"),
        ("RBFDictionary", "dictionary_", lambda a: a + 1e300, "dictionary_ .* from -1e150 to"),
        ("DummyInstances", "frequency_", lambda a: np.append(a, a), "do not fit together"),
    ],
)
def test_arrays_that_contradict_what_they_are(kept, array, change, why, path):
    header, arrays = parts(kept)
    container.write(path, header, {**arrays, array: change(arrays[array])})
    with pytest.raises(ModelFileError, match=why):
        unbag.load(path)


@pytest.mark.parametrize("name", ["missed_rate", "false_rate", "class_counts_"])
@pytest.mark.parametrize("rates", [np.zeros(1), np.zeros(3), np.zeros((1, 2))])
def test_what_is_known_of_classes_belongs_to_them(name, rates, path):
    bags = [[[0.0], [9.0]], [[1.0]], [[8.0]], [[1.0], [7.0]]]
    model = unbag.ORLogisticRegression().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    if name == "class_counts_":
        model.class_counts_ = rates
    else:
        model.conditioner_ = replace(model.conditioner_, **{name: rates})
    model.save(path)
    with pytest.raises(ModelFileError, match=rf"{name} has shape .*, not \(2,\)"):
        unbag.load(path)


@pytest.mark.parametrize("name", ["missed_rate", "false_rate"])
@pytest.mark.parametrize("rate", [1e-300, 1.0])
def test_rates_of_wrong_labels_lie_in_their_range(name, rate, path):
    bags = [[[0.0], [9.0]], [[1.0]], [[8.0]], [[1.0], [7.0]]]
    model = unbag.ORLogisticRegression().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    model.conditioner_ = replace(model.conditioner_, **{name: np.array([0.1, rate])})
    model.save(path)
    with pytest.raises(ModelFileError, match=f"{name} must be 0, or at least 1e-12 and below 1"):
        unbag.load(path)


@pytest.mark.parametrize("scale", [1e-14, 1e-6, 1e6, 1e14])
def test_models_of_any_scale_are_loaded(scale, path):
    bags = [np.array(bag) * scale for bag in ([[0.0], [9.0]], [[1.0]], [[8.0]], [[1.0], [7.0]])]
    model = unbag.ORLogisticRegression().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    model.save(path)
    assert (unbag.load(path).predict_instances(bags) == model.predict_instances(bags)).all()
