"""A file is opened once for each pass, of which text has one, and closed then."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from toys import ROLES, word_lines
from unbag.tables import DataError, Roles, read
from unbag.tables.table import open_source

COUNTED = """
import json, os, sys
import pyarrow

opens = []
OSFile = pyarrow.OSFile

def count(path):
    if isinstance(path, (str, os.PathLike)):
        opens.append(os.path.basename(os.fspath(path)))

def counted_file(path, *options, **more):
    # Arrow opens files by itself, unseen by Python.
    count(path)
    return OSFile(path, *options, **more)

def audit(event, arguments):
    if event == "open":
        count(arguments[0])

pyarrow.OSFile = counted_file
sys.addaudithook(audit)
"""

COMMANDS = """
from unbag.cli import main

counts = []
for arguments in json.loads(sys.argv[1]):
    opens.clear()
    try:
        main(arguments)
    except SystemExit as left:
        assert not left.code, left.code
    counts.append([opens.count("words.csv"), opens.count("m.unbag")])
print(json.dumps(counts))
"""


def counts_of(code, folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", COUNTED + code, *arguments],
        cwd=folder, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("\n".join(word_lines()) + "\n")
    return path


def test_commands_open_a_table_once_per_pass(tmp_path, words):
    fit = ["fit", "words.csv", *ROLES, "-o", "m.unbag", "--max-iter", "2"]
    annotate = ["annotate", "m.unbag", "words.csv", "-o", "out.csv"]
    predict = ["predict", "m.unbag", "words.csv", "-o", "bags.csv"]
    counts = counts_of(
        COMMANDS, tmp_path, json.dumps([fit, annotate, predict, [*fit, "--dry-run"]])
    )
    assert [table for table, _ in counts] == [1, 1, 1, 1]
    # Once as a whole, and once for its header.
    assert all(model <= 2 for _, model in counts)


def open_files():
    """Paths of the files that this process has open."""
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("this system does not list open files")
    return {os.path.realpath(each) for each in folder.iterdir()}


BAD = {
    "header": ("t.csv", b"word,word\n1,2\n"),
    "roles": ("t.csv", b"word,x\na,1\n"),
    "labels": ("t.csv", b"word,tags,x\na,b,1\na,c,2\n"),
    "features": ("t.csv", b"word,tags,x\na,b,1\na,b,nan\n"),
    "gzip": ("t.csv.gz", b"word,tags,x\n"),
    "Parquet": ("t.parquet", b"PAR1 and nothing else"),
    "Feather": ("t.feather", b"ARROW1 and nothing else"),
    "MATLAB": ("t.mat", b"nothing of the kind"),
    "npz": ("t.npz", b"nothing of the kind"),
    "ARFF": ("t.arff", b"nothing of the kind"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_is_closed_when_it_cannot_be_read(tmp_path, case):
    name, content = BAD[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(tmp_path / name, Roles(bag="word", labels="tags"))
    # While the error, and with it every frame that it went through, is still there.
    assert caught.traceback
    assert os.path.realpath(tmp_path / name) not in open_files()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_is_open_during_a_pass_only(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    table = pa.table({"bag": ["a", "b"], "labels": ["x", "y"], "f": [1.0, 2.0]})
    (pa.csv.write_csv if suffix == ".csv" else pq.write_table)(table, path)
    with open_source(path) as source:
        assert os.path.realpath(path) not in open_files()
        first, again = source.read(), source.read()
    np.testing.assert_array_equal(first.bags.X, again.bags.X)
    assert os.path.realpath(path) not in open_files()
    assert first.column("labels").tolist() == ["x", "y"]
    assert os.path.realpath(path) not in open_files()

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        read(path, progress=stop)
    assert caught.traceback
    assert os.path.realpath(path) not in open_files()
