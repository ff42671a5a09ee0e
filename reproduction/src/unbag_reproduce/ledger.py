"""Ledgers of experiments, which know by what sources their work was done.

Each experiment has a ledger in its folder of results, as `unbag.model_selection.ledger` describes
it. A record has a fingerprint of the sources, too: what other sources made is *stale*. It counts
until it is made anew.

A record names its task relative to this package, as in ``studies.kernel.fold``. So results that
were made when the experiments were `unbag.experiments` are found as they are. But if a file of
tasks is renamed, its results are lost, unless `Unit.describe` still uses the old name.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from unbag.model_selection import ledger
from unbag.model_selection.ledger import CPU_SECONDS, ENTRIES, key_of

from . import sources
from .unit import Unit, Values

#: What every record has: of which sources, as well.
SOURCES = "sources"
#: What results of networks say: where they were trained.
DEVICE = "device"
read_records: Callable[[Path], dict[str, Values]] = partial(
    ledger.read_records, entries=(*ENTRIES, SOURCES)
)


class Ledger(ledger.Ledger):
    """Finished units of work of an experiment, and their results.

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
        self.use_stale: bool = use_stale
        folder = Path(out) / experiment
        others = (path for path in sorted(Path(out).glob("*/")) if path != folder)
        super().__init__(folder, others, read=read or read_records)

    def _counts(self, record: Values) -> bool:
        if not is_stale(record):
            return True
        # What these sources have done, perhaps for another experiment, is not given up for it.
        known = self._records.get(key_of(record["unit"]))
        return self.use_stale and (known is None or is_stale(known))

    def _made_by(self, description: Values) -> Values:
        return {SOURCES: sources.fingerprint(description["task"]), **super()._made_by(description)}

    def forget_stale(self, units: Iterable[Unit]) -> list[Unit]:
        """Count those of these units that other sources have done as not done; return them.

        In the files they stay until they are done again. Networks that another device has trained
        are not forgotten: here they would become others.
        """
        forgotten = [
            unit
            for unit in dict.fromkeys(units)
            if unit in self and self.is_stale(unit) and can_be_redone(self[unit])
        ]
        for unit in forgotten:
            del self._records[unit.key]
        return forgotten

    def is_stale(self, unit: Unit) -> bool:
        """Return whether other sources than these have done a unit."""
        return is_stale(self._records[unit.key])

    def version(self, unit: Unit) -> str:
        """Return the version of the package that has done a unit."""
        return str(self._records[unit.key]["version"])

    def note_on_stale(self, units: Iterable[Unit], shown: Iterable[Unit] = ()) -> str:
        """Return a note on how many of these units other sources have done; empty if none.

        Parameters
        ----------
        units : iterable of Unit
        shown : iterable of Unit
            Those whose results tables show: the others have chosen their settings.
        """
        done = [unit for unit in units if unit in self]
        stale = [unit for unit in done if self.is_stale(unit)]
        n_stale = len(stale)
        if not n_stale:
            return ""
        n_elsewhere = sum(not can_be_redone(self[unit]) for unit in stale)
        but = f", but for {n_elsewhere} networks of another device" if n_elsewhere else ""
        shown = [unit for unit in shown if unit in self]
        n_shown = sum(map(self.is_stale, shown))
        of_shown = ""
        if shown and n_shown < n_stale:
            of_shown = (
                f"; of the {len(shown)} fits that tables show, {n_shown}"
                if n_shown
                else f"; the {len(shown)} fits that tables show are of this version"
            )
        return (
            f"Sources: {n_stale} of {len(done)} units of work were done by an earlier version of "
            f"the code{of_shown}. With `--stale`, they are done again{but}."
        )

    def cpu_seconds(self, units: Iterable[Unit]) -> tuple[float, int]:
        """Return the CPU time of those of these units whose time was kept, and their number."""
        kept = [
            self._records[unit.key][CPU_SECONDS]
            for unit in units
            if CPU_SECONDS in self._records.get(unit.key, {})
        ]
        return sum(kept), len(kept)


#: What units of work gave: a ledger, or a plain dict.
Results = Ledger | Mapping[Unit, Values]


def is_stale(record: Values) -> bool:
    """Return whether a record was made by other sources than these."""
    return record[SOURCES] != sources.fingerprint(record["unit"]["task"])


def can_be_redone(result: Values) -> bool:
    """Return whether this machine gives the same result: networks depend on what trains them."""
    if DEVICE not in result:
        return True
    if find_spec("torch") is None:
        return False
    from .networks import device_name

    return result[DEVICE] == device_name()
