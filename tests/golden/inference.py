"""`unbag.union` on bags that are easy, hard, impossible or too large, by every method."""

import numpy as np

from recording import attempted, recording
from renamed import parameters
from unbag.union import infer, most_likely_labels, sample_labels

METHODS = ("auto", "adaptive", "dense", "chain", "forward", "fast")


def many_bags():
    """Forty small bags of required, optional and forbidden classes, some of them impossible."""
    rng = np.random.default_rng(0)
    offsets = np.append(0, np.cumsum(rng.integers(1, 9, 40)))
    y = rng.choice([0, 1, -1], p=[0.3, 0.5, 0.2], size=(40, 5))
    return rng.normal(size=(offsets[-1], 5)), offsets, y


def confident(n_instances, n_labels, scale, seed):
    """One bag whose instances are sure of their labels, the more so the larger the scale."""
    log_prior = scale * np.random.default_rng(seed).normal(size=(n_instances, n_labels))
    return log_prior, [0, n_instances], np.ones((1, n_labels), dtype=int)


def far_down(gap):
    """One label lies far below the others, and another is likely for one instance alone."""
    log_prior = np.random.default_rng(1).normal(size=(6, 3))
    log_prior[:, 2] -= gap
    log_prior[1:, 1] -= 2 * gap
    return log_prior, [0, 6], [[1, 1, 1]]


def contended():
    """Two labels want the same instance, thousands of nats down."""
    log_prior = [[0.0, -10.0, -20.0], [0.0, -3000.0, -9000.0], [0.0, -5000.0, -6000.0]]
    return np.array(log_prior), [0, 3], [[1, 1, 1]]


def excluded():
    """Some classes are excluded for some instances."""
    rng = np.random.default_rng(2)
    log_prior = 5 * rng.normal(size=(60, 6))
    log_prior[rng.random(log_prior.shape) < 0.2] = -np.inf
    return log_prior, np.arange(0, 61, 10), rng.choice([1, -1], p=[0.7, 0.3], size=(6, 6))


def infeasible():
    """Enough instances, but two labels have only one between them."""
    log_prior = np.zeros((5, 3))
    log_prior[1:, 1:] = -np.inf
    return log_prior, [0, 5], [[1, 1, 1]]


def empty():
    """Bags without instances: one may be, one may not."""
    return np.empty((0, 2)), [0, 0, 0], [[0, -1], [1, 0]]


BAGS = {
    "many": many_bags(),
    "undecided": confident(12, 12, 0.0, 0),
    "as_many_labels_as_instances": confident(9, 9, 1.0, 1),
    "ten_labels": confident(40, 10, 0.3, 2),
    "confident": confident(30, 10, 20.0, 3),
    "very_confident": confident(20, 8, 300.0, 4),
    "fourteen_labels": confident(60, 14, 1.0, 5),
    "forty_labels": confident(1000, 40, 1.0, 6),
    "thirty_labels_of_thirty_instances": confident(30, 30, 1.0, 7),
    "far_down": far_down(1000.0),
    "further_down": far_down(1e6),
    "contended": contended(),
    "excluded": excluded(),
    "infeasible": infeasible(),
    "empty": empty(),
}


def certified(bags, method, **options):
    """Return the answers that carry a certificate: the others are of no use."""
    log_prior, offsets, y = bags
    result = infer(log_prior, offsets, y, method=method, **options)
    usable = np.isfinite(result.error_bound)
    return {
        "log_likelihood": np.where(usable, result.log_likelihood, np.nan),
        "posterior": np.where(np.repeat(usable, np.diff(offsets))[:, None], result.posterior, 0),
        "within_tolerance": result.error_bound <= 1e-9,
        "method": result.method,
    }


for name, bags in BAGS.items():
    for method in METHODS:
        recording(f"inference/{name}/{method}", bags, method)(
            lambda bags, method: attempted(lambda: certified(bags, method))
        )


@recording("inference/error_bounds", rtol=0.02)
def error_bounds():
    """Logarithms of the bounds, which may move a little: of -15, by 0.3."""

    def logarithms(bags, method):
        with np.errstate(divide="ignore"):
            return np.log10(infer(*bags, method=method).error_bound)

    return {
        f"{name}/{method}": attempted(lambda bags=bags, method=method: logarithms(bags, method))
        for name, bags in BAGS.items()
        if name not in ("forty_labels", "thirty_labels_of_thirty_instances")
        for method in METHODS
    }


@recording("inference/pinned")
def pinned():
    """Some instances have labels that are known."""
    log_prior, offsets, y = BAGS["many"]
    allowed = (y != 0).repeat(np.diff(offsets), axis=0)
    chosen = (np.arange(len(log_prior)) % 3 == 0) & allowed.any(axis=1)
    labels = np.where(chosen, allowed.argmax(axis=1), -1)
    return {
        "most_likely": most_likely_labels(log_prior, offsets, y, instance_labels=labels),
        **{each: certified(BAGS["many"], each, instance_labels=labels) for each in METHODS},
    }


@recording("inference/options")
def options():
    """Tolerance, and threads, which change nothing."""
    bags = BAGS["ten_labels"]
    return {
        "loose": certified(bags, "adaptive", tolerance=1e-3),
        "tight": certified(bags, "adaptive", tolerance=1e-12),
        "threads": certified(BAGS["many"], "auto", **parameters(infer, n_threads=2)),
    }


@recording("inference/labellings")
def labellings():
    """The likeliest labelling of each bag, and labellings drawn at random."""
    drawn = ("many", "ten_labels", "confident", "far_down", "excluded")
    return {
        "most_likely": {
            name: attempted(lambda bags=bags: most_likely_labels(*bags))
            for name, bags in BAGS.items()
        },
        "samples": {
            name: attempted(lambda name=name: sample_labels(*BAGS[name], size=3, random_state=0))
            for name in drawn
        },
    }
