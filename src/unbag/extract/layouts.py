"""The roles of columns in tables of signals, and their rows as times and values.

Roles that are not given are guessed from the names of columns and the first rows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from unbag._files import TABLES, DataError, check
from unbag._messages import argument, listed, shortened
from unbag.tables.guess import plain_name, reason_against
from unbag.tables.roles import check_column, is_pattern, matching
from unbag.tables.scan import factorized, spelt_out
from unbag.tables.table import open_source
from unbag.tables.text import is_number

from .windows import NO_STAMP, TimeSummary

#: Units of numeric times, and how many of them a second has.
UNITS: dict[str, float] = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
STAMPS = "time stamps"
ZONED_STAMPS = "time stamps with a zone"
# The least number of a time since 1970 in a unit: as seconds, it would be in a far future.
SINCE_1970 = {"ns": 1e17, "us": 1e14, "ms": 1e11}

# Names of columns in lower case, words separated by one space.
UNIT_WORDS = {
    "s": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "msec", "millis", "millisecond", "milliseconds"),
    "us": ("us", "µs", "usec", "micros", "microsecond", "microseconds"),
    "ns": ("ns", "nsec", "nanos", "nanosecond", "nanoseconds"),
}
_UNIT = "|".join(word for words in UNIT_WORDS.values() for word in words)
TIME = re.compile(
    "(?:(?:elapsed|unix|epoch|sample|sensor|relative|utc|local|clock|system|event|device|"
    "recording|logging) )?(?:date ?time|time ?stamps?|time|ts|t|epoch|elapsed)"
    rf"(?: (?:{_UNIT}|utc|unix|iso|iso8601|local|since start|elapsed))*"
    rf"|(?:{_UNIT})(?: elapsed)?"
    "|zeit|zeitstempel|zeitpunkt|uhrzeit|horodatage|temps|tiempo|hora"
)
# Columns that tell recordings apart.
RECORDING = re.compile(
    "(?:recording|bag|session|trial|day|file|file ?name|subject|participant|person|user|device)"
    "(?: (?:id|nr|name|number))?"
)
# Columns that name an activity, and are not channels.
ACTIVITY = re.compile("(?:.* )?(?:activity|activities|tags?|labels?|behaviou?rs?|event)(?: id)?")

# Bytes of a file, and rows among them, by which its columns are judged.
HEAD_BYTES, HEAD_ROWS = 1 << 18, 1000


@dataclass(frozen=True)
class SignalLayout:
    """The columns of a table of signals: times and their unit, channels, names of recordings."""

    time: str
    unit: str
    channels: tuple[str, ...]
    recording: str | None = None

    @property
    def has_stamps(self) -> bool:
        """Whether times are time stamps, not numbers."""
        return self.unit in (STAMPS, ZONED_STAMPS)

    def check(self, source: Any) -> None:
        """Raise an error if a table lacks a column, or has text instead of numbers."""
        wanted = [("time", self.time), *(("channels", name) for name in self.channels)]
        if self.recording is not None:
            wanted.append(("bag", self.recording))
        for role, name in wanted:
            check_column(source.path, name, source.columns, role)
        if not source.is_text:
            for name in self.channels:
                source.check_type(name, "features")


@dataclass(frozen=True)
class Rows:
    """Some rows of a table of signals."""

    names: list[str]
    codes: NDArray[np.integer]
    times: NDArray[Any]
    values: NDArray[np.float64]


def rows_of(
    source: Any,
    layout: SignalLayout,
    name: str,
    *,
    with_values: bool,
    chunk_bytes: int | None = None,
) -> Iterator[Rows]:
    """Yield the rows of a table, block by block; `name` is that of its only recording."""
    texts = [] if layout.recording is None else [layout.recording]
    numbers = list(layout.channels) if with_values else []
    (texts if layout.has_stamps else numbers).append(layout.time)
    size = {} if chunk_bytes is None else {"chunk_bytes": chunk_bytes}
    for first, chunk in source.chunks(texts=texts, numbers=numbers, with_gaps=True, **size):
        names, codes = [name], np.zeros(chunk.num_rows, dtype=np.intp)
        if layout.recording is not None:
            found, codes = factorized(spelt_out(chunk.column(layout.recording)))
            names = ["" if each is None else str(each) for each in found]
            blank = np.flatnonzero(np.array([not each.strip() for each in names])[codes])
            if len(blank):
                where = f"{source.path}, {source.place(first + int(blank[0]))}"
                raise DataError(f"{where}: column {layout.recording!r} names no recording.")
        times = _times(source, layout, chunk.column(layout.time), first)
        columns = [_numbers(chunk.column(each)) for each in layout.channels] if with_values else []
        values = np.column_stack(columns) if columns else np.empty((len(times), 0))
        yield Rows(names, codes, times, values)


def _numbers(column: Any) -> NDArray[np.float64]:
    return pc.cast(column, pa.float64(), safe=False).to_numpy().astype(np.float64, copy=False)


def _times(source: Any, layout: SignalLayout, column: Any, first: int) -> NDArray[Any]:
    if not layout.has_stamps:
        times = _numbers(column) / UNITS[layout.unit]
        return np.where(np.isfinite(times), times, np.nan)
    zone = "UTC" if layout.unit == ZONED_STAMPS else None
    try:
        stamps = _stamps(column, zone)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        # Find the first that cannot be read.
        for row, cell in enumerate(column):
            try:
                _stamps(pa.array([cell.as_py()], column.type), zone)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                where = f"{source.path}, {source.place(first + row)}, column {layout.time!r}"
                zoned = "one with a zone, as the others" if zone else "one without a zone"
                raise DataError(
                    f"{where}: {shortened(cell.as_py())} is not a time stamp, or not {zoned}: "
                    "write it like 2024-05-31T23:59:00.25."
                ) from error
        raise DataError(f"{source.path}, column {layout.time!r}: {error}") from error
    return stamps


def _stamps(column: Any, zone: str | None) -> NDArray[np.int64]:
    """Return time stamps as nanoseconds since 1970."""
    if types.is_string(column.type) or types.is_large_string(column.type):
        column = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.equal(column, ""), None, column)
    stamps = pc.cast(column, pa.timestamp("ns", zone), safe=False)
    numbers = pc.fill_null(pc.cast(stamps, pa.int64()), NO_STAMP)
    return numbers.to_numpy().astype(np.int64, copy=False)


# Guesses.


@dataclass(frozen=True)
class LayoutGuess:
    """A layout guessed from the first rows of a file, and the samples per second."""

    layout: SignalLayout
    left_out: Mapping[str, str]
    rate: float | None


def guessed_layout(
    path: Path,
    *,
    time: str | None,
    time_unit: str | None,
    channels: Sequence[str] | None,
    bag: str | None,
) -> LayoutGuess:
    """Guess the roles of a file's columns from their names and its first rows."""
    with open_source(path, TABLES) as opened:
        source: Any = opened
        check(
            hasattr(source, "chunks"),
            f"{path} is not a table with a row per time stamp.",
        )
        time = time or _guessed_time(source)
        check_column(path, time, source.columns, "time")
        recording = bag if bag in source.columns else None
        if bag is None:
            recording = _guessed_recording(source, time)
        rows = next(source.chunks(texts=[time], chunk_bytes=HEAD_BYTES), None)
        check(rows is not None and rows[1].num_rows, f"{path} has no rows: it holds no signal.")
        assert rows is not None
        unit = time_unit or _guessed_unit(source, time, rows[1].column(time))
        check(
            unit in (*UNITS, STAMPS, ZONED_STAMPS),
            f"{argument('time_unit')} must be one of {', '.join(UNITS)}, not {unit}.",
        )
        taken = [time, *([] if recording is None else [recording])]
        found, left_out = _channels(source, channels, taken)
        layout = SignalLayout(time, unit, found, recording)
        layout.check(source)
        return LayoutGuess(layout, left_out, _head_rate(source, layout))


def _guessed_time(source: Any) -> str:
    found = [name for name in source.columns if TIME.fullmatch(plain_name(name))]
    if not found and not source.is_text:
        found = [each.name for each in source.schema if types.is_timestamp(each.type)]
    if not found:
        raise DataError(
            f"{source.path} has no column of times, such as 'time': name it by "
            f"{argument('time')}; it has {listed(source.columns)}."
        )
    return found[0]


def _guessed_recording(source: Any, time: str) -> str | None:
    found = [
        name
        for name in source.columns
        if name != time and RECORDING.fullmatch(plain_name(name))
    ]  # fmt: skip
    check(
        len(found) < 2,
        f"{source.path}: {listed(found)} may tell recordings apart: name one by "
        f"{argument('bag')}; or make one column of them.",
    )
    return found[0] if found else None


def _guessed_unit(source: Any, time: str, column: Any) -> str:
    """Return the unit of times, by the name of the column or by their size."""
    kind = column.type
    if types.is_timestamp(kind):
        return STAMPS if kind.tz is None else ZONED_STAMPS
    if types.is_date(kind):
        return STAMPS
    filled = [
        str(each).strip() for each in column.slice(0, HEAD_ROWS).to_pylist() if each is not None
    ]
    filled = [text for text in filled if text]
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        decimal = source.decimal if source.is_text else "."
        if not any(is_number(text, decimal) for text in filled):
            is_zoned = any(re.search(r"(Z|[+-]\d\d(:?\d\d)?)$", text[10:]) for text in filled)
            return ZONED_STAMPS if is_zoned else STAMPS
        filled = [text.replace(",", ".") for text in filled if is_number(text, decimal)]
    words = plain_name(time).split()
    for unit, names in UNIT_WORDS.items():
        if set(words) & set(names):
            return unit
    largest = max((abs(float(text)) for text in filled), default=0.0)
    return next((unit for unit, least in SINCE_1970.items() if largest >= least), "s")


def _channels(
    source: Any, wanted: Sequence[str] | None, taken: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the channels, and the other columns, each with the reason."""
    numbers = [name for name in source.numbers() if name not in taken]
    if wanted is not None:
        columns = dict.fromkeys(source.columns)
        found = [
            each
            for name in wanted
            for each in (matching([name], numbers) if is_pattern(name, columns) else [name])
        ]
        check(
            found,
            f"{source.path} has no column of numbers that matches {listed(wanted)}; it has "
            f"{listed(numbers or source.columns)}.",
        )
        return tuple(dict.fromkeys(found)), {}
    left_out = dict.fromkeys(
        (name for name in source.columns if name not in (*taken, *numbers)), "no numbers"
    )
    _, chunk = next(source.chunks(texts=numbers, chunk_bytes=HEAD_BYTES), (0, None))
    has_x = any(plain_name(name) == "x" for name in numbers)
    found = []
    for name in numbers:
        reason = None
        if chunk is not None:
            first_rows = chunk.column(name).slice(0, HEAD_ROWS)
            reason = reason_against(name, _as_numbers(source, first_rows), has_x)
        if TIME.fullmatch(plain_name(name)):
            reason = "a time by its name"
        elif ACTIVITY.fullmatch(plain_name(name)):
            reason = "an activity by its name"
        elif RECORDING.fullmatch(plain_name(name)):
            reason = "a recording by its name"
        if reason is None:
            found.append(name)
        else:
            left_out[name] = reason
    check(
        found,
        f"{source.path} has no channels: columns of numbers as well as times. It has "
        f"{listed(source.columns)}; name them by {argument('channels')}.",
    )
    return tuple(found), left_out


def _as_numbers(source: Any, column: Any) -> NDArray[np.float64]:
    """Return cells as numbers; text is NaN."""
    if not source.is_text:
        return _numbers(column)
    decimal = source.decimal
    return np.array(
        [float(text.replace(",", ".")) if text is not None and is_number(text, decimal)
         else np.nan for text in column.to_pylist()]
    )  # fmt: skip


def _head_rate(source: Any, layout: SignalLayout) -> float | None:
    """Return the samples per second of the first recording, by the first rows of a file.

    If they are out of order, all of its times are read.
    """
    rows = next(rows_of(source, layout, "", with_values=False, chunk_bytes=HEAD_BYTES), None)
    if rows is None:
        return None
    name = rows.names[rows.codes[0]]
    times = TimeSummary()
    times.add(rows.times[rows.codes == rows.codes[0]])
    if times.n_back:
        parts = [
            rows.times[rows.codes == rows.names.index(name)]
            for rows in rows_of(source, layout, "", with_values=False)
            if name in rows.names
        ]
        times = TimeSummary()
        times.add(np.sort(np.concatenate(parts)))
    step = times.steps.median()
    return None if step is None else 1 / step
