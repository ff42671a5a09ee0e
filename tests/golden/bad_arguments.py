"""Arguments of Python functions that cannot be used, and what is said of each."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

import unbag
from command_line import cleaned
from fixed_data import synthetic
from model_answers import why_lacking
from recording import attempted, recording
from renamed import parameters
from unbag import Bags, LabelSets, MultilabelStratifiedKFold, Unknown, datasets, estimators, metrics
from unbag.union import infer, most_likely_labels, sample_labels


def said_of(make):
    """Return what a call ends with."""
    return attempted(lambda: type(make()).__name__)


def cases(name, call, arguments):
    """Record what a function says of each of these arguments."""
    for what, given in arguments.items():
        recording(f"bad_arguments/{name}/{what}", lambda given=given: call(given))(said_of)


LABEL_SETS = {
    "a string for a set": [{"tit"}, "wren"],
    "an array of strings": np.array(["tit", "wren"]),
    "an array of numbers": np.array([2, 3]),
    "an unknown for a set": [{"tit"}, Unknown("wren")],
    "None for a set": [{"tit"}, None],
    "NaN for a set": [{"tit"}, float("nan")],
    "None in a set": [{"tit"}, {None}],
    "an unknown None": [{"tit"}, {Unknown(None)}],
    "NaN in a set": [{1.0}, {float("nan")}],
    "a list in a list": [{"tit"}, [["wren"]]],
    "bytes": [{"tit"}, {b"wren"}],
    "present and unknown": [{"tit", Unknown("tit")}],
    "numbers and strings": [{"tit"}, {3}],
    "a string": "wren",
    "a number": 7,
    "None": None,
    "two": np.array([[1.0, 0.0], [0.0, 2.0]]),
    "a half": np.array([[1.0, 0.0], [0.0, 0.5]]),
    "NaN": sparse.csr_array(np.array([[1.0, 0.0], [0.0, np.nan]])),
    "words in a table": pd.DataFrame({"wren": [1, 0], "owl": ["yes", "no"]}),
    "a gap in a table": pd.DataFrame({"wren": [1, None]}),
}
cases("LabelSets.parse", LabelSets.parse, LABEL_SETS)

CLASSES = {
    "too few": ["tit"],
    "twice": ["tit", "wren", "tit"],
    "None": ["tit", None],
    "NaN": [float("nan")],
    "nested": [["tit", "wren"]],
}
cases(
    "LabelSets.parse classes",
    lambda classes: LabelSets.parse([{"tit"}, {"tit", Unknown("wren")}], classes=classes),
    CLASSES,
)
INDICATOR = [[1, 0, -1], [0, 1, 1]]
cases(
    "LabelSets",
    lambda given: given(),
    {
        "one dimension": lambda: LabelSets(np.array([1, 0])),
        "too few classes": lambda: LabelSets(INDICATOR, ["wren"]),
        "a class twice": lambda: LabelSets(INDICATOR, ["wren", "tit", "wren"]),
        "masks overlap": lambda: LabelSets.from_masks([[1, 0], [0, 1]], [[0, 0], [0, 1]]),
        "masks differ": lambda: LabelSets.from_masks([[1, 0]], [[0]]),
        "a present class left out": lambda: LabelSets(INDICATOR, list("abc")).reindex(["a", "c"]),
        "a key too large": lambda: LabelSets(INDICATOR)[2],
        "a short mask": lambda: LabelSets(INDICATOR)[[True]],
    },
)

BAGS = {
    "X of one dimension": {"X": np.ones(3), "offsets": [0, 3]},
    "X of three": {"X": np.ones((1, 2, 3)), "offsets": [0, 1]},
    "X of words": {"X": [["a"]], "offsets": [0, 1]},
    "X of objects": {"X": np.array([[1]], dtype=object), "offsets": [0, 1]},
    "X complex": {"X": [[1j]], "offsets": [0, 1]},
    "offsets fall": {"offsets": [0, 2, 1, 3]},
    "offsets fall, with ids": {"offsets": [0, 2, 1, 3], "ids": ["x", "y", "z"]},
    "offsets begin late": {"offsets": [1, 3]},
    "offsets end early": {"offsets": [0, 2]},
    "offsets end late": {"offsets": [0, 4]},
    "offsets of floats": {"offsets": [0.0, 3.0]},
    "no offsets": {"offsets": []},
    "offsets nested": {"offsets": [[0, 3]]},
    "too few ids": {"ids": ["x"]},
    "an id twice": {"ids": ["x", "x"]},
    "too few instance labels": {"instance_labels": ["a"]},
    "too many feature names": {"feature_names": ["f", "g"]},
}
cases("Bags", lambda given: Bags(**{"X": np.ones((3, 1)), "offsets": [0, 1, 3]} | given), BAGS)
LISTS = {
    "widths": ([np.ones((1, 2)), np.ones((1, 3))], {}),
    "widths, with ids": ([np.ones((1, 2)), np.ones((1, 3))], {"ids": ["x", "Y"]}),
    "one dimension": ([np.ones((1, 2)), np.ones(2)], {"ids": ["x", "y"]}),
    "an empty list": ([np.ones((1, 2)), []], {}),
    "words": ([[["a"]]], {}),
    "nothing": ([], {}),
    "too many ids": ([np.ones((1, 1))], {"ids": ["x", "y"]}),
    "too few labels": ([np.ones((2, 1))], {"instance_labels": [["a"]]}),
}
cases("Bags.from_list", lambda given: Bags.from_list(given[0], **given[1]), LISTS)
TABLE = pd.DataFrame({"night": ["a", "a", "b"], "pitch": [1.0, 2.0, 3.0], "bird": ["x", "y", "z"]})
cases(
    "Bags.from_table",
    lambda given: Bags.from_table(TABLE, **given),
    {
        "no such bag": {"bag": "day"},
        "no such feature": {"bag": "night", "features": ["pitch", "tempo"]},
        "no such label": {"bag": "night", "instance_labels": "species"},
        "words as feature": {"bag": "night", "features": ["pitch", "bird"]},
        "no features": {"bag": "night", "features": []},
    },
)
SMALL = Bags(np.ones((5, 2)), [0, 2, 5])
WIDE = Bags(np.ones((5, 3)), [0, 2, 5])
cases(
    "Bags methods",
    lambda given: given(),
    {
        "with_features: rows": lambda: SMALL.with_features(np.ones((4, 2))),
        "with_features: names": lambda: SMALL.with_features(np.ones((5, 2)), ["f"]),
        "concatenate: widths": lambda: Bags.concatenate(
            [SMALL, SMALL.with_features(np.ones((5, 3)))]
        ),
        "concatenate: nothing": lambda: Bags.concatenate([]),
        "index: too large": lambda: SMALL[7],
        "index: a word": lambda: SMALL["rec1"],
        "index: a mask": lambda: SMALL[[True]],
        "as an array": lambda: np.asarray(SMALL),
    },
)

INFER = {
    "NaN": {"log_prior": [[0, 0], [0, np.nan], [0, 0]]},
    "infinity": {"log_prior": [[0, 0], [0, 0], [np.inf, 0]]},
    "too small": {"log_prior": np.full((3, 2), np.finfo(float).min)},
    "words": {"log_prior": [["a", "b"]] * 3},
    "columns": {"log_prior": np.zeros((3, 3))},
    "one dimension": {"log_prior": np.zeros(3)},
    "offsets fall": {"offsets": (0, 3, 2)},
    "offsets end late": {"offsets": (0, 2, 4)},
    "offsets begin late": {"offsets": (1, 2, 3)},
    "offsets of floats": {"offsets": (0.0, 2.0, 3.0)},
    "no offsets": {"offsets": ()},
    "rows of y": {"y": ((1, 0),)},
    "two in y": {"y": ((1, 2), (1, 1))},
    "a half in y": {"y": ((1, 0), (0.5, 1))},
    "NaN in y": {"y": ((1, 0), (np.nan, 1))},
    "words in y": {"y": (("a", "b"), ("a", "b"))},
    "a pin that is no class": {"instance_labels": [0, -1, 5]},
    "a pin that is forbidden": {"instance_labels": [0, 1, -1]},
    "too few pins": {"instance_labels": [0, 1]},
    "pins of floats": {"instance_labels": [0.0, 1.0, 1.0]},
}
for function in (infer, most_likely_labels, sample_labels):
    more = {"random_state": 0} if function is sample_labels else {}
    usual = {"log_prior": np.zeros((3, 2)), "offsets": (0, 2, 3), "y": ((1, 0), (1, 1))} | more
    cases(
        function.__name__,
        lambda given, function=function, usual=usual: function(**(usual | given)),
        INFER,
    )
OPTIONS = {
    "method": {"method": "slow"},
    "tolerance of zero": {"tolerance": 0.0},
    "tolerance of NaN": {"tolerance": np.nan},
    "no threads": {"n_threads": 0},
    "half a thread": {"n_threads": 1.5},
}
cases(
    "infer options",
    lambda given: infer(np.zeros((1, 1)), [0, 1], [[1]], **parameters(infer, **given)),
    OPTIONS,
)


def misused(model_class):
    """Return what an estimator says of data that do not fit, before and after it is fitted."""
    data = synthetic()
    known = {"instance_labels": data.bags.instance_labels}
    holed = data.bags.X.copy()
    holed[7, 1] = np.nan
    model = model_class().fit(data.bags, data.y)
    renamed = data.test.with_features(data.test.X, ["x0", "x1", "x2", "x3", "x4", "y5"])
    return {
        "lacking": why_lacking(model),
        "not fitted": attempted(lambda: model_class().predict(data.test)),
        "NaN": attempted(lambda: model_class().fit(data.bags.with_features(holed), data.y)),
        "too few label sets": attempted(lambda: model_class().fit(data.bags, data.y[:-1])),
        "no label sets": attempted(lambda: model_class().fit(data.bags, None)),
        "no bags": attempted(lambda: model_class().fit(data.bags[:0], data.y[:0])),
        "three dimensions": attempted(lambda: model_class().fit(np.ones((2, 2, 2)), data.y[:2])),
        "strange parameter": attempted(lambda: model_class().set_params(colour="red")),
        "too few features": attempted(lambda: model.predict(np.ones((2, 5)))),
        "other names": attempted(lambda: model.predict(renamed)),
        "a strange label": attempted(lambda: model.score(data.test[:1], [{"owl"}])),
        "a strange pin": attempted(
            lambda: type(model_class().fit(data.bags, data.y, instance_labels=["owl"] * 4)).__name__
        ),
        "sparse": attempted(
            lambda: (
                type(
                    model_class().fit(
                        Bags(sparse.csr_array(data.bags.X), data.bags.offsets, **known), data.y
                    )
                ).__name__
            )
        ),
    }


SETTINGS = {
    "LSBCMM": {"variance": -1, "n_components": 0, "concentration": "x", "max_iter": 0, "tol": -1,
               "scaling": "large"},
    "MIMLFast": {"n_dimensions": 0, "n_concepts": 1.5, "norm_bound": -1, "learning_rate": np.nan,
                 "decay": -1, "n_epochs": 0, "scaling": "large"},
    "MIMLNN": {"ratio": -1, "alpha": -1, "scaling": "large"},
    "MIMLSVM": {"ratio": "x", "gamma": "wide", "C": 0, "scaling": "large"},
    "ORLogisticRegression": {
        "alpha": -1, "solver": "sgd", "max_iter": 0, "tol": -1, "prune": 2, "sample_fraction": -1,
        "on_impossible": "ignore", "on_intractable": "drop", "inference": "slow", "n_threads": 0,
    },
    "SIM": {"alpha": 0, "aggregation": "mean", "solver": "cccp", "n_phases": 0, "n_steps": 0,
            "eta0": -1, "scaling": "large"},
    "SupervisedLogisticRegression": {"alpha": -1, "solver": "stochastic", "max_iter": 0, "tol": -1},
}  # fmt: skip


def wrong_setting(model_class, settings):
    """Return what an estimator says of a parameter that is out of its range."""
    model = model_class(**parameters(model_class, **settings))
    return said_of(lambda: model.fit(synthetic().bags, synthetic().y))


for name in estimators.__all__:
    model_class = getattr(estimators, name)
    if isinstance(model_class, type):
        recording(f"bad_arguments/{name}", model_class)(misused)
        for setting, value in SETTINGS.get(name, {}).items():
            where = f"bad_arguments/{name} settings/{setting}={value}"
            recording(where, model_class, {setting: value})(wrong_setting)


def transformed(name, **settings):
    """Fit a transformer, with settings by their first names, to small bags."""
    transformer_class = getattr(unbag, name)
    return transformer_class(**parameters(transformer_class, **settings)).fit(synthetic().bags)


cases(
    "transformers",
    lambda given: given(),
    {
        "negative context": lambda: transformed("BagContext", weight=-0.1),
        "context of a word": lambda: transformed("BagContext", weight="1"),
        "scale of zero": lambda: transformed("RBFDictionary", scale=0),
        "scale of NaN": lambda: transformed("RBFDictionary", scale=np.nan),
        "fraction of zero": lambda: transformed("RBFDictionary", fraction=0),
        "fraction above one": lambda: transformed("RBFDictionary", fraction=1.5),
        "fraction of a word": lambda: transformed("RBFDictionary", fraction="all"),
        "equal instances": lambda: unbag.RBFDictionary().fit(Bags(np.full((3, 2), 0.1), [0, 3])),
        "no instances": lambda: unbag.RBFDictionary().fit(SMALL[:0]),
        "too few folds": lambda: MultilabelStratifiedKFold(n_splits=1),
        "folds that are not shuffled": lambda: MultilabelStratifiedKFold(
            shuffle=False, random_state=0
        ),
        "too few bags": lambda: list(MultilabelStratifiedKFold(3).split([1, 2], [{"a"}, {"b"}])),
    },
)
cases(
    "metrics",
    lambda given: given(),
    {
        "shapes": lambda: metrics.hamming_loss([[1, 0]], [[1, 0, 0]]),
        "NaN": lambda: metrics.coverage([[1, 0], [1, 0]], [[0.1, 0.2], [np.nan, 0.2]]),
        "unknown predictions": lambda: metrics.hamming_loss([[1, 0]], [[1, -1]]),
        "no prediction": lambda: metrics.hamming_loss([[1, 0]], [[1, 0.3]]),
        "weights": lambda: metrics.instance_accuracy([1, 2], [1, 1], sample_weight=[3]),
        "too few": lambda: metrics.instance_accuracy(["a", "b"], ["a"]),
        "words and numbers": lambda: metrics.instance_accuracy(["1", "2"], [1, 2]),
        "no probabilities": lambda: metrics.calibration(["a"], [[0.5, 0.6]], ["a", "b"]),
        "no bins": lambda: metrics.calibration(["a"], [[0.4, 0.6]], ["a", "b"], n_bins=0),
    },
)
cases(
    "make_bags",
    lambda given: datasets.make_bags(**({"n_bags": 10, "random_state": 0} | given)),
    {
        "no bags": {"n_bags": 0},
        "half a feature": {"n_features": 1.5},
        "true classes": {"n_classes": True},
        "sizes": {"bag_size": (5, 3)},
        "no labels": {"labels_per_bag": 0},
        "too many labels": {"labels_per_bag": 9},
        "separability": {"separability": -1.0},
        "background": {"background": 1.5},
        "label noise": {"label_noise": -0.1},
        "small bags": {"bag_size": 2, "background": 0.5},
    },
)


@recording("bad_arguments/datasets")
def data_sets():
    """Data sets that do not exist or are not on this machine, and bags that cannot be dealt."""
    absent = ("hja", "hja-union", "msrcv2")
    with tempfile.TemporaryDirectory() as name:
        found = {
            each: attempted(lambda each=each: datasets.load(each, data_home=name))
            for each in absent
        }
        for tree in found.values():
            tree["error"] = cleaned(tree["error"], Path(name))
    return found | {
        "birds": attempted(lambda: datasets.load("birds")),
        "digits": attempted(lambda: datasets.load_digit_bags(min_size=4, max_size=3)),
    }


@recording("bad_arguments/models")
def models():
    """Files that are no models, and models that cannot be saved."""
    data = synthetic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "m.unbag"
        unbag.ORLogisticRegression(max_iter=3).fit(data.bags, data.y).save(path)
        whole = path.read_bytes()
        flipped = bytearray(whole)
        flipped[-5] ^= 1
        contents = {
            "empty": b"", "text": b"hello", "cut": whole[:-100], "longer": whole + b"\0",
            "flipped bit": bytes(flipped),
        }  # fmt: skip
        found = {}
        for what, content in contents.items():
            path.write_bytes(content)
            found[what] = attempted(lambda: unbag.load(path))
        found |= {
            "nothing": attempted(lambda: unbag.load(folder / "absent.unbag")),
            "a folder": attempted(lambda: unbag.load(folder)),
            "not fitted": attempted(lambda: unbag.SIM().save(path)),
            "no such folder": attempted(
                lambda: unbag.DummyBags().fit(data.bags, data.y).save(folder / "no" / "m.unbag")
            ),
        }
        for tree in found.values():
            if "error" in tree:
                tree["error"] = cleaned(tree["error"], folder)
        return found
