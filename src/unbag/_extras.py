"""Modules that only an extra of the package brings: what to say where they are missing."""

from importlib import import_module
from types import ModuleType

#: What to say where a module is missing: what needs it, and which extra brings it.
MISSING = {
    "distributed": "Clusters need Dask: pip install 'unbag[dask]'",
    "matplotlib": "Drawing figures needs matplotlib: pip install 'unbag[figures]'",
    "onnx": "Exporting models needs onnx and a runtime: pip install 'unbag[onnx]'",
    "onnxruntime": "Exporting models needs onnx and a runtime: pip install 'unbag[onnx]'",
    "torch": "Networks and their losses need PyTorch: pip install 'unbag[torch]'",
    "PIL": "Reading photographs needs Pillow: pip install 'unbag[images]'",
}


class MissingExtraError(ImportError):
    """Something needs a module that an extra of the package brings, and it is not installed."""


def require(module: str) -> ModuleType:
    """Import a module that an extra of the package brings.

    Parameters
    ----------
    module : str
        One of `MISSING`, or a part of one, such as ``"PIL.Image"``.

    Raises
    ------
    MissingExtraError
        If it is not installed; the message names the extra.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtraError(MISSING[package], name=package) from error
