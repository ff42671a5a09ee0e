"""Processes that die in the middle of a fit, and such that lack the package."""

import os
import signal
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import unbag.dask
from platforms import posix_only
from toys import make_colours
from unbag import ORLogisticRegression
from unbag.dask import ClusterError

pytestmark = [
    pytest.mark.slow,  # Starts processes that load the package: a minute.
    pytest.mark.filterwarnings("ignore:The fit has not converged"),
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
@pytest.mark.parametrize(
    ("solver", "kind"), [("lbfgs", "delayed"), ("em", "delayed"), ("stochastic", "held here")]
)
def test_a_killed_worker_changes_nothing(solver, kind, processes, tasks_left):
    places = range(6)
    data = [dask.delayed(read_partition)(place) for place in places]
    if kind == "held here":
        data = [read_partition(place) for place in places]
    options = {"solver": solver, "max_iter": 12, "tol": 0, "random_state": 0}
    expected = unbag.dask.fit(ORLogisticRegression(**options), data, processes)
    processes.wait_for_workers(2, timeout=60)
    killed = SimpleNamespace(iteration=None)

    def kill(iteration, log_likelihood):
        if iteration == 4:
            os.kill(next(iter(processes.run(os.getpid).values())), signal.SIGKILL)
            killed.iteration = iteration

    model = ORLogisticRegression(**options, callback=kill)
    unbag.dask.fit(model, data, processes)
    assert killed.iteration == 4
    # EM moves its logits along, and infers them anew where they are lost: that is rounding.
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-12)
    assert model.n_iter_ == expected.n_iter_
    assert not tasks_left(processes)


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
