"""The machine that does the work, in words."""

import os
import platform

from unbag._platform import cpu_info

from .unit import Values


def describe_machine() -> Values:
    """Return the processor, its number of cores, and the system that runs on it."""
    return {
        "processor": processor(cpu_info()),
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.machine()}",
    }


def processor(described: str) -> str:
    r"""Return the name of the processor.

    Parameters
    ----------
    described : str
        What Linux says of its processors; elsewhere nothing, and Python is asked.

    Examples
    --------
    >>> processor("processor : 0\nmodel name : Fast Processor 9000\n")
    'Fast Processor 9000'
    """
    names = [line.partition(":")[2] for line in described.splitlines() if "model name" in line]
    return (names[0] if names else platform.processor() or platform.machine()).strip()
