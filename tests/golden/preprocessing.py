"""Transformers of bags, and the kernel versions of models."""

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from fixed_data import DATA, converted, digits, synthetic
from model_answers import fitted, learnt
from recording import attempted, recording
from renamed import parameters
from unbag import (
    LSBCMM,
    SIM,
    BagContext,
    BagPipeline,
    MultilabelStratifiedKFold,
    OnInstances,
    ORLogisticRegression,
    RBFDictionary,
    cross_validate_bags,
    kernel_pipeline,
)

TRANSFORMERS = {
    "scaled": lambda: OnInstances(StandardScaler()),
    "components": lambda: OnInstances(PCA(3, random_state=0)),
    "context": lambda: BagContext(),
    "context_half": lambda: BagContext(0.5),
    "dictionary": lambda: dictionary(),
    "dictionary_third": lambda: dictionary(fraction=0.3, random_state=0),
    "dictionary_of_20": lambda: dictionary(fraction=20, random_state=1, scale=0.5),
    "dictionary_as_it_is": lambda: dictionary(fraction=20, random_state=1, whiten=False),
}


def dictionary(**settings):
    """Return an RBFDictionary with these settings."""
    return RBFDictionary(**parameters(RBFDictionary, **settings))


def transformed(make, data_name):
    """Fit a transformer, and transform other bags."""
    data = DATA[data_name]()
    transformer = make()
    training = transformer.fit_transform(data.bags)
    other = transformer.transform(data.test)
    names = attempted(lambda: transformer.get_feature_names_out())
    return {
        "training": training.X,
        "other": other.X,
        "offsets": other.offsets,
        "feature_names": other.feature_names,
        "names_out": names,
        "learnt": learnt(transformer),
    }


for name, make in TRANSFORMERS.items():
    for data_name in ("digits", "synthetic"):
        # Whitening takes the reciprocal of small eigenvalues.
        rtol = 1e-6 if name.startswith("dictionary") else 1e-9
        recording(f"preprocessing/{name}/{data_name}", make, data_name, rtol=rtol)(transformed)


@recording("preprocessing/sparse")
def sparse_bags():
    """Transformers of features in CSR."""
    bags = converted(digits(), sparse.csr_matrix).bags
    makers = {name: TRANSFORMERS[name] for name in ("context", "dictionary_as_it_is", "scaled")}
    return {
        name: attempted(lambda make=make: make().fit_transform(bags).X)
        for name, make in makers.items()
    }


PIPELINES = {
    "kernel": (ORLogisticRegression(max_iter=15), {"fraction": 30}),
    "kernel_with_context": (ORLogisticRegression(max_iter=15), {"fraction": 30, "context": 0.5}),
    "kernel_as_it_is": (ORLogisticRegression(max_iter=15), {"fraction": 30, "whiten": False}),
    "narrow_kernel": (ORLogisticRegression(max_iter=15), {"fraction": 0.5, "scale": 0.5}),
    "kernel_sim": (SIM(n_phases=2, n_steps=10), {"fraction": 30}),
    "kernel_lsb_cmm": (LSBCMM(max_iter=5, n_components=6, random_state=0), {"fraction": 30}),
}


def fitted_kernel_pipeline(estimator, settings):
    """Fit the kernel version of a model."""
    given = parameters(kernel_pipeline, random_state=0, **settings)
    pipeline = kernel_pipeline(estimator, **given)
    return fitted(pipeline, synthetic()) | {
        "steps": [f"{name}: {type(step).__name__}" for name, step in pipeline.steps],
        "model": learnt(pipeline[-1]),
    }


for name, (estimator, settings) in PIPELINES.items():
    recording(f"preprocessing/{name}", estimator, settings, rtol=1e-6)(fitted_kernel_pipeline)


@recording("preprocessing/whitened_twice")
def whitened_twice():
    """A whitened dictionary must not be standardised: the model warns."""
    steps = [("kernel", dictionary(fraction=30, random_state=0))]
    model = BagPipeline([*steps, ("model", ORLogisticRegression(max_iter=2))])
    return attempted(lambda: model.fit(synthetic().bags, synthetic().y) and None)


@recording("preprocessing/cross_validation")
def cross_validation():
    """Folds and the measures of a model on them."""
    data = synthetic()
    folds = MultilabelStratifiedKFold(4, random_state=0)
    result = cross_validate_bags(
        ORLogisticRegression(max_iter=15), data.bags, data.y, cv=folds, random_state=0
    )
    times = ("fit_time", "score_time")
    return {
        "test": np.concatenate([test for _, test in folds.split(data.bags, data.y)]),
        "measures": {name: value for name, value in result.items() if name not in times},
    }
