"""What numbers a model file may hold: those that a model can have learnt, and no others."""

import os
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import unbag
from sample_models import RECIPES, new_encoder, parts
from toys import BAGS, Y, assert_equal
from unbag.models import ModelFileError, container
from unbag.models.kinds import FINITE, NOT_NEGATIVE, POSITIVE, SHARE

# How a fit went, and a share of nothing.
MAY_BE_ANYTHING = ("history_", "objective_", "explained_variance_ratio_")


@pytest.mark.parametrize(
    ("allowed", "inside", "outside"),
    [
        (FINITE, [-1e100, 0, 1], [np.nan, np.inf, -np.inf, 1e101]),
        (POSITIVE, [1e-100, 1], [0, 5e-324, -1, np.nan, np.inf]),
        (NOT_NEGATIVE, [0, 1], [-5e-324, np.nan, np.inf]),
        (SHARE, [0, 1, 1 + 1e-15], [-1e-300, 1.001, np.nan]),
    ],
)
def test_ranges(allowed, inside, outside):
    for number in outside:
        numbers = np.array([*inside, number, inside[0]])
        for value in (number, [*inside, (number,)], numbers, sparse.csr_matrix([numbers])):
            if sparse.issparse(value) and number == 0:
                continue
            with pytest.raises(ModelFileError, match=rf"^coef_ must be {allowed.description}, but"):
                allowed.check(value, "coef_")
    for value in (*inside, inside, np.array(inside), np.float32(inside[-1]), None, "x"):
        allowed.check(value, "coef_")
    allowed.check(np.zeros((0, 3)), "coef_")


@pytest.mark.parametrize("kept", RECIPES)
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_no_array_that_counts_may_hold_what_is_no_number(kept, number, path):
    header, arrays = parts(kept)
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not array.size or name.endswith(MAY_BE_ANYTHING):
            continue
        changed = array.copy()
        changed.flat[-1] = number
        container.write(path, header, {**arrays, name: changed})
        with pytest.raises(ModelFileError, match=rf"must be .*, but holds {number}"):
            unbag.load(path, encoder=new_encoder(kept))


@pytest.mark.parametrize(
    ("kept", "array", "number", "why"),
    [
        ("DummyBags", "frequency_", 1.5, "frequency_ of DummyBags must be from 0 to 1"),
        ("DummyInstances", "frequency_", -0.5, "frequency_ of DummyInstances must be from 0 to 1"),
        ("LSBCMM", "component_proba_", 1.1, "component_proba_ of LSBCMM must be from 0 to 1"),
        ("LSBCMM", "scaler_.scale_", -1, "scale_ of StandardScaler must be finite and above 0"),
        ("LSBCMM", "scaler_.var_", -1, "var_ of StandardScaler must be finite and not negative"),
        ("MIMLNN", "scaler.scale_", 0, "scale_ of MinMaxScaler must be finite and above 0"),
        ("MIMLSVM", "training_distances", -1, "training_distances of MIMLSVM must be finite and"),
        ("ORLogisticRegression", "progress_.scale.scale", -1, "scale of Scale must be finite and"),
        ("ORLogisticRegression-rates", "progress_.rates.missed_rate", -1, "missed_rate of Rates m"),
        ("ORLogisticRegression-rates", "conditioner_.missed_rate", 2, "missed_rate of Conditioner"),
        ("OnInstances-RobustScaler", "transformer_.scale_", 0, "scale_ of RobustScaler must be"),
        ("OnInstances-MaxAbsScaler", "transformer_.scale_", -3, "scale_ of MaxAbsScaler must be"),
        ("OnInstances-QuantileTransformer", "transformer_.references_", 2, "references_ of Quanti"),
    ],
)  # fmt: skip
def test_numbers_that_cannot_have_been_learnt(kept, array, number, why, path):
    header, arrays = parts(kept)
    arrays[array].flat[0] = number
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match=why):
        unbag.load(path)


@pytest.mark.parametrize(
    ("kept", "name", "number", "why"),
    [
        ("RBFDictionary", "delta_", 0.0, "delta_ of RBFDictionary must be finite and above 0"),
        ("RBFDictionary", "delta_", {"is": "float", "value": "nan"}, "delta_ of RBF.* holds nan"),
        ("RBFDictionary", "delta_", [1.0, {"is": "float", "value": "inf"}], "but holds inf"),
        ("MIMLSVM", "gamma", -1.0, "gamma of MIMLSVM must be finite and not negative"),
    ],
)
def test_single_numbers_that_cannot_have_been_learnt(kept, name, number, why, path):
    header, arrays = parts(kept)
    header["model"]["state"][name] = number
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match=why):
        unbag.load(path)


@pytest.mark.parametrize(
    ("record", "name", "value", "why"),
    [
        ("conditioner_", "background", 1, "background of Conditioner must be true or false"),
        ("conditioner_", "background_cost", -1.0, "cost of Conditioner must be finite and not neg"),
        ("conditioner_", "background_cost", "1", "Conditioner must be a number, but is '1'"),
        ("conditioner_", "missed_rate", 0.5, "missed_rate of Conditioner must be an array"),
        ("conditioner_", "temperature", 0.0, "temperature of Conditioner must be finite and above"),
        ("conditioner_", "temperature", None, "temperature of Conditioner must be a number"),
        ("conditioner_", "on_intractable", "drop", "on_intractable of Conditioner must be one of"),
        ("decision_", "kind", "x", "kind of Decision must be"),
        ("decision_", "background_cost", -1.0, "cost of Decision must be finite and not negative"),
        (
            "decision_",
            "temperature_new",
            0.0,
            "temperature_new of Decision must be finite and above 0",
        ),
        ("decision_", "rates", [], "rates of Decision must be a record Rates"),
        ("decision_", "held_out", [], "held_out of Decision must be a dict of numbers"),
        ("progress_", "weights", [[1.0]], "weights of Progress must be an array"),
        ("progress_", "scale", None, "scale of Progress must be a record Scale"),
        ("progress_", "decision", None, "decision of Progress must be a record Decision"),
        ("progress_", "history", [1.0], "history of Progress must be a tuple of numbers"),
        ("progress_", "relaxed", [1.0], "relaxed of Progress must be a dict"),
        ("progress_", "ended", "later", "ended of Progress must be one of"),
    ],
)
def test_fields_of_records_that_no_fit_leaves(record, name, value, why, path):
    header, arrays = parts("ORLogisticRegression-rates")
    header["model"]["state"][record][name] = value
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match=why):
        unbag.load(path)


@pytest.mark.parametrize("name", ["conditioner_", "decision_", "progress_"])
@pytest.mark.parametrize("kept", ["DummyInstances", "SIM", "ORLogisticRegression"])
def test_records_are_in_their_place(kept, name, path):
    header, arrays = parts(kept)
    header["model"]["state"][name] = "x"
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match=f"{name} of {kept} must be a .*, but is 'x'"):
        unbag.load(path)


@pytest.mark.parametrize("name", ["weights", "scale.shift", "scale.scale", "rates.false_rate"])
def test_arrays_of_a_progress_fit_together(name, path):
    header, arrays = parts("ORLogisticRegression-rates")
    for changed in (arrays[f"progress_.{name}"][..., :-1], arrays[f"progress_.{name}"][None]):
        container.write(path, header, {**arrays, f"progress_.{name}": changed})
        with pytest.raises(ModelFileError, match=r" has shape .*, not \("):
            unbag.load(path)


def test_a_background_has_a_column_of_scores(path):
    header, arrays = parts("ORLogisticRegression")
    header["model"]["state"]["conditioner_"]["background"] = True
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match=r"gives scores of shape \(7, 3\), not \(7, 4\)"):
        unbag.load(path)


@pytest.mark.parametrize("ids", [np.arange(3), np.zeros((1, 12))], ids=["too few", "in a table"])
def test_bags_have_one_id_each(ids, path):
    header, arrays = parts("MIMLNN")
    container.write(path, header, {**arrays, "medoids.ids": ids})
    with pytest.raises(ModelFileError, match="the number of ids is not the number of bags"):
        unbag.load(path)


def test_how_a_fit_went_may_be_anything(path):
    model = unbag.ORLogisticRegression(max_iter=3).fit(BAGS, Y)
    model.progress_ = replace(model.progress_, history=(np.nan, -np.inf))
    assert model.log_likelihood_ == -np.inf
    model.save(path)
    assert_equal(vars(unbag.load(path)), vars(model))


def test_a_model_that_could_not_be_loaded_is_not_written(path):
    model = unbag.ORLogisticRegression(max_iter=3).fit(BAGS, Y)
    model.coef_[0, 0] = np.nan
    with pytest.raises(ModelFileError, match=r"cannot be saved: coef_ of .* nan\. Scale .* again"):
        model.save(path)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("last", [-(2**31), -1])
def test_offsets_of_sparse_matrices_are_compared_without_overflow(last, path):
    header, arrays = parts("RBFDictionary-csr_matrix")
    arrays["dictionary_.indptr"][-1] = last
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match="indices outside its shape"):
        unbag.load(path)
