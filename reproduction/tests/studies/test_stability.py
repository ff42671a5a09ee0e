import numpy as np
import pytest

from oracle import enumerate_bag
from unbag_reproduce.studies import stability
from unbag_reproduce.studies.stability import (
    KERNELS,
    answer_random_bags,
    covering_labellings,
    draw_priors,
    enumerated_posterior,
)
from unbag_reproduce.unit import Unit


@pytest.mark.parametrize(
    ("n_instances", "n_labels", "n_labellings"),
    # Onto mappings: n_labels! times the Stirling number of the second kind.
    [(2, 2, 2), (4, 4, 24), (6, 4, 1560), (8, 3, 5796)],
)
def test_covering_labellings_are_all_listed(n_instances, n_labels, n_labellings):
    labellings = covering_labellings(n_instances, n_labels)
    assert labellings.shape == (n_labellings, n_instances, n_labels)
    assert (labellings.sum(axis=2) == 1).all()
    assert (labellings.sum(axis=1) >= 1).all()
    assert len(np.unique(labellings, axis=0)) == n_labellings


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_the_reference_agrees_with_the_oracle(scale):
    log_prior = draw_priors(5, 5, 3, scale, seed=1)
    posterior = enumerated_posterior(log_prior)
    for bag, answer in zip(log_prior, posterior, strict=True):
        np.testing.assert_allclose(answer, enumerate_bag(bag, np.ones(3))[1], rtol=0, atol=1e-12)


def test_priors_are_probabilities_of_the_scale_asked_for():
    log_prior = draw_priors(2000, 4, 3, 7.0, seed=0)
    np.testing.assert_allclose(np.exp(log_prior).sum(axis=2), 1.0, rtol=1e-12)
    # The difference of two logits has twice their variance.
    assert np.diff(log_prior, axis=2).std() == pytest.approx(7.0 * np.sqrt(2), rel=0.05)
    np.testing.assert_array_equal(log_prior, draw_priors(2000, 4, 3, 7.0, seed=0))
    assert not np.array_equal(log_prior, draw_priors(2000, 4, 3, 7.0, seed=1))


def answers(scale, n_labels, n_instances, n_bags):
    condition = {
        "scale": scale, "n_labels": n_labels, "n_instances": n_instances, "n_bags": n_bags,
        "reference": "enumeration",
    }  # fmt: skip
    return answer_random_bags(Unit(answer_random_bags, condition=condition, seed=0))


def test_the_published_algorithm_breaks_and_says_so():
    result = answers(60.0, 4, 4, n_bags=300)
    assert result["fast worst"] > 1.0
    assert result["fast wrong"] > 5.0
    assert result["fast infinite"] >= result["fast wrong"]
    assert result["fast flagged"] >= result["fast infinite"]
    for kernel in ("chain", "forward", "auto"):
        assert result[f"{kernel} worst"] < 1e-9
    for kernel in KERNELS:
        assert result[f"{kernel} silent"] == 0
        assert result[f"{kernel} median"] <= result[f"{kernel} worst"]


def test_a_wrong_answer_without_a_flag_is_noticed(monkeypatch):
    """Were a kernel to lie, the table would show it."""
    honest = stability.infer

    def lying(*arguments, method, **options):
        answer = honest(*arguments, method=method, **options)
        if method == "chain":
            answer.posterior[0, :2] = answer.posterior[0, 1::-1]
        return answer

    monkeypatch.setattr(stability, "infer", lying)
    result = answers(3.0, 2, 3, n_bags=4)
    assert result["chain silent"] == 25.0
    assert result["forward silent"] == 0
