"""Loading models: strangers, and files that were cut or edited, are refused and run nothing."""

import gzip
import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile

import joblib
import numpy as np
import pytest
import safetensors.numpy

import unbag
from platforms import posix_only
from toys import BAGS, Y
from unbag.annotations import annotate
from unbag.models import ModelFileError, container, read_header
from unbag.models.container import FORMAT


class Evil:
    """Touches a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def zipped(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data.pkl", content)
    return buffer.getvalue()


def dumped(thing, **options):
    buffer = io.BytesIO()
    joblib.dump(thing, buffer, **options)
    return buffer.getvalue()


def strangers(touched):
    evil = Evil(touched)
    archive = io.BytesIO()
    np.savez(archive, evil=np.array([evil], dtype=object))
    noise = np.random.default_rng(0).bytes
    return {
        "empty": (b"", "not a model file"),
        "zip": (zipped(pickle.dumps(evil)), "not a model file"),
        "npz": (archive.getvalue(), "not a model file"),
        **{f"pickle {p}": (pickle.dumps(evil, p), "not a model file") for p in range(6)},
        "joblib": (dumped(evil), "not a model file"),
        "joblib zlib": (dumped(evil, compress=3), "not a model file"),
        "joblib gzip": (dumped(evil, compress=("gzip", 3)), "not a model file"),
        "gzip": (gzip.compress(pickle.dumps(evil)), "not a model file"),
        **{f"noise {n}": (noise(n), "not a model file") for n in (1, 8, 9, 100, 10_000)},
        "text": (b"word,tags,pitch\nabc,a|b,1.0\n", "not a model file"),
        "json": (b'{"format": 1}', "not a model file"),
        "zeros": (bytes(1000), "not a model file"),
        "huge": (struct.pack("<Q", 2**63 - 1) + b"{}", "not a model file"),
        "long": (struct.pack("<Q", 2**25) + b'{"a": 1}', "ends within its header"),
        "brackets": (struct.pack("<Q", 2**20) + b'{"a":' + b"[" * 2**20, "is not JSON"),
        "digits": (struct.pack("<Q", 5008) + b'{"a": ' + b"9" * 5001 + b"}", "is not JSON"),
        "other arrays": (safetensors.numpy.save({"x": np.ones(3)}), "but no model of unbag"),
        "other metadata": (
            safetensors.numpy.save({"x": np.ones(3)}, {"format": "np"}), "but no model of unbag"
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", strangers("nowhere"))
def test_strangers_are_refused_and_run_nothing(name, path, tmp_path):
    touched = tmp_path / "touched"
    content, why = strangers(touched)[name]
    path.write_bytes(content)
    assert_refused(path, why)
    assert not touched.exists()


def assert_refused(path, why, readers=(unbag.load, read_header)):
    """Refused in one line that names the file, and without much memory."""
    for reader in readers:
        tracemalloc.start()
        try:
            with pytest.raises(ModelFileError, match=why) as caught:
                reader(path)
            assert tracemalloc.get_traced_memory()[1] < 2**24
        finally:
            tracemalloc.stop()
        message = str(caught.value)
        assert message.startswith(str(path))
        assert "\n" not in message
        assert len(message) < 1000
        assert any(word in message.lower() for word in ("give a file", "again", "update"))


@posix_only
def test_directories_and_devices_are_refused(tmp_path, path):
    assert_refused(tmp_path, "it is a directory")
    os.mkfifo(path)
    assert_refused(path, "it is not a regular file")
    with pytest.raises(FileNotFoundError):
        unbag.load(tmp_path / "absent.unbag")


def test_truncated_files_are_refused(saved):
    content = saved.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    cuts = {*range(12), header - 1, header, header + 1, len(content) - 1}
    for cut in sorted(cuts | set(range(0, len(content), 331))):
        saved.write_bytes(content[:cut])
        with pytest.raises(ModelFileError, match=r"not a model file|damaged"):
            unbag.load(saved)
        with pytest.raises(ModelFileError, match=r"not a model file|damaged"):
            read_header(saved)
    saved.write_bytes(content + b"\0")
    assert_refused(saved, "it should have .* bytes, but has")


def test_any_flipped_bit_is_found(saved):
    content = bytearray(saved.read_bytes())
    for place in range(0, len(content), 97):
        content[place] ^= 1 << place % 8
        saved.write_bytes(content)
        with pytest.raises(ModelFileError):
            unbag.load(saved)
        content[place] ^= 1 << place % 8
    saved.write_bytes(content)
    unbag.load(saved)


def rewrite(path, change):
    """Edit header and arrays, and set the checksum right, as somebody who knows the format may."""
    header, arrays = container.read(path)
    header, arrays = change(header, arrays) or (header, arrays)
    container.write(path, header, arrays)


def rewrite_table(path, change):
    """Edit the table of a file, and nothing else."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    table = json.loads(content[8 : 8 + length])
    table = change(table) or table
    packed = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(packed)) + packed + content[8 + length :])


def step(header, place):
    return header["model"]["params"]["steps"][place]["items"][1]


def in_state(place, **values):
    """Put values among the learnt attributes of a step."""
    return lambda header, arrays: step(header, place)["state"].update(values)


def in_model(**values):
    """Put values into the description of the last step."""
    return lambda header, arrays: step(header, -1).update(values)


def of_another_format(header, arrays):
    header["format"] = FORMAT + 1
    header["versions"]["unbag"] = "99.0"
    del header["model"]


def swapped_shape(header, arrays):
    arrays["steps.model.coef_"] = arrays["steps.model.coef_"].reshape(20, 3)


def wild_indices(header, arrays):
    """Compiled code would read far beyond the end of an array."""
    wild = {"data": np.ones(1), "indices": np.array([10**9]), "indptr": np.array([0, 1])}
    arrays.update(wild)
    parts = {name: {"is": "array", "name": name, "order": "C"} for name in wild}
    in_state(-2, dictionary_={**MATRIX, **parts})(header, arrays)


ARRAY = {"is": "array", "name": "steps.scale.transformer_.mean_", "order": "C"}
MATRIX = {"is": "csr_matrix", "shape": [1, 4], "data": ARRAY, "indptr": ARRAY}
NAMES = {"is": "strings", "width": 3, "shape": [1], "items": ["abc"]}
NUMBER = {"is": "scalar", "dtype": "int8", "value": 1}
EDITS = {
    "another format": (
        of_another_format, r"by unbag 99\.0 in format 4, but this unbag reads format 3 only"),
    "unknown writer": (
        lambda h, a: h.update(format=9**999, versions={}), "by unbag None in format 1.* reads"),
    "no format": (lambda h, a: h.pop("format") and None, "which version of the format"),
    "format of text": (lambda h, a: h.update(format="1"), "which version of the format"),
    "no model": (lambda h, a: h.pop("model") and None, "its header has no 'model'"),
    "model of text": (lambda h, a: h.update(model="x"), "'model' in its header is str"),
    "other kind": (lambda h, a: h.update(kind="MIMLFast"), "names another kind"),
    "empty model": (lambda h, a: h.update(model={}), "unknown kind of value: None"),
    "no part": (lambda h, a: h.update(model={"is": "tuple", "items": []}), "another kind"),
    "unknown class": (in_model(**{"is": "Evil"}), "unknown kind of value: 'Evil'"),
    "class by path": (in_model(**{"is": "os.system"}), "unknown kind of value: 'os.system'"),
    "base of classes": (in_model(**{"is": "BagClassifier"}), "value: 'BagClassifier'"),
    "class of list": (in_model(**{"is": [1]}), "do not fit together"),
    "no class": (lambda h, a: step(h, -1).pop("is") and None, "unknown kind of value: None"),
    "more in a part": (in_model(call="os.system"), "do not fit together"),
    "unknown parameter": (
        lambda h, a: step(h, -1)["params"].update(colour=1), "has no parameter 'colour'"),
    "parameters of list": (in_model(params=[1]), "do not fit together"),
    "method": (in_state(-1, predict=1), "no learnt attribute 'predict'"),
    "dunder": (in_state(-1, __class__=1), "no learnt attribute '__class__'"),
    "property": (in_state(-1, has_background_=1), "no learnt attribute 'has_background_'"),
    "private attribute": (in_state(-1, _progress=None), "no learnt attribute '_progress'"),
    "property of a pipeline": (
        lambda h, a: h["model"]["state"].update(classes_=1), "no learnt attribute 'classes_'"),
    "parameter as attribute": (in_state(-1, alpha=1), "no learnt attribute 'alpha'"),
    "array missing": (lambda h, a: a.pop("steps.model.coef_")[:0].sort(), "coef_' is missing"),
    "attribute missing": (
        lambda h, a: step(h, -1)["state"].pop("intercept_") and None, "is not used"),
    "one array more": (lambda h, a: a.update(more=np.ones(3)), "'more' is not used"),
    "wrong shape": (swapped_shape, "do not fit together"),
    "other number of classes": (
        lambda h, a: a.update({"steps.model.classes_": np.arange(9)}), "scores of shape"),
    "no steps": (lambda h, a: h["model"]["params"].update(steps=[]), "is not used"),
    "steps of number": (lambda h, a: h["model"]["params"].update(steps=5), "is not used"),
    "features of text": (in_state(0, n_features_in_="x"), "n_features_in_ of OnInstances is"),
    "too many features": (in_state(0, n_features_in_=9), "is not a list of 9 names"),
    "deep": (
        lambda h, a: in_state(-2, delta_=nested(900))(h, a),
        # How deep is too deep depends on Python.
        "no JSON|do not fit together|must be finite"),
    "no number": (in_state(-2, delta_={"is": "float", "value": "1"}), "'1' is not a number"),
    "code": (in_state(-2, delta_={"is": "code", "text": "1"}), "unknown kind of value: 'code'"),
    "object scalar": (in_state(-2, delta_={**NUMBER, "dtype": "object"}), "of numbers: 'object'"),
    "large scalar": (in_state(-2, delta_={**NUMBER, "value": 300}), "do not fit together"),
    "scalar of list": (in_state(-2, delta_={**NUMBER, "value": [300]}), "not of the type int8"),
    "wide names": (in_state(-2, names_={**NAMES, "width": 2**40}), "a width of"),
    "narrow names": (in_state(-2, names_={**NAMES, "width": 1}), "a width of 1"),
    "no names": (in_state(-2, names_={**NAMES, "items": [5]}), "contains other values"),
    "many names": (in_state(-2, names_={**NAMES, "shape": [2**40]}), "cannot have the shape"),
    "many objects": (
        in_state(-2, names_={"is": "objects", "shape": [2**40], "items": [1]}), "have the shape"),
    "wild indices": (wild_indices, "has indices outside its shape"),
    "unknown matrix": (
        in_state(-2, dictionary_={**MATRIX, "indices": ARRAY, "is": "evil"}), "value: 'evil'"),
    "unknown record": (in_state(-1, progress_={"is": "Popen"}), "kind of value: 'Popen'"),
    "record without fields": (in_state(-1, progress_={"is": "Scale"}), "Scale has"),
    "record of another kind": (
        lambda h, a: in_state(-1, progress_=step(h, -1)["state"]["decision_"])(h, a),
        "progress_ of ORLogisticRegression must be a record Progress"),
}  # fmt: skip


def nested(depth):
    return [nested(depth - 1)] if depth else 0


@pytest.mark.parametrize("name", EDITS)
def test_edited_models_are_refused(name, saved):
    change, why = EDITS[name]
    rewrite(saved, change)
    assert_refused(saved, why, [unbag.load])


def entry(table):
    return table["steps.kernel.dictionary_"]


TABLES = {
    "wrong shape": (lambda t: entry(t).update(shape=[4, 20]), "checksum"),
    "wrong size": (lambda t: entry(t).update(shape=[20, 5]), "table of arrays is wrong"),
    "huge shape": (lambda t: entry(t).update(shape=[2**62, 2**62]), "table of arrays is wrong"),
    "negative shape": (lambda t: entry(t).update(shape=[-1, 4]), "table of arrays is wrong"),
    "shape of text": (lambda t: entry(t).update(shape="20"), "is invalid"),
    "shape of numbers": (lambda t: entry(t).update(shape=[20.0, 4]), "is invalid"),
    "wrong dtype": (lambda t: entry(t).update(dtype="I64"), "checksum"),
    "wrong width": (lambda t: entry(t).update(dtype="F32"), "table of arrays is wrong"),
    "unknown dtype": (lambda t: entry(t).update(dtype="BF16"), "is invalid"),
    "dtype of list": (lambda t: entry(t).update(dtype=["F64"]), "is invalid"),
    "huge end": (lambda t: entry(t).update(data_offsets=[0, 2**60]), "it should have"),
    "overlap": (lambda t: entry(t).update(data_offsets=[0, 640]), "table of arrays is wrong"),
    "no place": (lambda t: entry(t).pop("data_offsets") and None, "is invalid"),
    "entry of text": (lambda t: {**t, "x": "y"}, "is invalid"),
    "array missing": (lambda t: t.pop("steps.kernel.dictionary_") and None, "table of|should have"),
    "no metadata": (lambda t: t.pop("__metadata__") and None, "no model of unbag"),
    "metadata of list": (lambda t: {**t, "__metadata__": []}, "no model of unbag"),
    "header no JSON": (lambda t: t["__metadata__"].update(unbag="{"), "its header is not JSON"),
    "header of list": (lambda t: t["__metadata__"].update(unbag="[]"), "header is list"),
    "no checksum": (lambda t: t["__metadata__"].pop("checksum") and None, "checksum"),
    "other header": (
        lambda t: t["__metadata__"].update(unbag=t["__metadata__"]["unbag"] + " "), "checksum"),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_edited_tables_are_refused(name, saved):
    change, why = TABLES[name]
    rewrite_table(saved, change)
    assert_refused(saved, why, [unbag.load])


def test_truth_values_are_checked(path):
    model = unbag.DummyBags().fit(BAGS, Y)
    model.mask_ = np.zeros(8, dtype=bool)
    model.save(path)
    content = bytearray(path.read_bytes())
    content[-8:] = bytes([2] * 8)
    path.write_bytes(content)
    assert_refused(path, "truth values other than 0 and 1", [unbag.load])


def test_models_that_say_too_little(path):
    model = unbag.DummyBags().fit(BAGS, Y)
    model.save(path)
    rewrite(path, lambda h, a: h["model"]["state"].pop("n_features_in_") and None)
    assert_refused(path, "how many features", [unbag.load])


def test_messages_do_no_harm_to_a_terminal(saved):
    def change(header, arrays):
        header["versions"] = {"\x1b[2J": "x\n" * 10_000}
        step(header, -1)["is"] = "\x1b]0;" * 10_000

    rewrite(saved, change)
    with pytest.raises(ModelFileError) as caught:
        unbag.load(saved)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


def test_a_cache_of_pickles_never_comes_from_a_file(saved):
    rewrite(saved, lambda h, a: h["model"]["params"].update(memory="/tmp/cache"))
    assert unbag.load(saved).memory is None


STORED_ROLES = {
    "any_of of number": ({"any_of": 5}, "what it says of its table is wrong"),
    "bag of list": ({"bag": ["night"]}, "must be one name"),
    "rename": ("old,new\na,z\n", "rename is stored as the path .* not opened"),
    "taxonomy": ("child,parent\na,z\n", "taxonomy is stored as the path .* not opened"),
}


@pytest.mark.parametrize("name", STORED_ROLES)
def test_roles_in_a_file_are_checked_and_open_no_other_file(name, path, tmp_path):
    roles, why = STORED_ROLES[name]
    if isinstance(roles, str):
        (tmp_path / "table.csv").write_text(roles)
        roles = {name: str(tmp_path / "table.csv")}
    unbag.DummyBags().fit(BAGS, Y).save(path)
    rewrite(path, lambda h, a: h["info"].update(roles=roles))
    assert_refused(path, why, [unbag.load])


@pytest.mark.parametrize("roles", [{"taxonomy": 5}, {"taxonomy": [None]}, {"rename": "n.csv"}])
def test_roles_of_a_step_of_a_pipeline_are_checked_too(roles, saved):
    written = {"is": "dict", "items": [list(pair) for pair in roles.items()]}
    rewrite(saved, lambda h, a: step(h, -1)["state"].update(roles_=written))
    assert_refused(saved, "what it says of its table is wrong", [unbag.load])


def test_a_taxonomy_that_is_a_path_is_not_opened(saved, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("child,parent\na,z\n")
    model = unbag.load(saved)
    model.roles_ = {"taxonomy": str(table)}
    with pytest.raises(ValueError, match="rows of child, parent and rank"):
        annotate(model, unbag.Bags.from_list(BAGS), level="genus")
