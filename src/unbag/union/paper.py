"""The published algorithms: forward, and forward and substitution (FAST).

Pham, Raich and Fern, *Dynamic Programming for Instance Annotation in
Multi-instance Multi-label Learning*, Algorithms 1 and 2. Here in two forms:
`forward` and `fast` to be read beside the paper, over Python sets; and the same
steps over bit masks, compiled, so that comparisons of speed are fair.

We add one thing, so that all methods answer the same questions: optional labels.
An instance with such a label leaves the union as it is, so the union may then be
empty, a state that the published algorithms do not need.

**Where they break.** Both multiply probabilities without rescaling, so a state
that is far less likely than another underflows to zero. FAST, moreover, takes one
instance out of the union again by solving a triangular system: it subtracts
numbers that may agree in all their digits, and divides by diagonal elements that
may be tiny. For confident priors the result may be off by any factor, or NaN: with
4 labels, 4 instances and normal logits of scale 60, every seventh bag has a
"probability" that is off by more than one half. `unbag.union.infer` normalises the
rows over the labels that a bag allows, which spares both algorithms the commonest
underflow, and marks what FAST cannot certify by an infinite error bound. Its default
method has neither weakness.
"""

import math
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._compile import kernel

from .arithmetic import EPS, log_of, trailing_zeros
from .lattice import states_by_cardinality
from .layout import labels_part, part


def ordered_power_set(n_labels: int, with_empty: bool = False) -> list[frozenset[int]]:
    """List the subsets of the labels by cardinality, then lexicographically.

    Parameters
    ----------
    with_empty : bool, default=False
        Whether to begin with the empty set.

    Examples
    --------
    >>> [sorted(s) for s in ordered_power_set(3)]
    [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]]
    """
    smallest = 0 if with_empty else 1
    return [
        frozenset(subset)
        for size in range(smallest, n_labels + 1)
        for subset in combinations(range(n_labels), size)
    ]


def as_priors(prior: ArrayLike, slack: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Return priors and slack as arrays of floats.

    Parameters
    ----------
    prior : array-like of shape (n_instances, n_labels)
    slack : array-like of shape (n_instances,) or None
        Zeros where it is None.
    """
    prior = np.asarray(prior, dtype=float)
    return prior, np.zeros(len(prior)) if slack is None else np.asarray(slack, dtype=float)


def union_probabilities(prior: np.ndarray, slack: np.ndarray) -> dict[frozenset[int], float]:
    """Compute the probability of every union of the instances' labels (Proposition 1).

    Parameters
    ----------
    prior : ndarray of shape (n_instances, n_labels)
    slack : ndarray of shape (n_instances,)
        As in `forward`.

    Returns
    -------
    dict from frozenset to float
        Probability that the union of all instance labels, optional ones left
        aside, is that set.
    """
    n_instances, n_labels = prior.shape
    power_set = ordered_power_set(n_labels, with_empty=True)
    union = dict.fromkeys(power_set, 0.0)
    union[frozenset()] = 1.0
    for i in range(n_instances):
        union = {
            state: slack[i] * union[state]
            + sum(prior[i, k] * (union[state] + union[state - {k}]) for k in state)
            for state in power_set
        }
    return union


def forward(prior: ArrayLike, slack: ArrayLike | None = None) -> NDArray[np.float64]:
    """Condition the labels of a bag on its label set, by Algorithm 1.

    For each instance, the union of all *other* instances' labels is computed from
    the beginning; then the instance either repeats a label or completes the set.

    Parameters
    ----------
    prior : array-like of shape (n_instances, n_labels)
        Probability of each label of the bag for each instance.
    slack : array-like of shape (n_instances,), optional
        Probability of the optional labels together; none by default.

    Returns
    -------
    joint : ndarray of shape (n_instances, n_labels + 1)
        Probability that the instance has the label *and* the union is the whole
        label set; in the last column, that it has an optional label.

    Notes
    -----
    Time ``n_instances**2 * n_labels * 2**n_labels``.

    Examples
    --------
    Two undecided instances must share two labels between them.

    >>> forward([[0.5, 0.5], [0.5, 0.5]])
    array([[0.25, 0.25, 0.  ],
           [0.25, 0.25, 0.  ]])
    """
    prior, slack = as_priors(prior, slack)
    n_instances, n_labels = prior.shape
    full = frozenset(range(n_labels))
    joint = np.empty((n_instances, n_labels + 1))
    for i in range(n_instances):
        others = union_probabilities(np.delete(prior, i, axis=0), np.delete(slack, i))
        for k in range(n_labels):
            joint[i, k] = prior[i, k] * (others[full] + others[full - {k}])
        joint[i, n_labels] = slack[i] * others[full]
    return joint


def fast(prior: ArrayLike, slack: ArrayLike | None = None) -> NDArray[np.float64]:
    """Condition the labels of a bag on its label set, by Algorithm 2 (FAST).

    The union u of all instances is computed once. Taking instance i out of it again
    means solving u = A v, where A says how one more instance turns a union into
    another. In the order of `ordered_power_set`, A is lower triangular.

    Parameters
    ----------
    prior : array-like of shape (n_instances, n_labels)
    slack : array-like of shape (n_instances,), optional
        As in `forward`.

    Returns
    -------
    joint : ndarray of shape (n_instances, n_labels + 1)
        As in `forward`.

    Notes
    -----
    Time ``n_instances * n_labels * 2**n_labels``. Divides by
    ``A[state, state]``, the prior of the state's labels together, and subtracts: see
    the module's warning.

    Examples
    --------
    >>> fast([[0.9, 0.1], [0.5, 0.5]]).round(2)
    array([[0.45, 0.05, 0.  ],
           [0.05, 0.45, 0.  ]])
    """
    prior, slack = as_priors(prior, slack)
    n_instances, n_labels = prior.shape
    power_set = ordered_power_set(n_labels, with_empty=bool(slack.any()))
    full = frozenset(range(n_labels))
    u = union_probabilities(prior, slack)
    joint = np.empty((n_instances, n_labels + 1))
    for i in range(n_instances):
        v = {frozenset(): 0.0}
        for state in power_set:
            diagonal = slack[i] + sum(prior[i, k] for k in state)
            known = sum(prior[i, k] * v[state - {k}] for k in state)
            with np.errstate(divide="ignore", invalid="ignore"):
                v[state] = np.float64(u[state] - known) / diagonal
        for k in range(n_labels):
            joint[i, k] = prior[i, k] * (v[full] + v[full - {k}])
        joint[i, n_labels] = slack[i] * v[full]
    return joint


# Compiled forms. They take and fill the arrays of `unbag.union.dense.dense`.

# Below this, products that underflowed may have counted.
SMALLEST_LIKELIHOOD = 1e-290
# Below this, FAST divides by what may have lost its digits to underflow.
SMALLEST_DIAGONAL = 1e-150


@kernel
def add_instance(share, slack, i, states, before, after):
    """Take the probabilities of the union past one more instance (Proposition 1)."""
    for index in range(states.shape[0]):
        s = states[index]
        diagonal = slack[i]
        value = 0.0
        remaining = s
        while remaining != 0:
            k = trailing_zeros(remaining)
            remaining &= remaining - 1
            diagonal += share[k, i]
            value += share[k, i] * before[s ^ (1 << k)]
        after[s] = value + diagonal * before[s]


@kernel
def join(share, slack, i, others, posterior, slack_posterior):
    """Complete the union of the other instances by instance i (Proposition 2)."""
    n_labels = share.shape[0]
    full = (1 << n_labels) - 1
    slack_posterior[i] = slack[i] * others[full]
    total = slack_posterior[i]
    for k in range(n_labels):
        posterior[k, i] = share[k, i] * (others[full] + others[full ^ (1 << k)])
        total += posterior[k, i]
    # As published, even where it leaves [0, 1]; but no answer is zero, not NaN.
    scale = 1.0 / total if math.isfinite(total) and total != 0.0 else 0.0
    slack_posterior[i] = finite(slack_posterior[i] * scale)
    for k in range(n_labels):
        posterior[k, i] = finite(posterior[k, i] * scale)


@kernel
def finite(value):
    """Replace a value that is not finite by zero."""
    return value if math.isfinite(value) else 0.0


@kernel
def forward_compiled(share, slack, posterior, slack_posterior):
    """Infer by Algorithm 1; arguments and returned values of `dense`."""
    n_labels, n_instances = share.shape
    if n_instances == 0:
        return 1.0, 0.0
    n_states = 1 << n_labels
    states, _ = states_by_cardinality(n_labels)
    before = np.empty(n_states)
    after = np.empty(n_states)
    for i in range(n_instances):
        for s in range(n_states):
            before[s] = 0.0
        before[0] = 1.0
        for other in range(n_instances):
            if other != i:
                add_instance(share, slack, other, states, before, after)
                before, after = after, before
        join(share, slack, i, before, posterior, slack_posterior)
    add_instance(share, slack, n_instances - 1, states, before, after)
    z = after[n_states - 1]
    if z < SMALLEST_LIKELIHOOD:
        return z, math.inf
    # A rounded log-prior of -d is off by d half-roundings; those of the paths that make
    # up z add up to its logarithm.
    return z, EPS * (n_instances * (2.0 * n_labels + 10.0) + 50.0 - math.log(z))


@kernel
def fast_compiled(share, slack, posterior, slack_posterior):
    """Infer by Algorithm 2 (FAST); arguments and returned values of `dense`.

    Notes
    -----
    The error bound: going up from one cardinality to the next, the substitution
    adds at most the roundings of one quotient to the error of v, since the factors
    ``prior / diagonal`` sum to one at most. So v errs absolutely by k times n k
    roundings; the posterior is v divided by the likelihood, however small that is.
    """
    n_labels, n_instances = share.shape
    n_states = 1 << n_labels
    full = n_states - 1
    states, layers = states_by_cardinality(n_labels)
    u = np.zeros(n_states)
    v = np.empty(n_states)
    u[0] = 1.0
    for i in range(n_instances):
        add_instance(share, slack, i, states, u, v)
        u, v = v, u
    z = u[full]

    has_slack = False
    for i in range(n_instances):
        has_slack = has_slack or slack[i] > 0.0
    start = 0 if has_slack else layers[1]
    smallest = math.inf
    for i in range(n_instances):
        v[0] = 0.0
        for index in range(start, n_states):
            s = states[index]
            diagonal = slack[i]
            known = 0.0
            remaining = s
            while remaining != 0:
                k = trailing_zeros(remaining)
                remaining &= remaining - 1
                diagonal += share[k, i]
                known += share[k, i] * v[s ^ (1 << k)]
            v[s] = (u[s] - known) / diagonal
            smallest = min(smallest, diagonal)
        join(share, slack, i, v, posterior, slack_posterior)

    if not (smallest >= SMALLEST_DIAGONAL and z >= SMALLEST_LIKELIHOOD):
        return z, math.inf
    # Plus what the roundings of the log-priors add, as in `forward_compiled`.
    roundings = (n_instances + 3.0) * (n_labels + 8.0) - 2.0 * math.log(SMALLEST_LIKELIHOOD)
    error_bound = 4.0 * EPS * (n_labels + 1.0) * roundings / z
    inside = error_bound < 1.0
    for i in range(n_instances):
        inside = inside and abs(slack_posterior[i] - 0.5) <= 0.5 + error_bound
        for k in range(n_labels):
            inside = inside and abs(posterior[k, i] - 0.5) <= 0.5 + error_bound
    return z, error_bound if inside else math.inf


@kernel
def run_forward(layout, log_prior, batch, chosen, tolerance):
    """Answer the chosen bags by `forward`, compiled."""
    for m in chosen:
        z, batch.error_bound[m] = forward_compiled(
            labels_part(batch.share, batch, m),
            part(batch.slack, batch.row_offsets, m),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
        )
        batch.log_z[m, 0] = log_of(z)


@kernel
def run_fast(layout, log_prior, batch, chosen, tolerance):
    """Answer the chosen bags by `fast`, compiled."""
    for m in chosen:
        z, batch.error_bound[m] = fast_compiled(
            labels_part(batch.share, batch, m),
            part(batch.slack, batch.row_offsets, m),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
        )
        batch.log_z[m, 0] = log_of(z)
