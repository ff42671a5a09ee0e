"""Modules that only an extra of the package brings, or another project of its repository.

What to say where they are missing.
"""

from importlib import import_module
from types import ModuleType

#: What to say where a module is missing: what needs it, and what brings it.
MISSING = {
    "distributed": "Clusters need Dask: pip install 'unbag[dask]'",
    "PIL": "Reading pictures needs Pillow and scikit-image: pip install 'unbag[images]'",
    "matplotlib": "Drawing figures needs matplotlib: pip install 'unbag[figures]'",
    "onnx": "Exporting models needs onnx and a runtime: pip install 'unbag[onnx]'",
    "onnxruntime": "Exporting models needs onnx and a runtime: pip install 'unbag[onnx]'",
    "skimage": "Reading pictures needs Pillow and scikit-image: pip install 'unbag[images]'",
    "soundfile": "Reading recordings needs soundfile: pip install 'unbag[audio]'",
    "soxr": "Resampling by soxr needs it: pip install 'unbag[audio]'",
    "starlette": "The page of a review needs a server: pip install 'unbag[review]'",
    "torch": "Networks and their losses need PyTorch: pip install 'unbag[torch]'",
    "uvicorn": "The page of a review needs a server: pip install 'unbag[review]'",
    "unbag_reproduce": "The paper's experiments are a package of their own: pip install "
    "./reproduction, from a checkout of the repository of unbag",
}


class MissingExtraError(ImportError):
    """Something needs a module that only an extra brings, and it is not installed."""


def require(module: str) -> ModuleType:
    """Import a module that not everybody has, or a part of one: see `MISSING`.

    Where it is not installed, a MissingExtraError says how to install it.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtraError(MISSING[package], name=package) from error
