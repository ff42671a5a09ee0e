"""Toys: bags whose right answer is visible by eye, a table of words, and small estimators.

Estimators have to lie in a module, so that worker processes can import them.
"""

import inspect

import numpy as np
from sklearn import decomposition, preprocessing
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from unbag import Bags, ORLogisticRegression, estimators, kernel_pipeline, paper
from unbag.datasets import load_letter_frost
from unbag.estimators.contract import INSTANCE_METHODS
from unbag.fitting.linear import InMemory
from unbag.fitting.parts import PartMaker
from unbag.labels import LabelSets

# Data


def make_colours(rng, n_bags=80, spread=0.6, n_classes=3, background=0.0, largest=6):
    """Bags of points around the corners of a triangle; the label set is the set of corners."""
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0]])[: n_classes + 1]
    sizes = rng.integers(min(2, largest), largest + 1, n_bags)
    labels = rng.integers(0, n_classes, sizes.sum())
    if background:
        labels[rng.random(len(labels)) < background] = n_classes
    X = centres[labels] + spread * rng.normal(size=(len(labels), 2))
    offsets = np.append(0, np.cumsum(sizes))
    y = np.zeros((n_bags, n_classes), dtype=int)
    bag = np.repeat(np.arange(n_bags), sizes)
    known = labels < n_classes
    y[bag[known], labels[known]] = 1
    return Bags(X, offsets, instance_labels=np.where(known, labels, -1)), y


def make_uncertain():
    """Bags of one instance, and one of eight labels whose instances all look like the first."""
    labels = np.append(np.repeat(np.arange(8), 400), np.zeros(8, dtype=int))
    ids = [*map(str, range(3200)), "eight"]
    bags = Bags(np.eye(8)[labels], np.append(np.arange(3201), 3208), ids=ids)
    return bags, np.vstack([np.eye(8, dtype=int)[labels[:3200]], np.ones((1, 8), dtype=int)])


#: A picture of one white pixel, and the shortest of sounds.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a494441"
    "54789c63f80f0001010100b138f6140000000049454e44ae426082"
)
WAV = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"


#: Which column of `word_lines` is what, as options of a command.
ROLES = ("--bag", "word", "--labels", "tags", "--carry", "letter,note")


def word_lines(n_bags=60, seed=0, truth=True):
    """Lines of a CSV table: letters in words, with an id and a note that must come through."""
    data = load_letter_frost(random_state=seed)
    names = data.class_names
    lines = ["word,tags," + ("letter," if truth else "") + "note," + ",".join(data.feature_names)]
    for b in range(n_bags):
        tags = "|".join(names[data.y[b] == 1])
        for i in range(data.bags.offsets[b], data.bags.offsets[b + 1]):
            shown = f"{names[data.instance_labels[i]]}," if truth else ""
            features = ",".join(f"{value:.0f}" for value in data.bags.X[i])
            lines.append(f'w{b:03},{tags},{shown}"0{i:03}, ""raw""",{features}')
    return lines


# Estimators over Bags


def bag_means(bags):
    """Mean instance of each bag, of shape (n_bags, n_features)."""
    return np.array([np.asarray(bag.mean(axis=0)).ravel() for bag in bags])


class NearestMean(ClassifierMixin, BaseEstimator):
    """Give a bag the class whose mean bag is nearest; `power` stretches the distance."""

    def __init__(self, power=1.0):
        self.power = power

    def fit(self, X, y):
        self.container_ = type(X).__name__
        means = bag_means(X)
        self.classes_ = np.unique(y)
        self.means_ = np.array([means[np.asarray(y) == c].mean(axis=0) for c in self.classes_])
        return self

    def predict(self, X):
        distances = np.abs(bag_means(X)[:, None] - self.means_) ** self.power
        return self.classes_[distances.sum(axis=2).argmin(axis=1)]


class Shift(TransformerMixin, BaseEstimator):
    """Move every instance by the same amount."""

    def __init__(self, by=0.0):
        self.by = by

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X.with_features(X.X + self.by)


class Thresholds(BaseEstimator):
    """Instance class = number of `cuts` below its only feature; learns just the classes."""

    def __init__(self, cuts=(1.0,)):
        self.cuts = cuts

    def fit(self, X, y):
        self.classes_ = LabelSets.parse(y).classes
        return self

    def decision_function(self, X):
        return np.array([(self._columns(bag) == self._range()).mean(axis=0) for bag in X])

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)

    def predict_instances(self, X):
        return self.classes_[self._columns(X.X).ravel()]

    def annotate(self, X, y):
        allowed = LabelSets.parse(y, self.classes_).required.repeat(X.sizes, axis=0)
        distance = np.abs(self._columns(X.X) - self._range())
        return self.classes_[np.where(allowed, distance, np.inf).argmin(axis=1)]

    def _columns(self, features):
        return np.searchsorted(self.cuts, features[:, :1])

    def _range(self):
        return np.arange(self.classes_.size)


class BagsOnly(BaseEstimator):
    """Says nothing of instances: every bag has every class."""

    def fit(self, X, y):
        self.classes_ = LabelSets.parse(y).classes
        return self

    def predict(self, X):
        return np.ones((len(X), self.classes_.size), dtype=int)

    def decision_function(self, X):
        return self.predict(X).astype(float)


class NearestInstance(ClassifierMixin, BaseEstimator):
    """Give an instance the label of the nearest training bag's mean, a bag that of its first."""

    def __init__(self, scaling="standard", power=2.0):
        self.scaling = scaling
        self.power = power

    def fit(self, X, y):
        self.means_ = np.array([bag.mean(axis=0) for bag in X])
        self.y_ = np.asarray(y)
        self.classes_ = np.unique(y)
        return self

    def predict_instances(self, X):
        distances = np.abs(X.X[:, None] - self.means_) ** self.power
        return self.y_[distances.sum(axis=2).argmin(axis=1)]

    def predict(self, X):
        return self.predict_instances(X)[X.offsets[:-1]]

    def annotate(self, X, y, joint=False):
        """Say what came in, so that a test can see what the pipeline handed over."""
        return X, y, joint


class EveryMethod(BaseEstimator):
    """Answer each instance-level method with its name and what it got."""

    def fit(self, X, y=None):
        return self

    def predict_instances(self, X):
        return "predict_instances", X

    def instance_log_proba(self, X):
        return "instance_log_proba", X

    def predict_instances_proba(self, X):
        return "predict_instances_proba", X

    def annotate(self, X, y, **options):
        return "annotate", X, y, options

    def annotate_proba(self, X, y, **options):
        return "annotate_proba", X, y, options

    def log_likelihood(self, X, y, **options):
        return "log_likelihood", X, y, options


class DropFirst(TransformerMixin, BaseEstimator):
    """Lose a row, as no transformer of instances may."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[1:]


# Parts of fits


def parts_of(bags, problem, n_parts=None, **options):
    """Parts of a fit: as few as it would have itself, or of about equal numbers of bags."""
    maker = PartMaker(problem, np.arange(len(bags)), **options)
    if n_parts is None:
        return InMemory(bags).parts(maker, map).parts
    return [maker.part(bags.X, own) for own in np.array_split(maker.chosen, n_parts)]


# Models of the package, fitted, and when two are the same

BAGS, Y = make_colours(np.random.default_rng(0), n_bags=40, largest=3)
BAGS = BAGS.with_features(BAGS.X, ["pitch", "length"])

MODELS = {
    name: kind
    for room in (estimators, paper)
    for name in room.__all__
    if isinstance(kind := getattr(room, name), type) and issubclass(kind, BaseEstimator)
}
SCALERS = {
    kind.__name__: kind
    for kind in (
        preprocessing.FunctionTransformer,
        preprocessing.MaxAbsScaler,
        preprocessing.MinMaxScaler,
        preprocessing.Normalizer,
        preprocessing.PowerTransformer,
        preprocessing.QuantileTransformer,
        preprocessing.RobustScaler,
        preprocessing.StandardScaler,
        decomposition.PCA,
    )
}


def seeded(kind, **options):
    """Make an estimator that gives the same answers each time."""
    seed = {"random_state": 0} if "random_state" in inspect.signature(kind).parameters else {}
    return kind(**seed, **options)


def fitted_pipeline():
    model = ORLogisticRegression(max_iter=5)
    return kernel_pipeline(model, context=0.5, n_components=20, random_state=0).fit(BAGS, Y)


def answers(model, bags, y=Y):
    """Everything a fitted model says, by method."""
    said = {name: getattr(model, name)(bags) for name in ("predict", "decision_function")}
    for name in INSTANCE_METHODS:
        if hasattr(model, name):
            method = getattr(model, name)
            said[name] = method(bags, y) if "y" in inspect.signature(method).parameters else (
                method(bags))  # fmt: skip
    return said


def assert_equal(first, second):
    """Equal to the last bit, and of the same types all the way down."""
    assert type(first) is type(second)
    if isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        assert first.shape == second.shape
        if first.dtype == object:
            assert_equal(first.tolist(), second.tolist())
        else:
            assert first.tobytes() == second.tobytes()
            assert first.flags.f_contiguous == second.flags.f_contiguous
    elif isinstance(first, list | tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            assert_equal(one, other)
    elif isinstance(first, dict):
        assert_equal(list(first.items()), list(second.items()))
    elif isinstance(first, float | np.floating):
        assert repr(first) == repr(second)
    elif hasattr(first, "__dict__"):
        assert_equal(vars(first), vars(second))
    else:
        assert first == second
