"""Label sets, priors and answers in memory.

A `Layout` packs the label sets of many bags: each bag has only the classes that it allows, required
ones first. With a thousand classes, a bag of three labels has three columns, not a thousand.

A `Batch` has the priors of bags of many labels, as their kernels need them: each bag is a `share`
and a `slack` of its own, in arrays that all bags of the batch share. `read_batch` and `normalise`
remove pinned instances (they need no inference, and their labels need no other instance), detect
impossible label sets, and normalise rows over the labels that the bag allows. `write_answers` turns
the answers of kernels into likelihoods and posteriors, and divides the posterior of all
optional labels together among them.
"""

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unbag._compile import inlined, kernel

from .arithmetic import EPS, TINY, add_exactly
from .labelling import is_possible

Method: TypeAlias = Literal["auto", "adaptive", "mixed", "dense", "chain"]
METHODS: tuple[Method, ...] = ("adaptive", "mixed", "dense", "chain")
# Codes in `served`: the method that answered a bag, in the order of `METHODS`, or why none did.
ADAPTIVE, MIXED, DENSE, CHAIN, IMPOSSIBLE = range(len(METHODS) + 1)
UNDECIDED, INTRACTABLE = -1, -2


class Layout(NamedTuple):
    """The packed label sets of bags, all arrays of int64."""

    n_classes: int
    #: Bag b has the instances ``offsets[b]:offsets[b + 1]``.
    offsets: np.ndarray
    #: Bag b allows the classes ``columns[column_offsets[b]:column_offsets[b + 1]]``.
    column_offsets: np.ndarray
    #: Allowed classes of each bag, the required ones first. A class that a pinned instance has is
    #: not required any more. The classes of a bag that serve the same groups lie together.
    columns: np.ndarray
    #: For each bag: numbers of allowed classes, of required ones, and of instances without a pin.
    n_allowed: np.ndarray
    n_required: np.ndarray
    n_free: np.ndarray
    #: Class of the instances whose label is known, -1 for all others; empty if no label is known.
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


class Answers(NamedTuple):
    """The answers for all bags of a layout."""

    log_likelihood: np.ndarray
    #: Shape (n_instances, n_classes), with zeros for classes that a bag does not allow.
    posterior: np.ndarray
    error_bound: np.ndarray
    #: Code of the kernel that answered each bag, or IMPOSSIBLE or INTRACTABLE.
    served: np.ndarray

    @classmethod
    def into(cls, posterior: np.ndarray, n_bags: int) -> "Answers":
        """Allocate answers whose posteriors are written into an array of zeros."""
        return cls(np.empty(n_bags), posterior, np.empty(n_bags), np.empty(n_bags, np.int64))


@kernel
def pack(offsets, y, pinned):
    """Build the arrays of a `Layout` from its label sets."""
    n_bags, n_classes = y.shape
    column_offsets = np.zeros(n_bags + 1, np.int64)
    n_allowed = np.zeros(n_bags, np.int64)
    for b in range(n_bags):
        count = 0
        for c in range(n_classes):
            count += y[b, c] != 0
        n_allowed[b] = count
        column_offsets[b + 1] = column_offsets[b] + n_allowed[b]

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
                    # This instance has the class, so that others need not have it.
                    kinds[pinned[i]] = -1
                    n_free[b] -= 1
        # Each class is written, and overwritten by the next unless it counts: branches would be
        # mispredicted, as label sets are irregular.
        position = column_offsets[b]
        for c in range(n_classes):
            columns[position] = c
            position += kinds[c] == 1
        n_required[b] = position - column_offsets[b]
        if n_required[b] < n_allowed[b]:
            for c in range(n_classes):
                columns[position] = c
                position += kinds[c] == -1
    return column_offsets, columns[:-1], n_allowed, n_required, n_free


@kernel
def subtract_allowed(layout, bags, posterior, by_class):
    """Subtract the posteriors of the classes that some bags allow, class by class."""
    for b in bags:
        for j in range(layout.column_offsets[b], layout.column_offsets[b + 1]):
            c = layout.columns[j]
            for row in range(layout.offsets[b], layout.offsets[b + 1]):
                by_class[c, row] -= posterior[row, c]


@kernel
def write_log_priors(layout, bags, logits, log_total, log_prior):
    """Write the log-priors of the classes that bags allow, from logits class by class."""
    for b in bags:
        for j in range(layout.column_offsets[b], layout.column_offsets[b + 1]):
            c = layout.columns[j]
            for row in range(layout.offsets[b], layout.offsets[b + 1]):
                log_prior[row, c] = logits[c, row] - log_total[row]


class Batch(NamedTuple):
    """Bags of k required labels and n free instances each, and the answers of the kernels."""

    #: Positions of the bags, and their numbers of required labels.
    bags: np.ndarray
    n_labels: np.ndarray
    #: Where the instances of each bag start; its (k, n) numbers in `share` and `posterior`; and its
    #: (n, n_optional) numbers in `optional`.
    row_offsets: np.ndarray
    share_offsets: np.ndarray
    optional_offsets: np.ndarray
    #: For each instance: its row in the priors, its largest log-prior, and the sum of its priors
    #: divided by ``exp(top)``.
    rows: np.ndarray
    top: np.ndarray
    sums: np.ndarray
    #: Priors as `unbag.union.inclusion` describes them, bag after bag.
    share: np.ndarray
    slack: np.ndarray
    #: Prior of each optional label, divided by ``exp(top)``.
    optional: np.ndarray
    #: The answers of the kernels, in the places of `share` and `slack`.
    posterior: np.ndarray
    slack_posterior: np.ndarray
    #: Log-likelihood as a sum of two, relative to the product of ``exp(top) * sums``: the chance of
    #: the label set given that no forbidden label occurs.
    log_z: np.ndarray
    #: Bound of the errors of the posterior, and of the likelihood relative to itself.
    error_bound: np.ndarray
    #: Multiplications after which kernels give up whose work is not known beforehand.
    budget: np.ndarray
    #: Code of the kernel, UNDECIDED, INTRACTABLE or IMPOSSIBLE.
    served: np.ndarray


def read_batch(bags: np.ndarray, layout: Layout, log_prior: np.ndarray) -> Batch:
    """Read the priors of the given bags, and mark the impossible ones."""
    batch = new_batch(bags, layout)
    gather(layout, log_prior, batch)
    # Exponentials in one go: numpy's are vectorised, and several times faster.
    np.exp(batch.share, out=batch.share)
    if len(batch.optional):
        np.exp(batch.optional, out=batch.optional)
    return batch


def new_batch(bags: np.ndarray, layout: Layout) -> Batch:
    """Allocate a batch for the given bags."""
    n_free = layout.n_free[bags]
    n_labels = layout.n_required[bags]
    n_optional = layout.n_allowed[bags] - n_labels
    offsets = np.zeros((3, len(bags) + 1), np.int64)
    counts = n_free, n_free * n_labels, n_free * n_optional
    np.add.accumulate(counts, axis=1, out=offsets[:, 1:])
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
        budget=np.empty(len(bags)),
        served=np.full(len(bags), UNDECIDED),
    )


@inlined
def part(flat, offsets, m):
    """View the entries of bag m in an array that all bags share."""
    return flat[offsets[m] : offsets[m + 1]]


@inlined
def labels_part(flat, batch, m):
    """View the entries of bag m in `share` or `posterior` as (n_labels, n_instances)."""
    n_instances = batch.row_offsets[m + 1] - batch.row_offsets[m]
    return part(flat, batch.share_offsets, m).reshape((batch.n_labels[m], n_instances))


@kernel
def gather(layout, log_prior, batch):
    """Write the log-priors of the labels that each bag allows, relative to the largest.

    Marks impossible bags.
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
    """Return ``a - b``, or -inf if its exponential would underflow."""
    return a - b if a - b > -700.0 else -math.inf


@inlined
def normalise(batch):
    """Turn priors relative to the largest into shares, which sum to one together with the slack."""
    for m in range(batch.bags.shape[0]):
        n_instances = batch.row_offsets[m + 1] - batch.row_offsets[m]
        n_labels = batch.n_labels[m]
        optional = batch.optional_offsets[m]
        n_optional = (batch.optional_offsets[m + 1] - optional) // max(n_instances, 1)
        for i in range(n_instances):
            # A compensated sum, whose rounding does not grow with the number of classes.
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
def write_answers(layout, log_prior, batch, posterior, log_likelihood, error_bound):
    """Turn the answers of the kernels into likelihoods and posteriors of the allowed classes."""
    for m in range(batch.bags.shape[0]):
        b = batch.bags[m]
        start, stop = layout.offsets[b], layout.offsets[b + 1]
        columns = layout.columns[layout.column_offsets[b] : layout.column_offsets[b + 1]]
        if batch.served[m] == IMPOSSIBLE or batch.served[m] == INTRACTABLE:
            log_likelihood[b] = -math.inf
            error_bound[b] = 0.0 if batch.served[m] == IMPOSSIBLE else math.inf
            for row in range(start, stop):
                for c in columns:
                    posterior[row, c] = 0.0
            continue
        n_labels = batch.n_labels[m]
        n_instances = layout.n_free[b]
        if layout.pinned.shape[0] > 0:
            for row in range(start, stop):
                pin = layout.pinned[row]
                if pin >= 0:
                    for c in columns:
                        posterior[row, c] = 1.0 if c == pin else 0.0

        optional = batch.optional_offsets[m]
        for i in range(n_instances):
            place = batch.row_offsets[m] + i
            row = batch.rows[place]
            answer = batch.share_offsets[m] + i
            for k in range(n_labels):
                posterior[row, columns[k]] = batch.posterior[answer + k * n_instances]
            if n_labels < columns.shape[0]:
                slack = batch.slack[place] * batch.sums[place]
                scale = batch.slack_posterior[place] / max(slack, TINY)
                for j in range(n_labels, columns.shape[0]):
                    posterior[row, columns[j]] = batch.optional[optional] * scale
                    optional += 1
        log_likelihood[b] = bag_log_likelihood(layout, log_prior, batch, m)
        error_bound[b] = final_bound(n_instances, n_labels, batch.error_bound[m], log_likelihood[b])


@inlined
def bag_log_likelihood(layout, log_prior, batch, m):
    """Compute the log-likelihood of bag m from the answer of its kernel."""
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
    """Bound the rounding of a log-likelihood outside the kernel of the bag.

    The normalisers of the rows cancel in the posterior, but not in the likelihood.
    """
    return n_instances * (0.5 * n_labels + 5.0) * EPS


@kernel
def final_bound(n_instances, n_labels, kernels, log_likelihood):
    """Bound the errors of posterior and likelihood of a bag, given the bound of its kernel."""
    own = kernels + likelihood_rounding(n_instances, n_labels)
    return max(kernels, own / max(1.0, abs(log_likelihood)) + EPS)
