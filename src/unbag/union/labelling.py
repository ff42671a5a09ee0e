"""The most likely labelling of a whole bag.

The most probable classes of single instances need not cover the label set of the bag: two undecided
instances may both get the same label. The labelling that is found here always covers it.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._compile import inlined, kernel

from .assignment import cheapest_cover, is_possible
from .layout import part
from .noise import noisy_problem
from .problem import GroupsLike, UnionProblem, checked_log_prior
from .rates import Rates, checked_rates


def most_likely_labels(
    log_prior: ArrayLike,
    offsets: ArrayLike,
    y: ArrayLike,
    *,
    instance_labels: ArrayLike | None = None,
    missed: ArrayLike | None = None,
    false: ArrayLike | None = None,
    groups: GroupsLike | None = None,
) -> NDArray[np.int64]:
    """Find the jointly most likely labelling of each bag that covers its label set.

    If label sets may be wrong, the labelling that is most likely together with which instances were
    missed and which classes were added by mistake.

    Parameters
    ----------
    log_prior : array-like of shape (n_instances, n_classes)
    offsets : array-like of int of shape (n_bags + 1,)
    y : array-like of shape (n_bags, n_classes)
    instance_labels : array-like of int of shape (n_instances,), optional
    missed, false : float or array-like, optional
    groups : list of lists of lists of int, or Groups, optional
        As in `infer`.

    Returns
    -------
    ndarray of int of shape (n_instances,)
        The class (column) of each instance; -1 for all instances of an impossible bag.

    Notes
    -----
    Every instance gets its own best class. Then as many as necessary are assigned to required
    classes at the least loss, which is a linear assignment problem. Time per bag ``n_required**2 *
    n_instances``: polynomial for any number of labels.

    Examples
    --------
    Both instances look like class 0, but class 1 must occur, and costs less for instance 1.

    >>> import numpy as np
    >>> from unbag.union import most_likely_labels
    >>> most_likely_labels(np.log([[0.9, 0.1], [0.6, 0.4]]), [0, 2], [[1, 1]])
    array([0, 1])
    """
    problem = UnionProblem(offsets, y, instance_labels, groups)
    log_prior = checked_log_prior(log_prior, problem.offsets, problem.layout.n_classes)
    rates = checked_rates(missed, false, problem.y)
    if rates is not None:
        return most_likely_explanation(problem, log_prior, rates)
    return label_problem(problem, log_prior)


def label_problem(problem: UnionProblem, log_prior: np.ndarray) -> NDArray[np.int64]:
    """Find the most likely labelling of every bag of a problem whose label sets are right."""
    labels = np.empty(problem.n_instances, np.int64)
    label_bags(problem.layout, log_prior, labels)
    if problem.grouped is not None:
        problem.grouped.most_likely(log_prior, labels, label_bags)
    return labels


def most_likely_explanation(
    problem: UnionProblem, log_prior: np.ndarray, rates: Rates
) -> NDArray[np.int64]:
    """Find the labelling that is most likely together with the errors in the label set.

    A missed instance gets the class that is most likely to be missed there.
    """
    noisy = noisy_problem(problem, rates)
    n_bags, n_classes = problem.y.shape
    bag = np.repeat(np.arange(n_bags), np.diff(problem.offsets))
    is_known = (noisy.shown != -1)[bag]
    with np.errstate(divide="ignore"):
        log_missed, log_noticed, log_false, log_true = (
            np.broadcast_to(each, problem.y.shape)
            for rate in rates
            for each in (np.log(rate), np.log1p(-rate))
        )
    noticed = log_prior + np.where(is_known, log_noticed[bag], 0.0)
    unnoticed = np.where(is_known, log_prior + log_missed[bag], -np.inf)
    if problem.instance_labels is not None:
        pinned = problem.instance_labels[:, None]
        is_other = (pinned >= 0) & (np.arange(n_classes) != pinned)
        noticed[is_other] = unnoticed[is_other] = -np.inf
    wide = np.full((noisy.augmented.n_instances, n_classes + 1), -np.inf)
    wide[noisy.rows, :-1] = noticed
    wide[noisy.rows, -1] = unnoticed.max(axis=1, initial=-np.inf)
    noisy.write_phantoms(wide, log_false, log_true)
    found = label_problem(noisy.augmented, wide)[noisy.rows]
    shows_nothing = found == n_classes
    found[shows_nothing] = unnoticed[shows_nothing].argmax(axis=1)
    return found


@kernel
def label_bags(layout, log_prior, labels):
    """Fill `labels` with the most likely labelling of every bag."""
    for b in range(layout.n_required.shape[0]):
        start = layout.offsets[b]
        stop = layout.offsets[b + 1]
        columns = part(layout.columns, layout.column_offsets, b)
        required = columns[: layout.n_required[b]]
        rows = np.empty(layout.n_free[b], np.int64)
        n_free = 0
        possible = True
        for row in range(start, stop):
            labels[row] = layout.pinned[row] if layout.pinned.shape[0] > 0 else -1
            if labels[row] < 0:
                rows[n_free] = row
                n_free += 1
                for j in range(columns.shape[0]):
                    best = -math.inf if labels[row] < 0 else log_prior[row, labels[row]]
                    if log_prior[row, columns[j]] > best:
                        labels[row] = columns[j]
            possible = possible and labels[row] >= 0 and log_prior[row, labels[row]] > -math.inf
        if possible and not cover(log_prior, rows, required, labels):
            possible = False
        if not possible:
            for row in range(start, stop):
                labels[row] = -1


@inlined
def cover(log_prior, rows, required, labels):
    """Assign instances to the required labels at the least loss; False if that is impossible."""
    if not is_possible(log_prior, rows, required):
        return False
    n_labels = required.shape[0]
    loss = np.empty((n_labels, rows.shape[0]))
    for k in range(n_labels):
        for i in range(rows.shape[0]):
            loss[k, i] = log_prior[rows[i], labels[rows[i]]] - log_prior[rows[i], required[k]]
    holder = np.empty(n_labels, np.int64)
    cheapest_cover(loss, holder, np.empty(n_labels), np.empty(rows.shape[0]))
    for k in range(n_labels):
        labels[rows[holder[k]]] = required[k]
    return True
