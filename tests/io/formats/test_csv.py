"""Records and cells of delimited text, against the csv module of the standard library."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbag.io.formats.csv import are_lines_records, cell_text, ends_quoted, raw_cells, whole_records
from unbag.io.formats.csv_writing import quoted

TEXT = st.text(st.sampled_from("ab\",;\t \n\r'é?"), max_size=6)
TABLE = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(TEXT, min_size=width, max_size=width), min_size=1, max_size=5)
)
DELIMITER = st.sampled_from([",", ";", "\t"])


@given(TABLE, DELIMITER, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_written_by_csv_read_by_us(table, delimiter, quoting):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\n").writerows(table)
    sign = delimiter.encode()
    records, rest = whole_records(out.getvalue().encode().split(b"\n")[:-1], sign)
    assert not rest
    assert [[cell_text(raw) for raw in raw_cells(record, sign)] for record in records] == table


@given(TABLE, DELIMITER)
def test_written_by_us_read_by_csv(table, delimiter):
    sign = delimiter.encode()
    lines = [sign.join(quoted(text, sign) for text in row) for row in table]
    text = b"\n".join([*lines, b""]).decode()
    read = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    # A row of one empty cell is a blank line, to which csv gives no cell at all.
    assert [row or [""] for row in read] == table


@given(st.text(st.sampled_from('a",\n'), max_size=30))
def test_any_text_is_cut_as_csv_cuts_it(text):
    lines = text.encode().split(b"\n")
    records, rest = whole_records(lines, b",")
    assert b"\n".join([*records, *rest]) == text.encode()
    expected = list(csv.reader(io.StringIO(text, newline="")))
    ours = [[cell_text(raw) for raw in raw_cells(record, b",")] for record in records if record]
    if rest:
        ours.append([cell_text(raw) for raw in raw_cells(b"\n".join(rest), b",")])
    assert ours == [row for row in expected if row]


@given(st.lists(st.text(st.sampled_from('a",\r'), max_size=12), max_size=4))
def test_the_shortcut_is_taken_only_where_lines_are_records(lines):
    text = "".join(line + "\n" for line in lines).encode()
    if are_lines_records(text, b","):
        cut = text.split(b"\n")[:-1]
        assert whole_records(cut, b",") == (cut, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'"a","b"\n"c"\r\nd\n', True),
        (b'a""b\n', False),
        (b'"a""b"\n', False),
        (b'"a\nb"\n', False),
    ],
)
def test_the_shortcut_is_taken_where_it_matters(text, expected):
    assert are_lines_records(text, b",") is expected


def test_a_cell_of_many_quoted_lines_is_read_once(monkeypatch):
    # Looking at all of its lines again for each of them would take hours.
    looked_at = []

    def counting(record, delimiter):
        looked_at.append(len(record))
        return ends_quoted(record, delimiter)

    monkeypatch.setattr("unbag.io.formats.csv.ends_quoted", counting)
    lines = [b'a,"', *[b'he said ""wren""'] * 2000, b'",b']
    assert whole_records(lines, b",") == ([b"\n".join(lines)], [])
    assert sum(looked_at) < 2 * sum(map(len, lines))
