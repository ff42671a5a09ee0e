"""The figures that claims speak of, read from tables: differences, ratios, curves."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .methods import METHODS
from .published import published_figure
from .recorded import Recorded, expanded
from .statistics import HIGHER_IS_BETTER
from .unit import Values


@dataclass(frozen=True)
class Reading:
    """A figure that a claim speaks of, and the same by the paper's own tables if they have it."""

    data: str
    ours: float
    paper: float | None = None
    compared: str = ""


#: Reads the figures of a claim, as ``claims.toml`` has it, on a data set.
Quantity = Callable[[Recorded, Values, str], list[Reading]]


def places(claim: Values, data: str) -> Iterator[Values]:
    """Yield where the records of a claim are to be found, as `Recorded.find` takes it."""
    return expanded({**claim["of"], **({"data": data} if data else {})})


def records_of(recorded: Recorded, claim: Values, data: str) -> list[Values]:
    """Return the records of a claim."""
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
    """Read by how much the subject of a claim is better than what it is compared with."""
    return [
        Reading(data, ours, better_by(first, second, "published"), compared(claim, first, second))
        for first, second in pairs(recorded, claim, data)
        if (ours := better_by(first, second, claim["column"])) is not None
    ]


def ratios(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read how many times what the claim is compared with makes what it is of."""
    column = claim["column"]
    return [
        Reading(data, first[column] / second[column])
        for first, second in pairs(recorded, claim, data)
    ]


def excesses(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read by how much each difference is larger than the same on another data set, ``than``."""
    here, there = (differences(recorded, claim, each) for each in (data, claim["than"]))
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
    """Read the share of another record that the records of the claim have together, in percent.

    Their sum counts as often as the product of ``times`` says.
    """
    (whole,) = recorded.find({**claim["against"], "data": data})
    total = sum(record[claim["column"]] for record in records_of(recorded, claim, data))
    return [Reading(data, 100 * total * math.prod(claim.get("times", [])) / whole["ours"])]


def figures(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read the figures themselves; what was never reached is infinite."""
    column = claim["column"]
    return [
        Reading(data, math.inf if record[column] is None else record[column])
        for record in records_of(recorded, claim, data)
    ]


def spreads(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read how far apart the best and the worst of several are, in each table."""
    found = []
    for of in expanded({"table": claim["of"]["table"]}):
        records = records_of(recorded, {**claim, "of": {**claim["of"], **of}}, data)
        ours = spread_of(records, claim["column"])
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
            (position, record[claim["column"]])
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


def settled_shares(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
    """Read how much of the way from the first of three points to the last the second is, in %."""
    found = []
    for where in places(claim, data):
        points = [recorded.find({**where, claim["over"]: each}) for each in claim["at"]]
        if all(points):
            start, here, end = (each[claim["column"]] for (each,) in points)
            found.append(Reading(data, 100 * (here - start) / (end - start)))
    return found


def of_curves(measure: Callable[[np.ndarray, np.ndarray], float]) -> Quantity:
    """Return what reads a measure of each curve, of where it was measured and what was."""

    def read(recorded: Recorded, claim: Values, data: str) -> list[Reading]:
        return [Reading(data, float(measure(x, y))) for x, y in curves(recorded, claim, data)]

    return read


#: By the names that they have in ``claims.toml``, which explains them.
QUANTITIES: dict[str, Quantity] = {
    "difference": differences,
    "excess": excesses,
    "ratio": ratios,
    "share": shares,
    "figure": figures,
    "spread": spreads,
    "bold": bold_shares,
    "settled": settled_shares,
    "fall": of_curves(lambda x, y: max(0.0, -np.diff(y).min())),
    "exponent": of_curves(lambda x, y: np.polyfit(np.log(x), np.log(y), 1)[0]),
    "factor": of_curves(lambda x, y: np.exp(np.polyfit(x, np.log(y), 1)[0])),
    "linearity": of_curves(lambda x, y: 100 * np.corrcoef(x, y)[0, 1] ** 2),
}
