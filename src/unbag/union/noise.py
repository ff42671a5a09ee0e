"""Label sets that may be wrong: missed instances, and labels given by mistake.

An instance of class c goes unnoticed with probability ``missed_rate[c]``; the label set is the
union of the classes of the noticed ones, to which each class is added by mistake with probability
``false_rate[c]``. Both make another union problem, wider and longer, that every kernel can answer:

- one more column, last, optional in every bag: "shows nothing". An instance has there what goes
  unnoticed of its classes, forbidden ones too. A class that is optional in a bag keeps its prior
  whole: there is nothing to notice;
- one more row for each class that a bag names and that may be named by mistake, a *phantom*: of
  that class with probability ``false_rate[c]``, and showing nothing otherwise.

Afterwards, the posteriors in that column are divided among the classes of each instance.

A class of a required group shows something if it is noticed, as a required class does, even if the
label set forbids it. A group that a required class or a smaller group implies is not a requirement.

In a bag without groups whose instances are all pinned, required classes are independent of each
other. Those that an instance has are left out of the wider problem, and their chances multiplied.
"""

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbag._compile import kernel
from unbag.bags import offsets_of
from unbag.groups import Groups

from .arithmetic import EPS, TINY, add_exactly, needs_shift
from .layout import IMPOSSIBLE, Method
from .policy import (
    OnImpossible,
    OnIntractable,
    check_tractable,
    infer_and_relax,
    most_certain_labels,
)
from .rates import Rates

if TYPE_CHECKING:
    from .problem import UnionProblem


class NoisyAnswer(NamedTuple):
    """The answers for bags whose label sets may be wrong."""

    #: As in `unbag.union.Inference`; the bound does not count the rounding of `augment`.
    log_likelihood: np.ndarray
    error_bound: np.ndarray
    #: Class probabilities of each instance, noticed or not.
    posterior: np.ndarray
    #: Shape (n_bags, n_classes): expected number of unnoticed instances; 0 for optional classes.
    unnoticed: np.ndarray
    #: Shape (n_bags, n_classes): probability that the bag names the class by mistake, whether or
    #: not an instance shows it; 0 if it does not name it.
    mistaken: np.ndarray
    #: As in `unbag.union.layout.Answers`.
    served: np.ndarray
    #: Number that was subtracted from each row of the log-priors.
    shift: np.ndarray


class NoisyProblem:
    """A `UnionProblem` whose label sets may be wrong, prepared once for many priors and rates.

    Later rates may differ from those given here, but are positive for the same classes.
    """

    def __init__(self, problem: "UnionProblem", rates: Rates) -> None:
        self.problem = problem
        may_miss, may_be_false = (rate > 0 for rate in rates)
        y, sizes = problem.y, np.diff(problem.offsets)
        groups = groups_at_any_rate(problem)
        #: Classes that show something if they are noticed: required ones, and those of groups.
        self.shown: NDArray[np.int8] = shown_states(problem, groups)
        self._settled: SettledClasses = find_settled(problem, groups)
        self._states: NDArray[np.int8] = self._settled.left_out_of(self.shown)
        self._phantoms: Phantoms = find_phantoms(self._settled.left_out_of(y), groups, may_be_false)
        n_phantoms = np.bincount(self._phantoms.bags, minlength=len(y))
        offsets = offsets_of(sizes + n_phantoms)
        first = np.repeat(offsets[:-1] - problem.offsets[:-1], sizes)
        #: The rows of the instances in the augmented problem.
        self.rows: np.ndarray = first + np.arange(problem.n_instances)
        pinned = None
        if problem.instance_labels is not None:
            labels = problem.instance_labels
            bag = np.repeat(np.arange(len(y)), sizes)
            # An instance that may have gone unnoticed shows its class or nothing: not pinned, but
            # `augment` excludes the other columns.
            may_hide = may_miss[bag % len(may_miss), labels] & (self._states[bag, labels] != -1)
            certain = (labels >= 0) & ~may_hide
            pinned = np.full(offsets[-1], -1)
            pinned[self.rows[certain]] = labels[certain]
        nothing_shown = np.full((len(y), 1), -1, dtype=np.int8)
        # Classes of implied groups are optional; those of needed groups keep their state, since the
        # augmented problem has these groups.
        states = np.where(problem.allowed & (y == 0) & (self.shown == -1), np.int8(-1), y)
        #: The problem with one more column, and the rows of phantoms; its label sets are right.
        self.augmented: UnionProblem = type(problem)(
            offsets,
            np.hstack([states, nothing_shown]),
            pinned,
            None if groups is None else groups.widened(y.shape[1] + 1),
        )

    def answer(
        self,
        log_prior: np.ndarray,
        prior: np.ndarray,
        rates: Rates,
        *,
        method: Method = "auto",
        tolerance: float = 1e-9,
        n_jobs: int | None = None,
    ) -> NoisyAnswer:
        """Infer without relaxing any bag."""
        problem, augmented = self.problem, self.augmented
        n_bags, n_classes = problem.y.shape
        given, shift, hidden, wide, phantoms = self._widened(log_prior, prior, rates)
        answer = augmented.answer(wide, method=method, tolerance=tolerance, n_jobs=n_jobs)

        posterior = np.empty((problem.n_instances, n_classes))
        unnoticed, mistaken = np.zeros((2, n_bags, n_classes))
        found = augmented.offsets, answer.posterior
        collect(*given, *found, shift, hidden, posterior, unnoticed)
        bags, columns = self._phantoms.bags, self._phantoms.columns
        mistaken[bags, columns] = answer.posterior[phantoms, columns]
        self._phantoms.share_out(mistaken, rates.false_rate)
        log_likelihood = answer.log_likelihood.copy()
        complete(problem.offsets, self.shown, shift, np.log1p(-rates.false_rate), log_likelihood)
        rounding = self._multiply_settled(rates, log_likelihood, unnoticed, mistaken)
        # A posterior is the sum of two, each with an error. The bound of the likelihood is relative
        # to that of the augmented problem; here it is made relative to this one.
        error_bound, possible = 2.0 * answer.error_bound, log_likelihood > -np.inf
        layout = augmented.layout
        own = answer.error_bound + EPS * layout.n_free * (0.5 * layout.n_required + 5.0)
        own = own[possible] + 2.0 * EPS * np.abs(answer.log_likelihood[possible])
        own += rounding[possible]
        own = own / np.maximum(1.0, np.abs(log_likelihood[possible])) + EPS
        error_bound[possible] = np.maximum(error_bound[possible], own)
        return NoisyAnswer(
            log_likelihood, error_bound, posterior, unnoticed, mistaken, answer.served, shift
        )

    def most_certain_labels(
        self, log_prior: np.ndarray, rates: Rates, bags: Collection[int]
    ) -> NDArray[np.bool_]:
        """Find the labels of bags that are most certain to be named.

        As `policy.most_certain_labels`, but also labels of pinned instances, which may have gone
        unnoticed.
        """
        *_, wide, _ = self._widened(log_prior, exponential(log_prior), rates)
        return most_certain_labels(self.augmented, wide, bags)[:, :-1]

    def _widened(self, log_prior, prior, rates):
        """Return the arguments of `augment` and its outputs, and the rows of phantoms."""
        problem, augmented = self.problem, self.augmented
        wide = np.full((augmented.n_instances, problem.y.shape[1] + 1), -np.inf)
        shift, hidden = np.zeros(problem.n_instances), np.zeros(problem.n_instances)
        pinned = problem.layout.pinned
        given = problem.offsets, self._states, pinned, log_prior, prior, rates.missed_rate
        with np.errstate(divide="ignore"):
            log_false, log_true = np.log(rates.false_rate), np.log1p(-rates.false_rate)
        augment(*given, np.log1p(-rates.missed_rate), augmented.offsets, wide, shift, hidden)
        return given, shift, hidden, wide, self.write_phantoms(wide, log_false, log_true)

    def _multiply_settled(self, rates, log_likelihood, unnoticed, mistaken):
        """Add the classes that the augmented problem leaves out, and bound the rounding.

        A class is named unless all its instances go unnoticed and it is not named by mistake.
        """
        bags, classes, n_pinned = self._settled
        missed_rate, false_rate = (rate[bags % len(rate), classes] for rate in rates)
        with np.errstate(divide="ignore"):
            named = -np.expm1(n_pinned * np.log(missed_rate) + np.log1p(-false_rate))
        named_by_others = 1.0 - (1.0 - false_rate) * missed_rate ** (n_pinned - 1)
        n_bags, possible = len(log_likelihood), (log_likelihood > -np.inf)[bags]
        n_settled = np.bincount(bags, minlength=n_bags)
        total = np.bincount(bags, np.log(named), n_bags)
        log_likelihood += total
        unnoticed[bags, classes] = possible * n_pinned * missed_rate * named_by_others / named
        mistaken[bags, classes] = possible * false_rate / named
        return EPS * (4.0 * n_settled - (n_settled + 1.0) * total)

    def write_phantoms(
        self, wide: np.ndarray, log_false: np.ndarray, log_true: np.ndarray
    ) -> NDArray[np.int64]:
        """Write the log-priors of phantoms into `wide`, and return their rows."""
        is_phantom = np.ones(len(wide), dtype=bool)
        is_phantom[self.rows] = False
        (phantoms,) = is_phantom.nonzero()
        column = self._phantoms.columns
        wide[phantoms, column], wide[phantoms, -1] = self._phantoms.chances(log_false, log_true)
        return phantoms

    def rounding(
        self, log_prior: np.ndarray, rates: Rates, answer: NoisyAnswer
    ) -> NDArray[np.float64]:
        """Bound the effect of rounding the augmented priors on the answer for each bag.

        To first order, errors of the log-priors change posteriors and log-likelihood by no more
        than their expected sum over a labelling; the factor of two covers the rest.
        """
        size = np.abs(log_prior - answer.shift[:, None])
        # Excluded classes contribute no rounding error.
        size[answer.posterior == 0] = 0.0
        per_row = (answer.posterior * size).sum(axis=1) + 5.0
        bags = np.repeat(np.arange(self.problem.n_bags), np.diff(self.problem.offsets))
        per_bag = np.zeros(self.problem.n_bags)
        np.add.at(per_bag, bags, per_row)
        log_false = np.log(np.maximum(rates.false_rate, 1e-300))
        per_bag += 4.0 * (answer.mistaken > 0).sum(axis=1) + 2.0
        per_bag -= (answer.mistaken * log_false).sum(axis=1)
        return 2.0 * EPS * per_bag


class Phantoms(NamedTuple):
    """The required classes and groups of bags that may be named by mistake.

    A class of a group serves the group also if it is named by mistake. The classes that serve the
    same groups are one phantom, in the column of the first of them.
    """

    bags: np.ndarray
    columns: np.ndarray
    #: Phantom p stands for the classes ``members[member_offsets[p]:member_offsets[p + 1]]``.
    member_offsets: np.ndarray
    members: np.ndarray

    @property
    def are_single(self) -> bool:
        """Whether each phantom stands for one class."""
        return len(self.members) == len(self.columns)

    def chances(self, log_false: np.ndarray, log_true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-probabilities that any and that none of the classes is a mistake."""
        row = self.bags % len(log_false)
        if self.are_single:
            return log_false[row, self.columns], log_true[row, self.columns]
        sizes, starts = np.diff(self.member_offsets), self.member_offsets[:-1]
        none = np.add.reduceat(log_true[np.repeat(row, sizes), self.members], starts)
        with np.errstate(divide="ignore"):
            some = np.log(-np.expm1(none))
        return np.where(sizes == 1, log_false[row, self.columns], some), none

    def share_out(self, mistaken: np.ndarray, false_rate: np.ndarray) -> None:
        """Turn the probability of each phantom into those of its classes, in place."""
        if self.are_single:
            return
        sizes = np.diff(self.member_offsets)
        chance = mistaken[self.bags, self.columns]
        mistaken[self.bags, self.columns] = 0.0
        bags = np.repeat(self.bags, sizes)
        own = false_rate[bags % len(false_rate), self.members]
        some = -np.expm1(np.add.reduceat(np.log1p(-own), self.member_offsets[:-1]))
        # Exactly one if the phantom has one class: bits must not depend on other bags.
        share = np.where(
            np.repeat(sizes, sizes) == 1, 1.0, own / np.repeat(np.maximum(some, TINY), sizes)
        )
        mistaken[bags, self.members] += np.repeat(chance, sizes) * share


def find_phantoms(y: np.ndarray, groups: Groups | None, may_be_false: np.ndarray) -> Phantoms:
    """Find the required classes and groups of bags that may be named by mistake."""
    bags, columns = ((y == 1) & may_be_false).nonzero()
    if groups is None or not groups.n_groups:
        return Phantoms(bags, columns, np.arange(len(bags) + 1), columns)
    found = [(int(b), [int(c)]) for b, c in zip(bags, columns, strict=True)]
    for b in groups.per_bag.nonzero()[0].tolist():
        serves: dict[int, list[int]] = {}
        for g, group in enumerate(groups[b]):
            for c in group:
                serves.setdefault(c, []).append(g)
        alike: dict[tuple[int, ...], list[int]] = {}
        for c, of_class in sorted(serves.items()):
            if may_be_false[b % len(may_be_false), c]:
                alike.setdefault(tuple(of_class), []).append(c)
        found += [(b, members) for members in alike.values()]
    found.sort(key=lambda phantom: phantom[0])
    sizes = [len(members) for _, members in found]
    return Phantoms(
        np.array([b for b, _ in found], np.int64),
        np.array([members[0] for _, members in found], np.int64),
        offsets_of(np.array(sizes, np.int64)),
        np.array([c for _, members in found for c in members], np.int64),
    )


class SettledClasses(NamedTuple):
    """Required classes that are independent of all others, since all instances are pinned."""

    bags: np.ndarray
    classes: np.ndarray
    #: Number of instances of the bag that are pinned to the class, at least one.
    n_pinned: np.ndarray

    def left_out_of(self, y: np.ndarray) -> NDArray[np.int8]:
        """Return label sets in which these classes are optional."""
        if len(self.bags):
            y = y.copy()
            y[self.bags, self.classes] = -1
        return y


def find_settled(problem: "UnionProblem", groups: Groups | None) -> SettledClasses:
    """Find required classes that are independent of all others, in bags without groups."""
    codes = counts = np.empty(0, np.int64)
    n_classes = problem.y.shape[1]
    if problem.instance_labels is not None:
        alone = problem.layout.n_free == 0
        if groups is not None:
            alone &= groups.per_bag == 0
        own = np.repeat(alone, np.diff(problem.offsets))
        bags = np.repeat(np.arange(problem.n_bags), np.diff(problem.offsets))[own]
        labels = problem.instance_labels[own]
        required = problem.y[bags, labels] == 1
        codes, counts = np.unique((bags * n_classes + labels)[required], return_counts=True)
    return SettledClasses(*np.divmod(codes, max(n_classes, 1)), counts)


def groups_at_any_rate(problem: "UnionProblem") -> Groups | None:
    """Return the groups that no required class or smaller group implies.

    A pinned instance does not imply a group here, since it may have gone unnoticed. If it cannot,
    the augmented problem drops the group.
    """
    if problem.groups is None:
        return None
    return type(problem)(problem.offsets, problem.y, None, problem.groups).needed_groups()


def shown_states(problem: "UnionProblem", groups: Groups | None) -> NDArray[np.int8]:
    """Return the label sets in which the classes of needed groups are required.

    Such a class shows something if it is noticed, as a required one does. The classes of implied
    groups are optional.
    """
    if problem.groups is None:
        return problem.y
    shown = np.where(problem.groups.named() & (problem.y == 0), np.int8(-1), problem.y)
    return shown if groups is None else np.where(groups.named(), np.int8(1), shown)


def infer_noisily(
    problem: "UnionProblem",
    log_prior: np.ndarray,
    rates: Rates,
    *,
    on_impossible: OnImpossible,
    on_intractable: OnIntractable,
    **options: Any,
) -> tuple[NoisyAnswer, NDArray[np.bool_]]:
    """Answer a problem whose label sets are wrong at the given rates, as `UnionProblem.infer`."""

    def infer(problem, bags):
        return bounded_answer(problem, log_prior, rates, **options)

    def labels_to_relax(problem, bags):
        return NoisyProblem(problem, rates).most_certain_labels(log_prior, rates, bags)

    given = infer, labels_to_relax, on_impossible, on_intractable
    problem, answer, relaxed, intractable = infer_and_relax(problem, *given)
    check_tractable(problem, intractable)
    return answer, relaxed


def bounded_answer(
    problem: "UnionProblem",
    log_prior: np.ndarray,
    rates: Rates,
    *,
    tolerance: float,
    **options: Any,
) -> NoisyAnswer:
    """Answer a problem without relaxing it, with the rounding of augmented priors in the bound."""
    noisy = NoisyProblem(problem, rates)
    prior = exponential(log_prior)
    # The bound doubles; a tenth is left for the rounding.
    answer = noisy.answer(log_prior, prior, rates, tolerance=0.45 * tolerance, **options)
    bound = answer.error_bound + noisy.rounding(log_prior, rates, answer)
    bound[answer.served == IMPOSSIBLE] = 0.0
    return answer._replace(error_bound=bound)


def exponential(log_prior: np.ndarray) -> NDArray[np.float64]:
    """Return the exponentials of log-priors; they may overflow."""
    with np.errstate(over="ignore"):
        return np.exp(log_prior)


def impossible_bags(problem: "UnionProblem", rates: Rates | None) -> NDArray[np.bool_]:
    """Find the bags that no labelling can explain at some rates, for any finite priors.

    Required classes that may be named by mistake, and forbidden ones that may be missed, count as
    optional.
    """
    if rates is None:
        return problem.impossible
    may_miss, may_be_false = (rate > 0 for rate in rates)
    y = np.where((problem.y == 1) & may_be_false, -1, problem.y)
    y = np.where((y == 0) & (may_miss | problem.allowed), -1, y)
    if (groups := problem.needed_groups()) is not None:
        groups = groups.chosen(~groups.any_of(np.broadcast_to(may_be_false, y.shape)))
    return type(problem)(problem.offsets, y, problem.instance_labels, groups).impossible


@kernel
def augment(
    offsets,
    y,
    pinned,
    log_prior,
    prior,
    missed_rate,
    log_noticed,
    wide_offsets,
    wide,
    shift,
    hidden,
):
    """Write the log-priors of instances into the augmented problem, which is -inf elsewhere.

    Also the number that was subtracted from each row, and the prior of going unnoticed.
    """
    n_bags, n_classes = y.shape
    for b in range(n_bags):
        rate = b % missed_rate.shape[0]
        for row in range(offsets[b], offsets[b + 1]):
            to = wide_offsets[b] + row - offsets[b]
            pin = pinned[row] if pinned.shape[0] > 0 else -1
            first, behind = (pin, pin + 1) if pin >= 0 else (0, n_classes)
            top = -math.inf
            for c in range(first, behind):
                if y[b, c] != 0 or missed_rate[rate, c] > 0.0:
                    top = max(top, log_prior[row, c])
            far = needs_shift(top)
            if far:
                shift[row] = top
            # A compensated sum, whose rounding does not grow with the number of classes.
            total, correction = 0.0, 0.0
            for c in range(first, behind):
                value = log_prior[row, c] - shift[row]
                # The priors of other classes may be infinite.
                if y[b, c] != -1 and missed_rate[rate, c] > 0.0:
                    part = math.exp(value) if far else prior[row, c]
                    total, correction = add_exactly(total, correction, missed_rate[rate, c] * part)
                    value += log_noticed[rate, c]
                wide[to, c] = value
            hidden[row] = total + correction
            if total > 0.0:
                wide[to, n_classes] = math.log(total + correction)


@kernel
def collect(
    offsets,
    y,
    pinned,
    log_prior,
    prior,
    missed_rate,
    wide_offsets,
    wide,
    shift,
    hidden,
    posterior,
    unnoticed,
):
    """Add the posteriors of noticed and unnoticed instances, class by class."""
    n_bags, n_classes = y.shape
    for b in range(n_bags):
        rate = b % missed_rate.shape[0]
        for row in range(offsets[b], offsets[b + 1]):
            to = wide_offsets[b] + row - offsets[b]
            for c in range(n_classes):
                posterior[row, c] = wide[to, c]
            if hidden[row] > 0.0:
                scale = wide[to, n_classes] / hidden[row]
                pin = pinned[row] if pinned.shape[0] > 0 else -1
                for c in range(n_classes):
                    counts = y[b, c] != -1 and missed_rate[rate, c] > 0.0
                    if counts and (pin < 0 or c == pin):
                        part = prior[row, c]
                        if shift[row] != 0.0:
                            part = math.exp(log_prior[row, c] - shift[row])
                        part *= missed_rate[rate, c] * scale
                        posterior[row, c] += part
                        unnoticed[b, c] += part


@kernel
def complete(offsets, y, shift, log_true, log_likelihood):
    """Add the shifts of rows, and the chance that no absent class was named by mistake."""
    for b in range(y.shape[0]):
        total, correction = log_likelihood[b], 0.0
        if total == -math.inf:
            continue
        for row in range(offsets[b], offsets[b + 1]):
            total, correction = add_exactly(total, correction, shift[row])
        rate = b % log_true.shape[0]
        for c in range(y.shape[1]):
            if y[b, c] == 0:
                total, correction = add_exactly(total, correction, log_true[rate, c])
        log_likelihood[b] = total + correction
