"""Inclusion-exclusion over all subsets of any number of required labels.

Symbols as in `unbag.union.inclusion`. `unbag.union.few` computes the same sum for few labels, and
its answers are called "dense" as well.
"""

from unbag._compile import any_order, inlined, kernel

from .arithmetic import TINY
from .inclusion import bound, normalise_rows


@inlined
def dense(share, slack, posterior, slack_posterior, scratch):
    """Infer by summing over all subsets of the required labels.

    The labels are split into low and high ones. So s_i(S) is the sum of an entry of each of two
    short lists, and is never written down for all S. Sums over the S that contain a label come from
    the sums over all S with the same low part, or with the same high part. Instances come in pairs,
    a and b, which share their divisions. Time ``n_instances * 2**n_labels``, in loops that
    vectorise.
    """
    n_labels, n_instances = share.shape
    n_low, n_high = low_labels(n_labels), n_labels - low_labels(n_labels)
    low_size, high_size = 1 << n_low, 1 << n_high
    signed = scratch[: low_size * high_size]
    lists = scratch[low_size * high_size :]
    low_a, lists = lists[:low_size], lists[low_size:]
    low_b, lists = lists[:low_size], lists[low_size:]
    column_a, lists = lists[:low_size], lists[low_size:]
    column_b, lists = lists[:low_size], lists[low_size:]
    high_a, lists = lists[:high_size], lists[high_size:]
    high_b, lists = lists[:high_size], lists[high_size:]
    row_a, row_b = lists[:high_size], lists[high_size : 2 * high_size]

    signed[0] = 1.0 if n_labels % 2 == 0 else -1.0
    for k in range(n_labels):
        half = 1 << k
        for s in range(half):
            signed[half + s] = -signed[s]
    for i in range(0, n_instances, 2):
        subset_sums(share, slack, i, n_low, low_a, high_a)
        subset_sums(share, slack, i + 1, n_low, low_b, high_b)
        for h in range(high_size):
            weights = signed[h * low_size : (h + 1) * low_size]
            multiply(weights, low_a, high_a[h], low_b, high_b[h])
    # The rows are normalised: the full set needs no rounding.
    signed[low_size * high_size - 1] = 1.0
    z = 0.0
    others = -1.0
    for h in range(high_size):
        total, absolute = sums_of(signed[h * low_size : (h + 1) * low_size])
        z += total
        others += absolute

    for i in range(0, n_instances, 2):
        subset_sums(share, slack, i, n_low, low_a, high_a)
        subset_sums(share, slack, i + 1, n_low, low_b, high_b)
        for s in range(low_size):
            column_a[s] = 0.0
            column_b[s] = 0.0
        for h in range(high_size):
            weights = signed[h * low_size : (h + 1) * low_size]
            row_a[h], row_b[h] = divide(
                weights, low_a, high_a[h], low_b, high_b[h], column_a, column_b
            )
        fold_labels(column_a, row_a, share, slack, i, posterior, slack_posterior)
        if i + 1 < n_instances:
            fold_labels(column_b, row_b, share, slack, i + 1, posterior, slack_posterior)
    normalise_rows(posterior, slack_posterior, share, slack)
    n_additions = low_size + high_size + 2 * n_labels
    return z, bound(n_instances, n_labels, n_additions, others, 0.0, z)


@kernel
def low_labels(n_labels):
    """Count the low labels of `dense`: half of them, but all if they are up to eight."""
    return min(n_labels, max(8, (n_labels + 1) // 2))


@kernel
def scratch_size(n_labels):
    """Count the doubles that `dense` needs as scratch memory."""
    n_low = low_labels(n_labels)
    return (1 << n_labels) + (4 << n_low) + (4 << (n_labels - n_low))


@kernel
def subset_sums(share, slack, i, n_low, low, high):
    """Sum the shares of instance i over every subset of the low, and of the high labels.

    Subsets are indexed by their bits. The sums of high labels include the slack. Behind the last
    instance, all sums are one.
    """
    exists = i < share.shape[1]
    low[0] = 0.0
    high[0] = slack[i] if exists else 1.0
    for k in range(share.shape[0]):
        sums = low if k < n_low else high
        half = 1 << (k if k < n_low else k - n_low)
        with_label = sums[half:]
        added = share[k, i] if exists else 0.0
        for s in range(half):
            with_label[s] = sums[s] + added


@kernel
def multiply(weights, low_a, high_a, low_b, high_b):
    """Multiply the weights of all subsets with the same high part by the sums of two instances."""
    for s in range(weights.shape[0]):
        weights[s] *= (low_a[s] + high_a) * (low_b[s] + high_b)


@any_order
def divide(weights, low_a, high_a, low_b, high_b, column_a, column_b):
    """Divide the same weights by the sums of each of the two instances, with one division for both.

    Adds the quotients to the sums of their low parts, and returns their totals. Where the sum of an
    instance is zero, the weight is zero, so that zero is added.
    """
    total_a = 0.0
    total_b = 0.0
    for s in range(weights.shape[0]):
        sum_a = low_a[s] + high_a
        sum_b = low_b[s] + high_b
        quotient = weights[s] / (sum_a * sum_b + TINY)
        column_a[s] += quotient * sum_b
        column_b[s] += quotient * sum_a
        total_a += quotient * sum_b
        total_b += quotient * sum_a
    return total_a, total_b


@any_order
def sums_of(values):
    """Sum `values`, and their absolute values."""
    total = 0.0
    absolute = 0.0
    for j in range(values.shape[0]):
        total += values[j]
        absolute += abs(values[j])
    return total, absolute


@any_order
def fold_labels(column, row, share, slack, i, joint, slack_joint):
    """Turn sums for every low and every high part into sums over the subsets with a label.

    The cube of subsets is folded, label by label, as in `unbag.union.few.fold_terms`.
    """
    n_high = 0
    while 1 << n_high < row.shape[0]:
        n_high += 1
    n_low = share.shape[0] - n_high
    for k in range(share.shape[0] - 1, -1, -1):
        sums = column if k < n_low else row
        half = 1 << (k if k < n_low else k - n_low)
        with_label = sums[half:]
        total = 0.0
        for s in range(half):
            total += with_label[s]
            sums[s] += with_label[s]
        joint[k, i] = share[k, i] * total
    slack_joint[i] = slack[i] * column[0]
