"""A file of every kind of model, scaler and value that a model file may hold."""

import copy
import functools
import inspect
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from toys import MODELS, SCALERS, make_colours, seeded
from unbag import BagContext, BagPipeline, Bags, OnInstances, ORLogisticRegression, RBFDictionary
from unbag.models import container
from unbag.models.container import save

CLASSES = np.array(["tit", "wren", "zaunkönig"])


def colours(seed, n_bags):
    """Bags of positive features with names, and their label sets as lists of names."""
    bags, y = make_colours(np.random.default_rng(seed), n_bags, largest=3)
    bags = Bags(
        np.abs(bags.X).round(3), bags.offsets,
        instance_labels=CLASSES[bags.instance_labels], feature_names=["pitch", "length"],
    )  # fmt: skip
    return bags, [CLASSES[row > 0].tolist() for row in y]


TRAINING = colours(0, 12)
ASKED = colours(1, 3)


def fitted_model(kind):
    """Fit a model of some class, with fewer numbers where their number is a parameter."""
    fewer = {"n_dimensions": 3, "n_concepts": 2, "n_epochs": 2, "n_components": 4}
    known = inspect.signature(kind).parameters
    options = {name: value for name, value in fewer.items() if name in known}
    return seeded(kind, **options).fit(*TRAINING)


def fitted_scaler(kind):
    """Fit a transformer of scikit-learn to the instances of bags."""
    known = inspect.signature(kind).parameters
    return OnInstances(kind(**({"n_quantiles": 5} if "n_quantiles" in known else {}))).fit(
        TRAINING[0]
    )


def fitted_kernel(of_matrix):
    """Fit a dictionary of sparse instances."""
    bags, _ = TRAINING
    return RBFDictionary(n_components=3, whiten=False, random_state=0).fit(
        Bags(of_matrix(bags.X), bags.offsets)
    )


def fitted_pipeline():
    """Fit a pipeline with every step that there is, and one that passes on."""
    steps = [
        ("scale", OnInstances(StandardScaler())),
        ("nothing", "passthrough"),
        ("context", BagContext(0.5)),
        ("kernel", RBFDictionary(n_components=4, random_state=0)),
        ("model", ORLogisticRegression(scaling=None, max_iter=5)),
    ]
    return BagPipeline(steps).fit(*TRAINING)


def fitted_background():
    """Fit a model with a background, to numbered classes, that relaxes an impossible bag."""
    bags, y = TRAINING
    numbers = [[CLASSES.tolist().index(label) for label in labels] for labels in y]
    bags = Bags.from_list([*bags, bags[0][:1]])
    model = ORLogisticRegression(background=True, max_iter=3).fit(bags, [*numbers, [0, 1, 2]])
    # As after steps that were too long.
    model.progress_ = replace(model.progress_, history=(-np.inf, *model.progress_.history))
    return model


def fitted_rates():
    """Fit a model that has asked held-out bags, and has learnt how often labels are wrong."""
    options = {"missed_rate": "learn-per-class", "background": "auto"}
    return ORLogisticRegression(**options).fit(*TRAINING)


def fitted_network():
    """Fit networks with a background, to label sets that may be wrong."""
    from unbag.torch import ORNetwork

    model = ORNetwork(
        (4, 3), context_units=2, encoding="quantile", n_members=2, max_iter=3, background=True,
        missed_rate="learn-per-class", false_rate=0.1, device="cpu", random_state=0,
    )  # fmt: skip
    return model.fit(*TRAINING)


def new_encoder(name):
    """Return a module for the encoder of the sample of some name, or None if it has none."""
    if name != "ORNetwork-encoder":
        return None
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Tanh())


def fitted_encoder():
    """Fit networks with an encoder that takes instances of another shape."""
    import torch

    from unbag.torch import ORNetwork

    torch.manual_seed(0)
    model = ORNetwork(
        (4,), context_units=0, n_members=2, max_iter=3, device="cpu", random_state=0,
        encoder=new_encoder("ORNetwork-encoder"), instance_shape=(1, 2),
    )  # fmt: skip
    return model.fit(*TRAINING)


RECIPES = {
    **{name: lambda kind=kind: fitted_model(kind) for name, kind in MODELS.items()},
    **{f"OnInstances-{name}": lambda kind=kind: fitted_scaler(kind)
       for name, kind in SCALERS.items()},
    "BagContext": lambda: BagContext(0.5).fit(TRAINING[0]),
    "RBFDictionary": lambda: RBFDictionary(n_components=3, random_state=0).fit(TRAINING[0]),
    "RBFDictionary-csr_matrix": lambda: fitted_kernel(sparse.csr_matrix),
    "RBFDictionary-csr_array": lambda: fitted_kernel(sparse.csr_array),
    "BagPipeline": fitted_pipeline,
    "ORLogisticRegression-background": fitted_background,
    "ORLogisticRegression-rates": fitted_rates,
    "ORNetwork": fitted_network,
    "ORNetwork-encoder": fitted_encoder,
}  # fmt: skip


#: What recipes need torch for.
OF_TORCH = {name for name in RECIPES if name.startswith("ORNetwork")}


@functools.cache
def content(name):
    """Return the bytes of the file of a sample."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        path = Path(folder, "sample.unbag")
        save(RECIPES[name](), path)
        return path.read_bytes()


@functools.cache
def _parts(name):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sample.unbag")
        path.write_bytes(content(name))
        return container.read(path)


def parts(name):
    """Return the header and the arrays of a sample, to be changed."""
    return copy.deepcopy(_parts(name))
