"""Hypothesis strategies: bags, label sets and priors, hard ones included."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass
class Case:
    """One bag: what `infer` takes, and a way to hand it over."""

    log_prior: np.ndarray
    y: np.ndarray
    pinned: np.ndarray

    @property
    def arguments(self):
        return self.log_prior, [0, len(self.log_prior)], self.y[None]

    @property
    def keywords(self):
        return {"instance_labels": self.pinned}


@st.composite
def cases(draw, max_instances=6, max_classes=5, exclude=True, pin=True):
    """Draw a bag with required, optional and forbidden classes; a few or all instances are pinned.

    Logits are normal, of scale 1, 5, 20 or 60; with `exclude`, some are -inf.
    """
    n_instances = draw(st.integers(1, max_instances))
    n_classes = draw(st.integers(1, max_classes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    log_prior = rng.normal(size=(n_instances, n_classes)) * draw(st.sampled_from([1, 5, 20, 60]))
    if exclude and draw(st.booleans()):
        log_prior[rng.random(log_prior.shape) < 0.2] = -np.inf
    y = np.array(draw(st.lists(st.sampled_from([1, 1, 0, -1]), min_size=n_classes,
                               max_size=n_classes)))  # fmt: skip
    pinned = np.full(n_instances, -1)
    allowed = np.flatnonzero(y)
    if pin and len(allowed) and draw(st.booleans()):
        chosen = rng.random(n_instances) < draw(st.sampled_from([0.3, 1.0]))
        pinned[chosen] = rng.choice(allowed, chosen.sum())
    return Case(log_prior, y, pinned)


@st.composite
def surprising_cases(draw):
    """Draw a bag of up to 10 instances with labels that are unlikely, or have one good instance.

    Two labels may have the same one, so that one of them is displaced.
    """
    n_instances = draw(st.integers(2, 10))
    n_classes = draw(st.integers(2, min(n_instances, 6)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    log_prior = rng.normal(size=(n_instances, n_classes)) * draw(st.sampled_from([1, 3, 10]))
    log_prior[:, : draw(st.integers(0, 3))] -= draw(st.sampled_from([10, 40, 1000]))
    if draw(st.booleans()):
        good = rng.integers(n_instances, size=n_classes)
        log_prior[good, np.arange(n_classes)] += draw(st.sampled_from([10, 40]))
    y = np.array(draw(st.lists(st.sampled_from([1, 1, 1, -1]), min_size=n_classes,
                               max_size=n_classes)))  # fmt: skip
    return Case(log_prior, y, np.full(n_instances, -1))


@st.composite
def sparse_cases(draw):
    """Draw a bag of 6 to 8 classes of which each instance can have one to three."""
    n_classes = draw(st.integers(6, 8))
    n_instances = draw(st.integers(n_classes, n_classes + 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    log_prior = np.full((n_instances, n_classes), -np.inf)
    for i in range(n_instances):
        possible = rng.choice(n_classes, rng.integers(1, 4), replace=False)
        log_prior[i, possible] = rng.normal(size=len(possible)) * 5
        log_prior[i, i % n_classes] = rng.normal()
    y = np.array(draw(st.lists(st.sampled_from([1, 1, 1, 1, -1]), min_size=n_classes,
                               max_size=n_classes)))  # fmt: skip
    pinned = np.full(n_instances, -1)
    if draw(st.booleans()):
        pinned[0] = 0
    return Case(log_prior, y, pinned)
