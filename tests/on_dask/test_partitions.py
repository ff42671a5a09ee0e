"""What workers hold: partitions that answer the same, wherever they have been and whoever asks."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from operator import methodcaller

import numpy as np
import pytest

from unbag import Bags
from unbag.dask.partitions import Partition, answer
from unbag.fitting.noise import LabelNoise
from unbag.fitting.parts import PartMaker
from unbag.tables.parquet_set import ParquetSet, RowReader
from unbag.union import UnionProblem


@pytest.fixture
def held(rng):
    """A partition of bags, one of which no exact method can hold, and what makes its parts."""
    sizes = np.array([30, *[4] * 20])
    bags = Bags(rng.normal(size=(sizes.sum(), 2)), np.append(0, np.cumsum(sizes)))
    y = np.zeros((len(sizes), 30), dtype=np.int8)
    y[0] = 1
    y[np.arange(1, 21), np.arange(1, 21)] = 1
    maker = PartMaker(UnionProblem(bags.offsets, y), np.arange(len(sizes)))
    return Partition(bags), maker


def test_parts_are_made_once_for_what_makes_them(held):
    partition, maker = held
    parts = partition.parts(maker, 7)
    assert partition.parts(maker, 7) is parts
    assert np.concatenate([part.bags for part in parts]).tolist() == list(range(7, 28))
    some = partition.parts(replace(maker, chosen=np.array([3, 5])), 7)
    assert np.concatenate([part.bags for part in some]).tolist() == [10, 12]


@pytest.mark.parametrize("noise", [None, LabelNoise(30, 30, "learn", 0.01)])
def test_a_partition_that_has_travelled_answers_the_same(noise, held):
    partition, maker = held
    maker = replace(maker, noise=noise)
    asked = methodcaller("statistics", np.zeros((30, 3)), None if noise is None else noise.rates)
    here = answer(partition, maker, 7, asked)
    travelled, of_it = pickle.loads(pickle.dumps((partition, maker)))
    assert len(pickle.dumps(partition)) == len(pickle.dumps(Partition(partition.bags)))
    there = answer(travelled, of_it, 7, asked)
    np.testing.assert_array_equal(here.gradient, there.gradient)
    assert here.value == there.value
    assert here.intractable == there.intractable == ((7, 30, 30),)


def test_labels_are_relaxed_alike_if_a_task_is_done_again(held):
    partition, maker = held
    asked = methodcaller("most_certain_labels", np.zeros((30, 3)), (7,))
    once, twice = (dict(answer(partition, maker, 7, asked)) for _ in range(2))
    assert once.keys() == twice.keys() == {7}
    assert once[7].tolist() == twice[7].tolist()
    assert len(once[7])


def test_partitions_are_as_large_as_their_features(held):
    partition, _ = held
    assert sys.getsizeof(partition) >= partition.bags.X.nbytes


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
    if could != "True" or before == "0":
        pytest.skip("the allocator keeps memory anyway")
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
