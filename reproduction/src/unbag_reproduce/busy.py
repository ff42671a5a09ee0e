"""How busy a machine is while times are taken: other work slows memory and caches."""

import math
import os
from pathlib import Path
from time import perf_counter

#: Where Linux says how long its cores were busy.
STATISTICS = Path("/proc/stat")


class BusyClock:
    """Counts how many cores of the machine are busy, by whatever work, from when it is made."""

    def __init__(self):
        self.started: float = perf_counter()
        self.busy_before: float = busy_seconds()

    def load(self) -> float | None:
        """Return the mean number of busy cores so far; None where they are not counted."""
        busy = busy_seconds() - self.busy_before
        return None if math.isnan(busy) else round(busy / (perf_counter() - self.started), 1)


def busy_seconds() -> float:
    """Return how long the cores of this machine have been busy, all together; NaN if not known."""
    if not STATISTICS.exists():
        return math.nan
    _, user, nice, system, *_ = STATISTICS.read_text().split(maxsplit=4)
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")
