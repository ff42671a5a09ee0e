"""A target that does everything a case must not do, for the test of the harness."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

import numpy as np

BEHAVIOURS = ("passes", "fails", "crashes", "fills memory", "hangs")
FILLED_BYTES = 100 << 20


def drawn_behaviour(rng: np.random.Generator) -> str:
    """Draw what a case does."""
    return BEHAVIOURS[rng.integers(len(BEHAVIOURS))]


def check(rng: np.random.Generator, folder: Path) -> Counter:
    """Do it, after a file was written."""
    behaviour = drawn_behaviour(rng)
    (folder / "input.txt").write_text(behaviour)
    if behaviour == "fails":
        raise KeyError("a fault")
    if behaviour == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if behaviour == "fills memory":
        np.ones(FILLED_BYTES, np.uint8)
    if behaviour == "hangs":
        time.sleep(1000)
    return Counter({behaviour: 1})
