"""Signals: tables of a row per time stamp, cut into windows, and described; see `windows` for how.

A file is read twice: first its times alone, which tell the rate of each recording, whether it is in
order, and how even; then its values, block by block. Only a recording that is out of order is kept
in memory as a whole.
"""

import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unbag._files import TABLES, DataError, PathLike, check, existing_file
from unbag._messages import argument, counted, listed, shortened
from unbag._warnings import warn_caller
from unbag.io.roles import Roles
from unbag.io.table import open_source

from .descriptions import FEWEST_SAMPLES, Description
from .extraction import Extracted, OnFile, extract
from .kinds import Instances, Kind, Report, unreported
from .layouts import ZONED_STAMPS, Head, Layout, Rows, read_head, rows_of
from .tags import FILES, Tags, read_tags
from .walk import found_files
from .windows import (
    SECONDS,
    Course,
    Cutter,
    Pace,
    Windows,
    check_samples,
    checked_windows,
    in_units,
    is_blank,
    seconds_of,
)

logger: logging.Logger = logging.getLogger(__name__)

# Rows of a recording that are cut at a time, and of all recordings that are read in turns.
BLOCK_ROWS, MOST_ROWS = 1 << 16, 1 << 22
# Rows with the time of another, from which share on something is wrong.
MOST_REPEATED = 0.2
# Bytes of a recording out of order, which has to be sorted in memory.
MOST_SORTED = 1 << 30
# Files of a folder by which columns and rates are guessed.
HEADS = 50


# The kind.


@dataclass(frozen=True)
class SignalFiles(Kind):
    """Tables of signals, each of one recording, and how they are cut; see `signals`."""

    layout: Layout
    windows: float
    hop: float
    #: Samples per second that all recordings are brought to.
    rate: float
    name: ClassVar[str] = "signals"
    things: ClassVar[str] = "recordings"
    suffixes: ClassVar[tuple[str, ...]] = (*TABLES, ".gz")

    @property
    def description(self) -> Description:
        """How windows are described."""
        return Description(self.layout.channels, self.windows, self.rate)

    @property
    def roles(self) -> Roles:
        """The roles of the columns."""
        carried = ("time",) if self.layout.has_stamps else ()
        return Roles(
            bag="file", media="file" if self.one_bag_per_file else "table", start="start",
            end="end", carry=carried, features=self.description.features,
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """Return everything that the rows depend on."""
        layout = self.layout
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
        if self.layout.has_stamps:
            zone = "UTC" if self.layout.unit == ZONED_STAMPS else None
            columns.append(("time", pa.timestamp("us", zone)))
        return pa.schema([*columns, *((name, pa.float32()) for name in self.description.features)])

    def check(self) -> None:
        """Raise an error for windows that are too short."""
        check_samples(self.description)

    def instances(self, path: Path, name: str, report: Report = unreported) -> Instances:
        """Cut the recordings of a file into windows."""
        with open_source(path, TABLES) as source:
            return Reading(self, source, name).instances(report)


class SignalTables(SignalFiles):
    """Tables of signals of several recordings, which a column tells apart."""

    one_bag_per_file: ClassVar[bool] = False


class Reading:
    """One file, from its times to its windows."""

    def __init__(self, kind: SignalFiles, source: Any, name: str):
        self._kind = kind
        self._source = source
        self._name = name
        self._description = kind.description
        kind.layout.check(source)
        self._courses: dict[str, Course] = {}
        # How many recordings there are rows of, before and after the same row.
        self._n_open = 1
        self._read_times()
        self._paces: dict[str, Pace | None] = {
            name: self._pace(name, course) for name, course in self._courses.items()
        }

    def _read_times(self) -> None:
        last_part: dict[str, int] = {}
        first_part: dict[str, int] = {}
        for part, rows in enumerate(self._rows(with_values=False)):
            for code, name in enumerate(rows.names):
                self._courses.setdefault(name, Course()).add(rows.times[rows.codes == code])
                first_part.setdefault(name, part)
                last_part[name] = part
        check(self._courses, f"{self._source.path} has no rows: it holds no signal.")
        opened = Counter(first_part.values())
        closed = Counter(last_part.values())
        n_open = 0
        for part in range(max(last_part.values()) + 1):
            n_open += opened[part]
            self._n_open = max(self._n_open, n_open)
            n_open -= closed[part]

    def _rows(self, *, with_values: bool) -> Iterator[Rows]:
        return rows_of(self._source, self._kind.layout, self._name, with_values=with_values)

    def _of(self, name: str) -> str:
        """Name a recording in a message about the file."""
        return "" if self._kind.one_bag_per_file else f", recording {shortened(name)}"

    def _pace(self, name: str, course: Course) -> Pace | None:
        where = f"{self._source.path}{self._of(name)}"
        check(
            course.n_same <= MOST_REPEATED * course.n_rows,
            f"{where}: {course.n_same:,} of {course.n_rows:,} rows have the time of the row "
            "before. If times are rounded, write fractions of seconds; if there are several "
            f"recordings, name the column that tells them apart by {argument('bag')}.",
        )
        if course.n_back:
            n_bytes = 8 * course.n_rows * (1 + len(self._kind.layout.channels))
            check(
                n_bytes <= MOST_SORTED,
                f"{where}: the times are out of order, and {course.n_rows:,} rows are too many to "
                "sort them in memory: sort the table by time.",
            )
            # Known when they are sorted.
            return None
        pace = Pace.of(course.steps, self._description)
        if pace is not None:
            self._check_pace(name, pace)
        return pace

    def _check_pace(self, name: str, pace: Pace) -> None:
        seconds = self._kind.windows
        check(
            seconds >= (FEWEST_SAMPLES - 0.5) * pace.step,
            f"{self._source.path}{self._of(name)} has a sample every {in_units(pace.step)}, which "
            f"is too few for windows of {seconds:g} s: pass {argument('windows')}"
            f" of {FEWEST_SAMPLES * pace.step:.3g} or more.",
        )

    def instances(self, report: Report) -> Instances:
        """Read the values, and return the windows of all recordings."""
        cutters: dict[str, Cutter] = {}
        waiting: dict[str, list[tuple[NDArray[Any], NDArray[np.float64]]]] = {}
        left = {name: course.n_rows + course.n_blank for name, course in self._courses.items()}
        n_rows = sum(left.values())
        most = min(BLOCK_ROWS, max(MOST_ROWS // self._n_open, 1024))
        found: dict[str, Windows] = {}
        for rows in self._rows(with_values=True):
            report(rows.first / n_rows)
            for code, name in enumerate(rows.names):
                own = rows.codes == code
                left[name] -= int(own.sum())
                own &= ~is_blank(rows.times)
                course = self._courses[name]
                times = seconds_of(rows.times[own] - (course.first or 0))
                parts = waiting.setdefault(name, [])
                parts.append((times, rows.values[own]))
                is_last = left[name] <= 0
                is_sorted = not course.n_back
                if is_last or (is_sorted and sum(len(part[0]) for part in parts) >= most):
                    self._cut(name, cutters, waiting, is_last)
                if is_last:
                    found[name] = cutters[name].windows() if name in cutters else self._nothing()
        return self._result(found, cutters)

    def _cut(self, name, cutters, waiting, is_last):
        parts = waiting.pop(name)
        times, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        course = self._courses[name]
        if course.n_back:
            order = np.argsort(times, kind="stable")
            times, values = times[order], values[order]
            sorted_course = Course()
            sorted_course.add(times)
            n_same = sorted_course.n_same
            check(
                n_same <= MOST_REPEATED * len(times),
                f"{self._source.path}{self._of(name)}: the times are out of order, and {n_same:,} "
                f"of {len(times):,} rows have the time of another. If there are several "
                f"recordings, name the column that tells them apart by {argument('bag')}.",
            )
            self._paces[name] = Pace.of(sorted_course.steps, self._description)
            if (pace := self._paces[name]) is not None:
                self._check_pace(name, pace)
        pace = self._paces[name]
        if pace is None:
            return
        if name not in cutters:
            cutters[name] = Cutter(self._description, self._kind.hop, pace)
        cutters[name].add(times, values, is_last=is_last)

    def _nothing(self):
        pace = Pace(1 / self._kind.rate, True, None)
        return Cutter(self._description, self._kind.hop, pace).windows()

    def _result(self, found, cutters):
        kind, layout = self._kind, self._kind.layout
        parts = []
        seconds = {}
        for name, windows in found.items():
            n_windows = len(windows)
            course = self._courses[name]
            first = 0 if course.first is None else course.first
            if course.first is not None and not course.n_back:
                seconds[name] = round(float(seconds_of(np.array([course.last - first]))[0]), 6)
            if not n_windows:
                continue
            columns = [pa.array([name] * n_windows, pa.string())]
            if not kind.one_bag_per_file:
                columns.append(pa.array([self._name] * n_windows, pa.string()))
            shift = 0.0 if layout.has_stamps else float(first)
            columns += [pa.array((each + shift).round(6)) for each in (windows.start, windows.end)]
            if layout.has_stamps:
                stamps = (int(first) + np.round(1e9 * windows.start).astype(np.int64)) // 1000
                columns.append(pa.array(stamps).cast(kind.schema().field("time").type))
            columns += [pa.array(each) for each in windows.features.T]
            parts.append(pa.Table.from_arrays(columns, schema=kind.schema()))
        rows = pa.concat_tables(parts) if parts else kind.schema().empty_table()
        without = [name for name, windows in found.items() if not len(windows)]
        return Instances(rows, without, self._notes(cutters, without), seconds)

    def _notes(self, cutters, without):
        """Say what was done about what is odd, over all recordings of the file."""
        courses, paces = self._courses.values(), self._paces.values()

        def total(attribute, things):
            return sum(getattr(each, attribute) for each in things)

        notes = []
        odd = [pace.note for pace in paces if pace is not None and pace.note is not None]
        if odd and self._kind.one_bag_per_file:
            notes.append(f"Samples are {odd[0]}.")
        elif odd:
            are_odd = counted(len(odd), "recording is", "recordings are")
            notes.append(f"{are_odd} uneven or of another rate, such as: {odd[0]}.")
        n_back = total("n_back", courses)
        if n_back:
            notes.append(
                f"{counted(n_back, 'row is', 'rows are')} earlier than the row before: sorted by "
                "time. If there are several recordings, name the column that tells them apart by "
                f"{argument('bag')}."
            )
        made = list(cutters.values())
        if n_gaps := total("n_gaps", made):
            seconds = f"{total('gap_seconds', made):.1f} s in all"
            notes.append(f"{counted(n_gaps, 'gap')}, {seconds}: no window spans one.")
        if n_short := total("n_short", made):
            are_short = counted(n_short, "stretch is", "stretches are")
            notes.append(f"{are_short} too short for a window, and left out.")
        if n_repeated := total("n_repeated", made):
            have = counted(n_repeated, "row has", "rows have")
            notes.append(f"{have} the time of another: averaged.")
        if n_filled := total("n_filled", made):
            notes.append(f"{counted(n_filled, 'row lacks', 'rows lack')} values: interpolated.")
        if n_left_out := total("n_left_out", made):
            lack = counted(n_left_out, "row lacks", "rows lack")
            notes.append(f"Left out: {lack} values for too long.")
        if n_blank := total("n_blank", courses):
            notes.append(f"Left out: {counted(n_blank, 'row has', 'rows have')} no time.")
        few = [name for name in without if self._courses[name].n_rows < FEWEST_SAMPLES]
        if few:
            counts = listed(
                f"{shortened(name)} has {self._courses[name].n_rows}"
                if not self._kind.one_bag_per_file
                else f"{self._courses[name].n_rows}"
                for name in few
            )
            notes.append(f"Too few samples for a window: {counts}.")
        return notes


# From a folder to a table.


def signals_kind(
    table: PathLike,
    *,
    windows: float = SECONDS,
    hop: float | None = None,
    rate: float | None = None,
    time: str | None = None,
    time_unit: str | None = None,
    channels: Sequence[str] | None = None,
    bag: str | None = None,
    labels: PathLike | None = None,
    output: PathLike = "",
) -> SignalFiles:
    """Return the kind that `signals` extracts; what nobody has named is guessed from first rows.

    What is guessed is logged.
    """
    seconds, step = checked_windows(windows, hop)
    check(
        rate is None or 0 < rate < math.inf,
        f"{argument('rate')} must be more than 0, not {rate}.",
    )
    paths = [existing_file(table)] if not Path(table).is_dir() else list(
        found_files(table, SignalFiles.suffixes, SignalFiles.things, Path(output),
                    () if labels is None else (Path(labels),)).paths.values()
    )  # fmt: skip
    # Spread over the folder, since files of a kind may come one after the other.
    chosen = paths[:: max(1, math.ceil(len(paths) / HEADS))]
    heads: dict[Path, Head] = {}
    faults: list[DataError | OSError] = []
    for path in chosen:
        try:
            heads[path] = read_head(
                path, time=time, time_unit=time_unit, channels=channels, bag=bag
            )
        except (DataError, OSError) as error:
            # It is named when the file is read.
            faults.append(error)
    if not heads:
        raise faults[0]
    # Files of other columns than most are named when they are read.
    layouts = Counter(head.layout for head in heads.values())
    layout = max(layouts, key=layouts.__getitem__)
    own = {path: head for path, head in heads.items() if head.layout == layout}
    rates = [head.rate for head in own.values() if head.rate is not None]
    chosen_rate = rate or _rounded(float(np.median(rates))) if rate or rates else None
    if chosen_rate is None:
        raise DataError(
            f"{next(iter(own))} has a single time: a signal has samples one after the other."
        )
    first = next(iter(own.values()))
    _log_guesses(layout, first.left_out, chosen_rate, given=(time, time_unit, channels, bag, rate))
    kind = SignalFiles if layout.recording is None else SignalTables
    made = kind(layout, seconds, step, chosen_rate)
    made.check()
    logger.info(
        "%d features of each window: %d of each of %d channels%s, and %d correlations.",
        *_counts(made.description),
    )
    return made


def _counts(description):
    n_described = len(description.channels) + len(description.vectors)
    n_pairs = len(description.pairs)
    n_features = len(description.features)
    vectors = f" ({listed(description.vectors)} among them)" if description.vectors else ""
    return n_features, (n_features - n_pairs) // n_described, n_described, vectors, n_pairs


def _rounded(rate: float) -> float:
    """Round a rate to three digits, so that the same sensors have the same rate.

    Examples
    --------
    >>> _rounded(49.973), _rounded(1000.4), _rounded(0.016667)
    (50.0, 1000.0, 0.0167)
    """
    return float(f"{rate:.3g}")


def _log_guesses(layout, left_out, rate, given):
    time, time_unit, channels, bag, given_rate = given
    unit = layout.unit if layout.has_stamps else f"numbers of {layout.unit}"
    if time is None or time_unit is None:
        logger.info("Times are in column %r, %s.", layout.time, unit)
    if bag is None and layout.recording is not None:
        logger.info("Column %r tells recordings apart.", layout.recording)
    if channels is None:
        others = [f"{name} ({reason})" for name, reason in left_out.items()]
        rest = f" Left out: {listed(others)}." if others else ""
        logger.info("Channels: %s.%s", listed(layout.channels), rest)
    if given_rate is None:
        logger.info("Samples per second: %g.", rate)


def tags_of_signals(labels: PathLike, roles: Roles, tags_column: str | None) -> Tags:
    """Read the tags of recordings.

    The column that tells recordings apart may have another name there, one of the usual.
    """
    with open_source(labels, TABLES) as source:
        columns = source.columns
    if roles.bag is not None and roles.bag not in columns and set(columns) & set(FILES):
        roles = replace(roles, bag=None)
    return read_tags(labels, roles, tags_column)


def signals(
    table: PathLike,
    output: PathLike,
    labels: PathLike | None = None,
    *,
    bag: str | None = None,
    tags_column: str | None = None,
    label_columns: str | Sequence[str] | None = None,
    delimiter: str | None = None,
    untagged: str | None = None,
    none: str | Sequence[str] = (),
    fold_case: bool | None = None,
    rename: Mapping[str, str] | PathLike | None = None,
    windows: float = SECONDS,
    hop: float | None = None,
    rate: float | None = None,
    time: str | None = None,
    time_unit: str | None = None,
    channels: Sequence[str] | None = None,
    n_jobs: int | None = 1,
    on_file: OnFile | None = None,
) -> Extracted:
    """Cut signals into windows, describe each of them, and write them as a table.

    Parameters
    ----------
    table : str or path
        A table with a row per time stamp and a column per channel, CSV, Parquet or Feather; or a
        folder of such, each of one recording or of several.
    output : str or path
        The table to write, Parquet or Feather: a row per window, with columns ``file`` (the
        recording), ``start``, ``end`` (seconds), features and ``tags``. Where times are time
        stamps, seconds are counted from the first, and ``time`` is the time stamp of the start.
        While the work lasts, what is finished is in a folder of the same name and ``.parts``, from
        which the same call goes on.
    labels : str or path, optional
        A table with columns ``file`` and ``tags``, such as ``walking|typing``; or several rows per
        recording.
    bag : str, optional
        The column that tells recordings apart, in `table` and in `labels`. Without such a column in
        `table`, each file is a recording.
    tags_column : str, optional
        The column of `labels` that holds the tags.
    label_columns, delimiter, untagged, none, fold_case, rename
        How `labels` is read, as in :class:`unbag.io.Roles`. What it means that a recording has no
        tags, `untagged`, is kept in the table.
    windows, hop : float
        Seconds of a window, 2 by default, and from one to the next.
    rate : float, optional
        Samples per second that recordings are brought to, if they have others, or uneven ones. By
        default, those of most of them.
    time : str, optional
        The column of times; by default one that is called so, or ``timestamp`` and the like.
    time_unit : {"s", "ms", "us", "ns"}, optional
        What numbers of time count; guessed if it is not given.
    channels : sequence of str, optional
        The columns of values, or patterns such as ``acc_*``; by default those of numbers that are
        no times, ids or labels.
    n_jobs : int, default=1
        Number of processes, each of which reads a file; -1 for as many as there are cores.
    on_file : callable, optional
        Called after each file with the bytes done, all bytes, the name of the file, and what is
        wrong with it or None.

    Returns
    -------
    Extracted
        What was found, and which files could not be read.

    Warns
    -----
    UserWarning
        If files could not be read.
    """
    roles = Roles(
        bag=bag, label_columns=label_columns, delimiter=delimiter, untagged=untagged, none=none,
        fold_case=fold_case, rename=rename,
    )  # fmt: skip
    named = [channels] if isinstance(channels, str) else channels
    kind = signals_kind(
        table, windows=windows, hop=hop, rate=rate, time=time, time_unit=time_unit,
        channels=named, bag=bag, labels=labels, output=output,
    )  # fmt: skip
    tags = None if labels is None else tags_of_signals(labels, roles, tags_column)
    result = extract(kind, table, output, tags, n_jobs=n_jobs, on_file=on_file)
    if result.failed:
        first = next(iter(result.failed.values()))
        warn_caller(
            f"{len(result.failed):,} of {result.files:,} files could not be read, and the table is "
            f"without them (see `failed`): {first}"
        )
    return result
