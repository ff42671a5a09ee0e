"""Inclusion-exclusion over every subset of the required labels.

Symbols as in `unbag.union.inclusion`. For any number of labels; `unbag.union.few` takes the same
sum over few of them.
"""

from unbag._compile import any_order, inlined, kernel

from .arithmetic import TINY
from .inclusion import bound, normalise_rows


@inlined
def dense(share, slack, posterior, slack_posterior, room):
    """Infer by summing over every subset of the required labels.

    The labels are split into low and high ones: s_i(S) is then the sum of an entry
    of each of two short lists, and never written down for all S. Sums over the S
    that contain a label come from the sums over all S with the same low part, or with
    the same high part. Instances go in pairs, a and b, and share their divisions.

    Parameters
    ----------
    share : ndarray of shape (n_labels, n_instances)
    slack : ndarray of shape (n_instances,)
        Priors, as in the module's table.
    posterior, slack_posterior : ndarrays like `share` and `slack`
        Filled with the label probabilities given the label set.
    room : ndarray of at least `dense_room(n_labels)` floats
        To work in: small bags would take longer to allocate it than to use it.

    Returns
    -------
    z : float
        Chance that every required label occurs, given that no other does.
    error_bound : float
        Largest possible error of a posterior, and of z relative to z.

    Notes
    -----
    Time ``n_instances * 2**n_labels``: half a division, a few multiplications and
    additions each, in loops that vectorise.
    """
    n_labels, n_instances = share.shape
    n_low, n_high = low_labels(n_labels), n_labels - low_labels(n_labels)
    low_size, high_size = 1 << n_low, 1 << n_high
    signed = room[: low_size * high_size]
    lists = room[low_size * high_size :]
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
    """Return how many of the labels `dense` counts as low: half, but up to eight are all low."""
    return min(n_labels, max(8, (n_labels + 1) // 2))


@kernel
def dense_room(n_labels):
    """Return how much room `dense` needs, in floats."""
    n_low = low_labels(n_labels)
    return (1 << n_labels) + (4 << n_low) + (4 << (n_labels - n_low))


@kernel
def subset_sums(share, slack, i, n_low, low, high):
    """List the shares of instance i for every subset of the low, and of the high labels.

    Subsets are indexed by their bits; the slack counts with the high labels. One
    addition for each subset. Behind the last instance, all sums are one.
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
    """Multiply the weights of all subsets with one high part by two instances' sums."""
    for s in range(weights.shape[0]):
        weights[s] *= (low_a[s] + high_a) * (low_b[s] + high_b)


@any_order
def divide(weights, low_a, high_a, low_b, high_b, column_a, column_b):
    """Divide the same by each of the two instances' sums: one division serves both.

    Adds the quotients to the sums of their low parts, and returns them summed up. Where
    an instance's sum is zero the weight is too, and so is what is added.
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

    By folding the upper half of the cube of subsets onto the lower, label by label; what
    is left at the end is the sum over all subsets.
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
