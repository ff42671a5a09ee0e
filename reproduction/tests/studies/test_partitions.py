import numpy as np
import pytest

from unbag_reproduce import Plan, reproduce
from unbag_reproduce.studies import partitions


def test_partitions_differ_and_the_first_is_that_of_the_main_tables():
    plan = Plan(("letter-frost",), seed=3)
    first, *_ = partitions.partition_units(plan, "letter-frost", "mlr", {})
    assert [unit.seed for unit in first] == [3, 4, 5, 6, 7, 8]
    assert [unit.draw for unit in first] == [3, 4, 5, 6, 7, 3]
    known = partitions.CHOSEN[partitions.ACCURACY].units_of(plan, "letter-frost", "mlr", {})
    assert first[0] in known[0]


def test_end_to_end(tmp_path):
    (table,) = reproduce("partitions", ["letter-frost"], level="quick", out=tmp_path)
    found = {(each["method"], each["measure"]): each for each in table.records}
    assert {method for method, _ in found} == {
        "MLR", "SIM", "MIMLfast", "LSB-CMM", "MIMLSVM", "MIMLNN", "SLR", "dummy",
    }  # fmt: skip
    assert ("MIMLNN", "inductive accuracy") not in found
    # The dummies of instances and of bags make one column.
    assert len(found) == len(table.records)


def test_deviations_are_of_means_over_folds():
    plan = Plan(("letter-frost",), level="quick")
    results = {
        unit: dict.fromkeys(("inductive_accuracy", *partitions.BAG_MEASURES), 10.0 * unit.seed)
        | {"seconds": 1.0}
        for method in ("mlr", "dummy", "dummy-bags")
        for fold in partitions.partition_units(plan, "letter-frost", method, {})
        for unit in fold
    }
    record = partitions.records_of(plan, results)[0]
    assert record["ours"] == 5.0
    assert record["std"] == pytest.approx(np.std([0.0, 10.0], ddof=1))
