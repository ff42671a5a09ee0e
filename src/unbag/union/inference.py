"""Inference in one call: posteriors, and the most likely labelling."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .dispatch import Method
from .labelling import label_bags
from .noise import NoisyProblem
from .policy import OnImpossible, OnIntractable, check_tractable
from .problem import GroupsLike, Inference, UnionProblem, checked_log_prior
from .rates import Rates, checked_rates


def infer(
    log_prior: ArrayLike,
    offsets: ArrayLike,
    y: ArrayLike,
    *,
    method: Method = "auto",
    tolerance: float = 1e-9,
    instance_labels: ArrayLike | None = None,
    on_impossible: OnImpossible = "keep",
    on_intractable: OnIntractable = "raise",
    missed_rate: ArrayLike | None = None,
    false_rate: ArrayLike | None = None,
    groups: GroupsLike | None = None,
    n_jobs: int | None = None,
) -> Inference:
    """Condition the instance labels of bags on the label sets of the bags.

    Each instance has exactly one class. By the label set of a bag, at least one instance has each
    required class, none has a forbidden class, and any number may have an optional class. The
    posterior is the probability of each class given the label set; the likelihood is the
    probability of the label set.

    Parameters
    ----------
    log_prior : array-like of shape (n_instances, n_classes)
        Log-probability of every class for every instance, from the instance
        classifier alone. Rows need not be normalised: a constant added to a row
        changes only the likelihood. ``-inf`` excludes a class.
    offsets : array-like of int of shape (n_bags + 1,)
        Bag b has the instances ``offsets[b]:offsets[b + 1]``.
    y : array-like of shape (n_bags, n_classes)
        1 if the class is required, 0 if it is forbidden, -1 if it is optional (not known, or
        background).
    method : {"auto", "adaptive", "mixed", "dense", "chain"}
        "auto" uses, for each bag, the cheapest kernel that certifies its result. The others never
        fall back: a result that they cannot certify has an infinite error bound.
    tolerance : float
        Error bound that "auto" must reach, as far as double precision allows: for a bag of about
        100,000 instances with a very unlikely label set, it may be a few 1e-9. See `error_bound`.
    instance_labels : array-like of int of shape (n_instances,), optional
        The class (column) of the instances whose label is known, -1 for the others.
    on_impossible : {"keep", "relax", "raise"}
        What to do with a bag whose label set no labelling can produce: return a likelihood of zero
        and no posterior; treat its required classes as optional, unless it is still impossible then
        (it has instances but allows no class); or raise an error that names all such bags.
    on_intractable : {"raise", "relax"}
        What to do with a bag if exact inference gives up after about a second of work: raise an
        error that names all such bags, or treat all required classes but 16 as optional, those that
        are most certain to occur.
    missed_rate : float or array-like of shape (n_classes,), optional
        The probability that an instance of each class is missed: the label set is the union of the
        classes of the other instances. The posterior is then over all classes, since an instance of
        a forbidden class may be present but missed. The rate has no effect on optional classes. By
        default 0; otherwise at least 1e-12.
    false_rate : float or array-like of shape (n_classes,), optional
        The probability that each class is added to the label set by mistake, whether or not an
        instance has it. By default 0; otherwise at least 1e-12. Near 1, a required class is almost
        optional.
    groups : list of lists of lists of int, or Groups, optional
        For each bag, groups of classes, each as a list of columns: at least one instance has one of
        the classes. For example, ``[[[1, 2]], []]`` gives the first of two bags a group. The
        classes of a group are allowed even if `y` forbids them, and required only if it requires
        them. `unbag.groups.Groups` is the packed form, which is checked once.
    n_jobs : int, optional
        Number of threads; -1 for one per core. By default one per core, but only if there is enough
        work. The result does not depend on it.

    Returns
    -------
    Inference

    Raises
    ------
    ValueError
        If an argument is malformed; names the bag or the row.
    IntractableBagError
        If exact inference would take too long for some bags; lists them in `bags`.
    ImpossibleBagError
        If `on_impossible` is "raise" and there are such bags; lists them in `bags`.

    Notes
    -----
    A bag takes time ``n_instances * 2**n_required`` at most, unless the certificate
    fails, and often far less: a bag of 1000 instances in which each of 40 labels is
    almost certain to occur takes a few dozen sets of labels. Labels that are unlikely, or
    that an unlikely one leaves without an instance, cost a factor of two each.

    A required group takes as many sets as one required class if no class is in two groups. If
    groups overlap, and neither contains the other, "chain" answers the bag whatever the `method`,
    in time ``n_instances * n_columns * 2**n_required``, for up to 16 required classes and groups;
    ``n_columns`` is the number of sets of groups that a class can serve.

    Examples
    --------
    Instance 1 is undecided. Instance 0 is probably class 0, so class 1, which must
    occur, needs instance 1.

    >>> import numpy as np
    >>> from unbag.union import infer
    >>> result = infer(np.log([[0.9, 0.1], [0.5, 0.5]]), [0, 2], [[1, 1]])
    >>> result.posterior.round(2)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    >>> np.exp(result.log_likelihood)
    array([0.5])

    If class 1 is only optional, instance 1 stays more or less undecided.

    >>> infer(np.log([[0.9, 0.1], [0.5, 0.5]]), [0, 2], [[1, -1]]).posterior.round(2)
    array([[0.95, 0.05],
           [0.53, 0.47]])

    Class 1 is not in the label set, but one instance in five is missed.

    >>> log_prior = np.log([[0.9, 0.1], [0.1, 0.9]])
    >>> infer(log_prior, [0, 2], [[1, 0]], missed_rate=0.2).posterior.round(2)
    array([[0.99, 0.01],
           [0.4 , 0.6 ]])

    The tag says "class 1 or class 2": at least one instance has one of them.

    >>> prior = np.log([[0.9, 0.05, 0.05], [0.5, 0.3, 0.2]])
    >>> infer(prior, [0, 2], [[-1, 0, 0]], groups=[[[1, 2]]]).posterior.round(2)
    array([[0.82, 0.09, 0.09],
           [0.09, 0.55, 0.36]])
    """
    return UnionProblem(offsets, y, instance_labels, groups).infer(
        log_prior,
        method=method,
        tolerance=tolerance,
        on_impossible=on_impossible,
        on_intractable=on_intractable,
        missed_rate=missed_rate,
        false_rate=false_rate,
        n_jobs=n_jobs,
    )


def most_likely_labels(
    log_prior: ArrayLike,
    offsets: ArrayLike,
    y: ArrayLike,
    *,
    instance_labels: ArrayLike | None = None,
    missed_rate: ArrayLike | None = None,
    false_rate: ArrayLike | None = None,
    groups: GroupsLike | None = None,
) -> NDArray[np.int64]:
    """Find the jointly most likely labelling of each bag that covers its label set.

    If label sets may be wrong, the labelling is found that is most likely together with its
    explanation: the instances that were missed and the classes that were added by mistake.

    Parameters
    ----------
    log_prior : array-like of shape (n_instances, n_classes)
    offsets : array-like of int of shape (n_bags + 1,)
    y : array-like of shape (n_bags, n_classes)
    instance_labels : array-like of int of shape (n_instances,), optional
    missed_rate, false_rate : float or array-like, optional
    groups : list of lists of lists of int, or Groups, optional
        As in `infer`.

    Returns
    -------
    ndarray of int of shape (n_instances,)
        The class (column) of each instance; -1 for all instances of an impossible bag.

    Notes
    -----
    Every instance gets its own best class. Then as many as necessary are assigned to required
    classes at the least loss, which is a linear assignment problem. A bag takes time
    ``n_required**2 * n_instances``: polynomial for any number of labels.

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
    rates = checked_rates(missed_rate, false_rate, problem.y)
    if rates is not None:
        return most_likely_explanation(problem, log_prior, rates)
    return label_problem(problem, log_prior)


def label_problem(problem: UnionProblem, log_prior: np.ndarray) -> NDArray[np.int64]:
    """Find the most likely labelling of every bag of a problem whose label sets are right."""
    labels = np.empty(problem.n_instances, np.int64)
    label_bags(problem.layout, log_prior, labels)
    if problem.grouped is not None:
        check_tractable(problem, problem.grouped.most_likely(log_prior, labels))
    return labels


def most_likely_explanation(
    problem: UnionProblem, log_prior: np.ndarray, rates: Rates
) -> NDArray[np.int64]:
    """Find the labelling that is most likely together with the errors in the label sets.

    A missed instance gets the class with the largest probability of being there and missed.
    """
    noisy = NoisyProblem(problem, rates)
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
