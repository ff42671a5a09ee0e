"""What has been done so far, on disk: an interrupted run goes on where it stopped.

Each experiment has a ledger in its folder of results. A finished unit of work is one line of JSON,
appended to ``units.jsonl`` at once; when a run ends, all lines go to ``units.jsonl.gz``, sorted, so
that the same work gives the same lines but for times. A record says which version of the package
made it, and has a fingerprint of the sources: what other sources made is *stale*. It counts until
it is made anew.
"""

import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from unbag._files import atomic_write, make_folder
from unbag._platform import locked_folder
from unbag._version import __version__

from .sources import fingerprint
from .unit import Unit, Values, key_of

LINES = "units.jsonl"
COMPRESSED = "units.jsonl.gz"
#: What a record has, and what older ones may lack.
ENTRIES = ("unit", "result", "sources", "version")
CPU_SECONDS = "cpu_seconds"


class LedgerInUseError(OSError):
    """Another process is writing to the same ledger."""


class Ledger:
    """Finished units of work and their results.

    Parameters
    ----------
    out : path
        A folder of results. What other experiments have done there is found as well: some of
        them share work.
    experiment : str
        Its ledger is in the folder of this name, made when the ledger is first written to.
    use_stale : bool
        Whether what other sources made counts as done.
    read : callable, optional
        Reads a folder as `read_records` does, which is the default; who opens many ledgers of one
        folder of results may remember what it gave.
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        experiment: str,
        *,
        use_stale: bool = True,
        read: Callable[[Path], dict[str, Values]] | None = None,
    ):
        self.folder: Path = Path(out) / experiment
        self.read: Callable[[Path], dict[str, Values]] = read or read_records
        self.use_stale: bool = use_stale
        self._records: dict[str, Values] = {}
        # Its own records last: they may have been made anew.
        for folder in sorted(Path(out).glob("*/"), key=lambda path: path == self.folder):
            self._read(folder)

    def _read(self, folder: Path) -> None:
        self._records |= {
            key: record
            for key, record in self.read(folder).items()
            if self.use_stale or not is_stale(record)
        }

    def __contains__(self, unit: Unit) -> bool:
        return unit.key in self._records

    def __getitem__(self, unit: Unit) -> Values:
        return self._records[unit.key]["result"]

    def is_stale(self, unit: Unit) -> bool:
        """Return whether other sources than these have done a unit."""
        return is_stale(self._records[unit.key])

    def note_on_stale(self, units: Iterable[Unit]) -> str:
        """Return a note on how many of these units other sources have done; empty if none."""
        done = [unit for unit in units if unit in self]
        n_stale = sum(map(self.is_stale, done))
        if not n_stale:
            return ""
        return (
            f"† {n_stale} of {len(done)} units of work were done by other sources of the package "
            "than these; with `--stale`, they are done anew."
        )

    def cpu_seconds(self, units: Iterable[Unit]) -> tuple[float, int]:
        """Return the CPU time of those of these units whose time was kept, and their number."""
        kept = [
            self._records[unit.key][CPU_SECONDS]
            for unit in units
            if CPU_SECONDS in self._records.get(unit.key, {})
        ]
        return sum(kept), len(kept)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other processes from writing to this ledger, so that `add` can.

        When all goes well, the file of lines is compressed at the end; after an interruption it
        stays, and the next run goes on with it.

        Raises
        ------
        LedgerInUseError
            At once, if another process is writing.
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

    def add(self, unit: Unit, result: Values, cpu_seconds: float | None = None) -> None:
        """Keep the result of a finished unit, within `writing`; it is on disk when this returns."""
        description = unit.describe()
        line = json.dumps(
            {
                "unit": description, "result": result, "sources": fingerprint(description["task"]),
                "version": __version__,
                **({} if cpu_seconds is None else {CPU_SECONDS: round(cpu_seconds, 3)}),
            }
        )  # fmt: skip
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
                record = json.loads(line)
                entries = (*ENTRIES, *({CPU_SECONDS} & record.keys()))
                records[key_of(record["unit"])] = {entry: record[entry] for entry in entries}
            except (ValueError, KeyError, TypeError):
                raise ValueError(
                    f"{path}, line {number}, is no record of finished work: remove the line, or "
                    "give another output folder."
                ) from None
    return records


def is_stale(record: Values) -> bool:
    """Return whether a record was made by other sources than these."""
    return record["sources"] != fingerprint(record["unit"]["task"])


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
                "give another output folder."
            ) from None
        yield
