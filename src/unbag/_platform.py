"""Functions that do what not every system can, and something else where it cannot.

Linux and macOS have file locks, signal masks, folders that can be opened, and more; Windows has
none of them. Each function here says what is lost where the system cannot do what it asks for.

Only modules of Python are imported, because the command line needs this one before it has
loaded any other.
"""

import _thread
import errno
import os
import platform
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:
    fcntl = None

#: Whether files can be locked for as long as they are open, and renamed meanwhile. On Windows they
#: can be neither.
IS_POSIX: bool = fcntl is not None
#: Whether files can be opened by their name in a folder that is open itself.
OPENS_IN_FOLDERS: bool = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
#: What asks a command to stop: Ctrl-C, the end of a session, and Ctrl-Break on Windows.
STOP_SIGNALS: tuple[int, ...] = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)
)
#: How long to wait before a file is renamed once more, in seconds: on Windows, a virus scanner may
#: have a new file open for a moment.
WAITS = (0.01, 0.05, 0.2, 0.5, 1.0)

CPU_INFO = Path("/proc/cpuinfo")
#: Where Linux says how much memory a group of processes may have; "max" where there is no limit.
MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
#: Holds temporary files of any size; elsewhere they may lie in the memory.
LARGE_TEMPORARY = Path("/var/tmp")

# Windows translates line ends in what is opened without it.
_BINARY: int = getattr(os, "O_BINARY", 0)


# Files.


def create_locked(path: Path, permissions: int) -> int:
    """Return the descriptor of a new file for writing, locked for as long as it is open.

    Without locks it is only made.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    while True:
        descriptor = os.open(path, flags, permissions)
        if fcntl is None:
            return descriptor
        # Where a file system knows no locks, none of its files is ever found to be abandoned.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        # Another process has taken it for an abandoned one before it was locked.
        os.close(descriptor)


def remove_abandoned(path: Path) -> None:
    """Remove a file that `create_locked` made, if its writer is gone.

    A folder, a file of another user, and one that is locked by its writer stay. Without locks
    everything stays, since it may still be written to.
    """
    if fcntl is None:
        return
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
        finally:
            os.close(descriptor)


def rename_open(file: BinaryIO, path: Path, target: Path) -> None:
    """Give an open file the name of another, which it replaces.

    It keeps its lock until it is closed. Windows renames no open file, so there it is closed
    first; and it replaces no file that is open in another program, which is a PermissionError.
    """
    if IS_POSIX:
        os.replace(path, target)
        return
    file.close()
    for wait in WAITS:
        with suppress(PermissionError):
            os.replace(path, target)
            return
        time.sleep(wait)
    os.replace(path, target)


def is_kept_open(path: Path) -> bool:
    """Return whether another program has opened a file so that it cannot be replaced.

    That happens on Windows only, and there not all programs can be found out: those that would
    share the writing, but not the name, are noticed when the file is replaced.
    """
    if IS_POSIX:
        return False
    try:
        os.close(os.open(path, os.O_RDWR | _BINARY))
    except PermissionError:
        return True
    return False


def sync_folder(folder: Path) -> None:
    """Put the names of the files in a folder on disk, where the system can be asked for that.

    Windows cannot: after a power cut, the old file may be back.
    """
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lock a folder for this process; the lock ends with it, however it ends.

    If another process has locked it, a BlockingIOError is raised at once. Without locks nothing is
    locked: take care not to start the same work twice.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_file(descriptor: int) -> Iterator[None]:
    """Lock an open file for this process, waiting until another one has done.

    The lock ends with the block, or with the process. Where a file system knows no locks, and on
    Windows, nothing is locked.
    """
    if fcntl is None:
        yield
        return
    is_locked = False
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        is_locked = True
    try:
        yield
    finally:
        if is_locked:
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def open_to_append(path: Path) -> int:
    """Return the descriptor of a file that is read, and written to at its end; a new one is made.

    Programs that this one starts do not inherit it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | _BINARY | getattr(os, "O_NOFOLLOW", 0)
    return os.open(path, flags, 0o666)


def open_below(root: str, path: str) -> int:
    """Return the descriptor of a file, opened step by step from a folder, following no link.

    Links were followed when the path was found to be below the folder; one that is there now was
    put there since, and may lead anywhere. A pipe without a writer is opened without waiting.

    Where folders cannot be opened, the path is looked at just before the file is opened. Then a
    link that is put there between the two is followed.
    """
    if not OPENS_IN_FOLDERS:
        return _open_plain(path)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    opened = os.open(root, flags | os.O_DIRECTORY)
    for part in Path(path).relative_to(root).parts:
        folder = opened
        try:
            opened = os.open(part, flags, dir_fd=folder)
        finally:
            os.close(folder)
    return opened


def _open_plain(path: str) -> int:
    """Open a regular file whose path has no links."""
    if os.path.realpath(path) != path:
        raise OSError(errno.ELOOP, "symbolic links have been put there", path)
    # Opening a pipe would wait for someone to write to it.
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.open(path, os.O_RDONLY | _BINARY)


def is_elsewhere(root: str, path: str, paths: Any = os.path) -> bool:
    r"""Return whether a path leads to a device, or to another machine than that of a folder.

    Only Windows has such paths. To look whether a file is there would already log in to that
    machine, so the name has to do. `paths` is the module that knows about paths.
    """
    drive, own = (paths.normcase(paths.splitdrive(each)[0]) for each in (path, root))
    return drive.startswith(2 * "\\") and drive != own


def temporary_folder() -> Path:
    """Return where large temporary files may lie; Windows has one folder for all of them."""
    has_large = os.access(LARGE_TEMPORARY, os.W_OK)
    return LARGE_TEMPORARY if has_large else Path(tempfile.gettempdir())


# Signals and pipes.


def send_soon(number: int) -> None:
    """Let the main thread answer a signal, when it has gone on for a moment.

    Where a thread cannot be sent a signal, what the main thread waits for is not interrupted: it
    answers afterwards.
    """
    main_thread: Any = threading.main_thread().ident
    send: Any = _thread.interrupt_main
    if hasattr(signal, "pthread_kill"):
        send = partial(signal.pthread_kill, main_thread)
    threading.Timer(0.01, send, (number,)).start()


@contextmanager
def signals_held() -> Iterator[None]:
    """Answer Ctrl-C and SIGTERM when the block ends, which must be soon.

    Where C calls Python, an exception that answers a signal is lost, and with it what Python would
    have given to C.
    """
    # No other thread answers signals.
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {each: signal.getsignal(each) for each in STOP_SIGNALS if is_main}
    received: list[int] = []
    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
        for number in received[:1]:
            signal.raise_signal(number)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, from their first moment.

    A terminal sends it to all of them, and only this one should answer. It does so when the block
    ends, if it was sent meanwhile; in what was started, the signal stays blocked. Without signal
    masks nothing is blocked: processes must call `ignore_interrupts` when they have started, and
    Ctrl-C before that ends them with a trace.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The first process that is started also starts this one, which would unblock the signal.
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_interrupts() -> None:
    """Let Ctrl-C pass by this process, which another one started and will end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def is_broken_pipe(error: BaseException | None) -> bool:
    """Return whether an error says that the reader of the output is gone.

    Windows calls that an invalid argument, as it does other things; no file is named with it.
    """
    if IS_POSIX or isinstance(error, BrokenPipeError):
        return isinstance(error, BrokenPipeError)
    return isinstance(error, OSError) and error.errno == errno.EINVAL and error.filename is None


def replace_closed_streams() -> None:
    """Discard what is printed where standard output or error is closed, as ``>&-`` does."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def discard_output() -> None:
    """Discard what is still to be printed, which the interpreter would try again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_all_characters(stream: Any) -> None:
    r"""Let a stream write ``\u03b2`` for a character that its encoding lacks, rather than fail.

    Windows has such encodings wherever output goes to a file or to another program.
    """
    if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")


# The machine.


def total_memory() -> int | None:
    """Return the bytes of memory that this process may use; None where it is not known."""
    limits = []
    with suppress(ValueError, OSError, AttributeError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in MEMORY_LIMITS:
        with suppress(ValueError, OSError):
            limits.append(int(file.read_text(encoding="ascii")))
    return min(limits, default=None)


def limit_memory(n_bytes: int) -> None:
    """Let this process take no more than so many bytes, if the system has such limits."""
    with suppress(ImportError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = n_bytes if hard == resource.RLIM_INFINITY else min(n_bytes, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def processor() -> str:
    """Return the name of the processor, from the description that Linux has of it.

    Elsewhere Python is asked.
    """
    with suppress(OSError):
        for line in CPU_INFO.read_text(encoding="utf-8").splitlines():
            if "model name" in line:
                return line.partition(":")[2].strip()
    return (platform.processor() or platform.machine()).strip()


def c_function(name: str) -> Callable[..., Any] | None:
    """Return a function of the C library; None where there is none, or no such library."""
    import ctypes

    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):
        return None
