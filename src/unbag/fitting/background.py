"""Whether a model should have a background: decided by bags that it was not fitted to.

Two models, without a background and with one, are fitted to one half of the bags at a time and
compared on the other.
"""

import numpy as np

# By how much a background must be better, in nats per bag, to be used: of equals, the simpler.
CLEARLY = 0.1


def two_halves(y: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Split bags into halves to be fitted and held out in turn; equal label sets evenly.

    Nothing is random.

    Parameters
    ----------
    y : ndarray of shape (n_bags, n_classes)
    counted : ndarray of bool of shape (n_bags,)

    Returns
    -------
    ndarray of int of shape (n_bags,)
        0 or 1, and -1 for the bags that are not counted.

    Examples
    --------
    >>> y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0]])
    >>> two_halves(y, np.array([True, True, True, True, False]))
    array([ 0,  1,  0,  1, -1])
    """
    half = np.full(len(y), -1)
    # Without any class there is nothing to sort by.
    in_order = np.lexsort(y.T) if y.shape[1] else np.arange(len(y))
    in_order = in_order[counted[in_order]]
    half[in_order] = np.arange(len(in_order)) % 2
    return half


def held_out_evidence(
    proba: np.ndarray, shares: np.ndarray, offsets: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute how well a model agrees with the label sets of bags that it has not seen.

    The likelihood of label sets would always prefer a background. In the model instances draw their
    labels independently, so that many slightly doubtful ones make a label set nearly impossible,
    and a class for whatever is in doubt repairs that at the cost of all instances. What a label set
    says of the instances counts both ways: doubtful instances make it little, background none.

    Parameters
    ----------
    proba : ndarray of shape (n_instances, n_columns)
        Of each class, bag labels not known; a background, if there is one, comes last.
    shares : ndarray of shape (n_columns,)
        What each class has of all instances, by the same model.
    offsets : ndarray of int of shape (n_bags + 1,)
    y : ndarray of shape (n_bags, n_classes)

    Returns
    -------
    information : ndarray of shape (n_bags,)
        Log-probability of the instances given the label set, less that without: background has
        its share in every bag, and the classes of the label set the rest. ``-inf`` where an
        instance is impossible.
    n_wrong : ndarray of int of shape (n_bags,)
        Labels that are wrong if those are predicted that occur with a probability of one half.

    Examples
    --------
    Two classes as frequent, and an instance that surely is of the first: log 2, or not at all.

    >>> proba, shares = np.array([[1.0, 0.0]] * 2), np.array([0.5, 0.5])
    >>> held_out_evidence(proba, shares, np.arange(3), np.array([[1, 0], [0, 1]]))
    (array([0.69314718,       -inf]), array([0, 2]))
    """
    n_bags, n_classes = y.shape
    bag = np.repeat(np.arange(n_bags), np.diff(offsets))
    allowed = (y != 0)[bag]
    # Not zero, for label sets of classes that no instance has.
    expected = np.maximum(allowed @ shares[:n_classes], 1e-12)
    rest = np.where(allowed.any(axis=1), 1.0 - shares[n_classes:].sum(), 0.0)
    named = rest * (proba[:, :n_classes] * allowed).sum(axis=1) / expected
    background = proba[:, n_classes:] / np.maximum(shares[n_classes:], 1e-12)
    ratio = named + (1.0 - rest) * background.sum(axis=1)
    with np.errstate(divide="ignore"):
        information = np.bincount(bag, np.log(ratio), n_bags)
        log_absence = np.log1p(-np.minimum(proba[:, :n_classes], 1.0))
    absent = np.stack([np.bincount(bag, each, n_bags) for each in log_absence.T], axis=1)
    predicted = np.exp(absent) <= 0.5
    return information, ((predicted != (y == 1)) & (y != -1)).sum(axis=1)


def is_background_better(scores: np.ndarray, n_wrong_if_empty: float) -> bool:
    """Decide whether to use a background.

    Parameters
    ----------
    scores : ndarray of shape (2, 2)
        The means of what `held_out_evidence` returns, without a background and with one.
    n_wrong_if_empty : float
        Labels per bag that are wrong if none is predicted.

    Returns
    -------
    bool
        Whether label sets say clearly more about their instances with a background; or whether,
        without it, they are predicted worse than with it, and worse than by empty ones.

    Examples
    --------
    >>> is_background_better(np.array([[1.0, 0.2], [1.5, 0.2]]), 1.0)
    True
    >>> is_background_better(np.array([[1.5, 0.2], [1.0, 0.1]]), 1.0)
    False
    """
    (information, n_wrong), (information_with, n_wrong_with) = scores
    is_useless = n_wrong > max(n_wrong_if_empty, n_wrong_with)
    return bool(information_with > information + CLEARLY or is_useless)
