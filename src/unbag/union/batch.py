"""A batch of bags on its way through the kernels.

`read_batch` turns priors and label sets into what the kernels need, the kernels
answer, `write_answers` turns that into likelihoods and posteriors. In between, each
bag is a `share` and a `slack` of its own, in arrays that all bags of the batch have in
common.

What all kernels need done happens here: pinned instances are taken out (they need no
inference, and the labels that they show no other instance), rows are normalised over
the labels that the bag allows, label sets that no labelling can produce are found
out. Behind the kernels, each optional label gets its part of what its instance has
left for all of them.
"""

import math
from typing import NamedTuple

import numpy as np

from unbag._compile import kernel

from .arithmetic import EPS, TINY, add_exactly
from .assignment import is_possible
from .layout import Layout

# What `Batch.served` says of a bag that no kernel has served: the methods' codes are
# from zero on, and "none" comes behind them.
UNDECIDED = -1
INTRACTABLE = -2
IMPOSSIBLE = 5


class Batch(NamedTuple):
    """Bags prepared for the kernels, and the kernels' answers.

    With m bags in the batch, k required labels in a bag, and n instances in it that
    are not pinned:

    Attributes
    ----------
    bags : ndarray of int of shape (m,)
        Which bags.
    n_labels : ndarray of int of shape (m,)
        Number of required labels of each.
    row_offsets : ndarray of int of shape (m + 1,)
        Where the instances of each bag lie in the arrays below.
    share_offsets, optional_offsets : ndarrays of int of shape (m + 1,)
        Where the (k, n) shares of each bag lie in `share` and `posterior`, and the
        (n, n_optional) parts in `optional`.
    rows : ndarray of int
        Row of each instance in the priors.
    top, sums : ndarrays
        Largest log-prior of each instance, and the sum of all its priors divided by
        the exponential of that.
    share, slack : ndarrays
        Priors as `unbag.union.inclusion` describes them, bag after bag.
    optional : ndarray
        Each optional label's prior, divided by the exponential of `top`.
    posterior, slack_posterior : ndarrays
        The kernels' answer, in the places of `share` and `slack`.
    log_z : ndarray of shape (m, 2)
        Log-likelihood, as a sum of two, relative to the product of ``exp(top) * sums``: the
        chance of the label set given that no forbidden label occurs.
    error_bound : ndarray of shape (m,)
        Of the posterior, and of the likelihood relative to itself.
    served : ndarray of int of shape (m,)
        Kernel that answered, UNDECIDED, INTRACTABLE or IMPOSSIBLE.
    """

    bags: np.ndarray
    n_labels: np.ndarray
    row_offsets: np.ndarray
    share_offsets: np.ndarray
    optional_offsets: np.ndarray
    rows: np.ndarray
    top: np.ndarray
    sums: np.ndarray
    share: np.ndarray
    slack: np.ndarray
    optional: np.ndarray
    posterior: np.ndarray
    slack_posterior: np.ndarray
    log_z: np.ndarray
    error_bound: np.ndarray
    served: np.ndarray


def new_batch(bags: np.ndarray, layout: Layout) -> Batch:
    """Make room for the given bags."""
    n_free = layout.n_free[bags]
    n_labels = layout.n_required[bags]
    n_optional = layout.n_allowed[bags] - n_labels
    offsets = np.zeros((3, len(bags) + 1), np.int64)
    np.cumsum((n_free, n_free * n_labels, n_free * n_optional), axis=1, out=offsets[:, 1:])
    n_rows, n_shares, n_parts = offsets[:, -1]
    return Batch(
        bags=bags,
        n_labels=n_labels,
        row_offsets=offsets[0],
        share_offsets=offsets[1],
        optional_offsets=offsets[2],
        rows=np.empty(n_rows, np.int64),
        top=np.empty(n_rows),
        sums=np.empty(n_rows),
        share=np.empty(n_shares),
        slack=np.empty(n_rows),
        optional=np.empty(n_parts),
        posterior=np.empty(n_shares),
        slack_posterior=np.empty(n_rows),
        log_z=np.zeros((len(bags), 2)),
        error_bound=np.zeros(len(bags)),
        served=np.full(len(bags), UNDECIDED),
    )


@kernel
def part(flat, offsets, m):
    """View the entries of bag m in an array that all bags have in common."""
    return flat[offsets[m] : offsets[m + 1]]


@kernel
def labels_part(flat, batch, m):
    """View the entries of bag m in `share` or `posterior` as (n_labels, n_instances)."""
    n_instances = batch.row_offsets[m + 1] - batch.row_offsets[m]
    return part(flat, batch.share_offsets, m).reshape((batch.n_labels[m], n_instances))


def read_batch(bags: np.ndarray, layout: Layout, log_prior: np.ndarray) -> Batch:
    """Read the priors of the given bags; mark the impossible ones.

    Returns
    -------
    Batch
        Still to be normalised.
    """
    batch = new_batch(bags, layout)
    gather(layout, log_prior, batch)
    # Exponentials in one go: numpy's are vectorised, and several times faster.
    np.exp(batch.share, out=batch.share)
    if len(batch.optional):
        np.exp(batch.optional, out=batch.optional)
    return batch


@kernel
def gather(layout, log_prior, batch):
    """Collect the log-priors of the labels that each bag allows, relative to the largest.

    Impossible bags are marked, and left with zeros.
    """
    for m in range(batch.bags.shape[0]):
        b = batch.bags[m]
        possible = batch.n_labels[m] <= layout.n_free[b]
        place = batch.row_offsets[m]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            if layout.pinned.shape[0] == 0 or layout.pinned[row] < 0:
                batch.rows[place] = row
                place += 1
            elif log_prior[row, layout.pinned[row]] == -math.inf:
                possible = False

        first = layout.column_offsets[b]
        behind = layout.column_offsets[b + 1]
        n_instances = layout.n_free[b]
        some_excluded = False
        optional = batch.optional_offsets[m]
        for i in range(n_instances):
            row = batch.rows[batch.row_offsets[m] + i]
            top = -math.inf
            for j in range(first, behind):
                value = log_prior[row, layout.columns[j]]
                top = value if value > top else top
                some_excluded |= value == -math.inf
            if top == -math.inf:
                possible = False
                top = 0.0
            batch.top[batch.row_offsets[m] + i] = top
            share = batch.share_offsets[m] + i
            for j in range(first, first + batch.n_labels[m]):
                batch.share[share] = difference(log_prior[row, layout.columns[j]], top)
                share += n_instances
            for j in range(first + batch.n_labels[m], behind):
                batch.optional[optional] = difference(log_prior[row, layout.columns[j]], top)
                optional += 1
        if possible and some_excluded:
            rows = part(batch.rows, batch.row_offsets, m)
            possible = is_possible(
                log_prior, rows, layout.columns[first : first + batch.n_labels[m]]
            )
        if not possible:
            batch.served[m] = IMPOSSIBLE


@kernel
def difference(a, b):
    """Subtract; -inf where the exponential of the difference would underflow."""
    return a - b if a - b > -700.0 else -math.inf


@kernel
def normalise(batch):
    """Turn priors relative to the largest into shares, which with the slack sum to one."""
    for m in range(batch.bags.shape[0]):
        n_instances = batch.row_offsets[m + 1] - batch.row_offsets[m]
        n_labels = batch.n_labels[m]
        optional = batch.optional_offsets[m]
        n_optional = (batch.optional_offsets[m + 1] - optional) // max(n_instances, 1)
        for i in range(n_instances):
            # Compensated, so that its rounding does not grow with the number of classes.
            slack = 0.0
            correction = 0.0
            for j in range(optional, optional + n_optional):
                slack, correction = add_exactly(slack, correction, batch.optional[j])
            slack += correction
            optional += n_optional
            total = slack
            share = batch.share_offsets[m] + i
            for k in range(n_labels):
                total += batch.share[share + k * n_instances]
            scale = 1.0 / total
            for k in range(n_labels):
                batch.share[share + k * n_instances] *= scale
            place = batch.row_offsets[m] + i
            batch.slack[place] = slack * scale
            batch.sums[place] = total


@kernel
def write_answers(layout, log_prior, batch, values, log_likelihood, error_bound):
    """Turn the kernels' answers into likelihoods and packed posteriors."""
    for m in range(batch.bags.shape[0]):
        b = batch.bags[m]
        if batch.served[m] == IMPOSSIBLE or batch.served[m] == INTRACTABLE:
            log_likelihood[b] = -math.inf
            error_bound[b] = 0.0 if batch.served[m] == IMPOSSIBLE else math.inf
            for value in range(layout.value_offsets[b], layout.value_offsets[b + 1]):
                values[value] = 0.0
            continue
        start = layout.offsets[b]
        first = layout.column_offsets[b]
        n_allowed = layout.column_offsets[b + 1] - first
        n_labels = batch.n_labels[m]
        n_instances = layout.n_free[b]
        if layout.pinned.shape[0] > 0:
            for row in range(start, layout.offsets[b + 1]):
                pin = layout.pinned[row]
                if pin >= 0:
                    value = layout.value_offsets[b] + (row - start) * n_allowed
                    for j in range(n_allowed):
                        values[value + j] = 1.0 if layout.columns[first + j] == pin else 0.0

        optional = batch.optional_offsets[m]
        for i in range(n_instances):
            place = batch.row_offsets[m] + i
            value = layout.value_offsets[b] + (batch.rows[place] - start) * n_allowed
            answer = batch.share_offsets[m] + i
            for k in range(n_labels):
                values[value + k] = batch.posterior[answer + k * n_instances]
            if n_labels < n_allowed:
                slack = batch.slack[place] * batch.sums[place]
                scale = batch.slack_posterior[place] / max(slack, TINY)
                for j in range(n_labels, n_allowed):
                    values[value + j] = batch.optional[optional] * scale
                    optional += 1
        log_likelihood[b] = bag_log_likelihood(layout, log_prior, batch, m)
        error_bound[b] = final_bound(batch, m, batch.error_bound[m], log_likelihood[b])


@kernel
def bag_log_likelihood(layout, log_prior, batch, m):
    """Compute the log-likelihood of bag m from what its kernel has answered."""
    b = batch.bags[m]
    total, correction = batch.log_z[m, 0], batch.log_z[m, 1]
    if layout.pinned.shape[0] > 0:
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            pin = layout.pinned[row]
            if pin >= 0:
                total, correction = add_exactly(total, correction, log_prior[row, pin])
    product = 1.0
    for place in range(batch.row_offsets[m], batch.row_offsets[m + 1]):
        total, correction = add_exactly(total, correction, batch.top[place])
        product *= batch.sums[place]
        if product > 1e200:
            total, correction = add_exactly(total, correction, math.log(product))
            product = 1.0
    total, correction = add_exactly(total, correction, math.log(product))
    return total + correction


@kernel
def likelihood_rounding(batch, m):
    """Bound the rounding of bag m's log-likelihood outside its kernel.

    The instances' own sums cancel from the posterior, but not from the likelihood.
    """
    n_instances = batch.row_offsets[m + 1] - batch.row_offsets[m]
    return n_instances * (0.5 * batch.n_labels[m] + 5.0) * EPS


@kernel
def final_bound(batch, m, kernels, log_likelihood):
    """Bound the errors of bag m's posterior and likelihood, given its kernel's own bound."""
    own = kernels + likelihood_rounding(batch, m)
    return max(kernels, own / max(1.0, abs(log_likelihood)) + EPS)
