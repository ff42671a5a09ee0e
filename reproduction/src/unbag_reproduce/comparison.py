"""Methods that do the same units of work, and the choice among their settings after the fact."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile, zip_longest
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from unbag.bags import Bags
from unbag.model_selection import all_measures

from .data import load, load_fold
from .ledger import Results
from .methods import BOUNDS, METHODS, Method
from .plan import Plan
from .race import folds_to_try
from .statistics import HIGHER_IS_BETTER, beside_best, best_setting, spread
from .tables import difference
from .unit import Unit, Values, task
from .widening import Ladders, widened

#: Outside the paper's comparison: the bounds, and what the paper does not have.
OUTSIDE = (*BOUNDS, "mlr-200", "mlr-end", "unbag")


def fit_and_measure(
    model: Any,
    train: Bags,
    y_train: Any,
    test: Bags,
    y_test: Any,
    measure: Callable[..., dict[str, float]] = all_measures,
) -> dict[str, float]:
    """Fit a model to some bags, and measure it on others."""
    start = perf_counter()
    model.fit(train, y_train)
    seconds = perf_counter() - start
    found = measure(model, test, y_test).items()
    return {**{name: 100.0 * float(each) for name, each in found}, "seconds": seconds}


@task
def fit_fold(unit: Unit) -> dict[str, float]:
    """Fit to the training bags of a fold, and measure on its test bags."""
    return fit_and_measure(METHODS[unit.method].model(unit.setting, unit.seed), *load_fold(unit))


@task
def fit_whole(unit: Unit) -> dict[str, float]:
    """Fit to all bags, and measure on the same ones: their labels are known to the model."""
    bags, y = load(unit.data, unit.draw)
    return fit_and_measure(METHODS[unit.method].model(unit.setting, unit.seed), bags, y, bags, y)


def measured(results: Results, units: Sequence[Sequence[Unit]], measure: str) -> np.ndarray:
    """Return a measure of units of work, a list over draws for each fold, as an array."""
    return np.array([[results[unit][measure] for unit in draws] for draws in units])


@dataclass(frozen=True)
class Comparison:
    """Methods that do the same units of work.

    A method of several settings is tuned on folds that take the draws of a data set in turn; what
    is chosen is measured on every fold of every draw. With `racing`, settings that fall far behind
    drop out before the last fold (`unbag_reproduce.race`). The grids of methods with `ladders` are
    widened around what is best, unless in a first look (`unbag_reproduce.widening`). If the work is
    not `cross_validated`, it is done once.
    """

    task: Callable[[Unit], Values]
    methods: dict[str, Method]
    #: The measures that choose settings.
    tuned_by: tuple[str, ...]
    cross_validated: bool = True
    racing: bool = False
    ladders: Mapping[str, Ladders] = field(default_factory=dict)

    def units_of(self, plan: Plan, name: str, method: str, setting: Values) -> list[list[Unit]]:
        """Return the units of one setting on one data set: for each fold, a list over draws."""
        return plan.units(self.task, name, method, setting, cross_validated=self.cross_validated)

    def tuning_units(self, plan: Plan, name: str, method: str, setting: Values) -> list[list[Unit]]:
        """Return the units that say how good a setting is, as `units_of` does: one draw a fold."""
        units = self.units_of(plan, name, method, setting)
        if not self.cross_validated:
            return units
        return [[draws[place % len(draws)]] for place, draws in enumerate(units)]

    def settings(
        self, plan: Plan, results: Results, name: str, method: str, measure: str
    ) -> list[Values]:
        """Return the settings to try on a data set, as far as the results tell."""
        return self._widened(plan, results, name, method, measure)[0]

    def _widened(self, plan, results, name, method, measure):
        """Return the settings to try, and the best of them, if it is known."""
        given = self.methods[method].grids[plan.level]
        of = plan, results, name, method, measure
        chosen = self._best(*of, given, self.racing)
        if plan.level == "quick" or method not in self.ladders:
            return given, chosen
        # Around what is best, nothing drops out.
        return widened(given, chosen, self.ladders[method], partial(self._best, *of, racing=False))

    def tried(
        self, plan: Plan, results: Results, name: str, method: str, measure: str
    ) -> list[list[list[Unit]]]:
        """Return the units that each setting is to be tried by, as far as the results tell."""
        given = self.methods[method].grids[plan.level]
        of = plan, results, name, method, measure
        around = self.settings(*of)[len(given) :]
        return [*self._tried(*of, given, self.racing), *self._tried(*of, around, racing=False)]

    def _tried(self, plan, results, name, method, measure, settings, racing):
        units = [self.tuning_units(plan, name, method, each) for each in settings]
        if not racing:
            return units
        sign = 1 if HIGHER_IS_BETTER[measure] else -1
        scores = [
            [
                sign * results[unit][measure]
                for (unit,) in takewhile(partial(is_done, results), of_setting)
            ]
            for of_setting in units
        ]
        counts = folds_to_try(scores, plan.n_folds)
        return [of_setting[:count] for of_setting, count in zip(units, counts, strict=True)]

    def units(self, plan: Plan, results: Results) -> list[Unit]:
        """List the units that tune, one fold before the next; then those of what they choose."""
        tuning, chosen = [], []
        for name in plan.data:
            for method, compared in self.methods.items():
                if len(compared.grids[plan.level]) > 1:
                    for by in self.tuned_by:
                        tuning += self.tried(plan, results, name, method, by)
                found = [self.tuned(plan, results, name, method, by) for by in self.tuned_by]
                chosen += [
                    self.units_of(plan, name, method, each) for each in found if each is not None
                ]
        by_fold = [*zip_longest(*tuning, fillvalue=()), *zip(*chosen, strict=True)]
        return list(dict.fromkeys(unit for fold in by_fold for draws in fold for unit in draws))

    def scores(
        self,
        plan: Plan,
        results: Results,
        name: str,
        method: str,
        setting: Values,
        measure: str,
    ) -> np.ndarray:
        """Return a measure of one setting; shape (n_folds, n_draws)."""
        return measured(results, self.units_of(plan, name, method, setting), measure)

    def tuned(
        self, plan: Plan, results: Results, name: str, method: str, measure: str
    ) -> Values | None:
        """Return a method's best setting by a measure, chosen after the fact.

        None as long as not all of its settings have been tried.
        """
        return self._widened(plan, results, name, method, measure)[1]

    def _best(self, plan, results, name, method, measure, settings, racing):
        if len(settings) == 1:
            return settings[0]
        tried = self._tried(plan, results, name, method, measure, settings, racing)
        if not all(map(partial(are_done, results), tried)):
            return None
        n_most = max(map(len, tried))
        finalists = [place for place, units in enumerate(tried) if len(units) == n_most]
        scores = [measured(results, tried[place], measure).ravel() for place in finalists]
        best = best_setting(scores, higher_is_better=HIGHER_IS_BETTER[measure])
        return settings[finalists[best]]

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
        """Compare the methods on one data set by one measure: a record for each.

        Those `outside` are never bold; in a first look nothing is tested. The function `published`
        of a data set and a method finds what to compare with; `labels` are more entries of records.
        """
        chosen, scores = {}, {}
        for method in self.methods:
            setting = self.tuned(plan, results, name, method, tuned_by)
            assert setting is not None, "all is done before it is shown"
            chosen[method] = setting
            scores[method] = self.scores(plan, results, name, method, setting, measure)
        competing = {
            method: values
            for method, values in scores.items()
            if method not in outside and plan.level != "quick"
        }
        p_values = beside_best(competing, higher_is_better=HIGHER_IS_BETTER[measure])
        left_out = set() if self.cross_validated else {"std", "published_std"}
        left_out |= {"published", "published_std", "difference"} if published is None else set()
        records = []
        for method, values in scores.items():
            compared = self.methods[method]
            known = {} if published is None else published(name, compared.published_as or method)
            record = {
                "data": name, "method": compared.title, "measure": measure, **labels,
                **spread(values),
                "published": known.get("mean"), "published_std": known.get("std"),
                "difference": difference(float(values.mean()), known.get("mean")),
                "p_value": p_values.get(method), "p_holm": None,
                "bold": p_values.get(method, 1.0) is None,
                "settings_tried": len(self.settings(plan, results, name, method, tuned_by)),
                "setting": chosen[method],
            }  # fmt: skip
            records.append({key: each for key, each in record.items() if key not in left_out})
        return records


def at_best(
    comparison: Comparison,
    plan: Plan,
    results: Results,
    name: str,
    method: str,
    settings: Sequence[Values],
    *,
    tuned_by: str,
    measure: str,
) -> float | None:
    """Return what a method reaches, where it is tuned, at the best of some of its settings."""
    narrowed = with_settings(comparison, plan, method, settings)
    best = narrowed.tuned(plan, results, name, method, tuned_by) if settings else None
    units = [] if best is None else comparison.tuning_units(plan, name, method, best)
    if not units or not are_done(results, units):
        return None
    return float(measured(results, units, measure).mean())


def with_settings(
    comparison: Comparison, plan: Plan, method: str, settings: Sequence[Values]
) -> Comparison:
    """Return a comparison of one method alone, tuned over some of its settings."""
    compared = comparison.methods[method]
    narrowed = replace(compared, grids={**compared.grids, plan.level: list(settings)})
    return replace(comparison, methods={method: narrowed})


def is_done(results: Results, units: Sequence[Unit]) -> bool:
    """Return whether there are results of all these units."""
    return all(unit in results for unit in units)


def are_done(results: Results, units: Sequence[Sequence[Unit]]) -> bool:
    """Return whether there are results of all these units, a list over draws for each fold."""
    return all(is_done(results, draws) for draws in units)


def some_methods(*names: str) -> dict[str, Method]:
    """Return some of `METHODS`, by name."""
    return {name: METHODS[name] for name in names}
