"""Fits and annotations on a cluster, with Dask.

The algorithm is the same as in memory: a sum over parts. Partitions of the bags stay on their
workers. Each evaluation sends the weights to them, and gets one sum back.
"""

from unbag._messages import require

# Raises an error that names the extra if Dask is not installed.
require("distributed")

from .annotating import annotate  # noqa: E402
from .clusters import LostWorkersWarning  # noqa: E402
from .fits import fit  # noqa: E402

__all__ = [
    "LostWorkersWarning",
    "annotate",
    "fit",
]
