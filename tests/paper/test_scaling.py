"""Features that no rival can square."""

import numpy as np
import pytest

from toys import MODELS
from unbag import Bags

RIVALS = ("LSBCMM", "MIMLFast", "MIMLNN", "MIMLSVM", "SIM")


@pytest.mark.parametrize("scaling", ["standard", "minmax", None])
@pytest.mark.parametrize("name", RIVALS)
def test_features_whose_squares_overflow_are_refused(name, scaling):
    bags = Bags(
        [[1.0, 2e300], [2.0, 1e300], [0.5, -3e300]], [0, 2, 3], feature_names=["length", "pitch"]
    )
    model = MODELS[name](scaling=scaling)
    with pytest.raises(ValueError, match=r"Column 1 \(pitch\) holds 3e\+300.*divide the feature"):
        model.fit(bags, [{"a", "b"}, {"a"}])
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(("kind", "size"), [(np.float64, 1e100), (np.float32, 1e10)])
@pytest.mark.parametrize("name", RIVALS)
def test_features_that_are_just_large_are_not(name, kind, size):
    X = np.array([[1.0], [2.0], [0.5], [1.5]]) * size
    bags = Bags(X.astype(kind), [0, 2, 3, 4])
    model = MODELS[name]().fit(bags, [{"a", "b"}, {"a"}, {"b"}])
    assert np.isfinite(model.decision_function(bags)).all()
