"""Rates at which label sets are wrong, as checked arrays."""

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: The smallest rate except zero: products of smaller rates and small priors would underflow, and
#: label sets that are very unlikely would be called impossible.
LEAST_RATE = 1e-12
#: A rate, one for each class, or how to learn it.
Rate: TypeAlias = float | ArrayLike | Literal["learn", "learn-per-class"]
LEARNT: tuple[str, ...] = ("learn", "learn-per-class")


class Rates(NamedTuple):
    """Rates of missed instances, and of labels that are given by mistake.

    Of shape (1, n_classes) or (n_bags, n_classes); 0, or at least `LEAST_RATE` and below 1.
    """

    missed_rate: np.ndarray
    false_rate: np.ndarray


#: Describes in messages which rates are valid.
RANGE = f"0, or at least {LEAST_RATE:g} and below 1"


def is_rate(given: Any) -> Any:
    """Return whether each number of an array or a tensor is a valid rate."""
    return (given == 0) | ((given >= LEAST_RATE) & (given < 1))


def checked_rates(
    missed_rate: ArrayLike | None, false_rate: ArrayLike | None, y: np.ndarray
) -> Rates | None:
    """Return the rates given to `unbag.union.infer` as arrays; None if all are zero."""
    if missed_rate is None and false_rate is None:
        return None
    rates = Rates(
        checked_rate("missed_rate", missed_rate, y), checked_rate("false_rate", false_rate, y)
    )
    return rates if rates.missed_rate.any() or rates.false_rate.any() else None


def checked_rate(name: str, rate: ArrayLike | None, y: np.ndarray) -> NDArray[np.float64]:
    """Return one of the two rates as a 2-D array; raise an error if it is invalid."""
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
