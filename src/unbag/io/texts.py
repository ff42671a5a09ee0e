"""Cells of text files of other tools: numbers in them, and texts without quotes."""

import math
from pathlib import Path

from unbag._files import DataError, check, unreadable
from unbag._messages import shortened


def finite_number(value: object, where: str) -> float:
    """Read a number.

    Parameters
    ----------
    value : object
        Text or a number.
    where : str
        Names the cell, for messages.

    Examples
    --------
    >>> finite_number(" 2.5", "row 1")
    2.5
    """
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where}: {shortened(value)} is not a finite number: correct it.")
    return number


def span(start: object, end: object, where: str) -> tuple[float, float]:
    """Read where a segment begins and ends, in seconds.

    Parameters
    ----------
    start, end : object
        Text or numbers.
    where : str
        Names the row, for messages.
    """
    first, last = finite_number(start, where), finite_number(end, where)
    check(first <= last, f"{where}: the segment ends at {last}, before it begins at {first}.")
    return first, last


def numbered_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Read the cells between tabs of each line that is not blank, with the line's number.

    Parameters
    ----------
    path : Path
        A text in UTF-8, without quotes.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not encoded in UTF-8: save it so.") from error
    # By line feeds alone: other marks, such as form feeds, may stand within a cell.
    lines = enumerate(text.split("\n"), 1)
    return [(number, line.rstrip("\r").split("\t")) for number, line in lines if line.strip()]


def within(where: str, path: Path) -> str:
    """Return the rest of the name of a row that begins with its file or folder.

    Examples
    --------
    >>> within("in/dawn.txt, row 3", Path("in")), within("in/dawn.txt, row 3", Path("in/dawn.txt"))
    ('dawn.txt, row 3', 'row 3')
    """
    return where.removeprefix(str(path)).lstrip("/\\, ")
