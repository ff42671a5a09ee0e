"""Whether a model should have a background, and what it costs: decided by held-out bags.

Two models, without a background and with one, are fitted to one half of the bags at a time and
compared on the other. A background that costs nothing explains every instance that the labels of a
bag do not need. So in bags with labels each instance of the background costs something: that is
subtracted from its log-prior, which is not normalised again. What it costs is chosen by the same
halves, and so is the probability from which on a class is taken to occur in a bag.

Two things look like a background and are none. A model that is too sure of itself is mended by
whatever takes doubtful instances; so models are compared at the temperature that is best for each.
And instances of a class that are hard to tell, such as fragments of calls, are as well explained by
a background; but there are more of them in bags with more labels, and of a background there are
not.
"""

import numpy as np
from numpy.typing import NDArray

# By how much a background must be better, in nats per bag, to be used: of equals, the simpler.
CLEARLY = 0.1
# By how much a lower cost must be better, in nats per instance: of equals, the higher, by which
# more instances get a label.
SLIGHTLY = 0.01
# Standard errors by which the instances of a background may become more with the labels of bags.
MOST_GROWTH = 1.0
# What logits are divided by before models are compared: the best of them, for each model.
TEMPERATURES = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
# How many more labels than empty label sets would have must be wrong without a background, for that
# alone to be a reason to use one.
FAR_WORSE = 1.25
#: What a background may cost, in parts of `naming_costs`: nothing at 0; at 1, an instance that says
#: nothing is as well off with any of the labels of its bag. The first is that of the background by
#: which it is decided whether there is one.
PARTS_OF_COST = (0.2, 0.4, 0.6, 0.8)
# Steps by which the shares of classes are found: they need not be exact.
N_SHARING = 50


def charges(y: np.ndarray, offsets: np.ndarray, cost: float | np.ndarray) -> NDArray[np.float64]:
    """Return what each instance pays if it is background: bags without labels pay nothing.

    Parameters
    ----------
    y : ndarray of shape (n_bags, n_columns)
        Label sets; the background, optional everywhere, may be among the columns.
    offsets : ndarray of int of shape (n_bags + 1,)
    cost : float or ndarray of shape (n_bags,)
        In nats.

    Returns
    -------
    ndarray of shape (n_instances,)

    Examples
    --------
    >>> charges(np.array([[1, 0], [0, 0]]), np.array([0, 2, 3]), 0.5)
    array([0.5, 0.5, 0. ])
    """
    return np.repeat(np.where((y == 1).any(axis=1), cost, 0.0), np.diff(offsets))


def charged(
    log_prior: np.ndarray, y: np.ndarray, offsets: np.ndarray, cost: float | np.ndarray
) -> np.ndarray:
    """Return log-priors in which the background, their last column, pays its cost.

    Parameters
    ----------
    log_prior : ndarray of shape (n_instances, n_columns)
    y, offsets, cost
        As in `charges`.

    Returns
    -------
    ndarray of shape (n_instances, n_columns)
        The one given, where the cost is zero; else a copy.
    """
    if not np.any(cost):
        return log_prior
    log_prior = log_prior.copy()
    log_prior[:, -1] -= charges(y, offsets, cost)
    return log_prior


def naming_costs(
    y: np.ndarray, sizes: np.ndarray, weight: np.ndarray
) -> tuple[NDArray[np.float64], float]:
    """Compute what it costs to name an instance that says nothing, in each bag and in the mean.

    That is the probability of the labels of its bag: the share that these classes have of all
    instances of bags with labels, as far as label sets tell, less that of bags without labels.

    Parameters
    ----------
    y : ndarray of shape (n_bags, n_classes)
    sizes : ndarray of int of shape (n_bags,)
    weight : ndarray of shape (n_bags,)

    Returns
    -------
    costs : ndarray of shape (n_bags,)
        In nats; zero in bags without labels.
    mean : float
        Over the instances of bags with labels; zero if there are none.

    Examples
    --------
    Two classes as frequent: an instance that says nothing has either with probability one half.

    >>> naming_costs(np.array([[1, 0], [0, 1]]), np.array([3, 3]), np.ones(2))
    (array([0.69314718, 0.69314718]), 0.6931471805599453)
    """
    has_labels = (y == 1).any(axis=1)
    costs, counts = np.zeros(len(y)), weight * sizes
    if not counts[has_labels].any():
        return costs, 0.0
    allowed, own = (y != 0)[has_labels], counts[has_labels]
    shares = np.full(y.shape[1], 1.0 / y.shape[1])
    # Expectation maximisation: every bag shares its instances out among its labels.
    for _ in range(N_SHARING):
        shares = (own / (allowed @ shares)) @ allowed * shares / own.sum()
    unlabelled = counts[~has_labels].sum() / counts.sum()
    costs[has_labels] = -np.log(np.minimum(allowed @ shares, 1.0)) - np.log1p(-unlabelled)
    return costs, float(np.average(costs[has_labels], weights=own))


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
    presence : ndarray of shape (n_bags, n_classes)
        Probability that each class occurs in each bag.

    Examples
    --------
    Two classes as frequent, and an instance that surely is of the first: log 2, or not at all.

    >>> proba, shares = np.array([[1.0, 0.0]] * 2), np.array([0.5, 0.5])
    >>> held_out_evidence(proba, shares, np.arange(3), np.array([[1, 0], [0, 1]]))[0]
    array([0.69314718,       -inf])
    """
    bag = np.repeat(np.arange(len(y)), np.diff(offsets))
    return _information(proba, shares, bag, y), presence_in_bags(proba, offsets, y.shape[1])


def presence_in_bags(proba: np.ndarray, offsets: np.ndarray, n_classes: int) -> NDArray[np.float64]:
    """Compute the probability that each class occurs in each bag, as in `held_out_evidence`."""
    n_bags = len(offsets) - 1
    bag = np.repeat(np.arange(n_bags), np.diff(offsets))
    absent = np.zeros((n_bags, n_classes))
    with np.errstate(divide="ignore"):
        for c in range(n_classes):
            log_absence = np.log1p(-np.minimum(proba[:, c], 1.0))
            absent[:, c] = np.bincount(bag, log_absence, n_bags)
    return -np.expm1(absent)


def _information(proba, shares, bag, y):
    """Return the information of `held_out_evidence`; `bag` is that of each instance."""
    n_bags, n_classes = y.shape
    allowed = (y != 0)[bag]
    # Not zero, for label sets of classes that no instance has.
    expected = np.maximum(allowed @ shares[:n_classes], 1e-12)
    rest = np.where(allowed.any(axis=1), 1.0 - shares[n_classes:].sum(), 0.0)
    named = rest * np.einsum("ic,ic->i", proba[:, :n_classes], allowed) / expected
    background = proba[:, n_classes:] / np.maximum(shares[n_classes:], 1e-12)
    ratio = named + (1.0 - rest) * background.sum(axis=1)
    with np.errstate(divide="ignore"):
        return np.bincount(bag, np.log(ratio), n_bags)


def information_at_temperatures(
    proba: np.ndarray, weight: np.ndarray, offsets: np.ndarray, y: np.ndarray
) -> NDArray[np.float64]:
    """Compute the information of `held_out_evidence`, if a model were less sure of itself.

    Parameters
    ----------
    proba, offsets, y
        As in `held_out_evidence`.
    weight : ndarray of shape (n_instances,)
        Of those that shares are counted of.

    Returns
    -------
    ndarray of shape (n_temperatures, n_bags)
        At each of `TEMPERATURES`.

    Examples
    --------
    Four instances of which a model is sure, one of them wrongly: doubt does it good.

    >>> proba = np.array([[0.99, 0.01], [0.01, 0.99], [0.01, 0.99], [0.99, 0.01]])
    >>> y = np.array([[1, 0], [0, 1], [0, 1], [0, 1]])
    >>> found = information_at_temperatures(proba, np.ones(4), np.arange(5), y)
    >>> found.sum(axis=1)[[0, -1]].round(1)
    array([-1.9,  0.5])
    """
    bag = np.repeat(np.arange(len(y)), np.diff(offsets))
    found = np.empty((len(TEMPERATURES), len(y)))
    for place, temperature in enumerate(TEMPERATURES):
        tempered = proba ** (1.0 / temperature)
        tempered /= tempered.sum(axis=1, keepdims=True)
        shares = np.average(tempered, axis=0, weights=weight)
        found[place] = _information(tempered, shares, bag, y)
    return found


def background_counts(
    proba: np.ndarray, offsets: np.ndarray, y: np.ndarray, cost: float
) -> NDArray[np.float64]:
    """Compute how many instances of each bag are background, given its labels and the cost.

    Which labels need an instance is left out of account.

    Parameters
    ----------
    proba, offsets, y
        As in `held_out_evidence`, with a background.
    cost : float

    Returns
    -------
    ndarray of shape (n_bags,)

    Examples
    --------
    >>> proba = np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    >>> background_counts(proba, np.array([0, 2]), np.array([[1, 0]]), 0.0)
    array([1.5])
    """
    n_bags = len(y)
    bag = np.repeat(np.arange(n_bags), np.diff(offsets))
    named = np.einsum("ic,ic->i", proba[:, :-1], (y != 0)[bag])
    background = proba[:, -1] * np.exp(-charges(y, offsets, cost))
    return np.bincount(bag, background / np.maximum(named + background, 1e-300), n_bags).astype(
        np.float64
    )


def growth(counts: np.ndarray, n_labels: np.ndarray, weight: np.ndarray) -> float:
    """Compute by how many standard errors counts become more with the labels of bags.

    Parameters
    ----------
    counts, n_labels, weight : ndarray of shape (n_bags,)
        Bags without labels do not matter.

    Returns
    -------
    float
        Zero if all bags have as many labels.

    Examples
    --------
    >>> counts, n_labels = np.array([1.0, 2.1, 2.9]), np.array([1, 2, 3])
    >>> growth(counts, n_labels, np.ones(3)) > 5
    True
    """
    used = (n_labels > 0) & (weight > 0)
    if used.sum() < 3:
        return 0.0
    weight = weight[used] / weight[used].mean()
    steps = n_labels[used] - np.average(n_labels[used], weights=weight)
    excess = counts[used] - np.average(counts[used], weights=weight)
    spread = (weight * steps**2).sum()
    if spread == 0:
        return 0.0
    slope = (weight * steps * excess).sum() / spread
    rest = (weight * (excess - slope * steps) ** 2).sum() / (used.sum() - 2)
    return float(slope / np.sqrt(rest / spread)) if rest > 0 else 0.0


def is_background_better(
    scores: np.ndarray, n_wrong_if_empty: float, is_steady: bool = True
) -> bool:
    """Decide whether to use a background.

    Parameters
    ----------
    scores : ndarray of shape (2, 2)
        Means over held-out bags, without a background and with one: what label sets say of the
        instances, and labels that are wrong if those are predicted that occur with a probability of
        one half.
    n_wrong_if_empty : float
        Labels per bag that are wrong if none is predicted.
    is_steady : bool, default=True
        Whether there is no more background in bags with more labels; if there is, it is not taken
        for what label sets say.

    Returns
    -------
    bool
        Whether label sets say clearly more about their instances with a background; or whether,
        without it, they are predicted worse than with it, and far worse than by empty ones.

    Examples
    --------
    >>> is_background_better(np.array([[1.0, 0.2], [1.5, 0.2]]), 1.0)
    True
    >>> is_background_better(np.array([[1.5, 0.2], [1.0, 0.1]]), 1.0)
    False
    """
    (information, n_wrong), (information_with, n_wrong_with) = scores
    is_useless = n_wrong > max(FAR_WORSE * n_wrong_if_empty, n_wrong_with)
    is_clear = is_steady and information_with > information + CLEARLY
    return bool(is_clear or is_useless)


def describe_background(
    is_used: bool, cost: float, scores: np.ndarray | None, share: float | None
) -> str:
    """Say in a sentence what was decided about a background, and what that costs either way.

    Parameters
    ----------
    is_used : bool
    cost : float
        Of an instance of it, in nats.
    scores : ndarray of shape (2, 2) or None
        As in `is_background_better`; None if it was not decided by held-out bags.
    share : float or None
        Which share of the instances is background, or would be.

    Returns
    -------
    str

    Examples
    --------
    >>> print(describe_background(False, 0.0, np.array([[5.0, 0.1], [4.0, 0.1]]), 0.3))
    Background: not used, so every instance gets one of its bag's labels, even if it is noise; with a background about 30 % of the instances would get none. Labels of held-out bags do not agree clearly better with their instances with one (4.0 against 5.0 nats per bag).
    """  # noqa: E501
    if scores is None or share is None:
        if not is_used:
            return (
                "Background: not used, so every instance gets one of its bag's labels, even if it "
                "is noise."
            )
        price = f"at a cost of {cost:.2f} nats for each instance" if cost else "at no cost"
        return (
            f"Background: used {price}, so instances that do not look like their bag's labels "
            "get none, true ones perhaps among them."
        )
    (without, n_wrong), (with_it, n_wrong_with) = scores
    # Without the sign of what is rounded to nothing.
    shown = [round(float(each), 1) + 0.0 for each in (with_it, without)]
    agreement = f"({shown[0]:.1f} against {shown[1]:.1f} nats per bag)"
    if not is_used:
        reason = (
            "Labels of held-out bags do not agree clearly better with their instances with one "
            f"{agreement}."
        )
        if with_it > without + CLEARLY:
            reason = (
                "There would be more of these in bags with more labels, as there are of fragments "
                "of what has the labels, and not of noise."
            )
        return (
            "Background: not used, so every instance gets one of its bag's labels, even if it is "
            f"noise; with a background about {100 * share:.0f} % of the instances would get none. "
            f"{reason}"
        )
    reason = f"Labels of held-out bags agree better with their instances with one {agreement}."
    if with_it <= without + CLEARLY:
        reason = (
            "Without one, predicting no label at all for held-out bags would be better: "
            f"{n_wrong:.1f} labels per bag are wrong, {n_wrong_with:.1f} with one."
        )
    return (
        f"Background: used at a cost of {cost:.2f} nats for each instance, so about "
        f"{100 * share:.0f} % of the instances get no label, true ones perhaps among them; without "
        f"a background each would get one of its bag's labels, even if it is noise. {reason}"
    )
