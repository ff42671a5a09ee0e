"""Fits and annotations of Parquet sets that do not fit in memory.

The mathematics is that of a fit in memory, to the last part; only where features come from is
different. `unbag.fitting.objective` has the passes over blocks, `unbag.io.stored` the files.
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
