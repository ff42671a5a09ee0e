"""What networks reach elsewhere, from a benchmark beside results.

``benchmarks/committee.py`` fits models to made families and digits, which had no part in the
defaults of networks of one kind, and to other folds of the paper's data sets. It keeps what they
reach.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from .calibration import calibration_error
from .plan import PAPER_DATA
from .unit import Values

#: Where the repository keeps what that benchmark has found.
KEPT = Path("benchmarks/results/committee.jsonl")
METHODS = {
    "linear": "linear", "kernel": "kernel", "network": "networks of one kind",
    "committee": "committee", "told": "committee, told every instance's label",
}  # fmt: skip
COMMITTEE, TOLD = "committee", "told"
#: Those that learn from label sets alone.
COMPARED = tuple(method for method in METHODS if method != TOLD)
#: What is asked only of models that were not told the answer.
OF_TRAINING_BAGS = ("given", "bins given")
#: How far below the best counts as level with it, in points.
LEVEL = 1.0
#: What fits are asked for: entry of a row, title, and how several fits make one figure.
MEASURES: dict[str, tuple[str, Callable[[list], float]]] = {
    "new": ("new bags", lambda fits: float(np.mean(fits))),
    "given": ("given the tags", lambda fits: float(np.mean(fits))),
    "bins new": ("calibration error, new bags", calibration_error),
    "bins given": ("calibration error, given the tags", calibration_error),
}

#: Data set, then method, then seed, to what a fit reached.
Fits = dict[str, dict[str, dict[int, Values]]]


def kept_fits(out: Path) -> Fits:
    """Read what the benchmark has kept.

    Parameters
    ----------
    out : path
        A folder of results, ``docs/results`` of a repository.
    """
    path = out.resolve().parents[1] / KEPT
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found: Fits = {}
    for row in map(json.loads, lines):
        found.setdefault(row["data"], {}).setdefault(row["method"], {})[row["seed"]] = row
    return found


def figure(fits: Sequence[Values], measure: str) -> float | None:
    """Return a measure over fits; None unless all of them have it."""
    values = [fit[measure] for fit in fits if measure in fit]
    return MEASURES[measure][1](values) if values and len(values) == len(fits) else None


def means_on_new_bags(found: Fits) -> dict[str, dict[str, float]]:
    """Return the mean accuracy on new bags of those that learn from label sets alone."""
    return {
        name: {
            method: value
            for method in COMPARED
            if (value := figure(list(each.get(method, {}).values()), "new")) is not None
        }
        for name, each in found.items()
    }


def had_a_part(name: str) -> bool:
    """Return whether another data set was used in building the committee: all but the digits."""
    return not name.startswith("digits")


def level_with_best(
    out: Path, counts: Callable[[str], bool] = lambda name: True
) -> tuple[int, int]:
    """Count the other data sets on which the committee is level with the best, and all of them.

    Parameters
    ----------
    out : path
        A folder of results.
    counts : callable
        Takes the name of a data set; tells whether it counts.
    """
    found = {
        name: each
        for name, each in kept_fits(out).items()
        if name not in PAPER_DATA and counts(name)
    }
    means = [each for each in means_on_new_bags(found).values() if COMMITTEE in each]
    return sum(each[COMMITTEE] >= max(each.values()) - LEVEL for each in means), len(means)


def other_data_section(out: Path) -> str:
    """Write what models reach on other data, in Markdown; empty if nothing was kept."""
    found = {name: each for name, each in kept_fits(out).items() if name not in PAPER_DATA}
    if not found:
        return ""
    means = means_on_new_bags(found)
    ahead = [
        name
        for name, each in means.items()
        if "network" in each
        and each["network"] > max(each[m] for m in ("linear", "kernel") if m in each)
    ]
    n_level, n_committee = level_with_best(out)
    of_committee = ("given", "bins new")
    rows = []
    for name, each in sorted(found.items()):
        cells = [
            f"{means[name][method]:.1f} ({len(each[method])})" if method in means[name] else ""
            for method in COMPARED
        ]
        fits = list(each.get(COMMITTEE, {}).values())
        cells += [in_short(figure(fits, measure)) for measure in of_committee]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    titles = [
        *(METHODS[method] for method in COMPARED),
        *(f"committee, {MEASURES[measure][0]}" for measure in of_committee),
    ]
    return "\n".join(
        [
            "## Other data",
            "",
            "Instance accuracy (%) on new bags of synthetic families and of digits, each model at "
            "fixed settings; in brackets, the number of draws. The last two columns are of the "
            "committee as well: accuracy on the training bags given their tags, and how far its "
            "probabilities on new bags are from how often they are right, in points. Words are "
            "made label sets that recur: the first number is that of the label sets, the second "
            "that of the bags. In “wrong tags”, the tags given are wrong, too. These data had no "
            "part in the defaults of networks of one kind. But the synthetic families were used to "
            "decide how equally the committee weights its parts, and when it uses its linear model "
            "alone ([decisions](decisions.md#committees)); the digits were not. By "
            "their means, untested, networks of one kind are ahead of the linear model and the "
            f"kernel on {len(ahead)} of {len(found)} of them, and the committee is within "
            f"{LEVEL:g} point of the best of all on {n_level} of {n_committee}. "
            "`python benchmarks/committee.py` makes the table's figures.",
            "",
            *markdown(titles, rows),
            "",
        ]
    )


def other_folds_section(out: Path) -> str:
    """Write what models reach on other folds of the paper's data; empty if nothing was kept."""
    found = {name: each for name, each in kept_fits(out).items() if name in PAPER_DATA}
    rows = []
    for name in (each for each in PAPER_DATA if COMMITTEE in found.get(each, {})):
        committee = found[name][COMMITTEE]
        for method in (each for each in METHODS if each in found[name]):
            seeds = sorted(found[name][method].keys() & committee.keys())
            if seeds:
                rows.append(row_beside(name, method, found[name][method], committee, seeds))
    if not rows:
        return ""
    titles = ["draws", "folds", *(title for title, _ in MEASURES.values())]
    return "\n".join(
        [
            "## The same data, other folds",
            "",
            "The paper's data sets again, each model at fixed settings, on other folds of the "
            "same bags than above; of the letters, some of the five draws. In brackets: the "
            "committee on the same folds and draws, as not all models were fitted to all of them "
            "(“folds” are those over all draws that both have). Accuracy on new bags and on "
            "training bags given their tags, in %, and calibration errors, in points, over the "
            "bins of all these folds; where probabilities were kept of fewer folds, their number "
            "is in brackets. Models told the training labels are not scored on them. "
            "Nothing here is tested. `python benchmarks/committee.py --real` makes the figures.",
            "",
            *markdown(titles, rows),
            "",
        ]
    )


def row_beside(
    name: str,
    method: str,
    own: dict[int, Values],
    committee: dict[int, Values],
    seeds: Sequence[int],
) -> str:
    """Write a row of the table of other folds: a method, and the committee on the same ones."""
    cells = [str(len({seed // 10 for seed in seeds})), str(len(seeds))]
    for measure in MEASURES:
        kept = [seed for seed in seeds if measure in own[seed] and measure in committee[seed]]
        ours, theirs = (figure([of[seed] for seed in kept], measure) for of in (own, committee))
        beside = [in_short(theirs)] if method != COMMITTEE else []
        fewer = [f"{len(kept)} folds"] if len(kept) < len(seeds) else []
        notes = f" ({'; '.join([*beside, *fewer])})" if beside or fewer else ""
        is_asked = method != TOLD or measure not in OF_TRAINING_BAGS
        cells.append(f"{in_short(ours)}{notes}" if is_asked and ours is not None else "")
    return f"| {name}, {METHODS[method]} | {' | '.join(cells)} |"


def in_short(value: float | None) -> str:
    """Write a figure with one digit; nothing where there is none."""
    return "" if value is None else f"{value:.1f}"


def markdown(titles: Sequence[str], rows: Sequence[str]) -> list[str]:
    """Return the lines of a table whose first column has no title."""
    return [f"| | {' | '.join(titles)} |", f"|---|{'---:|' * len(titles)}", *rows]
