"""Settings chosen within the training bags of a fold: the test bags choose nothing.

A second cross-validation chooses the setting whose held-out *bag labels* are the most likely. It
needs no instance label, so anyone could choose like this.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sklearn.preprocessing import StandardScaler

from unbag.pipeline import BagPipeline, kernel_pipeline
from unbag.preprocessing import BagContext, OnInstances

from . import methods
from .comparison import fit_and_measure
from .data import load_fold, split
from .ledger import Results
from .methods import penalised_bound, penalised_model, seeded
from .plan import Plan
from .statistics import best_setting
from .unit import Unit, Values, task
from .widening import Ladders, widened

N_INNER = 2
#: Instances in a dictionary; more cost more and give little.
DICTIONARY = 600


def pipeline(supervised: bool = False, **setting: Any) -> BagPipeline:
    """Build a linear or kernel model."""
    model = (
        penalised_bound(setting["alpha"], max_iter=60)
        if supervised
        else penalised_model(setting["alpha"], background=setting["background"], max_iter=60)
    )
    if setting["width"] is not None:
        return kernel_pipeline(
            model, context=setting["context"], scale=setting["width"], n_components=DICTIONARY
        )
    return BagPipeline(
        [
            ("scale", OnInstances(StandardScaler())),
            ("context", BagContext(setting["context"])),
            ("model", model.set_params(scaling=None)),
        ]
    )


def network(taught: str, **setting: Any) -> Any:
    """Build our network, or one that learns otherwise."""
    from .networks import TAUGHT

    # These rows are of networks of one kind, whatever the default of today is.
    one_kind = {"n_members": 8, "committee": False, **setting}
    return methods.network(TAUGHT[taught], **one_kind)


#: What can be chosen settings for, by name; each takes a setting's entries.
MODELS: dict[str, Callable[..., Any]] = {
    "pipeline": pipeline,
    "pipeline told instance labels": partial(pipeline, supervised=True),
    "network": partial(network, "exact"),
    "network told instance labels": partial(network, "told instance labels"),
    "network by noisy-or": partial(network, "noisy-or"),
    "network by max pooling": partial(network, "max pooling"),
    "network by linear softmax": partial(network, "linear softmax"),
    "network by attention": partial(network, "attention"),
    # As `unbag.torch.ORNetwork` is at its defaults, with the paper's rule for label sets.
    "network committee": methods.network,
}


def is_network(model: str) -> bool:
    """Return whether one of `MODELS` needs the extra that brings networks."""
    return model.startswith("network")


@dataclass(frozen=True)
class Variant:
    """A model, and the settings that one is chosen from for each fold; a single one is taken.

    In a first look all have the entries of `quick`; else they are widened along the ladders.
    """

    model: str
    settings: list[Values]
    quick: Values = field(default_factory=dict)
    ladders: Ladders = field(default_factory=dict)

    def settings_at(self, level: str) -> list[Values]:
        """Return the settings to choose from; in a first look, every third, and cheaper."""
        if level != "quick":
            return self.settings
        return [{**setting, **self.quick} for setting in self.settings[::3]]


@dataclass(frozen=True)
class Case:
    """The fold of a draw of a data set."""

    plan: Plan
    data: str
    draw: int
    fold: int

    def inner_units(self, model: str, setting: Values) -> list[Unit]:
        """List the fits that say how well a setting does within the training bags."""
        return [
            self._unit(fit_inner, model, setting, {"inner_fold": inner_fold})
            for inner_fold in range(N_INNER)
        ]

    def unit(self, model: str, setting: Values) -> Unit:
        """Return the fit of a setting to all training bags."""
        return self._unit(fit_outer, model, setting, {})

    def _unit(self, task, model, setting, condition):
        return Unit(
            task, self.data, self.draw, model, setting, condition, fold=self.fold,
            n_folds=self.plan.n_folds, seed=self.plan.seed,
        )  # fmt: skip

    def settings(self, variant: Variant, results: Results) -> list[Values]:
        """Return the settings to choose from, as far as the results tell."""
        return self._widened(variant, results)[0]

    def choice(self, variant: Variant, results: Results) -> Values | None:
        """Return the setting that the inner folds choose; None as long as they are not done."""
        return self._widened(variant, results)[1]

    def _widened(self, variant, results):
        """Return the settings to choose from, and the chosen one, if it is known."""
        given = variant.settings_at(self.plan.level)
        best = partial(self._best, variant.model, results)
        chosen = best(given)
        if self.plan.level == "quick" or len(given) == 1:
            return given, chosen
        return widened(given, chosen, variant.ladders, best)

    def _best(self, model, results, settings):
        if len(settings) == 1:
            return settings[0]
        fits = [self.inner_units(model, setting) for setting in settings]
        if not all(unit in results for units in fits for unit in units):
            return None
        likelihoods = [[results[unit]["log_likelihood"] for unit in units] for units in fits]
        return settings[best_setting(likelihoods)]

    def units(self, variant: Variant, results: Results, told: str | None = None) -> list[Unit]:
        """List the inner fits of a variant and, once they are done, the fit of what they choose."""
        settings, setting = self._widened(variant, results)
        # A single one is taken as it is.
        tried = settings if len(settings) > 1 else []
        fits = [unit for each in tried for unit in self.inner_units(variant.model, each)]
        if setting is not None:
            fits.append(self.unit(variant.model, setting))
            if told is not None:
                fits.append(self.unit(told, told_setting(setting)))
        return fits


def told_setting(setting: Values) -> Values:
    """Return a setting for a model that is told all labels, and so has nothing to distil."""
    return {**setting, "distill": 0} if "distill" in setting else setting


@task
def fit_inner(unit: Unit) -> Values:
    """Fit to a part of the training bags, and find how likely the others' label sets are."""
    bags, y, _, _ = load_fold(unit)
    train, held_out = split(len(bags), N_INNER, unit.condition["inner_fold"], unit.seed)
    model = build(unit).fit(bags[train], y[train])
    likelihood = float(model.log_likelihood(bags[held_out], y[held_out]).mean())
    return {"log_likelihood": likelihood, **where_trained(unit)}


@task
def fit_outer(unit: Unit) -> Values:
    """Fit to all training bags of a fold, and measure on its test bags."""
    return {**fit_and_measure(build(unit), *load_fold(unit)), **where_trained(unit)}


def build(unit: Unit) -> Any:
    """Build the model that a unit of work asks for."""
    return seeded(MODELS[unit.method](**unit.setting), unit.seed)


def where_trained(unit: Unit) -> Values:
    """Return the device of networks, whose figures are the same on the same device only."""
    if not is_network(unit.method):
        return {}
    from .networks import device_name

    return {"device": device_name()}
