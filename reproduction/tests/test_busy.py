"""How busy the machine is, for times that pages print."""

import os

import pytest

from unbag_reproduce import busy
from unbag_reproduce.busy import BusyClock


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="clock ticks of POSIX")
def test_busy_cores_are_counted_while_the_clock_runs(tmp_path, monkeypatch):
    """Two seconds of it, in which user, nice and system took three; idle time does not count."""
    ticks = os.sysconf("SC_CLK_TCK")
    statistics = tmp_path / "stat"
    monkeypatch.setattr(busy, "STATISTICS", statistics)
    monkeypatch.setattr(busy, "perf_counter", lambda: 10.0)
    statistics.write_text(f"cpu  {5 * ticks} {ticks} {ticks} {99 * ticks} 0 0\ncpu0 1 2 3\n")
    clock = BusyClock()
    monkeypatch.setattr(busy, "perf_counter", lambda: 12.0)
    statistics.write_text(f"cpu  {6 * ticks} {2 * ticks} {2 * ticks} {150 * ticks} 0 0\ncpu0 1\n")
    assert clock.load() == 1.5


def test_where_nobody_counts_nothing_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(busy, "STATISTICS", tmp_path / "stat")
    assert BusyClock().load() is None
