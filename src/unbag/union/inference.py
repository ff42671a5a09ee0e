"""`infer`, the one function that all other packages use for inference."""

from numpy.typing import ArrayLike

from .dispatch import Method
from .policy import OnImpossible, OnIntractable
from .problem import GroupsLike, Inference, UnionProblem


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
    groups: GroupsLike | None = None,
    n_jobs: int | None = None,
) -> Inference:
    """Condition the instance labels of bags on the label sets of the bags.

    Each instance has exactly one class. The label set of a bag says which classes its instances
    have: at least one instance has a required class, none has a forbidden class, and any number may
    have an optional class. The posterior is the probability of each class given the label set; the
    likelihood is the probability of the label set.

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
    method : {"auto", "adaptive", "mixed", "dense", "chain", "forward", "fast"}
        "auto" uses, for each bag, the cheapest kernel that certifies its result. The others never
        fall back: a result that they cannot certify has an infinite error bound. "forward" and
        "fast" are the published algorithms; "fast" breaks down for confident priors.
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
    missed : float or array-like of shape (n_classes,), optional
        The probability that an instance of each class is missed: the label set is the union of the
        classes of the other instances. The posterior is then over all classes, since an instance of
        a forbidden class may be present but missed. The rate has no effect on optional classes. By
        default 0; otherwise at least 1e-12.
    false : float or array-like of shape (n_classes,), optional
        The probability that each class is added to the label set by mistake, whether or not an
        instance has it. By default 0; otherwise at least 1e-12. Near 1, a required class is almost
        optional.
    groups : list of lists of lists of int, or Groups, optional
        For each bag, groups of classes of which at least one instance has one: each a list of
        columns, such as ``[[[1, 2]], []]`` for two bags of which the first has a group. The classes
        of a group are allowed whatever `y` says of them, and required only if it says 1.
        `unbag.groups.Groups` is the packed form, which is checked once.
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
    Time per bag ``n_instances * 2**n_required`` at most, unless the certificate
    fails, and often far less: a bag of 1000 instances in which each of 40 labels is
    almost certain to occur takes a few dozen sets of labels. Labels that are unlikely, or
    that an unlikely one leaves without an instance, cost a factor of two each.

    If ``-inf`` separates the labels of a bag into groups, so that no instance can have labels of
    two groups, "auto" infers each group by itself, and `method` is the kernel of the group with the
    most labels.

    A required group takes as many sets as one required class, as long as no class is in two groups
    and neither lies within the other. Where they overlap, "auto" and "dense" sum over sets of up to
    six required classes and groups. Other bags, and those that it cannot certify, are served by
    "chain" whatever `method` says, in time ``n_instances * n_columns * 2**n_required``, for up
    to 16 required classes and groups; ``n_columns`` counts the sets of groups that a class can
    serve. With "auto", bags of more requirements of which few overlap are told apart by cases, up
    to eight, each of which takes as long as a bag without groups.

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

    >>> infer(np.log([[0.9, 0.1], [0.1, 0.9]]), [0, 2], [[1, 0]], missed=0.2).posterior.round(2)
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
        missed=missed,
        false=false,
        n_jobs=n_jobs,
    )
