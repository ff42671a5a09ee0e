"""How every kernel is compiled: one place for the flags, and for what is kept on disk.

Kernels release the GIL, so that plain Python threads run them side by side:
no pool of numba's own that would spin against BLAS's between two calls.
They follow IEEE arithmetic to the letter, because their error bounds do, and
divide without Python's zero check, so that loops vectorise.

A kernel is compiled when it is first called, and loaded from disk from then on. Compiling all
that a fit needs takes up to half a minute. Meanwhile the logger ``unbag`` says so, at level INFO.
"""

import gc
import hashlib
import logging
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numba
import numba.extending
import platformdirs
from numba.core import config
from numba.core.event import Listener, register

# Folders whose kernels call each other across files. Elsewhere a kernel uses what its own file
# defines; `tests/test_architecture.py` holds it to that.
FOLDERS_OF_KERNELS = ("union",)


# Its settings are made when it is loaded, so that no type is known of them.
settings: Any = config


# Seconds of compilation after which a message is logged.
SECONDS_UNTIL_MESSAGE = 0.5

logger: logging.Logger = logging.getLogger("unbag")


class Kernel(Protocol):
    """A compiled function; its types are those of the arguments that it is called with."""

    py_func: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:
        """Run the compiled code, which is made at the first call."""
        ...


@cache
def cache_folder(source: str) -> str | None:
    """Return where the compiled kernels of a file are kept, by all that they were compiled from.

    numba's cache asks only whether a kernel's own file has changed, not whether those of the
    kernels and constants that it uses have; it would go on using code that nobody has written any
    more. So the folder is named after the content of all of them. The environment variable
    NUMBA_CACHE_DIR places it. Where nothing can be written it is None, and kernels are compiled
    anew in every process.
    """
    file = Path(source)
    is_shared = file.parent.name in FOLDERS_OF_KERNELS
    used = sorted(file.parent.glob("*.py")) if is_shared else [file]
    content = b"".join(path.read_bytes() for path in [Path(__file__), *used])
    base = settings.CACHE_DIR or platformdirs.user_cache_dir("unbag", appauthor=False)
    folder = Path(base) / "kernels" / hashlib.sha256(content).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        return None


class CompilationListener(Listener):
    """Log once that kernels of this package are being compiled, and pause garbage collection.

    numba calls this when it compiles, not when it loads a kernel from disk. It does so under a
    lock, so that only one thread at a time comes here. `seconds` is the time spent on compiling so
    far.
    """

    def __init__(self) -> None:
        self.seconds: float = 0.0
        self.has_logged: bool = False
        # Modules of the kernels that are being compiled, each called by the one before it.
        self._modules: list[str] = []
        self._start: float = 0.0
        self._collects_garbage: bool = False

    def on_start(self, event: Any) -> None:
        """Note that a kernel, or another one that it calls, begins to be compiled."""
        self._modules.append(event.data["dispatcher"].py_func.__module__)
        if not self._is_ours:
            return
        if len(self._modules) == 1:
            self._start = time.perf_counter()
            # The compiler makes millions of objects, of which few are garbage. Searching them took
            # an eighth of the time.
            self._collects_garbage = gc.isenabled()
            gc.disable()
        if not self.has_logged and self._so_far() > SECONDS_UNTIL_MESSAGE:
            self.has_logged = True
            logger.info(compilation_message())

    def on_end(self, event: Any) -> None:
        """Note that it has been compiled, or that an error or Ctrl-C has stopped that."""
        # Ctrl-C may come before `on_start`.
        if not self._modules:
            return
        if len(self._modules) == 1 and self._is_ours:
            self.seconds = self._so_far()
            if self._collects_garbage:
                gc.enable()
        self._modules.pop()

    @property
    def _is_ours(self) -> bool:
        """Whether the kernel that all others are compiled for is of this package."""
        return self._modules[0].startswith("unbag.")

    def _so_far(self) -> float:
        return self.seconds + time.perf_counter() - self._start


def compilation_message() -> str:
    """Return what to say while kernels are compiled."""
    if cache_folder(__file__) is None:
        return (
            "Compiling inference kernels (up to half a minute, in every run: no cache can be "
            "written; set NUMBA_CACHE_DIR to a folder that can) ..."
        )
    return "Compiling inference kernels (once; up to half a minute) ..."


listener: CompilationListener = CompilationListener()
register("numba:compile", listener)


def compiled(**flags: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator that compiles a kernel, and keeps it on disk."""
    # Nobody passes kernels as callbacks to C, for which numba would wrap each of them.
    options: dict[str, Any] = {"no_cfunc_wrapper": True, **flags}

    def decorate(function: Callable[..., Any]) -> Kernel:
        folder = cache_folder(function.__code__.co_filename)
        # numba looks at this setting when a function is decorated, and only then.
        usual = settings.CACHE_DIR
        settings.CACHE_DIR = folder or usual
        try:
            keep = folder is not None
            return numba.njit(cache=keep, nogil=True, error_model="numpy", **options)(function)
        finally:
            settings.CACHE_DIR = usual

    return decorate


kernel: Callable[[Callable[..., Any]], Kernel] = compiled()

# For sums that may be taken in any order, as their error bounds allow for: only then
# are they vectorised. Nothing else of `fastmath` is let in.
any_order: Callable[[Callable[..., Any]], Kernel] = compiled(fastmath={"reassoc"})

# For parts of a kernel that are compiled with it, and not by themselves first.
inlined: Callable[[Callable[..., Any]], Kernel] = compiled(inline="always")

# For what is a single instruction of the machine.
intrinsic: Any = numba.extending.intrinsic
