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
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.stats import t as student

from .comparison import Comparison, at_best, measured
from .methods import METHODS
from .recorded import Recorded
from .statistics import words
from .studies import find_study
from .studies.partitions import N_PARTITIONS
from .tables import NEAR
from .unit import Values

REPRODUCED, EXPLAINED, OPEN = "reproduced", "explained", "open"
NOT_TUNED = (*(METHODS[name].title for name in ("mlr", "slr", "dummy")), "K-MLR")
#: Rows that take more steps than published, by the row whose steps they take further.
LONGER = {
    METHODS[name].title: [METHODS[f"{name}-{more}"].title for more in ("200", "end")]
    for name in ("mlr", "slr")
}
#: Experiments whose figures are means over folds, as those of `partitions` are.
FROM_FOLDS = ("inductive", "bag-level")
#: Points of Hamming loss by which settings are as good as tied.
TIED = 0.5


@dataclass(frozen=True)
class Cell:
    """A figure of a table that the paper has as well, with its record."""

    study: str
    table: str
    record: Values

    @property
    def row(self) -> str:
        """Its method, or the line of its curve."""
        return self.record.get("method") or self.record.get("line", "")

    @property
    def measure(self) -> str:
        """Its measure, as results name it."""
        return self.record["measure"].replace(" ", "_")

    @property
    def key(self) -> tuple[Any, ...]:
        """Its identity: without settings to choose, the same in all tables of an experiment."""
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


@cache
def known_explanations() -> Values:
    """Read what is known beyond the tables: ``explanation`` and ``narrower``."""
    text = (files("unbag_reproduce") / "explanations.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def method_of(comparison: Comparison, cell: Cell) -> str:
    """Return the name of a cell's method in a comparison."""
    (name,) = (name for name, each in comparison.methods.items() if each.title == cell.row)
    return name


def chosen_by(cell: Cell) -> str:
    """Return the measure that chose a cell's setting."""
    return "hamming_loss" if cell.record.get("tuned_by") == "Hamming loss" else cell.measure


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
    """Some of a method's settings, and what they reach without the others where it is tuned.

    They are those of an entry of ``narrower``. If the setting that the table has is among them, the
    others change nothing.
    """

    entry: Values
    n_settings: int
    reached: float
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
    plan = recorded.plan(cell.study)
    method, by = method_of(comparison, cell), chosen_by(cell)
    where = (plan, recorded.ledger, cell.record["data"], method)
    chosen = comparison.tuned(*where, by)
    found = []
    for entry in entries:
        grid = comparison.methods[method].grids[plan.level]
        kept = [each for each in grid if is_kept(each, entry["keep"])]
        reached = at_best(comparison, *where, kept, tuned_by=by, measure=cell.measure)
        if reached is not None:
            found.append(Alone(entry, len(kept), reached, chosen in kept))
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
    is known from folds (and letters) drawn again at the same setting, or from the draws of letters;
    None where neither is known.
    """
    name = cell.record["data"]
    n_draws = len(recorded.plan(cell.study).draws(name))
    place = {"study": "partitions", "table": "partitions", "method": cell.row}
    asked = {"data": name, "measure": words(cell.measure), "setting": cell.record.get("setting")}
    moved = recorded.find({**place, **asked}) if cell.study in FROM_FOLDS else []
    if moved:
        deviation = moved[0]["std"]
        n_known = N_PARTITIONS[recorded.plan("partitions").level]
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
    comparison = find_study(cell.study).comparison
    if cell.record.get("tuned_by") != "Hamming loss" or cell.measure == "hamming_loss":
        return ""
    plan, method = recorded.plan(cell.study), method_of(comparison, cell)
    scores = np.array(
        [
            [measured(recorded.ledger, units, by).mean() for by in ("hamming_loss", cell.measure)]
            for setting in comparison.methods[method].grids[plan.level]
            for units in [comparison.tuning_units(plan, cell.record["data"], method, setting)]
        ]
    )
    losses, reached = scores.T
    tied = reached[losses <= losses.min() + TIED]
    if len(tied) < 2 or not tied.min() <= cell.record["published"] <= tied.max():
        return ""
    return (
        f"{len(tied)} settings within {TIED:g} points of the best Hamming "
        f"loss reach {tied.min():.1f} to {tied.max():.1f}"
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


#: What is known of a figure that stays open; the first that says something counts.
HINTS: tuple[Callable[[Recorded, Cell], str], ...] = (
    more_steps, other_tuning, some_settings, near_ties, from_the_file,
)  # fmt: skip


def judge_cell(recorded: Recorded, cell: Cell) -> tuple[str, str]:
    """Return whether a figure is `REPRODUCED`, `EXPLAINED` or `OPEN`, and what is known of it."""
    if cell.is_near:
        return REPRODUCED, ""
    if why := narrower_grid(recorded, cell):
        return EXPLAINED, why
    return OPEN, next(filter(None, (hint(recorded, cell) for hint in HINTS)), "")
