"""Records and cells of delimited text, against the csv module of the standard library."""

import csv
import gzip
import io
import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_tables import TAGGED, write
from unbag.tables import DataError, Roles, read
from unbag.tables.text import TextFile, is_number, records_of, with_quotes

TEXT = st.text(st.sampled_from("ab\",;\t \n\r'é?"), max_size=6)
TABLE = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(TEXT, min_size=width, max_size=width), min_size=1, max_size=5)
)
DELIMITER = st.sampled_from([",", ";", "\t"])


def cells_of(folder, content):
    """Return the cells of a text without a header, as they are read."""
    width = len(next(csv.reader(io.StringIO(content, newline="\n"))))
    path = folder / "t.csv"
    header = ",".join(f"c{place}" for place in range(width))
    path.write_bytes(f"{header}\n{content}".encode())
    return [list(row.values()) for row in TextFile(path).rows.to_pylist()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("text")


@given(TABLE, DELIMITER, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_written_by_csv_read_by_us(folder, table, delimiter, quoting):
    # Names that say which delimiter it is, and a last column that no row leaves blank.
    table = [[f"c{place}" for place in range(len(table[0]) + 1)], *([*row, "end"] for row in table)]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\r\n").writerows(table)
    path = folder / "t.txt"
    path.write_bytes(out.getvalue().encode())
    found = TextFile(path)
    assert [found.columns, *(list(row.values()) for row in found.rows.to_pylist())] == table


@given(TABLE, DELIMITER)
def test_written_by_us_read_by_csv(table, delimiter):
    quoted = [with_quotes(pa.array(row), delimiter).to_pylist() for row in table]
    text = "".join(delimiter.join(row) + "\n" for row in quoted)
    read = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    # A row of one empty cell is a blank line, to which csv gives no cell at all.
    assert [row or [""] for row in read] == table


@given(st.text(st.sampled_from('a",\n'), max_size=30))
def test_any_text_is_cut_as_csv_cuts_it(folder, text):
    if csv_is_torn(text):
        with pytest.raises(DataError, match="a quote is opened but never closed"):
            list(records_of(folder, text.encode(), ","))
        with pytest.raises(DataError, match=r"never closed|cells, but the header names"):
            cells_of(folder, text.lstrip("\n"))
        return
    rows = list(csv.reader(io.StringIO(text, newline="")))
    found = list(records_of(folder, text.encode(), ","))
    assert [cells for cells, _ in found] == rows
    assert not found or found[-1][1] == len(text)
    rows = list(filter(None, rows))
    if len({len(row) for row in rows}) == 1:
        assert cells_of(folder, text.lstrip("\n")) == rows


def csv_is_torn(text):
    """Return whether a quote is open where a text ends, as csv says."""
    return list(csv.reader(io.StringIO(text + "\n,", newline="")))[-1] != ["", ""]


@pytest.mark.parametrize("n_rows", [2, 60_000])
@pytest.mark.parametrize("header", ['"bag,labels,x', 'bag,labels,x\nb0,"wren,1'])
def test_what_follows_a_stray_quote_is_looked_at_once(tmp_path, header, n_rows):
    path = tmp_path / "stray.csv"
    path.write_text(header + "\n" + "b1,wren,0.25\n" * n_rows)
    start = time.process_time()
    with pytest.raises(DataError, match=r"stray\.csv: a quote is opened but never closed"):
        read(path, Roles(bag="bag", labels="labels"))
    # Looking at all that follows again at each line would take minutes.
    assert time.process_time() - start < 5.0


def test_a_cell_longer_than_a_block_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("unbag.tables.text.BLOCK_BYTES", 64)
    path = tmp_path / "long.csv"
    path.write_bytes(b'a,b\n"one\ntwo ""x"", ' + b"three\n" * 99 + b'",1\n5,6\n"7\n8",9')
    assert TextFile(path).rows.column("b").to_pylist() == ["1", "6", "9"]
    assert TextFile(path).place(2) == "row 4"


@pytest.mark.parametrize("mark", ["\ufeff", "\ufeff\ufeff"])
def test_a_second_byte_order_mark_is_text(tmp_path, mark):
    path = tmp_path / "t.csv"
    path.write_bytes(f"\ufeffa,b\n{mark}x,y\n".encode())
    assert TextFile(path).columns == ["a", "b"]
    assert TextFile(path).rows.column("a").to_pylist() == [f"{mark}x"]


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
    read(path, WORDS).write(tmp_path / "o.csv.gz", {})
    expected = SHUFFLED.replace('5" pipe', '"5"" pipe"')
    assert gzip.decompress((tmp_path / "o.csv.gz").read_bytes()) == expected.encode()


def test_the_last_line_needs_no_end(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("bag,labels,x\na,b,1\na,b,2")
    assert read(path).bags.X[:, 0].tolist() == [1, 2]


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


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_carriage_return_in_the_last_quotes_is_a_cell(folder, ending):
    rows = ["bag,x,labels,note", 'a,1.0,b,"one\rtwo"', "c,2.0,d,ok"]
    path = folder / "quoted.csv"
    path.write_bytes(ending.join([*rows, ""]).encode())
    assert len(read(path, roles=Roles(bag="bag", labels="labels")).bags) == 2
