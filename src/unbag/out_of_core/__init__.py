"""Fits and annotations of Parquet sets that do not fit in memory.

The algorithm is the same as in memory; only the features come from files. `BlockSource` asks them
block by block, and `unbag.tables.stored` reads the files.
"""

from .annotating import Annotated, annotate
from .fits import Pace, fit

__all__ = [
    "Annotated",
    "Pace",
    "annotate",
    "fit",
]
