"""Settings chosen inside the training folds."""

from dataclasses import replace

import numpy as np
import pytest

from toys import make_colours
from unbag_reproduce import additions
from unbag_reproduce.additions import (
    COMMITTEE,
    LOSSES,
    NETWORK,
    OURS,
    ROWS,
    TOLD,
    VARIANTS,
)
from unbag_reproduce.ledger import Ledger
from unbag_reproduce.nested import MODELS, Case, build, is_network
from unbag_reproduce.plan import Plan
from unbag_reproduce.reproduce import reproduce
from unbag_reproduce.rivals import RIVALS
from unbag_reproduce.statistics import holm
from unbag_reproduce.studies import beyond
from unbag_reproduce.studies.beyond import OF_BAGS, best_published
from unbag_reproduce.widening import neighbours


def test_the_most_likely_held_out_labels_choose():
    ledger, variant = {}, VARIANTS[OURS]
    case = Case(Plan(("letter-frost",)), "letter-frost", 0, 4)
    for place, setting in enumerate(variant.settings):
        assert case.choice(variant, ledger) is None
        for unit in case.inner_units(variant.model, setting):
            ledger[unit] = {"log_likelihood": -abs(place - 3) - 5.0}
    # What lies next to the best, at the end of a grid, is tried as well.
    assert case.choice(variant, ledger) is None
    best = variant.settings[3]
    around = [each for each in neighbours(best, variant.ladders) if each not in variant.settings]
    assert {each["alpha"] for each in around} > {best["alpha"]}
    for setting in around:
        for unit in case.inner_units(variant.model, setting):
            ledger[unit] = {"log_likelihood": -6.0}
    assert case.choice(variant, ledger) == best
    assert case.settings(variant, ledger) == [*variant.settings, *around]
    assert replace(case, fold=5).choice(variant, ledger) is None


def test_what_chose_a_setting_stays_on_the_list():
    """Else the time that it took would not be counted, and nothing would do it again."""
    ledger, variant = {}, VARIANTS[OURS]
    case = Case(Plan(("letter-frost",)), "letter-frost", 0, 4)
    trials = []
    while (listed := case.units(variant, ledger)) != trials and "inner_fold" in (
        listed[-1].condition
    ):
        trials = listed
        ledger.update({unit: {"log_likelihood": -5.0} for unit in trials})
    *listed, chosen = listed
    assert listed == trials
    assert "inner_fold" not in chosen.condition


def test_a_single_setting_needs_no_choice():
    case = Case(Plan(("letter-frost",)), "letter-frost", 0, 4)
    variant = VARIANTS["network of one kind, nothing chosen"]
    (unit,) = case.units(variant, {})
    assert unit.setting == variant.settings[0]
    assert "inner_fold" not in unit.condition


def test_models_are_what_their_settings_say():
    case = Case(Plan(("letter-frost",)), "letter-frost", 0, 0)
    setting = {"context": 0.5, "width": 2.0, "background": True, "alpha": 0.1}
    steps = build(case.unit("pipeline", setting)).named_steps
    assert steps["kernel"].scale == 2.0
    assert steps["context"].weight == 0.5
    assert steps["model"].background
    assert steps["model"].alpha == 0.1
    linear = {**setting, "width": None}
    steps = build(case.unit("pipeline told instance labels", linear)).named_steps
    assert "kernel" not in steps
    assert type(steps["model"]).__name__ == "SupervisedLogisticRegression"


def test_best_published_figures():
    assert best_published("hja-union", "mlr") == 72.8
    assert best_published("hja-union", "slr") == 77.6
    assert best_published("letter-carroll", "mlr") == 72.1
    assert best_published("letter-carroll", "slr") == 79.5
    assert best_published("digits", "mlr") is None
    assert best_published("digits", "slr") is None


def networks_in(units):
    return [unit for unit in units if is_network(unit.method)]


def small(monkeypatch):
    """Make fits of a first look that take no time."""
    for module in ("nested", "rivals"):
        monkeypatch.setattr(f"unbag_reproduce.{module}.DICTIONARY", 40)
    monkeypatch.setattr(Plan, "n_folds", 2)
    for rows in (VARIANTS, LOSSES):
        for row, variant in rows.items():
            cheap = {**variant.quick, "hidden": (8, 8), "max_iter": 3} if variant.quick else {}
            few = variant.settings[:4]
            monkeypatch.setitem(rows, row, replace(variant, settings=few, quick=cheap))


@pytest.mark.torch
def test_end_to_end(tmp_path, monkeypatch):
    small(monkeypatch)
    results = reproduce("beyond", ["letter-frost"], level="quick", out=tmp_path)
    accuracy, bags, rivals, losses, _ = results
    assert [row[0] for row in accuracy.body] == ROWS
    assert [row[0] for row in losses.body] == list(LOSSES)
    assert {record["verdict"] for record in bags.records} <= {"better", "worse", "tied"}
    assert list(dict.fromkeys(record["variant"] for record in bags.records)) == list(OF_BAGS)
    assert [row[0] for row in rivals.body] == [
        *(rival.title for rival in RIVALS.methods.values()), OURS, NETWORK, COMMITTEE,
    ]  # fmt: skip
    assert "Networks were trained on" in accuracy.notes[1]
    family = [
        record
        for table in (bags, rivals, losses)
        for record in table.records
        if record["p_value"] is not None
    ]
    assert len(family) == 3 * 5 + 3 + 2 * (len(LOSSES) - 1)
    np.testing.assert_allclose(
        [record["p_holm"] for record in family], holm([record["p_value"] for record in family])
    )
    assert (tmp_path / "beyond" / "beyond.png").exists()
    plan, ledger = Plan(("letter-frost",), "quick"), Ledger(tmp_path)
    fitted = networks_in(beyond.units(plan, ledger))
    assert {unit.method for unit in fitted} == set(filter(is_network, MODELS))
    assert all(ledger[unit]["device"] for unit in fitted)
    # Whoever has no torch is shown what others have fitted.
    monkeypatch.setattr(additions, "find_spec", lambda name: None)
    assert networks_in(beyond.units(plan, ledger)) == fitted


def test_without_torch_a_line_says_what_is_left_out(tmp_path, monkeypatch):
    small(monkeypatch)
    monkeypatch.setattr(additions, "find_spec", lambda name: None)
    accuracy, _, rivals, _ = reproduce("beyond", ["letter-frost"], level="quick", out=tmp_path)
    assert rivals.body[-1][0] == OURS
    rows = [row[0] for row in accuracy.body]
    left_out = {row for row, variant in VARIANTS.items() if is_network(variant.model)}
    assert set(ROWS) - set(rows) == {*left_out, *(row for row in TOLD if TOLD[row][0] == NETWORK)}
    note = accuracy.notes[-1]
    assert note.startswith("Networks need PyTorch and a GPU, and are left out: network")
    assert all(row in note for row in (*left_out, *LOSSES))


@pytest.mark.torch
@pytest.mark.parametrize("device", ["CPU", "NVIDIA H200"])
def test_networks_are_fitted_where_that_does_not_take_days(device, monkeypatch):
    """On a GPU, or in a first look."""
    monkeypatch.setattr("unbag_reproduce.networks.device_name", lambda: device)
    for level, are_fitted in (("standard", device != "CPU"), ("quick", True)):
        units = beyond.units(Plan(("letter-frost",), level), {})
        assert bool(networks_in(units)) == are_fitted


@pytest.mark.torch
def test_the_committee_is_the_estimator_at_its_defaults():
    from unbag.torch import ORNetwork

    case = Case(Plan(("letter-frost",)), "letter-frost", 0, 4)
    (unit,) = case.units(VARIANTS[COMMITTEE], {})
    made, default = (each.get_params() for each in (build(unit), ORNetwork()))
    assert {name for name in default if made[name] != default[name]} == {
        "random_state", "threshold",
    }  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("model", [model for model in MODELS if is_network(model)])
def test_every_network_learns_by_its_own_loss(model):
    bags, y = make_colours(np.random.default_rng(0), 40)
    network = MODELS[model](
        hidden=(16, 16), n_members=2, max_iter=150, learning_rate=0.01, device="cpu",
        random_state=0,
    )  # fmt: skip
    network.fit(bags, y)
    assert (network.annotate(bags, y) == bags.instance_labels).mean() > 0.95
    likelihood = network.log_likelihood(bags, y)
    assert likelihood.shape == (len(bags),)
    assert (likelihood <= 0).all()
    assert likelihood.mean() > network.log_likelihood(bags, 1 - y).mean()
