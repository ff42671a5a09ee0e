"""What a model believes of every instance, given the answers so far, and what answers change.

    P(i, c)   posterior: the probability that instance i is of class c, given the label set of its
              bag and all answers
    H(i)      entropy of P(i, .), in bits
    gain(i)   expected drop of the sum of H over the bag when i is answered: the sum over j of H(j),
              less the sum over c of P(i, c) times the sum over j of H(j) if i is c

The gain is the sum over j of the mutual information of i and j. So it lies between H(i), since i
tells all of itself, and the sum over j of min(H(i), H(j)). That bound takes no inference, and is
enough to leave out almost all instances of a large table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from unbag.annotations import hold_none
from unbag.bags import Bags, offsets_of
from unbag.estimators.instances import UnionClassifier
from unbag.labels import LabelSetsLike
from unbag.union import Inference, UnionProblem

#: Answers that are less probable than that are not tried out.
NEGLIGIBLE = 1e-3
#: So many entries of log-priors, copied for one answer after another, are inferred from at once.
ENTRIES_AT_ONCE = 2**21
#: Entries that one call may infer from in all: the most promising instances come first.
MOST_ENTRIES = 2**25


def bits(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entropy of each row in bits.

    Examples
    --------
    >>> bits(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    return entr(probability).sum(axis=1) / np.log(2)


@dataclass(frozen=True, eq=False)
class Beliefs:
    """The posteriors of some bags' instances, and what is needed to infer them again.

    Attributes
    ----------
    offsets : ndarray of int of shape (n_bags + 1,)
    posterior : ndarray of shape (n_instances, n_columns)
        One column more than there are classes where the model has a background.
    is_open : ndarray of bool of shape (n_instances,)
        Whether there is something to ask: no answer yet, and not in a bag that is said to hold none
        of the classes.
    scores : ndarray of shape (n_instances, n_columns)
        Log-priors.
    problem : UnionProblem
        What ties the instances of a bag together.
    rates : dict
        How often label sets are wrong, as `unbag.union.infer` takes it.
    """

    offsets: NDArray[np.intp]
    posterior: NDArray[np.float64]
    is_open: NDArray[np.bool_]
    scores: NDArray[np.float64]
    problem: UnionProblem
    rates: dict[str, Any]

    @classmethod
    def of(cls, model: Any, bags: Bags, y: LabelSetsLike, known: ArrayLike | None) -> "Beliefs":
        """Ask a fitted model, which is no pipeline: see `innermost_model`."""
        if not hasattr(model, "annotate_proba"):
            raise ValueError(
                f"{type(model).__name__} gives instances no probabilities, so nobody can say what "
                "is worth asking: use a model that does, such as ORLogisticRegression."
            )
        if isinstance(model, UnionClassifier):
            scores, problem = model._annotation_problem(bags, y, known)
            posterior, rates = model._conditioned(scores, problem), model._rates()
            pinned = problem.instance_labels
        else:
            # An answer tells nothing of other instances: they are as independent as in bags whose
            # classes are all optional.
            posterior, rates = model.annotate_proba(bags, y, known), {}
            problem = UnionProblem(bags.offsets, np.full((len(bags), posterior.shape[1]), -1))
            with np.errstate(divide="ignore"):
                scores = np.log(posterior)
            pinned = model._read_instance_labels(known, bags)
        is_open = np.ones(bags.n_instances, dtype=bool) if pinned is None else pinned < 0
        # In a bag of no class there is nothing to ask.
        is_open &= ~np.repeat(hold_none(model, model._read_labels(y, bags)), bags.sizes)
        return cls(bags.offsets, posterior, is_open, scores, problem, rates)

    @cached_property
    def bag(self) -> NDArray[np.intp]:
        """The bag of each instance."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def best(self) -> NDArray[np.intp]:
        """The column of the likeliest class of each instance."""
        return self.posterior.argmax(axis=1)

    @cached_property
    def entropy(self) -> NDArray[np.float64]:
        """Of each instance, in bits; zero where nothing is open."""
        return np.where(self.is_open, bits(self.posterior), 0.0)

    @cached_property
    def p_wrong(self) -> NDArray[np.float64]:
        """The probability that the likeliest class of each instance is wrong."""
        likely = self.posterior[np.arange(len(self.best)), self.best]
        return np.where(self.is_open, np.clip(1.0 - likely, 0.0, 1.0), 0.0)

    @property
    def margin(self) -> NDArray[np.float64]:
        """Probability of the likeliest class of each instance, less that of the next."""
        if self.posterior.shape[1] == 1:
            return np.ones(len(self.posterior))
        two_best = np.partition(self.posterior, -2, axis=1)[:, -2:]
        return two_best[:, 1] - two_best[:, 0]

    # What an answer would change.

    def most_gains(self) -> NDArray[np.float64]:
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

    def answers(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the answers that are worth trying out: places in `rows`, and columns."""
        places, columns = np.nonzero(self.posterior[rows] > NEGLIGIBLE)
        return places, columns

    def after(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> "Beliefs":
        """Infer what is believed after an answer: copies of bags, each with one more answer.

        Parameters
        ----------
        rows : ndarray of int of shape (n,)
            The instance that is answered in each copy.
        columns : ndarray of int of shape (n,)
            Its class.

        Returns
        -------
        Beliefs
            Of n bags. The answered instances are no longer open.
        """
        bags = self.bag[rows]
        copied, starts = self._copies(bags)
        own = starts[:-1] + rows - self.offsets[bags]
        scores = self.scores[copied]
        # Not pinned: an answer may be a class of which the label set says that it was missed.
        answered = scores[own, columns]
        scores[own] = -np.inf
        scores[own, columns] = answered
        problem = self._problem(bags, self.problem.y[bags])
        found = problem.infer(scores, on_impossible="relax", on_intractable="relax", **self.rates)
        is_open = self.is_open[copied]
        is_open[own] = False
        return Beliefs(starts, found.posterior, is_open, scores, problem, self.rates)

    def expected(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute what answers are expected to change, each of them by itself.

        Parameters
        ----------
        rows : ndarray of int of shape (n,)
            The instances that are asked.

        Returns
        -------
        gain : ndarray of shape (n,)
            Expected drop of the sum of entropies in the bag, in bits.
        n_changed : ndarray of shape (n,)
            Expected number of instances whose likeliest class becomes another one.
        """
        # Of itself, an answer tells everything.
        gain, n_changed = self.entropy[rows].copy(), self.p_wrong[rows].copy()
        places, columns = self.answers(rows)
        for part in self._runs(self.bag[rows[places]]):
            asked, place = rows[places[part]], places[part]
            after = self.after(asked, columns[part])
            copied, starts = self._copies(self.bag[asked])
            is_other = copied != np.repeat(asked, np.diff(starts))
            drop = np.where(is_other, self.entropy[copied] - after.entropy, 0.0)
            flipped = after.is_open & (after.best != self.best[copied])
            chance = self.posterior[asked, columns[part]]
            np.add.at(gain, place, chance * np.add.reduceat(drop, starts[:-1]))
            np.add.at(n_changed, place, chance * np.add.reduceat(flipped * 1.0, starts[:-1]))
        # What others lose is not negative, but by rounding and by answers that were left out.
        return np.maximum(gain, self.entropy[rows]), n_changed

    def entries(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return how many entries of log-priors `expected` infers from for each of some rows."""
        n_answers = (self.posterior[rows] > NEGLIGIBLE).sum(axis=1)
        return np.diff(self.offsets)[self.bag[rows]] * n_answers * self.posterior.shape[1]

    # Tags.

    def presence(self, bags: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float64]:
        """Compute the probability that classes occur in bags, where no tag says so."""
        presence = np.empty(len(bags))
        for part in self._runs(bags):
            copied, _ = self._copies(bags[part])
            whole = self._problem(bags[part], self.problem.y[bags[part]]).infer(
                self.scores[copied], on_intractable="relax", **self.rates
            )
            without = self._absent(bags[part], columns[part]).log_likelihood
            log_ratio = np.where(without > -np.inf, without - whole.log_likelihood, -np.inf)
            presence[part] = -np.expm1(np.minimum(log_ratio, 0.0))
        return presence

    def expected_of_tags(
        self, bags: NDArray[np.intp], columns: NDArray[np.intp], presence: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute what answers about tags are expected to change: see `expected`.

        Parameters
        ----------
        bags, columns : ndarrays of int of shape (n,)
            Whether the class occurs in the bag is asked.
        presence : ndarray of shape (n,)
            The probability that it does.

        Returns
        -------
        gain, n_changed : ndarrays of shape (n,)
            The drop is from the mixture of what is believed if the class occurs and if it does not.
            That is what is believed before the answer, whatever a tag says that may be wrong.
        """
        gain, n_changed = np.zeros((2, len(bags)))
        for part in self._runs(bags):
            copied, starts = self._copies(bags[part])
            worlds = (
                self._present(bags[part], columns[part]).posterior,
                self._absent(bags[part], columns[part]).posterior,
            )
            likely = np.repeat(presence[part], np.diff(starts))
            mixed, drop, flipped = np.zeros(worlds[0].shape), *np.zeros((2, len(copied)))
            for chance, posterior in zip((likely, 1.0 - likely), worlds, strict=True):
                mixed += chance[:, None] * posterior
                drop -= chance * _bits_and_rest(posterior)
                flipped += chance * (posterior.argmax(axis=1) != self.best[copied])
            drop += _bits_and_rest(mixed)
            is_open = self.is_open[copied]
            gain[part] = np.add.reduceat(np.where(is_open, drop, 0.0), starts[:-1])
            n_changed[part] = np.add.reduceat(np.where(is_open, flipped, 0.0), starts[:-1])
        return np.maximum(gain, 0.0), n_changed

    def _present(self, bags: NDArray[np.intp], columns: NDArray[np.intp]) -> Inference:
        """Infer copies of bags in which one class each occurs for certain."""
        copied, _ = self._copies(bags)
        y, each = self.problem.y[bags], np.arange(len(bags))
        y[each, columns] = 1
        rates = dict(self.rates)
        if rates.get("false") is not None:
            # This tag is no mistake.
            rates["false"] = np.tile(np.asarray(rates["false"], dtype=float), (len(bags), 1))
            rates["false"][each, columns] = 0.0
        return self._problem(bags, y).infer(
            self.scores[copied], on_impossible="relax", on_intractable="relax", **rates
        )

    def _absent(self, bags: NDArray[np.intp], columns: NDArray[np.intp]) -> Inference:
        """Infer copies of bags in which one class each does not occur."""
        copied, starts = self._copies(bags)
        scores, y = self.scores[copied], self.problem.y[bags]
        scores[np.arange(len(copied)), np.repeat(columns, np.diff(starts))] = -np.inf
        # An optional class that no instance can have: no rate of wrong tags brings it back.
        y[np.arange(len(bags)), columns] = -1
        return self._problem(bags, y).infer(scores, on_intractable="relax", **self.rates)

    # Copies of bags.

    def _copies(self, bags: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows of bags, one bag after the other, and where each begins and ends."""
        sizes = np.diff(self.offsets)[bags]
        starts = offsets_of(sizes)
        return np.arange(starts[-1]) + np.repeat(self.offsets[bags] - starts[:-1], sizes), starts

    def _problem(self, bags: NDArray[np.intp], y: NDArray[np.int8]) -> UnionProblem:
        """Return copies of bags with these label sets, their groups, and the answers so far."""
        copied, starts = self._copies(bags)
        pins, groups = self.problem.instance_labels, self.problem.groups
        return UnionProblem(
            starts, y, None if pins is None else pins[copied],
            None if groups is None else groups[bags],
        )  # fmt: skip

    def _runs(self, bags: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Cut copies of bags into runs of about `ENTRIES_AT_ONCE`, and give their places."""
        entries = np.cumsum(np.diff(self.offsets)[bags]) * self.posterior.shape[1]
        cuts = np.flatnonzero(np.diff(entries // ENTRIES_AT_ONCE)) + 1
        yield from (part for part in np.split(np.arange(len(bags)), cuts) if len(part))


def _bits_and_rest(posterior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return entropies in bits of rows that may lack probability: the rest is one more class."""
    rest = np.clip(1.0 - posterior.sum(axis=1, keepdims=True), 0.0, 1.0)
    return bits(np.hstack([posterior, rest]))
