"""How every kernel is compiled: one place for the flags, and for what is kept on disk.

Kernels release the GIL, so that plain Python threads run them side by side:
no pool of numba's own that would spin against BLAS's between two calls.
They follow IEEE arithmetic to the letter, because their error bounds do, and
divide without Python's zero check, so that loops vectorise.

A kernel is compiled when it is first called, and loaded from disk from then on. Compiling all
that a fit needs takes up to half a minute. The logger ``unbag`` reports it, at level INFO.
"""

import gc
import hashlib
import logging
import sys
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
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler import Compiler
from numba.core.sigutils import normalize_signature

from unbag._platform import signals_held

# Folders whose kernels call those of other files, and the folders of these. Elsewhere a kernel uses
# what its own file defines; `tests/test_compile.py` holds it to that.
FOLDERS_OF_KERNELS = {"union": ("union",), "paper": ("union", "paper")}


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
    kernels and constants that it uses have; it would go on using outdated
    code. So the folder is named after the content of all of them. The environment variable
    NUMBA_CACHE_DIR places it. Where nothing can be written it is None, and every process compiles
    its kernels again.
    """
    file = Path(source)
    folders = FOLDERS_OF_KERNELS.get(file.parent.name, ())
    used = [path for name in folders for path in sorted((file.parents[1] / name).glob("*.py"))]
    content = b"".join(path.read_bytes() for path in [Path(__file__), *(used or [file])])
    content += numba.__version__.encode()
    base = settings.CACHE_DIR or platformdirs.user_cache_dir("unbag", appauthor=False)
    folder = Path(base) / "kernels" / hashlib.sha256(content).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        return None


class Compilation:
    """Compiling in this process: how long it has taken, and what was said of it."""

    def __init__(self) -> None:
        # Kernels that are compiled for another one count with it and by themselves.
        self.seconds: float = 0.0
        # Why compiled kernels could not be written to disk; empty while they can.
        self.fault: str = ""
        self._logged: str = ""

    def announce(self) -> None:
        """Log that kernels are being compiled, once, and again if they can no longer be kept."""
        message = compilation_message()
        if message != self._logged and self.seconds >= SECONDS_UNTIL_MESSAGE:
            self._logged = message
            logger.info(message)


compilation: Compilation = Compilation()


def compilation_message() -> str:
    """Return what to say while kernels are compiled."""
    if compilation.fault or cache_folder(__file__) is None:
        return (
            "Compiling inference kernels (up to half a minute, in every run: no cache can be "
            f"written{compilation.fault}; set NUMBA_CACHE_DIR to a folder that can) ..."
        )
    return "Compiling inference kernels (once; up to half a minute) ..."


class KernelCompiler(Compiler):
    """numba's compiler, for kernels of this package only.

    numba calls it when it compiles, not when it loads a kernel from disk. It does so under a lock,
    so that only one thread at a time comes here.
    """

    def compile_extra(self, func: Any) -> Any:
        """Compile a kernel."""
        compilation.announce()
        # The compiler makes millions of objects, and few are garbage. Searching them took an eighth
        # of the time.
        start, collects_garbage = time.perf_counter(), gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            compilation.seconds += time.perf_counter() - start
            if collects_garbage:
                gc.enable()


class KernelFiles(CompileResultCacheImpl):
    """The files of a kernel, in `cache_folder`.

    numba would choose among several folders by settings of the process, which other packages and
    threads share.
    """

    def __init__(self, function: Any) -> None:
        source = function.__code__.co_filename
        self._lineno: int = function.__code__.co_firstlineno
        self._folder: Any = cache_folder(source)
        self._py_file: str = source
        self._locator: Any = self
        self._filename_base: str = self.get_filename_base(
            f"{Path(source).stem}.{function.__qualname__}", getattr(sys, "abiflags", "")
        )

    def get_cache_path(self) -> Any:
        """Return the folder."""
        return self._folder

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        Path(self._folder).mkdir(parents=True, exist_ok=True)

    def get_disambiguator(self) -> str:
        """Return what sets functions with the same name in a file apart."""
        return str(self._lineno)

    def get_source_stamp(self) -> str:
        """Return nothing, since the folder is named after the sources."""
        return ""


class KernelCache(FunctionCache):
    """numba's cache on disk, but kernels are compiled where it is damaged or cannot be written."""

    _impl_class = KernelFiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled kernel, or None if there is none that can be read."""
        try:
            # LLVM asks Python for the code. Without an answer, a call of the kernel would crash.
            with signals_held():
                found = super().load_overload(sig, target_context)
        except Exception:  # A damaged pickle may raise anything.
            return None
        # Processes that write at the same time may have put the code for other types there.
        types = tuple(normalize_signature(sig)[0])
        return found if found is not None and tuple(found.signature.args) == types else None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled kernel, in the place of damaged files; log if that cannot be done."""
        try:
            try:
                super().save_overload(sig, data)
            except Exception:
                # The index is damaged, or only half of this has been written. Without its data
                # files, no index can name one that holds something else.
                for path in Path(self.cache_path).glob(f"{self._impl.filename_base}.*"):
                    path.unlink(missing_ok=True)
                super().save_overload(sig, data)
        except Exception as error:
            # Ctrl-C may have come in the way of the code that is to be written.
            reason = getattr(error, "strerror", None) or error
            compilation.fault = f" to {self.cache_path} ({reason})"
            compilation.announce()


def compiled(**flags: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator that compiles a kernel, and keeps it on disk."""
    # Nobody passes kernels as callbacks to C, for which numba would wrap each of them.
    options: dict[str, Any] = {
        "no_cfunc_wrapper": True,
        "pipeline_class": KernelCompiler,
        **flags,
    }

    def decorate(function: Callable[..., Any]) -> Kernel:
        made: Any = numba.njit(nogil=True, error_model="numpy", **options)(function)
        if cache_folder(function.__code__.co_filename) is not None:
            # numba's own enable_caching makes a cache that fails where files are damaged.
            made._cache = KernelCache(function)
        return made

    return decorate


kernel: Callable[[Callable[..., Any]], Kernel] = compiled()

# For sums that may be taken in any order, as their error bounds allow for: only then
# are they vectorised. Nothing else of `fastmath` is let in.
any_order: Callable[[Callable[..., Any]], Kernel] = compiled(fastmath={"reassoc"})

# For parts of a kernel that are compiled with it, and not by themselves first.
inlined: Callable[[Callable[..., Any]], Kernel] = compiled(inline="always")

# For what is a single instruction of the machine.
intrinsic: Any = numba.extending.intrinsic
