"""Bags on disk as the source of a fit: each question reads their features again, block by block."""

import operator
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.fitting import BagSource
from unbag.fitting.linear import Question
from unbag.fitting.parts import PartMaker
from unbag.tables.stored import StoredBags


class BlockSource(BagSource):
    """Bags of a Parquet set; `on_bags_done` is called with the number of bags of each block."""

    def __init__(self, stored: StoredBags, on_bags_done: Callable[[int], object]) -> None:
        self.stored = stored
        self.on_bags_done = on_bags_done
        self.offsets, self.ids = stored.offsets, stored.ids
        self.feature_names, self.dtype = stored.feature_names, stored.dtype
        self.n_features: int = stored.n_features

    def parts(self, maker: PartMaker, map: Callable[..., Any]) -> "PartsOnDisk":
        """Cut the bags into the same parts as in memory; those of a block are read together."""
        runs = [own for own in maker.runs(self.n_features) if len(own)]
        block = self.stored.block_of(np.array([own[0] for own in runs], dtype=np.intp))
        pairs = groupby(zip(block.tolist(), runs, strict=True), lambda pair: pair[0])
        return PartsOnDisk(self, [[own for _, own in each] for _, each in pairs], maker, map)

    def sample(self, n_bytes: int) -> tuple[Bags, NDArray[np.intp]]:
        """Read some blocks, spread over all; return their bags and the positions of these."""
        return self.stored.sample(n_bytes)


@dataclass(frozen=True, eq=False)
class PartsOnDisk:
    """Parts that are made when their features have been read, and forgotten after each answer.

    While the parts of a block are asked, the next block is read: memory holds a few blocks.
    """

    source: BlockSource
    blocks: list[list[NDArray[np.intp]]]
    maker: PartMaker
    map: Callable[..., Any]

    def sum(self, question: Question) -> Any:
        """Ask every part, and add the answers in order."""
        return reduce(operator.add, self._answers(question))

    def _answers(self, question: Question) -> Iterator[Any]:
        """Yield the answers of all parts in order."""
        stored = self.source.stored
        reader = stored.reader()

        def read(block):
            first = int(block[0][0])
            return int(stored.offsets[first]), reader.read(first, int(block[-1][-1]) + 1)

        waiting: Iterator[Any] = iter(())
        with ThreadPoolExecutor(1, thread_name_prefix="unbag-reading") as thread:
            coming = thread.submit(read, self.blocks[0])
            for block, following in zip(self.blocks, [*self.blocks[1:], None], strict=True):
                first_row, X = coming.result()
                if following is not None:
                    coming = thread.submit(read, following)

                def answer(own, X=X, first_row=first_row):
                    return question(self.maker.part(X, own, first_row))

                # Threads start with this block before the answers of the last one are collected.
                answers = self.map(answer, block)
                yield from waiting
                waiting = self._counted(answers, block)
            yield from waiting

    def _counted(self, answers, block):
        """Yield the answers of a block, and then count its bags as done."""
        yield from answers
        self.source.on_bags_done(sum(map(len, block)))
