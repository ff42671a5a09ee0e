"""Finished work on disk: nothing lost, nothing done twice."""

import json

import numpy as np
import pytest

from unbag.experiments.ledger import Ledger, key_of

UNIT = {"task": "fold", "method": "sim", "setting": {"alpha": 0.1}, "fold": 3}


def test_results_are_found_again(tmp_path):
    ledger = Ledger(tmp_path / "units")
    assert UNIT not in ledger
    ledger.add(UNIT, {"accuracy": 1 / 3})
    again = Ledger(tmp_path / "units")
    assert {**UNIT, "fold": 4} not in again
    # The order of entries does not matter, and numbers come back to the last bit.
    assert again[dict(reversed(UNIT.items()))] == {"accuracy": 1 / 3}


def test_a_line_cut_short_by_a_kill_never_happened(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.add(UNIT, {"accuracy": 1.0})
    ledger.add({**UNIT, "fold": 4}, {"accuracy": 2.0})
    path = tmp_path / "fold.jsonl"
    whole = path.read_bytes()
    for cut in range(len(whole) - 1, len(whole) // 2 + 5, -7):
        path.write_bytes(whole[:cut])
        again = Ledger(tmp_path)
        assert UNIT in again
        assert {**UNIT, "fold": 4} not in again
        again.add({**UNIT, "fold": 4}, {"accuracy": 2.0})
        assert path.read_bytes() == whole


def test_what_another_version_did_is_not_used(tmp_path):
    Ledger(tmp_path).add(UNIT, {"accuracy": 1.0})
    path = tmp_path / "fold.jsonl"
    entry = json.loads(path.read_text())
    path.write_text(json.dumps({**entry, "version": "0.0.0"}) + "\n")
    assert UNIT not in Ledger(tmp_path)


def test_a_foreign_line_is_named(tmp_path):
    (tmp_path / "fold.jsonl").write_text('{"unit": 1}\n')
    with pytest.raises(ValueError, match=r"fold\.jsonl, line 1, is no record of finished work"):
        Ledger(tmp_path)


def test_keys_tell_settings_apart():
    keys = {key_of({"task": "fold", "alpha": alpha}) for alpha in (0.1, 0.1 + 1e-16, 1, np.pi)}
    assert len(keys) == 4
