"""What does the work: the machine, in words, and versions."""

import os
import platform
from importlib.metadata import version
from typing import Any

from unbag._platform import cpu_info

#: Packages whose versions figures may depend on.
PACKAGES = ("unbag", "numpy", "scipy", "scikit-learn", "numba")


def versions() -> dict[str, str]:
    """Return the versions of Python and of `PACKAGES`."""
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def describe_machine() -> dict[str, Any]:
    """Return the processor, its number of cores, and the system that runs on it."""
    return {
        "processor": processor(cpu_info()),
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.machine()}",
    }


def processor(described: str) -> str:
    r"""Return the name of the processor, from the description that Linux has of it.

    Elsewhere that is empty, and Python is asked.

    Examples
    --------
    >>> processor("processor : 0\nmodel name : Fast Processor 9000\n")
    'Fast Processor 9000'
    """
    names = [line.partition(":")[2] for line in described.splitlines() if "model name" in line]
    return (names[0] if names else platform.processor() or platform.machine()).strip()
