"""The surroundings that tests and recordings run in, whatever machine they run on.

Width and colours of the terminal, time zone, language and the settings of other tools change what
commands print. Nothing of them may decide whether a test passes. Nor may the number of cores: tests
say how many threads or processes they want, and have one by default, as another test runs on each
of the other cores.
"""

import logging
import os
import time

FIXED = {
    "COLUMNS": "100", "LINES": "40", "TERMINAL_WIDTH": "100", "TERM": "dumb", "NO_COLOR": "1",
    "TZ": "UTC", "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", "LANGUAGE": "en", "MPLBACKEND": "agg",
    "NUMBA_NUM_THREADS": "1",
}  # fmt: skip
# By these a shell, a terminal or a CI service asks for colours, or for other behaviour.
REMOVED = (
    "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS",
    "PYTHONWARNINGS", "TTY_COMPATIBLE", "TTY_INTERACTIVE",
)  # fmt: skip


def same_everywhere() -> None:
    """Fix the environment of this process and of those that it starts.

    To be called before anything else is loaded: some libraries look at it only then.
    """
    os.environ.update(FIXED)
    for name in REMOVED:
        os.environ.pop(name, None)
    if hasattr(time, "tzset"):
        time.tzset()
    # Whether kernels have to be compiled depends on what ran before.
    logging.getLogger("unbag").disabled = True
