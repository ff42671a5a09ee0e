"""How busy the machine is, for times that pages print."""

from time import perf_counter

import pytest

from unbag_reproduce import busy
from unbag_reproduce.busy import STATISTICS, BusyClock


@pytest.mark.skipif(not STATISTICS.exists(), reason="only Linux counts")
def test_work_of_this_process_is_seen():
    clock = BusyClock()
    end = perf_counter() + 1.0
    while perf_counter() < end:
        pass
    load = clock.load()
    assert load is not None
    assert load > 0.3


def test_where_nobody_counts_nothing_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(busy, "STATISTICS", tmp_path / "stat")
    assert BusyClock().load() is None
