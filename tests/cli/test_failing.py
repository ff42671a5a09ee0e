"""How commands end: in one line and a code, with whatever they had begun undone."""

import errno
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from toys import ROLES
from unbag import _files

PROGRAM = (sys.executable, "-m", "unbag.cli")


def fail_with(error):
    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize(
    "error",
    [IndexError("index 3"), KeyError("coef_"), UnboundLocalError("x"), TypeError("no len()"),
     AttributeError("no shape"), RecursionError("too deep"), AssertionError(), EOFError("cut")],
    ids=repr,
)  # fmt: skip
def test_a_fault_of_ours_is_one_kind_line(error, run, monkeypatch):
    monkeypatch.setattr("unbag.cli.console.messages.result", fail_with(error))
    code, out, errors = run("data", "formats")
    assert (code, out) == (3, "")
    assert len(errors.splitlines()) == 1
    name = type(error).__name__
    assert errors.startswith(f"unbag: error: internal error in data ({name}: ")
    assert "--debug" in errors


def test_a_module_that_does_not_load_is_one_kind_line(run, monkeypatch):
    monkeypatch.setattr("unbag.cli.app.command_line", fail_with(ImportError("no library")))
    code, _, errors = run("data", "formats")
    assert code == 3
    assert errors.startswith("unbag: error: internal error in starting (ImportErr")


def test_a_command_that_does_not_load_is_one_kind_line(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "unbag.cli.data", None)
    code, _, errors = run("data", "formats")
    assert code == 3
    assert errors.startswith("unbag: error: internal error in starting (ModuleNotFoundErr")
    assert len(errors.splitlines()) == 1


@pytest.mark.parametrize("place", [0, 2])
def test_debug_shows_the_trace_wherever_it_stands(place, run, monkeypatch):
    monkeypatch.setattr("unbag.cli.console.messages.result", fail_with(KeyError("coef_")))
    arguments = ["data", "formats"]
    arguments.insert(place, "--debug")
    code, _, errors = run(*arguments)
    assert code == 3
    assert "Traceback" in errors
    assert "in fail" in errors
    code, _, errors = run("data", "formats")
    assert "Traceback" not in errors


@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_logged_is_a_line_on_stderr(as_json, run, monkeypatch):
    """Such as that kernels are being compiled; but nothing where only results are wanted."""
    logger = logging.getLogger("unbag")
    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(
        "unbag.cli.console.messages.result", lambda *_: logger.info("Compiling ...")
    )
    code, out, errors = run("data", "formats", *(["--json"] if as_json else []))
    assert code == 0
    assert "Compiling" not in out
    assert errors == ("" if as_json else "Compiling ...\n")
    assert not logger.handlers


def test_errors_of_the_system_come_without_their_number(run, monkeypatch):
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "m.unbag")
    monkeypatch.setattr("unbag.cli.console.messages.result", fail_with(error))
    code, _, errors = run("data", "formats")
    assert (code, errors) == (1, "unbag: error: m.unbag: No space left on device.\n")


@pytest.fixture
def interruptible():
    """Hear SIGINT, which shells let programs in the background ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("interruptible")
def test_a_signal_stops_a_command(number, run, monkeypatch):
    monkeypatch.setattr("unbag.cli.console.messages.result", lambda *_: signal.raise_signal(number))
    before = signal.getsignal(number)
    code, _, errors = run("data", "formats")
    assert code == 128 + number, errors
    assert errors == "unbag: stopped. No file is left half-written.\n"
    assert signal.getsignal(number) is before


@pytest.fixture
def losing_a_signal(monkeypatch):
    """Let a signal come in a finaliser, whose exceptions are printed and forgotten."""

    class Finalised:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def lose(*_):
        Finalised()
        time.sleep(10)

    monkeypatch.setattr("unbag.cli.console.messages.result", lose)


@pytest.mark.usefixtures("losing_a_signal")
def test_a_signal_is_not_lost_where_nothing_can_be_raised(run):
    """The signal comes again."""
    code, _, errors = run("data", "formats")
    assert code == 143
    assert "Traceback" not in errors


@pytest.mark.usefixtures("losing_a_signal")
def test_a_signal_is_not_lost_where_it_comes_again_too_soon(run, monkeypatch):
    timers = []

    class HastyTimer(threading.Timer):
        """The first one has no patience: its signal meets the finaliser's exception in flight."""

        def start(self):
            timers.append(self)
            self.function(*self.args) if len(timers) == 1 else super().start()

    monkeypatch.setattr("threading.Timer", HastyTimer)
    code, _, errors = run("data", "formats")
    assert (code, len(timers)) == (143, 2)
    assert "Traceback" not in errors


def test_a_signal_that_has_become_another_error(run, monkeypatch):
    """As in modules in C, which say that they cannot be imported whatever was raised."""

    def turn(*_):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ImportError("numpy._core.multiarray failed to import") from None

    monkeypatch.setattr("unbag.cli.console.messages.result", turn)
    code, _, errors = run("data", "formats")
    assert (code, errors) == (143, "unbag: stopped. No file is left half-written.\n")


STOPPED_IN_IMPORTS = """
import signal, sys
class Stop:
    def find_spec(self, name, *_):
        if name == "numpy":
            signal.raise_signal(int(sys.argv[-1]))
sys.meta_path.insert(0, Stop())
signal.signal(signal.SIGINT, signal.default_int_handler)
from unbag.cli import main
assert "numpy" not in sys.modules
sys.argv[1:] = ["data", "formats", sys.argv[-1]]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_start(number):
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_IN_IMPORTS, str(int(number))],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (128 + number, "unbag: stopped.\n")


def test_a_reader_that_has_gone_is_no_error():
    process = subprocess.Popen(
        [*PROGRAM, "data", "formats"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), errors) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk is always full here")
def test_output_that_cannot_be_printed_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROGRAM, "data", "formats"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    said = "unbag: error: standard output: No space left on device.\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_results_for_machines_stand_alone(words, tmp_path):
    done = subprocess.run(
        [*PROGRAM, "compare", words, *ROLES[:4], "--quick", "--jobs", "1", "--methods",
         "dummy-bags", "-o", tmp_path / "results", "--json"],
        capture_output=True, text=True, env={**os.environ, "FORCE_COLOR": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["compare"]


@pytest.mark.parametrize("jobs", ["0", "many"])
def test_a_number_of_processes_that_is_none(jobs, run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, errors = run("compare", words, *ROLES[:4], "--jobs", jobs)
    assert code in (1, 2)
    assert "jobs" in errors
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("output", ["taken", "taken/below"])
@pytest.mark.parametrize("command", [("compare", "words.csv", *ROLES[:4], "--quick"), ("demo",)])
def test_a_file_where_a_folder_is_needed(command, output, run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file")
    code, _, errors = run(*command, "-o", output)
    assert code == 1
    assert errors.splitlines()[-1] == (
        "unbag: error: taken is a file, but a folder is needed: choose another."
    )
    assert (tmp_path / "taken").read_text() == "a file"


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.mkdir", fail_with(PermissionError(13, "Permission denied")))
    with pytest.raises(_files.DataError, match="results cannot be made: Permission denied"):
        _files.make_folder(tmp_path / "results")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fit", "--nonsense"), "No such option: --nonsense"),
        (("fti",), "No such command 'fti'. Did you mean 'fit'? See `unbag --help`."),
        (("fit",), "Missing argument 'table'. See `unbag fit --help`."),
        (
            ("fit", "x.csv", "-o", "m", "--model", "tree"),
            "'tree' is not one of 'linear', 'network'",
        ),
        (("data", "convert"), "Missing argument 'source'. See `unbag data convert --help`."),
        (("--nonsense",), "See `unbag --help`."),
    ],
)
def test_words_that_are_not_understood_are_one_plain_line(words, message, run):
    code, out, errors = run(*words)
    assert (code, out) == (2, "")
    assert errors.startswith("unbag: error: ")
    assert errors.count("\n") == 1
    assert message in errors


def test_a_command_without_arguments_shows_its_help(run):
    code, out, errors = run()
    assert (code, errors) == (2, "")
    assert "Usage: unbag" in out


LONG = "a_folder_whose_name_is_longer_than_the_terminal_is_wide/and_a_file_in_it_with_a_long_name"


@pytest.mark.parametrize(
    "arguments",
    [("fit", f"{LONG}.csv", "-o", "m.unbag"),
     ("report", "m.unbag", "t.csv", "-o", "r.html", "--media-root", LONG)],
)  # fmt: skip
def test_a_terminal_breaks_no_path_in_two(arguments, tmp_path):
    pty = pytest.importorskip("pty", reason="there are no terminals to open here")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60", "TERM": "xterm"}
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path,
        env=environment,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:
        pass  # How Linux says that the other end was closed.
    finally:
        os.close(ours)
    assert process.wait() in (1, 2)
    assert LONG in shown.decode()
    assert "does not exist" in shown.decode()
