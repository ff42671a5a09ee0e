"""Single figures of committed tables, made anew.

A record of a table rests on some units of work. These are done again, the tables are made of what
they give and of all that is recorded of the others, and the record is compared with the committed
one. Settings are those that were chosen: what chose them is not done again.
"""

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unbag.model_selection.methods import METHODS
from unbag.model_selection.tables import Table
from unbag.model_selection.work import do

from .additions import LOSSES, both_ways_units, row_units
from .e_steps import count_unit, e_step_unit
from .ledger import Ledger, Results
from .plan import Plan, Study
from .recorded import parsed
from .reproduce import COMMITTED, ROUNDING, read_plan
from .rivals import RIVALS
from .studies import (
    beyond,
    complexity,
    convergence,
    dictionary,
    find_study,
    guesses,
    kernel,
    partitions,
    pruning,
    sampling,
    stability,
    training_size,
    violations,
    wider,
)
from .tables import read_csv
from .timing import INFERENCES, point_units, settings
from .unit import Unit, Values

#: How far figures may be apart, beside the rounding of tables: a share of them, and anything less.
RELATIVE, NEGLIGIBLE = 0.01, 1e-9
#: Numbers that say what a record is about, and those that stand beside its figures.
KEYS = (
    "labels", "instances", "scale", "bags", "percent", "probability", "training_percent",
    "training_bags", "steps",
)  # fmt: skip
BESIDE = (
    "published", "published_std", "best_published", "best_published_std", "settings_tried",
)  # fmt: skip
#: Texts that are no words to ask by.
UNASKED = ("setting", "verdict", "bold")


@dataclass(frozen=True)
class Figure:
    """A figure as it was recorded, and as it comes out now.

    Parameters
    ----------
    table, place : str
        Where it is recorded: the table, and what its record is about.
    entry : str
        Of the record.
    recorded, now : float
    is_time : bool
        Whether it is a time, or a ratio of times, which never comes out the same.
    """

    table: str
    place: str
    entry: str
    recorded: float
    now: float
    is_time: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the two are the same as printed; of times, nothing is asked."""
        apart = abs(self.now - self.recorded)
        enough = max(NEGLIGIBLE, min(ROUNDING, RELATIVE * abs(self.recorded)))
        return self.is_time or apart <= enough


class Renewed(Mapping[Unit, Values]):
    """Results of a ledger, some of them made anew."""

    def __init__(self, ledger: Ledger, now: dict[Unit, Values]):
        self.ledger: Ledger = ledger
        self.now: dict[Unit, Values] = now

    def __getitem__(self, unit: Unit) -> Values:
        return self.now[unit] if unit in self.now else self.ledger[unit]

    def __contains__(self, unit: object) -> bool:
        return isinstance(unit, Unit) and (unit in self.now or unit in self.ledger)

    def __iter__(self) -> Iterator[Unit]:
        return iter(self.now)

    def __len__(self) -> int:
        return len(self.now)


# What records rest on.


def flat(rows: list[list[Unit]]) -> list[Unit]:
    """Return units that come in lists over draws or folds."""
    return [unit for row in rows for unit in row]


def key_of(title: str, titles: Mapping[str, str]) -> str:
    """Return the key of a title."""
    return next(key for key, each in titles.items() if each == title)


def of_guesses(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits by one scaling of features, or by one line search."""
    searches = {each.title: each for each in guesses.SEARCHES}
    choice = (
        guesses.SCALINGS[record["scaling"]]
        if table == "guesses-scaling"
        else searches[record["search"]]
    )
    return flat(guesses.units_of(plan, record["data"], record["method"].lower(), choice))


def of_convergence(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits with so many steps."""
    by_lbfgs = record["method"].endswith(convergence.QUASI_NEWTON)
    solver = convergence.QUASI_NEWTON if by_lbfgs else ""
    method = record["method"].removesuffix(solver).lower()
    setting = convergence.settings(plan.level)[solver, text(record["steps"])]
    return flat(convergence.units_of(plan, record["data"], method, setting))


def of_training_size(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits to a share of the bags."""
    titles = {key: each.title for key, each in training_size.COMPARED.items()}
    # What is read off the curves rests on all of them.
    points = (
        [record]
        if "training_percent" in record
        else [
            each
            for each in training_size.size_records(plan, ledger)
            if each["data"] == record["data"]
        ]
    )
    return [
        training_size.share_unit(
            plan, each["data"], key_of(each["method"], titles), setting_of(each),
            int(each["training_percent"]), repeat,
        )
        for each in points
        for repeat in range(training_size.REPEATS[plan.level])
    ]  # fmt: skip


def of_bag_level(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return nothing: constant answers are counted, not fitted."""
    return []


def of_kernel(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits that are timed."""
    method = key_of(record["method"], {key: each.title for key, each in METHODS.items()})
    return flat(kernel.timed_units(plan, ledger, record["data"], method))


def of_complexity(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return what is counted, or timed, of E-steps."""
    if table == "complexity-size":
        method = key_of(record["method"], complexity.OVER_N)
        n_labels = int(str(record["labels"]).split()[0])
        return [complexity.size_unit(plan, method, n_labels, int(record["instances"]))]
    name = record["data"]
    if table == "complexity-time":
        method = key_of(record["method"], complexity.TIMED)
        return [e_step_unit(plan, name, draw, method) for draw in plan.draws(name)]
    if table == "complexity-share":
        return [complexity.profile_unit(plan, name, key_of(record["inference"], complexity.OVER_N))]
    counted = key_of(record["steps"], complexity.COUNTED)
    fitted = {"adaptive_uniform": False, "adaptive_fitted": True}.get(counted)
    if fitted is None:
        return [count_unit(plan, name)]
    return [complexity.visit_unit(plan, name, draw, fitted) for draw in plan.draws(name)]


def of_pruning(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits without some bags, or what is counted and timed of them."""
    name = record["data"]
    if table != "pruning-ratio":
        percents = [int(record["percent"])]
        return flat_points(plan, "em", "prune", name, record["line"], percents)
    what = key_of(record["of"], pruning.GAINS)
    kind, _, inference = what.rpartition("_")
    if kind == "e_step":
        return [
            e_step_unit(plan, name, draw, inference, percent)
            for draw in plan.draws(name)
            for percent in (100, 100 - pruning.TYPICAL)
        ]
    if kind == "fit":
        percents = [0, pruning.TYPICAL]
        return flat_points(plan, "em", "prune", name, INFERENCES[inference], percents)
    return [pruning.cost_unit(plan, name)]


def of_sampling(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits to samples of bags."""
    percents = [int(record["percent"])]
    if table == "sampling-speed-up":
        percents = list(dict.fromkeys([*percents, sampling.WHOLE]))
    return flat_points(
        plan, "stochastic", "sample_fraction", record["data"], record["line"], percents
    )


def flat_points(
    plan: Plan, model: str, parameter: str, name: str, line: str, percents: list[int]
) -> list[Unit]:
    """Return the fits of some points of a curve."""
    return [
        unit
        for percent in percents
        for unit in flat(point_units(plan, name, model, settings(parameter, percent)[line]))
    ]


def of_dictionary(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits with a share of the dictionary."""
    both_ways = table == "dictionary-columns"
    scaling = None if record.get("columns") == "as they are" else "standard"
    percent = int(record["percent"])
    return flat(dictionary.units_at(plan, record["data"], percent, scaling, both_ways))


def of_beyond(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits of a row, or of a rival."""
    rivals = {key: each.title for key, each in RIVALS.methods.items()}
    if record.get("method") in rivals.values():
        method = key_of(record["method"], rivals)
        return flat(RIVALS.units_of(plan, record["data"], method, setting_of(record)))
    row = (
        record.get("variant") or record.get("loss") or record.get("method") or beyond.OF_BAGS[table]
    )
    if table == "beyond-both-ways":
        return flat(both_ways_units(plan, ledger, record["data"], row))
    # Both tables have differences from another row, too.
    rows = [row, next(iter(LOSSES))] if "loss" in record else [row]
    return flat([fold for each in rows for fold in row_units(plan, ledger, record["data"], each)])


def of_violations(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits to labels that were changed."""
    titles = {key: each.title for key, each in violations.READINGS.items()}
    of = key_of(record["method"], titles), record["kind"], float(record["probability"])
    return [violations.fold_unit(plan, record["data"], *of, place) for place in range(plan.n_folds)]


def of_stability(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the answers of kernels for bags of one shape and scale."""
    shape = {"n_labels": "labels", "n_instances": "instances", "scale": "scale"}
    return [
        unit
        for unit in stability.units(plan)
        if all(unit.condition[key] == record[entry] for key, entry in shape.items())
    ]


def of_partitions(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits on all partitions."""
    return flat(
        next(
            folds
            for (name, method), folds in partitions.chosen_units(plan, ledger).items()
            if (name, METHODS[method].title) == (record["data"], record["method"])
            and partitions.has(method, record["measure"].replace(" ", "_"))
        )
    )


def of_wider(plan: Plan, ledger: Results, table: str, record: Values) -> list[Unit]:
    """Return the fits at the setting of a wider grid."""
    comparison = wider.WIDER[record["measure"].replace(" ", "_")]
    method = key_of(record["method"], {key: each.title for key, each in METHODS.items()})
    return flat(comparison.units_of(plan, record["data"], method, setting_of(record)))


#: Experiment to what its records rest on, where that is not what its methods do in all folds.
RESTS_ON: dict[str, Callable[[Plan, Results, str, Values], list[Unit]]] = {
    "guesses": of_guesses,
    "convergence": of_convergence,
    "training-size": of_training_size,
    "bag-level": of_bag_level,
    "kernel": of_kernel,
    "complexity": of_complexity,
    "pruning": of_pruning,
    "sampling": of_sampling,
    "dictionary": of_dictionary,
    "beyond": of_beyond,
    "violations": of_violations,
    "stability": of_stability,
    "partitions": of_partitions,
    "wider": of_wider,
}


def units_behind(
    study: Study, plan: Plan, ledger: Ledger, table: str, record: Values
) -> list[Unit]:
    """Return the units of work that a record of a table rests on; none where nothing is fitted."""
    if study.comparison is not None and "setting" in record:
        titles = {key: each.title for key, each in study.comparison.methods.items()}
        if record["method"] in titles.values():
            of = key_of(record["method"], titles), setting_of(record)
            return flat(study.comparison.units_of(plan, record["data"], *of))
    if study.name in RESTS_ON:
        return RESTS_ON[study.name](plan, ledger, table, record)
    # All that was done on the same data: more than is needed, but nothing is left out.
    return [
        unit
        for unit in study.units(plan, ledger)
        if unit in ledger and unit.data == record.get("data")
    ]


def setting_of(record: Values) -> Values:
    """Return the setting of a record, as a table has it or as it was read from a file."""
    setting = record["setting"]
    return ast.literal_eval(setting) if isinstance(setting, str) else setting


# Finding records, and making them anew.


def text(value: Any) -> str:
    """Write an entry as a word of the command line: whole numbers without a point.

    Examples
    --------
    >>> text(50.0), text(0.1), text("MLR")
    ('50', '0.1', 'MLR')
    """
    return f"{value:g}" if isinstance(value, float) else str(value)


def words_of(record: Values, titles: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the words that each entry of a record can be asked for by.

    Examples
    --------
    >>> words_of({"data": "hja", "method": "MLR", "steps": 50.0, "ours": 70.7}, {"mlr": "MLR"})
    {'data': ['hja'], 'method': ['MLR', 'mlr'], 'steps': ['50']}
    """
    return {
        entry: [text(value), *(key for key, title in titles.items() if title == value)]
        for entry, value in record.items()
        if entry not in UNASKED and (isinstance(value, str) or entry in KEYS)
    }


def is_asked_for(words: list[str], of_record: dict[str, list[str]]) -> bool:
    """Return whether a record has all words; ``entry=word`` asks for the word of one entry.

    Examples
    --------
    >>> of_record = {"labels": ["4"], "instances": ["6"]}
    >>> is_asked_for(["4"], of_record), is_asked_for(["instances=4"], of_record)
    (True, False)
    """
    has = {entry: [each.lower() for each in known] for entry, known in of_record.items()}
    everything = [each for known in has.values() for each in known]

    def is_there(word: str) -> bool:
        entry, equals, value = word.lower().partition("=")
        return value in has[entry] if equals and entry in has else word.lower() in everything

    return all(map(is_there, words))


def figures_of(table: str, record: Values, now: Values) -> list[Figure]:
    """Compare the figures of a record with those of the same record made anew."""
    place = ", ".join(
        text(value)
        for entry, value in record.items()
        if entry not in ("measure", *UNASKED) and (isinstance(value, str) or entry in KEYS)
    )
    entries = ["ours"] if isinstance(record.get("ours"), float) else [
        entry
        for entry, value in record.items()
        if isinstance(value, float) and entry not in (*KEYS, *BESIDE)
    ]  # fmt: skip
    about = " ".join(map(str, (table, record.get("measure"), record.get("of"))))
    of_times = any(word in about for word in ("time", "seconds", "speed-up", "complexity-share"))
    return [
        Figure(
            table, place, str(record.get("measure") or entry) if entry == "ours" else entry,
            record[entry], float(now[entry]), of_times or "seconds" in entry,
        )
        for entry in entries
    ]  # fmt: skip


def remake(study_name: str, words: list[str], *, out: str | Path = COMMITTED) -> list[Figure]:
    """Make figures of the tables of an experiment anew.

    Parameters
    ----------
    study_name : str
        The experiment.
    words : list of str
        What is asked for: every record that has all of these words, such as a data set, a method
        (as in the tables, or as on the command line) and a share; ``entry=word`` where a word is
        not enough.
    out : path
        The folder of results.
    """
    study = find_study(study_name)
    folder = Path(out) / study_name
    plan, about = read_plan(folder)
    ledger = Ledger(out, study_name)
    compared = {} if study.comparison is None else study.comparison.methods
    titles = {
        **{key: each.title for key, each in METHODS.items()},
        **{key: each.title for key, each in compared.items()},
    }
    records = [
        (table, place, {key: parsed(value) for key, value in record.items()})
        for table in about["tables"]
        for place, record in enumerate(read_csv(folder / f"{table}.csv"))
    ]
    found = [each for each in records if is_asked_for(words, words_of(each[2], titles))]
    if not found:
        known: dict[str, dict[str, None]] = {}
        for _, _, record in records:
            for entry, (word, *_) in words_of(record, titles).items():
                known.setdefault(entry, {})[word] = None
        listed = "; ".join(f"{entry}: {', '.join(each)}" for entry, each in known.items())
        raise ValueError(
            f"The tables of {study_name} have no record of {', '.join(words)}. They have: {listed}."
        )
    # Other data sets need not be on this machine.
    names = {record["data"] for _, _, record in found if "data" in record}
    if names:
        plan = replace(plan, data=tuple(name for name in plan.data if name in names))
        records = [each for each in records if each[2].get("data") in names]
    units = dict.fromkeys(
        unit
        for table, _, record in found
        for unit in units_behind(study, plan, ledger, table, record)
    )
    # As they would be read from the ledger.
    now = {unit: json.loads(json.dumps(do(unit))) for unit in units}
    tables = {
        each.name: each
        for each in study.present(plan, Renewed(ledger, now))
        if isinstance(each, Table)
    }
    places = {
        table: [place for each, place, _ in records if each == table] for table in about["tables"]
    }
    return [
        figure
        for table, place, record in found
        for now_recorded in [tables[table].records[places[table].index(place)]]
        for figure in figures_of(table, record, now_recorded)
    ]
