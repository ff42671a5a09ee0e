"""Every estimator on every kind of data: at its defaults, and after a few steps."""

from fixed_data import DATA
from model_answers import fitted, takes
from recording import CONVERGED, DIRECT, recording
from renamed import parameters
from unbag import estimators

MODELS = [name for name in estimators.__all__ if isinstance(getattr(estimators, name), type)]
ITERATIVE = ("LSBCMM", "MIMLFast", "SIM", "ORLogisticRegression", "SupervisedLogisticRegression")

# Few enough steps that rounding does not grow.
FEW_STEPS = {
    "LSBCMM": {"max_iter": 10, "n_components": 6},
    "MIMLFast": {"n_epochs": 3, "n_dimensions": 5},
    "MIMLNN": {"ratio": 0.4},
    "MIMLSVM": {"ratio": 0.4, "C": 1.0, "gamma": 0.5},
    "ORLogisticRegression": {"max_iter": 15},
    "SIM": {"n_phases": 2, "n_steps": 10},
    "SupervisedLogisticRegression": {"max_iter": 15},
}

# Features as they are, and other settings that change the way.
OTHER_SETTINGS = {
    "LSBCMM": {"max_iter": 10, "n_components": 6, "scaling": None, "variance": 2.0},
    "MIMLFast": {"n_epochs": 3, "n_dimensions": 5, "scaling": None, "n_concepts": 2},
    "MIMLNN": {"scaling": None},
    "MIMLSVM": {"scaling": "standard"},
    "ORLogisticRegression": {"max_iter": 15, "standardize": False, "alpha": 0.1},
    "SIM": {"n_phases": 2, "n_steps": 10, "aggregation": "max", "solver": "cccp"},
    "SupervisedLogisticRegression": {"max_iter": 15, "standardize": False, "alpha": 0.1},
}


def fitted_estimator(name, data_name, settings):
    """Fit the estimator of that name."""
    model_class = getattr(estimators, name)
    if takes(model_class, "random_state"):
        settings = settings | {"random_state": 0}
    return fitted(model_class(**parameters(model_class, **settings)), DATA[data_name]())


for name in MODELS:
    for data_name in DATA:
        converged = CONVERGED if name in ITERATIVE else DIRECT
        arguments = name, data_name, {}
        recording(f"estimators/{name}/default/{data_name}", *arguments, rtol=converged)(
            fitted_estimator
        )
    for kind, settings, data_name in (
        ("few_steps", FEW_STEPS, "digits"),
        ("few_steps", FEW_STEPS, "frost"),
        ("other_settings", OTHER_SETTINGS, "synthetic"),
    ):
        if name in settings:
            recording(f"estimators/{name}/{kind}/{data_name}", name, data_name, settings[name])(
                fitted_estimator
            )
