"""Checks of constructor parameters, made in ``fit`` as scikit-learn wants them."""

from numbers import Integral, Real

import numpy as np


def check_numbers(model, **ranges):
    """Raise an error that names the first parameter that is not a number of its range.

    Parameters
    ----------
    model : estimator
    **ranges : (low, high)
        Per parameter, the range it must lie in, both ends included but for infinity.
    """
    for name, (low, high) in ranges.items():
        value = getattr(model, name)
        if not isinstance(value, Real) or not low <= value <= high or value == np.inf:
            raise ValueError(f"{name} must be a number from {low} to {high}; got {value!r}.")


def check_positive_integers(model, *names):
    """Raise an error that names the first parameter that is not a positive integer."""
    for name in names:
        value = getattr(model, name)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a positive integer; got {value!r}.")


def check_choices(model, **choices):
    """Raise an error that names the first parameter that is not one of its choices."""
    for name, allowed in choices.items():
        value = getattr(model, name)
        if value not in allowed:
            raise ValueError(f"{name} must be one of {allowed}; got {value!r}.")
