"""What has been done so far, on disk: an interrupted run goes on where it stopped.

A *unit* is the smallest piece of work, such as one method with one setting on one fold: a
dict of plain values, whose ``task`` names the function that does it. Each finished unit is one
line of JSON, written at once.
"""

import json
import os

from unbag._version import __version__


def key_of(unit):
    """Write a unit as text that is the same whatever the order of its entries.

    Examples
    --------
    >>> key_of({"task": "fold", "fold": 3}) == key_of({"fold": 3, "task": "fold"})
    True
    """
    return json.dumps(unit, sort_keys=True)


class Ledger:
    """Finished units and their results, kept in one file per task.

    Parameters
    ----------
    folder : Path
        Made when the first unit is finished. What another version of the package has done is
        left there, but not used.
    """

    def __init__(self, folder):
        self.folder = folder
        self.results = {}
        for path in sorted(folder.glob("*.jsonl")):
            self._read(path)

    def _read(self, path):
        content = path.read_bytes()
        # What comes after the last line break was cut short by a kill: it never happened.
        whole = content.rpartition(b"\n")[0]
        if len(whole) + bool(whole) < len(content):
            with path.open("r+b") as file:
                file.truncate(len(whole) + bool(whole))
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                entry = json.loads(line)
                if entry["version"] == __version__:
                    self.results[key_of(entry["unit"])] = entry["result"]
            except (ValueError, KeyError, TypeError):
                raise ValueError(
                    f"{path}, line {number}, is no record of finished work: remove the line, or "
                    "give another output folder."
                ) from None

    def __contains__(self, unit):
        return key_of(unit) in self.results

    def __getitem__(self, unit):
        return self.results[key_of(unit)]

    def add(self, unit, result):
        """Keep the result of a finished unit; it is on disk when this returns."""
        self.folder.mkdir(parents=True, exist_ok=True)
        entry = {"unit": unit, "result": result, "version": __version__}
        with (self.folder / f"{unit['task']}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        # As it will be read again, so that a resumed run ends in the same table.
        self.results[key_of(unit)] = json.loads(json.dumps(result))
