"""What does the work: the machine, in words, and versions."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

#: Packages whose versions figures may depend on.
PACKAGES = ("unbag", "numpy", "scipy", "scikit-learn", "numba")
CPU_INFO = Path("/proc/cpuinfo")


def versions() -> dict[str, str]:
    """Return the versions of Python and of `PACKAGES`."""
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def describe_machine() -> dict[str, Any]:
    """Return the processor, its number of cores, and the system that runs on it."""
    return {
        "processor": processor(CPU_INFO.read_text(encoding="utf-8") if CPU_INFO.exists() else ""),
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.machine()}",
    }


def processor(cpu_info: str) -> str:
    r"""Return the name of the processor.

    Parameters
    ----------
    cpu_info : str
        What Linux says of its processors; elsewhere nothing, and Python is asked.

    Examples
    --------
    >>> processor("processor : 0\nmodel name : Fast Processor 9000\n")
    'Fast Processor 9000'
    """
    names = [line.partition(":")[2] for line in cpu_info.splitlines() if "model name" in line]
    return (names[0] if names else platform.processor() or platform.machine()).strip()
