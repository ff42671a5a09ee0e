"""The memory layout of label sets and priors for the kernels.

A `Layout` packs the label sets of many bags: each bag keeps only the columns that it allows,
required ones first, so that a thousand classes do not mean a thousand columns of zeros.

A `Batch` is some bags on their way through the kernels. `read_batch` of `unbag.union.dispatch`
turns priors and label sets into what the kernels need, they answer, `write_answers` turns that
into likelihoods and posteriors. In between, each bag is a `share` and a `slack` of its own, in
arrays that all bags of the batch have in common.

What all kernels need is done here: pinned instances are removed (they need no inference, and their
labels need no other instance), rows are normalised over the labels that the bag allows, and
impossible label sets are detected. After the kernels, each optional label gets its share of the
posterior of all optional labels.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbag._compile import inlined, kernel

from .arithmetic import EPS, TINY, add_exactly
from .assignment import is_possible

# What `Batch.served` says of a bag that no kernel has served: the methods' codes are
# from zero on, and "none" comes behind them.
UNDECIDED = -1
INTRACTABLE = -2
IMPOSSIBLE = 6


class Layout(NamedTuple):
    """Which classes the instances of each bag may and must have.

    Attributes
    ----------
    offsets : ndarray of int64 of shape (n_bags + 1,)
        Bag b has the instances ``offsets[b]:offsets[b + 1]``.
    column_offsets : ndarray of int64 of shape (n_bags + 1,)
        Bag b allows the classes ``columns[column_offsets[b]:column_offsets[b + 1]]``.
    columns : ndarray of int64
        Allowed classes, for each bag the required ones first. A class that a pinned
        instance shows is not required any more. Classes of groups come behind them, those that
        serve the same groups together.
    n_allowed, n_required, n_free : ndarrays of int64 of shape (n_bags,)
        Number of allowed classes, of required ones, and of instances that are not
        pinned.
    value_offsets : ndarray of int64 of shape (n_bags + 1,)
        Where each bag's (n_instances, n_allowed) packed values lie.
    pinned : ndarray of int64 of shape (n_instances,) or (0,)
        Class of the instances whose label is known, -1 for all others; empty when
        none is known.
    """

    n_classes: int
    offsets: np.ndarray
    column_offsets: np.ndarray
    columns: np.ndarray
    n_allowed: np.ndarray
    n_required: np.ndarray
    n_free: np.ndarray
    value_offsets: np.ndarray
    pinned: np.ndarray

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.n_required)

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags."""
        return int(self.offsets[-1])

    def allowed(self, b: int) -> NDArray[np.int64]:
        """Return the columns of the classes that bag `b` allows, required ones first."""
        return self.columns[self.column_offsets[b] : self.column_offsets[b + 1]]

    def required(self, b: int) -> NDArray[np.int64]:
        """Return the columns of the classes that bag `b` requires of its free instances."""
        return self.allowed(b)[: self.n_required[b]]


@kernel
def pack(offsets, y, pinned):
    """Build the arrays of a `Layout` from its label sets."""
    n_bags, n_classes = y.shape
    column_offsets = np.zeros(n_bags + 1, np.int64)
    value_offsets = np.zeros(n_bags + 1, np.int64)
    n_allowed = np.zeros(n_bags, np.int64)
    for b in range(n_bags):
        count = 0
        for c in range(n_classes):
            count += y[b, c] != 0
        n_allowed[b] = count
        n_instances = offsets[b + 1] - offsets[b]
        column_offsets[b + 1] = column_offsets[b] + n_allowed[b]
        value_offsets[b + 1] = value_offsets[b] + n_allowed[b] * n_instances

    columns = np.empty(column_offsets[n_bags] + 1, np.int64)
    n_required = np.empty(n_bags, np.int64)
    n_free = np.empty(n_bags, np.int64)
    kinds = np.empty(n_classes, y.dtype)
    for b in range(n_bags):
        for c in range(n_classes):
            kinds[c] = y[b, c]
        n_free[b] = offsets[b + 1] - offsets[b]
        if pinned.shape[0] > 0:
            for i in range(offsets[b], offsets[b + 1]):
                if pinned[i] >= 0:
                    # Shown by this instance, and so not required of others.
                    kinds[pinned[i]] = -1
                    n_free[b] -= 1
        # Each class is written, and written over by the next unless it counts: label sets are too
        # irregular for the machine to guess a branch.
        position = column_offsets[b]
        for c in range(n_classes):
            columns[position] = c
            position += kinds[c] == 1
        n_required[b] = position - column_offsets[b]
        if n_required[b] < n_allowed[b]:
            for c in range(n_classes):
                columns[position] = c
                position += kinds[c] == -1
    return column_offsets, columns[:-1], n_allowed, n_required, n_free, value_offsets


@kernel
def unpack(layout, bags, values, dense):
    """Write the packed values of some bags into the rows of their instances."""
    for b in bags:
        first = layout.column_offsets[b]
        n_allowed = layout.column_offsets[b + 1] - first
        value = layout.value_offsets[b]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            for j in range(n_allowed):
                dense[row, layout.columns[first + j]] = values[value + j]
            value += n_allowed


@kernel
def subtract_packed(layout, bags, values, by_class):
    """Subtract the packed values of some bags from the rows of their classes."""
    for b in bags:
        first = layout.column_offsets[b]
        n_allowed = layout.column_offsets[b + 1] - first
        value = layout.value_offsets[b]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            for j in range(n_allowed):
                by_class[layout.columns[first + j], row] -= values[value + j]
            value += n_allowed


@kernel
def write_log_priors(layout, bags, logits, log_total, log_prior):
    """Write the log-priors of some bags, instance by instance, from logits class by class."""
    for b in bags:
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            for c in range(logits.shape[0]):
                log_prior[row, c] = logits[c, row] - log_total[row]


@kernel
def expected_log_prior(layout, values, logits, log_total):
    """Weigh the log-priors of each bag, class by class, by packed posteriors, and sum them up.

    Where the posterior is zero nothing is added, even if the logarithm is infinite.
    """
    sums = np.zeros(layout.n_required.shape[0])
    for b in range(layout.n_required.shape[0]):
        first = layout.column_offsets[b]
        n_allowed = layout.column_offsets[b + 1] - first
        value = layout.value_offsets[b]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            for j in range(n_allowed):
                if values[value + j] != 0.0:
                    log_prior = logits[layout.columns[first + j], row] - log_total[row]
                    sums[b] += values[value + j] * log_prior
            value += n_allowed
    return sums


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
    label_offsets : ndarray of int of shape (m + 1,)
        Where the labels of each bag lie in `chained`.
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
    chained : ndarray of bool
        Which required labels `unbag.union.mixed` has chained.
    log_z : ndarray of shape (m, 2)
        Log-likelihood, as a sum of two, relative to the product of ``exp(top) * sums``: the
        chance of the label set given that no forbidden label occurs.
    error_bound : ndarray of shape (m,)
        Of the posterior, and of the likelihood relative to itself.
    budget : ndarray of shape (m,)
        Multiplications after which the kernels that cannot tell beforehand give up.
    excluded : ndarray of bool of shape (m,)
        Whether an allowed class is excluded for an instance.
    served : ndarray of int of shape (m,)
        Kernel that answered, UNDECIDED, INTRACTABLE or IMPOSSIBLE.
    """

    bags: np.ndarray
    n_labels: np.ndarray
    row_offsets: np.ndarray
    share_offsets: np.ndarray
    optional_offsets: np.ndarray
    label_offsets: np.ndarray
    rows: np.ndarray
    top: np.ndarray
    sums: np.ndarray
    share: np.ndarray
    slack: np.ndarray
    optional: np.ndarray
    posterior: np.ndarray
    slack_posterior: np.ndarray
    chained: np.ndarray
    log_z: np.ndarray
    error_bound: np.ndarray
    budget: np.ndarray
    excluded: np.ndarray
    served: np.ndarray


@inlined
def part(flat, offsets, m):
    """View the entries of bag m in an array that all bags have in common."""
    return flat[offsets[m] : offsets[m + 1]]


@inlined
def labels_part(flat, batch, m):
    """View the entries of bag m in `share` or `posterior` as (n_labels, n_instances)."""
    n_instances = batch.row_offsets[m + 1] - batch.row_offsets[m]
    return part(flat, batch.share_offsets, m).reshape((batch.n_labels[m], n_instances))


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
        batch.excluded[m] = some_excluded
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


@inlined
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
        error_bound[b] = final_bound(n_instances, n_labels, batch.error_bound[m], log_likelihood[b])


@inlined
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
def likelihood_rounding(n_instances, n_labels):
    """Bound the rounding of a bag's log-likelihood outside its kernel.

    The instances' own sums cancel from the posterior, but not from the likelihood.
    """
    return n_instances * (0.5 * n_labels + 5.0) * EPS


@kernel
def final_bound(n_instances, n_labels, kernels, log_likelihood):
    """Bound the errors of a bag's posterior and likelihood, given its kernel's own bound."""
    own = kernels + likelihood_rounding(n_instances, n_labels)
    return max(kernels, own / max(1.0, abs(log_likelihood)) + EPS)
