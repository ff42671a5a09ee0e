"""Records and cells of delimited text, as bytes and without changing one of them.

A record ends at the end of a line, unless that lies within quotes. Quotes count only at the
beginning of a cell, as in a spreadsheet: ``5" pipe`` is a cell like any other.
"""

import numpy as np

QUOTE = b'"'
SPECIAL = (b'"', b"\n", b"\r")


def whole_records(lines, delimiter):
    r"""Join the lines that a quoted cell has torn apart.

    Parameters
    ----------
    lines : list of bytes
        Without the line feeds at their ends.
    delimiter : bytes

    Returns
    -------
    records : list of bytes
    rest : list of bytes
        Lines of a record whose end has not come yet.

    Examples
    --------
    >>> whole_records([b'a,"two', b'lines"', b"b,c"], b",")
    ([b'a,"two\nlines"', b'b,c'], [])
    """
    if not any(QUOTE in line for line in lines):
        return lines, []
    records, rest = [], []
    for line in lines:
        if not rest:
            if QUOTE in line and ends_quoted(line, delimiter):
                rest = [line]
            else:
                records.append(line)
            continue
        rest.append(line)
        if QUOTE in line and not ends_quoted(record := b"\n".join(rest), delimiter):
            records.append(record)
            rest = []
    return records, rest


def are_lines_records(text, delimiter):
    r"""Tell whether quotes do nothing but enclose whole cells that lie within a line each.

    Then every line is a record. So it is in most files that have quotes at all, and looking at
    all of their bytes at once is much faster than at each line.

    Parameters
    ----------
    text : bytes
        Whole lines, from the beginning of a record on.
    delimiter : bytes

    Examples
    --------
    >>> are_lines_records(b'a,"b"\n', b","), are_lines_records(b'a,"b\nc"\n', b",")
    (True, False)
    """
    data = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(data == QUOTE[0])
    opening, closing = quotes[::2], quotes[1::2]
    if opening.size != closing.size:
        return False
    # If every other quote opens a cell, then none of the others is doubled, and they close it.
    before = data[opening[opening > 0] - 1]
    if not np.isin(before, [delimiter[0], 10]).all():
        return False
    ends = np.flatnonzero(data == 10)
    return np.array_equal(np.searchsorted(ends, opening), np.searchsorted(ends, closing))


def ends_quoted(record, delimiter):
    """Tell whether a quoted cell is still open where the bytes end.

    Examples
    --------
    >>> ends_quoted(b'a,"b', b","), ends_quoted(b'a,"b"', b","), ends_quoted(b'5" pipe,b', b",")
    (True, False, False)
    """
    opening = delimiter + QUOTE
    start = 0 if record.startswith(QUOTE) else record.find(opening) + 1
    if not start and not record.startswith(QUOTE):
        return False
    while True:
        close = _closing(record, start)
        if close < 0:
            return True
        # Only a delimiter with a quote behind it opens a cell that can hide a line end.
        following = record.find(opening, close + 1)
        if following < 0:
            return False
        start = following + 1


def raw_cells(record, delimiter):
    """Split a record into its cells, with the quotes that they have.

    Examples
    --------
    >>> raw_cells(b'007,"a,b",', b",")
    [b'007', b'"a,b"', b'']
    """
    if QUOTE not in record:
        return record.split(delimiter)
    cells, start = [], 0
    while True:
        search = start
        if record.startswith(QUOTE, start):
            close = _closing(record, start)
            search = len(record) if close < 0 else close + 1
        stop = record.find(delimiter, search)
        if stop < 0:
            return [*cells, record[start:]]
        cells.append(record[start:stop])
        start = stop + 1


def cell_text(raw):
    """Read the text of a cell.

    Examples
    --------
    >>> cell_text(b'"a ""b"" c"'), cell_text(b"1.50")
    ('a "b" c', '1.50')
    """
    if raw.startswith(QUOTE):
        close = _closing(raw, 0)
        close = len(raw) if close < 0 else close
        raw = raw[1:close].replace(b'""', QUOTE) + raw[close + 1 :]
    return raw.decode("utf-8")


def quoted(text, delimiter):
    """Write a cell, with quotes only where it needs them.

    Examples
    --------
    >>> quoted("a,b", b","), quoted("a b", b",")
    (b'"a,b"', b'a b')
    """
    raw = text.encode("utf-8")
    if delimiter in raw or any(special in raw for special in SPECIAL):
        return QUOTE + raw.replace(QUOTE, b'""') + QUOTE
    return raw


def _closing(record, start):
    """Position of the quote that closes the cell opened at `start`; -1 if there is none."""
    close = record.find(QUOTE, start + 1)
    while close >= 0 and record.startswith(QUOTE, close + 1):
        close = record.find(QUOTE, close + 2)
    return close
