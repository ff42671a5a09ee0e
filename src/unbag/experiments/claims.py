"""What the paper's text says of its results, with a number or a direction; and whether it holds.

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
from .unit import Values

#: The data sets of the paper that cannot be had.
MISSING_DATA = {"hja": "HJA bird", "voc12": "Voc12", "50salads": "50 Salads"}
#: How far a figure may be from what the text says: differences in points, all else as a share.
SLACK, SLACK_SHARE = 2.0, 0.25
HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
UNKNOWN, NOT_MADE = "cannot be checked", "not made yet"
#: What is left of a number where only its direction is as the text says.
DIRECTIONS: dict[str, Values] = {"difference": {"above": 0}, "ratio": {"above": 1}}


@dataclass(frozen=True)
class Judgement:
    """What became of a claim.

    Parameters
    ----------
    claim : dict
        As in ``claims.toml``.
    verdict : str
    ours : str
        Our figures.
    why : str
    """

    claim: Values
    verdict: str
    ours: str = ""
    why: str = ""


@cache
def claims() -> list[Values]:
    """Read the claims of the paper's text.

    Returns
    -------
    list of dict
        In the paper's order. ``says``, in our words, with ``section`` and what it speaks ``on``;
        ``data``; and how to check it: a ``quantity`` ``of`` some records, maybe ``against`` others,
        and what to ``expect`` of it. Without ``of``, it cannot be checked.

    Examples
    --------
    >>> claims()[0]["section"]
    '6.1'
    """
    text = (files("unbag.experiments") / "claims.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["claim"]


def is_met(expected: Values, reading: Reading, quantity: str) -> bool:
    """Return whether a figure is as expected.

    Parameters
    ----------
    expected : dict
        One of ``near`` (a number, or one for each data set), ``between``, ``above``, ``below``,
        ``at_most`` (of the absolute value) and ``as_published`` (at least as much as in the
        paper's own table).
    reading : Reading
    quantity : str
        One of `QUANTITIES`.

    Examples
    --------
    >>> is_met({"between": [7, 12]}, Reading("msrcv2", 6.4), "difference")
    True
    >>> is_met({"near": {"hja-union": 2.0}}, Reading("hja-union", 1.2), "ratio")
    False
    """
    ((how, value),) = expected.items()
    if isinstance(value, dict):
        value = value[reading.data]
    if how in ("near", "between"):
        low, high = value if how == "between" else (value, value)
        off = (
            (SLACK, SLACK) if quantity == "difference" else (SLACK_SHARE * low, SLACK_SHARE * high)
        )
        return low - off[0] <= reading.ours <= high + off[1]
    if how == "as_published":
        return reading.paper is None or reading.ours >= reading.paper
    return {
        "above": reading.ours > value,
        "below": reading.ours < value,
        "at_most": abs(reading.ours) <= value,
    }[how]


def judge(claim: Values, recorded: Recorded) -> Judgement:
    """Look a claim up in the tables, and judge it.

    It holds where all figures are as the text says (or a ``share`` of them, where the text says
    that it mostly is so); in part, where some are, or all have at least the direction of what it
    says (``weaker``).
    """
    note = claim.get("note", "")
    data = claim.get("data", [""])
    absent = [name for name in data if name in MISSING_DATA]
    if "of" not in claim or len(absent) == len(data):
        names = ", ".join(MISSING_DATA[name] for name in absent)
        return Judgement(claim, UNKNOWN, why=joined(names and f"{names}: data not here.", note))
    quantity = claim.get("quantity", "difference")
    found = [each for name in data for each in QUANTITIES[quantity](recorded, claim, name)]
    if not found:
        return Judgement(claim, NOT_MADE, why=f"`unbag reproduce {claim['of']['study']}` makes it.")
    met = [is_met(claim["expect"], each, quantity) for each in found]
    weaker = claim.get("weaker", DIRECTIONS.get(quantity))
    has_direction = weaker is not None and all(is_met(weaker, each, quantity) for each in found)
    if sum(met) >= claim.get("share", 1.0) * len(found):
        verdict = HOLDS
    else:
        verdict = IN_PART if any(met) or has_direction else FAILS
    counts = f"{sum(met)} of {len(found)} as said"
    if has_direction and not all(met):
        counts += ", all in that direction"
    own = [Reading(each.data, each.paper) for each in found if each.paper is not None]
    if own and claim["expect"] != {"as_published": True}:
        n_own = sum(is_met(claim["expect"], each, quantity) for each in own)
        counts += f"; in the paper's own tables {n_own} of {len(own)} ({in_words(own, '')})"
    elif own:
        counts += f"; in the paper {in_words(own, '')}"
    left_out = [name for name in data if name not in {each.data for each in found}]
    named = ", ".join(str(MISSING_DATA.get(name, name)) for name in left_out)
    return Judgement(
        claim, verdict, in_words(found, claim.get("unit", "")),
        joined(f"{counts}.", named and f"Without {named}.", note),
    )  # fmt: skip


def joined(*sentences: str) -> str:
    """Join those sentences that there are."""
    return " ".join(filter(None, sentences))


def in_words(readings: Sequence[Reading], unit: str) -> str:
    """Write figures by data set, several as the range that they span.

    Examples
    --------
    >>> in_words([Reading("msrcv2", 6.4), Reading("msrcv2", 8.44), Reading("hja", 1)], "points")
    'msrcv2 6.4 to 8.4, hja 1.0 points'
    """
    by_data: dict[str, list[float]] = {}
    for each in readings:
        by_data.setdefault(each.data, []).append(each.ours)
    spans = []
    for name, values in by_data.items():
        ends = list(dict.fromkeys(map(written, (min(values), max(values)))))
        spans.append(f"{name} {' to '.join(ends)}".strip())
    return f"{', '.join(spans)} {unit}".strip()


def written(value: float) -> str:
    """Write a figure.

    Examples
    --------
    >>> [written(value) for value in (12.345, float("inf"))]
    ['12.3', 'never']
    """
    # A zero has no sign.
    return "never" if math.isinf(value) else f"{round(value, 1) + 0.0:.1f}"


def judge_all(recorded: Recorded) -> list[Judgement]:
    """Judge every claim of the paper's text."""
    return [judge(claim, recorded) for claim in claims()]


def claims_section(judgements: Sequence[Judgement]) -> str:
    """Write the table of claims, in Markdown."""
    verdicts = [each.verdict for each in judgements]
    kinds = (HOLDS, IN_PART, FAILS, UNKNOWN, NOT_MADE)
    counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in kinds if kind in verdicts)
    rows = [
        f"| {each.claim['section']}, {each.claim['on']} | {each.claim['says']} | {each.ours} | "
        f"{link(each)} | {each.why} |"
        for each in judgements
    ]
    return "\n".join(
        [
            "## What the paper's text claims",
            "",
            f"Of {len(verdicts)} claims that have a number or a direction: {counts}. A number "
            f"counts as said within {SLACK:g} points or, where it is no difference of "
            f"percentages, within {100 * SLACK_SHARE:g} %. What the paper's own tables say of the "
            "same claim stands beside it, as the text does not always read them as they are.",
            "",
            "| where | the paper says | ours | | why |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def link(judgement: Judgement) -> str:
    """Write a verdict, linked to the section that has its evidence."""
    study = judgement.claim.get("of", {}).get("study")
    if judgement.verdict in (UNKNOWN, NOT_MADE) or not study:
        return judgement.verdict
    return f"[{judgement.verdict}](#{study})"
