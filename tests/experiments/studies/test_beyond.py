"""Settings chosen inside the training folds."""

from unbag.experiments import Plan, reproduce
from unbag.experiments.studies import beyond
from unbag.experiments.studies.beyond import (
    BOUND,
    OURS,
    VARIANTS,
    best_published,
    build,
    choice,
    inner_units,
)


def test_the_likeliest_held_out_labels_choose():
    plan, ledger = Plan(("letter-frost",)), {}
    settings = VARIANTS[OURS]
    for place, setting in enumerate(settings):
        assert choice(plan, ledger, "letter-frost", 0, 4, OURS) is None
        for unit in inner_units(plan, "letter-frost", 0, 4, setting):
            ledger[unit] = {"log_likelihood": -abs(place - 3) - 5.0}
    assert choice(plan, ledger, "letter-frost", 0, 4, OURS) == settings[3]
    assert choice(plan, ledger, "letter-frost", 0, 5, OURS) is None


def test_models_are_what_their_settings_say():
    setting = {"context": 0.5, "width": 2.0, "background": True, "alpha": 0.1}
    steps = build(setting, False, 0).named_steps
    assert steps["kernel"].scale == 2.0
    assert steps["context"].weight == 0.5
    assert steps["model"].background
    assert steps["model"].alpha == 0.1
    linear = build({**setting, "width": None}, True, 0).named_steps
    assert "kernel" not in linear
    assert type(linear["model"]).__name__ == "SupervisedLogisticRegression"


def test_best_published_figures():
    assert best_published("hja-union", "mlr") == 72.8
    assert best_published("hja-union", "slr") == 77.6
    assert best_published("letter-carroll", "mlr") == 72.1
    assert best_published("letter-carroll", "slr") == 79.5
    assert best_published("digits", "mlr") is None
    assert best_published("digits", "slr") is None


def test_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(beyond, "DICTIONARY", 40)
    monkeypatch.setattr(Plan, "n_folds", 2)
    tables = reproduce("beyond", ["letter-frost"], level="quick", out=tmp_path)
    accuracy, bags, _ = tables
    rows = [row[0] for row in accuracy.body]
    assert rows[0] == "published model"
    assert {OURS, BOUND} <= set(rows)
    assert {record["verdict"] for record in bags.records} <= {"better", "worse", "tied"}
    assert (tmp_path / "beyond" / "beyond.svg").exists()
