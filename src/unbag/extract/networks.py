"""Somebody else's network, as a file: opened, checked, and run on arrays of numbers.

They come from `hearing` for calls, and from `maps` for pictures. ONNX is run by onnxruntime, TFLite
by ai-edge-litert. To read a tensor inside, it is made an output in a copy of the file's bytes, as
runtimes keep no other: asked to keep all, TFLite needs 2 GB where this needs 200 MB. A network gets
as many inputs at a time as its file says, else one: on a CPU, larger batches are not faster, and so
no result depends on what else is in one.
"""

import hashlib
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag._files import DataError, PathLike, check, existing_file, unreadable
from unbag._messages import argument, listed, require, shortened, suggestion

Shape = tuple[int | None, ...]
#: Signs of the checksum in messages.
SHORT = 12
# Where a TFLite file says what it is.
TFLITE_MARK, TFLITE_PLACE = b"TFL3", slice(4, 8)
# Numbers of fields in the schema of TFLite: of a model, and of a graph in it.
SUBGRAPHS, OUTPUTS = 2, 2
# Numbers of fields in the schema of ONNX: of a model, of a graph, and of what goes out of it.
GRAPH, OUTPUT, NAME = 7, 12, 1


@dataclass(frozen=True)
class Network:
    """A network that has been checked; the processes that run it open it when they first need it.

    `layers` are the tensors that are read, and `shape` has the axes of the input, the batch first:
    None for one of any length. A network with a single axis takes one input at a time.
    """

    path: Path
    #: The SHA-256 of the file.
    checksum: str
    layers: tuple[str, ...]
    shape: Shape
    has_batch: bool
    #: What runs it, and the threads that do in each process.
    runtime: str
    n_threads: int = 1

    @classmethod
    def of_file(cls, path: PathLike, layers: str | Sequence[str] = ()) -> "Network":
        """Open a network, and read one or some of its tensors: by default its last output."""
        path = Path(path)
        checksum = hashlib.sha256(_content(path)).hexdigest()
        layers = tuple(dict.fromkeys([layers] if isinstance(layers, str) else layers))
        runtime = _opened(path, checksum, layers, 1)
        names = [name for name, _, _ in runtime.inputs]
        check(
            len(names) == 1,
            f"{path} has {len(names)} inputs ({listed(names)}): only networks with one are run.",
        )
        _, dtype, shape = runtime.inputs[0]
        check(
            dtype == "float32",
            f"{path} takes numbers of type {dtype}: only networks that take float32 are run. "
            "Convert it without quantisation of its input.",
        )
        check(
            shape, f"{path} takes numbers one by one, or of any shape: it cannot be run on media."
        )
        has_batch = len(shape) > 1
        shape = shape if has_batch else (1, *shape)
        return cls(path, checksum, runtime.outputs, shape, has_batch, runtime.package)

    @property
    def described(self) -> str:
        """The name of the file, and the begin of its checksum, for messages."""
        return f"{self.path.name} ({self.checksum[:SHORT]})"

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that tables and models remember of the network."""
        return {
            "name": self.path.name, "checksum": self.checksum, "layer": list(self.layers),
            "runtime": self.runtime,
        }  # fmt: skip

    def on_threads(self, n_threads: int) -> "Network":
        """Return the network, run by this many threads in each process."""
        return replace(self, n_threads=n_threads)

    def run(self, inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Return the tensors of each of the inputs, which are as `shape` says: one array a layer.

        Raises
        ------
        DataError
            If the inputs have another shape, or the network fails, or gives other things than
            finite numbers for each input.
        """
        shape = (len(inputs), *self.shape[1:])
        fits = len(shape) == inputs.ndim and all(
            own in (None, given) for own, given in zip(shape, inputs.shape, strict=True)
        )
        check(
            fits,
            f"{self.path} takes inputs of shape {written(self.shape)}, not "
            f"{written((None, *inputs.shape[1:]))}.",
        )
        runtime = _opened(self.path, self.checksum, self.layers, self.n_threads)
        size = self.shape[0] or 1
        found = [self._batch(runtime, inputs[at : at + size]) for at in range(0, len(inputs), size)]
        check(found, "there is nothing to run a network on.")
        return [np.concatenate(own) for own in zip(*found, strict=True)]

    def _batch(self, runtime: Any, inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Run one batch; if the file wants more than there are, the last is repeated."""
        size = self.shape[0] or len(inputs)
        batch = np.ascontiguousarray(inputs, dtype=np.float32)
        if len(batch) < size:
            batch = np.concatenate([batch, np.repeat(batch[-1:], size - len(batch), axis=0)])
        with _faults_of(self.path, "cannot be run"):
            values = runtime(batch if self.has_batch else batch[0])
        found = []
        for name, value in zip(self.layers, values, strict=True):
            array = np.asarray(value)
            if size == 1 and array.shape[:1] != (1,):
                array = array[None]
            check(
                array.dtype.kind == "f" and array.ndim > 1 and len(array) == size,
                f"{self.path}: the layer {shortened(name)} gives {array.dtype} of shape "
                f"{array.shape} for {size} inputs, not numbers for each of them: choose another "
                f"by {argument('embed_layer')}.",
            )
            check(
                np.isfinite(array).all(),
                f"{self.path}: the layer {shortened(name)} gives numbers that are not finite.",
            )
            found.append(array[: len(inputs)].astype(np.float32))
        return found


@contextmanager
def _faults_of(path: Path, fault: str) -> Iterator[None]:
    """Say any error of a runtime in one line about its file."""
    try:
        yield
    except (DataError, ImportError, MemoryError):
        raise
    except Exception as error:
        # Runtimes raise nearly anything.
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise DataError(f"{path} {fault}: {reason}.") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep a runtime from writing lines of its own to stderr; its faults are exceptions."""
    try:
        kept = os.dup(2)
    except OSError:
        # A program without a terminal may have no stderr.
        yield
        return
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def written(shape: Sequence[int | None]) -> str:
    """Write a shape, with ``any`` for an axis of any length."""
    return " x ".join("any" if each is None else str(each) for each in shape)


def _content(path: Path) -> bytes:
    try:
        return existing_file(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error


@lru_cache(maxsize=1)
def _opened(path: Path, checksum: str, layers: tuple[str, ...], n_threads: int) -> Any:
    """Open a network, once in each process, and make layers its outputs.

    It has its `package`, with the version, its `inputs` (name, type and shape), and the names of
    its `outputs`; called with a batch, it returns what these give.
    """
    content = _content(path)
    check(
        hashlib.sha256(content).hexdigest() == checksum,
        f"{path} has changed while it was in use: start again.",
    )
    runtime = _TFLite if content[TFLITE_PLACE] == TFLITE_MARK else _ONNX
    with _faults_of(path, "cannot be read as a network"), _quiet():
        return runtime(path, content, layers, n_threads)


class _ONNX:
    """A network in ONNX."""

    def __init__(self, path: Path, content: bytes, layers: Sequence[str], n_threads: int):
        self._runtime: Any = require("onnxruntime")
        self.package = f"onnxruntime {version('onnxruntime')}"
        with _faults_of(path, "is neither ONNX nor TFLite, or is damaged"):
            session = self._session(content, n_threads, is_first=bool(layers))
        known = {each.name for each in session.get_outputs()}
        if layers:
            # A message that comes twice is merged: its lists are joined.
            graph = b"".join(
                _field(OUTPUT, _field(NAME, name.encode())) for name in layers if name not in known
            )
            with _faults_of(path, f"has no layer {listed(layers)}, or cannot read it"):
                session = self._session(content + _field(GRAPH, graph), n_threads)
        self._run = session.run
        types: dict[str, str] = {"tensor(float)": "float32"}
        self.inputs: list[tuple[str, str, Shape]] = [
            (each.name, str(types.get(each.type, each.type)), _shape(each.shape))
            for each in session.get_inputs()
        ]
        self.outputs = tuple(layers) or tuple(each.name for each in session.get_outputs())[-1:]

    def _session(self, content: bytes, n_threads: int, *, is_first: bool = False) -> Any:
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
        # Errors come as exceptions.
        options.log_severity_level = 4
        if is_first:
            options.graph_optimization_level = self._runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return self._runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def __call__(self, batch: NDArray[np.float32]) -> list[Any]:
        return self._run(list(self.outputs), {self.inputs[0][0]: batch})


def _shape(axes: Sequence[Any]) -> Shape:
    """Return a shape in which axes with a name, or of unknown length, are None."""
    return tuple(each if isinstance(each, int) and each > 0 else None for each in axes)


def _field(number: int, content: bytes) -> bytes:
    """Write a field of a message in the format of protocol buffers."""
    length, size = bytearray(), len(content)
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + content


class _TFLite:
    """A network in TFLite."""

    def __init__(self, path: Path, content: bytes, layers: Sequence[str], n_threads: int):
        self._open: Any = require("ai_edge_litert.interpreter").Interpreter
        self.package = f"ai-edge-litert {version('ai-edge-litert')}"
        runtime = self._open(model_content=content, num_threads=n_threads)
        if layers:
            place = {each["name"]: each["index"] for each in runtime.get_tensor_details()}
            for name in layers:
                check(
                    name in place,
                    f"{path} has no layer {shortened(name)}.{suggestion(name, place)}",
                )
            content = _with_outputs(content, [place[name] for name in layers])
            runtime = self._open(model_content=content, num_threads=n_threads)
        runtime.allocate_tensors()
        self._runtime = runtime
        self._places = [each["index"] for each in runtime.get_output_details()]
        if not layers:
            self._places = self._places[-1:]
        self._sizes = tuple(runtime.get_input_details()[0]["shape"].tolist())
        self.outputs = tuple(layers) or (runtime.get_output_details()[-1]["name"],)
        self.inputs = [
            (each["name"], np.dtype(each["dtype"]).name, _shape(each["shape_signature"].tolist()))
            for each in runtime.get_input_details()
        ]
        self._input = runtime.get_input_details()[0]["index"]

    def __call__(self, batch: NDArray[np.float32]) -> list[Any]:
        if self._sizes != batch.shape:
            self._runtime.resize_tensor_input(self._input, batch.shape)
            self._runtime.allocate_tensors()
            self._sizes = batch.shape
        self._runtime.set_tensor(self._input, batch)
        self._runtime.invoke()
        return [self._runtime.get_tensor(place) for place in self._places]


def _with_outputs(content: bytes, places: Sequence[int]) -> bytes:
    """Return a TFLite file whose first graph has these tensors as its outputs.

    The file is a tree of tables that point to each other by distances (FlatBuffers): the new list
    comes last, and the distance to the old one is replaced.
    """
    changed = bytearray(content)
    changed += bytes(-len(changed) % 4)
    model = _target(content, 0)
    graphs = _target(content, _place_of_field(content, model, SUBGRAPHS))
    pointer = _place_of_field(content, _target(content, graphs + 4), OUTPUTS)
    struct.pack_into("<I", changed, pointer, len(changed) - pointer)
    return bytes(changed + struct.pack(f"<I{len(places)}i", len(places), *places))


def _target(content: bytes, pointer: int) -> int:
    return pointer + struct.unpack_from("<I", content, pointer)[0]


def _place_of_field(content: bytes, table: int, number: int) -> int:
    fields = table - struct.unpack_from("<i", content, table)[0]
    return table + struct.unpack_from("<H", content, fields + 4 + 2 * number)[0]
