"""From files to tables of instances: calls in recordings, regions of pictures, windows of signals.

`extraction` is the mechanism that all kinds share; `kinds` says what a kind has to say.
"""

from .extraction import Extracted
from .pictures import image_regions, images
from .recordings import audio, sound_segments
from .regions import Regions
from .sounds import Segments
from .streams import signals
from .windows import Windows, signal_windows

__all__ = [
    "Extracted",
    "Regions",
    "Segments",
    "Windows",
    "audio",
    "image_regions",
    "images",
    "signal_windows",
    "signals",
    "sound_segments",
]
