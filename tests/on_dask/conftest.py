"""Clusters of threads in this process, and the bags of `out_of_core` in several partitions."""

import time
from itertools import pairwise

import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

from out_of_core.conftest import coloured, write  # noqa: E402, F401


@pytest.fixture(scope="session")
def client():
    """Two workers of one thread each; nobody else's client."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def address():
    """The scheduler of a cluster that nobody uses yet: a busy one may greet a client amiss."""
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        dashboard_address=":0",
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def tasks_left():
    """What a scheduler still knows, once what is on its way has arrived."""

    def call(client, patience=5.0):
        end = time.monotonic() + patience
        while left := client.run_on_scheduler(known_tasks):
            if time.monotonic() > end:
                break
            time.sleep(0.02)
        return left

    return call


def known_tasks(dask_scheduler):
    return sorted(map(str, dask_scheduler.tasks))


def pairs(data, n_partitions=4):
    """The bags and label sets of some data in partitions, cut where it does not suit."""
    cuts = np.linspace(0, len(data.bags), n_partitions + 1).round().astype(int)
    return [(data.bags[i:j], data.sets[i:j]) for i, j in pairwise(cuts.tolist())]


def frame(data, n_partitions=4):
    """The same as a Dask DataFrame, whose partitions end where bags do."""
    import dask.dataframe

    places = {each: place for place, each in enumerate(data.bags.ids.tolist())}
    table = data.table.to_pandas()
    table["place"] = table["bag"].map(places)
    divided = dask.dataframe.from_pandas(table.set_index("place"), npartitions=n_partitions)
    return divided.reset_index(drop=True)


def agree(model, other, atol=1e-6):
    np.testing.assert_allclose(model.coef_, other.coef_, atol=atol)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=atol)
    assert model.classes_.tolist() == other.classes_.tolist()
    assert model.n_iter_ == other.n_iter_
