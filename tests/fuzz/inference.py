"""Inference against the oracle: every method, on bags that are hard for numbers.

A case is a handful of bags in one call. The oracle computes in 60 digits; a finite error bound must
lie above the error, and "auto" must reach its tolerance.
"""

from collections import Counter
from itertools import pairwise, product
from pathlib import Path

import mpmath
import numpy as np

from oracle import errors, most_likely_labelling, recursion_bag
from unbag.bags import offsets_of
from unbag.union import Inference, infer, most_likely_labels
from unbag.union.dispatch import METHODS

# Labellings that the oracle lists for the most likely one.
MOST_LABELLINGS = 5000
SCALES = (0.0, 1e-300, 1e-9, 1.0, 5.0, 20.0, 60.0, 400.0, 1e4, 1e8, 1e11)
# More than a few are rare: the oracle's time doubles with each.
MANY_CLASSES, MOST_CLASSES = 7, 9
TOLERANCES = (1e-3, 1e-6, 1e-9, 1e-10)


def prepare() -> None:
    """Compile all kernels."""
    log_prior = np.log([[0.5, 0.5], [0.5, 0.5]])
    for method in ("auto", *METHODS):
        infer(log_prior, [0, 2], [[1, 1]], method=method)
    most_likely_labels(log_prior, [0, 2], [[1, 1]])


def draw_prior(rng: np.random.Generator, n_instances: int, n_classes: int) -> np.ndarray:
    """Draw log-priors of one bag: confident or not, alike, of tiny or huge scale, or excluded."""
    log_prior = rng.normal(size=(n_instances, n_classes)) * rng.choice(SCALES)
    if rng.random() < 0.2:
        # All instances want the same class, or are the same.
        log_prior[:, rng.integers(n_classes)] += rng.choice(SCALES)
    if rng.random() < 0.1:
        log_prior[:] = log_prior[:1]
    if rng.random() < 0.3:
        log_prior -= np.logaddexp.reduce(log_prior, axis=1, keepdims=True)
    if rng.random() < 0.2:
        log_prior += rng.normal(size=(n_instances, 1)) * rng.choice(SCALES)
    if rng.random() < 0.3:
        log_prior[rng.random(log_prior.shape) < rng.random()] = -np.inf
    if rng.random() < 0.1:
        log_prior = np.round(log_prior)
    return np.clip(log_prior, -9e11, 9e11, where=log_prior > -np.inf, out=log_prior)


def draw_bag(rng: np.random.Generator, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw log-priors, label set and known labels of one bag."""
    states = [[1, 1, 0, -1], [1], [0, 1], [-1, 0], [-1, 1]][rng.integers(5)]
    y = rng.choice(states, n_classes)
    sizes = [rng.integers(4), *(y == 1).sum() + rng.integers(0, 5, 4), rng.integers(7, 24)]
    n_instances = int(rng.choice(sizes))
    if n_classes < MANY_CLASSES and rng.random() < 0.01:
        n_instances = int(rng.integers(100, 400))
    pinned = np.full(n_instances, -1)
    allowed = np.flatnonzero(y)
    if len(allowed) and rng.random() < 0.3:
        chosen = rng.random(n_instances) < rng.choice([0.2, 0.6, 1.0])
        pinned[chosen] = rng.choice(allowed, chosen.sum())
    return draw_prior(rng, n_instances, n_classes), y, pinned


def answer_of(result: Inference, offsets: np.ndarray, b: int) -> Inference:
    """Return the answer for one bag out of that for several."""
    return Inference(
        result.log_likelihood[b : b + 1],
        result.posterior[offsets[b] : offsets[b + 1]],
        result.error_bound[b : b + 1],
        result.method[b : b + 1],
        result.relaxed[b : b + 1],
    )


def check_answer(found: Inference, truth: tuple, y: np.ndarray, tolerance: float | None) -> None:
    """Compare the answer for one bag with that of the oracle; `tolerance` is that of "auto"."""
    log_likelihood, posterior, bound = found.log_likelihood[0], found.posterior, found.error_bound
    assert np.isfinite(posterior).all(), "posterior is not finite"
    assert (posterior >= 0.0).all(), "negative probability"
    assert not posterior[:, y == 0].any(), "probability of a forbidden class"
    if truth[0] == mpmath.ninf:
        assert log_likelihood == -np.inf, "an impossible bag has a likelihood"
        assert found.method[0] == "none"
        assert not posterior.any()
        return
    assert found.method[0] != "none", "a possible bag was taken as impossible"
    assert np.isfinite(log_likelihood), "log-likelihood is not finite"
    if tolerance is not None:
        assert bound[0] <= tolerance, f"the bound is {bound[0]}, above {tolerance}"
    if not np.isfinite(bound[0]):
        return
    off = max(errors(found, truth))
    assert off <= bound[0], f"the error is {off}, above the bound {bound[0]}"
    assert np.allclose(posterior.sum(axis=1), 1, rtol=0, atol=len(y) * (bound[0] + 1e-15))


def check_labellings(
    log_prior: np.ndarray, offsets: np.ndarray, y: np.ndarray, pinned: np.ndarray
) -> None:
    """Check the most likely labelling of each bag."""
    best = most_likely_labels(log_prior, offsets, y, instance_labels=pinned)
    for b in range(len(y)):
        rows = slice(offsets[b], offsets[b + 1])
        bag = log_prior[rows], y[b], pinned[rows]
        n_free = int((bag[2] < 0).sum())
        if max(1, int((y[b] != 0).sum())) ** n_free > MOST_LABELLINGS:
            continue
        expected = most_likely_labelling(*bag)
        labels = best[rows]
        if expected == -np.inf:
            assert (labels == -1).all(), "labels for an impossible bag"
            continue
        assert set(np.flatnonzero(y[b] == 1)) <= set(labels), "not all labels are covered"
        assert (y[b][labels] != 0).all(), "a forbidden label"
        assert (labels == bag[2])[bag[2] >= 0].all(), "a known label was changed"
        assert (bag[0][np.arange(len(labels)), labels] > -np.inf).all(), "an excluded label"
        reached = bag[0][np.arange(len(labels)), labels].sum()
        scale = np.abs(bag[0][bag[0] > -np.inf]).sum()
        assert reached >= expected - 1e-12 * (scale + len(labels)), "there is a likelier labelling"


def check_normalised(log_prior: np.ndarray) -> None:
    """Check that the likelihoods of all label sets of a bag add up to one."""
    n_classes = log_prior.shape[1]
    # A difference of large numbers is as exact as these are.
    rounding = 1e-15 * np.abs(log_prior).sum()
    log_prior = log_prior - np.logaddexp.reduce(log_prior, axis=1, keepdims=True)
    y = np.array(list(product([0, 1], repeat=n_classes)))
    size = len(log_prior)
    result = infer(np.tile(log_prior, (len(y), 1)), np.arange(len(y) + 1) * size, y)
    total = np.exp(result.log_likelihood).sum()
    allowed = 1e-12 + result.error_bound.sum() + rounding
    assert abs(total - 1) <= allowed, f"the likelihoods add up to {total}"


def check(rng: np.random.Generator, folder: Path) -> Counter:
    """Try a handful of bags with every method."""
    n_classes, n_bags = int(rng.integers(1, MANY_CLASSES)), int(rng.integers(1, 6))
    if rng.random() < 0.01:
        n_classes, n_bags = int(rng.integers(MANY_CLASSES, MOST_CLASSES + 1)), 1
    bags = [draw_bag(rng, n_classes) for _ in range(n_bags)]
    log_prior = np.concatenate([bag[0] for bag in bags]).reshape(-1, n_classes)
    y = np.array([bag[1] for bag in bags])
    pinned = np.concatenate([bag[2] for bag in bags]).astype(int)
    offsets = offsets_of([len(bag[0]) for bag in bags])
    kind = np.float32 if rng.random() < 0.3 else np.float64
    log_prior = log_prior.astype(kind)
    given = np.asfortranarray(log_prior) if rng.random() < 0.2 else log_prior
    np.savez(folder / "bags.npz", log_prior=log_prior, offsets=offsets, y=y, pinned=pinned)
    exact = log_prior.astype(np.float64)
    parts = [slice(*pair) for pair in pairwise(offsets)]
    truths = [recursion_bag(exact[p], y[b], pinned[p]) for b, p in enumerate(parts)]
    tolerance = float(rng.choice(TOLERANCES))
    for method in ("auto", *METHODS):
        options = {"method": method, "tolerance": tolerance, "instance_labels": pinned}
        result = infer(given, offsets, y, n_jobs=int(rng.integers(1, 3)), **options)
        wanted = tolerance if method == "auto" else None
        for b, truth in enumerate(truths):
            check_answer(answer_of(result, offsets, b), truth, y[b], wanted)
    relaxed = infer(given, offsets, y, instance_labels=pinned, on_impossible="relax")
    for b, p in enumerate(parts):
        states = np.where(relaxed.relaxed[b], -1, y[b])
        truth = truths[b] if truths[b][0] != mpmath.ninf else recursion_bag(
            exact[p], states, pinned[p])  # fmt: skip
        check_answer(answer_of(relaxed, offsets, b), truth, states, None)
    check_labellings(exact, offsets, y, pinned)
    if n_classes <= 5 and len(bags[0][0]) and np.isfinite(exact[parts[0]]).all():
        check_normalised(exact[parts[0]])
    impossible = sum(truth[0] == mpmath.ninf for truth in truths)
    return Counter({"bags": len(bags), "impossible bags": impossible})
