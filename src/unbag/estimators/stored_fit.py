"""Fitting a model to bags that are not in memory: what `fit` does, with features that are read."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unbag.fitting import (
    BagSource,
    Progress,
    Scale,
    StreamedTraining,
    Training,
    cheapest_bags,
)
from unbag.labels import LabelSets
from unbag.validation import all_or_nothing, bag_weights, check_columns, check_scaling

from .or_logistic import ORLogisticRegression

#: Bytes of features of the bags by which `background="auto"` is decided.
SAMPLE_BYTES = 64 << 20
#: Makes the `Progress` of a fit, of its training, the weights to start with, and who watches it.
Begin = Callable[[Training, np.ndarray, Callable[[int, float], object]], Progress]


def begin_anew(
    training: Training, W: np.ndarray, watch: Callable[[int, float], object]
) -> Progress:
    """Return the progress of a fit that has just begun."""
    return Progress(W, watch)


@all_or_nothing
def fit_stored(
    model: ORLogisticRegression,
    bags: BagSource,
    labels: LabelSets,
    *,
    instance_labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    scale: Scale | None = None,
    reached: Progress | None = None,
    begin: Begin = begin_anew,
    make: Any = StreamedTraining,
) -> ORLogisticRegression:
    """Fit a model to bags whose features are read, or lie, elsewhere.

    Parameters
    ----------
    model : ORLogisticRegression
    bags : BagSource
    labels : LabelSets
        Of all bags.
    instance_labels, sample_weight
        As in `ORLogisticRegression.fit`.
    scale : Scale, optional
        How features are scaled, if that is known; by default it is learnt in a pass of its own.
    reached : Progress, optional
        Where an earlier fit to the same bags has got to, with its `scale`: this one goes on there.
    begin : callable
        See `Begin`.
    make : callable
        Makes what the solver asks: a `StreamedTraining`, or whatever else maps and adds.

    Returns
    -------
    ORLogisticRegression
        The model itself.

    Notes
    -----
    ``background="auto"`` is decided by a sample of the bags, as large as `SAMPLE_BYTES`.
    """
    model._check_parameters()
    start = rates = None
    if model.warm_start and hasattr(model, "coef_"):
        start, rates = (model.coef_, model.intercept_, model.classes_), model._rates()
    check_columns(model, bags, reset=True)
    labels = model._read_labels(labels, bags, reset=True)
    if reached is not None and scale is not None:
        start = *scale.coefficients(reached.weights), model.classes_
        given = reached.rates
        rates = None if given is None else {"missed": given.missed[0], "false": given.false[0]}
    pinned = model._read_instance_labels(instance_labels, bags, labels)
    known: Any = bags
    weight = bag_weights(sample_weight, known, known)
    sample: Any = (None, None, None, None)
    if model.background == "auto" and start is None:
        sample = sampled(bags, labels, pinned, weight)
        check_scaling(sample[0], model.scaling)
    with model._decided_background(*sample, start=start):
        problem, used = model._possible_label_sets(bags, labels, pinned)
        used = cheapest_bags(problem, used, model.prune)
        with model._training(bags, problem, used, weight, scale, rates, make) as training:
            W = np.zeros(training.shape)
            if reached is not None:
                W = reached.weights
            elif start is not None:
                W = model._warm_weights(training, *start)
            model._climb(training, begin(training, W, model._watch))
    return model


def sampled(
    bags: BagSource, labels: LabelSets, pinned: np.ndarray | None, weight: np.ndarray | None
) -> tuple[Any, LabelSets, np.ndarray | None, np.ndarray | None]:
    """Read some of the bags into memory, with what is known of them."""
    found, places = bags.sample(SAMPLE_BYTES)
    if pinned is not None:
        within = np.zeros(len(bags), dtype=bool)
        within[places] = True
        pinned = pinned[np.repeat(within, bags.sizes)]
    return found, labels[places], pinned, None if weight is None else weight[places]
