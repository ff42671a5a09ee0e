"""Bad files: one clear message each, which names the place and what is wrong there."""

import gzip
import io
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from scipy.io import savemat

from platforms import posix_only
from unbag.tables import DataError, Roles, read

WORDS = Roles(bag="word", labels="tags")
GOOD = "word,tags,pitch\na,wren,1\nb,owl,2\n"

# name, content, roles, what the message must say
TEXT_CASES = [
    ("empty", "t.csv", "", WORDS, "t.csv is empty"),
    ("blank lines only", "t.csv", "\n\r\n\n", WORDS, "t.csv is empty"),
    ("header only", "t.csv", "word,tags,pitch\n", WORDS, "columns but no rows"),
    ("missing column", "t.csv", "Word,tags,pitch\na,b,1\n", WORDS, "no column 'word'.*mean 'Word'"),
    ("missing label column", "t.csv", "word,tag,x\na,b,1\n", WORDS, "no column 'tags' for labels"),
    ("missing feature", "t.csv", GOOD, Roles("word", "tags", features=["pitsh"]), "mean 'pitch'"),
    ("no bag role", "t.csv", GOOD, Roles(labels="tags"), "pass bag=, the column"),
    ("no labels", "t.csv", GOOD, Roles(bag="word"), "has no labels"),
    ("no features", "t.csv", "word,tags\na,b\n", WORDS, "no column of numbers"),
    ("text in a feature", "t.csv", GOOD + "c,owl,high\n", WORDS, "row 4, column 'pitch': 'high'"),
    ("mixed types", "t.csv", "word,tags,x\na,b,1\na,b,two\na,b,3\n", WORDS, "row 3.*'two'"),
    ("empty cell", "t.csv", GOOD + "c,owl,\n", WORDS, "row 4, column 'pitch': the value is miss"),
    ("NaN", "t.csv", GOOD + "c,owl,NaN\n", WORDS, "row 4, column 'pitch': the value is missing"),
    ("infinity", "t.csv", GOOD + "c,owl,-inf\n", WORDS, "row 4.*'-inf' is not a finite number"),
    ("overflow", "t.csv", GOOD + "c,owl,1e999\n", WORDS, "row 4.*'1e999' is not a finite number"),
    ("decimal comma", "t.csv", "word;tags;x\na;b;1.5\na;b;2,5\n", WORDS, "row 3.*'2,5'"),
    ("decimal point", "t.csv", "word;tags;x\na;b;1,5\na;b;2,5\na;b;0.5\n", WORDS, "row 4.*'0.5'"),
    ("a gap in a vector", "t.csv", 'word,tags,v\na,o,"1,2,3"\nb,w,"1,,3"\n', WORDS,
     "row 3, column 'v': entry 2 of the vector, '', is not a number"),
    ("a vector that was cut", "t.csv", 'word,tags,v\na,o,"[1.0 ... 3.0]"\nb,w,"[1.0 ... 4.0]"\n',
     WORDS, "row 2, column 'v': entry 2 of the vector, '...', is not a number.*cut"),
    ("no value", "t.csv", GOOD + "c,o,NA\n", Roles("word", "tags", missing_values="drop"),
     "t.csv: bag c has a missing value in every row"),
    ("state of a label", "t.csv", "word,is_o,is_w,x\na,1,0,1\nb,0,2,3\n",
     Roles("word", label_columns="is_*"), "row 3, column 'is_w': '2' is not the state of a label"),
    ("two label strings", "t.csv", GOOD + "a,owl,3\n", WORDS,
     "row 4, column 'tags': bag 'a' has 'owl' here but 'wren' in row 2"),
    ("labels and none", "t.csv", GOOD + "a,(none),3\n", WORDS,
     "bag 'a' has '(none)' here but 'wren'"),
    ("unknown twice", "t.csv", "word,tags,x\na,b|?b,1\n", WORDS, "'b' both as present and as unk"),
    ("question mark alone", "t.csv", "word,tags,x\na,b|?,1\n", WORDS, "row 2.*without a label"),
    ("unknown and present", "t.csv", "word,tags,may,x\na,b,b,1\n",
     Roles("word", "tags", unknown="may"), "'b' is also given as present"),
    ("null bag", "t.csv", GOOD + ",owl,3\n", WORDS, "row 4, column 'word': the row names no bag"),
    ("duplicate columns", "t.csv", "word,tags,x,x\na,b,1,2\n", WORDS, "two columns named 'x'"),
    ("duplicate ids", "t.csv", "word,tags,n,x\na,b,7,1\na,b,8,2\nc,b,7,3\n",
     Roles("word", "tags", instance_id="n"), "row 4, column 'n': '7' is also the id of row 2"),
    ("missing id", "t.csv", "word,tags,n,x\na,b,,1\n", Roles("word", "tags", instance_id="n"),
     "row 2, column 'n': the row has no id"),
    ("short row", "t.csv", GOOD + "c,owl\n", WORDS, "row 4 has 2 cells.*3 columns"),
    ("long row", "t.csv", GOOD + "c,owl,1,2\n", WORDS, "row 4 has 4 cells"),
    ("blank lines are rows of a spreadsheet", "t.csv", "word,tags,x\n\na,b,1\n\n\na,b,z\n",
     Roles("word", "tags", features=["x"]), "row 6, column 'x': 'z'"),
    ("a cell of two lines is one row", "t.csv", 'word,tags,n,x\na,b,"1\n2",1\na,b,c,z\n',
     Roles("word", "tags", features=["x"]), "row 3, column 'x': 'z'"),
    ("commas in .tsv", "t.tsv", GOOD, WORDS, "has no column 'word' for bag; it has word,tags,"),
    ("unknown delimiter", "t.csv", GOOD.replace(",", "|"), WORDS,
     "has no column 'word' for bag; it has word|tags|pitch"),
    ("unclosed quote", "t.csv", GOOD + 'c,"owl,3\nd,owl,4\n', WORDS, "opened but never closed"),
    ("old Macintosh", "t.csv", GOOD.replace("\n", "\r"), WORDS, "row 1 has a carriage"),
    ("carriage return in a cell", "t.csv", GOOD + "c,ow\rl,3\n", WORDS, "row 4 has a carriage"),
    ("Latin-1", "t.csv", GOOD.encode() + "c,coucou geé,3\n".encode("latin-1"), WORDS,
     "row 4.*not encoded in UTF-8"),
    ("Latin-1 header", "t.csv", "wörd,tags,x\na,b,1\n".encode("latin-1"), WORDS, "row 1: .*UTF-8"),
    ("UTF-16", "t.csv", GOOD.encode("utf-16"), WORDS, "is encoded in UTF-16, not text in UTF-8"),
    ("binary", "t.csv", b"\x00\x01\x02" * 50, WORDS, "binary data, not text"),
    ("spreadsheet", "t.csv", b"PK\x03\x04" + b"x" * 50, WORDS, "a ZIP or Excel file"),
    ("not gzip", "t.csv.gz", GOOD, WORDS, "t.csv.gz cannot be read"),
    ("cut gzip", "t.csv.gz", gzip.compress(GOOD.encode() * 99)[:-20], WORDS, "cannot be read"),
    ("no Parquet", "t.parquet", GOOD, WORDS, "not a Parquet file"),
    ("empty Parquet", "t.parquet", "", WORDS, "is empty"),
    ("no Feather", "t.feather", GOOD, WORDS, "not a Feather file"),
    ("unknown suffix", "t.ods", GOOD, WORDS, "must end in one of"),
    ("no suffix", "t", GOOD, WORDS, "must end in one of"),
    ("no ARFF", "t.arff", GOOD, None, "line 1: 'word,tags,pitch' is neither"),
    ("no MATLAB", "t.mat", GOOD, None, "not a MATLAB"),
    ("random MATLAB", "t.mat", b"MATLAB 5.0 MAT-file" + bytes(range(256)), None, "not a MATLAB"),
    ("MATLAB 7.3", "t.mat", b"MATLAB 7.3 MAT-file, Platform" + b" " * 500, None, "'-v7'"),
    ("no npz", "t.npz", GOOD, None, "not an .npz file"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "roles", "message"),
    [pytest.param(*case[1:], id=case[0]) for case in TEXT_CASES],
)
@pytest.mark.usefixtures("chunks")
def test_files(tmp_path, name, content, roles, message):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=f"(?s){_loose(message)}") as caught:
        read(path, roles)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def _loose(message):
    """Only dots and stars are wild."""
    return re.escape(message).replace(r"\.\*", ".*")


# The second table, roles, what the message must say
SECOND_TABLES = {
    "a bag without a row": ("bag,label\na,o\n", {}, "t.csv: 1 of 2 bags has nothing in place of"),
    "no bag of the table": ("bag,label\nb.wav,o\n", {}, "Bag 'a' (.*row 2) has no row in .*t.csv"),
    "a bag without states": (
        "word,is_o\na,1\n", {"label_columns": "is_*"}, "1 of 2 bags has nothing .* such as 'b'."
    ),
    "no such column": ("word,was_o\na,1\n", {"label_columns": "is_*"}, "t.csv has no column that"),
    "no column of bags": ("name,is_o\na,1\n", {"label_columns": "is_*"}, "no column 'bag'"),
}  # fmt: skip


@pytest.mark.parametrize("case", SECOND_TABLES)
def test_second_tables(tmp_path, case):
    content, roles, message = SECOND_TABLES[case]
    (tmp_path / "words.csv").write_text(GOOD)
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(DataError, match=_loose(message)):
        read(tmp_path / "words.csv", Roles("word", label_table=tmp_path / "t.csv", **roles))


def parquet(**columns):
    return pa.table(columns)


PARQUET_CASES = {
    "null bag": (parquet(word=["a", None], tags=["b", "b"], x=[1.0, 2.0]),
                 "row 2, column 'word': the row names no bag"),
    "NaN bag": (parquet(word=[1.0, float("nan")], tags=["b", "b"], x=[1.0, 2.0]), "no bag"),
    "null feature": (parquet(word=["a", "a"], tags=["b", "b"], x=[1.0, None]),
                     "row 2, column 'x': the value is missing"),
    "NaN": (parquet(word=["a"], tags=["b"], x=[float("nan")]), "row 1, column 'x': nan is not a"),
    "two label strings": (parquet(word=[1, 1], tags=["b", "c"], x=[1, 2]),
                          "row 2, column 'tags': bag 1 has 'c' here but 'b' in row 1"),
    "two label lists": (parquet(word=[1, 1], tags=[["b"], ["b", "c"]], x=[1, 2]), "1 has 'b|c'"),
    "no rows": (parquet(word=pa.array([], pa.string()), tags=pa.array([], pa.string()),
                        x=pa.array([], pa.float64())), "no rows"),
    "duplicate columns": (pa.Table.from_arrays([pa.array(["a"])] * 3, ["word", "tags", "tags"]),
                          "two columns named 'tags'"),
    "wide: bag twice": (parquet(word=["a", "a"], tags=["b", "b"], x=[[1.0]] * 2, z=[[1.0]] * 2),
                        "row 2, column 'word': the bag has a row already, row 1"),
    "wide: lengths": (parquet(word=["a"], tags=["b"], x=[[1.0]], z=[[1.0, 2.0]]),
                      "column 'z': the list has 2 entries, but that of 'x' has 1"),
    "wide: null list": (parquet(word=["a", "c"], tags=["b", "b"], x=[[1.0], None]),
                        "row 2, column 'x': expected a list"),
    "wide: NaN": (parquet(word=["a", "c"], tags=["b", "b"], x=[[1.0], [2.0, float("inf")]]),
                  "row 2, column 'x': inf is not a finite number.*entry 2 of the list"),
    "wide: null": (parquet(word=["a"], tags=["b"], x=[[1.0, None]]), "row 1, column 'x'.*missing"),
}  # fmt: skip


@pytest.mark.parametrize("case", PARQUET_CASES)
@pytest.mark.usefixtures("chunks")
def test_parquet(tmp_path, case):
    table, message = PARQUET_CASES[case]
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match=_loose(message)):
        read(tmp_path / "t.parquet", WORDS)


def test_a_feature_of_text(tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    with pytest.raises(DataError, match="row 2, column 'tags': 'wren' is not a finite number"):
        read(tmp_path / "t.csv", Roles("word", features=["tags"]), need_labels=False)


def test_a_feature_of_text_in_parquet(tmp_path):
    pq.write_table(parquet(word=["a"], tags=["b"], x=[1.0]), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="column 'tags' holds string"):
        read(tmp_path / "t.parquet", Roles("word", features=["x", "tags"]), need_labels=False)


def test_a_damaged_parquet_file(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(parquet(word=["a"] * 999, tags=["b"] * 999, x=np.arange(999.0)), path)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match="Parquet"):
        read(path, WORDS)


@posix_only
def test_no_file_at_all(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / "t.csv")
    with pytest.raises(DataError, match="is a folder"):
        read(tmp_path)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="not a regular file"):
        read(tmp_path / "pipe.csv")


def test_no_permission(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):  # for root, everything can be read

        def refuse(*_, **__):
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        read(path, WORDS)


def test_a_file_that_changes_meanwhile(tmp_path):
    path = tmp_path / "t.parquet"

    def save(n_rows):
        columns = parquet(word=["a", "b", "c"], tags=["owl"] * 3, pitch=[1.0, 2.0, 3.0])
        pq.write_table(columns.slice(0, n_rows), path)

    save(2)
    with pytest.raises(DataError, match="has changed"):
        read(path, WORDS, progress=lambda *_: save(3))
    table = read(path, WORDS)
    save(2)
    with pytest.raises(DataError, match="has changed"):
        table.write(tmp_path / "out.csv", {})
    assert not (tmp_path / "out.csv").exists()


def test_text_that_changes_meanwhile_is_what_it_was_when_it_was_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(GOOD)
    table = read(path, WORDS, progress=lambda *_: path.write_text(GOOD + "c,owl,3\n"))
    table.write(tmp_path / "out.csv", {})
    assert (tmp_path / "out.csv").read_text() == GOOD


ARFF = """@relation toy
@attribute id {a,b}
@attribute bag relational
  @attribute f1 numeric
@end bag
@attribute wren {0,1}
@data
a,"1\\n2",1
b,"3",0
"""

ARFF_CASES = {
    "no bag": (ARFF.replace("relational", "numeric"), "no relational attribute"),
    "no data": (ARFF.split("@data")[0], "no line @data"),
    "no bags": (ARFF.split('a,"1')[0], "has no data"),
    "nominal feature": (ARFF.replace("f1 numeric", "f1 {x,y}"), "feature 'f1' is {x,y}"),
    "other attribute": (ARFF.replace("wren {0,1}", "wren numeric"), "'wren' cannot be a label"),
    "bad number": (ARFF.replace('"3"', '"x"'),
                   "line 9, instance 1: could not convert string to float: 'x'"),
    "missing number": (ARFF.replace('"3"', '"?"'),
                       "line 9, instance 1: could not convert string to float: '?'"),
    "NaN": (ARFF.replace('"3"', '"nan"'), "bag b, instance 1 has nan as feature f1"),
    "bad label": (ARFF.replace('"3",0', '"3",2'), "line 9: the label 'wren' is '2'"),
    "short line": (ARFF.replace('"3",0', '"3"'), "line 9 has 2 values for 3"),
    "short instance": (ARFF.replace('"3"', '"3,4"'), "line 9, instance 1 has 2 values for 1"),
    "same bag": (ARFF.replace('b,"3"', 'a,"3"'), "line 9: bag 'a' is in line 8"),
    "open quote": (ARFF.replace('"3",0', '"3,0'), "line 9: a quote is opened"),
    "sparse": (ARFF + '{0 a, 1 "3"}\n', "line 10: sparse data"),
    "unknown line": (ARFF.replace("@relation", "@relatoin"), "line 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", ARFF_CASES)
def test_arff(tmp_path, case):
    content, message = ARFF_CASES[case]
    (tmp_path / "t.arff").write_text(content)
    with pytest.raises(DataError, match=_loose(message)):
        read(tmp_path / "t.arff")


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("<labels><label name='owl'/></labels>", "no attribute for the label 'owl'"),
        ("<labels>", "not an XML file"),
        ("<labels></labels>", "lists no labels"),
        ("<!DOCTYPE x><labels><label name='wren'/></labels>", "document type"),
    ],
)
def test_lists_of_labels(tmp_path, xml, message):
    (tmp_path / "t.arff").write_text(ARFF)
    (tmp_path / "t.xml").write_text(xml)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "t.arff")


def cells(*values):
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = [np.asarray(value, dtype=float) for value in values]
    return array


MAT_CASES = {
    "no bags": ({"targets": np.eye(2)}, "no cell array bags or data"),
    "no targets": ({"bags": cells([[1]], [[2]])}, "no matrix targets"),
    "shape": ({"bags": cells([[1]], [[2]]), "targets": np.ones((3, 3))}, "one column per bag"),
    "values": ({"bags": cells([[1]], [[2]]), "targets": np.full((1, 2), 5)}, "but one is 5"),
    "widths": ({"bags": cells([[1]], [[2, 3], [4, 5]]), "targets": np.eye(2)},
               "bag 2 has 2 columns, but others have 1"),
    "empty": ({"bags": cells(np.empty((0, 0))), "targets": np.ones((1, 1))}, "all bags are empty"),
    "NaN": ({"bags": cells([[1]], [[np.nan]]), "targets": np.eye(2)}, "bag 1, instance 1 has nan"),
    "names": ({"bags": cells([[1]], [[2]]), "targets": np.eye(2), "class_name": np.array(["a"])},
              "has 1 class_names, but 2 are needed"),
}  # fmt: skip


@pytest.mark.parametrize("case", MAT_CASES)
def test_mat(tmp_path, case):
    content, message = MAT_CASES[case]
    savemat(tmp_path / "t.mat", content)
    with pytest.raises(DataError, match=_loose(message)):
        read(tmp_path / "t.mat")


def mat_bytes(**options):
    file = io.BytesIO()
    savemat(file, {"bags": cells([[1]], [[2]]), "targets": np.eye(2)}, **options)
    return file.getvalue()


DAMAGED_MAT = {
    "cut in the header": mat_bytes()[:60],
    "cut in a variable": mat_bytes()[:200],
    "cut between variables": mat_bytes()[:-8],
    "compressed, cut": mat_bytes(do_compression=True)[:-20],
    "compressed, other bytes": mat_bytes(do_compression=True)[:150] + bytes(range(100)),
    "unknown type": mat_bytes()[:128] + b"\xff" * 64,
    "HDF5": b"\x89HDF\r\n\x1a\n" + bytes(500),
}


@pytest.mark.parametrize("content", DAMAGED_MAT.values(), ids=DAMAGED_MAT)
def test_damaged_mat(tmp_path, content):
    (tmp_path / "t.mat").write_bytes(content)
    with pytest.raises(
        DataError, match=r"t\.mat cannot be read: it is not a MATLAB file, or is dam"
    ):
        read(tmp_path / "t.mat")


NPZ = {
    "X": np.ones((2, 1)),
    "offsets": np.array([0, 2]),
    "bag_labels": np.array([[1, 0]]),
    "class_names": np.array(["owl", "wren"]),
    "instance_labels": np.array([0, -1]),
}

NPZ_CASES = {
    "missing": ({"X": 1}, "has no array offsets, bag_labels, class_names"),
    "offsets": (NPZ | {"offsets": np.array([0, 3])}, "offsets must lead from 0 to 2"),
    "labels": (NPZ | {"bag_labels": np.array([[1, 2]])}, "value 2 for class wren"),
    "bags": (NPZ | {"bag_labels": np.array([[1, 0]] * 2)}, "2 label sets for 1 bags"),
    "codes": (NPZ | {"instance_labels": np.array([0, 2])}, "integers from -1"),
    "NaN": (NPZ | {"X": np.array([[1], [np.nan]])}, "bag 0, instance 2 has nan as feature x0"),
}


@pytest.mark.parametrize("case", NPZ_CASES)
def test_npz(tmp_path, case):
    content, message = NPZ_CASES[case]
    np.savez(tmp_path / "t.npz", **content)
    with pytest.raises(DataError, match=_loose(message)):
        read(tmp_path / "t.npz")


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('ran code')",)


@pytest.mark.parametrize("inside", [True, False])
def test_pickles_are_refused(tmp_path, inside):
    """Neither a pickle nor an npz file with one inside runs anything."""
    import pickle

    path = tmp_path / "t.npz"
    if inside:
        buffer = io.BytesIO()
        array = np.empty(1, dtype=object)
        array[0] = Bomb()
        np.save(buffer, array, allow_pickle=True)
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("X.npy", buffer.getvalue())
    else:
        path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError, match=r"not an \.npz file"):
        read(path)


def test_a_damaged_offset_in_a_feather_file_is_not_followed(tmp_path):
    """Arrow would read wherever it points, and end the process."""
    path = tmp_path / "t.feather"
    table = pa.table({"bag": ["first bag", "second bag"], "labels": ["a", "b"], "x": [1.0, 2.0]})
    feather.write_feather(table, path, compression="uncompressed")
    content = path.read_bytes()
    offsets = np.array([0, 9, 19], dtype=np.int32).tobytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, np.array([0, 9, 2**30], np.int32).tobytes()))
    code = f"import unbag.tables as u; u.read({str(path)!r}, u.Roles(bag='bag', labels='labels'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1, done
    assert "DataError" in done.stderr


@pytest.mark.parametrize("old", [b"wren", b"note"], ids=["a cell", "the name of a column"])
@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_text_that_is_no_utf8(tmp_path, suffix, old):
    table = pa.table(
        {"bag": ["a", "b"], "labels": ["wren", "wren"], "x": [1.0, 2.0], "note": ["a", "b"]}
    )
    path = tmp_path / f"words{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, path, compression="none", use_dictionary=False)
    else:
        feather.write_feather(table, path, compression="uncompressed")
    path.write_bytes(path.read_bytes().replace(old, b"\xff\xfe\xfd\xfc"))
    with pytest.raises(DataError, match=r"words\.\w+ is not a \w+ file, or is damaged"):
        read(path)


def test_ids_that_are_neither_text_nor_numbers(tmp_path):
    path = tmp_path / "bags.npz"
    np.savez(path, X=np.ones((1, 1)), offsets=[0, 1], bag_labels=[[1]], class_names=["wren"],
             ids=np.zeros(1, "V8"))  # fmt: skip
    with pytest.raises(DataError, match="ids must be text or numbers, but their type is"):
        read(path)


def test_a_damaged_description_of_a_parquet_column_does_not_end_the_process(tmp_path):
    """Where a required column says how many of its cells are missing, pyarrow would abort."""
    path = tmp_path / "t.parquet"
    kinds = [pa.field("bag", pa.string()), pa.field("labels", pa.string())]
    table = pa.table({"bag": ["a", "b"], "labels": ["x", "x"]}, pa.schema(kinds))
    pq.write_table(table, path, compression="none")
    content = path.read_bytes()
    # The schema's entry of the column: its type, optional, its name.
    optional = b"\x15\x0c\x25\x02\x18\x03bag"
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, b"\x15\x0c\x25\x00\x18\x03bag"))
    code = f"import unbag.tables as u; u.read({str(path)!r}, u.Roles(bag='bag', labels='labels'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1, done
    assert "DataError" in done.stderr


def test_bytes_in_npz_are_text(tmp_path):
    path = tmp_path / "bags.npz"
    arrays = {"X": np.ones((1, 1)), "offsets": [0, 1], "bag_labels": [[1]]}
    np.savez(path, **arrays, class_names=np.array([b"wren"]), ids=np.array(["é".encode()]))
    table = read(path)
    assert table.labels.to_sets() == [{"wren"}]
    assert table.bags.ids.tolist() == ["é"]
    np.savez(path, **arrays, class_names=np.array([b"\xff"]))
    with pytest.raises(DataError, match="class_names is not UTF-8"):
        read(path)
