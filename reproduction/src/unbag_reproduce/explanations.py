"""Whether a figure is the paper's: *reproduced*, *explained* or *open*.

A figure is reproduced where it is near the paper's. It is explained where one cause can be named
that the paper leaves open, and one experiment with it removes the difference without making one of
another figure of that method in the table. All else is open, whatever else is known of it: that
draws of letters scatter as far, that more steps would come near, or that another setting would.
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

from scipy.stats import t as student

from unbag.model_selection.methods import METHODS, MORE_STEPS
from unbag.model_selection.statistics import HIGHER_IS_BETTER, words

from .comparison import Comparison, are_done, measured
from .notes import at_best
from .recorded import Recorded
from .reproduce import read_plan
from .studies import find_study
from .studies.partitions import N_PARTITIONS
from .unit import Values

REPRODUCED, EXPLAINED, OPEN = "reproduced", "explained", "open"
#: So many points are near.
NEAR = 1.5
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
    def is_near(self) -> bool:
        """Whether it is near the paper's."""
        return abs(self.record["difference"]) <= NEAR

    def is_removed_by(self, other: float) -> bool:
        """Whether another figure for it is near the paper's, and has closed half of the gap."""
        left = abs(other - self.record["published"])
        return left <= min(NEAR, abs(self.record["difference"]) / 2)


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
        reached = removing_figure(recorded, cell, cell.table, title)
        if reached is not None:
            return (
                f"{title}, reaches {reached:.1f}; the paper has 50, and why ours fall short is "
                "not known"
            )
    return ""


def removing_figure(recorded: Recorded, cell: Cell, table: str, method: str) -> float | None:
    """Return the figure for the same thing in another row or table, if it is the paper's."""
    asked = {key: cell.record[key] for key in ("data", "measure")}
    place = {"study": cell.study, "table": table, "method": method}
    figures = [record["ours"] for record in recorded.find({**place, **asked})]
    return next(filter(cell.is_removed_by, figures), None)


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
    where = (cell.study, cell.row, cell.record["data"], chosen_by(cell), cell.measure)
    if where not in recorded.alone:
        recorded.alone[where] = find_settings_alone(recorded, cell)
    return recorded.alone[where]


def find_settings_alone(recorded: Recorded, cell: Cell) -> list[Alone]:
    """Find what `settings_alone` remembers."""
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
    """Name the settings that, taken alone, give the paper's figure, and spoil no other one."""
    for alone in settings_alone(recorded, cell):
        if (
            not alone.is_chosen
            and cell.is_removed_by(alone.reached)
            and not is_spoiled(recorded, cell, alone.entry)
        ):
            return (
                f"{alone.entry['why']}: {alone.entry['settings']} alone "
                f"({alone.n_settings} settings) reach {alone.reached:.1f}"
            )
    return ""


def is_spoiled(recorded: Recorded, cell: Cell, entry: Values) -> bool:
    """Return whether those settings take another figure of the method away from the paper's."""
    for record in recorded.find({"study": cell.study, "table": cell.table, "method": cell.row}):
        other = Cell(cell.study, cell.table, record)
        if record.get("difference") is None:
            continue
        for alone in settings_alone(recorded, other):
            away = abs(alone.reached - record["published"])
            if alone.entry == entry and away > max(NEAR, abs(record["difference"])):
                return True
    return False


def some_settings(recorded: Recorded, cell: Cell) -> str:
    """Say that some settings taken alone would come near, which take other figures away."""
    for alone in settings_alone(recorded, cell):
        if not alone.is_chosen and cell.is_removed_by(alone.reached):
            return (
                f"{alone.entry['settings']} alone reach {alone.reached:.1f}, but take other "
                "figures of this method away from the paper's"
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


def scatter_p_value(recorded: Recorded, cell: Cell) -> float | None:
    """Return how often chance alone would part two such means as far: a p-value, two-tailed.

    The paper's is one mean over folds, and over one draw of letters. How far such means lie apart
    is known from folds (and letters) drawn anew at the same setting, or from the draws of letters;
    None where neither is known.
    """
    name = cell.record["data"]
    n_draws = len(read_plan(recorded.out / cell.study)[0].draws(name))
    place = {"study": "partitions", "table": "partitions", "method": cell.row}
    asked = {"data": name, "measure": words(cell.measure), "setting": cell.record.get("setting")}
    moved = recorded.find({**place, **asked}) if cell.study in FROM_FOLDS else []
    if moved:
        level = read_plan(recorded.out / "partitions")[0].level
        deviation, n_known = moved[0]["std"], N_PARTITIONS[level]
    else:
        deviation, n_known = cell.record.get("draw_std"), n_draws
    if not deviation or n_known < 2:
        return None
    # Ours is a mean over all draws, where there are several.
    apart = deviation * math.sqrt(1 + 1 / n_draws)
    return float(2 * student.sf(abs(cell.record["difference"]) / apart, n_known - 1))


def other_tuning(recorded: Recorded, cell: Cell) -> str:
    """Say that a method comes near the paper when tuned by another measure, where it does."""
    others = {
        "bag-level-hamming": ("bag-level-measure", "the measure itself"),
        "bag-level-measure": ("bag-level-hamming", "Hamming loss"),
    }
    if cell.table not in others or cell.row in NOT_TUNED:
        return ""
    table, tuned_by = others[cell.table]
    reached = removing_figure(recorded, cell, table, cell.row)
    if reached is None:
        return ""
    return (
        f"tuned by {tuned_by}, it reaches {reached:.1f}; the paper does not say by what it tuned, "
        "and that reading takes more figures away from its own than this one"
    )


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
        f"{len(tied)} settings within {TIED:g} points of the best Hamming "
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


#: What removes a difference: a cause that the paper leaves open, and an experiment.
CAUSES: tuple[Callable[[Recorded, Cell], str], ...] = (narrower_grid,)
#: What else is known of one that stays open, the first that says something.
HINTS: tuple[Callable[[Recorded, Cell], str], ...] = (
    more_steps, other_tuning, some_settings, near_ties, from_the_file,
)  # fmt: skip


def judge_cell(recorded: Recorded, cell: Cell) -> tuple[str, str]:
    """Return whether a figure is `REPRODUCED`, `EXPLAINED` or `OPEN`, and what is known of it."""
    if cell.is_near:
        return REPRODUCED, ""
    for rule in CAUSES:
        if why := rule(recorded, cell):
            return EXPLAINED, why
    return OPEN, next(filter(None, (hint(recorded, cell) for hint in HINTS)), "")
