"""Tiny networks as files, for tests of networks of other people."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def onnx_file(path, nodes, *, inputs, outputs=("y",), **constants):
    """Write an ONNX network; nodes are an operator, its inputs, its output and its attributes.

    `inputs` are shapes by name, with None for an axis of any length; or types and shapes.
    """

    def value(name, shape):
        dtype, shape = shape if isinstance(shape[0], str) else ("FLOAT", shape)
        axes = [f"axis_{at}" if each is None else each for at, each in enumerate(shape)]
        return helper.make_tensor_value_info(name, getattr(TensorProto, dtype), axes)

    graph = helper.make_graph(
        [
            helper.make_node(operator, own, [output], **attributes)
            for operator, own, output, attributes in nodes
        ],
        "tiny",
        [value(name, shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def listener(path, window=8000, size=6, batch=None, seed=0):
    """Write a network of waveforms: energies of bands (``inner``), and their logarithms (``y``)."""
    rng = np.random.default_rng(seed)
    time = np.arange(window)
    waves = [np.sin(2 * np.pi * f * time) for f in np.geomspace(0.02, 0.4, size)]
    weights = (np.array(waves).T + 0.01 * rng.standard_normal((window, size))).astype("float32")
    nodes = [
        ("MatMul", ["x", "weights"], "products", {}),
        ("Mul", ["products", "products"], "inner", {}),
        ("Add", ["inner", "one"], "shifted", {}),
        ("Log", ["shifted"], "y", {}),
    ]
    return onnx_file(
        path, nodes, inputs={"x": (batch, window)}, weights=weights, one=np.float32([1])
    )
