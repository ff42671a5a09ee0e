import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from toys import make_colours
from unbag.paper import MLR
from unbag.paper.mlr import UncertifiedWarning
from unbag_reproduce import datasets, timing
from unbag_reproduce.e_steps import cheapest_bags
from unbag_reproduce.published import published
from unbag_reproduce.studies.pruning import (
    cost_ratio,
    count_pruned,
    extrapolated_times,
    published_gain,
)
from unbag_reproduce.timing import counted_warnings, fit_timed, summary
from unbag_reproduce.unit import Unit


@pytest.mark.parametrize(
    "name", [name for name in published()["pruning"]["ratio"] if name != "hja"] + ["hja-union"]
)
def test_the_published_ratios_come_out(name):
    if not datasets.is_available(name):
        pytest.skip(f"{name} is not on this machine")
    kept = published()["pruning"]["ratio_kept_percent"]
    counted = count_pruned(Unit(count_pruned, name, 0, condition={"kept_percent": kept}))
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
    pruned = MLR(pruned=percent / 100).fit(bags, y)
    alone = MLR().fit(bags[kept], y[kept])
    assert np.array_equal(pruned.coef_, alone.coef_)


def test_published_gains_are_of_the_published_algorithm():
    assert published_gain("letter-carroll", "fit_fast") == 9.2
    assert published_gain("hja-union", "fit_fast") == 2.0  # that of HJA bird
    assert published_gain("letter-carroll", "fit_auto") is None
    assert published_gain("msrcv2", "fit_fast") is None


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

    class Uncertain(BaseEstimator):
        def __init__(self, n_jobs):
            self.n_jobs = n_jobs

        def fit(self, bags, y):
            warnings.warn("could not certify 2 bags", UncertifiedWarning, stacklevel=1)

        def predict_instances(self, bags):
            return bags.instance_labels

    monkeypatch.setattr(timing, "load_fold", lambda unit: (bags, y, bags, y))
    monkeypatch.setitem(timing.MODELS, "uncertain", Uncertain)
    result = fit_timed(Unit(fit_timed, "toy", 0, "uncertain", fold=0, n_folds=2, seed=0))
    assert (result["uncertified"], result["inductive_accuracy"]) == (1, 100.0)


def test_summary_averages_draws_before_folds():
    def result(accuracy, seconds):
        return {
            "inductive_accuracy": accuracy, "seconds": seconds, "uncertified": 1,
            "other_warnings": 0,
        }  # fmt: skip

    units = [[Unit(fit_timed, draw=draw, fold=fold) for fold in range(2)] for draw in range(2)]
    found = [[result(60, 1.0), result(70, 2.0)], [result(70, 3.0), result(80, 99.0)]]
    results = {units[draw][fold]: found[draw][fold] for draw in range(2) for fold in range(2)}
    point = summary(results, units)
    assert point["accuracy"] == 70
    assert point["std"] == pytest.approx(np.std([65, 75], ddof=1))
    assert point["seconds"] == 2.5
    assert point["uncertified"] == 4
