"""Label single instances from labels given to whole bags.

A recording tagged "wren, thrush" is a *bag*; its syllables are *instances*. unbag says
which syllable is the wren's, with probabilities, exactly and fast.
"""

from importlib import import_module

from ._version import __version__

# Loaded when first asked for. numba takes a second to import, in which the command line must
# answer Ctrl-C already; scikit-learn takes another and, where pandas is installed, brings that
# along.
_LAZY = {
    "AnyOf": "tagging",
    "Bags": "bags",
    "LabelSets": "labels",
    "Unknown": "tagging",
    "labels": None,
    "union": None,
    "is_background": "estimators",
    "DummyBags": "estimators",
    "DummyInstances": "estimators",
    "ORLogisticRegression": "estimators",
    "SupervisedLogisticRegression": "estimators",
    "BagContext": "preprocessing",
    "BagPipeline": "pipeline",
    "OnInstances": "preprocessing",
    "RBFDictionary": "preprocessing",
    "kernel_pipeline": "pipeline",
    "load": "models",
    "MultilabelStratifiedKFold": "model_selection",
    "check_labels": "checking",
    "fit": "learning",
    "tune": "tuning",
    "cross_validate_bags": "model_selection",
    "datasets": None,
    "estimators": None,
    "export": None,
    "extract": None,
    "metrics": None,
    "models": None,
    "out_of_core": None,
    "paper": None,
    "pipeline": None,
    "model_selection": None,
    "preprocessing": None,
    "tables": None,
}

# Looked for here, and left where they are, since torch takes seconds to import.
_OF_TORCH = ("MIMLDataset", "ORNetwork", "UnionLoss", "collate_bags", "union_loss")

__all__ = ["__version__", *_LAZY]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        hint = f": from unbag.torch import {name}" if name in _OF_TORCH else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    module = import_module(f".{_LAZY[name] or name}", __name__)
    value = module if _LAZY[name] is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
