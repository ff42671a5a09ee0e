"""Small files that ask for much memory: they are refused before they get it, or do not get it.

All of them are read in one process, whose memory is bounded and then measured.
"""

import gzip
import io
import json
import re
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

import unbag.tables
from platforms import linux_only
from unbag import Bags, LabelSets
from unbag.tables import DataError, read
from unbag.tables.text import TextFile

# More than may be unpacked from next to nothing.
N_BYTES = 200 << 20
# What Python and the libraries take is a part of it.
MOST_MEMORY = 700 << 20
ARRAYS = {
    "X": np.ones((2, 1)), "offsets": np.array([0, 2]), "bag_labels": np.array([[1, 0]]),
    "class_names": np.array(["owl", "wren"]),
}  # fmt: skip
READER = """
import json, pathlib, resource, sys
import unbag.tables
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
roles = unbag.tables.Roles(bag="bag", labels="labels", instance_labels="known", features=["x"])
answers = {}
for path in sys.argv[1:]:
    try:
        answers[path] = repr(unbag.tables.read(path, roles).bags)
    except unbag.tables.DataError as error:
        answers[path] = str(error)
# Not getrusage, which counts what the parent had when it made this process.
status = pathlib.Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
peak = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)
print(json.dumps([answers, peak]))
"""


def rows(n, **special):
    """Write a table in which one row, the second, has something special."""
    lines = ["bag,labels,known,x"]
    for row in range(n):
        cells = {"bag": f"b{row}", "labels": "owl", "known": "owl", "x": "1"}
        lines.append(",".join((cells | (special if row == 1 else {})).values()))
    return ("\n".join(lines) + "\n").encode()


def npz(zeros=None, **arrays):
    """Write an ``.npz`` file; one array is all zeros, of the bytes and the shape that are given."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{name}.npy", content.getvalue())
        if zeros is not None:
            name, shape, n_bytes = zeros
            header = io.BytesIO()
            description = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(header, description)
            with archive.open(f"{name}.npy", "w") as member:
                member.write(header.getvalue())
                for start in range(0, n_bytes, 1 << 20):
                    member.write(bytes(min(1 << 20, n_bytes - start)))
    return file.getvalue()


def mat(**more):
    file = io.BytesIO()
    bags = np.empty((1, 1), dtype=object)
    bags[0, 0] = np.ones((2, 1))
    savemat(file, {"bags": bags, "targets": np.ones((1, 1))} | more, do_compression=True)
    return file.getvalue()


def without(name):
    return {key: array for key, array in ARRAYS.items() if key != name}


def contents():
    """Pairs of a file's content and of what is said of it, by name."""
    zeros = np.zeros(N_BYTES // 8)
    line = b"b0,owl,owl,1\n"
    header = b"bag,labels,known,x\n"
    n_rows = N_BYTES // len(line)
    return {
        "id.csv": (rows(20_000, bag="a" * 10**6), "row 3, column 'bag': .* has 1,000,000 char"),
        "label.csv": (rows(20_000, labels="a" * 10**5), "row 3, column 'labels': .* a label of 1"),
        "known.csv": (rows(20_000, known="a" * 10**6), "row 3, column 'known': .* has 1,000,000"),
        "cell.csv": (rows(20, labels="a|" * 10**6), "row 3, column 'labels': .* 2,000,000 charac"),
        "long id.csv": (rows(20_000, bag="a" * 9_999), "20000 bags"),
        "one line.csv": (header + b"a" * (70 << 20), "in the row that begins with .*too long"),
        "wide.csv": (b"a," * 10**6 + b"b\n", "more than 1,000,000 columns"),
        "bomb.csv.gz": (gzip.compress(header + line * n_rows, 1), "would take .* bytes"),
        "small.csv.gz": (gzip.compress(header + line * 10**5), "1 bags, 100000 instances"),
        "X.npz": (npz(("X", (N_BYTES // 8, 1), N_BYTES), **without("X")), "would take .* bytes"),
        "unused.npz": (npz(("other", (N_BYTES // 8, 1), N_BYTES), **ARRAYS), "1 bags"),
        "shape.npz": (npz(("X", (10**12, 1), 80), **without("X")), r"X.npy holds .*shape"),
        "columns.npz": (npz(("X", (0, 10**12), 0), **without("X")), "would take 1,000,000,000,0"),
        "names.npz": (npz(**ARRAYS | {"class_names": np.array(["a", "b" * 10**7])}), "1 bags"),
        "targets.mat": (mat(targets=zeros), "variable 'targets' would take .* bytes"),
        "unused.mat": (mat(other=zeros), "1 bags"),
    }  # fmt: skip


@linux_only
def test_small_files_take_little_memory(tmp_path):
    expected = {}
    for name, (content, message) in contents().items():
        (tmp_path / name).write_bytes(content)
        expected[str(tmp_path / name)] = message
    done = subprocess.run(
        [sys.executable, "-c", READER, *expected], capture_output=True, text=True, check=True
    )
    answers, peak = json.loads(done.stdout)
    for path, message in expected.items():
        assert re.search(message, answers[path]), (path, answers[path][:500])
        assert len(answers[path]) < 1000
    assert peak < MOST_MEMORY


def test_numbers_that_do_not_change_are_still_read(tmp_path):
    """What is small is never refused, however well it is compressed."""
    X = np.zeros((1_000_000, 2))
    y = np.array([[1, 0]])
    np.savez_compressed(tmp_path / "t.npz", **ARRAYS | {"X": X, "offsets": [0, len(X)]})
    assert read(tmp_path / "t.npz").bags.n_instances == len(X)
    cells = np.empty((1, 1), dtype=object)
    cells[0, 0] = X
    savemat(tmp_path / "t.mat", {"bags": cells, "targets": y.T}, do_compression=True)
    assert read(tmp_path / "t.mat").bags.n_instances == len(X)


LONG = "w" * 1000


def test_one_long_name_does_not_widen_all_others():
    ids = [str(number) for number in range(1000)]
    bags = Bags(np.ones((1001, 1)), np.arange(1002), ids=[*ids, LONG], instance_labels=[*ids, LONG])
    assert bags.ids.nbytes + bags.instance_labels.nbytes < 20_000
    assert bags.ids[-1] == LONG
    assert Bags.concatenate([bags[:2], bags[1000:]]).ids.tolist() == ["0", "1", LONG]
    labels = LabelSets.parse([{name} for name in [*ids, LONG]])
    assert labels.classes.nbytes < 20_000
    assert labels[1000] == {LONG}


def test_a_model_of_a_long_class_answers_and_is_kept(tmp_path):
    bags = [[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]]
    model = unbag.ORLogisticRegression().fit(bags, [{"a", LONG}, {"a"}, {LONG}, {"a", LONG}])
    model.save(tmp_path / "m.unbag")
    again = unbag.load(tmp_path / "m.unbag")
    assert again.predict_instances([[[0.5], [8.5]]]).tolist() == ["a", LONG]
    assert again.predict_instances([[[0.5], [8.5]]]).nbytes == 16


def test_npz_says_what_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr("unbag.tables.formats.npz.LARGEST_TEXT_ARRAY", 1000)
    bags = Bags(np.ones((2, 1)), [0, 1, 2], ids=["a", LONG])
    with pytest.raises(DataError, match=r"the bag 'www.*' has 1,000 characters"):
        unbag.tables.write_bags(tmp_path / "t.npz", bags, LabelSets([[1], [1]], ["owl"]))


@pytest.mark.slow  # Twenty seconds.
def test_many_columns_take_time_in_proportion(tmp_path):
    # Looking each column up in a list of all of them takes a minute here, and hours for a million.
    names = [f"x{place}" for place in range(60_000)]
    lines = [",".join(["bag", "labels", *names]), *(["a,wren" + ",0.5" * len(names)] * 2)]
    path, again = tmp_path / "wide.csv", tmp_path / "again.csv"
    path.write_text("\n".join(lines) + "\n")
    start = time.process_time()
    guessed = read(path)
    assert guessed.bags.n_features == len(names)
    assert read(path, guessed.roles).bags.n_features == len(names)
    guessed.write(again, {"note": ["x", "y"]})
    assert again.read_text().splitlines()[1].endswith(",x")
    again.write_text(path.read_text())
    assert read([path, again], guessed.roles).bags.n_instances == 4
    path.write_text("\n".join([*lines, lines[-1][:-3] + "x.5"]) + "\n")
    with pytest.raises(DataError, match=r"row 4, column 'x59999': 'x\.5' is not a finite number"):
        read(path)
    path.write_text("\n".join([lines[0] + ",x59999", *lines[1:]]) + "\n")
    with pytest.raises(DataError, match="two columns named 'x59999'"):
        read(path)
    assert time.process_time() - start < 30.0


def test_rows_of_many_columns_are_read_several_at_a_time(tmp_path):
    # Each chunk takes time for every column: with a row each, that is columns times columns.
    path = tmp_path / "wide.csv"
    lines = [",".join(f"x{place}" for place in range(1000)), *([",".join(["1.25"] * 1000)] * 16)]
    path.write_text("\n".join(lines) + "\n")
    source = TextFile(path)
    chunks = [chunk.num_rows for _, chunk in source.chunks([], source.columns, 1000)]
    assert sum(chunks) == 16
    assert len(chunks) <= 2
