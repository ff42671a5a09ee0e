"""The machine that does the work, in words."""

import os
import platform
from pathlib import Path

from .unit import Values

CPU_INFO = Path("/proc/cpuinfo")


def describe_machine() -> Values:
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
