"""From files to tables of instances: calls in recordings, windows of signals, as numbers.

`extraction` is the mechanism that all kinds share; `kinds` says what a kind has to say.
"""

from .extraction import Extracted
from .recordings import audio, sound_segments
from .sounds import Segments
from .streams import signals
from .windows import Windows, signal_windows

__all__ = [
    "Extracted",
    "Segments",
    "Windows",
    "audio",
    "signal_windows",
    "signals",
    "sound_segments",
]
