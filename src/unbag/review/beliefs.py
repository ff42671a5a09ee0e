"""Posteriors of instances given the answers so far, and how much one more answer would change them.

    P(i, c)   posterior: the probability that instance i has class c, given the label set of its
              bag and all answers
    H(i)      entropy of P(i, .), in bits
    gain(i)   expected decrease of the sum of H over the bag when i is answered: the sum over j of
              H(j), less the sum over c of P(i, c) times the sum over j of H(j) if i is c

The gain is the sum over j of the mutual information of i and j. So it is at least H(i), since an
answer settles its own instance, and at most the sum over j of min(H(i), H(j)). This bound needs no
inference, and rules out almost all instances of a large table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

from unbag._messages import warn_caller
from unbag.annotations import hold_none
from unbag.bags import Bags, offsets_of
from unbag.estimators.answers import UnionClassifier
from unbag.estimators.contract import read_labels
from unbag.groups import runs
from unbag.labels import LabelSetsLike
from unbag.union import Inference, IntractableBagWarning, UnionProblem
from unbag.union.policy import describe_relaxed
from unbag.validation import check_known_background, known_columns

#: Answers that are less probable are not tried.
NEGLIGIBLE = 1e-3
#: Number of entries of log-priors in one inference: bags are copied, once for each answer.
ENTRIES_AT_ONCE = 2**21
#: Largest number of such entries in all: the most promising instances come first.
MOST_ENTRIES = 2**25


def entropy_in_bits(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entropy of each row in bits."""
    return entr(probability).sum(axis=1) / np.log(2)


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Posteriors of the instances of bags, with the priors and label sets to infer them again.

    `rates` are those of wrong labels, as `UnionProblem.infer` takes them. An instance is open if
    its label is not known and its bag may hold one of the classes.
    """

    posterior: NDArray[np.float64]
    log_prior: NDArray[np.float64]
    problem: UnionProblem
    rates: dict[str, Any]
    is_open: NDArray[np.bool_]

    @classmethod
    def of(cls, model: Any, bags: Bags, y: LabelSetsLike, known: ArrayLike | None) -> "Beliefs":
        """Infer with a fitted model, or the last step of a pipeline: see `innermost_model`."""
        if not hasattr(model, "annotate_proba"):
            raise ValueError(
                f"{type(model).__name__} gives instances no probabilities, and gains need them: "
                "use a model that does, such as ORLogisticRegression."
            )
        check_is_fitted(model)
        labels = read_labels(model, y, bags)
        pinned = known_columns(known, bags, model.classes_, labels)
        check_known_background(pinned, bags, len(model.classes_), model, model.has_background_)
        if isinstance(model, UnionClassifier):
            scores, given = model.instance_log_proba(bags), model.conditioner_
            problem, rates = given.problem(bags.offsets, labels, pinned), given.rates
            inferred, log_prior = given.infer(scores, problem), given.log_prior(scores, problem)
            if len(relaxed := np.flatnonzero(inferred.relaxed.any(axis=1))):
                warn_caller(describe_relaxed(relaxed), IntractableBagWarning)
            posterior = inferred.posterior
        else:
            # Instances are independent for such a model, as in bags whose classes are all optional.
            posterior, rates = model.annotate_proba(bags, labels, known), {}
            problem = UnionProblem(bags.offsets, np.full((len(bags), posterior.shape[1]), -1))
            with np.errstate(divide="ignore"):
                log_prior = np.log(posterior)
        is_open = np.ones(bags.n_instances, dtype=bool) if pinned is None else pinned < 0
        # There is nothing to ask about a bag without classes.
        is_open &= ~np.repeat(hold_none(model, labels), bags.sizes)
        return cls(posterior, log_prior, problem, rates, is_open)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each bag begins and ends."""
        return self.problem.offsets

    @cached_property
    def bag(self) -> NDArray[np.intp]:
        """The bag of each instance."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def best(self) -> NDArray[np.intp]:
        """The column of the most likely class of each instance."""
        return self.posterior.argmax(axis=1)

    @cached_property
    def entropy(self) -> NDArray[np.float64]:
        """Entropy of each posterior in bits; zero for instances that are not open."""
        return np.where(self.is_open, entropy_in_bits(self.posterior), 0.0)

    @cached_property
    def p_wrong(self) -> NDArray[np.float64]:
        """Probability that the most likely class of each instance is wrong."""
        likely = self.posterior[np.arange(len(self.best)), self.best]
        return np.where(self.is_open, np.clip(1.0 - likely, 0.0, 1.0), 0.0)

    @property
    def margin(self) -> NDArray[np.float64]:
        """Difference of the two highest probabilities of each instance."""
        if self.posterior.shape[1] == 1:
            return np.ones(len(self.posterior))
        two_best = np.partition(self.posterior, -2, axis=1)[:, -2:]
        return two_best[:, 1] - two_best[:, 0]

    # What an answer would change.

    def gain_bounds(self) -> NDArray[np.float64]:
        """Compute the upper bound of each instance's gain: the sum over j of min(H(i), H(j))."""
        sizes = np.diff(self.offsets)
        order = np.lexsort((self.entropy, self.bag))
        risen = self.entropy[order]
        before = np.concatenate([[0.0], np.cumsum(risen)])
        place = np.arange(len(order))
        smaller = before[place] - before[np.repeat(self.offsets[:-1], sizes)]
        n_others = np.repeat(self.offsets[1:], sizes) - place
        bound = np.empty(len(order))
        bound[order] = smaller + risen * n_others
        return bound

    def after_answers(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> "Beliefs":
        """Infer copies of bags, each with one more answer: that a row has the class of a column."""
        bags = self.bag[rows]
        copied, starts = self._copies(bags)
        own = starts[:-1] + rows - self.offsets[bags]
        log_prior = self.log_prior[copied]
        # Not pinned, since an answer may be a class that the label set lacks by mistake.
        answered = log_prior[own, columns]
        log_prior[own] = -np.inf
        log_prior[own, columns] = answered
        problem = self.problem.take(bags)
        found = problem.infer(
            log_prior, on_impossible="relax", on_intractable="relax", **self.rates
        )
        is_open = self.is_open[copied]
        is_open[own] = False
        return Beliefs(found.posterior, log_prior, problem, self.rates, is_open)

    def expected_effects(
        self, rows: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the expected gain of each answer by itself, and how many labels it changes."""
        # An answer settles its own instance.
        gain, n_changed = self.entropy[rows].copy(), self.p_wrong[rows].copy()
        places, columns = np.nonzero(self.posterior[rows] > NEGLIGIBLE)
        for part in self._batches(self.bag[rows[places]]):
            asked, place = rows[places[part]], places[part]
            after = self.after_answers(asked, columns[part])
            copied, starts = self._copies(self.bag[asked])
            is_other = copied != np.repeat(asked, np.diff(starts))
            drop = np.where(is_other, self.entropy[copied] - after.entropy, 0.0)
            flipped = after.is_open & (after.best != self.best[copied])
            chance = self.posterior[asked, columns[part]]
            np.add.at(gain, place, chance * np.add.reduceat(drop, starts[:-1]))
            np.add.at(n_changed, place, chance * np.add.reduceat(flipped * 1.0, starts[:-1]))
        # Others lose nothing, except by rounding and by negligible answers.
        return np.maximum(gain, self.entropy[rows]), n_changed

    def n_entries(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return how many entries of log-priors `expected_effects` infers from for each row."""
        n_answers = (self.posterior[rows] > NEGLIGIBLE).sum(axis=1)
        return np.diff(self.offsets)[self.bag[rows]] * n_answers * self.posterior.shape[1]

    # Tags.

    def presence(self, bags: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float64]:
        """Compute the probability that classes whose tags are unknown occur in bags."""
        presence = np.empty(len(bags))
        for part in self._batches(bags):
            copied, _ = self._copies(bags[part])
            whole = self.problem.take(bags[part]).infer(
                self.log_prior[copied], on_intractable="relax", **self.rates
            )
            without = self._without_class(bags[part], columns[part]).log_likelihood
            log_ratio = np.where(without > -np.inf, without - whole.log_likelihood, -np.inf)
            presence[part] = -np.expm1(np.minimum(log_ratio, 0.0))
        return presence

    def expected_effects_of_tags(
        self, bags: NDArray[np.intp], columns: NDArray[np.intp], presence: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gains and changes, as `expected_effects`, of answers whether bags hold classes."""
        gain, n_changed = np.zeros((2, len(bags)))
        for part in self._batches(bags):
            copied, starts = self._copies(bags[part])
            worlds = (
                self._with_class(bags[part], columns[part]).posterior,
                self._without_class(bags[part], columns[part]).posterior,
            )
            likely = np.repeat(presence[part], np.diff(starts))
            mixed, drop, flipped = np.zeros(worlds[0].shape), *np.zeros((2, len(copied)))
            for chance, posterior in zip((likely, 1.0 - likely), worlds, strict=True):
                mixed += chance[:, None] * posterior
                drop -= chance * _entropy_with_rest(posterior)
                flipped += chance * (posterior.argmax(axis=1) != self.best[copied])
            drop += _entropy_with_rest(mixed)
            is_open = self.is_open[copied]
            gain[part] = np.add.reduceat(np.where(is_open, drop, 0.0), starts[:-1])
            n_changed[part] = np.add.reduceat(np.where(is_open, flipped, 0.0), starts[:-1])
        return np.maximum(gain, 0.0), n_changed

    def _with_class(self, bags: NDArray[np.intp], columns: NDArray[np.intp]) -> Inference:
        """Infer copies of bags, each with one class that certainly occurs."""
        copied, _ = self._copies(bags)
        y, each = self.problem.y[bags], np.arange(len(bags))
        y[each, columns] = 1
        rates = dict(self.rates)
        if rates.get("false_rate") is not None:
            # This tag is not a mistake.
            rates["false_rate"] = np.tile(
                np.asarray(rates["false_rate"], dtype=float), (len(bags), 1)
            )
            rates["false_rate"][each, columns] = 0.0
        return self._problem(bags, y).infer(
            self.log_prior[copied], on_impossible="relax", on_intractable="relax", **rates
        )

    def _without_class(self, bags: NDArray[np.intp], columns: NDArray[np.intp]) -> Inference:
        """Infer copies of bags, each with one class that does not occur."""
        copied, starts = self._copies(bags)
        log_prior, y = self.log_prior[copied], self.problem.y[bags]
        log_prior[np.arange(len(copied)), np.repeat(columns, np.diff(starts))] = -np.inf
        # Optional, but no instance can have it: then no rate of wrong tags brings the class back.
        y[np.arange(len(bags)), columns] = -1
        return self._problem(bags, y).infer(log_prior, on_intractable="relax", **self.rates)

    # Copies of bags.

    def _copies(self, bags: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows of copies of bags, and the offsets of the copies."""
        sizes = np.diff(self.offsets)[bags]
        return runs(self.offsets[bags], sizes), offsets_of(sizes)

    def _problem(self, bags: NDArray[np.intp], y: NDArray[np.int8]) -> UnionProblem:
        """Return the problem of copies of bags that have other label sets."""
        copies = self.problem.take(bags)
        return UnionProblem(copies.offsets, y, copies.instance_labels, copies.groups)

    def _batches(self, bags: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Yield positions in `bags`, as many at a time as `ENTRIES_AT_ONCE` allows."""
        entries = np.cumsum(np.diff(self.offsets)[bags]) * self.posterior.shape[1]
        cuts = np.flatnonzero(np.diff(entries // ENTRIES_AT_ONCE)) + 1
        yield from (part for part in np.split(np.arange(len(bags)), cuts) if len(part))


def _entropy_with_rest(posterior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return entropies in bits of rows that may sum to less than 1: the rest is one more class."""
    rest = np.clip(1.0 - posterior.sum(axis=1, keepdims=True), 0.0, 1.0)
    return entropy_in_bits(np.hstack([posterior, rest]))
