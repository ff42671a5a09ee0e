"""Fits to bags whose features are read anew at each question, a block at a time.

The parts, and with them the order of all sums, are those of a fit in memory. They are made when
their features have come, and forgotten when they have answered; the next block is read meanwhile.
So memory holds a few blocks, whatever there is on disk.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import groupby
from operator import add, methodcaller
from typing import Any, Protocol

import numpy as np

from unbag.bags import Bags, offsets_of
from unbag.labels import LabelSets
from unbag.union import UnionProblem

from .objective import Objective, Training
from .parts import Part, rows_of, runs_of_bags
from .statistics import Moments

#: Steps of a search that are asked for together: on the way down from four times the last good one.
STEPS_AT_ONCE = 4
#: Bytes of features of the bags by which `background="auto"` is decided.
SAMPLE_BYTES = 64 << 20


class Reader(Protocol):
    """Reads features of bags."""

    def read(self, first: int, last: int) -> np.ndarray:
        """Return the features of the bags from `first` to before `last`."""
        ...


class BagSource(Protocol):
    """Bags whose features are not in memory, but all else is; `unbag.io.stored` has one in files.

    Attributes
    ----------
    offsets : ndarray of int of shape (n_bags + 1,)
    ids : ndarray of shape (n_bags,)
    feature_names : ndarray of shape (n_features,) or None
    dtype : numpy.dtype
        Of the features, which are dense.
    n_features, n_instances : int
    """

    offsets: np.ndarray
    feature_names: Any
    dtype: np.dtype

    @property
    def ids(self) -> np.ndarray:
        """Names of the bags."""
        ...

    @property
    def sizes(self) -> np.ndarray:
        """Number of instances in each bag."""
        ...

    @property
    def n_features(self) -> int:
        """Number of features of an instance."""
        ...

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags together."""
        ...

    def __len__(self) -> int: ...

    def block_of(self, bags: np.ndarray) -> np.ndarray:
        """Return which block each of some bags begins in; those of one are read together."""
        ...

    def reader(self) -> Reader:
        """Return a reader for one pass."""
        ...

    def sample(self, n_bytes: int) -> tuple[Bags, np.ndarray]:
        """Read some bags, spread over all, into memory; and their places, ascending."""
        ...


def sampled(
    bags: BagSource, labels: LabelSets, pinned: np.ndarray | None, weight: np.ndarray | None
) -> tuple[Bags, LabelSets, np.ndarray | None, np.ndarray | None]:
    """Read some bags into memory, `SAMPLE_BYTES` of them, with what is known of these.

    Parameters
    ----------
    bags : BagSource
    labels : LabelSets
        Of all bags.
    pinned : ndarray of int of shape (n_instances,) or None
    weight : ndarray of shape (n_bags,) or None

    Returns
    -------
    bags, labels, pinned, weight
        Of the sample.
    """
    found, places = bags.sample(SAMPLE_BYTES)
    if pinned is not None:
        within = np.zeros(len(bags), dtype=bool)
        within[places] = True
        pinned = pinned[np.repeat(within, bags.sizes)]
    return found, labels[places], pinned, None if weight is None else weight[places]


class StreamedTraining(Training):
    """Bags that are read block by block, and their label sets, as a solver needs them.

    Parameters
    ----------
    bags : BagSource
    problem, used, weight, scale, scaling, method, noise, **options
        As in `Training`.
    map : callable
        Runs the parts of a block: Python's own, or one on several threads.
    on_bags_done : callable, optional
        Called with a number of bags each time that so many more have answered.

    Notes
    -----
    An iteration of L-BFGS reads the features once for each evaluation, about once. One of EM does
    so twice, and infers twice: posteriors of all bags would take more room than their features.
    A sample of the "stochastic" solver is one of blocks, in an order that is shuffled each time
    that all have had their turn.
    """

    def __init__(
        self,
        bags: Any,
        *arguments: Any,
        map: Callable[..., Any] = map,
        on_bags_done: Callable[[int], object] | None = None,
        **options: Any,
    ) -> None:
        self._source: BagSource = bags
        self._run = map
        self._on_bags_done = on_bags_done
        self._sizes: np.ndarray = bags.sizes
        self._unseen: list[int] = []
        super().__init__(bags, *arguments, map=self._stream, **options)

    def moments(self, weighted: bool) -> Moments:
        """Compute mean and spread of the features of all bags, in one pass."""
        ask = methodcaller("moments", weighted)
        return reduce(add, self._stream(ask, self._parts(self.chosen), make=Part))

    def _has_sparse_features(self):
        return False

    def _largest_feature(self):
        moments = self.moments(weighted=False)
        largest = np.maximum(-moments.low, moments.high)
        return int(largest.argmax()), largest.max()

    # Parts are told by their bags alone, until their features come.

    def _parts(self, chosen, gather=False) -> list[Any]:
        n_weights = int(np.prod(self.shape))
        return runs_of_bags(chosen, self._sizes, n_weights)

    def _objective(self, parts):
        objective = super()._objective(parts)
        objective.steps_at_once = STEPS_AT_ONCE
        return objective

    def _stream(self, question, parts, make=None):
        """Put a question to all parts, block by block, and give the answers in their order."""
        if make is None:
            make = Part if self.noise is None else self.noise.part
        blocks = self._blocks(parts)
        waiting: Iterable[Any] = ()
        for own, (first, X) in zip(blocks, self._features(blocks), strict=True):

            def answer(bags, first=first, X=X):
                return question(self._part(bags, first, X, make))

            # Threads begin with this block before the answers of the last one are taken.
            answers = self._run(answer, own)
            yield from waiting
            waiting = self._counted(answers, own)
        yield from waiting

    def _counted(self, answers, own):
        yield from answers
        if self._on_bags_done is not None:
            self._on_bags_done(sum(map(len, own)))

    def _blocks(self, parts) -> list[list[np.ndarray]]:
        filled = [bags for bags in parts if len(bags)]
        block = self._source.block_of(np.array([bags[0] for bags in filled], dtype=np.intp))
        pairs = zip(block.tolist(), filled, strict=True)
        return [[bags for _, bags in group] for _, group in groupby(pairs, lambda pair: pair[0])]

    def _features(self, blocks) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first bag and the features of each block, while the next one is read."""
        reader = self._source.reader()

        def read(block):
            first = int(block[0][0])
            return first, reader.read(first, int(block[-1][-1]) + 1)

        with ThreadPoolExecutor(1, thread_name_prefix="unbag-reading") as thread:
            coming = [thread.submit(read, block) for block in blocks[:1]]
            for block in [*blocks[1:], None]:
                if coming:
                    found = coming.pop().result()
                    if block is not None:
                        coming.append(thread.submit(read, block))
                    yield found

    def _part(self, own, first, X, make):
        y = self.problem.y[own]
        for b in self.relaxed.keys() & set(own.tolist()) if self.relaxed else ():
            y[np.searchsorted(own, b), self.relaxed[b]] = -1
        offsets, pinned = self.bags.offsets, self.problem.instance_labels
        rows = rows_of(own, offsets)
        pinned = None if pinned is None else pinned[rows]
        start = int(offsets[first])
        if isinstance(rows, slice):
            rows = slice(rows.start - start, rows.stop - start)
        else:
            rows -= start
        problem = UnionProblem(offsets_of(self._sizes[own]), y, pinned)
        weight = None if self.weight is None else self.weight[own]
        return make(X, rows, own, problem, weight, self.scale.centre, self.method)

    def sample(self, fraction: float, rng: np.random.RandomState) -> Objective:
        """Return the objective over some blocks of the bags, the next ones in a shuffled order.

        Parameters
        ----------
        fraction : float
            Share of the bags to take; of the last block, only so many parts are.
        rng : RandomState

        Returns
        -------
        Objective
        """
        blocks = self._blocks(self._parts(self.chosen))
        wanted = max(1, round(fraction * len(self.chosen)))
        taken: dict[int, list[np.ndarray]] = {}
        n_taken = 0
        while n_taken < wanted:
            if not self._unseen:
                self._unseen = rng.permutation(len(blocks)).tolist()
            block = self._unseen.pop()
            for part in rng.permutation(len(blocks[block])) if block not in taken else ():
                if n_taken < wanted:
                    taken.setdefault(block, []).append(blocks[block][part])
                    n_taken += len(blocks[block][part])
        parts = [bags for each in taken.values() for bags in each]
        objective = self._objective(sorted(parts, key=lambda bags: bags[0]))
        objective.bear(n_taken / len(self.chosen))
        return objective
