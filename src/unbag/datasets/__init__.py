"""Data sets: bags with the label of every instance, to learn from and to measure with.

``load_`` functions read what ships with the package, and `make_bags` draws bags at random. All
return a `Dataset`.
"""

from .dataset import Dataset
from .shipped import load_digit_bags, load_letter_carroll, load_letter_frost
from .synthetic import make_bags

__all__ = [
    "Dataset",
    "load_digit_bags",
    "load_letter_carroll",
    "load_letter_frost",
    "make_bags",
]
