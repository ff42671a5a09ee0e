"""What claims speak of, read from the tables of finished experiments: differences, ratios, curves.

Each function takes the tables, a claim as ``claims.toml`` has it, and a data set (empty where the
claim is of none), and returns the figures that it finds: none where they were not made.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from unbag.model_selection.methods import METHODS
from unbag.model_selection.statistics import HIGHER_IS_BETTER

from .published import published_figure
from .recorded import Recorded, expanded
from .unit import Values


@dataclass(frozen=True)
class Reading:
    """A figure that a claim speaks of.

    Parameters
    ----------
    data : str
    ours : float
    paper : float or None
        The same by the paper's own tables, where they have it.
    compared : str
        What is compared, where a claim compares several.
    """

    data: str
    ours: float
    paper: float | None = None
    compared: str = ""


def column_of(claim: Values) -> str:
    """Return which entry of records a claim speaks of."""
    return claim.get("column", "ours")


def places(claim: Values, data: str) -> Iterator[Values]:
    """Yield where the records that a claim is of are to be found, as `Recorded.find` takes it."""
    return expanded({**claim["of"], **({"data": data} if data else {})})


def records_of(recorded: Recorded, claim: Values, data: str) -> list[Values]:
    """Return the records that a claim is of."""
    return [record for where in places(claim, data) for record in recorded.find(where)]


def pairs(recorded: Recorded, claim: Values, data: str) -> list[tuple[Values, Values]]:
    """Return the records that a claim compares: of what it speaks, and against what."""
    return [
        (first, second)
        for where in places(claim, data)
        for other in expanded({**where, **claim["against"]})
        for first in recorded.find(where)
        for second in recorded.find(other)
    ]


def better_by(first: Values, second: Values, column: str) -> float | None:
    """Return by how much one record is better than another; None where a figure is missing."""
    if first.get(column) is None or second.get(column) is None:
        return None
    measure = str(first.get("measure")).replace(" ", "_")
    return (1 if HIGHER_IS_BETTER.get(measure, True) else -1) * (first[column] - second[column])


def compared(claim: Values, first: Values, second: Values) -> str:
    """Name what two records compare; empty where they have no method.

    Examples
    --------
    >>> compared({"of": {}}, {"method": "MLR"}, {"method": "SIM"})
    'MLR against SIM'
    """
    methods = dict.fromkeys(each["method"] for each in (first, second) if "method" in each)
    measure = [first["measure"].replace("_", " ")] if "measure" in claim["of"] else []
    return ", ".join([" against ".join(methods), *measure])


def differences(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read by how much what the claim is of is better than what it is compared with."""
    return [
        Reading(data, ours, better_by(first, second, "published"), compared(claim, first, second))
        for first, second in pairs(recorded, claim, data)
        if (ours := better_by(first, second, column_of(claim))) is not None
    ]


def ratios(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read how many times what the claim is compared with makes what it is of."""
    column = column_of(claim)
    return [
        Reading(data, first[column] / second[column])
        for first, second in pairs(recorded, claim, data)
    ]


def excesses(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read by how much each difference is larger than the same on another data set, ``than``."""
    here, there = (differences(recorded, claim, each) for each in (data, claim["than"]))
    if len(here) != len(there):
        return []
    return [
        Reading(
            data,
            first.ours - second.ours,
            None if first.paper is None or second.paper is None else first.paper - second.paper,
            first.compared,
        )
        for first, second in zip(here, there, strict=True)
    ]


def shares(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read how much of another record those that the claim is of are together, in percent.

    Their sum counts as often as the product of ``times`` says.
    """
    parts = [recorded.find(where) for where in places(claim, data)]
    wholes = recorded.find({**claim["against"], "data": data})
    if not (wholes and all(parts)):
        return []
    total = sum(record[column_of(claim)] for found in parts for record in found)
    total *= math.prod(claim.get("times", []))
    return [Reading(data, 100 * total / whole["ours"]) for whole in wholes]


def figures(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read the figures themselves; what was never reached is infinite."""
    column = column_of(claim)
    return [
        Reading(data, math.inf if record[column] is None else record[column])
        for record in records_of(recorded, claim, data)
    ]


def spreads(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read how far apart the best and the worst of several are, in each table."""
    found = []
    for of in expanded({"table": claim["of"]["table"]}):
        records = records_of(recorded, {**claim, "of": {**claim["of"], **of}}, data)
        ours = spread_of(records, column_of(claim))
        if ours is not None:
            found.append(Reading(data, ours, spread_of(records, "published")))
    return found


def spread_of(records: list[Values], column: str) -> float | None:
    """Return how far apart the best and the worst record are; None where a figure is missing."""
    values = [each[column] for each in records if each.get(column) is not None]
    return max(values) - min(values) if len(values) == len(records) > 1 else None


def bold_shares(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read how many of the cells are bold, in percent, here and in the paper."""
    ours = [record["bold"] for record in records_of(recorded, claim, data)]
    names = {method.title: method.published_as or name for name, method in METHODS.items()}
    paths = [
        [str(where.get(key, key)) for key in claim["published"]] for where in places(claim, data)
    ]
    theirs = [
        bool(published_figure(*(names.get(each, each) for each in path)).get("bold"))
        for path in paths
    ]
    return [Reading(data, percent(ours), percent(theirs))] if ours else []


def percent(found: list[bool]) -> float:
    """Return how many are true, in percent."""
    return 100.0 * sum(found) / len(found)


def curves(recorded: Recorded, claim: Values, data: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the curves that a claim is of: where each was measured (``over``), and what was.

    Only what lies within ``from`` and ``to`` counts, where the claim has them.
    """
    low, high = claim.get("from", -math.inf), claim.get("to", math.inf)
    found = []
    for where in places(claim, data):
        points = sorted(
            (position, record[column_of(claim)])
            for record in recorded.find(where)
            if low <= (position := leading_number(record[claim["over"]])) <= high
        )
        if len(points) > 1:
            x, y = np.array(points).T
            found.append((x, y))
    return found


def leading_number(entry: float | str) -> float:
    """Return the number that an entry is, or begins with.

    Examples
    --------
    >>> leading_number(20.0), leading_number("4 labels")
    (20.0, 4.0)
    """
    return float(str(entry).split()[0])


def falls(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read the largest fall of each curve from one point to the next; 0 where it only rises."""
    return [
        Reading(data, max(0.0, float(-np.diff(y).min())))
        for _, y in curves(recorded, claim, data)
    ]  # fmt: skip


def settled_shares(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read how much of the way from the first of three points to the last the second is, in %."""
    found = []
    for where in places(claim, data):
        points = [recorded.find({**where, claim["over"]: each}) for each in claim["at"]]
        if all(points):
            start, here, end = (each[column_of(claim)] for (each,) in points)
            found.append(Reading(data, 100 * (here - start) / (end - start)))
    return found


def exponents(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read with which power of what it is over each curve grows."""
    return [
        Reading(data, float(np.polyfit(np.log(x), np.log(y), 1)[0]))
        for x, y in curves(recorded, claim, data)
    ]


def factors(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read how many times larger each curve becomes for each one more of what it is over."""
    return [
        Reading(data, float(np.exp(np.polyfit(x, np.log(y), 1)[0])))
        for x, y in curves(recorded, claim, data)
    ]


def linearities(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read how much of the variance of each curve a straight line explains, in percent."""
    return [
        Reading(data, 100 * float(np.corrcoef(x, y)[0, 1] ** 2))
        for x, y in curves(recorded, claim, data)
    ]


#: By the names that they have in ``claims.toml``.
QUANTITIES: dict[str, Callable[[Recorded, Values, str], list[Reading]]] = {
    "difference": differences,
    "excess": excesses,
    "ratio": ratios,
    "share": shares,
    "figure": figures,
    "spread": spreads,
    "bold": bold_shares,
    "fall": falls,
    "settled": settled_shares,
    "exponent": exponents,
    "factor": factors,
    "linearity": linearities,
}
