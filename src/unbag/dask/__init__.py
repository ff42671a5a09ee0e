"""Fits and annotations on a cluster, by Dask.

The mathematics is that of a fit in memory: parts answer, answers add up. Partitions of the bags
stay on their workers; a question goes out to them, and one sum comes back.
"""

from unbag._extras import require

# So that the error names the extra that brings it.
require("distributed")

from .annotating import annotate  # noqa: E402
from .clusters import ClusterError, LostWorkersWarning  # noqa: E402
from .fits import fit  # noqa: E402

__all__ = [
    "ClusterError",
    "LostWorkersWarning",
    "annotate",
    "fit",
]
