"""From files to tables of instances: recordings cut into calls, each described by numbers.

`extraction` is the mechanism that all kinds share; `kinds` says what a kind has to say.
"""

from .extraction import Extracted
from .recordings import audio, sound_segments
from .sounds import Segments

__all__ = ["Extracted", "Segments", "audio", "sound_segments"]
