"""Settings that a search tries, and the models of them."""

import itertools
from collections.abc import Mapping, Sequence, Sized
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unbag._messages import shortened
from unbag.learning import Settings

Setting = dict[str, Any]
#: What linear models and those with a kernel are chosen from. Rates of wrong labels, one kind at a
#: time: together they can explain everything away. Whether there is a background is not for the
#: likelihood to say: see `unbag.tuning.background`.
GRID: dict[str, tuple[Any, ...]] = {
    "context": (0.0, 0.5),
    "kernel": (None, 0.5, 2.0),
    "background": ("auto",),
    "missed": (0.0, "learn"),
    "false": (0.0, "learn"),
    "alpha": (0.03, 0.3, 3.0, 30.0),
    "dictionary": (600,),
    "max_iter": (1000,),
}
#: What is decided on together with a background, unless a grid has it.
COST = "background_cost"
#: What networks are chosen from, where torch is installed.
NETWORKS: dict[str, tuple[Any, ...]] = {"encoding": (None, "quantile"), "background": ("auto",)}
#: Names that linear models and networks have in common.
OF_NETWORKS = ("background", COST, "missed", "false", "max_iter")
#: Where no trial came to an end.
FALLBACK: Setting = {
    "context": 0.0, "kernel": None, "background": "auto", "missed": 0.0, "false": 0.0, "alpha": 1.0,
}  # fmt: skip
#: Settings that features depend on; the others are those of the model.
OF_FEATURES = ("context", "kernel", "dictionary")
MAX_ITER = 1000
#: Members of a network while it is tried, without a context, whose likelihood could not be
#: trusted. What is chosen is a committee, which takes as long as so many members.
TRIED_MEMBERS, ORDINARY_MEMBERS = 2, 14


def settings_of(grid: Mapping[str, Sequence[Any]]) -> list[Setting]:
    """List all settings of a grid; not more than one kind of wrong labels is learnt at a time.

    Examples
    --------
    >>> settings_of({"alpha": [1.0, 10.0], "kernel": [None]})
    [{'alpha': 1.0, 'kernel': None}, {'alpha': 10.0, 'kernel': None}]
    """
    # Model files hold settings as JSON, which knows no numbers of NumPy.
    choices = [
        [value.tolist() if isinstance(value, np.ndarray | np.generic) else value for value in each]
        for each in grid.values()
    ]
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*choices)]
    return [
        setting
        for setting in settings
        if not (setting.get("missed") == setting.get("false") == "learn")
    ]


def candidates(
    grid: Mapping[str, Sequence[Any]] | None = None, networks: bool | None = None
) -> list[Setting]:
    """List the settings that a search tries: those of linear models and kernels, and of networks.

    Parameters
    ----------
    grid, networks
        As in `tune`.
    """
    grid = grid or {}
    names = [*GRID, COST]
    if strange := [name for name in grid if name not in names]:
        raise ValueError(f"grid has no {strange[0]!r}: its names are {', '.join(names)}.")
    for name, values in grid.items():
        single = isinstance(values, str) or getattr(values, "ndim", 1) == 0
        if single or not isinstance(values, Sized) or len(values) == 0:
            raise ValueError(
                f"grid[{name!r}] is {shortened(values)}: give a list of values to choose from, "
                "which may be a single one."
            )
        for value in values:
            check_value(name, value)
    settings = settings_of({**GRID, **grid})
    if networks or (networks is None and not grid and find_spec("torch") is not None):
        settings += network_candidates(grid)
    return settings


def check_value(name: str, value: Any) -> None:
    """Raise an error for a value of a grid that the fits of a search would stumble over.

    The other names are looked at by what is made of them.
    """
    wanted: dict[str, tuple[type, int, str]] = {
        "alpha": (Real, 0, "the strength of a penalty is a number of at least 0"),
        "max_iter": (Integral, 1, "give a number of iterations, an integer from 1 on"),
    }
    if name not in wanted:
        return
    kind, least, words = wanted[name]
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value < np.inf:
        raise ValueError(f"grid[{name!r}] has {shortened(value)}: {words}.")


def network_candidates(grid: Mapping[str, Sequence[Any]]) -> list[Setting]:
    """List the settings of networks that a search tries, given what is not left to it.

    Parameters
    ----------
    grid : mapping from str to sequence
        As in `tune`; what networks do not have is passed over.
    """
    own = {name: grid[name] for name in OF_NETWORKS if name in grid}
    return settings_of({**NETWORKS, **own})


def fallback_of(settings: Sequence[Setting]) -> Setting:
    """Return what is taken of some settings where none was tried: usual values, if they allow it.

    Examples
    --------
    >>> fallback_of(settings_of({**GRID, "kernel": [2.0]}))["kernel"]
    2.0
    """
    kind = [setting for setting in settings if setting.keys() == settings[0].keys()]
    chosen = {}
    for name, first in settings[0].items():
        values = list({repr(setting[name]): setting[name] for setting in kind}.values())
        is_free = name in FALLBACK and (FALLBACK[name] in values or tuple(values) == GRID[name])
        chosen[name] = FALLBACK[name] if is_free else first
    return chosen


def learnt_rate(setting: Setting) -> str | None:
    """Return which rate of wrong labels a setting learns: "missed", "false" or None.

    Examples
    --------
    >>> learnt_rate({"missed": 0.0, "false": "learn"})
    'false'
    """
    return next((kind for kind in ("missed", "false") if isinstance(setting.get(kind), str)), None)


def unfitted(setting: Setting, classes: ArrayLike, seed: int, *, is_trial: bool = False) -> Any:
    """Build the model of a setting, with what makes its features.

    It gets all classes, so that folds agree on them. One that is tried only may be cheaper.
    """
    own = {name: value for name, value in setting.items() if name != "encoding"}
    is_network = "encoding" in setting
    model = Settings(model="network" if is_network else "linear", **own, seed=seed).unfitted()
    model.model.set_params(classes=classes)
    if is_network:
        members = {"n_members": TRIED_MEMBERS, "context_units": 0} if is_trial else {}
        model.set_params(encoding=setting["encoding"], **members)
    return model
