"""Whether finished units of work, drawn at random and done again, still give the same."""

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from .datasets import is_available
from .ledger import DEVICE, Ledger
from .reproduce import COMMITTED
from .unit import Unit, Values
from .work import do

#: Half of the last digit that tables print, in percent.
ROUNDING = 0.05


@dataclass(frozen=True)
class Change:
    """An entry of a result that differs from the recorded one."""

    unit: Unit
    entry: str
    recorded: Any
    now: Any

    @property
    def is_visible(self) -> bool:
        """Whether it is more than the rounding of the tables."""
        if not all(isinstance(each, float | int) for each in (self.recorded, self.now)):
            return True
        return not abs(self.recorded - self.now) <= ROUNDING


def confirm(
    n_units: int,
    *,
    out: str | Path = COMMITTED,
    seed: int = 0,
    console: Console | None = None,
) -> dict[Unit, list[Change]]:
    """Do some finished units of work again; return what differs of each, apart from times.

    They are drawn at random, of every kind of work about as many. Left out are units whose data
    are not on this machine, and networks that another device has trained.
    """
    ledger = Ledger(out)
    by_task: dict[object, list[Unit]] = {}
    for unit in sorted(ledger.units(), key=lambda unit: unit.key):
        by_task.setdefault(unit.task, []).append(unit)
    rng = random.Random(seed)
    kinds = list(by_task.values())
    for units in (kinds, *kinds):
        rng.shuffle(units)
    in_turn = filter(None, chain.from_iterable(zip_longest(*kinds)))
    drawn = [unit for unit in in_turn if can_be_compared(unit, ledger[unit])][:n_units]
    if not drawn:
        raise ValueError(f"The ledger in {out} has no finished work that could be done again.")
    hidden = console is None or not console.is_terminal
    return {
        unit: changes(unit, ledger[unit])
        for unit in track(drawn, "confirm", console=console, disable=hidden)
    }


def can_be_compared(unit: Unit, result: Values) -> bool:
    """Return whether this machine should give the same result: more than times, on data it has."""
    return (
        (not unit.data or is_available(unit.data))
        and any(comparable(result))
        and result.get(DEVICE) in (None, device_here())
    )


def device_here() -> str | None:
    """Return what networks are trained on here; None without torch."""
    if find_spec("torch") is None:
        return None
    from .networks import device_name

    return device_name()


def changes(unit: Unit, result: Values) -> list[Change]:
    """Do a unit again, and compare its results with the recorded ones."""
    recorded = dict(comparable(result))
    # As it would be read from the ledger.
    now = dict(comparable(json.loads(json.dumps(do(unit)))))
    return [
        Change(unit, entry, recorded.get(entry), now.get(entry))
        for entry in {**recorded, **now}
        if not same(recorded.get(entry), now.get(entry))
    ]


def comparable(result: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the entries of a result that must be the same: all but times, nested ones too.

    Examples
    --------
    >>> dict(comparable({"accuracy": 70.0, "seconds": 1.2, "folds": [1, 2]}))
    {'accuracy': 70.0, 'folds.0': 1, 'folds.1': 2}
    """
    if isinstance(result, dict | list):
        items = result.items() if isinstance(result, dict) else enumerate(result)
        for key, value in items:
            if "seconds" not in str(key):
                yield from comparable(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, result


def same(one: Any, other: Any) -> bool:
    """Return whether two entries are equal; NaN equals NaN."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other
