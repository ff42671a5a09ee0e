"""Parameters of the paper's methods that are refused by name."""

import pytest

from toys import BAGS, MODELS, Y


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        ("SIM", "alpha", [-1, float("nan")]),
        ("SIM", "n_phases", [0]),
        ("SIM", "n_steps", [1.5]),
        ("MIMLFast", "n_dimensions", [0]),
        ("MIMLFast", "n_concepts", [2.5]),
        ("MIMLFast", "norm_bound", [0]),
        ("MIMLFast", "learning_rate", [-1e-3]),
        ("MIMLFast", "divisor", [0.0]),
        ("LSBCMM", "variance", [0.0, float("inf")]),
        ("LSBCMM", "n_components", [0, 2.5]),
        ("LSBCMM", "concentration", [-1]),
        ("LSBCMM", "max_iter", [0]),
        ("MIMLSVM", "gamma", [-1, None]),
        ("MIMLSVM", "C", [0]),
        ("MIMLSVM", "ratio", [1.5, -0.1]),
        ("MIMLNN", "alpha", [-1, float("inf")]),
    ],
)
def test_bad_parameters_are_named(kind, name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"{name} must be"):
            MODELS[kind](**{name: value}).fit(BAGS, Y)
