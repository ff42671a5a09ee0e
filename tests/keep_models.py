"""Keep model files of this format, with what they answer, for all releases to come.

    python tests/keep_models.py

writes those of ``RECIPES`` that are not in ``tests/models/files`` yet; what is there is never
written again, because it stands for the files that people have. Add a recipe for whatever can be
in a file and is not yet: `tests/models/test_kept.py` finds what is missing. When `FORMAT` goes up,
everything is kept once more, in a folder beside the old one.

Run it with the oldest libraries allowed, as in ``make test-all``: scalers of a later scikit-learn
have parameters that an older one does not know.
"""

import inspect
import json
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

import unbag
from toys import MODELS, SCALERS, answers, make_colours
from unbag import BagContext, BagPipeline, Bags, OnInstances, ORLogisticRegression, RBFDictionary
from unbag.models import save
from unbag.models.container import FORMAT

KEPT = Path(__file__).parent / "models" / "files"
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
    return kind(random_state=0, **options).fit(*TRAINING)


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
    # As after a fit that was interrupted in its first iteration.
    model.log_likelihood_ = -np.inf
    return model


def streamed():
    """Fit a model to two batches, after which a third may come."""
    bags, y = TRAINING
    model = ORLogisticRegression().partial_fit(bags[:6], y[:6], classes=CLASSES)
    return model.partial_fit(bags[6:], y[6:])


def fitted_network():
    """Fit networks with a background, to label sets that may be wrong."""
    from unbag.torch import ORNetwork

    model = ORNetwork(
        (4, 3), context_units=2, encoding="quantile", n_members=2, max_iter=3, background=True,
        missed="learn-per-class", false=0.1, device="cpu", random_state=0,
    )  # fmt: skip
    return model.fit(*TRAINING)


def new_encoder(kept):
    """Return a module for the encoder of a kept model of some name, or None if it has none."""
    if kept != "ORNetwork-encoder":
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
    "ORLogisticRegression-stream": streamed,
    "ORNetwork": fitted_network,
    "ORNetwork-encoder": fitted_encoder,
}  # fmt: skip


def all_answers(model, bags, labels):
    """Return what a model or transformer makes of bags, by method, as JSON can hold it."""
    if hasattr(model, "transform"):
        return {"transform": model.transform(bags).X.tolist()}
    if model.classes_.dtype.kind != "U":
        labels = [[CLASSES.tolist().index(label) for label in each] for each in labels]
    said = answers(model, bags, labels)
    if isinstance(model, ORLogisticRegression):
        # Last, as it changes the model: a stream goes on where it was.
        model.partial_fit(bags, labels)
        said["coef_ after partial_fit"] = model.coef_
    return {name: answer.tolist() for name, answer in said.items()}


def main():
    folder = KEPT / f"format-{FORMAT}"
    folder.mkdir(parents=True, exist_ok=True)
    bags, labels = ASKED
    for name, fit in RECIPES.items():
        path = folder / f"{name}.unbag"
        if path.exists():
            continue
        save(fit(), path)
        asked = {"X": bags.X.tolist(), "offsets": bags.offsets.tolist(), "labels": labels}
        said = all_answers(unbag.load(path, encoder=new_encoder(name)), bags, labels)
        text = json.dumps({**asked, "answers": said}, ensure_ascii=False)
        path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
        print(f"{path.relative_to(KEPT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
