"""Models for other programs: one ONNX graph from the features of a bag to probabilities.

========================== ======================================================
input ``instances``        (n_instances, n_features) the instances of one bag
output                     (n_instances, n_columns) as `predict_instances_proba`
``instance_probabilities`` gives them
output ``presence``        (n_classes,) as `predict_proba` gives it for that bag
metadata                   ``classes`` and ``feature_names`` as JSON lists,
                           ``background`` (true or false), ``threshold``
========================== ======================================================

Scaling, context and kernel are part of the graph. It computes in float64 as the models do: far from
the origin, or after whitening, float32 would lose what they know.
"""

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from unbag._files import writing
from unbag._messages import require
from unbag._version import __version__
from unbag.bags import Bags
from unbag.estimators.answers import LinearUnionClassifier, UnionClassifier
from unbag.fitting.calibration import AS_IT_IS
from unbag.preprocessing import BagContext, OnInstances, RBFDictionary

#: What runtimes of several years read; the newest versions are refused by many.
OPSET, IR_VERSION = 17, 8
#: The most that a runtime's probabilities may differ from the model's.
TOLERANCE = 1e-5
#: The least probability whose logarithm is taken.
SMALLEST = 1e-300


class ExportError(ValueError):
    """A model, or a step of it, cannot be said in ONNX; the message names it."""


class _Graph:
    """Operators, in the order of their computation, and the constants that they need."""

    def __init__(self) -> None:
        onnx = require("onnx")
        self._helper, self._from_array = onnx.helper, onnx.numpy_helper.from_array
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: type = np.float64) -> str:
        """Add a constant; return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self._from_array(np.asarray(value, dtype=dtype), name))
        return name

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add an operator; return the name of what it computes."""
        name = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operator, inputs, [name], **attributes))
        return name

    def affine(self, X: str, weights: np.ndarray, shift: np.ndarray) -> str:
        """Add ``X @ weights + shift``."""
        return self.add("Add", self.add("MatMul", X, self.constant(weights)), self.constant(shift))

    def scaled(self, X: str, shift: Any, scale: Any) -> str:
        """Add ``(X - shift) / scale``; what is None is left out."""
        if shift is not None:
            X = self.add("Sub", X, self.constant(shift))
        return X if scale is None else self.add("Div", X, self.constant(scale))

    def beside(self, X: str, of_bag: str) -> str:
        """Append to each instance what is one row for its bag."""
        rows = self.add("Slice", self.add("Shape", X), self.constant([0], np.int64),
                        self.constant([1], np.int64))  # fmt: skip
        shape = self.add("Concat", rows, self.constant([1], np.int64), axis=0)
        return self.add("Concat", X, self.add("Expand", of_bag, shape), axis=1)


def to_onnx(model: Any, *, double: bool = False) -> Any:
    """Convert a fitted model to ONNX.

    Parameters
    ----------
    model : ORLogisticRegression, SupervisedLogisticRegression, ORNetwork, or a BagPipeline of one
        Fitted.
    double : bool, default=False
        Whether the features that go in are float64, rather than float32.

    Returns
    -------
    onnx.ModelProto
        See above for what goes in and what comes out.

    Raises
    ------
    ValueError
        If the model, or a step of its pipeline, cannot be said in ONNX.

    Examples
    --------
    >>> from unbag import ORLogisticRegression
    >>> model = ORLogisticRegression().fit([[[0.0], [9.0]], [[1.0]]], [{"a", "b"}, {"a"}])
    >>> [output.name for output in to_onnx(model).graph.output]
    ['instance_probabilities', 'presence']
    """
    onnx = require("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    classifier = _steps(model)[-1]
    graph = _Graph()
    proba = _probabilities(graph, model, graph.add("Cast", "instances", to=types.DOUBLE))
    presence = _presence(graph, proba, len(classifier.classes_), classifier.presence_)
    outputs = [
        (name, graph.add("Cast", value, name=name, to=types.FLOAT), shape)
        for name, value, shape in (
            ("instance_probabilities", proba, ["n_instances", _n_columns(classifier)]),
            ("presence", presence, [len(classifier.classes_)]),
        )
    ]
    made = helper.make_model(
        helper.make_graph(
            graph.nodes,
            type(classifier).__name__,
            [
                helper.make_tensor_value_info(
                    "instances", types.DOUBLE if double else types.FLOAT,
                    ["n_instances", _steps(model)[0].n_features_in_],
                )
            ],
            [helper.make_tensor_value_info(n, types.FLOAT, shape) for n, _, shape in outputs],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="unbag",
        producer_version=__version__,
    )  # fmt: skip
    helper.set_model_props(made, _metadata(model, classifier))
    onnx.checker.check_model(made, full_check=True)
    return made


def write_onnx(model: Any, path: str | os.PathLike[str], *, double: bool = False) -> None:
    """Write a fitted model to an ONNX file, once a runtime has given the answers that it gives.

    Parameters
    ----------
    model, double
        As in `to_onnx`.
    path : str or path-like
        An old file there is replaced when the new one is complete, and else stays.
    """
    made = to_onnx(model, double=double).SerializeToString()
    difference = largest_difference(model, made)
    if not difference <= TOLERANCE:
        raise ExportError(
            f"The exported model's probabilities differ from the model's by {difference:.1g}, more "
            f"than {TOLERANCE:g}: its weights are too large for float32 features. Try double=True."
        )
    with writing(path) as file:
        file.write(made)


def largest_difference(model: Any, exported: bytes) -> float:
    """Return how far probabilities in onnxruntime are from a model's, on three random bags."""
    runtime = require("onnxruntime")
    session = runtime.InferenceSession(exported, providers=["CPUExecutionProvider"])
    takes_double = session.get_inputs()[0].type == "tensor(double)"
    dtype = np.float64 if takes_double else np.float32
    rng = np.random.default_rng(0)
    centre, spread = _typical_features(model)
    largest = 0.0
    for n_instances in (1, 5, 20):
        X = (centre + spread * rng.normal(size=(n_instances, len(centre)))).astype(dtype)
        bags = Bags(X, [0, n_instances])
        instances, presence = session.run(None, {"instances": X})
        for ours, theirs in (
            (model.predict_instances_proba(bags), instances),
            (model.predict_proba(bags)[0], presence),
        ):
            largest = max(largest, float(np.abs(ours - theirs).max()))
    return largest


def _steps(model):
    """Return what is done to features, one after the other; a model by itself is one step."""
    steps = [step for _, step in getattr(model, "steps", [("model", model)])]
    return [step for step in steps if step not in (None, "passthrough")]


def _probabilities(graph, model, X):
    """Add the steps of a model, and return the probabilities of instances."""
    *transformers, classifier = _steps(model)
    for step in transformers:
        X = _listed(_TRANSFORMERS, step)(graph, step, X)
    return _listed(_CLASSIFIERS, classifier)(graph, classifier, X)


def _n_columns(classifier):
    return len(classifier.classes_) + bool(classifier.has_background_)


def _metadata(model, classifier):
    names = getattr(model, "feature_names_in_", None)
    return {
        "classes": json.dumps(classifier.classes_.tolist(), ensure_ascii=False),
        "feature_names": json.dumps(None if names is None else list(names), ensure_ascii=False),
        "background": json.dumps(bool(classifier.has_background_)),
        "threshold": json.dumps(classifier.threshold),
    }


def _typical_features(model):
    """Return features as the model has seen them: where they lie, and how far apart."""
    first = _steps(model)[0]
    scale: Any = getattr(first, "scale_", None)
    if hasattr(scale, "shift"):
        return scale.shift, scale.scale
    scaler = getattr(first, "transformer_", None)
    centre, spread = getattr(scaler, "mean_", None), getattr(scaler, "scale_", None)
    return (
        np.zeros(first.n_features_in_) if centre is None else centre,
        np.ones(first.n_features_in_) if spread is None else spread,
    )


def _listed(table: dict[str, Callable[..., str]], step: Any) -> Callable[..., str]:
    name = type(step).__name__
    if name not in table:
        raise ExportError(f"{name} cannot be exported to ONNX; known are {', '.join(table)}.")
    return table[name]


def _presence(graph, proba, n_classes, calibration):
    """Add one minus the product over instances of the probability of another class, calibrated."""
    first, last = (graph.constant([place], np.int64) for place in (0, n_classes))
    named = graph.add("Slice", proba, first, last, graph.constant([1], np.int64))
    absent = graph.add("Max", graph.add("Sub", graph.constant(1.0), named), graph.constant(1e-300))
    axes = graph.constant([0], np.int64)
    total = graph.add("ReduceSum", graph.add("Log", absent), axes, keepdims=0)
    if calibration != AS_IT_IS:
        count = graph.add("Pow", graph.add("Neg", total), graph.constant(calibration.slope))
        total = graph.add("Mul", count, graph.constant(-np.exp(calibration.shift)))
    return graph.add("Sub", graph.constant(1.0), graph.add("Exp", total))


# Transformers.


def _on_instances(graph, step, X):
    scaler = step.transformer_
    if type(scaler).__name__ != "StandardScaler":
        raise ExportError(
            f"{type(scaler).__name__} cannot be exported to ONNX; use StandardScaler."
        )
    return graph.scaled(X, scaler.mean_ if scaler.with_mean else None, scaler.scale_)


def _context(graph, context, X):
    mean = graph.add("ReduceMean", X, axes=[0], keepdims=1)
    return graph.beside(X, graph.add("Mul", mean, graph.constant(context.weight)))


def _kernel(graph, kernel, X):
    dictionary = kernel.dictionary_
    if not isinstance(dictionary, np.ndarray):
        dictionary = dictionary.toarray()
    dictionary = dictionary.astype(np.float64)
    origin = dictionary.mean(axis=0)
    X, dictionary = graph.scaled(X, origin, None), dictionary - origin
    axes = graph.constant([1], np.int64)
    norms = graph.add("ReduceSum", graph.add("Mul", X, X), axes, keepdims=1)
    crossed = graph.affine(X, -2.0 * dictionary.T, np.sum(dictionary**2, axis=1))
    distances = graph.add("Max", graph.add("Add", norms, crossed), graph.constant(0.0))
    columns = graph.add("Exp", graph.scaled(distances, None, -kernel.delta_))
    if kernel.whitener_ is None:
        return columns
    return graph.add("MatMul", columns, graph.constant(kernel.whitener_))


# Classifiers.


def _linear(graph, model: LinearUnionClassifier, X):
    return graph.add("Softmax", graph.affine(X, model.coef_.T, model.intercept_), axis=1)


def _network(graph, model: UnionClassifier, X):
    """Add the mean of the members' probabilities; a layer of all members is one product."""
    network: Any = model
    if hasattr(network, "committee_"):
        return _committee(graph, network, X)
    if getattr(network, "encoder", None) is not None:
        raise ExportError("A network with an encoder of yours is exported by torch.onnx.")
    X = graph.scaled(X, network.scale_.shift, network.scale_.scale)
    if hasattr(network, "edges_"):
        X = _quantile_encoding(graph, network.edges_, X)
    n_hidden = len(network.weights_) - 1
    hidden, of_bag = X, None
    for layer, (weights, biases) in enumerate(zip(network.weights_, network.biases_, strict=True)):
        hidden = graph.affine(hidden, weights, biases)
        if of_bag is not None:
            hidden, of_bag = graph.add("Add", hidden, of_bag), None
        if layer == n_hidden:
            break
        hidden = graph.add("Relu", hidden)
        if layer == 0 and len(network.context_):
            units, bias, effect = network.context_
            summary = graph.add("Tanh", graph.affine(hidden, units, bias))
            mean = graph.add("ReduceMean", summary, axes=[1], keepdims=1)
            of_bag = graph.add("MatMul", mean, graph.constant(effect))
    proba = graph.add("Softmax", hidden, axis=2)
    return graph.add("ReduceMean", proba, axes=[0], keepdims=0)


def _committee(graph, model, X):
    """Add the parts of a committee that count, and the weighted product of their probabilities."""
    total = None
    for (_, part), weight in zip(model.committee_, model.pool_weights_, strict=True):
        if not weight:
            continue
        # A probability that is rounded to zero has no logarithm.
        proba = graph.add("Max", _probabilities(graph, part, X), graph.constant(SMALLEST))
        own = graph.scaled(graph.add("Log", proba), None, 1.0 / weight)
        total = own if total is None else graph.add("Add", total, own)
    return graph.add("Softmax", total, axis=1)


def _quantile_encoding(graph, edges, X):
    """Append how far into each piece of a feature's range a value reaches, from -1 to 1."""
    n_features, n_pieces = edges.shape[0], edges.shape[1] - 1
    width = np.diff(edges)
    # A piece without width is a step.
    width = np.where(width > 0, width, np.finfo(np.float64).tiny)
    repeated = graph.add("MatMul", X, graph.constant(np.repeat(np.eye(n_features), n_pieces, 1)))
    reach = graph.scaled(repeated, edges[:, :-1].ravel(), width.ravel())
    clipped = graph.add("Clip", reach, graph.constant(0.0), graph.constant(1.0))
    doubled = graph.add("Mul", clipped, graph.constant(2.0))
    return graph.add("Concat", X, graph.add("Sub", doubled, graph.constant(1.0)), axis=1)


_TRANSFORMERS: dict[str, Callable[..., str]] = {
    OnInstances.__name__: _on_instances,
    BagContext.__name__: _context,
    RBFDictionary.__name__: _kernel,
}
# By name: a network's class is loaded with torch, which none of this needs.
_CLASSIFIERS: dict[str, Callable[..., str]] = {
    "ORLogisticRegression": _linear,
    "SupervisedLogisticRegression": _linear,
    "ORNetwork": _network,
}
