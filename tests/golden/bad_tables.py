"""Files that cannot be read as bags, and what is said of each."""

import gzip
import io
import os
import pickle
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from scipy.io import savemat

from command_line import cleaned
from recording import attempted, recording
from unbag.io import Roles, convert, peek, read, write_raven

WORDS = Roles(bag="word", labels="tags")
GOOD = "word,tags,pitch\na,wren,1\nb,owl,2\n"


def said_of(prepare, roles=WORDS, **options):
    """Return what reading a file ends with; `prepare` writes it and returns its path."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = prepare(folder)
        tree = attempted(lambda: read(path, roles, **options).bags.n_instances)
        if "error" in tree:
            tree["error"] = cleaned(tree["error"], folder)
        return tree


def written(name, content):
    """Return a function that writes a file of that name."""

    def prepare(folder):
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return prepare


def more(row):
    """Return a table with one more row."""
    return GOOD + row + "\n"


TEXTS = {
    "empty": "",
    "blank lines": "\n\r\n\n",
    "header only": "word,tags,pitch\n",
    "other bag column": "Word,tags,pitch\na,b,1\n",
    "other label column": "word,tag,x\na,b,1\n",
    "no features": "word,tags\na,b\n",
    "text in a feature": more("c,owl,high"),
    "empty cell": more("c,owl,"),
    "NaN": more("c,owl,NaN"),
    "infinity": more("c,owl,-inf"),
    "overflow": more("c,owl,1e999"),
    "decimal comma": "word;tags;x\na;b;1.5\na;b;2,5\n",
    "two label strings": more("a,owl,3"),
    "labels in one row only": more("a,,3"),
    "present and unknown": "word,tags,x\na,b|?b,1\n",
    "question mark alone": "word,tags,x\na,b|?,1\n",
    "no bag": more(",owl,3"),
    "duplicate columns": "word,tags,x,x\na,b,1,2\n",
    "short row": more("c,owl"),
    "long row": more("c,owl,1,2"),
    "blank lines count": "word,tags,x\n\na,b,1\n\n\na,b,z\n",
    "other delimiter": GOOD.replace(",", "|"),
    "unclosed quote": more('c,"owl,3\nd,owl,4'),
    "carriage returns": GOOD.replace("\n", "\r"),
    "carriage return in a cell": more("c,ow\rl,3"),
    "Latin-1": GOOD.encode() + "c,coucou geé,3\n".encode("latin-1"),
    "Latin-1 header": "wörd,tags,x\na,b,1\n".encode("latin-1"),
    "UTF-16": GOOD.encode("utf-16"),
    "binary": b"\x00\x01\x02" * 50,
    "spreadsheet": b"PK\x03\x04" + b"x" * 50,
}
for name, content in TEXTS.items():
    recording(f"bad_tables/csv/{name}", written("t.csv", content))(said_of)

ROLES = {
    "no such feature": (GOOD, Roles("word", "tags", features=["pitsh"])),
    "no bag": (GOOD, Roles(labels="tags")),
    "no labels": (GOOD, Roles(bag="word")),
    "nothing": (GOOD, None),
    "unknown and present": (
        "word,tags,may,x\na,b,b,1\n",
        Roles("word", "tags", unknown="may"),
    ),
    "duplicate ids": (
        "word,tags,n,x\na,b,7,1\na,b,8,2\nc,b,7,3\n",
        Roles("word", "tags", instance_id="n"),
    ),
    "no id": ("word,tags,n,x\na,b,,1\n", Roles("word", "tags", instance_id="n")),
    "text as feature": ("word,tags,n\na,b,c\n", Roles("word", "tags", features=["n"])),
    "label table": (GOOD, Roles("word", label_table="absent.csv")),
}
for name, (content, roles) in ROLES.items():
    recording(f"bad_tables/roles/{name}", written("t.csv", content), roles)(said_of)

OTHER_FILES = {
    "commas in tsv": ("t.tsv", GOOD),
    "not gzip": ("t.csv.gz", GOOD),
    "cut gzip": ("t.csv.gz", gzip.compress(GOOD.encode() * 99, mtime=0)[:-20]),
    "no Parquet": ("t.parquet", GOOD),
    "empty Parquet": ("t.parquet", ""),
    "no Feather": ("t.feather", GOOD),
    "unknown suffix": ("t.xlsx", GOOD),
    "no suffix": ("t", GOOD),
    "no ARFF": ("t.arff", GOOD),
    "no MATLAB": ("t.mat", GOOD),
    "random MATLAB": ("t.mat", b"MATLAB 5.0 MAT-file" + bytes(range(256))),
    "MATLAB 7.3": ("t.mat", b"MATLAB 7.3 MAT-file, Platform" + b" " * 500),
    "no npz": ("t.npz", GOOD),
    "pickle": ("t.npz", pickle.dumps([1, 2])),
}
for name, (file, content) in OTHER_FILES.items():
    recording(f"bad_tables/files/{name}", written(file, content))(said_of)

TABLES = {
    "no bag": {"word": ["a", None], "tags": ["b", "b"], "x": [1.0, 2.0]},
    "NaN as bag": {"word": [1.0, float("nan")], "tags": ["b", "b"], "x": [1.0, 2.0]},
    "no value": {"word": ["a", "a"], "tags": ["b", "b"], "x": [1.0, None]},
    "NaN": {"word": ["a"], "tags": ["b"], "x": [float("nan")]},
    "two label strings": {"word": [1, 1], "tags": ["b", "c"], "x": [1, 2]},
    "two label lists": {"word": [1, 1], "tags": [["b"], ["b", "c"]], "x": [1, 2]},
    "wide: bag twice": {"word": ["a", "a"], "tags": ["b", "b"], "x": [[1.0], [2.0]]},
    "wide: lengths": {"word": ["a"], "tags": ["b"], "x": [[1.0]], "z": [[1.0, 2.0]]},
    "wide: no list": {"word": ["a", "c"], "tags": ["b", "b"], "x": [[1.0], None]},
    "wide: infinity": {"word": ["a"], "tags": ["b"], "x": [[2.0, float("inf")]]},
    "wide: no value": {"word": ["a"], "tags": ["b"], "x": [[1.0, None]]},
}


def parquet(columns):
    """Return a function that writes a table."""

    def prepare(folder):
        pa.parquet.write_table(pa.table(columns), folder / "t.parquet")
        return folder / "t.parquet"

    return prepare


for name, columns in TABLES.items():
    recording(f"bad_tables/parquet/{name}", parquet(columns))(said_of)

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
ARFFS = {
    "no bag": ARFF.replace("relational", "numeric"),
    "no data line": ARFF.split("@data")[0],
    "no bags": ARFF.split('a,"1')[0],
    "nominal feature": ARFF.replace("f1 numeric", "f1 {x,y}"),
    "other attribute": ARFF.replace("wren {0,1}", "wren numeric"),
    "no number": ARFF.replace('"3"', '"x"'),
    "missing number": ARFF.replace('"3"', '"?"'),
    "NaN": ARFF.replace('"3"', '"nan"'),
    "strange label": ARFF.replace('"3",0', '"3",2'),
    "short line": ARFF.replace('"3",0', '"3"'),
    "long instance": ARFF.replace('"3"', '"3,4"'),
    "bag twice": ARFF.replace('b,"3"', 'a,"3"'),
    "open quote": ARFF.replace('"3",0', '"3,0'),
    "sparse": ARFF + '{0 a, 1 "3"}\n',
    "unknown line": ARFF.replace("@relation", "@relatoin"),
}
for name, content in ARFFS.items():
    recording(f"bad_tables/arff/{name}", written("t.arff", content), None)(said_of)

XMLS = {
    "other label": "<labels><label name='owl'/></labels>",
    "no XML": "<labels>",
    "no labels": "<labels></labels>",
    "document type": "<!DOCTYPE x><labels><label name='wren'/></labels>",
}


def arff_with_list(xml):
    """Return a function that writes a data file and a list of labels beside it."""

    def prepare(folder):
        (folder / "t.xml").write_text(xml)
        return written("t.arff", ARFF)(folder)

    return prepare


for name, xml in XMLS.items():
    recording(f"bad_tables/arff_labels/{name}", arff_with_list(xml), None)(said_of)


def cells(*bags):
    """Return bags as a cell array of MATLAB."""
    array = np.empty((len(bags), 1), dtype=object)
    array[:, 0] = [np.asarray(bag, dtype=float) for bag in bags]
    return array


TWO = cells([[1]], [[2]])
MATS = {
    "no bags": {"targets": np.eye(2)},
    "no targets": {"bags": TWO},
    "shape of targets": {"bags": TWO, "targets": np.ones((3, 3))},
    "values of targets": {"bags": TWO, "targets": np.full((1, 2), 5)},
    "widths": {"bags": cells([[1]], [[2, 3], [4, 5]]), "targets": np.eye(2)},
    "no instances": {"bags": cells(np.empty((0, 0))), "targets": np.ones((1, 1))},
    "NaN": {"bags": cells([[1]], [[np.nan]]), "targets": np.eye(2)},
    "names": {"bags": TWO, "targets": np.eye(2), "class_name": np.array(["a"])},
}
ARRAYS = {
    "X": np.ones((2, 1)),
    "offsets": np.array([0, 2]),
    "bag_labels": np.array([[1, 0]]),
    "class_names": np.array(["owl", "wren"]),
    "instance_labels": np.array([0, -1]),
}
NPZS = {
    "no arrays": {"X": 1},
    "offsets": ARRAYS | {"offsets": np.array([0, 3])},
    "bag labels": ARRAYS | {"bag_labels": np.array([[1, 2]])},
    "number of bags": ARRAYS | {"bag_labels": np.array([[1, 0]] * 2)},
    "instance labels": ARRAYS | {"instance_labels": np.array([0, 2])},
    "NaN": ARRAYS | {"X": np.array([[1], [np.nan]])},
}


def saved(name, arrays):
    """Return the bytes of a file of arrays."""
    buffer = io.BytesIO()
    if name.endswith(".mat"):
        savemat(buffer, arrays)
    else:
        np.savez(buffer, **arrays)
    return written(name, buffer.getvalue())


for name, arrays in MATS.items():
    recording(f"bad_tables/mat/{name}", saved("t.mat", arrays), None)(said_of)
for name, arrays in NPZS.items():
    recording(f"bad_tables/npz/{name}", saved("t.npz", arrays), None)(said_of)


@recording("bad_tables/npz/pickle inside")
def pickle_inside():
    """An array of objects is not unpickled."""
    array, buffer = io.BytesIO(), io.BytesIO()
    np.save(array, np.array([{}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("X.npy", array.getvalue())
    return said_of(written("t.npz", buffer.getvalue()), None)


@recording("bad_tables/no file")
def no_file():
    """Nothing there, or something else than a file."""

    def pipe(folder):
        os.mkfifo(folder / "pipe.csv")
        return folder / "pipe.csv"

    return {
        "nothing": said_of(lambda folder: folder / "t.csv"),
        "a folder": said_of(lambda folder: folder),
        "a pipe": said_of(pipe),
    }


@recording("bad_tables/other functions")
def other_functions():
    """What cannot be looked at, changed meanwhile, or be written."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = written("t.csv", GOOD)(folder)
        tries = {
            "peek": lambda: peek(folder / "absent.csv", WORDS),
            "convert to the unknown": lambda: convert(path, folder / "t.xlsx", WORDS),
            "changed while read": lambda: read(
                path, WORDS, progress=lambda *_: path.write_text(GOOD + "c,owl,3\n")
            ),
            "raven without times": lambda: write_raven(folder / "r", read(path, WORDS), ["a"] * 3),
            "one column, two roles": lambda: Roles(bag="word", labels="word"),
            "strange role": lambda: Roles.from_toml(written("r.toml", 'bags = "word"')(folder)),
            "broken TOML": lambda: Roles.from_toml(written("r.toml", "bag = [")(folder)),
            "no TOML": lambda: Roles.from_toml(folder / "absent.toml"),
        }
        found = {name: attempted(make) for name, make in tries.items()}
        for tree in found.values():
            if "error" in tree:
                tree["error"] = cleaned(tree["error"], folder)
        return found
