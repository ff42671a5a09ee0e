"""Signals: tables of a row per time stamp, cut into windows, and described; see `windows` for how.

A file is read twice: first its times alone, to know the rate of each recording, whether it is in
order, and how even; then its values, block by block. Only a recording that is out of order is kept
in memory as a whole.
"""

import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unbag._files import TABLES, DataError, PathLike, check
from unbag._messages import argument, counted, listed, shortened
from unbag.tables.roles import Roles
from unbag.tables.table import open_source

from .descriptions import FEWEST_SAMPLES, WindowDescription
from .extraction import Extracted, ExtractOptions, extracted
from .given_segments import checked_windows
from .kinds import FileInstances, MediaKind, OnShare, ignore_share
from .layouts import ZONED_STAMPS, LayoutGuess, Rows, SignalLayout, guessed_layout, rows_of
from .windows import (
    LONGEST_WINDOW,
    SECONDS,
    Cutter,
    Sampling,
    TimeSummary,
    check_samples,
    in_units,
    is_blank,
    seconds_of,
)

logger: logging.Logger = logging.getLogger(__name__)

# Rows of a recording that are cut at a time.
BLOCK_ROWS = 1 << 16
# A larger share of rows with the time of another is an error.
MOST_REPEATED = 0.2
# The most bytes of a recording out of order, which is sorted in memory.
MOST_SORTED = 1 << 30
# The most files of a folder by which columns and rates are guessed.
HEADS = 50


@dataclass(frozen=True)
class Signals(MediaKind):
    """Tables of signals, and how they are cut into windows; see `signals`.

    Columns, rate and hop that are not given are known once the kind is `prepared`.
    """

    windows: float = SECONDS
    hop: float | None = None
    #: Samples per second that all recordings are brought to.
    rate: float | None = None
    time: str | None = None
    time_unit: str | None = None
    channels: Sequence[str] | None = None
    bag: str | None = None
    layout: SignalLayout | None = None
    name: ClassVar[str] = "signals"
    things: ClassVar[str] = "recordings"
    suffixes: ClassVar[tuple[str, ...]] = (*TABLES, ".gz")
    has_bag_column: ClassVar[bool] = True

    def check(self) -> None:
        """Raise an error for wrong settings."""
        super().check()
        checked_windows(self.windows, self.hop, LONGEST_WINDOW)
        check(
            self.rate is None or 0 < self.rate < math.inf,
            f"{argument('rate')} must be more than 0, not {self.rate}.",
        )

    def prepared(self, paths: Mapping[str, Path]) -> Self:
        """Guess columns and rate that are not given from the first rows of some files; log them."""
        files = list(paths.values())
        guesses: dict[Path, LayoutGuess] = {}
        faults: list[DataError | OSError] = []
        # Spread over the folder, since files of a kind may come one after the other.
        for path in files[:: max(1, math.ceil(len(files) / HEADS))]:
            try:
                guesses[path] = guessed_layout(
                    path, time=self.time, time_unit=self.time_unit, channels=self.channels,
                    bag=self.bag,
                )  # fmt: skip
            except (DataError, OSError) as error:
                # It is named when the file is read.
                faults.append(error)
        if not guesses:
            raise faults[0]
        # Files of other columns than most are named when they are read.
        layouts = Counter(guess.layout for guess in guesses.values())
        layout = max(layouts, key=layouts.__getitem__)
        own = {path: guess for path, guess in guesses.items() if guess.layout == layout}
        rates = [guess.rate for guess in own.values() if guess.rate is not None]
        rate = self.rate or _rounded(float(np.median(rates))) if self.rate or rates else None
        path, first = next(iter(own.items()))
        check(rate, f"{path} has a single time: a signal has samples one after the other.")
        self._log_guesses(layout, first.left_out, rate)
        _, hop = checked_windows(self.windows, self.hop, LONGEST_WINDOW)
        kind = replace(self, layout=layout, hop=hop, rate=rate)
        check_samples(kind.description)
        return kind

    def _log_guesses(self, layout, left_out, rate):
        unit = layout.unit if layout.has_stamps else f"numbers of {layout.unit}"
        if self.time is None or self.time_unit is None:
            logger.info("Times are in column %r, %s.", layout.time, unit)
        if self.bag is None and layout.recording is not None:
            logger.info("Column %r tells recordings apart.", layout.recording)
        if self.channels is None:
            others = [f"{name} ({reason})" for name, reason in left_out.items()]
            rest = f" Left out: {listed(others)}." if others else ""
            logger.info("Channels: %s.%s", listed(layout.channels), rest)
        if self.rate is None:
            logger.info("Samples per second: %g.", rate)

    @property
    def known_layout(self) -> SignalLayout:
        """The layout of a prepared kind."""
        assert self.layout is not None, "only a prepared kind has one"
        return self.layout

    @property
    def description(self) -> WindowDescription:
        """How windows are described."""
        assert self.rate is not None, "only a prepared kind has one"
        return WindowDescription(self.known_layout.channels, self.windows, self.rate)

    @property
    def one_bag_per_file(self) -> bool:
        """Whether no column tells recordings apart."""
        return self.known_layout.recording is None

    @property
    def roles(self) -> Roles:
        """The roles of the columns."""
        carried = ("time",) if self.known_layout.has_stamps else ()
        return Roles(
            bag="file", media="file" if self.one_bag_per_file else "table", start="start",
            end="end", carry=carried, features=self.description.features,
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """Return everything that the rows depend on."""
        layout = self.known_layout
        return {
            "windows": self.windows, "hop": self.hop, "rate": self.rate, "time": layout.time,
            "time_unit": layout.unit, "recording": layout.recording,
            "channels": list(layout.channels),
        }  # fmt: skip

    def schema(self) -> pa.Schema:
        """Return the columns of the rows."""
        columns: list[tuple[str, pa.DataType]] = [("file", pa.string())]
        if not self.one_bag_per_file:
            columns.append(("table", pa.string()))
        columns += [("start", pa.float64()), ("end", pa.float64())]
        if self.known_layout.has_stamps:
            zone = "UTC" if self.known_layout.unit == ZONED_STAMPS else None
            columns.append(("time", pa.timestamp("us", zone)))
        return pa.schema([*columns, *((name, pa.float32()) for name in self.description.features)])

    def instances(self, path: Path, name: str, on_share: OnShare = ignore_share) -> FileInstances:
        """Cut the recordings of a file into windows."""
        with open_source(path, TABLES) as source:
            return SignalReader(self, source, name).instances(on_share)


def _rounded(rate: float) -> float:
    """Round a rate to three digits, so that the same sensors have the same rate.

    Examples
    --------
    >>> _rounded(49.973), _rounded(1000.4), _rounded(0.016667)
    (50.0, 1000.0, 0.0167)
    """
    return float(f"{rate:.3g}")


@dataclass
class SignalRecording:
    """One recording of a file, while it is read."""

    where: str
    times: TimeSummary = field(default_factory=TimeSummary)
    #: How many rows are still to come.
    n_left: int = 0
    #: Seconds from the first time, and values, of rows that are not cut yet.
    waiting: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=list)
    sampling: Sampling | None = None
    cutter: Cutter | None = None


class SignalReader:
    """Reads one file, from its times to its windows."""

    def __init__(self, kind: Signals, source: Any, name: str):
        self._kind = kind
        self._layout = kind.known_layout
        self._description = kind.description
        self._source = source
        self._name = name
        self._recordings: dict[str, SignalRecording] = {}
        self._finished: list[str] = []
        self._layout.check(source)
        self._read_times()
        for recording in self._recordings.values():
            self._check_times(recording)

    def _rows(self, *, with_values: bool) -> Iterator[Rows]:
        return rows_of(self._source, self._layout, self._name, with_values=with_values)

    def _read_times(self) -> None:
        """Read the times of all recordings."""
        path = self._source.path
        for rows in self._rows(with_values=False):
            for code, name in enumerate(rows.names):
                of_name = "" if self._kind.one_bag_per_file else f", recording {shortened(name)}"
                recording = self._recordings.setdefault(name, SignalRecording(f"{path}{of_name}"))
                own = rows.times[rows.codes == code]
                recording.times.add(own)
                recording.n_left += len(own)
        check(self._recordings, f"{path} has no rows: it holds no signal.")

    def _check_times(self, recording: SignalRecording) -> None:
        times = recording.times
        if not times.n_back:
            self._begin(recording, times)
            return
        n_bytes = 8 * times.n_rows * (1 + len(self._layout.channels))
        check(
            n_bytes <= MOST_SORTED,
            f"{recording.where}: the times are out of order, and {times.n_rows:,} rows are too "
            "many to sort them in memory: sort the table by time.",
        )

    def _begin(self, recording: SignalRecording, times: TimeSummary) -> None:
        """Prepare to cut a recording, given its times in order."""
        check(
            times.n_same <= MOST_REPEATED * times.n_rows,
            f"{recording.where}: {times.n_same:,} of {times.n_rows:,} rows have the time of "
            "another. If times are rounded, write fractions of seconds; if there are several "
            f"recordings, name the column that tells them apart by {argument('bag')}.",
        )
        sampling = Sampling.of(times.steps, self._description)
        if sampling is None:
            return
        seconds = self._kind.windows
        check(
            seconds >= (FEWEST_SAMPLES - 0.5) * sampling.step,
            f"{recording.where} has a sample every {in_units(sampling.step)}, which is too few for "
            f"windows of {seconds:g} s: pass {argument('windows')} of "
            f"{FEWEST_SAMPLES * sampling.step:.3g} or more.",
        )
        _, hop = checked_windows(seconds, self._kind.hop, LONGEST_WINDOW)
        recording.sampling = sampling
        recording.cutter = Cutter(self._description, hop, sampling)

    def instances(self, on_share: OnShare) -> FileInstances:
        """Read the values, and return the windows of all recordings."""
        n_rows, n_read = sum(recording.n_left for recording in self._recordings.values()), 0
        for rows in self._rows(with_values=True):
            for code, name in enumerate(rows.names):
                recording = self._recordings[name]
                own = rows.codes == code
                recording.n_left -= int(own.sum())
                own &= ~is_blank(rows.times)
                times = seconds_of(rows.times[own] - (recording.times.first or 0))
                recording.waiting.append((times, rows.values[own]))
                n_waiting = sum(len(times) for times, _ in recording.waiting)
                is_last = recording.n_left <= 0
                if is_last or (n_waiting >= BLOCK_ROWS and not recording.times.n_back):
                    self._cut(recording, is_last)
                if is_last:
                    self._finished.append(name)
            n_read += len(rows.times)
            on_share(n_read / n_rows)
        return self._result()

    def _cut(self, recording: SignalRecording, is_last: bool) -> None:
        times, values = (np.concatenate(each) for each in zip(*recording.waiting, strict=True))
        recording.waiting.clear()
        if recording.times.n_back:
            order = np.argsort(times, kind="stable")
            times, values = times[order], values[order]
            in_order = TimeSummary()
            in_order.add(times)
            self._begin(recording, in_order)
        if recording.cutter is not None:
            recording.cutter.add(times, values, is_last=is_last)

    def _result(self) -> FileInstances:
        layout, schema = self._layout, self._kind.schema()
        parts, without, seconds = [], [], {}
        for name in self._finished:
            recording = self._recordings[name]
            times = recording.times
            first = 0 if times.first is None else times.first
            if times.first is not None and not times.n_back:
                seconds[name] = round(float(seconds_of(np.array([times.last - first]))[0]), 6)
            windows = None if recording.cutter is None else recording.cutter.windows()
            if windows is None or not len(windows):
                without.append(name)
                continue
            n_windows = len(windows)
            columns = [pa.array([name] * n_windows, pa.string())]
            if not self._kind.one_bag_per_file:
                columns.append(pa.array([self._name] * n_windows, pa.string()))
            shift = 0.0 if layout.has_stamps else float(first)
            columns += [pa.array((each + shift).round(6)) for each in (windows.start, windows.end)]
            if layout.has_stamps:
                stamps = (int(first) + np.round(1e9 * windows.start).astype(np.int64)) // 1000
                columns.append(pa.array(stamps).cast(schema.field("time").type))
            columns += [pa.array(each) for each in windows.features.T]
            parts.append(pa.Table.from_arrays(columns, schema=schema))
        rows = pa.concat_tables(parts) if parts else schema.empty_table()
        return FileInstances(rows, without, self._notes(without), seconds)

    def _notes(self, without: Sequence[str]) -> list[str]:
        """Describe the oddities of all recordings of the file, and what was done about them."""
        recordings = self._recordings.values()
        summaries = [recording.times for recording in recordings]
        cutters = [recording.cutter for recording in recordings if recording.cutter is not None]
        samplings = [recording.sampling for recording in recordings if recording.sampling]

        def total(name: str) -> float:
            things = summaries if hasattr(TimeSummary, name) else cutters
            return sum(getattr(each, name) for each in things)

        notes = []
        uneven = [sampling.note for sampling in samplings if sampling.note is not None]
        if uneven and self._kind.one_bag_per_file:
            notes.append(f"Samples are {uneven[0]}.")
        elif uneven:
            are_uneven = counted(len(uneven), "recording is", "recordings are")
            notes.append(f"{are_uneven} uneven or of another rate, such as: {uneven[0]}.")
        for name, one, several, note in (
            ("n_back", "row is", "rows are",
             "{} earlier than the row before: sorted by time. If there are several recordings, "
             f"name the column that tells them apart by {argument('bag')}."),
            ("n_gaps", "gap", "gaps",
             f"{{}}, {total('gap_seconds'):.1f} s in all: no window spans one."),
            ("n_short", "stretch is", "stretches are", "{} too short for a window, and left out."),
            ("n_repeated", "row has", "rows have", "{} the time of another: averaged."),
            ("n_filled", "row lacks", "rows lack", "{} values: interpolated."),
            ("n_left_out", "row lacks", "rows lack", "Left out: {} values for too long."),
            ("n_blank", "row has", "rows have", "Left out: {} no time."),
        ):  # fmt: skip
            if n_odd := total(name):
                notes.append(note.format(counted(int(n_odd), one, several)))
        few = {name: self._recordings[name].times.n_rows for name in without}
        counts = [
            f"{n_rows}" if self._kind.one_bag_per_file else f"{shortened(name)} has {n_rows}"
            for name, n_rows in few.items()
            if n_rows < FEWEST_SAMPLES
        ]
        if counts:
            notes.append(f"Too few samples for a window: {listed(counts)}.")
        return notes


def signals(
    table: PathLike,
    output: PathLike,
    tags: PathLike | None = None,
    *,
    windows: float = SECONDS,
    hop: float | None = None,
    rate: float | None = None,
    time: str | None = None,
    time_unit: str | None = None,
    channels: Sequence[str] | None = None,
    **options: Unpack[ExtractOptions],
) -> Extracted:
    """Cut signals into windows, describe each of them, and write them as a table.

    Parameters
    ----------
    table : str or path
        A table with a row per time stamp and a column per channel, CSV, Parquet or Feather; or a
        folder of such tables, each of one recording or of several. The option `bag` names the
        column that tells recordings apart. Without such a column, each file is a recording.
    output : str or path
        The table to write, Parquet or Feather: a row per window, with columns ``file`` (the
        recording), ``start``, ``end`` (seconds), features and ``tags``. If times are time stamps,
        seconds are counted from the first, and ``time`` is the time stamp of the start.
    tags : str or path, optional
        A table with columns ``file`` and ``tags``, such as ``walking|typing``; or with several rows
        per recording.
    windows, hop : float
        Seconds of a window, 2 by default, and from one to the next.
    rate : float, optional
        Samples per second that recordings are brought to, if they have others, or uneven ones. By
        default, those of most of them.
    time : str, optional
        The column of times; by default the one called so, or ``timestamp`` and the like.
    time_unit : {"s", "ms", "us", "ns"}, optional
        The unit of numeric times; by default it is guessed.
    channels : sequence of str, optional
        The columns of values, or patterns such as ``acc_*``; by default all columns of numbers
        except times, ids and labels.
    **options
        Options for all kinds of media: see :class:`ExtractOptions`.

    Returns
    -------
    Extracted
        What was found, and which files could not be read.

    Warns
    -----
    UserWarning
        If files could not be read.
    """
    named = (channels,) if isinstance(channels, str) else channels
    kind = Signals(windows, hop, rate, time, time_unit, named, options.get("bag"))
    return extracted(kind, table, output, tags, **options)
