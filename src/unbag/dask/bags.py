"""Bags on the workers of a cluster, as the client knows them, and as the source of a fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from unbag._files import check
from unbag._messages import listed
from unbag.bags import Bags, joined, offsets_of
from unbag.fitting import BagSource
from unbag.fitting.linear import Question
from unbag.fitting.parts import PartMaker
from unbag.labels import LabelSets

from .clusters import Tasks
from .partitions import Description, answer, describe, identity, maker_on_worker, some_bags
from .sources import check_bags_not_split


class ClusterBags(BagSource):
    """Bags whose features are on workers; the client knows their sizes, ids and labels.

    A partition is the future of a `Partition`, or of None if it is empty. Empty partitions are left
    out; `places` are the positions of the others. `firsts` are the positions of the first bag of
    each partition among all bags, followed by the number of bags. Bags of a table `have_ids`; those
    of pairs may be numbered, each partition from 0 on.
    """

    #: Called with the number of bags each time that a question has been answered.
    on_bags_done: Callable[[int], object] | None = None

    def __init__(self, tasks: Tasks, partitions: list[Future], have_ids: bool = False) -> None:
        self.tasks = tasks
        found = tasks.results(tasks.map(describe, partitions))
        self.places: list[int] = [i for i, each in enumerate(found) if each is not None]
        check(self.places, "There are no bags: all partitions are empty.")
        self.partitions: list[Future] = [partitions[i] for i in self.places]
        self.descriptions: list[Description] = [found[i] for i in self.places]
        first = self.descriptions[0]
        self.feature_names: Any = first.feature_names
        self.n_features: int = first.n_features
        self.dtype: np.dtype = first.dtype
        self.is_sparse: bool = first.is_sparse
        for place, each in zip(self.places, self.descriptions, strict=True):
            check_same_features(f"Partition {place}", each, f"partition {self.places[0]}", first)
        sizes = [each.sizes for each in self.descriptions]
        self.offsets: NDArray[np.intp] = offsets_of(np.concatenate(sizes))
        self.firsts: NDArray[np.intp] = offsets_of([len(each) for each in sizes])
        self.ids: NDArray[Any] = self._joined_ids(have_ids)

    def _joined_ids(self, have_ids):
        own = [each.ids for each in self.descriptions]
        # Bags without ids are numbered.
        if not have_ids and all(np.array_equal(ids, np.arange(len(ids))) for ids in own):
            return np.arange(len(self))
        check_bags_not_split([ids.tolist() for ids in own], self.places)
        return joined(own)

    @property
    def known(self) -> NDArray[Any] | None:
        """Labels of instances that people gave, None where there is none, if there are any."""
        known = [each.known for each in self.descriptions if each.known is not None]
        labels = joined(known) if known else np.empty(0, object)
        return labels if any(label is not None for label in labels) else None

    def split(self, bags: np.ndarray) -> list[NDArray[np.intp]]:
        """Return the bags of each partition among some bags in ascending order."""
        own = np.split(bags, np.searchsorted(bags, self.firsts[1:-1]))
        return [each - first for each, first in zip(own, self.firsts[:-1], strict=True)]

    def parts(self, maker: PartMaker, map: Callable[..., Any]) -> "PartsOnWorkers":
        """Send what makes the parts of each partition to the worker that holds it."""
        places, makers = [], []
        for place, chosen in enumerate(self.split(maker.chosen)):
            if len(chosen):
                first, last = self.firsts[place : place + 2].tolist()
                own = replace(
                    maker,
                    problem=maker.problem.take(np.arange(first, last)),
                    chosen=chosen,
                    weight=None if maker.weight is None else maker.weight[first:last],
                )
                places.append(place)
                makers.append(self.tasks.submit(maker_on_worker, self.partitions[place], own))
        return PartsOnWorkers(self, places, makers)

    def sample(self, n_bytes: int) -> tuple[Bags, NDArray[np.intp]]:
        """Fetch a sample of bags, spread evenly over all, and return it with its positions.

        Their features take about `n_bytes`; if all bags take less, all are fetched.
        """
        n_all = self.n_instances * self.n_features * self.dtype.itemsize
        n_bags = max(int(min(n_bytes / max(n_all, 1), 1.0) * len(self)), 1)
        places = np.linspace(0, len(self) - 1, n_bags).round().astype(np.intp)
        found = self.tasks.results(self.tasks.map(some_bags, self.partitions, self.split(places)))
        return Bags.concatenate(found, self.ids[places]), places


@dataclass(frozen=True, eq=False)
class PartsOnWorkers:
    """Parts of the bags of some partitions, which stay on the workers.

    Partitions add the answers of their parts in order, and the tree adds its branches in order. The
    last digits of sums therefore depend on the partitions, but not on which worker computes what.
    """

    bags: ClusterBags
    places: list[int]
    makers: list[Future]

    def sum(self, question: Question) -> Any:
        """Ask every part, and add the answers on the workers."""
        bags, tasks = self.bags, self.bags.tasks
        answers = tasks.map(
            answer,
            [bags.partitions[place] for place in self.places],
            self.makers,
            bags.firsts[self.places].tolist(),
            question=tasks.submit(identity, question),
        )
        total = tasks.total(answers)
        if bags.on_bags_done is not None:
            bags.on_bags_done(int(np.diff(bags.firsts)[self.places].sum()))
        return total


def check_same_features(name: str, own: Description, other_name: str, other: Description) -> None:
    """Raise an error unless two partitions have the same features, of the same type."""
    check(
        own.n_features == other.n_features,
        f"{name} has {own.n_features} features, but {other_name} has {other.n_features}: "
        "all partitions need the same columns.",
    )
    names, expected = ([] if each.feature_names is None else each.feature_names.tolist()
                       for each in (own, other))  # fmt: skip
    check(
        names == expected,
        f"{name} has the columns {listed(names) or 'without names'}, but {other_name} has "
        f"{listed(expected) or 'columns without names'}: all partitions need the same columns in "
        "the same order.",
    )
    check(
        (own.dtype, own.is_sparse) == (other.dtype, other.is_sparse),
        f"{name} has {'sparse ' * own.is_sparse}features of {own.dtype}, but {other_name} has "
        f"{'sparse ' * other.is_sparse}ones of {other.dtype}: all partitions need the same type.",
    )


# Labels.


def joined_labels(bags: ClusterBags) -> Any:
    """Join the labels of pairs, in a form that a fit accepts."""
    own = [each.labels for each in bags.descriptions]
    first, place_of_first = own[0], bags.places[0]
    for place, each in zip(bags.places, own, strict=True):
        check(each is not None, f"Partition {place} has no labels to fit to.")
        check(
            type(each) is type(first),
            f"Partition {place} has {label_type(each)}, but partition {place_of_first} has "
            f"{label_type(first)}: all partitions need labels of the same type.",
        )
        found, expected = classes_of(each), classes_of(first)
        check(
            found == expected,
            f"Partition {place} has the classes {listed(found)}, but partition {place_of_first} "
            f"has {listed(expected)}: indicators need the same columns in all partitions. Lists of "
            "sets may have different classes.",
        )
    if isinstance(first, LabelSets):
        return LabelSets.stacked(own, first.classes)
    if isinstance(first, np.ndarray):
        return np.concatenate(own)
    return [label for each in own for label in each]


def classes_of(labels: Any) -> Sequence[Any]:
    """Return the classes of the columns of an indicator; empty for lists of sets."""
    if isinstance(labels, LabelSets):
        return labels.classes.tolist()
    return range(labels.shape[1]) if isinstance(labels, np.ndarray) else ()


def label_type(labels: Any) -> str:
    """Describe the type of labels for a message."""
    forms = {LabelSets: "LabelSets", np.ndarray: "an indicator"}
    return forms.get(type(labels), "a list of labels")
