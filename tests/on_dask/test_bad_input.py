"""What cannot be fitted on a cluster is refused in words that name partition, bag or worker."""

import gc
import re

import dask
import numpy as np
import pandas
import pyarrow as pa
import pytest
from distributed import Client, Future, LocalCluster

import unbag.dask
import unbag.out_of_core
from unbag import Bags, LabelSets, ORLogisticRegression, kernel_pipeline
from unbag.dask.clusters import ClusterError, opened
from unbag.paper import SIM
from unbag.tables import DataError, Roles

from .conftest import frame, pairs


def refused(data, client, message, error=DataError, **options):
    model = ORLogisticRegression(max_iter=2)
    with pytest.raises(error, match=message):
        unbag.dask.fit(model, data, client, **options)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere"])
def test_a_scheduler_that_cannot_be_reached_is_named(address, coloured, monkeypatch):
    monkeypatch.setattr("unbag.dask.clusters.SCHEDULER_TIMEOUT", 0.5)
    given = pairs(coloured(n_bags=8))
    refused(given, address, f"No scheduler answered at {address} within 0.5 s", ClusterError)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "bad://x:1", ""])
def test_a_client_that_cannot_connect_is_closed(address, monkeypatch):
    """What is left to the collector of garbage may wait for a lock that never opens."""
    monkeypatch.setattr("unbag.dask.clusters.SCHEDULER_TIMEOUT", 0.1)
    with pytest.raises(ClusterError, match="No scheduler answered"):
        opened(address)
    clients = [each for each in gc.get_objects() if issubclass(type(each), Client)]
    assert all(each.status in ("running", "closed") for each in clients)


def test_a_client_must_be_one_that_runs(coloured, address):
    given = pairs(coloured(n_bags=8))
    closed = Client(address, set_as_default=False)
    closed.close()
    refused(given, closed, "The client is closed", ClusterError)
    refused(given, 3, "address of a scheduler", TypeError)


def test_a_cluster_without_workers_is_refused(coloured, monkeypatch):
    monkeypatch.setattr("unbag.dask.clusters.WORKER_TIMEOUT", 0.2)
    given = pairs(coloured(n_bags=8))
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        refused(given, client, "has no workers, and none started within 0.2 s", ClusterError)


def test_workers_of_another_version_are_named(coloured, client, monkeypatch):
    worker = next(iter(client.scheduler_info()["workers"]))
    monkeypatch.setattr("unbag.dask.clusters.__version__", "9.9")
    message = f"Worker {re.escape(worker)} has unbag {unbag.__version__}, but this machine has 9.9"
    refused(pairs(coloured(n_bags=8)), client, message, ClusterError)


def test_workers_without_the_package_are_named(coloured, client, monkeypatch):
    missing = ModuleNotFoundError("No module named 'unbag'")
    monkeypatch.setattr(client, "run", lambda *given, **options: {"tcp://there:1": missing})
    message = "Worker tcp://there:1 does not have unbag .*: install version"
    refused(pairs(coloured(n_bags=8)), client, message, ClusterError)


def test_tasks_that_somebody_cancels_end_the_fit(coloured, client, tasks_left):
    def cancel(progress):
        client.cancel([Future(key, client) for key in list(client.futures)], force=True)

    given = pairs(coloured(n_bags=40))
    refused(given, client, "tasks were cancelled", ClusterError, watch=cancel)
    assert not tasks_left(client)


@pytest.mark.parametrize("model", [SIM(), kernel_pipeline(ORLogisticRegression()), "a model"])
def test_other_models_are_refused(model, coloured, client):
    with pytest.raises(DataError, match="cannot be fitted on a cluster"):
        unbag.dask.fit(model, pairs(coloured(n_bags=8)), client)


def test_data_without_partitions_are_refused(coloured, client, tmp_path):
    data = coloured(n_bags=8)
    refused(data.table.to_pandas(), client, "expected a Dask DataFrame .*, got DataFrame")
    refused(data.bags, client, "expected a Dask DataFrame .*, got Bags")
    refused([], client, "the list of pairs is empty")
    refused((data.bags, data.sets), client, "Partition 0: expected a pair of Bags and labels")
    refused([(data.bags.X, data.sets)], client, "Partition 0: expected a pair of Bags and labels")
    refused([(data.bags, data.sets[1:])], client, "it has 8 bags but 7 label sets")
    refused([(data.bags[:0], [])], client, "all partitions are empty")
    divided = frame(data)
    refused(divided[divided["u"] > 1e9], client, "all partitions .* are empty")
    refused(tmp_path / "nowhere", client, "nowhere")


def test_partitions_have_the_same_features(coloured, client):
    data = coloured(n_bags=40)
    (bags, sets), (other, others) = pairs(data, 2)

    def divided(X, names):
        return [(bags, sets), (other.with_features(X, names), others)]

    X = other.X
    refused(divided(X[:, :1], ["u"]), client, "Partition 1 has 1 features, but partition 0 has 2")
    refused(
        divided(X, ["u", "w"]), client, "Partition 1 has the columns u, w, but partition 0 has u, v"
    )
    refused(divided(X, None), client, "Partition 1 has the columns without names")
    refused(
        divided(X.astype(np.float32), ["u", "v"]), client,
        "Partition 1 has features of float32, but partition 0 has ones of float64",
    )  # fmt: skip


def test_partitions_have_the_same_form_of_labels(coloured, client):
    data = coloured(n_bags=40)
    (bags, sets), (other, _) = pairs(data, 2)
    y = np.ones((20, 3), dtype=int)
    two = [(bags, LabelSets(y, list("abc"))), (other, LabelSets(y, list("abd")))]
    refused(two, client, "Partition 1 has the classes a, b, d, but partition 0 has a, b, c")
    refused([(bags, y), (other, y[:, :2])], client, "Partition 1 has the classes 0, 1, but")
    refused([(bags, sets), (other, y)], client, "Partition 1 has an indicator, but partition 0 has")
    refused([(bags, sets), (other, None)], client, "Partition 1 has no labels")


def test_a_bag_lies_in_one_partition(coloured, client):
    data = coloured(n_bags=40)
    divided = dask.dataframe.from_pandas(data.table.to_pandas(), npartitions=2)
    refused(divided, client, r"Bag 'bag \d+' is in partitions 0 and 1.*data.shuffle")
    given = [(data.bags[:30], data.sets[:30]), (data.bags[29:], data.sets[29:])]
    refused(given, client, "Bag 'bag 29' is in partitions 0 and 1")


def test_faults_of_rows_name_the_partition(coloured, write, client):
    data = coloured(n_bags=40)
    rows = data.table.num_rows
    values = np.append(np.zeros(rows - 1), np.inf)
    data.table = data.table.set_column(2, "u", pa.array(values))
    refused(frame(data), client, "Partition 3: .*'u'.*not a finite number")
    refused(write(data.table), client, r"Partition 3, from row \d+ on: .*not a finite number")
    bags = Bags([[np.nan]], [0, 1])
    refused([(bags, [{"a"}])], client, "Partition 0: Bag 0 .* has NaN")


def test_columns_that_are_not_there_are_named(coloured, client):
    data = coloured(n_bags=40)
    refused(frame(data), client, "nights", bag="nights")
    refused(frame(data), client, "'mean' is not supported", roles=Roles(missing_values="mean"))
    named = [dask.delayed(pandas.DataFrame)({"bag": [1], "labels": "a", "u": 1.0, name: 0.0})
             for name in ("v", "w")]  # fmt: skip
    meta = named[0].compute()
    divided = dask.dataframe.from_delayed(named, meta=meta, verify_meta=False)
    refused(divided, client, "Partition 1: .*'v'")


def test_corrections_are_refused_with_what_to_do_instead(coloured, client, tmp_path):
    data = coloured(n_bags=8)
    refused(pairs(data), client, "fit to new.csv itself, .* known_label", corrections="new.csv")
    with pytest.raises(DataError, match=r"fit to new.csv itself, .* known_label"):
        unbag.out_of_core.fit(ORLogisticRegression(), tmp_path, corrections="new.csv")
