"""Bags with groups, drawn at random: nested, disjoint and overlapping, pinned, noisy, confident."""

from dataclasses import dataclass

import numpy as np

from unbag import AnyOf, Bags

SCALES = (0.0, 1.0, 1.0, 5.0, 20.0, 60.0, 400.0, 1e4)
RATES = (0.0, 0.0, 1e-12, 1e-6, 0.05, 0.3, 0.9)


@dataclass
class GroupBag:
    """One bag: what `infer` takes."""

    log_prior: np.ndarray
    y: np.ndarray
    pinned: np.ndarray
    groups: list[list[int]]
    missed_rate: np.ndarray
    false_rate: np.ndarray

    def __len__(self):
        return len(self.log_prior)

    @property
    def is_noisy(self):
        return bool(self.missed_rate.any() or self.false_rate.any())


def draw_groups(rng, n_classes):
    """Draw up to four groups: any, a partition, or one within the other."""
    kind = rng.integers(4)
    if kind == 0:
        return []
    if kind == 1:
        shuffled = rng.permutation(n_classes)
        cuts = np.sort(rng.integers(0, n_classes + 1, rng.integers(1, 4)))
        parts = [part.tolist() for part in np.split(shuffled, cuts) if len(part)]
        return [part for part in parts if rng.random() < 0.7]
    if kind == 2:
        shuffled = rng.permutation(n_classes).tolist()
        ends = np.sort(rng.integers(1, n_classes + 1, rng.integers(1, 4)))
        return [shuffled[:end] for end in ends]
    count = rng.integers(1, 5)
    return [
        rng.choice(n_classes, rng.integers(1, n_classes + 1), replace=False).tolist()
        for _ in range(count)
    ]


def draw_group_bag(rng, max_instances=6, max_classes=5, noisy=False, scales=SCALES):
    """Draw a bag with groups."""
    n_instances = int(rng.integers(0, max_instances + 1))
    n_classes = int(rng.integers(1, max_classes + 1))
    log_prior = rng.normal(size=(n_instances, n_classes)) * rng.choice(scales)
    if rng.random() < 0.2:
        log_prior += rng.normal(size=(n_instances, 1)) * rng.choice(scales)
    if rng.random() < 0.2:
        log_prior[rng.random(log_prior.shape) < 0.3] = -np.inf
    states = [[1, 0, 0, -1], [0], [0, 1], [-1, 0], [-1, 1]][rng.integers(5)]
    y = rng.choice(states, n_classes)
    groups = draw_groups(rng, n_classes)
    allowed = sorted({*np.flatnonzero(y).tolist(), *(c for group in groups for c in group)})
    pinned = np.full(n_instances, -1)
    if allowed and rng.random() < 0.3:
        chosen = rng.random(n_instances) < rng.choice([0.4, 1.0])
        pinned[chosen] = rng.choice(allowed, chosen.sum())
    missed_rate, false_rate = np.zeros(n_classes), np.zeros(n_classes)
    if noisy:
        missed_rate, false_rate = rng.choice(RATES, (2, n_classes))
    return GroupBag(log_prior, y, pinned, groups, missed_rate, false_rate)


def made_bags(rng, n_bags=80, vague=0.6):
    """Bags of four classes that are easy to tell apart, some of whose labels name pairs."""
    means = rng.normal(size=(4, 5)) * 3
    names = ["hawk", "owl", "robin", "wren"]
    pairs = [AnyOf("hawk", "owl"), AnyOf("robin", "wren")]
    arrays, sets, truth = [], [], []
    for _ in range(n_bags):
        own = rng.integers(0, 4, rng.integers(1, 5))
        arrays.append(means[own] + rng.normal(size=(len(own), 5)))
        sets.append({pairs[c // 2] if rng.random() < vague else names[c] for c in set(own)})
        truth += [names[c] for c in own]
    return Bags.from_list(arrays), sets, np.array(truth)
