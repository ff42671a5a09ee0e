"""Compiled code on disk belongs to the sources that it was compiled from."""

import ast
import gc
import logging
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numba
import pytest
from numba.core import event
from numba.core.dispatcher import Dispatcher

import unbag
from unbag import _compile
from unbag._compile import FOLDERS_OF_KERNELS, compiled

SOURCES = Path(unbag.__file__).parent
KERNEL_FILES = [
    pytest.param(
        path,
        id=str(path.relative_to(SOURCES)),
        marks=[pytest.mark.torch] if "torch" in path.relative_to(SOURCES).parts else [],
    )
    for path in sorted(SOURCES.rglob("*.py"))
    if "from unbag._compile import" in path.read_text()
]
PRINT_FOLDERS = """
from unbag.estimators.rivals import rank_loss, stick_breaking
from unbag.union import chain, dense
for kernel in (chain.chain, dense.dense, rank_loss.rank_loss, stick_breaking.break_sticks):
    print(kernel._cache.cache_path)
"""


def kernels(path):
    """Compiled functions that a file defines."""
    module = import_module(".".join(["unbag", *path.relative_to(SOURCES).with_suffix("").parts]))
    things = vars(module).values()
    return [
        thing
        for thing in things
        if isinstance(thing, Dispatcher) and thing.py_func.__module__ == module.__name__
    ]


def folders_of_compiled_code(tmp_path, changed):
    """Where two kernels of the core and two of estimators are kept if a file were another."""
    copy = tmp_path / changed.replace("/", "-") / "unbag"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / changed).open("a") as file:
        file.write("# another comment")
    done = subprocess.run(
        [sys.executable, "-c", PRINT_FOLDERS],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(copy.parent), "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    folders = [Path(line) for line in done.stdout.split()]
    assert all(folder.is_relative_to(tmp_path) for folder in folders)
    return [folder.relative_to(tmp_path).parts[:2] for folder in folders]


@pytest.mark.slow  # Compiles kernels in processes of their own.
def test_compiled_code_belongs_to_its_sources(tmp_path):
    """Another state of a file means another folder for those kernels that may use it."""
    chain, dense, rank_loss, stick_breaking = folders_of_compiled_code(tmp_path, "metrics.py")
    assert chain == dense
    assert len({chain, rank_loss, stick_breaking}) == 3
    for changed, same in {
        "union/chain.py": [False, False, True, True],
        "union/policy.py": [False, False, True, True],
        "estimators/rivals/rank_loss.py": [True, True, False, True],
        "_compile.py": [False, False, False, False],
    }.items():
        now = folders_of_compiled_code(tmp_path, changed)
        before = [chain, dense, rank_loss, stick_breaking]
        assert [a == b for a, b in zip(now, before, strict=True)] == same, changed


def test_there_are_kernels():
    assert len(KERNEL_FILES) > 10
    assert {kept.values[0].parent.name for kept in KERNEL_FILES} >= {"union", "rivals"}


@pytest.mark.parametrize("path", KERNEL_FILES)
def test_kernels_use_only_what_their_folder_of_compiled_code_is_named_after(path):
    """Else a change there would leave compiled code of yesterday in use."""
    in_folder = path.parent.name in FOLDERS_OF_KERNELS
    used = {name for kernel in kernels(path) for name in kernel.py_func.__code__.co_names}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            ours = node.level > 0 or node.module.split(".")[0] == "unbag"
            beside = node.level == 1 and in_folder
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
def listener(monkeypatch, caplog):
    """What hears of compiling, as in a new process, and without patience."""
    monkeypatch.setattr(_compile, "SECONDS_UNTIL_MESSAGE", 0.0)
    monkeypatch.setattr(_compile.logger, "disabled", False)
    caplog.set_level(logging.INFO, "unbag")
    event.unregister("numba:compile", _compile.listener)
    with event.install_listener("numba:compile", _compile.CompilationListener()) as listener:
        yield listener
    event.register("numba:compile", _compile.listener)


class GarbageListener(event.Listener):
    """Notes whether garbage is collected when compiling begins."""

    def __init__(self):
        self.is_collected = []

    def on_start(self, event):
        self.is_collected.append(gc.isenabled())

    def on_end(self, event):
        pass


def doubling(module):
    """A function to compile, as if it were of some module."""

    def double(x):
        return 2 * x

    double.__module__ = module
    return numba.njit(double)


@pytest.mark.parametrize("module", ["unbag.union.made_up", "somebody.elses"])
def test_compiling_is_logged_once_and_collects_no_garbage(module, listener, caplog):
    with event.install_listener("numba:compile", GarbageListener()) as garbage:
        double = doubling(module)
        assert (double(2), double(2.5)) == (4, 5.0)
    is_ours = module.startswith("unbag.")
    assert garbage.is_collected == [not is_ours] * 2
    assert gc.isenabled()
    message = "Compiling inference kernels (once; up to half a minute) ..."
    assert caplog.messages == ([message] if is_ours else [])
    assert (listener.seconds > 0) == is_ours


@pytest.mark.usefixtures("listener")
def test_whoever_collects_no_garbage_is_left_alone():
    gc.disable()
    try:
        doubling("unbag.union.made_up")(1)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.usefixtures("listener")
def test_garbage_is_collected_after_an_error_of_the_compiler():
    def fail(x):
        return x.no_such_thing

    fail.__module__ = "unbag.union.made_up"
    with pytest.raises(numba.TypingError):
        numba.njit(fail)(1)
    assert gc.isenabled()
    assert doubling("unbag.union.made_up")(1) == 2
    assert gc.isenabled()


def test_a_short_wait_is_not_worth_a_message(listener, monkeypatch, caplog):
    monkeypatch.setattr(_compile, "SECONDS_UNTIL_MESSAGE", 1e9)
    doubling("unbag.union.made_up")(1)
    assert listener.seconds > 0
    assert not caplog.messages


def test_kernels_on_disk_are_not_announced(listener, tmp_path, monkeypatch, caplog):
    (tmp_path / "made_up.py").write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.setattr(_compile.settings, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(unbag, "__path__", [*unbag.__path__, str(tmp_path)])
    made_up = import_module("unbag.made_up")
    for messages in (["Compiling inference kernels (once; up to half a minute) ..."], []):
        caplog.clear()
        # As in another process.
        listener.has_logged = False
        assert compiled()(made_up.double)(3) == 6
        assert caplog.messages == messages
    del sys.modules["unbag.made_up"], unbag.made_up


def test_where_nothing_can_be_kept_the_message_says_so(monkeypatch):
    monkeypatch.setattr(_compile, "cache_folder", lambda _: None)
    assert "in every run" in _compile.compilation_message()
    assert "NUMBA_CACHE_DIR" in _compile.compilation_message()
