"""Algorithm 1, section 4.2.2: the forward algorithm, to be read and compiled.

`forward` is to be read next to the paper, over Python sets. `forward_compiled` takes the same steps
over bit masks, compiled, so that comparisons of speed are fair.

We add one thing, so that all methods answer the same questions: optional labels. An instance with
such a label leaves the union as it is, so the union may then be empty, a state that the published
algorithms do not need.

Probabilities are multiplied without rescaling, so a state that is far less likely than another
underflows to zero. The compiled form normalises the rows over the labels that a bag allows, which
spares it the commonest underflow, and marks by an infinite error bound what it cannot certify.
"""

import math
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._compile import kernel
from unbag.union.arithmetic import EPS, log_of, trailing_zeros
from unbag.union.chain import states_by_cardinality
from unbag.union.layout import labels_part, part

# Below this, products that underflowed may have counted.
SMALLEST_LIKELIHOOD = 1e-290


def ordered_power_set(n_labels: int, with_empty: bool = False) -> list[frozenset[int]]:
    """List the subsets of the labels by cardinality, then lexicographically.

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
    """Return priors and slack as arrays of floats."""
    prior = np.asarray(prior, dtype=float)
    return prior, np.zeros(len(prior)) if slack is None else np.asarray(slack, dtype=float)


def union_probabilities(prior: np.ndarray, slack: np.ndarray) -> dict[frozenset[int], float]:
    """Compute the probability of every union of the instances' labels (Proposition 1)."""
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


# Compiled forms. They take and fill the arrays of `unbag.union.dense.dense`.


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
def run_forward(batch, chosen):
    """Answer the chosen bags by `forward`, compiled."""
    for m in chosen:
        z, batch.error_bound[m] = forward_compiled(
            labels_part(batch.share, batch, m),
            part(batch.slack, batch.row_offsets, m),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
        )
        batch.log_z[m, 0] = log_of(z)
