"""Claims of the paper's text that have a number or a direction, and whether they hold.

``claims.toml`` has the claims, and says how each is looked up in the tables of finished
experiments. No result is written there or here.
"""

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from .quantities import QUANTITIES, Reading
from .recorded import Recorded
from .tables import DATA, markdown_table
from .unit import Values

#: The data sets of the paper that cannot be had.
MISSING_DATA = {"hja": "HJA bird", "voc12": "Voc12", "50salads": "50 Salads"}
#: How far a figure may be from what the text says: points, or all else as a share.
SLACK, SLACK_SHARE = 2.0, 0.25
#: So many figures that are not as said are named.
FEW = 2
#: The share of the figures from which on a claim mostly holds.
MOST = 0.75
HOLDS, MOSTLY, IN_PART = "holds", "mostly holds", "holds in part"
DIRECTION_ONLY, FAILS = "direction only", "does not hold"
UNKNOWN = "cannot be checked"
VERDICTS = (HOLDS, MOSTLY, IN_PART, DIRECTION_ONLY, FAILS, UNKNOWN)
#: What is left of a number, or of "clearly", where only its direction is as the text says.
DIRECTIONS: dict[str, Values] = {
    "difference": {"above": 0}, "excess": {"above": 0}, "ratio": {"above": 1},
}  # fmt: skip
#: What a claim has unless it says something else.
DEFAULTS: Values = {
    "data": [""], "quantity": "difference", "column": "ours", "unit": "", "note": "",
}  # fmt: skip
#: Decimals of the figures, where one does not tell them apart.
DECIMALS = {"exponent": 2, "factor": 2}


@dataclass(frozen=True)
class Judgement:
    """A claim with our verdict, our figures, how many of them are as asked, and why."""

    claim: Values
    verdict: str
    ours: str = ""
    tally: str = ""
    why: str = ""


@cache
def read_claims() -> Values:
    """Read ``claims.toml``, which says what a claim has: in the paper's order, in our words.

    Examples
    --------
    >>> read_claims()["claim"][0]["section"], read_claims()["words"]["comparable"]
    ('6.1', {'at_most': 3.0})
    """
    text = (files("unbag_reproduce") / "claims.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def completed(claim: Values) -> Values:
    """Return a claim with what it leaves to defaults, and what its word of degree asks for."""
    claim = {**DEFAULTS, **claim}
    if isinstance(claim.get("expect"), str):
        claim["expect"] = read_claims()["words"][claim["expect"]]
    has_side = not claim.get("expect", {}).keys() & {"at_most", "below"}
    return {"direction": DIRECTIONS.get(claim["quantity"]) if has_side else None, **claim}


def is_in_points(unit: str) -> bool:
    """Return whether figures are points of a percentage."""
    return unit.startswith("points")


def is_met(expected: Values, reading: Reading, unit: str) -> bool:
    """Return whether a figure is as expected, by one of the words that ``claims.toml`` explains.

    How far it may be from a number depends on whether its unit is points.

    Examples
    --------
    >>> is_met({"between": [7, 12]}, Reading("msrcv2", 6.4), "points")
    True
    >>> is_met({"near": {"hja-union": 2.0}}, Reading("hja-union", 1.2), "times")
    False
    """
    ((how, value),) = expected.items()
    if isinstance(value, dict):
        value = value[reading.data]
    if how in ("near", "between"):
        low, high = value if how == "between" else (value, value)
        below, above = (
            (SLACK, SLACK) if is_in_points(unit) else (SLACK_SHARE * low, SLACK_SHARE * high)
        )
        return low - below <= reading.ours <= high + above
    if how == "as_published":
        return reading.paper is None or reading.ours >= reading.paper
    return {
        "above": reading.ours > value,
        "below": reading.ours < value,
        "at_most": abs(reading.ours) <= value,
    }[how]


def asked(expected: Values, claim: Values) -> str:
    """Write what is asked of the figures of a claim.

    Examples
    --------
    >>> asked({"near": {"msrcv2": 5, "letter-frost": 3}}, {"unit": "points"})
    'within 2 points of 5, 3'
    >>> asked({"at_most": 3.0}, {"quantity": "difference"})
    'at most 3 either way'
    """
    ((how, value),) = expected.items()
    if how in ("near", "between"):
        slack = f"{SLACK:g} points" if is_in_points(claim["unit"]) else f"{100 * SLACK_SHARE:g} %"
        numbers = value.values() if isinstance(value, dict) else value
        numbers = [numbers] if isinstance(numbers, int | float) else numbers
        between = " to " if how == "between" else ", "
        return f"within {slack} of {between.join(f'{each:g}' for each in numbers)}"
    if how == "as_published":
        return "at least as much as in the paper"
    either_way = " either way" * (how == "at_most" and claim["quantity"] == "difference")
    return f"{how.replace('_', ' ')} {value:g}{either_way}"


def verdict_of(met: Sequence[bool], has_direction: bool) -> str:
    """Return the verdict on a claim, by which of its figures are as it says.

    Examples
    --------
    >>> verdict_of([True, True, True, False], True)
    'mostly holds'
    >>> verdict_of([False, False], True)
    'direction only'
    """
    if all(met):
        return HOLDS
    if sum(met) >= MOST * len(met):
        return MOSTLY
    if any(met):
        return IN_PART
    return DIRECTION_ONLY if has_direction else FAILS


def judge(claim: Values, recorded: Recorded) -> Judgement:
    """Look a claim up in the tables, and judge it by how many of its figures are as it says."""
    claim = completed(claim)
    data, note = claim["data"], claim["note"]
    absent = [name for name in data if name in MISSING_DATA]
    if "of" not in claim or len(absent) == len(data):
        names = ", ".join(MISSING_DATA[name] for name in absent)
        return Judgement(claim, UNKNOWN, why=joined(names and f"{names}: data not here.", note))
    found = readings_of(claim, recorded)
    met = are_met(claim, found)
    verdict = verdict_of(met, has_direction(claim, found))
    if claim.get("cannot_refute") and not all(met):
        verdict = UNKNOWN
    left_out = [name for name in data if name not in {each.data for each in found}]
    named = ", ".join(MISSING_DATA.get(name) or DATA.get(name, "") for name in left_out)
    return Judgement(
        claim, verdict, figures_in_words(claim, found),
        f"{count_met(claim, found)} {asked(claim['expect'], claim)}",
        joined(tally(claim, found), named and f"Without {named}.", beside(claim, recorded), note),
    )  # fmt: skip


def are_met(claim: Values, readings: Sequence[Reading]) -> list[bool]:
    """Return which figures are as a claim says."""
    return [is_met(claim["expect"], each, claim["unit"]) for each in readings]


def has_direction(claim: Values, found: Sequence[Reading]) -> bool:
    """Return whether all figures have at least the direction of what a claim says."""
    direction = claim["direction"]
    return direction is not None and all(is_met(direction, each, claim["unit"]) for each in found)


def tally(claim: Values, found: Sequence[Reading]) -> str:
    """Write what is asked of figures, how many are so, and the same of the paper's own tables."""
    expected, direction, met = claim["expect"], claim["direction"], are_met(claim, found)
    missed = [each for each, is_so in zip(found, met, strict=True) if not is_so]
    words = f"{count_met(claim, found)} {asked(expected, claim)}"
    if len(missed) <= FEW < sum(met):
        words += "".join(
            f", not {each.compared} on {DATA[each.data]}" for each in missed if each.compared
        )
    if direction and missed and has_direction(claim, found):
        words += f"; {'all ' * (len(found) > 1)}{asked(direction, claim)}"
    own = own_readings(claim, found)
    if own and "as_published" in expected:
        words += f": there {in_words(own, '')}"
    elif own:
        words += f"; in the paper's own tables {count_met(claim, own)} ({in_words(own, '')})"
    return f"{words}."


def count_met(claim: Values, readings: Sequence[Reading]) -> str:
    """Write how many figures are as a claim says."""
    return f"{sum(are_met(claim, readings))} of {len(readings)}"


def own_readings(claim: Values, found: Sequence[Reading]) -> list[Reading]:
    """Return the same figures by the paper's own tables, as far as these have them.

    If several tables of ours belong to one of the paper, its figures count once.
    """
    own = [
        Reading(each.data, each.paper, None, each.compared)
        for each in found
        if each.paper is not None
    ]
    return list(dict.fromkeys(own)) if claim.get("one_published_table") else own


def readings_of(claim: Values, recorded: Recorded) -> list[Reading]:
    """Read the figures that a claim speaks of, on all of its data sets."""
    quantity = QUANTITIES[claim["quantity"]]
    return [each for name in claim["data"] for each in quantity(recorded, claim, name)]


def beside(claim: Values, recorded: Recorded) -> str:
    """Write the figures that a claim should be read with; empty if there are none.

    Where something else is to be expected of them, how many are so is written in their place.
    """
    if "beside" not in claim:
        return ""
    of = {**claim["of"], **claim["beside"].get("of", {})}
    other = completed({**claim, **claim["beside"], "of": of})
    found = readings_of(other, recorded)
    if "expect" not in claim["beside"]:
        words = figures_in_words(other, found)
    else:
        words, own = count_met(other, found), own_readings(other, found)
        words += f", in the paper's own tables {count_met(other, own)}" * bool(own)
    return f"{other['label']}: {words}."


def joined(*sentences: str) -> str:
    """Join those sentences that there are."""
    return " ".join(filter(None, sentences))


def figures_in_words(claim: Values, readings: Sequence[Reading]) -> str:
    """Write the figures of a claim."""
    return in_words(readings, claim["unit"], DECIMALS.get(claim["quantity"], 1))


def in_words(readings: Sequence[Reading], unit: str, decimals: int = 1) -> str:
    """Write figures by data set, several as the range that they span.

    Examples
    --------
    >>> in_words([Reading("msrcv2", 6.4), Reading("msrcv2", 8.44), Reading("hja", 1)], "points")
    'MSRC v2 6.4 to 8.4, hja 1.0 points'
    """
    by_data: dict[str, list[float]] = {}
    for each in readings:
        by_data.setdefault(each.data, []).append(each.ours)
    spans = []
    for name, values in by_data.items():
        ends = dict.fromkeys(written(each, decimals) for each in (min(values), max(values)))
        spans.append(f"{DATA.get(name, name)} {' to '.join(ends)}".strip())
    return f"{', '.join(spans)} {unit}".strip()


def written(value: float, decimals: int = 1) -> str:
    """Write a figure.

    Examples
    --------
    >>> [written(value) for value in (12.345, float("inf"))]
    ['12.3', 'never']
    """
    # A zero has no sign.
    return "never" if math.isinf(value) else f"{round(value, decimals) + 0.0:.{decimals}f}"


def judge_all(recorded: Recorded) -> list[Judgement]:
    """Judge every claim of the paper's text."""
    return [judge(claim, recorded) for claim in read_claims()["claim"]]


def claims_page(judgements: Sequence[Judgement]) -> str:
    """Write the page on claims, in Markdown: how many hold, and those that do not."""
    by_place: dict[str, list[str]] = {}
    for each in judgements:
        by_place.setdefault(each.claim["on"], []).append(each.verdict)
    counts = [
        [place, *(found.count(verdict) or "" for verdict in VERDICTS)]
        for place, found in by_place.items()
    ]
    failing = [each for each in judgements if each.verdict not in (HOLDS, MOSTLY, UNKNOWN)]
    rows = [
        [where(each), each.claim["says"], each.ours, link(each), each.tally] for each in failing
    ]
    return "\n\n".join(
        [
            "# What the paper's text claims",
            f"{len(judgements)} claims have a number or a direction: {counted(judgements)}. All of "
            "them, with what the paper's own tables say of each, are in "
            "[docs/results/claims.md](../results/claims.md).",
            rule_of_verdicts(),
            markdown_table(["claims on", *VERDICTS], counts),
            "## Claims that do not hold, or not on all data",
            markdown_table(["where", "the paper says", "ours", "verdict", "met"], rows),
            "",
        ]
    )


def claims_list(judgements: Sequence[Judgement]) -> str:
    """Write the list of all claims, in Markdown."""
    rows = [
        [where(each), each.claim["says"], each.ours, link(each), each.why] for each in judgements
    ]
    header = ["where", "the paper says", "ours", "verdict", "asked, how many are so, and why"]
    return "\n\n".join(
        ["# Every claim of the paper's text", rule_of_verdicts(), markdown_table(header, rows), ""]
    )


def where(judgement: Judgement) -> str:
    """Say where the paper has a claim."""
    return f"{judgement.claim['section']}, {judgement.claim['on']}"


def counted(judgements: Sequence[Judgement]) -> str:
    """Write how many claims have each verdict."""
    found = [each.verdict for each in judgements]
    return ", ".join(f"{kind} {found.count(kind)}" for kind in VERDICTS if kind in found)


def rule_of_verdicts() -> str:
    """Write how claims are judged."""
    by_meaning: dict[str, list[str]] = {}
    for word, expected in read_claims()["words"].items():
        by_meaning.setdefault(asked(expected, {"quantity": "figure"}), []).append(f'"{word}"')
    meanings = "; ".join(f"{', '.join(of)}: {meaning}" for meaning, of in by_meaning.items())
    return (
        f"*{HOLDS.capitalize()}*: all of our figures are as asked. *{MOSTLY.capitalize()}*: at "
        f"least {100 * MOST:g} % are. *{IN_PART.capitalize()}*: some are. "
        f"*{DIRECTION_ONLY.capitalize()}*: none are, but all are on the side that the text says. "
        f"*{FAILS.capitalize()}*: not even that. A number is met within {SLACK:g} points or, if it "
        f"is not in points, within {100 * SLACK_SHARE:g} %. The paper's words have no numbers; we "
        f"chose what to ask, in points: {meanings}. Claims on HJA bird are checked on HJA."
    )


def link(judgement: Judgement) -> str:
    """Write a verdict, linked to the section that has its evidence."""
    if judgement.verdict == UNKNOWN:
        return judgement.verdict
    return f"[{judgement.verdict}](#{judgement.claim['of']['study']})"
