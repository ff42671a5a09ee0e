"""Label single instances from labels given to whole bags.

A recording tagged "wren, thrush" is a *bag*; its syllables are *instances*. unbag says
which syllable is the wren's, with probabilities, exactly and fast.
"""

from importlib import import_module

from . import labels, union
from ._version import __version__
from .bags import Bags
from .labels import LabelSets, Unknown

# Loaded when first asked for: they need scikit-learn, which takes a second to import and,
# where pandas is installed, brings that along.
_LAZY = {
    "BACKGROUND": "estimators",
    "is_background": "estimators",
    "DummyBags": "estimators",
    "DummyInstances": "estimators",
    "LSBCMM": "estimators",
    "MIMLFast": "estimators",
    "MIMLNN": "estimators",
    "MIMLSVM": "estimators",
    "ORLogisticRegression": "estimators",
    "SIM": "estimators",
    "SupervisedLogisticRegression": "estimators",
    "BagContext": "preprocessing",
    "BagPipeline": "pipeline",
    "OnInstances": "preprocessing",
    "RBFDictionary": "preprocessing",
    "kernel_pipeline": "pipeline",
    "load": "models",
    "MultilabelStratifiedKFold": "model_selection",
    "cross_validate_bags": "model_selection",
    "datasets": None,
    "estimators": None,
    "io": None,
    "metrics": None,
    "models": None,
    "pipeline": None,
    "model_selection": None,
    "preprocessing": None,
}

__all__ = [
    "Bags",
    "LabelSets",
    "Unknown",
    "__version__",
    "labels",
    "union",
    *_LAZY,
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_LAZY[name] or name}", __name__)
    value = module if _LAZY[name] is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
