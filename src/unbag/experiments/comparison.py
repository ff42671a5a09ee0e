"""Methods that do the same units of work, and the choice among their settings after the fact."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unbag.bags import Bags
from unbag.model_selection import all_measures

from .data import load, load_fold
from .ledger import Results
from .methods import METHODS, OUTSIDE, Method
from .plan import Plan
from .tables import best_methods, difference
from .unit import NONE, Unit, Values

#: Measures of bag label sets, and whether more is better.
BAG_MEASURES = {
    "hamming_loss": False,
    "ranking_loss": False,
    "average_precision": True,
    "one_error": False,
    "coverage": False,
}
#: All measures, and whether more is better.
HIGHER_IS_BETTER = {"inductive_accuracy": True, "transductive_accuracy": True, **BAG_MEASURES}


def words(measure: str) -> str:
    """Return the name of a measure in words.

    Examples
    --------
    >>> words("hamming_loss")
    'Hamming loss'
    """
    return measure.replace("_", " ").replace("hamming", "Hamming")


def fit_and_measure(
    model: Any,
    train: Bags,
    y_train: Any,
    test: Bags,
    y_test: Any,
    measure: Callable[..., dict[str, float]] = all_measures,
) -> dict[str, float]:
    """Fit a model to some bags, and measure it on others.

    Returns
    -------
    dict of str to float
        What `measure` finds, in percent, and ``seconds`` of the fit.
    """
    start = perf_counter()
    model.fit(train, y_train)
    seconds = perf_counter() - start
    found = measure(model, test, y_test).items()
    return {**{name: 100.0 * float(each) for name, each in found}, "seconds": seconds}


def fold(unit: Unit) -> dict[str, float]:
    """Fit to the training bags of a fold, and measure on its test bags."""
    return fit_and_measure(METHODS[unit.method].model(unit), *load_fold(unit))


def whole(unit: Unit) -> dict[str, float]:
    """Fit to all bags, and measure on the same ones: their labels are known, not their instances'.

    Returns
    -------
    dict of str to float
        As `fold`.
    """
    bags, y = load(unit.data, unit.draw)
    return fit_and_measure(METHODS[unit.method].model(unit), bags, y, bags, y)


def best_setting(scores: ArrayLike, *, higher_is_better: bool = True) -> int:
    """Choose after the fact, as the paper does: the setting of the best mean over folds.

    Parameters
    ----------
    scores : array-like of shape (n_settings, n_folds)
    higher_is_better : bool

    Returns
    -------
    int
        Its place; of equals, the first.

    Examples
    --------
    >>> best_setting([[60, 70], [66, 68]])
    1
    """
    return int(np.argmax((1 if higher_is_better else -1) * np.asarray(scores).mean(axis=1)))


def mean_over_draws(results: Results, units: Sequence[Sequence[Unit]], measure: str) -> np.ndarray:
    """Average a measure over draws; `units` has a list over draws for each fold.

    Returns
    -------
    ndarray of shape (n_folds,)
    """
    return np.mean([[results[unit][measure] for unit in draws] for draws in units], axis=1)


@dataclass(frozen=True)
class Comparison:
    """Methods that do the same units of work.

    Parameters
    ----------
    task : callable
        What is done with each method; its results are measures.
    methods : dict of str to Method
        Each with the settings that it is tried with.
    cross_validated : bool
        Whether the task is done for each fold; else once.
    """

    task: Callable[[Unit], Values]
    methods: dict[str, Method]
    cross_validated: bool = True

    def units_of(self, plan: Plan, name: str, method: str, setting: Values) -> list[list[Unit]]:
        """Return the units of one setting on one data set: for each fold, a list over draws."""
        n_folds = plan.n_folds if self.cross_validated else NONE
        return [
            [
                Unit(
                    self.task, name, draw, method, setting, fold=fold, n_folds=n_folds,
                    seed=plan.seed,
                )
                for draw in plan.draws(name)
            ]
            for fold in (range(n_folds) if self.cross_validated else [NONE])
        ]  # fmt: skip

    def units(self, plan: Plan, ledger: object = None) -> list[Unit]:
        """List all units: every method and setting on one fold before the next."""
        by_fold = zip(
            *(
                self.units_of(plan, name, method, setting)
                for name in plan.data
                for method, compared in self.methods.items()
                for setting in compared.grids[plan.level]
            ),
            strict=True,
        )
        return [unit for fold in by_fold for draws in fold for unit in draws]

    def scores(
        self,
        plan: Plan,
        results: Results,
        name: str,
        method: str,
        setting: Values,
        measure: str,
    ) -> np.ndarray:
        """Return a measure of one setting, averaged over draws; shape (n_folds,)."""
        return mean_over_draws(results, self.units_of(plan, name, method, setting), measure)

    def tuned(self, plan: Plan, results: Results, name: str, method: str, measure: str) -> Values:
        """Return a method's best setting by a measure, chosen after the fact."""
        settings = self.methods[method].grids[plan.level]
        scores = [self.scores(plan, results, name, method, each, measure) for each in settings]
        return settings[best_setting(scores, higher_is_better=HIGHER_IS_BETTER[measure])]

    def records(
        self,
        plan: Plan,
        results: Results,
        name: str,
        measure: str,
        *,
        tuned_by: str,
        published: Callable[[str, str], Values] | None = None,
        outside: Collection[str] = OUTSIDE,
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> list[Values]:
        """Compare the methods on one data set by one measure.

        Parameters
        ----------
        plan : Plan
        results : Ledger or other mapping of Unit to dict
        name : str
            The data set.
        measure, tuned_by : str
            What is compared, and what chose the settings.
        published : callable, optional
            ``published(name, method)`` returns the published figure, as `published_figure` does.
        outside : collection of str
            Methods that are never bold.
        labels : dict of str to str
            More entries that tell the records from others, or others than usual.

        Returns
        -------
        list of dict
            A record for each method that was measured so.
        """
        chosen = {each: self.tuned(plan, results, name, each, tuned_by) for each in self.methods}
        scores = {
            method: self.scores(plan, results, name, method, setting, measure)
            for method, setting in chosen.items()
            if measure in results[self.units_of(plan, name, method, setting)[0][0]]
        }
        bold = best_methods(
            {method: values for method, values in scores.items() if method not in outside},
            higher_is_better=HIGHER_IS_BETTER[measure],
        )
        left_out = set() if self.cross_validated else {"std", "published_std"}
        left_out |= {"published", "published_std", "difference"} if published is None else set()
        records = []
        for method, values in scores.items():
            known = {} if published is None else published(name, method)
            record = {
                "data": name, "method": self.methods[method].title, "measure": measure, **labels,
                "ours": float(values.mean()), "std": float(np.std(values, ddof=len(values) > 1)),
                "published": known.get("mean"), "published_std": known.get("std"),
                "difference": difference(float(values.mean()), known.get("mean")),
                "bold": method in bold, "setting": chosen[method],
            }  # fmt: skip
            records.append({key: each for key, each in record.items() if key not in left_out})
        return records


def some_methods(*names: str) -> dict[str, Method]:
    """Return some of `METHODS`, by name."""
    return {name: METHODS[name] for name in names}
