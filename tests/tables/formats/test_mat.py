"""MATLAB files: what SciPy reads comes from a process of its own, which damage may end."""

import io
import struct
import zlib

import numpy as np
import pytest
from scipy import sparse
from scipy.io import loadmat, savemat

from unbag import Unknown
from unbag.tables import DataError, read
from unbag.tables.formats.mat import load_variables


def cells(*values):
    array = np.empty((1, len(values)), dtype=object)
    array[0] = values
    return array


CONTENT = {
    "bags": cells(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0]])),
    "targets": np.array([[1.0, -1.0], [-1.0, 1.0]]),
    "class_name": cells("owl", "zaunkönig"),
    "rows": np.array(["ab", "c"]),
    "single": np.float32([[1.5]]),
    "integers": np.arange(24, dtype=np.int16).reshape(2, 3, 4),
    "truths": np.array([[True, False]]),
    "sparse": sparse.csc_matrix([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]]),
    "nested": cells(cells(np.eye(2), "deep"), np.empty((0, 0))),
    "nothing": "",
    "struct": {"a": 1.0, "b": cells("x")},
}


def mat_bytes(content=None, **options):
    file = io.BytesIO()
    savemat(file, CONTENT if content is None else content, **options)
    return file.getvalue()


def assert_same(mine, theirs):
    if sparse.issparse(theirs):
        assert sparse.issparse(mine)
        mine, theirs = mine.toarray(), theirs.toarray()
    if theirs.dtype.names is not None:
        assert mine.dtype.kind == "V"
    elif theirs.dtype == object:
        assert mine.shape == theirs.shape
        for one, other in zip(mine.ravel(), theirs.ravel(), strict=True):
            assert_same(one, other)
    else:
        assert mine.size == theirs.size
        if mine.size:
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("compress", [False, True])
def test_variables_are_those_that_scipy_reads(tmp_path, compress):
    path = tmp_path / "t.mat"
    path.write_bytes(mat_bytes(do_compression=compress))
    mine, theirs = load_variables(path, CONTENT), loadmat(path, spmatrix=False, mat_dtype=True)
    assert list(mine) == list(CONTENT)
    for name, value in mine.items():
        assert_same(value, theirs[name])
    assert list(load_variables(path, ["rows", "absent"])) == ["rows"]


def test_files_of_level_4_are_refused_with_a_remedy(tmp_path):
    (tmp_path / "t.mat").write_bytes(mat_bytes({"targets": CONTENT["targets"]}, format="4"))
    with pytest.raises(DataError, match=r"t\.mat is in MATLAB's format 4: .* '-v7'"):
        load_variables(tmp_path / "t.mat", ["targets"])


def element(kind, content):
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def matrix(matlab_class, shape, *parts, name=b"bags"):
    """Write a variable whose parts are elements already."""
    head = element(6, struct.pack("<II", matlab_class, 0))
    head += element(5, struct.pack(f"<{len(shape)}i", *shape)) + element(1, name)
    return element(14, head + b"".join(parts))


def doubles(*values):
    return element(9, np.array(values, "<f8").tobytes())


def whole(*values):
    return element(5, np.array(values, "<i4").tobytes())


DAMAGED = {
    # It is looked up in a table without a look at its size.
    "a type that there is not": (matrix(6, (1, 1), element(2**15, bytes(8))), "is damaged"),
    "a class that there is not": (matrix(99, (1, 1), doubles(1.0)), "is damaged"),
    "dimensions beyond the bytes": (matrix(6, (1 << 20, 1 << 20), doubles(1.0)), "would take"),
    "cells beyond the bytes": (matrix(1, (1 << 20, 1 << 10)), "would take"),
    "cells within a cell": (
        matrix(1, (1, 1), matrix(1, (1 << 20, 1 << 14), name=b"")), "is damaged"),
    "an element beyond its matrix": (
        matrix(6, (1, 1), struct.pack("<II", 9, 1 << 30) + bytes(8)), "is damaged"),
    "a cell that is none": (matrix(1, (1, 1), doubles(1.0)), "is damaged"),
    "text that is too short": (matrix(4, (1, 5), element(16, b"abc")), "is damaged"),
    "a row outside": (matrix(5, (2, 1), whole(7), whole(0, 1), doubles(1.0)), "is damaged"),
    "a negative row": (matrix(5, (2, 1), whole(-1), whole(0, 1), doubles(1.0)), "is damaged"),
    "columns that overlap": (
        matrix(5, (2, 2), whole(0, 1), whole(0, 2, 1), doubles(1.0, 2.0)), "is damaged"),
    "entries that are not there": (
        matrix(5, (2, 1), whole(0), whole(0, 9), doubles(1.0)), "is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_is_refused_with_the_name_of_the_file(tmp_path, case):
    content, message = DAMAGED[case]
    (tmp_path / "t.mat").write_bytes(mat_bytes()[:128] + content)
    with pytest.raises(DataError, match=rf"t\.mat.*{message}"):
        load_variables(tmp_path / "t.mat", ["bags"])


def test_no_module_is_taken_from_the_folder_of_the_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pickle.py").write_text("raise ValueError('not this one')")
    (tmp_path / "t.mat").write_bytes(mat_bytes())
    assert load_variables(tmp_path / "t.mat", ["rows"])["rows"].tolist() == ["ab", "c "]


def test_no_number_loses_its_imaginary_part(tmp_path):
    content = {"bags": cells(np.array([[1 + 2j]])), "targets": np.ones((1, 1))}
    (tmp_path / "t.mat").write_bytes(mat_bytes(content))
    with pytest.raises(DataError, match=r"t\.mat cannot be read.*ComplexWarning"):
        read(tmp_path / "t.mat")


def test_rows_that_take_nothing_in_the_file_are_bounded(tmp_path):
    content = matrix(5, (2**31 - 1, 1), whole(), whole(0, 0), doubles())
    (tmp_path / "t.mat").write_bytes(mat_bytes()[:128] + content)
    with pytest.raises(DataError, match="variable 'bags' would take 17,179,869,176 bytes"):
        load_variables(tmp_path / "t.mat", ["bags"])


def damaged(rng, content):
    """Change a few bytes of a file, or cut it."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(max(1, len(content))))
        how = rng.integers(4)
        if how == 0:
            content[place : place + 1] = rng.bytes(1)
        elif how == 1:
            special = [0, 1, 14, 15, 18, 19, 255, 2**16, 2**28, 2**31 - 1, 2**31, 2**32 - 1]
            place -= place % 4
            content[place : place + 4] = struct.pack("<I", rng.choice(special))
        elif how == 2:
            content[place : place + 8] = rng.bytes(len(content[place : place + 8]))
        else:
            del content[place : place + int(rng.integers(1, 32))]
    return bytes(content)


def unpacked_and_damaged(rng, content):
    """Damage what is compressed, and compress it again, so that the checksums are right."""
    changed, place = content[:128], 128
    while place < len(content):
        kind, size = struct.unpack_from("<II", content, place)
        packed = content[place + 8 : place + 8 + size]
        packed = zlib.compress(damaged(rng, zlib.decompress(packed)))
        changed += struct.pack("<II", kind, len(packed)) + packed
        place += 8 + size
    return changed


def test_random_damage_gives_data_or_an_error(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "t.mat"
    plain, packed = mat_bytes(), mat_bytes(do_compression=True)
    n_refused = 0
    for case in range(15):
        content = [
            lambda: damaged(rng, plain),
            lambda: unpacked_and_damaged(rng, packed),
            lambda: damaged(rng, packed),
        ][case % 3]()
        path.write_bytes(content)
        try:
            load_variables(path, CONTENT)
        except DataError:
            n_refused += 1
    assert n_refused > 6


# Bags


def test_matlab_as_published(tmp_path):
    """A bag per cell, a class per row of the targets, 1 and -1."""
    bags = cells(np.ones((2, 3)), np.zeros((1, 3)), np.empty((0, 0)))
    targets = np.array([[1, -1, -1], [1, 1, 0]])
    names = cells("desert", "sea").T
    savemat(tmp_path / "t.mat", {"bags": bags, "targets": targets, "class_name": names})
    table = read(tmp_path / "t.mat")
    assert table.bags.sizes.tolist() == [2, 1, 0]
    assert table.labels.to_sets() == [{"desert", "sea"}, {"sea"}, {Unknown("sea")}]
    assert table.bags.feature_names.tolist() == ["x0", "x1", "x2"]


def test_matlab_the_other_way_round(tmp_path):
    """A bag per row of the targets, 1 and 0; instances are columns; a sparse bag."""
    bags = cells(np.ones((3, 2)), sparse.csc_matrix(np.eye(3)[:, :1]))
    savemat(tmp_path / "t.mat", {"data": bags, "target": np.array([[1, 0, 0], [0, 1, 1]])})
    table = read(tmp_path / "t.mat")
    assert table.bags.shape == (2, 3)
    assert table.bags.sizes.tolist() == [2, 1]
    assert table.labels.to_sets() == [{"1"}, {"2", "3"}]
