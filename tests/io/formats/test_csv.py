"""Records and cells of delimited text, against the csv module of the standard library."""

import csv
import gzip
import io
import time
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_tables import TAGGED, write
from unbag.io import DataError, Roles, read
from unbag.io.formats.csv import (
    DelimitedFile,
    are_lines_records,
    cell_text,
    ends_quoted,
    is_number,
    quoted,
    raw_cells,
    whole_records,
)

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


@pytest.mark.parametrize("header", [b'"bag,labels,x', b'bag,labels,x\nb0,"wren,1'])
def test_what_follows_a_stray_quote_is_looked_at_once(tmp_path, monkeypatch, header):
    looked_at = []

    def counting(lines, *others):
        looked_at.append(len(lines))
        return whole_records(lines, *others)

    monkeypatch.setattr("unbag.io.formats.csv.whole_records", counting)
    n_lines = 60_000
    path = tmp_path / "stray.csv"
    path.write_bytes(header + b"\n" + b"b1,wren,0.25\n" * n_lines)
    with pytest.raises(DataError, match=r"stray\.csv: a quote is opened but never closed"):
        read(path, Roles(bag="bag", labels="labels"))
    # Twice: for what columns hold, and for their rows.
    assert sum(looked_at) < 2.1 * n_lines


def test_a_record_ends_where_the_chunks_it_is_read_in_do_not(tmp_path):
    path = tmp_path / "long.csv"
    path.write_bytes(b'a,b\n"one\ntwo ""x"", three\n\nfour",1\n5,6\n"7\n8",9')
    with DelimitedFile(path) as source:
        whole = list(chain.from_iterable(source.blocks()))
        assert whole == [b'"one\ntwo ""x"", three\n\nfour",1', b"5,6", b'"7\n8",9']
        for n_bytes in range(1, 12):
            assert list(chain.from_iterable(source.blocks(n_bytes))) == whole


@pytest.mark.parametrize(("digits", "end"), [("1" * 100_000, "x"), ("1" * 100_000 + ".5", "")])
def test_long_numbers_are_read_in_one_pass(digits, end):
    start = time.process_time()
    assert is_number(digits + end) is not bool(end)
    # Time squared in the digits would take minutes.
    assert time.process_time() - start < 1.0


# Whole files


SHUFFLED = '''word,tags,note,pitch,length
b,wren|?owl,"a, b",1.50,007
a,,"say ""hi""",2,1e-3
b,?owl | wren,,-3,+4
c,owl,5" pipe,.5,6.
a,,"two
lines",7,8
'''
WORDS = Roles(bag="word", labels="tags", untagged="absent")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_found(tmp_path, delimiter):
    path = tmp_path / "t.txt"
    path.write_text(SHUFFLED.replace('"a, b"', "a").replace(",", delimiter))
    assert read(path, WORDS).bags.X[0].tolist() == [1.5, 7]


def test_compressed_text(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(SHUFFLED.encode()))
    read(path, WORDS, chunk_bytes=7).write(tmp_path / "o.csv.gz", {})
    assert gzip.decompress((tmp_path / "o.csv.gz").read_bytes()) == SHUFFLED.encode()


def test_the_last_line_needs_no_end(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("bag,labels,x\na,b,1\na,b,2")
    assert read(path, chunk_bytes=5).bags.X[:, 0].tolist() == [1, 2]


def test_decimal_commas(tmp_path):
    path = write(tmp_path / "t.csv", delimiter=";", decimal=",")
    table = read(path, TAGGED)
    assert table.bags.X.tolist() == [[1.5, 2.0], [4.25, 1.0], [0.5, 3.0]]
    table.write(tmp_path / "o.csv", {"p": [0.25, 0.5, 1.0]})
    written = (tmp_path / "o.csv").read_text().splitlines()
    assert written[1:3] == ["a;owl|wren;1,5;2,0;0,25", "b;owl;0,5;3,0;1"]
    # What was written can be read again.
    assert read(tmp_path / "o.csv", Roles("word", "tags", carry=["p"])).bags.X.tolist() == (
        table.bags.X.tolist()
    )
    named = read(path, Roles("word", "tags", features=["y"]))
    assert named.bags.X.tolist() == [[2.0], [1.0], [3.0]]
