"""Label single instances from labels given to whole bags.

A recording tagged "wren, thrush" is a *bag*; its syllables are *instances*. unbag says
which syllable is the wren's, with probabilities, exactly and fast.
"""

from . import labels, union
from ._version import __version__
from .bags import Bags
from .labels import LabelSets, Unknown

__all__ = ["Bags", "LabelSets", "Unknown", "__version__", "labels", "union"]
