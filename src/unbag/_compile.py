"""How every kernel is compiled: one place for the flags, and for what is kept on disk.

Kernels release the GIL, so that plain Python threads run them side by side:
no pool of numba's own that would spin against BLAS's between two calls.
They follow IEEE arithmetic to the letter, because their error bounds do, and
divide without Python's zero check, so that loops vectorise.
"""

import hashlib
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numba
import numba.extending
import platformdirs
from numba.core import config

# Folders whose kernels call each other across files. Elsewhere a kernel uses what its own file
# defines; `tests/test_architecture.py` holds it to that.
FOLDERS_OF_KERNELS = ("union",)


# Its settings are made when it is loaded, so that no type is known of them.
settings: Any = config


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
    more. So the folder is named after the content of all of them.

    Parameters
    ----------
    source : str
        The file that defines the kernels.

    Returns
    -------
    str or None
        None where nothing can be written: kernels are then compiled anew in every process. The
        environment variable NUMBA_CACHE_DIR places the folder.
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


def compiled(**flags: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator that compiles a kernel, and keeps it on disk."""

    def decorate(function: Callable[..., Any]) -> Kernel:
        folder = cache_folder(function.__code__.co_filename)
        # numba looks at this setting when a function is decorated, and only then.
        usual = settings.CACHE_DIR
        settings.CACHE_DIR = folder or usual
        try:
            keep = folder is not None
            return numba.njit(cache=keep, nogil=True, error_model="numpy", **flags)(function)
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
