"""What one tree of the package answers: `same_answers.py` runs this under the old and the new one.

    PYTHONPATH=TREE/src python same_answers_probe.py TREE FOLDER [--quick] [--times] GROUP...

Each group of answers is written to FOLDER/GROUP.npz, each answer under a name such as
"letter-frost/background/coef". What the two trees call by different names stands in the first part.
"""

import argparse
import dataclasses
import json
import os
import sys
import warnings
from importlib import import_module
from inspect import Parameter, signature
from itertools import pairwise
from math import ceil
from operator import attrgetter
from pathlib import Path
from time import process_time

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_softmax
from sklearn.preprocessing import StandardScaler

import unbag
from unbag import AnyOf, BagPipeline, Bags, OnInstances, ORLogisticRegression, datasets
from unbag.labels import LabelSets
from unbag.pipeline import bag_pipeline, kernel_pipeline
from unbag.union import UnionProblem, infer, most_likely_labels

# What has other names in one of the trees.


def first(*names):
    """Import the first of these modules, or things in modules, that the tree has."""
    for name in names:
        module, _, thing = name.partition(":")
        try:
            found = import_module(module)
        except ModuleNotFoundError:
            continue
        if not thing or hasattr(found, thing):
            return getattr(found, thing) if thing else found
    return None


MLR, SLR = first("unbag.paper:MLR"), first("unbag.paper:SLR")
RIVALS = first("unbag.paper", "unbag.estimators.rivals")
STORED = first("unbag.tables.stored", "unbag.io.stored")
# Of the published line search: share, factor and first step.
SEARCH = (0.3, 0.5, None)
# Arguments: the name in the new tree, and in the old one.
RENAMED = {"missed_rate": "missed", "false_rate": "false"}
# What a fitted model says of itself, by the names that it has had, the newest first.
FACTS = {
    "coef": ("coef_",), "intercept": ("intercept_",), "n_iter": ("n_iter_",),
    "history": ("history_", "progress_.history"), "log_likelihood": ("log_likelihood_",),
    "converged": ("converged_",), "class_counts": ("class_counts_",), "relaxed": ("relaxed_",),
    "missed": ("missed_rate_", "missed_"), "false": ("false_rate_", "false_"),
    "has_background": ("has_background_",), "note": ("background_note_", "decision_.sentence"),
    "cost": ("background_cost_", "conditioner_.background_cost"),
    "threshold": ("threshold_", "decision_.threshold"),
    "scores": ("background_scores_", "decision_.scores"),
    "share": ("background_share_", "decision_.share"),
    "temperature": ("annotation_temperature_", "conditioner_.temperature"),
    "pool": ("pool_weights_",),
}  # fmt: skip
# Facts of models that may have a background: in one of the trees all others have them as well.
OF_BACKGROUND = {"missed", "false", "has_background", "cost", "temperature"}


def call(function, *given, **named):
    """Call a function by the names that its arguments have in this tree."""
    known = signature(function).parameters
    takes_any = any(each.kind is Parameter.VAR_KEYWORD for each in known.values())
    known = signature(infer).parameters if takes_any else known
    renamed = {name if name in known else RENAMED.get(name, name): v for name, v in named.items()}
    return function(*given, **renamed)


def watched(model, data, watch, **named):
    """Fit a model that calls `watch(iteration, log_likelihood)` after each iteration."""
    if "watch" not in signature(model.fit).parameters:
        return model.set_params(callback=watch).fit(*data, **named)

    def look(progress):
        return watch(len(progress.history), progress.history[-1])

    return model.fit(*data, watch=look, **named)


def continued(first_iterations, data, **options):
    """Fit for some iterations, and go on from there with as many as a fit may take."""
    model = call(ORLogisticRegression, max_iter=first_iterations, **options).fit(*data)
    if "start" in signature(model.fit).parameters:
        start = dataclasses.replace(model.progress_, history=())
        return call(ORLogisticRegression, **options).fit(*data, start=start)
    return model.set_params(warm_start=True, max_iter=1000).fit(*data)


def em(n_steps=50, pruned=0.0, sampled=1.0, scaling="standard", inference="auto", search=SEARCH):
    """Return the published algorithm."""
    if MLR is not None:
        return MLR(
            n_steps, pruned=pruned, sampled=sampled, scaling=scaling, inference=inference,
            search=search, random_state=0,
        )  # fmt: skip
    solvers = import_module("unbag.fitting.solvers")
    solvers.SUFFICIENT_GAIN, solvers.BACKTRACKING_FACTOR = search[:2]
    return ORLogisticRegression(
        alpha=0, solver="em" if sampled == 1 else "stochastic", max_iter=n_steps, tol=0,
        prune=pruned, sample_fraction=sampled, scaling=scaling, inference=inference,
        threshold="union", random_state=0,
    )  # fmt: skip


def em_supervised(n_steps):
    """Return the published algorithm for labelled instances."""
    if SLR is not None:
        return SLR(n_steps)
    return unbag.SupervisedLogisticRegression(
        alpha=0, solver="em", max_iter=n_steps, tol=0, threshold="union"
    )


# Answers.


class Answers(dict):
    """Named answers; an error is an answer, too."""

    def ask(self, case, work, *given, **named):
        """Keep what some work returns: arrays by name."""
        try:
            found = work(*given, **named)
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        self.update({f"{case}/{part}": plain(value) for part, value in found.items()})


def plain(value):
    """Return a value as an array without objects."""
    if isinstance(value, dict):
        value = json.dumps(value, default=lambda each: np.asarray(each).tolist(), sort_keys=True)
    value = np.asarray(value)
    return value if value.dtype.kind in "biufU" else np.asarray(value.astype(str).tolist())


def facts(model):
    """Return what a fitted model says of itself."""
    model, found = getattr(model, "model", model), {}
    for name, ways in FACTS.items():
        for way in ways if hasattr(model, "background") or name not in OF_BACKGROUND else ():
            try:
                value = attrgetter(way)(model)
            except AttributeError:
                continue
            if value is not None:
                found[name] = value() if callable(value) else value
                break
    return found


def answers(model, bags, y, **known):
    """Return what a fitted model says of itself and of bags."""
    found = facts(model)
    for name in ("predict", "predict_proba", "predict_instances", "predict_instances_proba"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(bags)
    if hasattr(model, "annotate"):
        found["annotate"] = model.annotate(bags, y, **known)
    if hasattr(model, "annotate_proba"):
        found["annotate_proba"] = model.annotate_proba(bags, y, **known)
        found["joint"] = model.annotate(bags, y, joint=True, **known)
    if hasattr(model, "log_likelihood"):
        found["bag_log_likelihood"] = model.log_likelihood(bags, y)
    return found


def fitted(model, bags, y, known=None, weight=None, **options):
    """Make a model with some options, fit it, and return its answers to the same bags."""
    given = {} if known is None else {"instance_labels": known}
    weighted = given if weight is None else given | {"sample_weight": weight}
    return answers(call(model, **options).fit(bags, y, **weighted), bags, y, **given)


# G1: inference.

KINDS = (
    "labels", "unknowns", "pins", "excluded", "groups", "overlaps", "rates", "groups and rates",
    "pins and groups", "all",
)  # fmt: skip
PRIOR_SCALES = (0.0, 1.0, 1.0, 3.0, 10.0, 40.0, 400.0)
RATES = (0.0, 0.0, 1e-9, 0.02, 0.2, 0.9)


def draw_problem(rng, kind):
    """Draw some bags of one kind: what `infer` takes."""
    everything = kind == "all"
    n_classes, n_bags = int(rng.integers(1, 15)), int(rng.integers(1, 41))
    sizes = rng.poisson(rng.choice([1, 4, 8, 16, 30], p=[0.05, 0.3, 0.3, 0.25, 0.1]), n_bags)
    n_instances = sizes.sum()
    log_prior = rng.normal(size=(n_instances, n_classes)) * rng.choice(PRIOR_SCALES)
    if rng.random() < 0.7:
        log_prior = log_softmax(log_prior, axis=1)
    y = np.zeros((n_bags, n_classes), dtype=int)
    for b, size in enumerate(sizes):
        # A few bags have too few instances for their labels.
        n_labels = rng.integers(0, min(n_classes, size + (rng.random() < 0.05)) + 1)
        y[b, rng.choice(n_classes, n_labels, replace=False)] = 1
    if kind == "unknowns" or everything:
        y[rng.random(y.shape) < rng.choice([0.1, 0.5])] = -1
    if kind == "excluded" or everything:
        log_prior[rng.random(log_prior.shape) < rng.choice([0.02, 0.1])] = -np.inf
    given = {}
    if "groups" in kind or kind == "overlaps" or everything:
        given["groups"] = [draw_groups(rng, n_classes, kind != "groups") for _ in range(n_bags)]
        y[rng.random(y.shape) < 0.3] = 0
    if "pins" in kind or everything:
        allowed = y != 0
        for b, own in enumerate(given.get("groups", ())):
            allowed[b, [c for group in own for c in group]] = True
        pins = np.full(n_instances, -1)
        bag = np.repeat(np.arange(n_bags), sizes)
        for i in np.flatnonzero(rng.random(n_instances) < 0.2):
            if allowed[bag[i]].any():
                pins[i] = rng.choice(np.flatnonzero(allowed[bag[i]]))
        given["instance_labels"] = pins
    if "rates" in kind or everything:
        given["missed_rate"], given["false_rate"] = rng.choice(RATES, (2, n_classes))
    return log_prior, np.append(0, np.cumsum(sizes)), y, given


def draw_groups(rng, n_classes, may_overlap):
    """Draw up to six groups of classes; either they overlap, or each class is in one at most."""
    count = int(rng.integers(0, 7))
    if may_overlap:
        sizes = rng.integers(1, min(n_classes, 5) + 1, count)
        return [rng.choice(n_classes, size, replace=False).tolist() for size in sizes]
    cuts = np.sort(rng.integers(0, n_classes + 1, count))
    parts = np.split(rng.permutation(n_classes), cuts)
    return [part.tolist() for part in parts if 1 < len(part) < n_classes]


def inferences(quick):
    """Ask for posteriors, likelihoods and likeliest labels of bags that are drawn at random."""
    found, n_bags, number = Answers(), 0, 0
    columns = {name: [] for name in ("kind", "log_likelihood", "error_bound", "method", "size")}
    values = {name: [] for name in ("posterior", "relaxed", "joint")}
    while n_bags < (2_000 if quick else 20_000):
        rng, kind = np.random.default_rng([1, number]), KINDS[number % len(KINDS)]
        log_prior, offsets, y, given = draw_problem(rng, kind)
        policy = ("keep", "relax")[number // len(KINDS) % 2]
        number, n_bags = number + 1, n_bags + len(y)
        try:
            answer = call(infer, log_prior, offsets, y, on_impossible=policy, n_jobs=1, **given)
            joint = call(most_likely_labels, log_prior, offsets, y, **given)
        except Exception as error:
            found[f"{kind}/{number}/error"] = plain(f"{type(error).__name__}: {error}")
            continue
        columns["kind"].append(np.full(len(y), kind, dtype="U20"))
        columns["size"].append(np.diff(offsets) * y.shape[1])
        for name in ("log_likelihood", "error_bound", "method"):
            columns[name].append(getattr(answer, name))
        values["posterior"].append(answer.posterior.ravel())
        values["relaxed"].append(answer.relaxed.ravel())
        values["joint"].append(joint)
    found.update({name: np.concatenate(each) for name, each in (columns | values).items()})
    return found


# G2: fits.


def data_sets(quick):
    """Yield data sets: name, bags, label sets as an indicator, true labels of instances."""
    frost, digits = datasets.load_letter_frost(), datasets.load_digit_bags()
    drawn = datasets.make_bags(
        200, n_features=6, bag_size=(1, 8), labels_per_bag=(1, 4), separability=2.5,
        background=0.2, label_noise=0.03, random_state=0,
    )  # fmt: skip
    for data in (frost, digits, drawn):
        yield from chosen(data.name, data.bags.X, data.bags.offsets, data.y, data, quick)
    folder = os.environ.get("UNBAG_DATA")
    for name in ("hja_union", "msrcv2") if folder and not quick else ():
        with np.load(Path(folder) / f"{name}.npz") as kept:
            truth = kept["instance_labels"].astype(int)
            yield name, Bags(kept["X"], kept["offsets"]), kept["bag_labels"].astype(np.int8), truth


def chosen(name, X, offsets, y, data, quick):
    """Yield a shipped data set, of which a quick run takes 60 bags."""
    n_bags = 60 if quick else len(y)
    last = offsets[n_bags]
    truth = np.asarray(data.instance_labels)[:last]
    yield name.split()[0], Bags(X[:last], offsets[: n_bags + 1]), y[:n_bags], truth


LINEAR = {
    "plain": {}, "threads": {"n_jobs": 2}, "drop": {"on_impossible": "drop"},
    "weak penalty, minmax": {"alpha": 0.01, "scaling": "minmax"},
    "unscaled": {"scaling": None, "max_iter": 60}, "three iterations": {"max_iter": 3, "tol": 0},
    "union": {"threshold": "union"}, "threshold 0.3": {"threshold": 0.3},
    "background": {"background": True},
    "background that costs": {"background": True, "background_cost": 2.0},
    "auto": {"background": "auto"},
    "auto of given cost": {"background": "auto", "background_cost": 3.0},
    "rates": {"missed_rate": 0.1, "false_rate": 0.02},
    "learn": {"missed_rate": "learn", "false_rate": "learn"},
    "learn per class": {"missed_rate": "learn-per-class", "false_rate": "learn-per-class"},
    "auto, learn": {"background": "auto", "missed_rate": "learn", "false_rate": "learn"},
    "cost, learn": {"background": True, "background_cost": 1.0, "false_rate": "learn"},
}  # fmt: skip


def variants(bags, y, truth):
    """Yield other forms of bags and label sets: name, and what `fitted` takes."""
    rng, n_classes = np.random.default_rng(7), y.shape[1]
    X, offsets = bags.X, bags.offsets
    thin = np.where(np.abs(X) < np.median(np.abs(X)), 0.0, X)
    yield "float32", {"bags": Bags(X.astype(np.float32), offsets), "y": y}, {}
    yield "sparse", {"bags": Bags(csr_array(thin), offsets), "y": y}, {}
    thin = csr_array(thin.astype(np.float32))
    yield "sparse float32", {"bags": Bags(thin, offsets), "y": y}, {}
    same = {"bags": bags, "y": y}
    yield "weights", same, {"weight": rng.integers(0, 4, len(y)) * 0.5}
    bag = np.repeat(np.arange(len(y)), bags.sizes)
    is_known = (rng.random(len(truth)) < 0.2) & (truth >= 0)
    known = np.where(is_known & (y[bag, np.maximum(truth, 0)] == 1), truth, -1)
    yield "known", same, {"known": known}
    unknown = y.astype(int)
    unknown[rng.random(y.shape) < 0.1] = -1
    yield "unknown", {"bags": bags, "y": unknown}, {}
    wrong = np.where(rng.random(y.shape) < 0.05, 1 - y, y)
    yield "wrong labels", {"bags": bags, "y": wrong}, {}
    names = [f"c{c:02}" for c in range(n_classes)]
    vague = [
        {
            AnyOf(names[c], names[(c + 1) % n_classes]) if rng.random() < 0.2 else names[c]
            for c in np.flatnonzero(row)
        }
        for row in y
    ]
    yield "groups", {"bags": bags, "y": LabelSets.from_sets(vague, classes=names)}, {}


def fits(quick, folder):
    """Fit every estimator, with every option, to every data set."""
    found = Answers()
    for data, bags, y, truth in data_sets(quick):
        found[f"{data}/data/X"], found[f"{data}/data/y"] = bags.X, y
        found.ask(f"{data}/given weights", given_weights, bags, y)
        for name, options in LINEAR.items():
            found.ask(f"{data}/{name}", fitted, ORLogisticRegression, bags, y, **options)
        for name, given, others in variants(bags, y, truth):
            others = others | {"model": ORLogisticRegression}
            found.ask(f"{data}/{name}", fitted, **given, **others)
            found.ask(f"{data}/{name}, auto", fitted, **given, **others, background="auto")
        found.ask(f"{data}/continued", continued_fit, bags, y)
        found.ask(f"{data}/watched", watched_fit, bags, y)
        for name, (model, options) in other_estimators(quick).items():
            found.ask(f"{data}/{name}", fitted, model, bags, y, **options)
        model = unbag.SupervisedLogisticRegression()
        found.ask(f"{data}/supervised", supervised_fit, bags, y, truth, model)
        path = write_table(bags, y, folder / f"{data}.parquet")
        for name, fit in TABLE_FITS.items():
            found.ask(f"{data}/{name}", fit, path, bags, y)
    return found


def given_weights(bags, y):
    """Return objective, gradient and posteriors at weights that are drawn at random."""
    scaled = StandardScaler().fit_transform(bags.X)
    weights = np.random.default_rng(3).normal(size=(bags.n_features, y.shape[1])) * 0.3
    log_prior = log_softmax(scaled @ weights, axis=1)
    answer = UnionProblem(bags.offsets, y).infer(log_prior, on_impossible="relax")
    gradient = (answer.posterior - np.exp(log_prior)).T @ scaled
    return {"objective": answer.log_likelihood.sum(), "gradient": gradient}


def continued_fit(bags, y):
    """Fit for five iterations, and go on from there."""
    return answers(continued(5, (bags, y)), bags, y)


def watched_fit(bags, y):
    """Record a fit's iterations, of which the seventh is the last."""
    seen = []

    def watch(iteration, log_likelihood):
        seen.append((iteration, log_likelihood))
        return iteration == 7

    return facts(watched(ORLogisticRegression(), (bags, y), watch)) | {"seen": seen}


def supervised_fit(bags, y, truth, model):
    """Fit a model to labels of all instances; where there is none, to the first of the bag."""
    of_bag = y.argmax(axis=1)[np.repeat(np.arange(len(y)), bags.sizes)]
    model.fit(bags, y, np.where(truth < 0, of_bag, truth))
    return answers(model, bags, y)


def other_estimators(quick):
    """Return what makes other estimators than the linear model, and the options."""
    seed = {"random_state": 0}

    def scaled():
        steps = OnInstances(StandardScaler()), ORLogisticRegression(scaling=None)
        return BagPipeline(list(zip(("scale", "model"), steps, strict=True)))

    return {
        "dummy bags": (unbag.DummyBags, {}),
        "dummy instances": (unbag.DummyInstances, {}),
        "context": (lambda: bag_pipeline(ORLogisticRegression(), context=0.5), {}),
        "kernel": (lambda: kernel_model(ORLogisticRegression(max_iter=50)), {}),
        "on instances": (scaled, {}),
        "SIM": (RIVALS.SIM, {"n_phases": 2 if quick else 5}),
        "MIMLFast": (RIVALS.MIMLFast, seed | {"n_epochs": 5}),
        "LSBCMM": (RIVALS.LSBCMM, {"max_iter": 5 if quick else 20}),
        "MIMLSVM": (RIVALS.MIMLSVM, seed),
        "MIMLNN": (RIVALS.MIMLNN, seed),
    }


def kernel_model(model):
    """Put a small kernel before a model."""
    return kernel_pipeline(model, n_components=100, random_state=0)


def write_table(bags, y, path):
    """Write bags as a table, and return its path."""
    import pyarrow as pa
    from pyarrow import parquet

    names = class_names(y)
    columns = {"bag": [f"b{b:04}" for b in range(len(y))]}
    columns["labels"] = ["|".join(names[row == 1]) for row in y]
    columns = {name: np.repeat(each, bags.sizes) for name, each in columns.items()}
    features = {f"x{j}": bags.X[:, j] for j in range(bags.n_features)}
    parquet.write_table(pa.table(columns | features), path)
    return path


def class_names(y):
    """Return names of the columns of an indicator."""
    return np.array([f"c{c:02}" for c in range(y.shape[1])])


def fit_out_of_core(path, bags, y, background=False):
    """Fit to a table on disk, in blocks of 64 kB."""
    if not hasattr(STORED, "BLOCK_BYTES"):
        raise AttributeError(f"{STORED.__name__} has no BLOCK_BYTES: blocks are not cut.")
    STORED.BLOCK_BYTES = 1 << 16
    model = ORLogisticRegression(background=background)
    return facts(unbag.out_of_core.fit(model, path, untagged="absent"))


def fit_on_cluster(path, bags, y):
    """Fit to bags in three partitions, on a cluster of threads."""
    from unbag import dask

    cuts, sets = np.linspace(0, len(y), 4).astype(int), LabelSets(y, class_names(y))
    pairs = [(bags[start:stop], sets[start:stop]) for start, stop in pairwise(cuts)]
    return facts(dask.fit(ORLogisticRegression(background="auto", max_iter=30), pairs))


TABLE_FITS = {
    "in a table": lambda path, bags, y: facts(unbag.fit(str(path), untagged="absent")),
    "out of core": fit_out_of_core,
    "out of core, auto": lambda *given: fit_out_of_core(*given, background="auto"),
    "on a cluster": fit_on_cluster,
}


# G3: the paper's expectation maximisation.


def paper(quick):
    """Fit the published algorithm and its variants."""
    found = Answers()
    cases = {
        "em": {}, "minmax": {"scaling": "minmax"}, "unscaled": {"scaling": None},
        "pruned": {"pruned": 0.3}, "sampled": {"sampled": 0.2}, "fast": {"inference": "fast"},
        "search": {"search": (0.1, 0.7, None)},
    }  # fmt: skip
    for data, bags, y, truth in data_sets(quick):
        for name, options in cases.items():
            options = options | {"model": em}
            found.ask(f"{data}/{name}/after 20", some, "coef", bags, y, n_steps=20, **options)
            found.ask(f"{data}/{name}/labels after 50", some, "annotate", bags, y, **options)
        found.ask(f"{data}/kernel/after 20", some, "coef", bags, y, em_with_kernel)
        name, model = f"{data}/supervised/after 20", em_supervised(20)
        found.ask(name, supervised_coefficients, bags, y, truth, model)
    return found


def supervised_coefficients(*given):
    """Fit a model to labels of all instances, and return its coefficients."""
    return {"coef": supervised_fit(*given)["coef"]}


def em_with_kernel():
    """Put a kernel before the published algorithm."""
    return kernel_model(em(20, scaling=None))


def some(part, bags, y, model, **options):
    """Return a part of the answers of a model."""
    return {part: fitted(model, bags, y, **options)[part]}


# G4: networks; G6: losses.


def networks(quick):
    """Fit networks and committees, with one thread and one seed."""
    import torch

    torch.set_num_threads(1)
    from unbag.torch import ORNetwork

    drawn = datasets.make_bags(
        60 if quick else 120, n_features=5, n_classes=4, background=0.1, random_state=1
    )
    bags, y = drawn.bags, drawn.y
    common = {"hidden": (24, 24), "max_iter": 40 if quick else 100, "device": "cpu"}
    cases = {
        "committee": {"n_members": 9},
        "committee, auto": {"n_members": 9, "background": "auto"},
        "committee, learn": {"n_members": 9, "missed_rate": "learn"},
        "committee without context": {"n_members": 9, "context_units": 0},
        "networks": {"committee": False, "n_members": 3},
        "networks, auto": {"committee": False, "n_members": 3, "background": "auto"},
        "networks, rates": {"committee": False, "n_members": 2, "false_rate": "learn-per-class"},
        "networks, cost": {"n_members": 2, "background": True, "background_cost": 1.0},
        "quantiles": {"n_members": 2, "encoding": "quantile", "batch_size": 20},
        "distilled": {"n_members": 2, "distill": 1},
        "encoder": {"n_members": 2, "encoder": torch.nn.Linear(5, 7)},
    }
    found = Answers()
    for name, options in cases.items():
        torch.manual_seed(0)
        if "encoder" in options:
            options["encoder"].reset_parameters()
        found.ask(name, fitted, ORNetwork, bags, y, random_state=0, **common | options)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    known = np.where(np.arange(bags.n_instances) % 7 == 0, drawn.instance_labels, -1)
    options = common | {"n_members": 9, "random_state": 0}
    name = "committee, weights and known"
    found.ask(name, fitted, ORNetwork, bags, y, known, weight, **options)
    return found


def losses(quick):
    """Return losses, their gradients, posteriors and classes that torch finds on the CPU."""
    import torch

    torch.set_num_threads(1)
    found = Answers()
    for number in range(60 if quick else 600):
        kind = KINDS[number % len(KINDS)]
        log_prior, offsets, y, given = draw_problem(np.random.default_rng([6, number]), kind)
        given["on_impossible"] = ("keep", "relax")[number // len(KINDS) % 2]
        for name, dtype in (("32", torch.float32), ("64", torch.float64)):
            named = dict(given)
            for key, value in given.items():
                if isinstance(value, np.ndarray):
                    named[key] = torch.tensor(value, dtype=dtype if "rate" in key else None)
            logits = torch.tensor(log_prior, dtype=dtype, requires_grad=True)
            has_background = kind in ("labels", "unknowns") and y.shape[1] > 1
            named["background"] = has_background
            rest = offsets, torch.tensor(y[:, :-1] if has_background else y)
            case, rng = f"{kind}/{name}/{number}", np.random.default_rng([7, number])
            found.ask(f"{case}/loss", loss_of_logits, rng, logits, *rest, **named)
            found.ask(f"{case}/linear", loss_of_layer, rng, logits, *rest, **named)
            found.ask(f"{case}/posterior", posteriors, logits.detach(), *rest, **named)
    return found


def loss_of_logits(rng, logits, offsets, targets, **named):
    """Return `union_loss` and its gradient."""
    import torch

    from unbag.torch import union_loss

    weight = torch.tensor(rng.random(len(targets)), dtype=logits.dtype)
    reduction = ("mean", "instances", "sum", "none")[rng.integers(4)]
    given = named | {"weight": weight, "reduction": reduction}
    loss = call(union_loss, logits, offsets, targets, **given)
    loss.sum().backward()
    return {"loss": loss.detach(), "gradient": logits.grad}


def loss_of_layer(rng, logits, offsets, targets, **named):
    """Return `union_loss_linear` and the gradient of its layer."""
    import torch

    from unbag.torch import union_loss_linear

    features = torch.tensor(rng.normal(size=(len(logits), 3)), dtype=logits.dtype)
    drawn = rng.normal(size=(logits.shape[1], 3))
    layer = torch.tensor(drawn, dtype=logits.dtype, requires_grad=True)
    loss = call(union_loss_linear, features, layer, None, offsets, targets, **named)
    loss.backward()
    return {"loss": loss.detach(), "gradient": layer.grad}


def posteriors(*given, **named):
    """Return posteriors of logits, and the classes of instances."""
    from unbag import torch as ours

    return {
        "posterior": call(ours.posterior, *given, **named),
        "annotate": call(ours.annotate, *given, **named),
        "joint": call(ours.annotate, *given, joint=True, **named),
    }


# Times.


def timed_work(name):
    """Return what is timed under a name, as a function without arguments."""
    what, _, detail = name.partition(": ")
    if what == "fit":
        options, n_bags = FITS[detail]
        data = datasets.make_bags(
            n_bags, n_features=20, n_classes=8, bag_size=(3, 12), labels_per_bag=(1, 5),
            separability=1.5, background=0.1, random_state=0,
        )  # fmt: skip
        model = call(ORLogisticRegression, max_iter=25, tol=0, n_jobs=1, **options)
        return lambda: model.fit(data.bags, data.y)
    if what == "annotate":
        data = datasets.make_bags(
            3000, n_features=20, n_classes=8, labels_per_bag=(1, 4), random_state=0
        )
        background = detail == "background"
        model = ORLogisticRegression(background=background, max_iter=10, n_jobs=1)
        model.fit(data.bags[:200], data.y[:200])
        if detail == "jointly":
            return lambda: model.annotate(data.bags, data.y, joint=True)
        return lambda: model.annotate_proba(data.bags, data.y)
    k, rng = int(detail.split()[0]), np.random.default_rng(0)
    n_bags, n = max(16, 20_000 // 2**k), max(6, k + 4)
    log_prior = log_softmax(rng.normal(size=(n_bags * n, k + 2)), axis=1)
    y = np.zeros((n_bags, k + 2), dtype=int)
    y[:, :k] = 1
    given = {}
    if what == "groups":
        y[:, :2], given["groups"] = 0, [[[0, 1]]] * n_bags
    if what == "rates":
        given = {"missed_rate": 0.1, "false_rate": 0.05}
    rates = {key: value for key, value in given.items() if key != "groups"}
    problem = UnionProblem(np.arange(n_bags + 1) * n, y, groups=given.get("groups"))
    return lambda: call(problem.infer, log_prior, n_jobs=1, **rates)


FITS = {
    "plain": ({}, 600),
    "background": ({"background": True, "background_cost": 1.0}, 400),
    "learnt rates": ({"missed_rate": "learn", "false_rate": "learn"}, 200),
    "auto": ({"background": "auto"}, 100),
}
TIMED = (
    *(f"fit: {name}" for name in FITS),
    *(f"labels: {k}" for k in range(1, 15)),
    *(f"groups: {k}" for k in (3, 6, 9)),
    *(f"rates: {k}" for k in (2, 4, 6)),
    "annotate: proba", "annotate: jointly", "annotate: background",
)  # fmt: skip


def serve_times():
    """Run what is asked for, by its name, one per line; answer with seconds of this process."""
    prepared, times = {}, {}
    print(json.dumps(TIMED), flush=True)
    for line in sys.stdin:
        name = line.strip()
        if name not in prepared:
            prepared[name] = timed_work(name)
            prepared[name]()
            # Often enough for a twentieth of a second.
            times[name] = ceil(0.05 / max(seconds(prepared[name], 1), 1e-5))
        print(seconds(prepared[name], times[name]), flush=True)


def seconds(work, times):
    """Return the seconds of this process that some work takes, done so many times."""
    start = process_time()
    for _ in range(times):
        work()
    return (process_time() - start) / times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("groups", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--times", action="store_true")
    given = parser.parse_args()
    used = Path(unbag.__file__).resolve()
    if not used.is_relative_to(given.tree.resolve()):
        sys.exit(f"unbag is that of {used}, not of {given.tree}: set PYTHONPATH.")
    warnings.simplefilter("ignore")
    if given.times:
        serve_times()
        return
    work = {
        "G1": lambda: inferences(given.quick),
        "G2": lambda: fits(given.quick, given.folder),
        "G3": lambda: paper(given.quick),
        "G4": lambda: networks(given.quick),
        "G6": lambda: losses(given.quick),
    }
    for group in given.groups:
        np.savez(given.folder / f"{group}.npz", **work[group]())


if __name__ == "__main__":
    main()
