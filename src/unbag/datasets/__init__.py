"""Data sets: bags with the label of every instance, to learn from and to measure with.

``load_`` functions read what ships with the package, ``fetch_`` functions what has to be fetched
first, and `make_bags` draws bags at random. All return a `Dataset`. `make_soundscapes`
makes recordings, with the truth about them, `make_pictures` pictures, and `make_signals` signals
of sensors.
"""

from .catalogue import describe, is_available, load, names
from .dataset import Dataset
from .digits import load_digit_bags
from .hja import fetch_hja, fetch_hja_union
from .home import DatasetNotFoundError, data_homes
from .letters import load_letter_carroll, load_letter_frost
from .msrcv2 import fetch_msrcv2
from .pictures import Pictures, Thing, make_pictures, write_pictures
from .sensors import Bout, Signals, make_signals, write_signals
from .soundscapes import SoundBox, Soundscapes, make_soundscapes, write_soundscapes, write_wav
from .synthetic import make_bags

__all__ = [
    "Bout",
    "Dataset",
    "DatasetNotFoundError",
    "Pictures",
    "Signals",
    "SoundBox",
    "Soundscapes",
    "Thing",
    "data_homes",
    "describe",
    "fetch_hja",
    "fetch_hja_union",
    "fetch_msrcv2",
    "is_available",
    "load",
    "load_digit_bags",
    "load_letter_carroll",
    "load_letter_frost",
    "make_bags",
    "make_pictures",
    "make_signals",
    "make_soundscapes",
    "names",
    "write_pictures",
    "write_signals",
    "write_soundscapes",
    "write_wav",
]
