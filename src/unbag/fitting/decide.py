"""Decisions of held-out bags before a fit: penalty, background or missed tags, and temperatures.

Everything is decided together. All candidates are fitted to the same folds and asked about the same
held-out bags, and each has the penalty that suits it: see `unbag.fitting.held_out`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax

from unbag.bags import Bags
from unbag.labels import LabelSets
from unbag.union.conditioner import Conditioner
from unbag.union.policy import OnIntractable
from unbag.union.rates import Rates

from .calibration import (
    AS_IT_IS,
    Presence,
    best_presence,
    temperature_for_given,
    temperature_for_new,
)
from .held_out import Candidate, Folds, Kind, log_absence_of
from .linear import BagSource, LinearSettings, as_source

#: Penalties to choose from, the strongest first.
ALPHAS: tuple[float, ...] = (100.0, 10.0, 3.0, 1.0)
#: The penalty that is taken unless others are better.
USUAL_ALPHA = 1.0
#: Standard errors by which instances may seem less often right.
WITHIN = 1.0
#: Costs of a background to try, as parts of the naming cost.
COST_PARTS: tuple[float, ...] = (0.8, 0.6, 0.4)
#: The part that is taken if there are too few bags to choose.
USUAL_PART = 0.6
#: Standard errors by which label sets must say more of instances with a background.
CLEARLY = 2.5
#: By how much they may say less at a higher cost, in nats per instance.
SLIGHTLY = 0.01
#: Least share of background instances or of missing tags, and most standard errors by which
#: background grows with the labels of bags.
LEAST_SHARE, MOST_GROWTH = 0.05, 1.0
#: A background is used if labels are predicted worse without it than by none at all.
FAR_WORSE = 1.25
#: The highest rate of missed instances by which annotations are excused.
MOST_MISSED = 0.3
#: Bags that decide, and bytes of their features, at most.
MOST_BAGS, SAMPLE_BYTES = 600, 32 << 20
#: Bags of each class that would not be in the sample.
FEW_OF_A_CLASS = 3
#: Fewer bags decide nothing.
FEWEST_BAGS = 10
NO_BAG_LEFT = "No bag is left to fit to: none has labels that its instances can have."


@dataclass(frozen=True, eq=False)
class Decision:
    """Decisions that held-out bags, or a user, took before a fit.

    Attributes
    ----------
    kind : {"none", "background", "missed"}
        What explains instances that do not look like the tags of their bags: nothing, a background
        class, or tags that are missing.
    alpha : float or None
        Strength of the penalty; None if the model has its own.
    background_cost : float
        Penalty (nats) of a background instance in a bag with labels.
    rates : Rates or None
        How often labels are wrong, by fits whose background costs nothing, of shape (1,
        n_classes). A fit whose background has a cost keeps them. None if they are not needed.
    temperature_new, temperature_given : float
        Divisors of scores: without the tags of bags, and given them.
    presence : Presence
        From expected counts of instances to probabilities that a class occurs in a bag.
    held_out : dict of str to float
        Figures on held-out bags, which are the reasons; empty if nothing was held out:
        ``n_bags`` that decided; ``background_gain``, how much more label sets say of instances with
        a background, in nats per bag, and its ``background_share`` of the instances;
        ``missed_gain``, by how many standard errors missing tags explain instances better, and
        their ``missed_share``; ``naming_cost`` of an instance that says nothing; and the share
        of tags that are wrong if those are predicted that occur with a probability of one half,
        ``hamming_loss``, and ``frequent_hamming_loss`` of the most frequent tags.
    """

    kind: Kind = "none"
    alpha: float | None = None
    background_cost: float = 0.0
    rates: Rates | None = None
    temperature_new: float = 1.0
    temperature_given: float = 1.0
    presence: Presence = AS_IT_IS
    held_out: dict[str, float] = field(default_factory=dict)

    @property
    def background(self) -> bool:
        """Whether there is a background class."""
        return self.kind == "background"

    def sentence(self, instances: str = "instances", bags: str = "bags") -> str:
        """Say what was decided; what instances and bags are called may be given."""
        if self.kind == "missed":
            share = max(self.held_out.get("missed_share", 0.0), 0.01)
            return (
                f"About {100 * share:.0f} % of the tags seem to be missing, so {instances} may get "
                f"labels that their {bags} are not tagged with."
            )
        if self.kind == "background":
            share = self.held_out.get("background_share")
            found = "Some" if share is None else f"About {100 * share:.0f} %"
            return (
                f"{found} of the {instances} look like none of the tags of their {bags}: they are "
                "background and get no label."
            )
        one, bag = instances.removesuffix("s"), bags.removesuffix("s")
        return f"Every {one} gets one of the tags of its {bag}, even if it is noise."

    def settings(self, settings: LinearSettings) -> LinearSettings:
        """Return the settings of a fit with this decision."""
        if self.alpha is not None:
            settings = replace(settings, alpha=self.alpha)
        elif settings.alpha == "auto":
            raise ValueError(
                "alpha is 'auto', but the decision that is given has no penalty: set alpha to "
                "the penalty of the model that it comes from."
            )
        return replace(settings, missed_rate="learn") if self.kind == "missed" else settings

    def conditioner(
        self, rates: Rates | None = None, on_intractable: OnIntractable = "raise"
    ) -> Conditioner:
        """Return the `Conditioner` of a model that was fitted with this decision.

        Parameters
        ----------
        rates : Rates, optional
            How often labels are wrong, as the fit has learnt it; by default never.
        on_intractable : {"raise", "relax"}
            As in `unbag.union.infer`.

        Returns
        -------
        Conditioner
            For scores that were divided by `temperature_new`.
        """
        given: dict[str, Any] = {}
        if rates is not None:
            n_classes = rates.missed_rate.shape[1] - self.background
            missed_rate, false_rate = (rate[0, :n_classes].copy() for rate in rates)
            if self.kind == "missed":
                missed_rate = np.minimum(missed_rate, MOST_MISSED)
            given = {"missed_rate": missed_rate, "false_rate": false_rate}
        return Conditioner(
            self.background,
            self.background_cost / self.temperature_new,
            temperature=self.temperature_given / self.temperature_new,
            on_intractable=on_intractable,
            **given,
        )


def decide(
    bags: Bags | BagSource,
    labels: LabelSets,
    settings: LinearSettings,
    *,
    background: bool | Literal["auto"] = "auto",
    cost: float | None = None,
    pinned: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> Decision:
    """Decide by held-out bags what the settings leave open; the usual choices for too few bags.

    If `alpha` is "auto", held-out bags choose it, as well as temperatures and presence; and whether
    tags are missing, unless there are rates of wrong labels. They choose the cost of a background
    if it is not given, and 0 is taken if everything else is. If there are many bags, a sample of
    them decides. `pinned` has the columns of known instances, -1 for the others.
    """
    is_open = settings.alpha == "auto"
    is_asked, is_chosen = is_open or background == "auto", background == "auto"
    # Some instances are known to be background.
    if background == "auto" and pinned is not None and (pinned == labels.shape[1]).any():
        background = True
    # Without a background, no instance could be in a bag that has none of the classes.
    is_nothing = labels.forbidden.all(axis=1) & ~labels.open & (bags.sizes > 0)
    is_used = background is True or (background == "auto" and bool(is_nothing.any()))
    usual = Decision(
        "background" if is_used else "none",
        USUAL_ALPHA if is_open else None,
        float(cost or 0.0) if is_used else 0.0,
    )
    keeps_rates = bool(usual.background_cost) and settings.learns_rates
    if not (is_asked or keeps_rates):
        return usual
    folds = Folds(*sampled(bags, labels, pinned, weight), settings)
    if folds.counted.sum() < FEWEST_BAGS:
        if is_used and is_chosen and cost is None:
            # At no cost, it would take all instances that the tags do not need.
            return replace(usual, background_cost=USUAL_PART * folds.naming_cost)
        return usual
    choice = Choice.of(folds, background, cost)
    if not is_asked:
        return replace(usual, rates=folds.fitted("background", choice.alphas[0]).rates)
    return choice.decision()[0]


@dataclass
class Choice:
    """The choice among candidates that were fitted to the same folds."""

    folds: Folds
    alphas: Sequence[float]
    background: bool | Literal["auto"]
    cost: float | None

    @classmethod
    def of(cls, folds: Folds, background: bool | Literal["auto"], cost: float | None) -> Self:
        """Choose among the penalties that the settings of some folds leave open."""
        alpha = folds.settings.alpha
        return cls(folds, ALPHAS if alpha == "auto" else (float(alpha),), background, cost)

    def decision(self) -> tuple[Decision, Candidate]:
        """Return what was chosen; with its calibration, if the penalty was open."""
        chosen, figures = self.chosen()
        rates = chosen.rates if chosen.cost else None
        is_open = self.folds.settings.alpha == "auto"
        found = Decision(
            chosen.kind, chosen.alpha if is_open else None, chosen.cost, rates, held_out=figures
        )
        return (calibrated(found, self.folds, chosen) if is_open else found), chosen

    def chosen(self) -> tuple[Candidate, dict[str, float]]:
        """Return one of the candidates, and figures of all kinds."""
        folds = self.folds
        figures = {"n_bags": float(folds.counted.sum()), "naming_cost": folds.naming_cost}
        plain = missed = background = None
        alphas, without = self.alphas, []
        if self.background is not True:
            path = self.walked("none")
            plain, top = self.nearest(path), best(path)
            # Other kinds explain more, and so want at most the penalty of the plain one.
            self.alphas = [alpha for alpha in alphas if alpha <= top.alpha]
            without.append(max(map(folds.information, path), key=np.mean))
            figures["evidence"] = plain.evidence
        if plain is not None and not folds.settings.has_rates:
            found = self.walked("missed")
            other = self.nearest(found)
            gain = folds.by_errors(other.by_bag, top.by_bag)
            # Missing tags are not a background.
            without.append(max(map(folds.information, found), key=np.mean))
            share = share_of_missing(folds, other)
            figures["missed_gain"], figures["missed_share"] = gain, share
            if gain > 0 and share >= LEAST_SHARE:
                missed = other
        if self.background is not False:
            background = self.best_background(without, plain and top, figures)
        if self.folds.settings.alpha != "auto":
            missed = None
        found = background or missed or plain
        assert found is not None
        return found, figures

    def walked(self, kind: Kind) -> list[Candidate]:
        """Fit candidates of a kind, the strongest penalty first, until they get clearly worse."""
        found: list[Candidate] = []
        for alpha in self.alphas:
            found.append(self.folds.fitted(kind, alpha))
            worse = [self.folds.by_errors(best(found).by_bag, each.by_bag) for each in found[-2:]]
            if len(found) > 2 and min(worse) > 1:
                break
        return found

    def nearest(self, found: Sequence[Candidate]) -> Candidate:
        """Return the candidate with the most evidence, or one with a more usual penalty.

        That is the most usual one that is not too sure of held-out bags, and seems to be right as
        often, within a standard error. Evidence alone prefers the safer of two.
        """
        first, right = best(found), self.folds.right_by_bag
        near = [
            each
            for each in found
            if each is first
            or (
                each.temperature <= 1.0
                and self.folds.by_errors(right(first), right(each)) <= WITHIN
            )
        ]
        return min(near, key=lambda each: abs(np.log(max(each.alpha, 1e-9) / USUAL_ALPHA)))

    def best_background(
        self,
        without: Sequence[NDArray[np.float64]],
        plain: Candidate | None,
        figures: dict[str, float],
    ) -> Candidate | None:
        """Return the best candidate with a background; None without a good one.

        `without` is what label sets say of instances with other kinds, by bag: the plain one first.
        """
        folds = self.folds
        parts = [part * folds.naming_cost for part in COST_PARTS]
        if self.cost is not None or not folds.naming_cost:
            parts = [self.cost or 0.0]
        rates = None
        if folds.settings.learns_rates:
            rates = folds.fitted("background", self.alphas[-1]).rates
        found = [folds.fitted("background", alpha, parts[0], rates) for alpha in self.alphas]
        information = [folds.information(each) for each in found]
        first = found[int(np.argmax(list(map(np.mean, information))))]
        for cost in parts[1:]:
            found.append(folds.fitted("background", first.alpha, cost, rates))
            information.append(folds.information(found[-1]))
        good = sorted(
            zip(found, information, strict=True), key=lambda each: each[1].mean(), reverse=True
        )
        if plain is not None:
            figures["background_gain"] = float(good[0][1].mean() - without[0].mean())
        figures["background_share"] = folds.share_of_background(good[0][0])
        if plain is not None:
            good = [
                (each, own)
                for each, own in good
                if self.is_background(each, plain, [folds.by_errors(own, it) for it in without])
            ]
        if not good:
            return None
        least = good[0][1].mean() - SLIGHTLY * folds.bags.n_instances / len(folds.bags)
        # The highest cost, by which most instances get a label.
        near = [each for each, own in good if own.mean() >= least]
        chosen = max(near, key=lambda each: each.cost)
        figures["background_share"] = folds.share_of_background(chosen)
        return chosen

    def is_background(self, candidate: Candidate, plain: Candidate, gains: Sequence[float]) -> bool:
        """Decide whether the background of a candidate is one.

        `gains` are standard errors by which label sets say more with it than with other kinds.

        Fragments of what has the labels look like one, but there are more of them in bags with more
        labels. It is also one if labels are predicted worse without it than by empty label sets.
        Missing tags look like one as well, and must say less by a standard error.
        """
        folds = self.folds
        if folds.share_of_background(candidate) < LEAST_SHARE or min(gains[1:], default=1.0) < 1.0:
            return False
        if min(gains) > CLEARLY and folds.growth_of_background(candidate) <= MOST_GROWTH:
            return True
        n_empty = float(np.average(folds.labels.cardinality, weights=folds.weight * folds.counted))
        return folds.n_wrong(plain) > max(FAR_WORSE * n_empty, folds.n_wrong(candidate))


def share_of_missing(folds: Folds, candidate: Candidate) -> float:
    """Estimate which share of the tags that bags should have is missing, by held-out scores.

    A tag is missing if an instance more likely than not has a class that its bag is not tagged
    with.
    """
    rates = candidate.rates
    conditioner = replace(
        Decision(candidate.kind).conditioner(rates, "relax"), temperature=candidate.temperature
    )
    problem = conditioner.problem(folds.bags.offsets, folds.labels)
    posterior = conditioner.infer(log_softmax(candidate.scores, axis=1), problem).posterior
    y = folds.labels.indicator
    found = np.zeros(y.shape, dtype=bool)
    instance, column = np.nonzero(posterior[:, : y.shape[1]] > 0.5)
    found[folds.bag[instance], column] = True
    n_missing = int((found & (y == 0)).sum())
    return n_missing / max(n_missing + int((y == 1).sum()), 1)


def best(found: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the most evidence."""
    return max(found, key=lambda each: each.evidence)


def calibrated(decision: Decision, folds: Folds, chosen: Candidate) -> Decision:
    """Return a decision with the temperatures and the presence that held-out bags want."""
    conditioner = decision.conditioner(chosen.rates)
    new = temperature_for_new(folds, chosen)
    given = temperature_for_given(folds, chosen, conditioner, new)
    proba = np.exp(log_softmax(chosen.scores / new, axis=1))
    y = folds.labels.indicator
    absence = log_absence_of(proba, folds.bags, y.shape[1])
    weight = folds.weight * folds.counted
    presence = best_presence(absence, y, weight)
    # The same measure as of any predictions, and that of the most frequent tags.
    known, found = weight[:, None] * (y != -1), -np.expm1(presence.log_absence(absence)) >= 0.5
    frequent = (known * (y == 1)).sum(axis=0) >= 0.5 * known.sum(axis=0)
    losses = {
        name: float(np.average(each != (y == 1), weights=known))
        for name, each in (("hamming_loss", found), ("frequent_hamming_loss", frequent))
        if known.any()
    }
    return replace(
        decision, temperature_new=new, temperature_given=given, presence=presence,
        held_out=decision.held_out | losses,
    )  # fmt: skip


def sampled(
    bags: Bags | BagSource,
    labels: LabelSets,
    pinned: np.ndarray | None,
    weight: np.ndarray | None,
) -> tuple[Bags, LabelSets, np.ndarray | None, np.ndarray | None]:
    """Read a sample of bags, with its labels, pins and weights."""
    sizes = bags.sizes
    bags, places = as_source(bags).sample(SAMPLE_BYTES)
    chosen = evenly_chosen(bags, labels.indicator[places])
    if len(places) == len(labels) and chosen is None:
        return bags, labels, pinned, weight
    if chosen is not None:
        bags, places = bags[chosen], places[chosen]
    if pinned is not None:
        within = np.zeros(len(labels), dtype=bool)
        within[places] = True
        pinned = pinned[np.repeat(within, sizes)]
    return bags, labels[places], pinned, None if weight is None else weight[places]


def evenly_chosen(bags: Bags, y: np.ndarray) -> NDArray[np.intp] | None:
    """Choose some bags in memory, evenly from all label sets; None if all fit.

    Nothing is random. Features may take `SAMPLE_BYTES`, scores of all classes four times that.
    Classes that no chosen bag has get a few bags.
    """
    X: Any = bags.X
    n_bytes = X.data.nbytes if sparse.issparse(X) else X.nbytes
    share = min(
        SAMPLE_BYTES / max(n_bytes, 1),
        4 * SAMPLE_BYTES / max(8 * bags.n_instances * y.shape[1], 1),
        MOST_BAGS / max(len(bags), 1),
    )
    if share >= 1:
        return None
    order = np.lexsort(y.T) if y.shape[1] else np.arange(len(bags))
    n_wanted = max(2, int(len(bags) * share))
    chosen = order[np.linspace(0, len(bags) - 1, n_wanted).round().astype(int)]
    rare = np.flatnonzero(~(y[chosen] == 1).any(axis=0))
    more = [np.flatnonzero(y[:, column] == 1)[:FEW_OF_A_CLASS] for column in rare]
    return np.unique(np.concatenate([chosen, *more]))
