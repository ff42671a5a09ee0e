"""Models as ONNX: a runtime gives the answers that the model gives."""

import json

import numpy as np
import pytest
from sklearn.preprocessing import Normalizer, StandardScaler

from unbag import (
    BagContext,
    BagPipeline,
    Bags,
    OnInstances,
    ORLogisticRegression,
    SupervisedLogisticRegression,
    kernel_pipeline,
)
from unbag.export import ExportError, to_onnx, write_onnx
from unbag.paper import SIM

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


@pytest.fixture
def bags(rng):
    sizes = rng.integers(1, 6, size=40)
    X = rng.normal(size=(sizes.sum(), 4))
    labels = np.array(["wren", "owl", "héron"])[X[:, :3].argmax(axis=1)]
    X = X * [1, 10, 0.1, 1] + [0, 100, 0, -5]
    return Bags(X.astype(np.float32), np.r_[0, sizes.cumsum()], instance_labels=labels)


@pytest.fixture
def y(bags):
    return [set(labels) for labels in np.split(bags.instance_labels, bags.offsets[1:-1])]


def linear(**params):
    return ORLogisticRegression(max_iter=20, **params)


def piped(transformer):
    return BagPipeline([("transform", transformer), ("model", linear())])


MODELS = {
    "linear": linear(),
    "minmax": linear(scaling="minmax"),
    "background": linear(background=True),
    "wrong labels": linear(missed_rate=0.1, false_rate=0.05),
    "context": piped(BagContext(0.5)),
    "kernel": kernel_pipeline(linear(), n_components=20, random_state=0),
    "kernel in context": kernel_pipeline(linear(), context=0.5, n_components=20, random_state=0),
    "plain kernel": kernel_pipeline(linear(), whiten=False, n_components=20, random_state=0),
    "StandardScaler": piped(OnInstances(StandardScaler())),
    "StandardScaler without mean": piped(OnInstances(StandardScaler(with_mean=False))),
    "passthrough": piped("passthrough"),
}


def answers(exported, X):
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    return session.run(None, {"instances": X})


def assert_same_answers(model, bags, exported, dtype=np.float32):
    for start, stop in zip(bags.offsets, bags.offsets[1:], strict=False):
        X = bags.X[start:stop].astype(dtype)
        bag = Bags(X, [0, len(X)])
        instances, presence = answers(exported, X)
        np.testing.assert_allclose(instances, model.predict_instances_proba(bag), atol=1e-5)
        np.testing.assert_allclose(presence, model.predict_proba(bag)[0], atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_runtime_gives_the_answers_of_the_model(name, bags, y):
    model = MODELS[name].fit(bags, y)
    assert_same_answers(model, bags[:10], to_onnx(model))
    assert_same_answers(model, bags[:3], to_onnx(model, double=True), np.float64)


def test_supervised_models_too(bags, y):
    model = SupervisedLogisticRegression().fit(bags, y)
    assert_same_answers(model, bags[:10], to_onnx(model))


@pytest.mark.torch
@pytest.mark.parametrize("hidden", [(8,), (8, 6), (8, 6, 5)])
@pytest.mark.parametrize("context_units", [0, 3])
@pytest.mark.parametrize("encoding", [None, "quantile"])
def test_networks_too(hidden, context_units, encoding, bags, y):
    from unbag.torch import ORNetwork

    model = ORNetwork(
        hidden, context_units=context_units, encoding=encoding, n_members=3, max_iter=5,
        background=True, random_state=0, device="cpu",
    ).fit(bags, y)  # fmt: skip
    assert_same_answers(model, bags[:10], to_onnx(model))


@pytest.mark.torch
def test_committees_too(bags, y, monkeypatch):
    from unbag.torch import ORNetwork

    # However few steps networks take, the linear model shall not be used alone.
    monkeypatch.setattr("unbag.torch.committee.CLEARLY", np.inf)
    model = ORNetwork((8, 6), max_iter=5, background=True, random_state=0, device="cpu")
    model.fit(bags, y)
    model.pool_weights_ = np.array([0.1, 0.2, 0.3, 0.0, 0.4])
    assert_same_answers(model, bags[:10], to_onnx(model))


def test_the_file_says_what_the_columns_are(bags, y):
    named = Bags(bags.X, bags.offsets, feature_names=["a", "b", "c", "d"])
    exported = to_onnx(linear(background=True, threshold=0.3).fit(named, y))
    facts = {each.key: json.loads(each.value) for each in exported.metadata_props}
    assert facts == {
        "classes": ["héron", "owl", "wren"],
        "feature_names": ["a", "b", "c", "d"],
        "background": True,
        "threshold": 0.3,
    }
    assert exported.ir_version == 8
    assert [(each.domain, each.version) for each in exported.opset_import] == [("", 17)]


def test_a_bag_without_instances_has_no_class(bags, y):
    instances, presence = answers(
        to_onnx(piped(BagContext(0.5)).fit(bags, y)), np.zeros((0, 4), np.float32)
    )
    assert instances.shape == (0, 3)
    assert not presence.any()


def test_what_onnx_cannot_say_is_named(bags, y):
    with pytest.raises(ExportError, match="SIM cannot be exported"):
        to_onnx(SIM().fit(bags, y))
    with pytest.raises(ExportError, match="Normalizer cannot be exported"):
        to_onnx(piped(OnInstances(Normalizer())).fit(bags, y))


def test_a_model_that_a_runtime_answers_otherwise_is_not_written(bags, y, tmp_path, monkeypatch):
    model = linear().fit(bags, y)
    monkeypatch.setattr("unbag.export.largest_difference", lambda *_: 1e-3)
    with pytest.raises(ExportError, match="differ"):
        write_onnx(model, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_model(tmp_path, bags, y, capsys):
    from unbag.cli import main

    linear().fit(bags, y).save(tmp_path / "m.unbag")
    with pytest.raises(SystemExit) as left:
        main(["export", str(tmp_path / "m.unbag"), "-o", str(tmp_path / "m.onnx"), "--json"])
    assert not left.value.code
    shown = json.loads(capsys.readouterr().out)
    assert shown["bytes"] == (tmp_path / "m.onnx").stat().st_size
    with pytest.raises(SystemExit) as left:
        main(["export", str(tmp_path / "m.unbag"), "-o", str(tmp_path / "m.tflite")])
    assert left.value.code == 1
    assert "must end in .onnx" in capsys.readouterr().err
