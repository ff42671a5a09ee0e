import warnings

import numpy as np
import pytest

from toys import make_colours
from unbag.fitting import UncertifiedWarning
from unbag.model_selection.methods import published_model
from unbag_reproduce import Unit, datasets, e_steps, published, reproduce, timing
from unbag_reproduce.e_steps import cheapest_bags
from unbag_reproduce.figures import Figure
from unbag_reproduce.studies import pruning
from unbag_reproduce.studies.pruning import (
    cost_ratio,
    extrapolated_times,
    pruned_cost,
    published_gain,
    verdict,
)
from unbag_reproduce.timing import counted_warnings, summary, timed_fold


@pytest.mark.parametrize(
    "name", [name for name in published()["pruning"]["ratio"] if name != "hja"] + ["hja-union"]
)
def test_the_published_ratios_come_out(name):
    if not datasets.is_available(name):
        pytest.skip(f"{name} is not on this machine")
    kept = published()["pruning"]["ratio_kept_percent"]
    counted = pruned_cost(Unit(pruned_cost, name, 0, condition={"kept_percent": kept}))
    assert round(counted["ratio"], 1) == published_gain(name, "counted")


def test_the_number_of_bags_is_rounded_down():
    sizes, cardinalities = [1] * 4, [1, 1, 1, 2]
    assert cost_ratio(sizes, cardinalities, 99) == 14 / 6
    assert cost_ratio(sizes, cardinalities, 100) == 1


@pytest.mark.parametrize("percent", [10, 30, 90])
def test_the_estimator_keeps_the_same_bags(rng, percent):
    bags, y = make_colours(rng, n_bags=30)
    kept = cheapest_bags(bags.sizes, y.sum(axis=1), 100 - percent)
    assert len(kept) == 30 * (100 - percent) // 100
    pruned = published_model(0, prune=percent / 100).fit(bags, y)
    alone = published_model(0).fit(bags[kept], y[kept])
    assert np.array_equal(pruned.coef_, alone.coef_)


def test_published_gains_are_of_the_published_algorithm():
    assert published_gain("letter-carroll", "fit_fast") == 9.2
    assert published_gain("hja-union", "fit_fast") == 2.0  # that of HJA bird
    assert published_gain("letter-carroll", "fit_auto") is None
    assert published_gain("msrcv2", "fit_fast") is None


def test_a_verdict_depends_on_the_results():
    gains = {
        "a": {"fit_fast": 9.0, "fit_auto": 4.0, "e_step_fast": 9.5, "e_step_auto": 5.0},
        "b": {"fit_fast": 1.6, "fit_auto": 1.8, "e_step_fast": 1.7, "e_step_auto": 3.0},
    }
    for each in gains.values():
        each["instances"] = 1.5
    said = verdict(gains, {"a": 0.5, "b": -2.0})
    assert "in E-steps with FAST on a (9.5), with unbag on a (5.0), b (3.0);" in said
    assert "in whole fits with FAST on a (9.0), with unbag on a (4.0)." in said
    # E-steps gain, and fits do not.
    assert "in the E-steps of unbag does not show in whole fits on b." in said
    assert "+0.5 (a), -2.0 (b) points;" in said
    gains["b"]["e_step_auto"] = 1.8
    assert "does not show" not in verdict(gains, {"a": 0.5, "b": -2.0})


def test_the_line_goes_through_the_fewest_bags():
    assert extrapolated_times([0, 10, 20, 30], [100.0, 3.0, 2.0, 1.0]) == pytest.approx(
        [4, 3, 2, 1]
    )


def test_warnings_are_counted_and_kept_back():
    with counted_warnings() as counts:
        warnings.warn("could not certify 3 bags", UncertifiedWarning, stacklevel=1)
        warnings.warn("could not certify 1 bags", UncertifiedWarning, stacklevel=1)
        warnings.warn("2 of 9 bags have label sets that ...", UserWarning, stacklevel=1)
    assert counts == {"uncertified": 2, "other_warnings": 1}


def test_a_fit_that_cannot_certify_is_counted_not_raised(rng, monkeypatch):
    bags, y = make_colours(rng, n_bags=5)

    class Uncertain:
        def __init__(self, random_state, n_jobs):
            pass

        def fit(self, bags, y):
            warnings.warn("could not certify 2 bags", UncertifiedWarning, stacklevel=1)

        def predict_instances(self, bags):
            return bags.instance_labels

    monkeypatch.setattr(timing, "load_fold", lambda unit: (bags, y, bags, y))
    monkeypatch.setitem(timing.MODELS, "uncertain", Uncertain)
    result = timed_fold(Unit(timed_fold, "toy", 0, "uncertain", fold=0, n_folds=2, seed=0))
    assert (result["uncertified"], result["inductive_accuracy"]) == (1, 100.0)


def test_summary_averages_draws_before_folds():
    def result(accuracy, seconds):
        return {
            "inductive_accuracy": accuracy, "seconds": seconds, "uncertified": 1,
            "other_warnings": 0,
        }  # fmt: skip

    units = [[Unit(timed_fold, draw=draw, fold=fold) for fold in range(2)] for draw in range(2)]
    found = [[result(60, 1.0), result(70, 2.0)], [result(70, 3.0), result(80, 99.0)]]
    results = {units[draw][fold]: found[draw][fold] for draw in range(2) for fold in range(2)}
    point = summary(results, units)
    assert point["accuracy"] == 70
    assert point["std"] == pytest.approx(np.std([65, 75], ddof=1))
    assert point["seconds"] == 2.5
    assert point["uncertified"] == 4


def test_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setitem(pruning.PERCENTS, "quick", (0, 20, 80, 90))
    monkeypatch.setattr(e_steps, "SECONDS", 0.01)
    ratios, accuracies, times, *figures = reproduce(
        "pruning", ["letter-frost"], level="quick", out=tmp_path
    )
    found = {record["of"]: record for record in ratios.records}
    assert found["counted steps of FAST"]["difference"] == pytest.approx(0, abs=0.05)
    assert found["time of a fit, FAST"]["published"] == 5.0
    assert found["time of an E-step, FAST"]["ours"] > 1.2
    assert accuracies.header == ["", "0 %", "20 %", "80 %", "90 %"]
    assert "± is the deviation over folds of each fold's mean" in accuracies.notes[0]
    fast = [record["ours"] for record in accuracies.records if record["line"] == "FAST"]
    assert fast[0] > fast[-1] + 10  # a tenth of the bags is too little
    seconds = [record["ours"] for record in times.records if record["line"] == "FAST"]
    assert seconds[0] > seconds[-1]
    for figure in figures:
        assert (tmp_path / "pruning" / f"{figure.name}.png").exists()
    monkeypatch.setitem(pruning.PERCENTS, "quick", (0, 20, 90))
    monkeypatch.setattr(Figure, "save", lambda *_: None)
    again = reproduce("pruning", ["letter-frost"], level="quick", out=tmp_path / "again")
    kept = [record for record in accuracies.records if record["percent"] != 80]
    assert again[1].records == kept
