"""Finished work on disk: an interrupted run goes on where it stopped.

Experiments share units of work, so they share one ledger, in the folder of results. A finished unit
is one line of JSON, appended to ``units.jsonl`` at once; when a run ends, all lines go to
``units.jsonl.gz``, sorted, so that the same work gives the same lines, apart from times. A record
says which version of unbag made it.
"""

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from unbag._files import atomic_write, parsed_json
from unbag._platform import locked_folder
from unbag._version import __version__

from .unit import Unit, Values, key_of

LINES = "units.jsonl"
COMPRESSED = "units.jsonl.gz"
#: What every record has.
ENTRIES = ("unit", "result", "version")
CPU_SECONDS = "cpu_seconds"
#: What results of networks say: where they were trained.
DEVICE = "device"


class LedgerInUseError(OSError):
    """Another process is writing to the same ledger."""


class Ledger:
    """Finished units of work and their results, in a folder that is made when it is written to."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder: Path = Path(folder)
        self._records: dict[str, Values] = read_records(self.folder)

    def __contains__(self, unit: Unit) -> bool:
        return unit.key in self._records

    def __getitem__(self, unit: Unit) -> Values:
        return self._records[unit.key]["result"]

    def units(self) -> list[Unit]:
        """Return all finished units."""
        # Which import this file, and define all tasks.
        from .studies import STUDIES, find_study

        for name in STUDIES:
            find_study(name)
        return [Unit.described(record["unit"]) for record in self._records.values()]

    def cpu_seconds(self, units: Iterable[Unit]) -> float:
        """Return the CPU time that these units took, all together."""
        return sum(self._records[unit.key][CPU_SECONDS] for unit in units)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other processes from writing to this ledger, so that `add` can.

        When all goes well, the file of lines is compressed at the end; after an interruption it
        stays, and the next run goes on with it. If another process is writing, a LedgerInUseError
        is raised at once.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = self.folder / LINES
        with ExitStack() as stack:
            try:
                stack.enter_context(locked_folder(self.folder))
            except BlockingIOError:
                raise LedgerInUseError(
                    f"Another process is writing to the ledger in {self.folder}: wait for it to "
                    "end, or choose another output folder."
                ) from None
            # Another process may have written since this ledger was read.
            self._records = read_records(self.folder)
            try:
                with lines.open("ab") as self._file:
                    # A line that was cut short by a kill must not go on.
                    self._file.truncate(lines.read_bytes().rfind(b"\n") + 1)
                    yield
            except BaseException:
                if not lines.stat().st_size:
                    lines.unlink()
                raise
            if lines.stat().st_size:
                text = "".join(f"{json.dumps(each)}\n" for _, each in sorted(self._records.items()))
                with atomic_write(self.folder / COMPRESSED) as file:
                    file.write(gzip.compress(text.encode(), mtime=0))
            lines.unlink()

    def add(self, unit: Unit, result: Values, cpu_seconds: float | None = None) -> None:
        """Keep the result of a finished unit, within `writing`; it is on disk when this returns."""
        record = {"unit": unit.describe(), "result": result, "version": __version__}
        if cpu_seconds is not None:
            record[CPU_SECONDS] = round(cpu_seconds, 3)
        line = json.dumps(record)
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        # As it will be read again, so that a resumed run ends in the same table.
        self._records[unit.key] = json.loads(line)


#: What units of work gave: a ledger, or a plain dict.
Results = Ledger | Mapping[Unit, Values]


def read_records(folder: Path) -> dict[str, Values]:
    """Read the ledger in a folder: the last record of each unit, by its key.

    A last line that was cut short by a kill never happened.
    """
    records = {}
    for name, decompress in ((COMPRESSED, gzip.decompress), (LINES, bytes)):
        path = folder / name
        try:
            lines = decompress(path.read_bytes()).split(b"\n")[:-1] if path.exists() else []
        except (OSError, EOFError) as error:
            raise ValueError(f"{path} cannot be read: {error}. Restore it or remove it.") from None
        for number, line in enumerate(lines, start=1):
            try:
                record = parsed_json(line)
            except ValueError:
                record = None
            if not (isinstance(record, dict) and set(ENTRIES) <= record.keys()):
                raise ValueError(
                    f"{path}, line {number}, is not a record of finished work: remove the line, or "
                    "choose another output folder."
                )
            records[key_of(record["unit"])] = record
    return records
