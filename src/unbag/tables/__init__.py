"""Bags from files and back: tables, MIML ARFF, MATLAB, npz, files of other tools; annotations.

`read` picks the reader by the suffix of the file and gives a `BagTable`; its `write` gives the rows
of the file back in their order, untouched, with new columns. Files are written whole or not at all.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unbag._files import DataError

from .bag_table import BagTable
from .roles import Roles
from .table import read

if TYPE_CHECKING:
    # What `_LAZY` loads, for type checkers and the documentation.
    from .adapters import convert_from, read_from
    from .for_tools import write_for_tool
    from .writing import convert, write_bags

# Loaded when first asked for: they need pyarrow or scipy.io.
_LAZY = {
    "convert": "writing",
    "convert_from": "adapters",
    "read_from": "adapters",
    "write_bags": "writing",
    "write_for_tool": "for_tools",
}

__all__ = [
    "BagTable",
    "DataError",
    "Roles",
    "convert",
    "convert_from",
    "read",
    "read_from",
    "write_bags",
    "write_for_tool",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
