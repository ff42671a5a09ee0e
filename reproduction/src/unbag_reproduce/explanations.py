"""Why a figure is not the paper's: what other rows, draws and settings of the same experiments say.

``explanations.toml`` has what no table or ledger can say by itself.
"""

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib.resources import files
from typing import Any

from unbag.model_selection.methods import METHODS, MORE_STEPS
from unbag.model_selection.statistics import HIGHER_IS_BETTER, words

from .comparison import Comparison, are_done, measured
from .notes import at_best
from .recorded import Recorded
from .reproduce import read_plan
from .studies import find_study
from .unit import Values

#: So many points are near: for what has nothing to tune, and for all else.
NEAR, NEAR_TUNED = 1.5, 2.0
NOT_TUNED = (*(METHODS[name].title for name in ("mlr", "slr", "dummy")), "K-MLR")
#: Rows that take more steps than published, by the row whose steps they take further.
LONGER = {
    METHODS[name].title: [METHODS[f"{name}-{more}"].title for more in MORE_STEPS]
    for name in ("mlr", "slr")
}
#: Experiments whose figures are means over folds, as those of `partitions` are.
FROM_FOLDS = ("inductive", "bag-level")
#: Points of Hamming loss by which settings are as good as tied.
TIED = 0.5
UNEXPLAINED, CONJECTURE = "unexplained", "a conjecture"


@dataclass(frozen=True)
class Cell:
    """A figure of a table that stands beside one of the paper.

    Parameters
    ----------
    study, table : str
    record : dict
        Of the table, with ``published`` and ``difference``.
    """

    study: str
    table: str
    record: Values

    @property
    def row(self) -> str:
        """Its method, or the line of its curve."""
        return self.record.get("method") or self.record.get("line", "")

    @property
    def measure(self) -> str:
        """What it measures, as results name it."""
        return self.record["measure"].replace(" ", "_")

    @property
    def key(self) -> tuple[Any, ...]:
        """What it is: without settings to choose, the same in all tables of an experiment."""
        figures = (self.record[key] for key in ("data", "measure", "ours", "published"))
        return (self.study, self.row, *figures)

    @property
    def near(self) -> float:
        """How many points are near for its kind."""
        return NEAR if self.row in NOT_TUNED else NEAR_TUNED

    @property
    def is_near(self) -> bool:
        """Whether it is as near to the paper's as its kind should be."""
        return abs(self.record["difference"]) <= self.near

    def is_explained_by(self, other: float) -> bool:
        """Whether another figure for it is near the paper's, and has closed half of the gap."""
        left = abs(other - self.record["published"])
        return left <= min(self.near, abs(self.record["difference"]) / 2)


@dataclass(frozen=True)
class Tried:
    """A setting that was tried: by what it is chosen, and what it reaches, on the tuning folds."""

    setting: Values
    score: float
    reached: float


@cache
def known_explanations() -> Values:
    """Read what is known beyond the tables: ``explanation``, ``narrower`` and ``same``."""
    text = (files("unbag_reproduce") / "explanations.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def method_of(comparison: Comparison, cell: Cell) -> str:
    """Return the name of a cell's method in a comparison."""
    (name,) = (name for name, each in comparison.methods.items() if each.title == cell.row)
    return name


def chosen_by(cell: Cell) -> str:
    """Return the measure that chose a cell's setting."""
    return "hamming_loss" if cell.record.get("tuned_by") == "Hamming loss" else cell.measure


def settings_tried(recorded: Recorded, cell: Cell) -> list[Tried]:
    """Return the settings that a method was tuned over, as far as the ledger has all of them."""
    comparison = find_study(cell.study).comparison
    if comparison is None or "tuned_by" not in cell.record:
        return []
    plan, _ = read_plan(recorded.out / cell.study)
    ledger = recorded.ledger(cell.study)
    method, by = method_of(comparison, cell), chosen_by(cell)
    found = []
    for setting in comparison.methods[method].grids[plan.level]:
        units = comparison.tuning_units(plan, cell.record["data"], method, setting)
        if not are_done(ledger, units):
            return []
        score, reached = (
            float(measured(ledger, units, each).mean()) for each in (by, cell.measure)
        )
        found.append(Tried(setting, score if HIGHER_IS_BETTER[by] else -score, reached))
    return found


def more_steps(recorded: Recorded, cell: Cell) -> str:
    """Say that more steps than 50 come near the paper, where they do."""
    for title in LONGER.get(cell.row, []):
        reached = explaining_figure(recorded, cell, cell.table, title)
        if reached is not None:
            return f"{title}, reaches {reached:.1f}; why 50 do not is not known"
    return ""


def explaining_figure(recorded: Recorded, cell: Cell, table: str, method: str) -> float | None:
    """Return the figure for the same thing in another row or table, if it explains a cell."""
    asked = {key: cell.record[key] for key in ("data", "measure")}
    place = {"study": cell.study, "table": table, "method": method}
    figures = [record["ours"] for record in recorded.find({**place, **asked})]
    return next(filter(cell.is_explained_by, figures), None)


def other_draws(recorded: Recorded, cell: Cell) -> str:
    """Say that means of single draws of the letters lie as far apart, where they do."""
    apart = cell.record.get("draw_std")
    if apart is None or abs(cell.record["difference"]) > 2 * apart:
        return ""
    return f"within two deviations ({apart:.1f} each) of the means of single draws of letters"


@dataclass(frozen=True)
class Alone:
    """What some of a method's settings reach without the others, where it is tuned.

    Parameters
    ----------
    entry : dict
        Of ``narrower``: which settings, and why these.
    n_settings : int
    reached, all_reach : float
        By the best of them, and by the best of all.
    is_chosen : bool
        Whether the setting that the table has is one of them: so the others change nothing.
    """

    entry: Values
    n_settings: int
    reached: float
    all_reach: float
    is_chosen: bool


def settings_alone(recorded: Recorded, cell: Cell) -> list[Alone]:
    """Return what a cell's method reaches at some of its settings alone, as the file names them."""
    entries = [each for each in known_explanations()["narrower"] if each["method"] == cell.row]
    comparison = find_study(cell.study).comparison
    if not entries or comparison is None:
        return []
    plan, _ = read_plan(recorded.out / cell.study)
    method, by = method_of(comparison, cell), chosen_by(cell)
    where = (plan, recorded.ledger(cell.study), cell.record["data"], method)
    grid = comparison.methods[method].grids[plan.level]
    reach = partial(at_best, comparison, *where, tuned_by=by, measure=cell.measure)
    chosen, all_reach = comparison.tuned(*where, by), reach(settings=grid)
    found = []
    for entry in entries:
        kept = [each for each in grid if is_kept(each, entry["keep"])]
        reached = reach(settings=kept)
        if reached is not None and all_reach is not None:
            found.append(Alone(entry, len(kept), reached, all_reach, chosen in kept))
    return found


def narrower_grid(recorded: Recorded, cell: Cell) -> str:
    """Say that some of our settings, taken alone, come near the paper, where they do."""
    for alone in settings_alone(recorded, cell):
        if not alone.is_chosen and cell.is_explained_by(alone.reached):
            return (
                f"{alone.entry['why']}: {alone.entry['settings']} alone "
                f"({alone.n_settings} settings) reach {alone.reached:.1f}"
            )
    return ""


def is_kept(setting: Values, keep: Values) -> bool:
    """Return whether a setting has one of the values that an entry keeps.

    Examples
    --------
    >>> is_kept({"alpha": 10.0**-9}, {"alpha": [1e-9, 1e-8]})
    True
    """

    def same(one: Any, other: Any) -> bool:
        return math.isclose(one, other) if isinstance(other, float) else one == other

    return all(any(same(setting.get(key), each) for each in of) for key, of in keep.items())


def other_folds(recorded: Recorded, cell: Cell) -> str:
    """Say that means over folds drawn anew lie as far apart, where they do."""
    if cell.study not in FROM_FOLDS:
        return ""
    name = cell.record["data"]
    place = {"study": "partitions", "table": "partitions", "method": cell.row}
    asked = {"data": name, "measure": words(cell.measure), "setting": cell.record.get("setting")}
    n_draws = len(read_plan(recorded.out / cell.study)[0].draws(name))
    for moved in recorded.find({**place, **asked}):
        # The paper's is one such mean, and ours another, or the mean of those of all draws.
        apart = math.sqrt(1 + 1 / n_draws) * moved["std"]
        if abs(cell.record["difference"]) <= 2 * apart:
            return (
                f"within two deviations ({apart:.1f} each) of what lies between two means over "
                f"folds{' and letters' * (n_draws > 1)} drawn anew ([partitions](#partitions))"
            )
    return ""


def other_tuning(recorded: Recorded, cell: Cell) -> str:
    """Say that a method comes near the paper when tuned by another measure, where it does."""
    others = {
        "bag-level-hamming": ("bag-level-measure", "the measure itself"),
        "bag-level-measure": ("bag-level-hamming", "Hamming loss"),
    }
    if cell.table not in others or cell.row in NOT_TUNED:
        return ""
    table, tuned_by = others[cell.table]
    reached = explaining_figure(recorded, cell, table, cell.row)
    if reached is None:
        return ""
    return (
        f"the paper does not say by what it tuned: tuned by {tuned_by}, "
        f"{cell.row} reaches {reached:.1f}"
    )


def best_width(recorded: Recorded, cell: Cell) -> Cell | None:
    """Return the cell of the best kernel width that belongs to one of a single width."""
    if cell.study != "dictionary":
        return None
    asked = {"data": cell.record["data"], "method": METHODS["mlr"].title}
    found = recorded.find({"study": "kernel", "table": "kernel", **asked})
    return Cell("kernel", "kernel", found[0]) if found else None


def other_width(recorded: Recorded, cell: Cell) -> str:
    """Say that the best kernel width comes near the paper, where it does."""
    best = best_width(recorded, cell)
    if best is None or not cell.is_explained_by(best.record["ours"]):
        return ""
    return f"at the best of seven kernel widths it is {best.record['ours']:.1f}"


def width_and_more(recorded: Recorded, cell: Cell) -> str:
    """Say that the best kernel width closes a part, and what explains the rest, where it does."""
    best = best_width(recorded, cell)
    if best is None or best.is_near:
        return ""
    kind, why = explain(recorded, best)
    if kind not in RULES:
        return ""
    return f"at the best of seven kernel widths it is {best.record['ours']:.1f}; the rest is {why}"


def near_ties(recorded: Recorded, cell: Cell) -> str:
    """Say that settings as good by Hamming loss span the paper's figure, where they do."""
    if cell.record.get("tuned_by") != "Hamming loss" or cell.measure == "hamming_loss":
        return ""
    tried = settings_tried(recorded, cell)
    best = max((each.score for each in tried), default=0.0)
    tied = [each.reached for each in tried if each.score >= best - TIED]
    if len(tied) < 2 or not min(tied) <= cell.record["published"] <= max(tied):
        return ""
    return (
        f"chosen among near ties: {len(tied)} settings within {TIED:g} points of the best Hamming "
        f"loss reach {min(tied):.1f} to {max(tied):.1f}"
    )


def from_the_file(recorded: Recorded, cell: Cell) -> str:
    """Look up what is known of a difference; the first entry that fits counts."""
    asked = {
        "study": cell.study, "table": cell.table, "data": cell.record["data"], "method": cell.row,
        "measure": cell.measure,
    }  # fmt: skip
    for entry in known_explanations()["explanation"]:
        if all(fnmatchcase(value, entry.get(key, "*")) for key, value in asked.items()):
            sign = {"above": 1, "below": -1}.get(entry.get("sign", ""), 0)
            if sign * cell.record["difference"] >= 0:
                return entry["why"]
    return ""


#: What explains differences, experiments first, words last.
RULES: dict[str, Callable[[Recorded, Cell], str]] = {
    "more steps": more_steps,
    "draws of letters": other_draws,
    "other tuning": other_tuning,
    "other settings": narrower_grid,
    "ties among settings": near_ties,
    "folds drawn anew": other_folds,
    "other kernel widths": other_width,
    "other kernel widths and draws": width_and_more,
    "what else is known": from_the_file,
}


def explain(recorded: Recorded, cell: Cell) -> tuple[str, str]:
    """Return by what a difference is explained, one of `RULES`, and why it is there.

    Where nothing explains it, or a guess alone, the first is `UNEXPLAINED` or `CONJECTURE`.
    """
    for title, rule in RULES.items():
        if why := rule(recorded, cell):
            kinds = (each for each in (UNEXPLAINED, CONJECTURE) if why.startswith(each))
            return next(kinds, title), f"{why}{what_was_tried(recorded, cell, why)}"
    return UNEXPLAINED, f"{UNEXPLAINED}{what_was_tried(recorded, cell, UNEXPLAINED)}"


def what_was_tried(recorded: Recorded, cell: Cell, why: str) -> str:
    """Say what settings alone reach that do not explain a difference either; else nothing."""
    if not why.startswith(UNEXPLAINED):
        return ""
    tried = [each for each in settings_alone(recorded, cell) if not each.is_chosen]
    return "".join(
        f"; {each.entry['settings']} alone reach {each.reached:.1f} where all reach "
        f"{each.all_reach:.1f}"
        for each in tried
    )
