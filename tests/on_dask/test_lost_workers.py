"""Processes that die in the middle of a fit, and such that lack the package."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Queue
from threading import Thread
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster
from pyarrow import parquet

import unbag.dask
from platforms import posix_only
from toys import make_colours
from unbag import ORLogisticRegression
from unbag.dask.clusters import ClusterError, LostWorkersWarning

pytestmark = [
    pytest.mark.slow,  # Starts processes that load the package: two minutes.
    pytest.mark.filterwarnings("ignore:The fit has not converged"),
    # Where a worker is back before somebody has looked, there is none.
    pytest.mark.filterwarnings("ignore::unbag.dask.LostWorkersWarning"),
]


def read_partition(place):
    bags, y = make_colours(np.random.default_rng(place), n_bags=40, spread=1.2)
    return bags, y


@pytest.fixture(scope="module")
def processes():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@posix_only
@pytest.mark.parametrize("kind", ["delayed", "held here"])
def test_a_killed_worker_changes_nothing(kind, processes, tasks_left):
    places = range(6)
    data = [dask.delayed(read_partition)(place) for place in places]
    if kind == "held here":
        data = [read_partition(place) for place in places]
    options = {"max_iter": 12, "tol": 0}
    expected = unbag.dask.fit(ORLogisticRegression(**options), data, processes)
    processes.wait_for_workers(2, timeout=60)
    killed = SimpleNamespace(iteration=None)

    def kill(progress):
        if len(progress.history) == 4:
            os.kill(next(iter(processes.run(os.getpid).values())), signal.SIGKILL)
            killed.iteration = 4

    model = ORLogisticRegression(**options)
    unbag.dask.fit(model, data, processes, watch=kill)
    assert killed.iteration == 4
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.n_iter_ == expected.n_iter_
    assert not tasks_left(processes)


@pytest.fixture
def mortal(request):
    """A client whose workers may all be killed: one or two, which nannies start again."""
    with (
        LocalCluster(
            n_workers=request.param, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(request.param, timeout=60)
        yield client


def within(seconds, call, *given):
    """Return what a call gives; what takes longer fails, where it would hang."""
    found = Queue()

    def answer():
        try:
            found.put((call(*given), None))
        except Exception as error:
            found.put((None, error))

    Thread(target=answer, daemon=True).start()
    result, error = found.get(timeout=seconds)
    if error is not None:
        raise error
    return result


def kill_all(client):
    for number in client.run(os.getpid).values():
        os.kill(number, signal.SIGKILL)


@posix_only
@pytest.mark.parametrize(
    ("mortal", "kind"), [(1, "held here"), (2, "delayed"), (1, "set")], indirect=["mortal"]
)
def test_a_fit_survives_the_loss_of_all_workers(kind, mortal, tasks_left, coloured, write):
    """Tasks that were tied to the workers that there were waited for ever."""
    data = [read_partition(place) for place in range(6)]
    if kind == "delayed":
        data = [dask.delayed(read_partition)(place) for place in range(6)]
    if kind == "set":
        data = write(coloured(n_bags=200).table)
    options = {"max_iter": 12, "tol": 0}
    expected = unbag.dask.fit(ORLogisticRegression(**options), data, mortal)
    killed = []

    def kill(progress):
        if len(progress.history) == 4:
            kill_all(mortal)
            killed.append(4)

    model = ORLogisticRegression(**options)
    within(90, partial(unbag.dask.fit, model, data, mortal, watch=kill))
    assert killed == [4]
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.history_, expected.history_)
    assert not tasks_left(mortal)


def slow_partition(place):
    time.sleep(1)
    return read_partition(place)


@posix_only
@pytest.mark.parametrize("mortal", [2], indirect=True)
def test_annotate_survives_the_loss_of_all_workers(mortal, tmp_path):
    model = ORLogisticRegression(max_iter=5).fit(*read_partition(0))
    data = [dask.delayed(slow_partition)(place) for place in range(4)]
    unbag.dask.annotate(model, data, tmp_path / "expected", mortal)

    def kill_soon():
        time.sleep(1.5)
        kill_all(mortal)

    thread = Thread(target=kill_soon)
    thread.start()
    within(90, unbag.dask.annotate, model, data, tmp_path / "found", mortal)
    thread.join()
    names = sorted(each.name for each in (tmp_path / "found").iterdir())
    assert names == [f"part-{place:05}.parquet" for place in range(4)]
    for name in names:
        found, expected = (
            parquet.read_table(tmp_path / each / name) for each in ("found", "expected")
        )
        assert found.equals(expected)


def lose_for_good(client):
    """End all workers of a cluster, and their nannies."""
    client.cluster.scale(0)


@pytest.mark.parametrize("work", ["fit", "annotate"])
def test_workers_that_never_come_back_are_an_error(work, monkeypatch, tmp_path, tasks_left):
    monkeypatch.setattr("unbag.dask.clusters.WORKER_TIMEOUT", 2)
    data = [dask.delayed(slow_partition)(place) for place in range(4)]
    model = ORLogisticRegression(max_iter=5).fit(*read_partition(0))
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        thread = Thread(target=lambda: (time.sleep(1.5), lose_for_good(client)))
        thread.start()
        call = unbag.dask.fit, ORLogisticRegression(), data, client
        if work == "annotate":
            call = unbag.dask.annotate, model, data, tmp_path / "found", client
        with (
            pytest.raises(ClusterError, match="and no new one came within 2 s"),
            pytest.warns(LostWorkersWarning, match="waiting up to 2 seconds for new ones") as said,
        ):
            within(60, *call)
        assert {each.filename for each in said} == {__file__}
        thread.join()
        assert not tasks_left(client)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def alone():
    """A client, and the processes of its two workers, which no nannies start again."""
    command = [sys.executable, "-m", "dask", "worker", "--no-nanny", "--no-dashboard"]
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        address = cluster.scheduler_address
        workers = [subprocess.Popen([*command, "--nthreads", "1", address]) for _ in range(2)]
        try:
            client.wait_for_workers(2, timeout=60)
            yield client, workers
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def test_what_runs_or_begins_without_workers_fails_within_a_minute(alone, tmp_path, tasks_left):
    """With nothing set for a test."""
    client, workers = alone
    data = [dask.delayed(slow_partition)(place) for place in range(20)]
    model = ORLogisticRegression(max_iter=5).fit(*read_partition(0))

    def seconds(match, work, *given):
        with pytest.raises(ClusterError, match=match):
            work(*given)
        return time.monotonic() - killed

    lost, none = "has lost all its workers, and no new one", "has no workers, and none started"
    fit = unbag.dask.fit, ORLogisticRegression(), data, client
    with ThreadPoolExecutor(4) as pool:
        running = [
            pool.submit(seconds, lost, *fit),
            pool.submit(seconds, lost, unbag.dask.annotate, model, data, tmp_path / "a", client),
        ]
        time.sleep(3)
        killed = time.monotonic()
        for worker in workers:
            worker.kill()
        while client.nthreads():
            time.sleep(0.1)
        running += [
            pool.submit(seconds, none, *fit),
            pool.submit(seconds, none, unbag.dask.annotate, model, data, tmp_path / "b", client),
        ]
        assert max(each.result(timeout=120) for each in running) < 60
    assert not tasks_left(client)
    assert not list(tmp_path.iterdir())


@posix_only
@pytest.mark.parametrize("mortal", [1], indirect=True)
def test_data_that_only_a_lost_worker_had_are_an_error(mortal):
    data = mortal.scatter([read_partition(place) for place in range(3)])

    def kill(progress):
        if len(progress.history) == 3:
            kill_all(mortal)

    model = ORLogisticRegression(tol=0, max_iter=9)
    with pytest.raises(ClusterError, match="data that only a lost worker had"):
        within(90, partial(unbag.dask.fit, model, data, mortal, watch=kill))


def test_processes_without_the_package_are_named():
    hidden = "import sys; sys.modules['unbag'] = None"
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", preload=[hidden]
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(ClusterError, match=r"Worker tcp://.* does not have unbag"),
    ):
        unbag.dask.fit(ORLogisticRegression(), [read_partition(0)], client)
