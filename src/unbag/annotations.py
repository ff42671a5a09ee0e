"""Labels of all instances of a table, how sure they are, and which ones to look at."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from unbag._declared import Declared, documented
from unbag._messages import argument, counted, listed, words
from unbag.bags import Bags
from unbag.groups import Groups
from unbag.labels import LabelSets
from unbag.tables.annotated import ANSWERS, KNOWN_LABEL, OF_NO_CLASS, REVIEW, STATUS, Status
from unbag.tables.arrays import is_unknown
from unbag.tagging import BACKGROUND_NAME, DELIMITER, NO_LABEL, normal_spelling
from unbag.taxonomy import Ladder, ladder_of
from unbag.union import UnionProblem

#: Instances that are worked on at a time, and entries of instances times classes, so that memory
#: stays bounded.
BLOCK = 65_536
BLOCK_ENTRIES = 2 << 20
#: Share of the instances that are flagged for review.
REVIEW_SHARE = 0.05
#: Entropy, in bits, up to which nothing is worth a look: the label is as good as certain.
CERTAIN = 0.05
#: A class that fewer training bags had is rare: what a model says of it is little but a guess.
FEWEST_BAGS = 3
#: Least probability of a rare tag, as if nothing had been learnt of it, that is worth a look.
COULD_BE = 0.01


@dataclass(frozen=True)
class Figures:
    """Figures about annotations: what `unbag.out_of_core.Annotated` describes."""

    bags: int
    instances: int
    bag_labels_used: bool
    mean_probability: float | None
    review: int
    status: dict[str, int]
    impossible_bags: int
    tags: int
    tags_without_instance: int
    rare_tags: list[str]
    rare_rows: int


def added(figures: Sequence[Figures]) -> Figures:
    """Add up the figures of several tables."""
    instances = sum(each.instances for each in figures)
    certainty = sum(each.instances * (each.mean_probability or 0.0) for each in figures)
    return Figures(
        bags=sum(each.bags for each in figures),
        instances=instances,
        bag_labels_used=any(each.bag_labels_used for each in figures),
        mean_probability=certainty / instances if instances else None,
        review=sum(each.review for each in figures),
        status={word: sum(each.status[word] for each in figures) for word in status_words()},
        impossible_bags=sum(each.impossible_bags for each in figures),
        tags=sum(each.tags for each in figures),
        tags_without_instance=sum(each.tags_without_instance for each in figures),
        rare_tags=sorted({name for each in figures for name in each.rare_tags}),
        rare_rows=sum(each.rare_rows for each in figures),
    )


def status_words() -> list[str]:
    """Return the words of the column of statuses, as plain strings."""
    return [status.value for status in Status]


@dataclass(frozen=True, eq=False)
class Annotations:
    """The answers for the instances of some bags, in their order.

    Attributes
    ----------
    label : ndarray of shape (n_instances,)
        The most probable class; None for the background, and if the best one is not likely
        enough.
    status : ndarray of str of shape (n_instances,)
        Why the label is what it is: ``labelled``, ``background``, ``no tagged class`` (the bag is
        said to hold none of the classes) or ``unsure`` (see `unknown_below`).
    probability : ndarray of shape (n_instances,)
        Of the most probable class.
    second_label, second_probability : ndarrays of shape (n_instances,)
        The next most probable class; None and zero if there is only one class.
    entropy : ndarray of shape (n_instances,)
        Uncertainty over all classes, in bits: 0 is certain, 1 a coin toss between two.
    review : ndarray of bool of shape (n_instances,)
        Whether a human look is worth most here: the most uncertain instances; those of bags whose
        label set no labelling can produce; the most likely instance of a tag that none got; and
        those that could be the instance of a rare tag.
    impossible : ndarray of bool of shape (n_bags,)
        Bags whose label set no labelling can produce.
    n_tags, n_uncovered : ndarrays of int of shape (n_bags,)
        The labels of each bag, and how many of them no instance got; zero if they are not known.
    rare : ndarray of bool of shape (n_instances,)
        Instances that could be that of a rare tag.
    rare_tags : list
        The rare tags of these bags: classes that fewer than `FEWEST_BAGS` training bags had.
    labels_known : bool
        Whether the labels of the bags were.
    background_name : str
        What tables call the background.
    """

    label: NDArray[Any]
    status: NDArray[Any]
    probability: NDArray[Any]
    second_label: NDArray[Any]
    second_probability: NDArray[Any]
    entropy: NDArray[Any]
    review: NDArray[Any]
    impossible: NDArray[Any]
    n_tags: NDArray[Any]
    n_uncovered: NDArray[Any]
    rare: NDArray[Any]
    rare_tags: list[Any]
    labels_known: bool
    background_name: str = BACKGROUND_NAME

    @property
    def annotation(self) -> NDArray[np.object_]:
        """The label as tables have it, as text; None where there is none."""
        return self._as_text(self.label, np.isin(self.status, OF_NO_CLASS))

    @property
    def second_choice(self) -> NDArray[np.object_]:
        """The second label as tables have it, as text; None where there is none."""
        return self._as_text(self.second_label, self.second_probability > 0)

    def _as_text(self, labels, may_be_background):
        found = np.array([None if each is None else str(each) for each in labels], dtype=object)
        is_none = np.array([each is None for each in labels], dtype=bool)
        found[is_none & may_be_background] = self.background_name
        return found

    @property
    def selected(self) -> NDArray[np.object_]:
        """The labels for people who listen to them: without background."""
        selected = self.annotation
        selected[self.status != Status.LABELLED] = None
        return selected

    def columns(self, known: NDArray[Any] | None = None) -> dict[str, NDArray[Any]]:
        """Return them as the columns of a table, and one of known labels, for people to fill in."""
        columns = {name: getattr(self, name) for name in ANSWERS}
        columns[KNOWN_LABEL] = np.full(len(self.label), None) if known is None else known
        return columns

    def figures(self, n_dropped: int = 0) -> Figures:
        """Count what is in them; so many rows of the table were dropped."""
        n_instances = len(self.label)
        status = {word: int((self.status == word).sum()) for word in status_words()}
        status[Status.DROPPED.value] = n_dropped
        return Figures(
            bags=len(self.impossible),
            instances=n_instances,
            bag_labels_used=self.labels_known,
            mean_probability=float(self.probability.mean()) if n_instances else None,
            review=int(self.review.sum()),
            status=status,
            impossible_bags=int(self.impossible.sum()),
            tags=int(self.n_tags.sum()),
            tags_without_instance=int(self.n_uncovered.sum()),
            rare_tags=sorted(str(name) for name in self.rare_tags),
            rare_rows=int(self.rare.sum()),
        )


@dataclass(frozen=True)
class AnnotateSettings:
    """How instances are labelled, and which are flagged: see `annotate`."""

    # fmt: off
    review_share: Annotated[float, Declared(
        "Share of the rows to flag for review: the most uncertain ones.", "number",
    )] = REVIEW_SHARE
    unknown_below: Annotated[float | None, Declared(
        "No label where the best one is less probable, such as 0.6.", "number")] = None
    joint: Annotated[bool, Declared(
        "Give every tag a row: the most likely labelling of the whole bag that has all tags.",
        "flag")] = False
    background_name: Annotated[str, Declared(
        "Name of rows of none of the classes; no class may have that name.", "text",
    )] = BACKGROUND_NAME
    level: Annotated[str | None, Declared(
        "Label by names of this rank of the taxonomy, such as genus.", "text")] = None
    back_off: Annotated[float | None, Declared(
        "Label by the lowest name of the taxonomy that has at least this probability.",
        "number")] = None
    # fmt: on

    def __post_init__(self) -> None:
        for name in ("review_share", "unknown_below", "back_off"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise ValueError(f"{argument(name)} must lie between 0 and 1; got {share!r}.")


class AnnotateOptions(TypedDict, total=False):
    """The options of `annotate` by name."""

    review_share: float
    unknown_below: float | None
    joint: bool
    background_name: str
    level: str | None
    back_off: float | None


@documented(AnnotateSettings)
def annotate(
    model: Any,
    bags: Bags,
    labels: LabelSets | None = None,
    *,
    progress: Callable[[int, int], object] | None = None,
    **options: Unpack[AnnotateOptions],
) -> Annotations:
    """Label every instance of some bags, with probabilities.

    Parameters
    ----------
    model : fitted estimator or BagPipeline
        With ``annotate_proba`` and ``predict_instances_proba``.
    bags : Bags
    labels : LabelSets, optional
        What the bags contain; None where that is not known. In a bag that is said to contain
        nothing all instances are background, unless the model has a `missed_rate_`.
    progress : callable, optional
        Called as ``progress(instances_done, instances)``.
    ...

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
            f"{type(model).__name__} gives {words().instances} no probabilities, so it cannot "
            "annotate them with how sure it is: fit a model that does, such as "
            "ORLogisticRegression."
        )
    chosen = AnnotateSettings(**options)
    if labels is not None and not np.array_equal(labels.classes, model.classes_):
        labels = labels.reindex(model.classes_)
    check_joint(chosen.joint, labels)
    check_background_name(model, labels, chosen.background_name)
    at_level = None
    if chosen.level is not None or chosen.back_off is not None:
        if chosen.joint:
            raise ValueError(
                f"{argument('joint', True)} gives labels that are classes: leave it out, or "
                f"{argument('level')} and {argument('back_off')}."
            )
        at_level = AnswersAtLevel(model, chosen.level, chosen.back_off, bags.n_instances)
    n_instances, n_bags, n_classes = bags.n_instances, len(bags), len(model.classes_)
    best, second = np.empty((2, n_instances), dtype=np.intp)
    probability, second_probability, entropy = np.empty((3, n_instances))
    is_unsure, is_flagged, is_rare = np.zeros((3, n_instances), dtype=bool)
    impossible, holds_none = np.zeros((2, n_bags), dtype=bool)
    n_tags, n_uncovered = np.zeros((2, n_bags), dtype=np.intp)
    if labels is not None:
        holds_none = hold_none(model, labels)
    rare = rare_classes(model)
    for first, last in blocks(bags, n_classes + 1):
        block, known = bags[first:last], None if labels is None else labels[first:last]
        if known is not None:
            y, groups = known.indicator, known.groups
            if has_background(model):
                y = np.hstack([y, np.full((len(y), 1), -1, dtype=y.dtype)])
            groups = None if groups is None else groups.widened(y.shape[1])
            impossible[first:last] = UnionProblem(block.offsets, y, groups=groups).impossible
            impossible[first:last] &= ~holds_none[first:last]
        rows = slice(bags.offsets[first], bags.offsets[last])
        proba = probabilities(model, block, known)
        is_none = np.repeat(holds_none[first:last], block.sizes)
        entropy[rows] = np.where(is_none, 0.0, entr(proba).sum(axis=1) / np.log(2))
        top = joint_columns(model, block, known) if chosen.joint else proba.argmax(axis=1)
        top = top if at_level is None else at_level.most_likely_classes(proba)
        likely, next_best, next_likely = two_best(proba, top)
        best[rows] = np.where(is_none, n_classes, top)
        probability[rows] = np.where(is_none, 1.0, likely)
        second[rows] = next_best
        second_probability[rows] = np.where(is_none, 0.0, next_likely)
        if at_level is not None:
            at_level.add(rows, proba, top, is_none)
            probability[rows] = at_level.probability[rows]
        if chosen.unknown_below is not None:
            is_unsure[rows] = probability[rows] < chosen.unknown_below
        if known is not None:
            is_labelled = (best[rows] < n_classes) & ~is_unsure[rows]
            covered = classes_of_bags(block, best[rows], is_labelled, n_classes)
            uncovered, lacking = known.required & ~covered, known.groups
            n_tags[first:last] = known.required.sum(axis=1)
            n_uncovered[first:last] = uncovered.sum(axis=1)
            if lacking is not None:
                n_tags[first:last] += lacking.per_bag
                lacking = lacking.chosen(~lacking.any_of(covered))
                n_uncovered[first:last] += lacking.per_bag
            is_flagged[rows] = most_likely_rows(proba, block, uncovered, lacking)
            is_rare[rows] = could_be_rare(model, block, known, rare, best[rows])
        if progress is not None:
            progress(int(bags.offsets[last]), n_instances)
    # A bag may be said to hold none of the classes though the model has no background.
    names = np.array([*model.classes_.tolist(), None], dtype=object)
    label, second_label = names[best], names[second]
    second_label[~(second_probability > 0)] = None
    if at_level is not None:
        label = at_level.label
        label[best == n_classes] = None
        is_unsure |= at_level.is_unsure & (best < n_classes)
        second_label, second_probability = at_level.second, at_level.second_probability
        if chosen.level is not None:
            entropy = at_level.entropy
    label[is_unsure] = None
    status = np.full(n_instances, Status.LABELLED.value, dtype=object)
    status[best == n_classes] = Status.BACKGROUND.value
    status[is_unsure] = Status.UNSURE.value
    status[np.repeat(holds_none, bags.sizes)] = Status.NO_TAG.value
    is_flagged |= is_rare | np.repeat(impossible, bags.sizes)
    tagged = np.zeros(0, dtype=bool) if labels is None else labels.required.any(axis=0) & rare
    return Annotations(
        label=label,
        status=status,
        probability=probability,
        second_label=second_label,
        second_probability=second_probability,
        entropy=entropy,
        review=worth_a_look(entropy, chosen.review_share) | is_flagged,
        impossible=impossible,
        n_tags=n_tags,
        n_uncovered=n_uncovered,
        rare=is_rare,
        rare_tags=[] if labels is None else model.classes_[tagged].tolist(),
        labels_known=labels is not None,
        background_name=chosen.background_name,
    )


def sentences(
    figures: Figures, names: Mapping[str, str], options: AnnotateSettings
) -> Iterator[str]:
    """Say what was annotated, and what each status is about, line by line.

    `names` are those of the columns of a table.
    """
    instances, bags = words()
    # With both options, a label needs both.
    shares = (options.unknown_below, options.back_off)
    least = max((each for each in shares if each is not None), default=None)
    how = "using" if figures.bag_labels_used else "without"
    yield (
        f"Annotated {figures.instances:,} {instances} of {figures.bags:,} {bags}, {how} the tags "
        f"of the {bags}. {figures.review:,} {instances} are flagged for review (column "
        f"{names[REVIEW]})."
    )
    meanings = {
        Status.LABELLED: "a class",
        Status.BACKGROUND: "none of the classes",
        Status.NO_TAG: f"their {bags} are said to hold none of the classes",
        Status.UNSURE: f"no label is as probable as {least}",
        Status.DROPPED: "rows with missing values",
    }
    counts = [
        f"{figures.status[status]:,} {status} ({meaning})"
        for status, meaning in meanings.items()
        if figures.status[status] or status == Status.LABELLED
    ]
    yield f"Annotations: {', '.join(counts)}; see the column {names[STATUS]}."
    if figures.tags_without_instance:
        one = words().instance
        remedy = "" if options.joint else f"; {argument('joint', True)} gives each tag a {one}"
        yield (
            f"Tags that no {one} got: {figures.tags_without_instance:,} of {figures.tags:,}. The "
            f"most likely {one} for each is flagged for review{remedy}."
        )
    if figures.rare_rows:
        yield (
            f"{figures.rare_rows:,} {instances} could be of a class that fewer than {FEWEST_BAGS} "
            f"training {bags} have, and are flagged for review, however probable their labels: "
            f"{listed(figures.rare_tags)}."
        )
    if figures.impossible_bags:
        yield (
            f"Tags that cannot all be right, such as more tags than {instances}: in "
            f"{counted(figures.impossible_bags, words().bag)}. Each of these tags was treated as "
            "optional."
        )


def check_joint(joint: bool, labels: LabelSets | None) -> None:
    """Raise an error if a labelling is to cover labels of bags that are not known."""
    if joint and labels is None:
        raise ValueError(
            f"{argument('joint', True)} gives every tag of a {words().bag} a {words().instance}, "
            "and there are no tags: name their column, or leave it out."
        )


def check_background_name(model: Any, labels: LabelSets | None, name: str) -> None:
    """Raise an error if a class is called as the background, and both may be in one table."""
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"{argument('background_name')} must be a word; got {name!r}.")
    is_needed = (
        name != BACKGROUND_NAME
        or has_background(model)
        or (labels is not None and hold_none(model, labels).any())
    )
    if is_needed and normal_spelling(name) in map(class_text, model.classes_.tolist()):
        raise ValueError(
            f"{name!r} is a class of the model, and cannot be the name of {words().instances} of "
            f"none of the classes too: choose another by {argument('background_name')}."
        )


def hold_none(model: Any, labels: LabelSets) -> NDArray[np.bool_]:
    """Find the bags that are said to hold none of the classes.

    A model that knows how often labels are missed knows better: of those there are none.
    """
    if np.any(getattr(model.model, "missed_rate_", 0.0)):
        return np.zeros(len(labels), dtype=bool)
    return np.asarray(~labels.indicator.any(axis=1))


def rare_classes(model: Any) -> NDArray[np.bool_]:
    """Find the classes that hardly any training bag had; none if a model does not remember that."""
    counts = getattr(model.model, "class_counts_", None)
    return np.zeros(len(model.classes_), bool) if counts is None else counts < FEWEST_BAGS


def joint_columns(model: Any, bags: Bags, labels: LabelSets | None) -> NDArray[np.intp]:
    """Return the columns of the classes that the most likely labelling of each bag has."""
    column_of = {label: column for column, label in enumerate(model.classes_.tolist())}
    found = model.annotate(bags, labels, joint=True).tolist()
    return np.array([column_of.get(label, len(column_of)) for label in found], dtype=np.intp)


def two_best(
    proba: NDArray[np.floating], best: NDArray[np.intp]
) -> tuple[NDArray[np.floating], NDArray[np.intp], NDArray[np.floating]]:
    """Return the probability of the chosen class of each row, the most likely other, and its.

    Examples
    --------
    >>> likely, other, less_likely = two_best(np.array([[0.2, 0.7, 0.1]]), np.array([1]))
    >>> likely.tolist(), other.tolist(), less_likely.tolist()
    ([0.7], [0], [0.2])
    """
    every = np.arange(len(proba))
    likely = proba[every, best]
    others = proba.copy()
    others[every, best] = -1.0
    second = others.argmax(axis=1)
    # Of one class, there is no other.
    return likely, second, np.maximum(others[every, second], 0.0)


def classes_of_bags(
    bags: Bags, columns: NDArray[np.intp], is_labelled: NDArray[np.bool_], n_classes: int
) -> NDArray[np.bool_]:
    """Find the classes that labelled instances of each bag have, of shape (n_bags, n_classes)."""
    found = np.zeros((len(bags), n_classes), dtype=bool)
    bag_of_instance = np.repeat(np.arange(len(bags)), bags.sizes)
    found[bag_of_instance[is_labelled], columns[is_labelled]] = True
    return found


def most_likely_rows(
    proba: NDArray[np.floating],
    bags: Bags,
    tags: NDArray[np.bool_],
    groups: Groups | None = None,
) -> NDArray[np.bool_]:
    """Find the most likely instance of each of some tags, of shape (n_bags, n_classes).

    That of a group is the one that most probably has one of its classes.
    """
    wanted = [(b, [c]) for b, c in np.argwhere(tags).tolist()]
    if groups is not None:
        wanted += zip(groups.bags.tolist(), chain.from_iterable(groups.to_lists()), strict=True)
    found = np.zeros(len(proba), dtype=bool)
    for b, columns in wanted:
        first, last = bags.offsets[b], bags.offsets[b + 1]
        if first < last:
            found[first + proba[first:last, columns].sum(axis=1).argmax()] = True
    return found


class AnswersAtLevel:
    """Labels of instances at a level of a taxonomy, or at the lowest one that is sure enough."""

    def __init__(
        self, model: Any, level: str | None, back_off: float | None, n_instances: int
    ) -> None:
        self.ladder: Ladder = ladder_of(model)
        self.back_off = back_off
        self._names: NDArray[np.object_] | None = None
        if level is not None:
            n_columns = len(self.ladder.classes) + has_background(model)
            self._names, self._columns = self.ladder.columns_at(level, n_columns)
        self.label: NDArray[np.object_] = np.full(n_instances, None, dtype=object)
        self.second: NDArray[np.object_] = np.full(n_instances, None, dtype=object)
        self.probability: NDArray[np.float64] = np.zeros(n_instances)
        self.second_probability: NDArray[np.float64] = np.zeros(n_instances)
        self.entropy: NDArray[np.float64] = np.zeros(n_instances)
        self.is_unsure: NDArray[np.bool_] = np.zeros(n_instances, dtype=bool)

    def _chances(self, proba: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the probabilities of the names of the level, and last of the background."""
        assert self._names is not None, "there is a level"
        chances = np.zeros((len(proba), len(self._names)))
        np.add.at(chances.T, self._columns, proba.T)
        return chances

    def most_likely_classes(self, proba: NDArray[np.floating]) -> NDArray[np.intp]:
        """Return the most likely column of each instance, of its most likely name at the level."""
        if self._names is None:
            return proba.argmax(axis=1)
        most_likely = self._chances(proba).argmax(axis=1)[:, None]
        return np.where(self._columns == most_likely, proba, -1.0).argmax(axis=1)

    def add(
        self,
        rows: slice,
        proba: NDArray[np.floating],
        top: NDArray[np.intp],
        is_none: NDArray[np.bool_],
    ) -> None:
        """Answer for some instances, given their probabilities and what was chosen of them."""
        n_classes = len(self.ladder.classes)
        own = proba[:, :n_classes]
        if self._names is not None:
            chances, best = self._chances(proba), self._columns[top]
            likely, second, less_likely = two_best(chances, best)
            self.label[rows], self.second[rows] = self._names[best], self._names[second]
            self.entropy[rows] = np.where(is_none, 0.0, entr(chances).sum(axis=1) / np.log(2))
            if self.back_off is not None:
                self.is_unsure[rows] = likely < self.back_off
        else:
            self.label[rows], likely = self.ladder.backed_off(own, float(self.back_off or 0.0))
            self.is_unsure[rows] = [each is None for each in self.label[rows]]
            if proba.shape[1] > n_classes:
                likely = np.where(top < n_classes, likely, proba[:, -1])
            # What belongs to the label is no alternative to it.
            taken = np.arange(proba.shape[1]) == top[:, None]
            column_of = {name: column for column, name in enumerate(self.ladder.names)}
            backed = (~self.is_unsure[rows] & (top < n_classes)).nonzero()[0]
            columns = [column_of[name] for name in self.label[rows][backed]]
            taken[backed, :n_classes] = self.ladder.holds[:, columns].T
            others = np.where(taken, 0.0, proba)
            second, less_likely = others.argmax(axis=1), others.max(axis=1)
            self.second[rows] = np.array([*self.ladder.classes, None], dtype=object)[second]
        self.second_probability[rows] = np.where(is_none, 0.0, less_likely)
        self.second[rows][~(self.second_probability[rows] > 0)] = None
        self.probability[rows] = np.where(is_none, 1.0, likely)


def could_be_rare(
    model: Any,
    bags: Bags,
    labels: LabelSets,
    rare: NDArray[np.bool_],
    best: NDArray[np.intp],
) -> NDArray[np.bool_]:
    """Find the instances that could be that of a rare tag of their bag.

    These are the ones that got it, the most likely one, and all that would have it with at least
    `COULD_BE` if the model had learnt nothing of the class, so that it were equally likely
    everywhere. One or two bags cannot tell which of their instances has the class, and a model
    may have learnt the wrong one.
    """
    found = np.zeros(bags.n_instances, dtype=bool)
    is_asked = (labels.required & rare).any(axis=1) & (bags.sizes > 0)
    if not is_asked.any():
        return found
    asked, tags = bags[is_asked], labels.required[is_asked] & rare
    rows = np.repeat(is_asked, bags.sizes)
    proba = model.predict_instances_proba(asked)
    n_columns = proba.shape[1]
    # The background is optional in every bag, and never a tag.
    padding = (0, 0), (0, n_columns - len(rare))
    y = np.pad(labels.indicator[is_asked], padding, constant_values=-1)
    is_tag = np.repeat(np.pad(tags, padding), asked.sizes, axis=0)
    # A class that the model is certain of leaves nothing for the others.
    smallest = np.finfo(float).tiny
    rest = np.where(is_tag, 0.0, np.maximum(proba, smallest))
    left = 1 - is_tag.sum(axis=1, keepdims=True) / n_columns
    # All classes may be rare tags.
    whole = np.maximum(rest.sum(axis=1, keepdims=True), smallest)
    flat = np.where(is_tag, 1 / n_columns, rest / whole * left)
    with np.errstate(divide="ignore"):
        groups = None if labels.groups is None else labels.groups[is_asked].widened(n_columns)
        problem = UnionProblem(asked.offsets, y, groups=groups)
        inferred = problem.infer(np.log(flat), on_intractable="relax")
    could_be = np.where(is_tag, inferred.posterior, 0.0)
    found[rows] = (could_be >= COULD_BE).any(axis=1)
    found[rows] |= is_tag[np.arange(len(is_tag)), best[rows]]
    found[rows] |= most_likely_rows(could_be[:, : tags.shape[1]], asked, tags)
    return found


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


def column_texts(model: Any, labels: LabelSets | None) -> NDArray[np.object_]:
    """Return the columns of `told_probabilities` as text: the classes, then the background.

    It has a column too where a bag is said to hold none of the classes, and the model has none.
    """
    names = class_names(model).tolist()
    if labels is not None and not has_background(model) and hold_none(model, labels).any():
        names.append(None)
    return texts(names)


def told_probabilities(
    model: Any, bags: Bags, labels: LabelSets | None, n_columns: int
) -> NDArray[Any]:
    """Return probabilities of instances in so many columns, as tables and `column_texts` say them.

    All instances of a bag that is said to hold none of the classes are background.
    """
    proba = probabilities(model, bags, labels)
    if n_columns > proba.shape[1]:
        proba = np.pad(proba, ((0, 0), (0, n_columns - proba.shape[1])))
    if labels is not None:
        of_none = np.repeat(hold_none(model, labels), bags.sizes)
        proba[of_none] = np.arange(n_columns) == n_columns - 1
    return proba


def told_texts(model: Any, bags: Bags, labels: LabelSets) -> NDArray[np.object_]:
    """Return what `model.annotate` says as text; see `told_probabilities`."""
    found = texts(model.annotate(bags, labels))
    found[np.repeat(hold_none(model, labels), bags.sizes)] = BACKGROUND_NAME
    return found


def class_names(model: Any) -> NDArray[np.object_]:
    """Return the classes of the model's instance columns, as objects; None for the background."""
    return np.array(model.classes_.tolist() + [None] * has_background(model), dtype=object)


def has_background(model: Any) -> bool:
    """Return whether a model, or the last step of a pipeline, has a background class."""
    return getattr(model.model, "has_background_", False)


def blocks(bags: Bags, n_columns: int, most: int | None = None) -> list[tuple[int, int]]:
    """Cut bags into runs of about `BLOCK` instances each; fewer, if there are many classes."""
    n_instances = max(min(most or BLOCK, BLOCK_ENTRIES // max(n_columns, 1)), 1)
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
    """Return the labels of instances as text, and where they are known; None without any.

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
    """Return labels as text, as `class_text` does, in an array of objects."""
    return np.array([class_text(label) for label in labels], dtype=object)


def class_text(label: object) -> str:
    """Return a class as text in its normal spelling; the background has no name of its own."""
    return BACKGROUND_NAME if label is None else normal_spelling(str(label))
