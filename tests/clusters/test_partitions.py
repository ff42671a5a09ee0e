"""What workers hold: partitions that answer the same, wherever they have been and whoever asks."""

import os
import pickle
import subprocess
import sys
from operator import methodcaller

import numpy as np
import pytest

from unbag import Bags
from unbag.dask.clusters import add_up
from unbag.dask.partitions import Partition, PartitionProblem, answer
from unbag.fitting import Part
from unbag.io.parquet_set import ParquetSet, RowReader


@pytest.fixture
def held(rng):
    """A partition of bags, one of which no exact method can hold, and what a fit decides of it."""
    sizes = np.array([30, *[4] * 20])
    bags = Bags(rng.normal(size=(sizes.sum(), 2)), np.append(0, np.cumsum(sizes)))
    y = np.zeros((len(sizes), 30), dtype=np.int8)
    y[0] = 1
    y[np.arange(1, 21), np.arange(1, 21)] = 1
    chosen = np.arange(len(sizes))
    problem = PartitionProblem(7, y, None, chosen, None, None, "auto", Part)
    return Partition(bags), problem


def test_parts_are_made_once_for_a_problem_and_a_sample(held):
    partition, problem = held
    parts = partition.parts(problem, None)
    assert partition.parts(problem, None) is parts
    assert np.concatenate([part.bags for part in parts]).tolist() == list(range(7, 28))
    sampled = partition.parts(problem, np.array([3, 5]))
    assert np.concatenate([part.bags for part in sampled]).tolist() == [10, 12]
    assert partition.parts(problem, np.array([3, 5])) is sampled
    assert partition.parts(problem, np.array([3, 6])) is not sampled


def test_a_partition_that_has_travelled_answers_the_same(held):
    partition, problem = held
    W = np.zeros((30, 3))
    asked = methodcaller("expectation", W)
    here = answer(partition, problem, None, asked)
    travelled = pickle.loads(pickle.dumps(partition))
    assert travelled._parts is None
    there = answer(travelled, problem, None, asked)
    np.testing.assert_array_equal(here.gradient, there.gradient)
    assert here.value == there.value


def test_labels_are_relaxed_alike_if_a_task_is_done_again(held):
    partition, problem = held
    asked = methodcaller("relax", np.zeros((30, 3)), (7,))
    once, twice = (answer(partition, problem, None, asked) for _ in range(2))
    assert once.keys() == twice.keys() == {7}
    assert once[7].tolist() == twice[7].tolist()
    assert len(once[7])


def test_partitions_are_as_large_as_their_features(held):
    partition, _ = held
    assert sys.getsizeof(partition) >= partition.bags.X.nbytes


def test_answers_of_one_kind_add_up():
    assert add_up([np.array([1.0, 2.0]), np.array([3.0, 4.0])]).tolist() == [4.0, 6.0]
    assert add_up([{1: "a"}, {}, {2: "b"}]) == {1: "a", 2: "b"}
    assert add_up([5]) == 5


@pytest.mark.slow  # Fills the memory of workers.
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the allocator is that of Linux")
def test_workers_keep_the_memory_of_parts():
    """By the pages that the system brings, of arrays that are made and freed a hundred times."""
    code = """
import resource, numpy
from unbag.dask.allocation import keep_freed_memory

def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        numpy.ones(100_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(pages(), keep_freed_memory(), pages(), pages())
"""
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    before, could, _, after = done.stdout.split()
    if could != "True":
        pytest.skip("the allocator is not glibc's")
    assert int(after) < int(before) / 10
    del environment["MALLOC_TRIM_THRESHOLD_"]
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[1] == "False"


def test_a_set_can_be_sent_without_the_files_that_are_not_read(coloured, write):
    data = coloured(n_bags=60)
    table = ParquetSet(write(data.table, cuts=(50, 100), row_group_size=20))
    some = pickle.loads(pickle.dumps(table.holding(60, 110)))
    assert [path.name for path in some.files] == ["part-01.parquet", "part-02.parquet"]
    rows = [each for batch in RowReader(some, ["note"]).read(60, 110)
            for each in batch.column(0).to_pylist()]  # fmt: skip
    assert rows == [f"note {row}" for row in range(60, 110)]
    assert len(table.files) == 3
