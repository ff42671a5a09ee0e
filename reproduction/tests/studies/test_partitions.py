import numpy as np
import pytest

from unbag_reproduce.plan import Plan
from unbag_reproduce.studies import partitions


def test_partitions_differ_and_the_first_is_that_of_the_main_tables():
    plan = Plan(("letter-frost",), seed=3)
    first, *_ = partitions.partition_units(plan, "letter-frost", "mlr", {})
    assert [unit.seed for unit in first] == [3, 4, 5, 6, 7, 8]
    assert [unit.draw for unit in first] == [3, 4, 5, 6, 7, 3]
    known = partitions.CHOSEN[partitions.ACCURACY].units_of(plan, "letter-frost", "mlr", {})
    assert first[0] in known[0]


def test_deviations_are_of_means_over_folds(monkeypatch):
    plan = Plan(("letter-frost",), level="quick")
    units = partitions.partition_units(plan, "letter-frost", "mlr", {})
    measures = ("inductive_accuracy", *partitions.BAG_MEASURES)
    results = {
        unit: dict.fromkeys(measures, 10.0 * unit.seed + unit.fold)
        for fold in units
        for unit in fold
    }
    monkeypatch.setattr(
        partitions, "chosen_units", lambda plan, ledger: {("letter-frost", "mlr"): units}
    )
    record = partitions.records_of(plan, results)[0]
    assert record["ours"] == 6.0
    assert record["std"] == pytest.approx(np.std([0.0, 10.0], ddof=1))
