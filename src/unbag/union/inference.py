"""The waist of the package: everything above asks `infer`, everything below serves it."""

from numpy.typing import ArrayLike

from .dispatch import Method
from .policy import OnImpossible, OnIntractable
from .problem import Inference, UnionProblem


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
    missed: ArrayLike | None = None,
    false: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Inference:
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
    method : {"auto", "adaptive", "mixed", "dense", "chain", "forward", "fast"}
        "auto" gives each bag the cheapest kernel that certifies its answer. The
        others never fall back: what they cannot certify has an infinite error bound.
        "forward" and "fast" are the published algorithms; "fast" breaks down for
        confident priors.
    tolerance : float
        Error bound that "auto" must reach, as far as doubles allow: a bag of some 100,000
        instances whose label set is very unlikely may end at a few 1e-9. `error_bound` says.
    instance_labels : array-like of int of shape (n_instances,), optional
        The class (column) of the instances whose label is known, -1 for the others.
    on_impossible : {"keep", "relax", "raise"}
        What to do with a bag whose label set no labelling can produce: answer that it has
        likelihood zero and no posterior; take its required classes as optional and answer
        for that, unless it is still impossible then (it has instances and allows nothing);
        or raise an error that names all such bags.
    on_intractable : {"raise", "relax"}
        What to do with a bag that exact inference gave up after about a second of work: raise an
        error that names all such bags, or take those as optional that are the most certain
        to occur anyway, all but 16.
    missed : float or array-like of shape (n_classes,), optional
        The probability that an instance of each class goes unnoticed: the label set is the union
        of the noticed ones. The posterior is then over all classes, since an instance of a
        forbidden one may be there, unnoticed. An optional class has nothing to notice, and the
        rate has no say there. By default 0: nothing goes unnoticed; else at least 1e-12.
    false : float or array-like of shape (n_classes,), optional
        The probability that each class is added to the label set by mistake, whether or not an
        instance shows it. By default 0; else at least 1e-12. Near 1, a required class is all but
        optional.
    n_jobs : int, optional
        Number of threads; -1 for as many as there are cores. By default as many as there
        are cores, but only when the work repays them. The answer does not depend on it.

    Returns
    -------
    Inference

    Raises
    ------
    ValueError
        When an argument is malformed; names the bag or the row.
    IntractableBagError
        When bags would take too long for an exact answer; lists them in `bags`.
    ImpossibleBagError
        When `on_impossible` is "raise" and there are such bags; lists them in `bags`.

    Notes
    -----
    Time per bag ``n_instances * 2**n_required`` at most, unless the certificate
    fails, and often far less: a bag of 1000 instances in which each of 40 labels is
    almost certain to occur takes a few dozen sets of labels. Labels that are unlikely, or
    that an unlikely one leaves without an instance, cost a factor of two each.

    Where ``-inf`` keeps labels of a bag apart, so that no instance can have both, "auto" infers
    each part of the bag by itself, and names the kernel of the part with most labels.

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

    Nobody named class 1, but one instance in five goes unnoticed.

    >>> infer(np.log([[0.9, 0.1], [0.1, 0.9]]), [0, 2], [[1, 0]], missed=0.2).posterior.round(2)
    array([[0.99, 0.01],
           [0.4 , 0.6 ]])
    """
    return UnionProblem(offsets, y, instance_labels).infer(
        log_prior,
        method=method,
        tolerance=tolerance,
        on_impossible=on_impossible,
        on_intractable=on_intractable,
        missed=missed,
        false=false,
        n_jobs=n_jobs,
    )
