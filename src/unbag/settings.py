"""The settings of a fit, each declared once: `unbag.fit` and the commands make models from them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import numpy as np

from unbag._declared import Declared, declarations
from unbag._files import DataError
from unbag._messages import argument, require, shortened
from unbag.tables.roles import ColumnRoles
from unbag.union.rates import LEARNT, RANGE, Rate, is_rate

#: Models that have a name.
NAMES = ("linear", "network", "auto")
#: Whether there is a background, as options have it.
BACKGROUNDS: dict[str, bool | Literal["auto"]] = {"auto": "auto", "yes": True, "no": False}
# Settings that a given model has itself, and those that networks do not have.
OF_NAMED_MODELS = (
    "alpha", "background", "background_cost", "missed_rate", "false_rate", "max_iter",
)  # fmt: skip
OF_LINEAR_MODELS = ("alpha", "context", "kernel", "dictionary")
_RATE = "float, array-like or str"


@dataclass(frozen=True)
class Setting(Declared):
    """The declaration of a setting: its help, the words that an option takes, its least number."""

    words: tuple[str, ...] = ()
    least: float | None = None


@dataclass(frozen=True)
class Settings:
    """Which model is fitted, and how: see `fit`.

    A setting that the model does not have is an error.
    """

    # fmt: off
    model: Annotated[Any, Setting(
        "Kind of model: linear, network (needs torch), or auto: the better one in a trial.",
        "choice", '"linear", "network", "auto" or estimator', is_shown=True, words=NAMES,
    )] = "linear"
    alpha: Annotated[float | Literal["auto"], Setting(
        "Strength of the penalty on large weights: a number, or auto: chosen by trial, with "
        "calibrated probabilities.",
        "text", 'float or "auto"', is_shown=True)] = "auto"
    background: Annotated[bool | Literal["auto"], Setting(
        "Whether background is left without a label: yes, no, or auto: decided by trial.",
        "choice", is_shown=True, words=tuple(BACKGROUNDS))] = "auto"
    background_cost: Annotated[float | None, Setting(
        "Cost of background in bags with tags: the higher, the fewer rows stay without a label. "
        "Default: 0, or with a `background` of auto chosen by trial.", "number", least=0)] = None
    missed_rate: Annotated[Rate, Setting(
        "Probability that a row goes unnoticed when its bag is tagged: a number, learn, or "
        "learn-per-class.", "text", _RATE, is_shown=True)] = 0.0
    false_rate: Annotated[Rate, Setting(
        "Probability of a tag by mistake: a number, learn, or learn-per-class.",
        "text", _RATE)] = 0.0
    context: Annotated[float, Setting(
        "Weight of the mean of the bag (the recording), as more features.", "number")] = 0.0
    kernel: Annotated[float | None, Setting(
        "Width of a kernel (a nonlinear model), such as 1.0. Default: no kernel.", "number")] = None
    dictionary: Annotated[int, Setting(
        "Number of rows that the kernel compares others with.", "number")] = 600
    max_iter: Annotated[int | None, Setting(
        "Maximum number of iterations. Default: 1000, and 400 for networks.", "number")] = None
    seed: Annotated[int, Setting(
        "Random seed of the kernel, or of the networks.", "number")] = 0
    # fmt: on

    def __post_init__(self) -> None:
        if not isinstance(self.model, str):
            where = "the model that fit builds: where a model is given, set it there"
            self._refuse(OF_NAMED_MODELS, where)
            if not hasattr(self.model, "get_params") or isinstance(self.model, type):
                raise ValueError(
                    f"model must be a model of this library, such as unbag.ORLogisticRegression() "
                    f"or unbag.torch.ORNetwork(), not {shortened(self.model)}."
                )
        elif self.model not in NAMES:
            names = ", ".join(map(repr, NAMES))
            raise ValueError(f"model is {self.model!r}: give {names}, or a model.")
        elif self.model == "network":
            self._refuse(OF_LINEAR_MODELS, "linear models, not of networks")
            require("torch")

    def _refuse(self, names, whose):
        """Raise an error for settings that would have no effect."""
        for name in self.chosen():
            if name in names:
                raise ValueError(f"{argument(name)} is a setting of {whose}.")

    @classmethod
    def from_options(cls, **typed: Any) -> "Settings":
        """Make settings from what people have typed; None where that was nothing."""
        given = {name: value for name, value in typed.items() if value is not None}
        if "background" in given:
            given["background"] = BACKGROUNDS[given["background"]]
        if "alpha" in given:
            valid = "a number of at least 0, or auto"
            given["alpha"] = number_or_word(
                "alpha", given["alpha"], ("auto",), lambda number: 0 <= number < np.inf, valid
            )
        for name in ("missed_rate", "false_rate"):
            if name in given:
                valid = f"{RANGE}, learn or learn-per-class"
                given[name] = number_or_word(name, given[name], LEARNT, is_rate, valid)
        return cls(**given)

    def chosen(self) -> dict[str, Any]:
        """Return the settings that are not the usual ones by name, without model and seed."""
        given = [(each, getattr(self, each.name)) for each in fields(self)[1:-1]]
        # Rates may be one for each class.
        return {
            each.name: value for each, value in given if np.ndim(value) or value != each.default
        }

    def unfitted(self) -> Any:
        """Build the model, with the transformers before it that it needs."""
        # Commands declare their options by this module; scikit-learn takes a second.
        from sklearn.base import clone

        from unbag.estimators import ORLogisticRegression
        from unbag.pipeline import bag_pipeline

        own: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("background", "background_cost", "missed_rate", "false_rate")
        }
        if self.max_iter is not None:
            own["max_iter"] = self.max_iter
        if not isinstance(self.model, str):
            model: Any = clone(self.model)
        elif self.model == "auto":
            raise ValueError("model='auto' is chosen by a search: there is nothing to build yet.")
        elif self.model == "linear":
            model = ORLogisticRegression(self.alpha, **own)
        else:
            from unbag.torch import ORNetwork

            return ORNetwork(**own, random_state=self.seed)
        if self.kernel is None and self.context == 0:
            return model
        return bag_pipeline(
            model, context=self.context, kernel=self.kernel, dictionary=self.dictionary,
            random_state=self.seed,
        )  # fmt: skip


#: What is declared of each setting.
SETTINGS: dict[str, Setting] = declarations(Settings)


def number_or_word(
    name: str, typed: str, words: Collection[str], is_valid: Callable[[float], Any], valid: str
) -> Any:
    """Return what was typed for a setting, as a number if it is none of the words."""
    if typed in words:
        return typed
    try:
        number = float(typed)
    except ValueError:
        number = -1.0
    if not is_valid(number):
        raise DataError(f"{argument(name)} must be {valid}; got {shortened(typed)}.")
    return number


class ModelArguments(ColumnRoles, total=False):
    """Arguments of `unbag.fit` by which it builds a model without transformers."""

    alpha: float | Literal["auto"]
    background: bool | Literal["auto"]
    background_cost: float | None
    missed_rate: Rate
    false_rate: Rate
    max_iter: int | None
    seed: int


class FitArguments(ModelArguments, total=False):
    """All roles of columns and settings that `unbag.fit` takes."""

    context: float
    kernel: float | None
    dictionary: int
