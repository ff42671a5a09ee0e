"""What a model says of every instance of a table: its label, how sure that is, what to look at."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from unbag.bags import Bags
from unbag.io.annotated import ANSWERS, KNOWN_LABEL
from unbag.io.arrays import is_unknown
from unbag.labels import DELIMITER, NO_LABEL, LabelSets, normal_spelling
from unbag.union import UnionProblem

#: Instances that are worked on at a time, and entries of instances times classes, so that memory
#: stays bounded.
BLOCK = 65_536
BLOCK_ENTRIES = 2 << 20
#: Share of the instances that are flagged for review.
REVIEW_SHARE = 0.05
#: Entropy, in bits, up to which nothing is worth a look: the label is as good as certain.
CERTAIN = 0.05
#: The columns that annotated tables have more, and which of the `Annotations` they hold.
COLUMNS = dict(
    zip(
        ANSWERS,
        ("label", "probability", "second_label", "second_probability", "entropy", "review"),
        strict=True,
    )
)


@dataclass(frozen=True, eq=False)
class Annotations:
    """The answers for the instances of some bags, in their order.

    Attributes
    ----------
    label : ndarray of shape (n_instances,)
        The most probable class; None for the background, and where none is likely enough.
    probability : ndarray of shape (n_instances,)
        Of the most probable class.
    second_label, second_probability : ndarrays of shape (n_instances,)
        The next most probable class; None and zero where there is no other.
    entropy : ndarray of shape (n_instances,)
        Uncertainty over all classes, in bits: 0 is certain, 1 a coin toss between two.
    review : ndarray of bool of shape (n_instances,)
        Whether a human look is worth most here: the most uncertain instances, and those of bags
        whose label set no labelling can produce.
    impossible : ndarray of bool of shape (n_bags,)
        Bags of the last kind.
    """

    label: NDArray[Any]
    probability: NDArray[Any]
    second_label: NDArray[Any]
    second_probability: NDArray[Any]
    entropy: NDArray[Any]
    review: NDArray[Any]
    impossible: NDArray[Any]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return them as the columns of a table: labels as text, and one for people to fill in."""
        columns = {column: getattr(self, attribute) for column, attribute in COLUMNS.items()}
        for name in ("annotation", "second_choice"):
            columns[name] = np.array(
                [None if label is None else str(label) for label in columns[name]], dtype=object
            )
        columns[KNOWN_LABEL] = np.full(len(self.label), None)
        return columns


def annotate(
    model: Any,
    bags: Bags,
    labels: LabelSets | None = None,
    *,
    review_share: float = REVIEW_SHARE,
    unknown_below: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Annotations:
    """Label every instance of some bags, with probabilities.

    Parameters
    ----------
    model : fitted estimator or BagPipeline
        With ``annotate_proba`` and ``predict_instances_proba``.
    bags : Bags
    labels : LabelSets, optional
        What the bags contain; None where that is not known.
    review_share : float
        Share of the instances to flag for review.
    unknown_below : float, optional
        No label where the probability of the likeliest is lower.
    progress : callable, optional
        Called as ``progress(instances_done, instances)``.

    Returns
    -------
    Annotations

    Examples
    --------
    >>> from unbag import Bags, ORLogisticRegression
    >>> bags = Bags.from_list([[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]])
    >>> sets = [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}]
    >>> annotate(ORLogisticRegression().fit(bags, sets), bags).label[:2].tolist()
    ['a', 'b']
    """
    if not hasattr(model, "predict_instances_proba"):
        raise ValueError(
            f"{type(model).__name__} gives instances no probabilities, so it cannot annotate them "
            "with how sure it is: fit a model that does, such as ORLogisticRegression."
        )
    for name, share in (("review_share", review_share), ("unknown_below", unknown_below)):
        if share is not None and not 0 <= share <= 1:
            raise ValueError(f"{name} must lie between 0 and 1; got {share!r}.")
    n_instances = bags.n_instances
    best, second = np.empty((2, n_instances), dtype=np.intp)
    probability, second_probability, entropy = np.empty((3, n_instances))
    impossible = np.zeros(len(bags), dtype=bool)
    names = class_names(model)
    for first, last in blocks(bags, len(names)):
        of_block = None if labels is None else labels[first:last]
        proba = probabilities(model, bags[first:last], of_block)
        if of_block is not None:
            y = of_block.indicator
            if has_background(model):
                y = np.hstack([y, np.full((len(y), 1), -1, dtype=y.dtype)])
            offsets = bags.offsets[first : last + 1] - bags.offsets[first]
            impossible[first:last] = UnionProblem(offsets, y).impossible
        rows = slice(bags.offsets[first], bags.offsets[last])
        order = np.argsort(-proba, axis=1, kind="stable")[:, :2]
        best[rows], second[rows] = order[:, 0], order[:, -1]
        highest = np.take_along_axis(proba, order, axis=1)
        probability[rows] = highest[:, 0]
        second_probability[rows] = highest[:, 1] if proba.shape[1] > 1 else 0.0
        entropy[rows] = entr(proba).sum(axis=1) / np.log(2)
        if progress is not None:
            progress(int(bags.offsets[last]), n_instances)
    label, second_label = names[best], names[second]
    second_label[~(second_probability > 0)] = None
    if unknown_below is not None:
        label[probability < unknown_below] = None
    return Annotations(
        label=label,
        probability=probability,
        second_label=second_label,
        second_probability=second_probability,
        entropy=entropy,
        review=worth_a_look(entropy, review_share) | np.repeat(impossible, bags.sizes),
        impossible=impossible,
    )


def predictions(model: Any, bags: Bags, delimiter: str = DELIMITER) -> dict[str, NDArray[Any]]:
    """Predict which classes occur in each bag, as the columns of a table.

    ``predicted`` has the labels as text, separated by the delimiter, or ``(none)``. Where the model
    has probabilities, ``p(wren)`` is the probability that there is a wren, and so for every class.
    """
    sets = model.predict(bags)
    names = np.array([str(label) for label in model.classes_], dtype=object)
    if getattr(model.model, "single_label_", False):
        sets = np.asarray(sets)[:, None] == model.classes_
    cells = [delimiter.join(names[row == 1]) or NO_LABEL for row in sets]
    columns = {"predicted": np.array(cells, object)}
    if hasattr(model, "predict_proba"):
        proba = model.predict_proba(bags)
        columns |= {f"p({name})": column for name, column in zip(names, proba.T, strict=True)}
    return columns


def probabilities(model: Any, bags: Bags, labels: LabelSets | None) -> NDArray[Any]:
    """Return the probabilities of the instances' classes, with bag labels where there are any."""
    if labels is None:
        return model.predict_instances_proba(bags)
    return model.annotate_proba(bags, labels)


def class_names(model: Any) -> NDArray[np.object_]:
    """Return the classes of the model's instance columns, as objects; None for the background."""
    return np.array(model.classes_.tolist() + [None] * has_background(model), dtype=object)


def has_background(model: Any) -> bool:
    """Return whether a model, or the last step of a pipeline, has a background class."""
    return getattr(model.model, "_has_background", False)


def blocks(bags: Bags, n_columns: int) -> list[tuple[int, int]]:
    """Cut bags into runs of about `BLOCK` instances each; fewer, if there are many classes."""
    n_instances = max(min(BLOCK, BLOCK_ENTRIES // max(n_columns, 1)), 1)
    cuts = (np.flatnonzero(np.diff(bags.offsets[1:] // n_instances)) + 1).tolist()
    return list(zip([0, *cuts], [*cuts, len(bags)], strict=True)) if len(bags) else []


def worth_a_look(entropy: NDArray[np.floating], share: float) -> NDArray[np.bool_]:
    """Find the most uncertain instances, a share of them at most, and none that is certain.

    Examples
    --------
    >>> worth_a_look(np.array([0.9, 0.0, 0.3, 0.01]), 0.5).tolist()
    [True, False, True, False]
    """
    n_looks = round(share * len(entropy))
    chosen = np.zeros(len(entropy), dtype=bool)
    chosen[np.argsort(-entropy, kind="stable")[:n_looks]] = True
    return chosen & (entropy > CERTAIN)


def known_labels(bags: Bags) -> tuple[NDArray[np.object_], NDArray[np.bool_]] | None:
    """Return the labels of instances as text, and where they are known; None if none is.

    Examples
    --------
    >>> bags = Bags([[1.0], [2.0]], [0, 2], instance_labels=["wren", None])
    >>> known_labels(bags)[1].tolist()
    [True, False]
    """
    if bags.instance_labels is None:
        return None
    labels = np.asarray(bags.instance_labels, dtype=object)
    known = np.array([not is_unknown(label) for label in labels], dtype=bool)
    return (texts(labels), known) if known.any() else None


def texts(labels: Iterable[object]) -> NDArray[np.object_]:
    """Return labels as text in their normal spelling, in an array of objects."""
    return np.array([normal_spelling(str(label)) for label in labels], dtype=object)
