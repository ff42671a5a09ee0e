"""Fits of all estimators to hostile numbers: a model of finite numbers, or an error in words."""

import inspect
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fuzz.answers import check_answers
from toys import MODELS
from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.bags import offsets_of
from unbag.union import ImpossibleBagError, IntractableBagError

# What estimators may raise: as scikit-learn, or errors of ours that derive from it.
REFUSALS = (ValueError, ImpossibleBagError, IntractableBagError)
SCALES = (1e-310, 1e-160, 1e-20, 1e-5, 1.0, 1e5, 1e20, 1e160, 1e300)
ALPHAS = (0.0, 1e-300, 1e-6, 1.0, 1e6, 1e300)
WEIGHTS = (0.0, 1e-300, 1.0, 1e300, -1.0, np.nan, np.inf)
#: Parameters that keep a fit short.
SHORT = {
    "n_dimensions": 3, "n_concepts": 2, "n_epochs": 2, "n_components": 4, "max_iter": 10,
    "n_steps": 10,
}  # fmt: skip


def prepare() -> None:
    """Compile the kernels of all models."""
    bags = Bags([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.2, 0.1]], [0, 2, 3, 4],
                instance_labels=["a", "b", "a", "b"])  # fmt: skip
    for kind in MODELS.values():
        model = kind(**parameters_of(kind, SHORT)).fit(bags, [{"a", "b"}, {"a"}, {"b"}])
        check_answers(model, bags, [{"a", "b"}, {"a"}, {"b"}])


def parameters_of(kind: type, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a class has parameters for."""
    known = inspect.signature(kind).parameters
    return {name: value for name, value in options.items() if name in known}


def draw_features(rng: np.random.Generator, n_instances: int) -> np.ndarray:
    """Draw features of tiny, huge or mixed scale, constant, doubled or far from zero."""
    n_features = int(rng.integers(1, 5))
    X = rng.normal(size=(n_instances, n_features))
    if rng.random() < 0.6:
        X *= rng.choice(SCALES, 1 if rng.random() < 0.5 else n_features)
    if rng.random() < 0.3:
        X += rng.choice([-1, 1]) * rng.choice(SCALES)
    if rng.random() < 0.2:
        X[:, 0] = X[0, 0]
    if rng.random() < 0.1:
        X[:] = X[:1]
    if rng.random() < 0.1:
        X[rng.integers(n_instances), 0] = rng.choice([np.nan, np.inf, -np.inf, 1.7e308, 5e-324])
    if rng.random() < 0.3:
        with np.errstate(over="ignore"):
            X = X.astype(np.float32)
    return X


def draw_label_sets(rng: np.random.Generator, n_bags: int) -> np.ndarray:
    """Draw label sets, which may be empty, unknown, all the same, or without a class at all."""
    n_classes = int(rng.integers(1, 5))
    states = [[0, 1], [1], [0, 0, 1], [0, 1, -1], [-1], [0]]
    return rng.choice(
        states[rng.choice(6, p=[0.4, 0.1, 0.2, 0.2, 0.05, 0.05])], (n_bags, n_classes)
    )


def draw_options(rng: np.random.Generator) -> dict[str, Any]:
    """Draw parameters, most of them usual."""
    options = {**SHORT, "random_state": int(rng.integers(100)), "n_jobs": 1}
    if rng.random() < 0.4:
        options["alpha"] = float(rng.choice(ALPHAS))
    if rng.random() < 0.4:
        options["scaling"] = [None, "standard", "minmax"][rng.integers(3)]
    if rng.random() < 0.4:
        options["background"] = bool(rng.integers(2))
    if rng.random() < 0.4:
        options["sampled"] = float(rng.choice([0.3, 0.99, 0.0]))
    if rng.random() < 0.2:
        options["inference"] = str(rng.choice(["fast", "forward"]))
    if rng.random() < 0.1:
        options["max_iter"] = options["n_steps"] = int(rng.choice([0, 1, -1, 200]))
    if rng.random() < 0.1:
        options["pruned"] = float(rng.choice([0.5, 0.99, 1.0, np.nan]))
    if rng.random() < 0.1:
        options["on_impossible"] = str(rng.choice(["relax", "drop", "raise"]))
    return options


def draw_fit_arguments(
    rng: np.random.Generator, kind: type, bags: Bags, labels: LabelSets
) -> dict[str, Any]:
    """Draw weights of bags and known labels of instances, where a model takes them."""
    known = inspect.signature(kind.fit).parameters
    arguments: dict[str, Any] = {}
    if "sample_weight" in known and rng.random() < 0.3:
        some = WEIGHTS[: rng.choice([3, 4, len(WEIGHTS)])]
        arguments["sample_weight"] = rng.choice(some, len(bags))
    if "instance_labels" in known and rng.random() < 0.3:
        drawn = rng.choice([*labels.classes.tolist(), None], bags.n_instances)
        arguments["instance_labels"] = np.where(rng.random(bags.n_instances) < 0.7, None, drawn)
    return arguments


def check(rng: np.random.Generator, folder: Path) -> Counter:
    """Fit a model; answers must be finite wherever the fit was not refused."""
    # The model of this package gets half of the cases.
    kind = rng.choice(list(MODELS.values())) if rng.random() < 0.5 else ORLogisticRegression
    sizes = rng.choice([0, 1, 2, 3, 6], int(rng.integers(1, 12)), p=[0.05, 0.2, 0.3, 0.3, 0.15])
    X = draw_features(rng, max(int(sizes.sum()), 1))
    sizes[-1] += X.shape[0] - sizes.sum()
    y = draw_label_sets(rng, len(sizes))
    labels = LabelSets(y, [f"class {c}" for c in range(y.shape[1])])
    truth = rng.choice(labels.classes, len(X)).astype(object)
    np.savez(folder / "bags.npz", X=X, sizes=sizes, y=y)
    options = parameters_of(kind, draw_options(rng))
    (folder / "model.txt").write_text(f"{kind.__name__}(**{options})\n")
    with np.errstate(all="ignore"):
        is_sparse = rng.random() < 0.1
        features = sparse.csr_array(X) if is_sparse else X
        try:
            bags = Bags(features, offsets_of(sizes), instance_labels=truth)
            arguments = draw_fit_arguments(rng, kind, bags, labels)
            (folder / "arguments.txt").write_text(f"{arguments}\n")
            model = kind(**options).fit(bags, labels, **arguments)
        except REFUSALS:
            return Counter({"refused": 1})
        except TypeError:
            if not is_sparse:
                raise
            return Counter({"refused": 1})
        for name, value in vars(model).items():
            if name in ("coef_", "intercept_"):
                assert np.isfinite(value).all(), f"{name} is not finite"
        try:
            check_answers(model, bags, labels)
        except ValueError:
            # In words: with such features, doubles cannot tell the classes apart.
            return Counter({"fitted, then refused to answer": 1})
    return Counter({"fitted": 1})
