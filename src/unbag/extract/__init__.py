"""From files to tables of instances: calls in recordings, regions of pictures, windows of signals.

`extraction` is the mechanism that all kinds share; `kinds` is the interface of a kind.
"""

from .extraction import Extracted, ExtractOptions
from .for_models import for_model
from .pictures import image_regions, images
from .recordings import audio, sound_segments
from .regions import Regions
from .sounds import Segments
from .streams import signals
from .windows import Windows, signal_windows

__all__ = [
    "ExtractOptions",
    "Extracted",
    "Regions",
    "Segments",
    "Windows",
    "audio",
    "for_model",
    "image_regions",
    "images",
    "signal_windows",
    "signals",
    "sound_segments",
]
