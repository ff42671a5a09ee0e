"""What any fitted model must answer, whatever it was fitted to: finite numbers that make sense."""

from typing import Any

import numpy as np

from toys import answers
from unbag import Bags, is_background


def check_answers(model: Any, bags: Bags, y: Any) -> None:
    """Ask a model everything it has a method for, and check each number."""
    said = answers(model, bags, y)
    classes = model.classes_.tolist()
    for name, answer in said.items():
        answer = np.asarray(answer)
        if name.endswith("_proba"):
            assert np.isfinite(answer).all(), f"{name} is not finite"
            assert (answer >= 0).all(), f"{name} is negative"
            assert (answer <= 1 + 1e-9).all(), f"{name} is above one"
        if name in ("predict_instances_proba", "annotate_proba"):
            assert np.allclose(answer.sum(axis=1), 1, rtol=0, atol=1e-6), f"{name} adds up to no 1"
        if name == "decision_function":
            # Nothing occurs in an empty bag.
            assert np.isfinite(answer[bags.sizes > 0]).all(), f"{name} is not finite"
        if name == "log_likelihood":
            assert not np.isnan(answer).any(), f"{name} is NaN"
            # Of probabilities, up to the rounding of many factors.
            assert (answer <= 1e-9 * np.maximum(bags.sizes, 1)).all(), f"{name} is above 0"
        if name in ("predict_instances", "annotate"):
            pairs = zip(answer.tolist(), is_background(answer).tolist(), strict=True)
            strange = [label for label, outside in pairs if not outside and label not in classes]
            assert not strange, f"{name} gives {strange[0]!r}, which is no class"
