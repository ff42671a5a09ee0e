"""Fits to bags on a cluster: each evaluation is sent to all partitions, and returns one sum."""

from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np
from distributed import Future

from unbag.fitting import Moments, Training
from unbag.fitting.objective import STEPS_AT_ONCE

from .bags import ClusterBags
from .partitions import PartitionProblem, answer, identity, problem_on_worker


class ClusterTraining(Training):
    """Bags on a cluster and their label sets, prepared for a solver.

    `map` is not used, because the parts are on workers. `on_bags_done` is called with the number of
    bags after each evaluation.

    Notes
    -----
    Partitions add their parts in order, and the tree adds its branches in order. The last digits of
    sums therefore depend on the partitions, but not on which worker computes what.
    """

    def __init__(
        self,
        bags: Any,
        *arguments: Any,
        map: Any = None,
        on_bags_done: Callable[[int], object] | None = None,
        **options: Any,
    ) -> None:
        self._on_cluster: ClusterBags = bags
        self._on_bags_done = on_bags_done
        self._problems: list[Future] | None = None
        self._n_relaxed = 0
        super().__init__(bags, *arguments, map=self._ask, **options)

    def moments(self, weighted: bool) -> Moments:
        """Compute mean and spread of the features of all bags."""
        (total,) = self._ask(methodcaller("moments", weighted), self._parts(self.chosen))
        return total

    def _learnt_scale(self, scaling):
        scale = super()._learnt_scale(scaling)
        if scale.centre is not None:
            # Parts of the current problems do not subtract the centre yet.
            self._problems = None
        return scale

    def _has_sparse_features(self):
        return self._on_cluster.is_sparse

    def _largest_feature(self):
        moments = self.moments(weighted=False)
        largest = np.maximum(-moments.low, moments.high)
        return int(largest.argmax()), largest.max()

    # A part represents all parts of a partition: its position, and a sample of its bags or None.

    def _parts(self, chosen, gather=False) -> list[Any]:
        own = self._on_cluster.split(chosen)
        return [(place, bags if gather else None) for place, bags in enumerate(own) if len(bags)]

    def _objective(self, parts):
        objective = super()._objective(parts)
        objective.steps_at_once = STEPS_AT_ONCE
        # They are lost with a worker, and the fit shall end with the same digits all the same.
        objective.moves_logits = False
        return objective

    def _ask(self, question, parts):
        """Evaluate a function on partitions, and return the sum of all results as the only one."""
        tasks = self._on_cluster.tasks
        problems = self._current_problems()
        places, samples = zip(*parts, strict=True)
        total = tasks.total(
            tasks.map(
                answer,
                [self._on_cluster.partitions[place] for place in places],
                [problems[place] for place in places],
                samples,
                question=tasks.submit(identity, question),
            )
        )
        if self._on_bags_done is not None:
            sizes = np.diff(self._on_cluster.firsts)
            self._on_bags_done(sum(int(sizes[place]) if sample is None else len(sample)
                            for place, sample in parts))  # fmt: skip
        return [total]

    def _current_problems(self) -> list[Future]:
        """Return the problem of each partition; a new one if labels have been relaxed since."""
        if self._problems is None or len(self.relaxed) > self._n_relaxed:
            chosen = self._on_cluster.split(self.chosen)
            self._problems = [
                self._on_cluster.tasks.submit(
                    problem_on_worker, partition, self._problem(place, own)
                )
                for place, (partition, own) in enumerate(
                    zip(self._on_cluster.partitions, chosen, strict=True)
                )
            ]
            self._n_relaxed = len(self.relaxed)
        return self._problems

    def _problem(self, place, chosen):
        first, last = self._on_cluster.firsts[place : place + 2].tolist()
        problem = self.problem.take(np.arange(first, last))
        if self.relaxed:
            labels = np.zeros(problem.y.shape, dtype=bool)
            for bag in self.relaxed.keys() & set(range(first, last)):
                labels[bag - first, self.relaxed[bag]] = True
            problem = problem.relaxed(labels)
        return PartitionProblem(
            first=first,
            y=problem.y,
            instance_labels=problem.instance_labels,
            chosen=chosen,
            weight=None if self.weight is None else self.weight[first:last],
            centre=self.scale.centre,
            method=self.method,
            make=self.part,
            groups=problem.groups,
        )
