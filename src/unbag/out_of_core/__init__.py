"""Fits and annotations of Parquet sets that do not fit in memory.

The algorithm is the same as in memory; only the features come from files. `unbag.fitting.objective`
has the passes over blocks, `unbag.io.stored` reads the files.
"""

from unbag.io.stored import StoredBags

from .annotating import Annotated, annotate
from .checkpoints import Checkpoint
from .fits import Pace, fit

__all__ = [
    "Annotated",
    "Checkpoint",
    "Pace",
    "StoredBags",
    "annotate",
    "fit",
]
