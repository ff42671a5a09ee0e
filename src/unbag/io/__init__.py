"""Bags from files and back: tables, MIML ARFF, MATLAB, npz, files of other tools; annotations.

`read` picks the reader by the suffix of the file and gives a `BagTable`; its `write` gives the rows
of the file back in their order, untouched, with new columns. Files are written whole or not at all.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unbag._files import DataError

from .bag_table import BagTable
from .roles import Roles
from .table import Peek, peek, read, read_table

if TYPE_CHECKING:
    # What `_LAZY` loads, for type checkers and the documentation.
    from .adapters import convert_from, read_from
    from .formats.arff import read_arff, write_arff
    from .formats.audacity import write_audacity
    from .formats.coco import write_coco
    from .formats.label_studio import write_label_studio
    from .formats.mat import read_mat, write_mat
    from .formats.npz import read_npz, write_npz
    from .formats.raven import write_raven
    from .writing import convert, write_bags

# Loaded when first asked for: they need pyarrow or scipy.io.
_LAZY = {
    "convert": "writing",
    "convert_from": "adapters",
    "read_arff": "formats.arff",
    "read_from": "adapters",
    "read_mat": "formats.mat",
    "read_npz": "formats.npz",
    "write_arff": "formats.arff",
    "write_audacity": "formats.audacity",
    "write_bags": "writing",
    "write_coco": "formats.coco",
    "write_label_studio": "formats.label_studio",
    "write_mat": "formats.mat",
    "write_npz": "formats.npz",
    "write_raven": "formats.raven",
}

__all__ = [
    "BagTable",
    "DataError",
    "Peek",
    "Roles",
    "convert",
    "convert_from",
    "peek",
    "read",
    "read_arff",
    "read_from",
    "read_mat",
    "read_npz",
    "read_table",
    "write_arff",
    "write_audacity",
    "write_bags",
    "write_coco",
    "write_label_studio",
    "write_mat",
    "write_npz",
    "write_raven",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
