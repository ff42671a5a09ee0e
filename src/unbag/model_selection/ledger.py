"""What has been done so far, on disk: an interrupted run goes on where it stopped.

A ledger is a folder. A finished unit of work is one line of JSON, appended to ``units.jsonl`` at
once; when a run ends, all lines go to ``units.jsonl.gz``, sorted, so that the same work gives the
same lines but for times. A record says which version of the package made it.
"""

import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from unbag._files import atomic_write, make_folder, parsed_json
from unbag._platform import locked_folder
from unbag._version import __version__

#: Plain values by name: the result of a unit of work, a setting, or a record of a table.
Values = dict[str, Any]
LINES = "units.jsonl"
COMPRESSED = "units.jsonl.gz"
#: What every record has.
ENTRIES = ("unit", "result", "version")
CPU_SECONDS = "cpu_seconds"


class LedgerInUseError(OSError):
    """Another process is writing to the same ledger."""


class Work:
    """A unit of work: the smallest piece that is done, and kept, as a whole."""

    def result(self) -> Values:
        """Do it."""
        raise NotImplementedError

    def describe(self) -> Values:
        """Return as JSON can hold it what is done, and on what: all that the result depends on."""
        raise NotImplementedError

    @cached_property
    def key(self) -> str:
        """The unit as text: the same for the same work, whatever the order of a setting."""
        return key_of(self.describe())


class Ledger:
    """Finished units of work and their results, in a folder that is made when it is written to.

    Finished work in the folders `others` counts as well. `read` replaces `read_records`, for those
    who open many ledgers of the same folders and remember what it gave.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        others: Iterable[Path] = (),
        *,
        read: Callable[[Path], dict[str, Values]] | None = None,
    ):
        self.folder: Path = Path(folder)
        self.read: Callable[[Path], dict[str, Values]] = read or read_records
        self._records: dict[str, Values] = {}
        # Its own records last: they may have been made anew.
        for each in (*others, self.folder):
            self._read(each)

    def _read(self, folder: Path) -> None:
        self._records |= {
            key: record for key, record in self.read(folder).items() if self._counts(record)
        }

    def _counts(self, record: Values) -> bool:
        """Return whether a record is of finished work."""
        return True

    def __contains__(self, unit: Work) -> bool:
        return unit.key in self._records

    def __getitem__(self, unit: Work) -> Values:
        return self._records[unit.key]["result"]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other processes from writing to this ledger, so that `add` can.

        When all goes well, the file of lines is compressed at the end; after an interruption it
        stays, and the next run goes on with it. If another process is writing, a LedgerInUseError
        is raised at once.
        """
        make_folder(self.folder)
        lines = self.folder / LINES
        with _locked(self.folder):
            # Another process may have written since this ledger was read.
            self._read(self.folder)
            try:
                with lines.open("ab") as self._file:
                    # A line that was cut short by a kill must not go on.
                    self._file.truncate(lines.read_bytes().rfind(b"\n") + 1)
                    yield
            except BaseException:
                if not lines.stat().st_size:
                    lines.unlink()
                raise
            compress(self.folder)

    def add(self, unit: Work, result: Values, cpu_seconds: float | None = None) -> None:
        """Keep the result of a finished unit, within `writing`; it is on disk when this returns."""
        description = unit.describe()
        line = json.dumps(
            {
                "unit": description, "result": result, **self._made_by(description),
                **({} if cpu_seconds is None else {CPU_SECONDS: round(cpu_seconds, 3)}),
            }
        )  # fmt: skip
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        # As it will be read again, so that a resumed run ends in the same table.
        self._records[unit.key] = json.loads(line)

    def _made_by(self, description: Values) -> Values:
        """Return the entries of a record that say what made it."""
        return {"version": __version__}


def key_of(description: Values) -> str:
    """Return a description of a unit of work as text, whatever the order of its entries.

    Examples
    --------
    >>> key_of({"task": "fold", "fold": 3}) == key_of({"fold": 3, "task": "fold"})
    True
    """
    return json.dumps(description, sort_keys=True)


def read_records(folder: Path, entries: Iterable[str] = ENTRIES) -> dict[str, Values]:
    """Read the ledger in a folder: the last record of each unit, by its key.

    Every record must have all `entries`. A last line that was cut short by a kill never happened.
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
            if not (isinstance(record, dict) and set(entries) <= record.keys()):
                raise ValueError(
                    f"{path}, line {number}, is not a record of finished work: remove the line, or "
                    "choose another output folder."
                )
            records[key_of(record["unit"])] = record
    return records


def compress(folder: Path) -> None:
    """Move what the file of lines in a folder holds to the compressed file."""
    if records := read_records(folder):
        text = "".join(json.dumps(records[key]) + "\n" for key in sorted(records))
        with atomic_write(folder / COMPRESSED) as file:
            file.write(gzip.compress(text.encode(), mtime=0))
    (folder / LINES).unlink()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder for this process, where the system has locks."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked_folder(folder))
        except BlockingIOError:
            raise LedgerInUseError(
                f"Another process is writing to the ledger in {folder}: wait for it to end, or "
                "choose another output folder."
            ) from None
        yield
