"""The waist of the package: everything above asks `infer`, everything below serves it."""

from dataclasses import dataclass

import numpy as np

from .batch import write_answers
from .dispatch import METHODS, estimated_costs, solve
from .problem import add_packed, checked_log_prior, union_problem
from .threads import WORTHWHILE, batches, run_threads, thread_count

NAMES = np.array([*METHODS, "none"])


@dataclass(frozen=True, eq=False)
class Inference:
    """What the label sets of bags say about their instances.

    Attributes
    ----------
    log_likelihood : ndarray of shape (n_bags,)
        Log-probability of each bag's label set; ``-inf`` when it is impossible.
    posterior : ndarray of shape (n_instances, n_classes)
        Class probabilities of each instance, given the label set of its bag; zeros
        in an impossible bag. Also the gradient of the summed log-likelihood with
        respect to the log-priors.
    error_bound : ndarray of shape (n_bags,)
        Largest possible error of the bag's posteriors, and of its log-likelihood
        relative to ``max(1, abs(log_likelihood))``. Infinite when the method asked
        for could not certify its answer: then do not use it.
    method : ndarray of str of shape (n_bags,)
        The kernel that served each bag; "none" for an impossible one.
    """

    log_likelihood: np.ndarray
    posterior: np.ndarray
    error_bound: np.ndarray
    method: np.ndarray


@dataclass(frozen=True, eq=False)
class PackedInference:
    """An `Inference` whose posterior has only the columns that each bag allows.

    Attributes
    ----------
    values : ndarray of shape (problem.value_offsets[-1],)
        Posteriors, laid out as the `UnionProblem` says.
    served : ndarray of int of shape (n_bags,)
        Codes of the kernels: where each one's name stands in `NAMES`.
    log_likelihood, error_bound : ndarrays
        As in `Inference`.
    """

    log_likelihood: np.ndarray
    values: np.ndarray
    error_bound: np.ndarray
    served: np.ndarray


def infer(
    log_prior,
    offsets,
    y,
    *,
    method="auto",
    tolerance=1e-9,
    instance_labels=None,
    n_threads=None,
):
    """Condition the instance labels of bags on the label sets of the bags.

    Each instance has exactly one class. The label set of a bag says which classes
    its instances have between them: a required class at least one of them, a
    forbidden class none, an optional class any number. Knowing this changes what to
    believe of each instance; how likely it was is the likelihood of the label set.

    Parameters
    ----------
    log_prior : array-like of shape (n_instances, n_classes)
        Log-probability of every class for every instance, from the instance
        classifier alone. Rows need not be normalised: a constant added to a row
        changes only the likelihood. ``-inf`` excludes a class.
    offsets : array-like of int of shape (n_bags + 1,)
        Bag b has the instances ``offsets[b]:offsets[b + 1]``.
    y : array-like of shape (n_bags, n_classes)
        1 where the class is required, 0 where it is forbidden, -1 where it is
        optional (not known, or background).
    method : {"auto", "adaptive", "dense", "chain", "forward", "fast"}
        "auto" gives each bag the cheapest kernel that certifies its answer. The
        others never fall back: what they cannot certify has an infinite error bound.
        "forward" and "fast" are the published algorithms; "fast" breaks down for
        confident priors.
    tolerance : float
        Error bound that "auto" must reach, as far as doubles allow: a bag of some 100,000
        instances whose label set is very unlikely may end at a few 1e-9. `error_bound` says.
    instance_labels : array-like of int of shape (n_instances,), optional
        The class (column) of the instances whose label is known, -1 for the others.
    n_threads : int, optional
        By default, as many as there are cores, but only when the work repays them.
        The answer does not depend on it.

    Returns
    -------
    Inference

    Raises
    ------
    ValueError
        When an argument is malformed; names the bag or the row.
    IntractableBagError
        When a bag has too many required labels for an exact answer.

    Notes
    -----
    Time per bag ``n_instances * 2**n_required`` at most, unless the certificate
    fails, and often far less: a bag of 1000 instances in which each of 40 labels is
    almost certain to occur takes a few dozen sets of labels.

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

    Were class 1 only optional, instance 1 would stay more or less undecided.

    >>> infer(np.log([[0.9, 0.1], [0.5, 0.5]]), [0, 2], [[1, -1]]).posterior.round(2)
    array([[0.95, 0.05],
           [0.53, 0.47]])
    """
    problem = union_problem(offsets, y, instance_labels)
    log_prior = checked_log_prior(log_prior, problem)
    packed = infer_packed(
        problem, log_prior, method=method, tolerance=tolerance, n_threads=n_threads
    )
    posterior = np.zeros(log_prior.shape)
    add_packed(problem, packed.values, posterior)
    return Inference(
        log_likelihood=packed.log_likelihood,
        posterior=posterior,
        error_bound=packed.error_bound,
        method=NAMES[packed.served],
    )


def infer_packed(problem, log_prior, *, method="auto", tolerance=1e-9, n_threads=None):
    """Do what `infer` does for a problem already checked, and leave the posterior packed.

    Parameters
    ----------
    problem : UnionProblem
    log_prior : C-contiguous ndarray of float64 of shape (n_instances, n_classes)
        Without NaN or +inf, which are not looked for here.
    method, tolerance, n_threads
        As in `infer`.

    Returns
    -------
    PackedInference
    """
    if method != "auto" and method not in METHODS:
        raise ValueError(f"method must be one of {('auto', *METHODS)}; got {method!r}.")
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance must be positive and below 1; got {tolerance!r}.")
    n_threads = thread_count(n_threads)
    values = np.empty(problem.value_offsets[-1])
    log_likelihood = np.empty(problem.n_bags)
    error_bound = np.empty(problem.n_bags)
    served = np.empty(problem.n_bags, np.int64)

    def work(bags):
        batch = solve(bags, problem, log_prior, method, tolerance)
        write_answers(problem, log_prior, batch, values, log_likelihood, error_bound)
        served[bags] = batch.served

    cost = None
    if n_threads > 1 and problem.n_bags > 1:
        cost = estimated_costs(problem, log_prior, method, tolerance)
    if cost is None or cost.sum() < n_threads * WORTHWHILE:
        n_threads = 1
    run_threads(work, batches(np.arange(problem.n_bags), cost, n_threads), n_threads)
    return PackedInference(log_likelihood, values, error_bound, served)
