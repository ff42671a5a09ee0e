"""Wrong label sets, made on purpose, and the ways in which a model can take doubtful ones."""

from zlib import crc32

import numpy as np


def corrupted(y, kind, probability, rng):
    """Add absent labels, or remove present ones, each with the same probability.

    Parameters
    ----------
    y : ndarray of shape (n_bags, n_classes)
        Indicator of 0 and 1.
    kind : {"added", "removed"}
    probability : float
    rng : numpy Generator

    Returns
    -------
    ndarray of shape (n_bags, n_classes)
        A bag never loses its last label: one of those that it had, at random, stays.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> corrupted(np.array([[1, 0, 0]]), "added", 1.0, rng)
    array([[1, 1, 1]])
    >>> corrupted(np.array([[1, 0, 0], [1, 1, 1]]), "removed", 1.0, rng).sum(axis=1)
    array([1, 1])
    """
    hit = rng.random(y.shape) < probability
    if kind == "added":
        return np.where(hit, 1, y)
    remaining = np.where(hit, 0, y)
    survivor = np.where(y == 1, rng.random(y.shape), -1.0).argmax(axis=1)
    emptied = np.flatnonzero((y == 1).any(axis=1) & ~(remaining == 1).any(axis=1))
    remaining[emptied, survivor[emptied]] = 1
    return remaining


def corruption_rng(data, draw, fold, kind, probability, seed):
    """Return the generator of one corruption: the same for all methods."""
    entropy = [seed, crc32(f"{data} {kind}".encode()), draw, fold, round(1e6 * probability)]
    return np.random.default_rng(entropy)


def as_given(y):
    """Require the given labels, and forbid the others."""
    return y


def given_as_optional(y):
    """Allow the given labels, and forbid the others.

    Examples
    --------
    >>> given_as_optional(np.array([1, 0]))
    array([-1,  0])
    """
    return np.where(y == 1, -1, 0)


def absent_as_unknown(y):
    """Require the given labels, and allow the others.

    Examples
    --------
    >>> absent_as_unknown(np.array([1, 0]))
    array([ 1, -1])
    """
    return np.where(y == 1, 1, -1)
