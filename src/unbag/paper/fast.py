"""Algorithm 2, section 4.2.3: forward and substitution (FAST), to be read and compiled.

`fast` is to be read next to the paper, over Python sets. `fast_compiled` takes the same steps over
bit masks, compiled. `infer_as_published` answers bags by either of the paper's algorithms.

**Where it breaks.** FAST takes one instance out of the union again by solving a triangular system:
it subtracts numbers that may agree in all their digits, and divides by diagonal elements that may
be tiny. For confident priors the result may be off by any factor, or NaN: with 4 labels, 4
instances and normal logits of scale 60, every seventh bag has a "probability" that is off by more
than one half. Answers that it cannot certify have an infinite error bound. `unbag.union.infer` has
no such weakness.
"""

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._compile import Kernel, kernel
from unbag.union import Inference, UnionProblem
from unbag.union.arithmetic import EPS, log_of, trailing_zeros
from unbag.union.chain import states_by_cardinality
from unbag.union.dispatch import choose
from unbag.union.layout import (
    CHAIN,
    INTRACTABLE,
    UNDECIDED,
    labels_part,
    part,
    read_batch,
    write_answers,
)
from unbag.union.policy import check_tractable

from .forward import (
    SMALLEST_LIKELIHOOD,
    add_instance,
    as_priors,
    join,
    ordered_power_set,
    run_forward,
    union_probabilities,
)

Algorithm: TypeAlias = Literal["forward", "fast"]
# Below this, FAST divides by what may have lost its digits to underflow.
SMALLEST_DIAGONAL = 1e-150


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


# The compiled form; its arrays are those of `unbag.union.dense.dense`.


@kernel
def fast_compiled(share, slack, posterior, slack_posterior):
    """Infer by Algorithm 2 (FAST); arguments and returned values of `dense`.

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
def run_fast(batch, chosen):
    """Answer the chosen bags by `fast`, compiled."""
    for m in chosen:
        z, batch.error_bound[m] = fast_compiled(
            labels_part(batch.share, batch, m),
            part(batch.slack, batch.row_offsets, m),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
        )
        batch.log_z[m, 0] = log_of(z)


RUNNERS: dict[str, Kernel] = {"forward": run_forward, "fast": run_fast}


def infer_as_published(
    problem: UnionProblem, log_prior: np.ndarray, algorithm: Algorithm
) -> Inference:
    """Infer by one of the paper's algorithms, as `UnionProblem.infer`.

    Parameters
    ----------
    problem : UnionProblem
    log_prior : ndarray of float64 of shape (n_instances, n_classes)
    algorithm : {"forward", "fast"}

    Returns
    -------
    Inference
        Impossible bags are kept.

    Raises
    ------
    IntractableBagError
        If bags have too many labels.

    Examples
    --------
    >>> problem = UnionProblem([0, 2], [[1, 1]])
    >>> infer_as_published(problem, np.log([[0.9, 0.1], [0.5, 0.5]]), "fast").posterior.round(2)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """
    if problem.grouped is not None:
        raise ValueError(
            "The paper's algorithms know no labels that name several classes: use inference='auto'."
        )
    layout = problem.layout
    batch = read_batch(np.arange(problem.n_bags), layout, log_prior)
    # They hold as many labels as the chain.
    choose(batch, CHAIN, UNDECIDED, 1e-9)
    (chosen,) = (batch.served == CHAIN).nonzero()
    RUNNERS[algorithm](batch, chosen)
    posterior = np.zeros(log_prior.shape)
    log_likelihood, error_bound = np.empty((2, problem.n_bags))
    write_answers(layout, log_prior, batch, posterior, log_likelihood, error_bound)
    check_tractable(problem, (batch.served == INTRACTABLE).nonzero()[0])
    return Inference(
        log_likelihood=log_likelihood,
        posterior=posterior,
        error_bound=error_bound,
        method=np.where(batch.served == CHAIN, algorithm, "none"),
        relaxed=np.zeros(problem.y.shape, dtype=bool),
    )
