"""From files to tables of instances: recordings cut into calls, pictures into regions.

`extraction` is the mechanism that all kinds share; `kinds` says what a kind has to say.
"""

from .extraction import Extracted
from .pictures import image_regions, images
from .recordings import audio, sound_segments
from .regions import Regions
from .sounds import Segments

__all__ = [
    "Extracted",
    "Regions",
    "Segments",
    "audio",
    "image_regions",
    "images",
    "sound_segments",
]
