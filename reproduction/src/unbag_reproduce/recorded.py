"""What finished experiments have written down: the records of their tables, read again."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from unbag.model_selection.tables import ABOUT

from .ledger import Ledger, read_records
from .reproduce import read_plan
from .rests_on import units_shown
from .studies import find_study
from .tables import read_csv
from .unit import Unit, Values

#: What says where a record lies, rather than what it must have.
PLACE = ("study", "table")


class Recorded:
    """The tables in a folder of results.

    A first look (level "quick") is no evidence: of such an experiment there are no records.

    Parameters
    ----------
    out : path
        The output folder of `reproduce`.
    """

    def __init__(self, out: str | os.PathLike[str]):
        self.out: Path = Path(out)
        self._tables: dict[tuple[str, str], list[Values]] = {}
        self._ledgers: dict[str, Ledger] = {}
        self._units: dict[str, list[Unit]] = {}
        self._shown: dict[str, list[Unit]] = {}
        #: What methods reach at some of their settings alone, which takes long to find.
        self.alone: dict[tuple[str, ...], list[Any]] = {}
        # Every ledger looks into the folders of all experiments.
        self._read: Callable[[Path], dict[str, Values]] = cache(read_records)

    def is_made(self, study: str) -> bool:
        """Return whether an experiment was made, and not as a first look."""
        folder = self.out / study
        return (folder / ABOUT).exists() and read_plan(folder)[0].level != "quick"

    def ledger(self, study: str) -> Ledger:
        """Return the ledger of an experiment."""
        if study not in self._ledgers:
            self._ledgers[study] = Ledger(self.out, study, read=self._read)
        return self._ledgers[study]

    def units(self, study: str) -> list[Unit]:
        """Return the units of work that the results of an experiment rest on, done or not."""
        if study not in self._units:
            plan, _ = read_plan(self.out / study)
            self._units[study] = find_study(study).units(plan, self.ledger(study))
        return self._units[study]

    def shown(self, study: str) -> list[Unit]:
        """Return the units of work whose results the tables of an experiment show."""
        if study not in self._shown:
            plan, about = read_plan(self.out / study)
            records = [
                (name, each) for name in about["tables"] for each in self.records(study, name)
            ]
            made = find_study(study)
            self._shown[study] = units_shown(made, plan, self.ledger(study), records)
        return self._shown[study]

    def records(self, study: str, table: str) -> list[Values]:
        """Return the records of a table; none if it was not made."""
        if (study, table) not in self._tables:
            path = self.out / study / f"{table}.csv"
            lines = read_csv(path) if self.is_made(study) and path.exists() else []
            self._tables[study, table] = [
                {key: parsed(text) for key, text in line.items()} for line in lines
            ]
        return self._tables[study, table]

    def find(self, where: Values) -> list[Values]:
        """Return the records that have given entries.

        Parameters
        ----------
        where : dict
            ``study`` and ``table``, and entries of its records.
        """
        asked = {key: value for key, value in where.items() if key not in PLACE}
        return [
            record
            for record in self.records(where["study"], where["table"])
            if all(record.get(key) == value for key, value in asked.items())
        ]


def parsed(text: str) -> Any:
    """Return an entry of a CSV file as the number or truth value that it was, else as text.

    Examples
    --------
    >>> [parsed(text) for text in ("1.5", "", "True", "hja-union")]
    [1.5, None, True, 'hja-union']
    """
    if text in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[text]
    try:
        return float(text)
    except ValueError:
        return text


def expanded(where: Values) -> Iterator[Values]:
    """Yield one dict for each combination of the entries that are lists.

    Examples
    --------
    >>> list(expanded({"method": ["SIM", "MLR"], "table": "accuracy"}))
    [{'method': 'SIM', 'table': 'accuracy'}, {'method': 'MLR', 'table': 'accuracy'}]
    """
    choices = [value if isinstance(value, list) else [value] for value in where.values()]
    for chosen in product(*choices):
        yield dict(zip(where, chosen, strict=True))
