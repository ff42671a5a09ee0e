"""Everything that a fitted model knows and answers."""

import inspect
import tempfile
from pathlib import Path

import numpy as np

import unbag
from recording import attempted

# What an estimator may be asked, besides what all of them answer.
METHODS = (
    "predict_proba", "predict_instances", "predict_instances_proba", "annotate", "annotate_proba",
    "log_likelihood",
)  # fmt: skip


def answers(model, X, y) -> dict:
    """Ask every question that the model has a method for."""
    questions = {
        "predict": lambda: model.predict(X),
        "decision_function": lambda: model.decision_function(X),
        "predict_proba": lambda: model.predict_proba(X),
        "predict_instances": lambda: model.predict_instances(X),
        "predict_instances_proba": lambda: model.predict_instances_proba(X),
        "annotate": lambda: model.annotate(X, y),
        "annotate_jointly": lambda: model.annotate(X, y, joint=True),
        "annotate_proba": lambda: model.annotate_proba(X, y),
        "log_likelihood": lambda: model.log_likelihood(X, y),
        "score": lambda: model.score(X, y),
    }
    lacking = [name for name in METHODS if not hasattr(model, name)]
    return {
        name: attempted(ask)
        for name, ask in questions.items()
        if name.removesuffix("_jointly") not in lacking
    }


def why_lacking(model) -> dict:
    """Return what a model says of the methods that it does not have."""
    return {
        name: attempted(lambda name=name: getattr(model, name))
        for name in METHODS
        if not hasattr(model, name)
    }


def learnt(model) -> dict:
    """Return the public learnt attributes that are no models themselves."""
    return {
        name: value
        for name, value in sorted(vars(model).items())
        if name.endswith("_") and not name.startswith("_") and not hasattr(value, "get_params")
    }


def fitted(model, data, **fit_options) -> dict:
    """Fit a model, and record what it warned of, learnt and answers, also once it is saved."""
    fitting = attempted(lambda: model.fit(data.bags, data.y, **fit_options))
    if "error" in fitting:
        return {"fit": fitting}
    del fitting["value"]
    return {
        "fit": fitting,
        "learnt": learnt(model),
        "answers": answers(model, data.test, data.test_y),
        "same_when_loaded": same_when_loaded(model, data.test),
    }


def same_when_loaded(model, X) -> bool:
    """Tell whether a model says the same after it was written to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.unbag"
        model.save(path)
        loaded = unbag.load(path)
    return np.array_equal(loaded.decision_function(X), model.decision_function(X))


def takes(function, name) -> bool:
    """Tell whether a function has such a parameter."""
    return name in inspect.signature(function).parameters
