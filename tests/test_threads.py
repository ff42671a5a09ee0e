"""BLAS's threads stay out of fits, and work that is shared out to processes can be stopped."""

import math
import os
import subprocess
import sys
import time

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from unbag._threads import completed, one_blas_thread

# Each unit is larger than what a pipe holds, so that whoever sends it waits for a reader.
STOPPED = """
import time
from unbag._threads import completed

def wait(unit):
    time.sleep(unit[1])

if __name__ == "__main__":
    units = [(bytes(1_000_000), seconds) for seconds in (0, 1000, 1000, 1000, 1000)]
    for _ in completed(wait, units, 2):
        time.sleep(0.5)
        raise KeyboardInterrupt
"""

MASKS = """
import signal
from functools import partial
from unbag._threads import completed

if __name__ == "__main__":
    blocked = partial(signal.pthread_sigmask, signal.SIG_BLOCK)
    print([signal.SIGINT in mask for _, mask in completed(blocked, [(), ()], 2)])
"""


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_is_found_and_held_to_one_thread():
    """A threadpoolctl that does not know NumPy's BLAS would limit nothing, and say nothing."""
    # As many as on a machine with several cores, wherever this runs.
    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def test_every_unit_comes_with_its_result(capfd):
    assert dict(completed(math.sqrt, range(20), 2)) == {n: math.sqrt(n) for n in range(20)}
    # Processes for which there is no more to do end in silence.
    seconds = [0.0, 0.5, 1.5]
    assert [unit for unit, _ in completed(time.sleep, seconds, 3)] == seconds
    assert capfd.readouterr().err == ""


def test_there_may_be_fewer_units_than_processes():
    assert list(completed(math.sqrt, [4], 3)) == [(4, 2.0)]
    assert list(completed(math.sqrt, [], 2)) == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_of_another_process_is_raised_here(n_jobs):
    with pytest.raises(FileNotFoundError, match="missing"):
        list(completed(os.stat, ["missing"] * 5, n_jobs))


def test_an_error_of_another_process_has_its_traceback():
    with pytest.raises(ValueError, match="math domain") as caught:
        list(completed(math.sqrt, [-1], 2))
    assert "Traceback" in caught.value.__notes__[0]


def test_a_process_that_ends_by_itself_is_an_error():
    with pytest.raises(ChildProcessError, match="was killed"):
        list(completed(os._exit, range(10), 2))


def test_a_stop_does_not_wait_for_what_is_being_sent(tmp_path):
    """Executors of Python 3.11 wait at their end for processes that they have ended."""
    (tmp_path / "program.py").write_text(STOPPED)
    ran = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode != 0
    assert "KeyboardInterrupt" in ran.stderr


@pytest.mark.skipif(os.name != "posix", reason="Windows has no signal masks")
def test_processes_do_not_hear_ctrl_c_from_their_first_moment(tmp_path):
    """In a new process, since the first start of all is the one that differs."""
    (tmp_path / "program.py").write_text(MASKS)
    ran = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ran.stdout == "[True, True]\n", ran.stderr
