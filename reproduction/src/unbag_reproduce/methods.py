"""The paper's methods, and the settings that each is tuned over.

The paper tunes after the fact: each rival is reported at the setting whose mean over the test
folds is the best. That flatters the rivals, and those with large grids most. It predicts the label
set of a bag by the union of its instances' labels, and ranks classes by their best instance; so do
all methods here. Settings are written out, so that a new default changes no committed figure.

How thoroughly methods are compared is a *level*: "quick" is for a first look, with few folds and
few settings; "standard" has the paper's folds, iterations and grids, but a random draw of the
settings of MIMLfast.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from unbag.compare import grid, of_distances, seeded
from unbag.estimators import (
    DummyBags,
    DummyInstances,
    ORLogisticRegression,
    SupervisedLogisticRegression,
)
from unbag.paper import LSBCMM, MIMLNN, MIMLSVM, MLR, SIM, SLR, MIMLFast

from .unit import Values


@dataclass(frozen=True)
class Method:
    """A method and its settings to try at each level, under the title of tables.

    `build` takes the entries of a setting. `published_as` is the method of the paper whose figures
    are compared; by default the one of the same name.
    """

    title: str
    build: Callable[..., Any]
    grids: dict[str, list[Values]]
    published_as: str = ""

    def model(self, setting: Values, seed: int) -> Any:
        """Build the estimator, unfitted, with one of the settings."""
        return seeded(self.build(**setting), seed)


def n_folds_at(level: str) -> int:
    """Return the number of folds of a cross-validation at a level."""
    return 3 if level == "quick" else 10


def levels(standard: Sequence[Any], quick: Sequence[Any] | None = None) -> Values:
    """Return what is tried at each level; in a first look the same unless it is given."""
    return {"standard": standard, "quick": standard if quick is None else quick}


# Our own model and bound, with a penalty.
PENALISED: Values = {"max_iter": 100, "tol": 1e-7, "threshold": "union"}
#: What `unbag.ORLogisticRegression` has of these where nothing is said.
USERS_DEFAULT: Values = {name: ORLogisticRegression().get_params()[name] for name in PENALISED}
penalised_model: Callable[..., ORLogisticRegression] = partial(ORLogisticRegression, **PENALISED)
penalised_bound: Callable[..., SupervisedLogisticRegression] = partial(
    SupervisedLogisticRegression, **PENALISED
)


#: The model and its bound without a penalty, by a solver whose steps go further.
BY_LBFGS: Values = {"tol": 0.0, "threshold": "union"}
model_by_lbfgs: Callable[..., ORLogisticRegression] = partial(ORLogisticRegression, 0.0, **BY_LBFGS)
bound_by_lbfgs: Callable[..., SupervisedLogisticRegression] = partial(
    SupervisedLogisticRegression, 0.0, **BY_LBFGS
)


def network(kind: Callable[..., Any] | None = None, **setting: Any) -> Any:
    """Build our network, `unbag.torch.ORNetwork`, or another kind of it, with some parameters."""
    from unbag.torch import ORNetwork

    return (kind or ORNetwork)(**{"threshold": "union", **setting})


NOTHING = levels([{}])
#: Steps that go on until nothing changes any more.
TO_THE_END: Values = {"max_iter": 1000, "tol": 1e-6}
#: The published 1e-9 to 1e-4, and larger ones: what is chosen must not lie at an end.
SIM_ALPHAS = [10.0**power for power in range(-9, 2)]
FAST_GRID = grid(
    n_epochs=[10],
    scaling=["standard", "minmax"],
    n_dimensions=[50, 100, 200],
    norm_bound=[1.0, 5.0, 10.0],
    n_concepts=[1, 5, 10, 15],
    learning_rate=[1e-4, 5e-4, 1e-3, 5e-3],
    decay=[1e-5, 1e-6],
    divisor=[0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0],
)
#: The same draw for all data sets, made before any of its settings was tried on one.
N_DRAWN, SEED_OF_DRAW = 300, 2015
FAST_DRAWN = random.Random(SEED_OF_DRAW).sample(FAST_GRID, N_DRAWN)
#: The published variances, with either scaling, as the paper does not name its own.
VARIANCES = grid(variance=[10.0**power for power in range(-2, 6)], scaling=["standard", "minmax"])


METHODS = {
    "mlr": Method("MLR", MLR, NOTHING),
    "mlr-200": Method("MLR, 200 steps", MLR, levels([{"n_steps": 200}]), "mlr"),
    "mlr-end": Method("MLR, L-BFGS to the end", model_by_lbfgs, levels([TO_THE_END]), "mlr"),
    "unbag": Method("MLR, unbag's default", penalised_model, levels([USERS_DEFAULT])),
    "sim": Method("SIM", SIM, levels(grid(alpha=SIM_ALPHAS), quick=grid(alpha=[1e-3, 1e-2]))),
    "mimlfast": Method(
        "MIMLfast", MIMLFast, levels(FAST_DRAWN, [{"n_epochs": 10}, {"n_epochs": 30}])
    ),
    "lsbcmm": Method(
        "LSB-CMM",
        partial(LSBCMM, threshold="union"),
        levels(VARIANCES, quick=grid(variance=[10.0])),
    ),
    "mimlsvm": Method(
        "MIMLSVM",
        partial(of_distances, MIMLSVM, C=1.0),
        levels(
            grid(
                gamma=[0.1, 0.2, 0.4, 0.8],
                ratio=[0.2, 0.4, 0.6, 0.8, 1.0],
                unit_length=[False, True],
            ),
            quick=grid(gamma=[0.2], ratio=[0.6, 1.0], unit_length=[False]),
        ),
    ),
    "mimlnn": Method(
        "MIMLNN",
        partial(of_distances, MIMLNN),
        levels(
            grid(
                alpha=[0.01, 0.1, 1.0, 10.0],
                ratio=[0.2, 0.4, 0.6, 0.8, 1.0],
                unit_length=[False, True],
            ),
            quick=grid(alpha=[1.0, 10.0], ratio=[1.0], unit_length=[False]),
        ),
    ),
    "slr": Method("SLR", SLR, NOTHING),
    "slr-200": Method("SLR, 200 steps", SLR, levels([{"n_steps": 200}]), "slr"),
    "slr-end": Method("SLR, L-BFGS to the end", bound_by_lbfgs, levels([TO_THE_END]), "slr"),
    "dummy": Method("dummy", DummyInstances, NOTHING),
    "dummy-bags": Method("dummy", DummyBags, NOTHING, "dummy"),
}

#: Outside the comparison: they see instance labels, or nothing.
BOUNDS = ("slr", "slr-200", "slr-end", "dummy", "dummy-bags")
