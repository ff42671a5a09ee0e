"""The two oracles share no idea, so they must agree before they judge others."""

import numpy as np
import pytest
from hypothesis import given

from oracle import enumerate_bag, most_likely_labelling, recursion_bag
from strategies import cases


@given(cases(max_instances=5, max_classes=4))
def test_enumeration_and_recursion_agree(case):
    log_likelihood, posterior = enumerate_bag(case.log_prior, case.y, case.pinned)
    reference, reference_posterior = recursion_bag(case.log_prior, case.y, case.pinned)
    assert log_likelihood == pytest.approx(float(reference), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(
        posterior, np.array(reference_posterior, dtype=float), rtol=0, atol=1e-11
    )


def test_known_answer():
    log_prior = np.log([[0.9, 0.1], [0.5, 0.5]])
    log_likelihood, posterior = enumerate_bag(log_prior, [1, 1])
    assert np.exp(log_likelihood) == pytest.approx(0.5)
    np.testing.assert_allclose(posterior, [[0.9, 0.1], [0.1, 0.9]])
    assert np.exp(most_likely_labelling(log_prior, [1, 1])) == pytest.approx(0.45)
