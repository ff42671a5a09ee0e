"""Rates of wrong labels as arrays, checked."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Rates below that are refused, but for zero: products with small priors would vanish, and what is
#: all but impossible would be called impossible.
LEAST_RATE = 1e-12


class Rates(NamedTuple):
    """How often label sets are wrong.

    Attributes
    ----------
    missed, false : ndarrays of shape (1, n_classes) or (n_bags, n_classes)
        0, or at least `LEAST_RATE` and below 1.
    """

    missed: np.ndarray
    false: np.ndarray


#: What `is_rate` asks for, in words.
RANGE = f"0, or at least {LEAST_RATE:g} and below 1"


def is_rate(given: Any) -> Any:
    """Return whether each number, of an array or a tensor, may be a rate."""
    return (given == 0) | ((given >= LEAST_RATE) & (given < 1))


def checked_rates(missed: ArrayLike | None, false: ArrayLike | None, y: np.ndarray) -> Rates | None:
    """Return the rates that `unbag.union.infer` was given; None if label sets are never wrong."""
    if missed is None and false is None:
        return None
    rates = Rates(checked_rate("missed", missed, y), checked_rate("false", false, y))
    return rates if rates.missed.any() or rates.false.any() else None


def checked_rate(name: str, rate: ArrayLike | None, y: np.ndarray) -> NDArray[np.float64]:
    """Return one kind of rate as a 2-D array, checked."""
    n_bags, n_classes = y.shape
    given = np.asarray(0.0 if rate is None else rate)
    shapes = (), (n_classes,), (n_bags, n_classes)
    if given.dtype.kind not in "fiub" or given.shape not in shapes:
        raise ValueError(
            f"{name} must be a number, or one for each class: shape ({n_classes},); got dtype "
            f"{given.dtype} and shape {given.shape}."
        )
    given = given.astype(np.float64)
    outside = ~is_rate(given)
    if outside.any():
        place = np.argwhere(outside)[0]
        where = f" (class {place[-1]})" if len(place) else ""
        raise ValueError(
            f"{name} must be {RANGE}; got {given[tuple(place)]}{where}. If a label says nothing, "
            "mark it as unknown (-1 in y)."
        )
    if given.ndim < 2:
        given = np.broadcast_to(given, (1, n_classes))
    return np.ascontiguousarray(given)
