"""Networks that learn from bags on disk, whose features are read block by block.

Blocks come in random order, shuffled again when all have been used. A few blocks are in memory at a
time, and their bags form random batches; the bags that are left over join the next blocks. The next
block is read during training.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from unbag.bags import Bags, offsets_of
from unbag.fitting import BagSource, StreamedTraining
from unbag.fitting.parts import rows_of
from unbag.groups import Groups
from unbag.labels import LabelSets
from unbag.union import IntractableBagError, UnionProblem
from unbag.validation import all_or_nothing

from .batches import (
    Batch,
    LearningBags,
    Settings,
    bags_per_batch,
    bounded_scores,
    permuted,
)
from .network import MemberNetworks

#: Blocks that are shuffled together.
N_SHUFFLED = 4


class StoredLearningBags:
    """Bags on disk that networks learn from.

    `problem` and `weight` are for all bags, and `chosen` are the positions of the bags to learn
    from, in ascending order. `inputs` converts features to inputs in float32. `on_bags_done` is
    called with the number of bags of each step. There is no teacher: its probabilities would take
    more space than the features.
    """

    def __init__(
        self,
        source: BagSource,
        problem: UnionProblem,
        chosen: np.ndarray,
        weight: np.ndarray | None,
        background: bool,
        inputs: Callable[[np.ndarray], np.ndarray],
        device: torch.device,
        on_bags_done: Callable[[int], object] | None = None,
    ) -> None:
        self.source = source
        self.problem = problem
        self.weight = weight
        self.background = background
        self.device = device
        self.teacher: np.ndarray | None = None
        self.n_bags: int = len(chosen)
        self.n_instances: int = int(source.sizes[chosen].sum())
        self._inputs = inputs
        self._on_bags_done = on_bags_done
        cuts = np.flatnonzero(np.diff(source.block_of(chosen))) + 1
        #: The bags of each block.
        self.blocks: list[np.ndarray] = np.split(chosen, cuts)

    def first_inputs(self) -> torch.Tensor:
        """Read a block, and return the inputs of its first two instances."""
        first = next((own for own in self.blocks if self.source.sizes[own].any()), self.blocks[0])
        return self._read(self.source.reader(), first).X[:2].to(self.device)

    def features(self, own: np.ndarray, reader: Any) -> Bags:
        """Read the bags of a block."""
        offsets = self.source.offsets
        rows, start = rows_of(own, offsets), int(offsets[own[0]])
        X = reader.read(int(own[0]), int(own[-1]) + 1)
        if isinstance(rows, slice):
            rows = slice(rows.start - start, rows.stop - start)
        else:
            rows = rows - start
        return Bags(X[rows], offsets_of(self.source.sizes[own]))

    def label_sets(self, own: np.ndarray) -> UnionProblem:
        """Return the label sets of the bags of a block."""
        return self.problem.take(own)

    def _read(self, reader, own) -> LearningBags:
        """Read a block into the memory of the CPU."""
        bags, problem = self.features(own, reader), self.label_sets(own)
        weight = None if self.weight is None else self.weight[own]
        # Ids are only looked up for messages.
        return LearningBags.of(
            torch.from_numpy(self._inputs(bags.X)), problem, self.background, weight, own
        )

    def batches(
        self, network: MemberNetworks, settings: Settings, generator: torch.Generator
    ) -> Iterator[Batch]:
        """Yield the bags of each step: all of them, or some from a few blocks."""
        n_together = bags_per_batch(self, network, settings)
        if n_together >= self.n_bags:
            reader = self.source.reader()
            whole = joined([self._read(reader, own) for own in self.blocks])
            whole = replace(whole, X=whole.X.to(self.device))
            batch = Batch(whole, settings)
            while True:
                yield self._counted(batch)
        waiting: list[LearningBags] = []
        for block in self._blocks_in_turn(generator):
            waiting.append(block)
            n_waiting = sum(each.n_bags for each in waiting)
            if len(waiting) < min(N_SHUFFLED, len(self.blocks)) or n_waiting < n_together:
                continue
            pool = joined(waiting)
            order = permuted(n_waiting, generator)
            rest = n_waiting % n_together
            for start in range(0, n_waiting - rest, n_together):
                chosen = np.sort(order[start : start + n_together])
                bags = pool.chosen(chosen)
                bags = replace(bags, X=bags.X.to(self.device))
                yield self._counted(Batch(bags, settings))
            waiting = [pool.chosen(np.sort(order[n_waiting - rest :]))] if rest else []

    def _counted(self, batch):
        if self._on_bags_done is not None:
            self._on_bags_done(batch.bags.n_bags)
        return batch

    def _blocks_in_turn(self, generator) -> Iterator[LearningBags]:
        """Yield blocks in random order, endlessly; the next one is read in the background."""
        reader = self.source.reader()

        def places():
            while True:
                yield from permuted(len(self.blocks), generator).tolist()

        coming = places()
        with ThreadPoolExecutor(1, thread_name_prefix="unbag-reading") as thread:
            reading = thread.submit(self._read, reader, self.blocks[next(coming)])
            while True:
                found = reading.result()
                reading = thread.submit(self._read, reader, self.blocks[next(coming)])
                yield found


def joined(parts: list[LearningBags]) -> LearningBags:
    """Concatenate bags of several blocks."""
    first = parts[0]

    def together(name):
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    groups = None
    if any(part.groups is not None for part in parts):
        n_classes = first.targets.shape[1]
        of_parts = [part.groups or Groups.none(part.n_bags, n_classes) for part in parts]
        groups = Groups.stacked(of_parts, n_classes)
    return replace(
        first,
        X=torch.cat([part.X for part in parts]),
        offsets=offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
        groups=groups,
        **{name: together(name) for name in ("targets", "pins", "weight", "ids")},
    )


@torch.inference_mode(False)
@torch.enable_grad()
@all_or_nothing
def fit_stored_network(
    model: Any,
    bags: BagSource,
    labels: LabelSets,
    *,
    instance_labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    watch: Callable[[int, float], object] | None = None,
    on_bags_done: Callable[[int], object] | None = None,
) -> Any:
    """Fit networks to bags on disk, as `ORNetwork.fit` does in memory; return the model.

    `watch` is called as ``watch(iteration, log_likelihood)`` after each step, instead of the
    callback of the model, and `on_bags_done` with the number of bags of the step.

    Notes
    -----
    If one batch contains all bags, the model is the same as in memory. ``background="auto"`` and
    the quantiles of an `encoding` are learnt from a sample of the bags.
    """
    if model.distill:
        raise ValueError(
            f"distill={model.distill} needs the predictions for all instances at once, which are "
            "not kept out of core: use distill=0, or fit in memory."
        )
    given = model._begin(bags, labels, instance_labels, sample_weight, make=StreamedTraining)
    start, bags, problem, used, weight, noise = given
    learning = StoredLearningBags(
        bags,
        problem,
        np.flatnonzero(used),
        weight,
        model.has_background_,
        lambda X: model._inputs(X, np.float32),
        model._device(),
        on_bags_done,
    )
    try:
        model._learn(learning, start, noise, watch)
        model.log_likelihood_ = log_likelihood_of_blocks(model, learning)
    except IntractableBagError as error:
        raise error.with_ids(bags.ids) from None
    return model


def log_likelihood_of_blocks(model: Any, bags: StoredLearningBags) -> float:
    """Compute the likelihood of the training bags, block by block."""
    total, reader = 0.0, bags.source.reader()
    for own in bags.blocks:
        scores = bounded_scores(model._label_scores(bags.features(own, reader)))
        problem = bags.label_sets(own)
        try:
            inferred = problem.infer(
                model._charged(scores, problem),
                on_intractable=model.on_intractable,
                **model._rates(),
            )
        except IntractableBagError as error:
            raise error.with_ids(own) from None
        weight = np.ones(len(own)) if bags.weight is None else bags.weight[own]
        total += float(inferred.log_likelihood @ weight)
    return total
