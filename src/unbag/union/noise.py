"""Label sets that may be wrong: missed instances, and classes added by mistake.

An instance of class c goes unnoticed with probability ``missed[c]``; the label set is the union
of the classes of the noticed ones, to which each class is added by mistake with probability
``false[c]``. Both make another union problem, wider and longer, that every kernel can answer:

- one more column, last, optional in every bag: "shows nothing". An instance has there what goes
  unnoticed of its classes, forbidden ones too. A class that is optional in a bag keeps its prior
  whole: there is nothing to notice;
- one more row for each class that a bag names and that may be named by mistake, a *phantom*: of
  that class with probability ``false[c]``, and showing nothing otherwise.

What the instances have in that column is shared out among their classes afterwards.

A class of a required group shows something if it is noticed, as a required class does, whatever the
label set says of it. A group that a required class or a smaller group implies is no requirement at
any rate.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._compile import kernel
from unbag.bags import offsets_of
from unbag.groups import Groups

from .arithmetic import EPS, TINY, add_exactly
from .dispatch import Method
from .layout import IMPOSSIBLE, INTRACTABLE
from .policy import (
    ImpossibleBagError,
    OnImpossible,
    OnIntractable,
    check_tractable,
    surest_labels,
)
from .rates import Rates, checked_rates

if TYPE_CHECKING:
    from .problem import UnionProblem

# Rows whose largest log-prior lies outside are brought to zero first: doubles near zero are finer.
LOW, HIGH = -50.0, 1.0


class NoisyAnswer(NamedTuple):
    """What label sets that may be wrong say of bags.

    Attributes
    ----------
    log_likelihood, error_bound : ndarrays of shape (n_bags,)
        As in `unbag.union.Inference`; the bound does not count the rounding of `augment`.
    posterior : ndarray of shape (n_instances, n_classes)
        Class probabilities of each instance, noticed or not.
    unnoticed : ndarray of shape (n_bags, n_classes)
        Expected number of instances that went unnoticed, where the class is not optional.
    mistaken : ndarray of shape (n_bags, n_classes)
        Probability that the class was named by mistake, whether or not an instance shows it too.
        Zero where the bag does not name it.
    served : ndarray of int of shape (n_bags,)
        As in `unbag.union.problem.PackedInference`.
    shift : ndarray of shape (n_instances,)
        What was taken off each row of the log-priors.
    """

    log_likelihood: np.ndarray
    error_bound: np.ndarray
    posterior: np.ndarray
    unnoticed: np.ndarray
    mistaken: np.ndarray
    served: np.ndarray
    shift: np.ndarray


class NoisyProblem:
    """A `UnionProblem` whose label sets may be wrong, as one whose label sets are right.

    Prepared once, for many priors and rates.

    Parameters
    ----------
    may_miss, may_be_false : ndarrays of bool of shape (n_classes,)
        The classes whose rates may be other than zero.

    Attributes
    ----------
    augmented : UnionProblem
        With the column and the rows that make up for what is wrong.
    rows : ndarray of int of shape (n_instances,)
        Where the instances are in it.
    """

    def __init__(
        self, problem: "UnionProblem", may_miss: np.ndarray, may_be_false: np.ndarray
    ) -> None:
        self.problem = problem
        self.may_miss = may_miss
        self.may_be_false = may_be_false
        y, sizes = problem.y, np.diff(problem.offsets)
        groups = groups_at_any_rate(problem)
        #: Classes that show something if they are noticed: required ones, and those of groups.
        self.shown: NDArray[np.int8] = shown_states(problem, groups)
        self._phantoms: Phantoms = find_phantoms(y, groups, may_be_false)
        n_phantoms = np.bincount(self._phantoms.bags, minlength=len(y))
        offsets = offsets_of(sizes + n_phantoms)
        first = np.repeat(offsets[:-1] - problem.offsets[:-1], sizes)
        self.rows: np.ndarray = first + np.arange(problem.n_instances)
        pinned = None
        if problem.instance_labels is not None:
            labels = problem.instance_labels
            bag = np.repeat(np.arange(len(y)), sizes)
            # What may have gone unnoticed shows its class or nothing: `augment` leaves it these.
            certain = (labels >= 0) & ((self.shown[bag, labels] == -1) | ~may_miss[labels])
            pinned = np.full(offsets[-1], -1)
            pinned[self.rows[certain]] = labels[certain]
        nothing_shown = np.full((len(y), 1), -1, dtype=np.int8)
        # Classes of implied groups are optional; those of needed ones are what their group says.
        states = np.where(problem.allowed & (y == 0) & (self.shown == -1), np.int8(-1), y)
        self.augmented: UnionProblem = type(problem)(
            offsets,
            np.hstack([states, nothing_shown]),
            pinned,
            None if groups is None else groups.widened(y.shape[1] + 1),
        )

    @property
    def impossible(self) -> NDArray[np.bool_]:
        """The bags that no labelling can explain, whatever the finite priors."""
        layout, y = self.problem.layout, self.problem.y
        if self.problem.groups is not None:
            return self._impossible_with_groups()
        required = np.zeros(y.shape, dtype=bool)
        for b in range(len(y)):
            required[b, layout.required(b)] = True
        lacking = (required & ~self.may_be_false).sum(axis=1)
        nothing_allowed = ~((y != 0) | self.may_miss).any(axis=1)
        return (lacking > layout.n_free) | ((layout.n_free > 0) & nothing_allowed)

    def _impossible_with_groups(self):
        """Return `impossible` of a problem with groups: what may be named by mistake needs none."""
        problem, groups = self.problem, self.problem.needed_groups()
        y = np.where((problem.y == 1) & self.may_be_false, -1, problem.y)
        y = np.where((y == 0) & (self.may_miss | problem.allowed), -1, y)
        if groups is not None:
            groups = groups.chosen(~groups.any_of(np.broadcast_to(self.may_be_false, y.shape)))
        return type(problem)(problem.offsets, y, problem.instance_labels, groups).impossible

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
        """Infer, without relaxing any bag.

        Parameters
        ----------
        log_prior : C-contiguous ndarray of float64 of shape (n_instances, n_classes)
            Without NaN or +inf, which are not looked for here.
        prior : ndarray of shape (n_instances, n_classes)
            The exponential of that.
        rates : Rates
            Zero for all classes but those of `may_miss` and `may_be_false`.
        method, tolerance, n_jobs
            As in `unbag.union.infer`.
        """
        problem, augmented = self.problem, self.augmented
        n_bags, n_classes = problem.y.shape
        wide = np.full((augmented.n_instances, n_classes + 1), -np.inf)
        shift, hidden = np.zeros(problem.n_instances), np.zeros(problem.n_instances)
        pinned = problem.layout.pinned
        given = problem.offsets, self.shown, pinned, log_prior, prior, rates.missed
        with np.errstate(divide="ignore"):
            log_noticed = np.log1p(-rates.missed)
            log_false, log_true = np.log(rates.false), np.log1p(-rates.false)
        augment(*given, log_noticed, augmented.offsets, wide, shift, hidden)
        phantoms = self.write_phantoms(wide, log_false, log_true)
        packed = augmented.answer(wide, method=method, tolerance=tolerance, n_jobs=n_jobs)

        posterior = np.zeros((problem.n_instances, n_classes))
        unnoticed, mistaken = np.zeros((2, n_bags, n_classes))
        collect(*given, augmented.layout, packed.values, shift, hidden, posterior, unnoticed)
        of_phantoms = self._phantoms.bags, self._phantoms.columns
        collect_phantoms(augmented.layout, packed.values, phantoms, *of_phantoms, mistaken)
        self._phantoms.share_out(mistaken, rates.false)
        log_likelihood = packed.log_likelihood.copy()
        complete(problem.offsets, self.shown, shift, log_true, log_likelihood)
        # A posterior is the sum of two that may err. The bound is relative to a likelihood that
        # need not be this one; what is not is the kernels' part, and the instances' own sums.
        error_bound, possible = 2.0 * packed.error_bound, log_likelihood > -np.inf
        layout = augmented.layout
        own = packed.error_bound + EPS * layout.n_free * (0.5 * layout.n_required + 5.0)
        own = own[possible] + 2.0 * EPS * np.abs(packed.log_likelihood[possible])
        own = own / np.maximum(1.0, np.abs(log_likelihood[possible])) + EPS
        error_bound[possible] = np.maximum(error_bound[possible], own)
        return NoisyAnswer(
            log_likelihood, error_bound, posterior, unnoticed, mistaken, packed.served, shift
        )

    def write_phantoms(
        self, wide: np.ndarray, log_false: np.ndarray, log_true: np.ndarray
    ) -> NDArray[np.int64]:
        """Write the rows of the phantoms of the augmented problem, and return where they are.

        Parameters
        ----------
        wide : ndarray of shape (n_augmented, n_classes + 1)
            In these rows, -inf.
        log_false, log_true : ndarrays of shape (1, n_classes) or (n_bags, n_classes)
            Logarithms of the rates of false labels, and of what is left to one.
        """
        is_phantom = np.ones(len(wide), dtype=bool)
        is_phantom[self.rows] = False
        (phantoms,) = is_phantom.nonzero()
        column = self._phantoms.columns
        wide[phantoms, column], wide[phantoms, -1] = self._phantoms.chances(log_false, log_true)
        return phantoms

    def rounding(
        self, log_prior: np.ndarray, rates: Rates, answer: NoisyAnswer
    ) -> NDArray[np.float64]:
        """Bound what the rounding of the augmented priors does to an answer, bag by bag.

        Errors of the log-priors change posteriors and log-likelihood by no more than their
        expected sum over a labelling; the factor of two is for what is not linear in them.

        Parameters
        ----------
        log_prior, rates
            As in `answer`.
        answer : NoisyAnswer
            What it returned.

        Returns
        -------
        ndarray of shape (n_bags,)
        """
        size = np.abs(log_prior - answer.shift[:, None])
        # What is excluded is so without rounding.
        size[answer.posterior == 0] = 0.0
        per_row = (answer.posterior * size).sum(axis=1) + 5.0
        bags = np.repeat(np.arange(self.problem.n_bags), np.diff(self.problem.offsets))
        per_bag = np.zeros(self.problem.n_bags)
        np.add.at(per_bag, bags, per_row)
        log_false = np.log(np.maximum(rates.false, 1e-300))
        per_bag += 4.0 * (answer.mistaken > 0).sum(axis=1) + 2.0
        per_bag -= (answer.mistaken * log_false).sum(axis=1)
        return 2.0 * EPS * per_bag


class Phantoms(NamedTuple):
    """What bags name that may be named by mistake: required classes, and groups.

    A class of a group that is named by mistake serves the group. Those that serve the same groups
    are one phantom, in the column of the first of them.

    Attributes
    ----------
    bags, columns : ndarrays of int of shape (n_phantoms,)
    member_offsets : ndarray of int of shape (n_phantoms + 1,)
    members : ndarray of int
        Phantom p stands for the classes ``members[member_offsets[p]:member_offsets[p + 1]]``.
    """

    bags: np.ndarray
    columns: np.ndarray
    member_offsets: np.ndarray
    members: np.ndarray

    @property
    def are_single(self) -> bool:
        """Whether each stands for one class."""
        return len(self.members) == len(self.columns)

    def chances(self, log_false: np.ndarray, log_true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-chances that any of a phantom's classes is named by mistake, and none is.

        Parameters
        ----------
        log_false, log_true : ndarrays of shape (1, n_classes) or (n_bags, n_classes)
        """
        row = self.bags % len(log_false)
        if self.are_single:
            return log_false[row, self.columns], log_true[row, self.columns]
        sizes, starts = np.diff(self.member_offsets), self.member_offsets[:-1]
        none = np.add.reduceat(log_true[np.repeat(row, sizes), self.members], starts)
        with np.errstate(divide="ignore"):
            some = np.log(-np.expm1(none))
        return np.where(sizes == 1, log_false[row, self.columns], some), none

    def share_out(self, mistaken: np.ndarray, false: np.ndarray) -> None:
        """Turn the chance of each phantom into the chances of its classes, in place.

        Parameters
        ----------
        mistaken : ndarray of shape (n_bags, n_classes)
            With the chance of each phantom in its column.
        false : ndarray of shape (1, n_classes) or (n_bags, n_classes)
        """
        if self.are_single:
            return
        sizes = np.diff(self.member_offsets)
        chance = mistaken[self.bags, self.columns]
        mistaken[self.bags, self.columns] = 0.0
        bags = np.repeat(self.bags, sizes)
        own = false[bags % len(false), self.members]
        some = -np.expm1(np.add.reduceat(np.log1p(-own), self.member_offsets[:-1]))
        # One that stands for one class gives it all, whatever those of other bags stand for.
        share = np.where(
            np.repeat(sizes, sizes) == 1, 1.0, own / np.repeat(np.maximum(some, TINY), sizes)
        )
        mistaken[bags, self.members] += np.repeat(chance, sizes) * share


def find_phantoms(y: np.ndarray, groups: Groups | None, may_be_false: np.ndarray) -> Phantoms:
    """Find what bags name that may be named by mistake."""
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
            if may_be_false[c]:
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


def groups_at_any_rate(problem: "UnionProblem") -> Groups | None:
    """Return the groups that no required class or smaller group implies.

    A pinned instance may have gone unnoticed, and so implies nothing here; the augmented problem
    drops the groups of those that cannot.
    """
    if problem.groups is None:
        return None
    return type(problem)(problem.offsets, problem.y, None, problem.groups).needed_groups()


def shown_states(problem: "UnionProblem", groups: Groups | None) -> NDArray[np.int8]:
    """Return the label sets, with the classes of groups as if required where they are needed.

    Such a class shows something if it is noticed, like a required one. The classes of implied
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
    """Answer a problem whose label sets are wrong at given rates, with a bound of all errors.

    Parameters
    ----------
    log_prior : C-contiguous ndarray of float64 of shape (n_instances, n_classes)
    on_impossible, on_intractable
        As in `unbag.union.infer`.
    **options
        `method`, `tolerance` and `n_jobs`.

    Returns
    -------
    answer : NoisyAnswer
    relaxed : ndarray of bool of shape (n_bags, n_classes)
        Required classes that were taken as optional.
    """
    relaxed = np.zeros(problem.y.shape, dtype=bool)
    answer = bounded_answer(problem, log_prior, rates, **options)
    impossible = answer.served == IMPOSSIBLE
    if impossible.any() and on_impossible == "raise":
        raise ImpossibleBagError(impossible.nonzero()[0].tolist(), problem.n_bags)
    if impossible.any() and on_impossible == "relax":
        relaxed |= problem.named & impossible[:, None]
        answer = bounded_answer(problem.relaxed(relaxed), log_prior, rates, **options)
        relaxed[answer.served == IMPOSSIBLE] = False
    (intractable,) = (answer.served == INTRACTABLE).nonzero()
    if len(intractable) and on_intractable == "relax":
        relaxed |= surest_labels(problem.relaxed(relaxed), log_prior, intractable)
        answer = bounded_answer(problem.relaxed(relaxed), log_prior, rates, **options)
        (intractable,) = (answer.served == INTRACTABLE).nonzero()
    check_tractable(problem.relaxed(relaxed), intractable)
    return answer, relaxed


def bounded_answer(
    problem: "UnionProblem",
    log_prior: np.ndarray,
    rates: Rates,
    *,
    tolerance: float,
    **options: Any,
) -> NoisyAnswer:
    """Answer a problem as it is, with the rounding of its augmented priors in the bound."""
    noisy = noisy_problem(problem, rates)
    with np.errstate(over="ignore"):
        prior = np.exp(log_prior)
    # The bound doubles; a tenth is left for the rounding.
    answer = noisy.answer(log_prior, prior, rates, tolerance=0.45 * tolerance, **options)
    bound = answer.error_bound + noisy.rounding(log_prior, rates, answer)
    bound[answer.served == IMPOSSIBLE] = 0.0
    return answer._replace(error_bound=bound)


def impossible_bags(
    problem: "UnionProblem", missed: ArrayLike | None, false: ArrayLike | None
) -> NDArray[np.bool_]:
    """Return the bags that no labelling can explain, whatever the finite priors."""
    rates = checked_rates(missed, false, problem.y)
    return problem.impossible if rates is None else noisy_problem(problem, rates).impossible


def noisy_problem(problem: "UnionProblem", rates: Rates) -> NoisyProblem:
    """Return a problem as one whose label sets may be wrong, where the rates are not zero."""
    may_miss, may_be_false = ((rate > 0).any(axis=0) for rate in rates)
    return NoisyProblem(problem, np.asarray(may_miss), np.asarray(may_be_false))


@kernel
def augment(
    offsets, y, pinned, log_prior, prior, missed, log_noticed, wide_offsets, wide, shift, hidden
):
    """Write the rows of the instances of the augmented problem; the rest of it is -inf.

    Also what was taken off each row, and the sum of what goes unnoticed of it.
    """
    n_bags, n_classes = y.shape
    for b in range(n_bags):
        rate = b % missed.shape[0]
        for row in range(offsets[b], offsets[b + 1]):
            to = wide_offsets[b] + row - offsets[b]
            pin = pinned[row] if pinned.shape[0] > 0 else -1
            first, behind = (pin, pin + 1) if pin >= 0 else (0, n_classes)
            top = -math.inf
            for c in range(first, behind):
                if y[b, c] != 0 or missed[rate, c] > 0.0:
                    top = max(top, log_prior[row, c])
            far = top > -math.inf and not LOW <= top <= HIGH
            if far:
                shift[row] = top
            # Compensated, so that its rounding does not grow with the number of classes.
            total, correction = 0.0, 0.0
            for c in range(first, behind):
                value = log_prior[row, c] - shift[row]
                # A prior that does not count may be infinite.
                if y[b, c] != -1 and missed[rate, c] > 0.0:
                    part = math.exp(value) if far else prior[row, c]
                    total, correction = add_exactly(total, correction, missed[rate, c] * part)
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
    missed,
    layout,
    values,
    shift,
    hidden,
    posterior,
    unnoticed,
):
    """Share out what went unnoticed, and add up all that an instance may be."""
    n_bags, n_classes = y.shape
    for b in range(n_bags):
        rate = b % missed.shape[0]
        first = layout.column_offsets[b]
        # The column of what shows nothing is the last that any bag allows.
        n_shown = layout.column_offsets[b + 1] - first - 1
        value = layout.value_offsets[b]
        for row in range(offsets[b], offsets[b + 1]):
            for j in range(n_shown):
                posterior[row, layout.columns[first + j]] += values[value + j]
            if hidden[row] > 0.0:
                scale = values[value + n_shown] / hidden[row]
                pin = pinned[row] if pinned.shape[0] > 0 else -1
                for c in range(n_classes):
                    counts = y[b, c] != -1 and missed[rate, c] > 0.0
                    if counts and (pin < 0 or c == pin):
                        part = prior[row, c]
                        if shift[row] != 0.0:
                            part = math.exp(log_prior[row, c] - shift[row])
                        part *= missed[rate, c] * scale
                        posterior[row, c] += part
                        unnoticed[b, c] += part
            value += n_shown + 1


@kernel
def collect_phantoms(layout, values, phantoms, bags, columns, mistaken):
    """Read the probability that each phantom has its class."""
    for p in range(phantoms.shape[0]):
        b = bags[p]
        first = layout.column_offsets[b]
        n_allowed = layout.column_offsets[b + 1] - first
        value = layout.value_offsets[b] + (phantoms[p] - layout.offsets[b]) * n_allowed
        for j in range(n_allowed):
            if layout.columns[first + j] == columns[p]:
                mistaken[b, columns[p]] = values[value + j]


@kernel
def complete(offsets, y, shift, log_true, log_likelihood):
    """Add what was taken off the rows, and that no absent class was named by mistake."""
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
