"""Single figures of committed tables, made anew.

A record of a table rests on some units of work. These are done again, the tables are made of what
they give and of all that is recorded of the others, and the record is compared with the committed
one. Settings are those that were chosen: what chose them is not done again.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from unbag.model_selection.methods import METHODS
from unbag.model_selection.tables import Table
from unbag.model_selection.work import do

from .ledger import Ledger
from .recorded import parsed
from .reproduce import COMMITTED, ROUNDING, read_plan
from .rests_on import units_behind
from .studies import find_study
from .tables import as_word, read_csv
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


def words_of(record: Values, titles: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the words that each entry of a record can be asked for by.

    Examples
    --------
    >>> words_of({"data": "hja", "method": "MLR", "steps": 50.0, "ours": 70.7}, {"mlr": "MLR"})
    {'data': ['hja'], 'method': ['MLR', 'mlr'], 'steps': ['50']}
    """
    return {
        entry: [as_word(value), *(key for key, title in titles.items() if title == value)]
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
        as_word(value)
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
    ledger = Ledger(out, study_name)
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
