"""Compiled code on disk belongs to the sources that it was compiled from."""

import ast
import errno
import gc
import logging
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numba
import numba.experimental
import numpy as np
import pytest
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

import unbag
from unbag import _compile
from unbag._compile import FOLDERS_OF_KERNELS, compiled
from unbag.union import infer

SOURCES = Path(unbag.__file__).parent
# Ctrl-C at each moment at which LLVM asks Python for the code of a kernel; another try gets it.
INTERRUPT_LOADS = """
import signal, sys
import numpy as np
from llvmlite.binding.executionengine import ExecutionEngine
from unbag.union import infer

find, asked, interrupts = ExecutionEngine._find_module_ptr, 0, 0

def interrupt(self, pointer):
    global asked
    if sys._getframe(1).f_code.co_name == "_raw_object_cache_getbuffer":
        asked += 1
        if asked % 2:
            signal.raise_signal(signal.SIGINT)
    return find(self, pointer)

ExecutionEngine._find_module_ptr = interrupt
# Shells let programs in the background ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
while True:
    try:
        print(infer(np.log([[0.9, 0.1], [0.6, 0.4]]), [0, 2], [[1, 1]]).posterior.round(2).tolist())
        break
    except KeyboardInterrupt:
        interrupts += 1
assert 0 < interrupts <= asked
"""
KERNEL_FILES = [
    pytest.param(
        path,
        id=str(path.relative_to(SOURCES)),
        marks=[pytest.mark.torch] if "torch" in path.relative_to(SOURCES).parts else [],
    )
    for path in sorted(SOURCES.rglob("*.py"))
    if "from unbag._compile import" in path.read_text()
]


def kernels(path):
    """Compiled functions that a file defines."""
    module = import_module(".".join(["unbag", *path.relative_to(SOURCES).with_suffix("").parts]))
    things = vars(module).values()
    return [
        thing
        for thing in things
        if isinstance(thing, Dispatcher) and thing.py_func.__module__ == module.__name__
    ]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A function: where kernels of two files of the core and two methods are if one changes."""
    monkeypatch.setattr(_compile.settings, "CACHE_DIR", str(tmp_path / "kernels"))

    def folders(changed):
        copy = tmp_path / changed.replace("/", "-") / "unbag"
        shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
        with (copy / changed).open("a") as file:
            file.write("# another comment")
        monkeypatch.setattr(_compile, "__file__", str(copy / "_compile.py"))
        files = "union/chain.py", "union/dense.py", "paper/sim.py", "paper/lsbcmm.py"
        found = [_compile.cache_folder(str(copy / name)) for name in files]
        assert all(Path(folder).is_relative_to(tmp_path / "kernels") for folder in found)
        return found

    return folders


def test_an_interrupt_while_a_kernel_is_loaded():
    """Ctrl-C comes after the kernel is there, and never leaves one that crashes."""
    infer(np.log([[0.9, 0.1], [0.6, 0.4]]), [0, 2], [[1, 1]])  # Now its kernels are on disk.
    done = subprocess.run([sys.executable, "-c", INTERRUPT_LOADS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[[0.86, 0.14], [0.14, 0.86]]\n"


def test_compiled_code_belongs_to_its_sources(folders):
    """Another state of a file means another folder for those kernels that may use it."""
    before = chain, dense, of_sim, of_lsbcmm = folders("metrics.py")
    assert chain == dense
    assert of_sim == of_lsbcmm != chain
    for changed, same in {
        "union/chain.py": [False, False, False, False],
        "union/policy.py": [False, False, False, False],
        "paper/sim.py": [True, True, False, False],
        "_compile.py": [False, False, False, False],
    }.items():
        now = folders(changed)
        assert [a == b for a, b in zip(now, before, strict=True)] == same, changed


def test_there_are_kernels():
    assert len(KERNEL_FILES) > 10
    assert {kept.values[0].parent.name for kept in KERNEL_FILES} >= {"union", "paper"}


@pytest.mark.parametrize("path", KERNEL_FILES)
def test_kernels_use_only_what_their_folder_of_compiled_code_is_named_after(path):
    """Else a change there would leave compiled code of yesterday in use."""
    folders = FOLDERS_OF_KERNELS.get(path.parent.name, ())
    used = {name for kernel in kernels(path) for name in kernel.py_func.__code__.co_names}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            ours = node.level > 0 or node.module.split(".")[0] == "unbag"
            absolute = path.parent.name if node.level == 1 else node.module.partition(".")[2]
            beside = node.level < 2 and absolute.partition(".")[0] in folders
            names = {alias.asname or alias.name for alias in node.names}
            assert not ours or beside or not names & used


@pytest.mark.parametrize("writable", [True, False])
def test_a_cache_never_decides_whether_import_works(tmp_path, writable):
    """Where nothing can be written, kernels are compiled and forgotten."""
    home = tmp_path / "home"
    # A file in the place of a folder stops even the superuser, whom no permission would.
    home.write_text("") if not writable else home.mkdir()
    code = (
        "import numpy as np; from unbag.union import most_likely_labels as label; "
        "print(label(np.zeros((1, 1)), [0, 1], [[1]]))"
    )
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert (done.stdout, done.stderr) == ("[0]\n", "")
    assert writable == (home / "unbag" / "kernels").exists()


@pytest.fixture
def compilation(monkeypatch, caplog):
    """What is known of compiling, as in a new process, and without patience."""
    monkeypatch.setattr(_compile, "SECONDS_UNTIL_MESSAGE", 0.0)
    monkeypatch.setattr(_compile.logger, "disabled", False)
    monkeypatch.setattr(_compile, "compilation", _compile.Compilation())
    caplog.set_level(logging.INFO, "unbag")
    return _compile.compilation


def doubling(decorate):
    """A function of this package, or of another one, to compile."""

    @decorate
    def double(x):
        return 2 * x

    return double


class GarbageListener(event.Listener):
    """Notes whether garbage is collected while compiling."""

    def __init__(self):
        self.is_collected = []

    def on_start(self, event):
        pass

    def on_end(self, event):
        self.is_collected.append(gc.isenabled())


ONCE = "Compiling inference kernels (once; up to half a minute) ..."


@pytest.mark.parametrize("is_ours", [True, False])
def test_compiling_is_logged_once_and_collects_no_garbage(is_ours, compilation, caplog, tmp_path):
    with event.install_listener("numba:run_pass", GarbageListener()) as garbage:
        double = doubling(kept_in(tmp_path) if is_ours else numba.njit)
        assert (double(2), double(2.5)) == (4, 5.0)
    assert (not any(garbage.is_collected)) == is_ours
    assert gc.isenabled()
    assert caplog.messages == ([ONCE] if is_ours else [])
    assert (compilation.seconds > 0) == is_ours


@pytest.mark.usefixtures("compilation")
def test_other_packages_compile_what_they_like(tmp_path):
    """Functions that belong to no module, and classes, whose methods have no function."""

    def compile_others():
        assert numba.njit(eval("lambda x: x + 1", {}))(1) == 2

        # On Python 3.13, numba takes classes of a class statement only.
        class Counter:
            __init__ = eval("lambda self: None")
            next = next_number

        counter = numba.experimental.jitclass([("n", numba.int64)])(Counter)()
        assert counter.next() == counter.n

    compile_others()
    assert doubling(kept_in(tmp_path))(1) == 2
    compile_others()
    assert doubling(kept_in(tmp_path / "other"))(1) == 2
    assert gc.isenabled()


def next_number(self):
    self.n += 1
    return self.n


@pytest.mark.usefixtures("compilation")
@pytest.mark.parametrize("collects", [True, False])
def test_whether_garbage_is_collected_stays_as_it_was(collects, tmp_path):
    @kept_in(tmp_path)
    def fail(x):
        return x.no_such_thing

    if not collects:
        gc.disable()
    try:
        with pytest.raises(numba.TypingError):
            fail(1)
        assert gc.isenabled() == collects
        assert doubling(kept_in(tmp_path))(1) == 2
        assert gc.isenabled() == collects
    finally:
        gc.enable()


def test_a_short_wait_is_not_worth_a_message(compilation, monkeypatch, caplog, tmp_path):
    monkeypatch.setattr(_compile, "SECONDS_UNTIL_MESSAGE", 1e9)
    doubling(kept_in(tmp_path))(1)
    assert compilation.seconds > 0
    assert not caplog.messages


def kept_in(folder):
    """A decorator that keeps kernels in a folder."""

    def decorate(function):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_compile, "cache_folder", lambda _: str(folder))
            return compiled()(function)

    return decorate


@pytest.mark.usefixtures("compilation")
def test_kernels_on_disk_are_not_announced(tmp_path, monkeypatch, caplog):
    assert doubling(kept_in(tmp_path))(3) == 6
    assert caplog.messages == [ONCE]
    # As in another process.
    monkeypatch.setattr(_compile, "compilation", _compile.Compilation())
    assert doubling(kept_in(tmp_path))(3) == 6
    assert caplog.messages == [ONCE]


@pytest.mark.usefixtures("compilation")
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [0.0, 0.7])
def test_a_damaged_file_is_replaced(kind, left, tmp_path):
    assert doubling(kept_in(tmp_path))(3) == 6
    (path,) = tmp_path.rglob(f"*.{kind}")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(left * len(whole))])
    assert doubling(kept_in(tmp_path))(3) == 6
    assert len(path.read_bytes()) > 0.9 * len(whole)
    double = doubling(kept_in(tmp_path))
    assert double(3) == 6
    assert double.stats.cache_hits.total() == 1


@pytest.mark.usefixtures("compilation")
def test_code_for_other_types_is_not_used(tmp_path):
    """Processes that compile a kernel at the same time may mix its files up."""
    double = doubling(kept_in(tmp_path))
    assert (double(3), double(1.5)) == (6, 3.0)
    first, second = sorted(tmp_path.rglob("*.nbc"))
    files = first.read_bytes(), second.read_bytes()
    second.write_bytes(files[0])
    first.write_bytes(files[1])
    for n_hits in (0, 2):
        double = doubling(kept_in(tmp_path))
        assert (double(3), double(1.5)) == (6, 3.0)
        assert double.stats.cache_hits.total() == n_hits


def test_kernels_and_those_of_others_lie_apart(tmp_path, monkeypatch):
    """Also if another thread decorates a function at the same time, and whatever it has set."""
    njit, others = numba.njit, []

    def njit_with_another(**options):
        others.append(njit(cache=True)(next_number))
        return njit(**options)

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "theirs"))
    monkeypatch.setattr(_compile.numba, "njit", njit_with_another)
    double = doubling(kept_in(tmp_path / "ours"))
    assert Path(double._cache.cache_path).is_relative_to(tmp_path / "ours")
    assert Path(others[0]._cache.cache_path).is_relative_to(tmp_path / "theirs")


def test_a_full_disk_stops_nothing(compilation, tmp_path, monkeypatch, caplog):
    double = doubling(kept_in(tmp_path))

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # The index is still written.
    monkeypatch.setattr(IndexDataCacheFile, "_save_data", fail)
    assert (double(3), double(1.5)) == (6, 3.0)
    said = "in every run: no cache can be written to "
    assert [said in message for message in caplog.messages] == [False, True]
    assert os.strerror(errno.ENOSPC) in caplog.messages[1]
    monkeypatch.undo()
    assert doubling(kept_in(tmp_path))(3) == 6
    assert len(list(tmp_path.rglob("*.nbc"))) == 1


def test_where_nothing_can_be_kept_the_message_says_so(monkeypatch):
    monkeypatch.setattr(_compile, "cache_folder", lambda _: None)
    assert "in every run" in _compile.compilation_message()
    assert "NUMBA_CACHE_DIR" in _compile.compilation_message()
