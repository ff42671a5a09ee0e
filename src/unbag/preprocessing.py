"""Transformers from Bags to Bags: new features for the same instances, in the same bags.

They see instances, never label sets, so they do in prediction what they do in training. A plain
2-D array counts as one instance per bag and comes back as an array. `n_features_in_` and, where
features have names, `feature_names_in_` say what ``fit`` saw.

Symbols: x an instance; D the dictionary, some training instances; K the kernel, delta its width.
"""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils._set_output import _wrap_data_with_container
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    check_random_state,
)

from unbag._scikit_learn import BaseEstimator, TransformerMixin
from unbag.bags import Bags, first_nonfinite, listed_bags
from unbag.validation import WHITENED, all_or_nothing, check_finite, validate_bags

__all__ = ["BagContext", "OnInstances", "RBFDictionary"]

BLOCK_ENTRIES = 2**23  # bounds the arrays held at once beside the result: 64 MiB each


class _BagTransformer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """The contract of this module; a subclass says what to learn, and the features and names."""

    _needs_finite = True
    _learn: Callable[[Bags], None]
    _features: Callable[[Bags], Any]
    _names: Callable[[Any], Any]

    def __init_subclass__(cls, **options: Any) -> None:
        # scikit-learn would make data frames of Bags too: `transform` does it, where X is no Bags.
        super().__init_subclass__(auto_wrap_output_keys=None, **options)
        cls._sklearn_auto_wrap_output_keys = {"transform"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @all_or_nothing
    def fit(self, X: Bags | ArrayLike, y: object = None) -> Self:
        """Learn from bags.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_instances, n_features)
        y : ignored
        """
        self._learn(validate_bags(self, X, reset=True, ensure_all_finite=self._needs_finite))
        return self

    def transform(self, X: Bags | ArrayLike) -> Any:
        """Give every instance its new features.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_instances, n_features)

        Returns
        -------
        Bags, or array of shape (n_instances, n_features_out)
            As X is, and Bags of a list. By ``set_output(transform="pandas")`` or ``"polars"``, a
            data frame in place of an array; Bags stay Bags, and have the names of their features
            with them.
        """
        check_is_fitted(self)
        X = listed_bags(X)
        bags = validate_bags(self, X, reset=False, ensure_all_finite=self._needs_finite)
        features = self._features(bags)
        if isinstance(X, Bags):
            try:
                names = self._names(X.feature_names)
            except AttributeError:  # the transformer inside, or one inside it, cannot name columns
                names = None
            return X.with_features(features, names)
        return _wrap_data_with_container("transform", features, X, self)

    def fit_transform(self, X: Bags | ArrayLike, y: object = None, **fit_params: Any) -> Any:
        """Learn from bags, and give their instances their new features.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_instances, n_features)
        y : ignored
        **fit_params
            For ``fit``, which takes none.

        Returns
        -------
        Bags, or array of shape (n_instances, n_features_out)
            As `transform` gives them.
        """
        return self.fit(X, y, **fit_params).transform(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return names of the new features.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features,), optional
            Names of the features that go in.
        """
        check_is_fitted(self)
        return self._names(_check_feature_names_in(self, input_features))


class OnInstances(_BagTransformer):
    """Lift a scikit-learn transformer to Bags: it sees the instances of all bags as one array.

    Parameters
    ----------
    transformer : transformer
        One that needs no `y` and gives one row per instance. Where it takes NaN, so does this;
        where it keeps features sparse, they stay sparse.

    Attributes
    ----------
    transformer_ : transformer
        The clone of `transformer` that was fitted on the array of all instances.

    Examples
    --------
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> bags = Bags([[1.0], [3.0], [5.0]], offsets=[0, 2, 3])
    >>> OnInstances(MinMaxScaler()).fit_transform(bags).X.ravel()
    array([0. , 0.5, 1. ])
    """

    _needs_finite = False

    transformer_: Any

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags  # asked for only by scikit-learn that has it

        return get_tags(self.transformer)

    def _learn(self, bags):
        self.transformer_ = _called(clone(self.transformer).fit, bags)
        learnt = (getattr(self.transformer_, name, None) for name in ("mean_", "var_", "scale_"))
        self._check_size(bags, *learnt)

    def _features(self, bags):
        if not bags.n_instances:
            # Transformers refuse an array without rows; one row shows the kind of their answer.
            return self.transformer_.transform(np.zeros((1, bags.n_features), bags.dtype))[:0]
        features = _called(self.transformer_.transform, bags)
        self._check_size(bags, features)
        if features.shape[0] != bags.n_instances:
            raise ValueError(
                f"{self.transformer_} gave {features.shape[0]} rows for {bags.n_instances} "
                "instances: it must keep every instance."
            )
        return features

    def _check_size(self, bags, *learnt):
        """Refuse numbers that are so great that the transformer makes NaN or infinity of them."""
        arrays = [
            each for each in learnt if isinstance(each, np.ndarray) and each.dtype.kind == "f"
        ]
        if all(first_nonfinite(np.atleast_2d(each)) is None for each in arrays):
            return
        if sparse.issparse(bags.X) or first_nonfinite(bags.X) is not None:
            return
        sizes = np.abs(bags.X).max(axis=0)
        column, names = int(sizes.argmax()), bags.feature_names
        raise ValueError(
            f"Column {column if names is None else f'{column} ({names[column]})'} has values up to "
            f"{sizes[column]:g}, which are too great for {type(self.transformer_).__name__}: scale "
            "the features down first."
        )

    def _names(self, names):
        return None if names is None else self.transformer_.get_feature_names_out(names)


class BagContext(_BagTransformer):
    """Append to each instance the mean instance of its bag: what else was there.

    Parameters
    ----------
    weight : float, default=1.0
        Factor of the appended columns, at least 0: how much the bag counts in distances, compared
        with the instance. 0 appends zeros.

    Notes
    -----
    Means are taken in float64 and stored in the type of the features. Sparse features stay sparse:
    each instance gains a non-zero for every feature that occurs in its bag.

    Examples
    --------
    >>> bags = Bags([[1.0], [3.0], [5.0]], offsets=[0, 2, 3])
    >>> BagContext(weight=0.5).fit_transform(bags)[0]
    array([[1., 1.],
           [3., 1.]])
    """

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight

    def _learn(self, bags):
        if not (isinstance(self.weight, Real) and 0 <= self.weight < np.inf):
            raise ValueError(f"weight must be a number of at least 0, but is {self.weight!r}.")

    def _features(self, bags):
        bag_of_instance = np.repeat(np.arange(len(bags)), bags.sizes)
        # One row per bag averages its instances; the row of an empty bag is empty.
        shares = self.weight / bags.sizes[bag_of_instance]
        rows = (shares, np.arange(bags.n_instances), bags.offsets)
        averaging = sparse.csr_matrix(rows, shape=(len(bags), bags.n_instances))
        with np.errstate(over="ignore"):
            context = (averaging @ bags.X).astype(bags.dtype)[bag_of_instance]
        if first_nonfinite(context) is not None:
            raise ValueError(
                f"weight is {self.weight:g}, by which means of bags are more than {bags.dtype} "
                "can hold: take a smaller one, or divide the features by a constant."
            )
        if sparse.issparse(bags.X):
            return sparse.hstack([bags.X, context], format="csr")
        return np.hstack([bags.X, context])

    def _names(self, names):
        if names is None:
            return None
        return np.array([*names, *(f"context_{name}" for name in names)], dtype=object)


class RBFDictionary(_BagTransformer):
    """Describe an instance by its similarity to training instances: any model's kernel version.

    ``K(x, x') = exp(-||x - x'||^2 / delta)``; delta is `scale` times their mean squared distance.

    Parameters
    ----------
    scale : float, default=1.0
        Width of the kernel; the paper tries 0.1, 0.2, 0.5, 1, 2, 5 and 10.
    n_components : float or int, default=1.0
        How many training instances make the dictionary: a float in (0, 1] is a part of them, an
        int their number (all, where there are fewer).
    whiten : bool, default=True
        Multiply the kernel columns by ``K_DD^(-1/2)``, so that a ridge penalty on a linear model
        becomes the norm of its function. Never standardise these features: most of them are meant
        to be small. False gives the kernel columns as they are, as in the paper.
    random_state : int, RandomState instance or None, default=None
        Draws the dictionary, without replacement, where it is not all.

    Attributes
    ----------
    dictionary_ : ndarray or sparse matrix of shape (n_dictionary, n_features_in_)
        The chosen training instances, in their order.
    delta_ : float
        Width of the kernel, in squared units of the features.
    whitener_ : ndarray of shape (n_dictionary, n_dictionary) or None
        ``K_DD^(-1/2)``, eigenvalues floored at 1e-10 of the largest, so that instances that occur
        twice do no harm; None without `whiten`.

    Notes
    -----
    The mean runs over all ordered pairs, each instance with itself included, so it is twice the
    sum of the features' variances; without the self-pairs, on which the paper is silent, it would
    be ``n / (n - 1)`` times as large. The whitener takes time ``n_dictionary^3``. ``transform``
    takes blocks of instances, to bound its memory, and computes in float64, as whitening
    magnifies rounding errors; the result, which is dense, has the type of the features. Its names
    are ``whitened_rbf_0``, ... or, without `whiten`, ``rbf_0``, ...

    Examples
    --------
    The mean of the squared distances 0, 4, 4 and 0 is 2, and ``exp(-4 / 2)`` is 0.135.

    >>> bags = Bags([[0.0], [2.0]], offsets=[0, 1, 2])
    >>> kernel = RBFDictionary(whiten=False).fit(bags)
    >>> kernel.delta_, kernel.transform(bags)[0].round(3)
    (2.0, array([[1.   , 0.135]]))
    """

    delta_: float
    dictionary_: Any
    whitener_: np.ndarray | None

    def __init__(
        self,
        scale: float = 1.0,
        n_components: float | int = 1.0,
        whiten: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.scale = scale
        self.n_components = n_components
        self.whiten = whiten
        self.random_state = random_state

    def _learn(self, bags):
        if not (isinstance(self.scale, Real) and 0 < self.scale < np.inf):
            raise ValueError(f"scale must be a number above 0, but is {self.scale!r}.")
        n_dictionary = _dictionary_size(self.n_components, bags.n_instances)
        self.delta_ = float(self.scale * _mean_squared_distance(bags.X))
        if self.delta_ == 0:
            raise ValueError(
                f"All training instances are equal (n_samples={bags.n_instances}), so the kernel "
                "has no width: fit on some that differ."
            )
        random = check_random_state(self.random_state)
        chosen = np.sort(random.choice(bags.n_instances, n_dictionary, replace=False))
        self.dictionary_ = bags.X[chosen]
        self.whitener_ = None
        if self.whiten:
            values, vectors = linalg.eigh(self._kernel(self.dictionary_))
            floored = np.maximum(values, 1e-10 * values[-1])
            self.whitener_ = (vectors / np.sqrt(floored)) @ vectors.T

    def _features(self, bags):
        features = np.empty((bags.n_instances, self.dictionary_.shape[0]), bags.dtype)
        step = max(1, BLOCK_ENTRIES // max(self.dictionary_.shape))
        for start in range(0, bags.n_instances, step):
            rows = slice(start, start + step)
            columns = self._kernel(bags.X[rows])
            features[rows] = columns if self.whitener_ is None else columns @ self.whitener_
        return features

    def _names(self, names):
        prefix = "rbf_" if self.whitener_ is None else WHITENED
        return np.array([f"{prefix}{i}" for i in range(self.dictionary_.shape[0])], dtype=object)

    def _kernel(self, instances):
        instances, dictionary = instances.astype(np.float64), self.dictionary_.astype(np.float64)
        if not (sparse.issparse(instances) or sparse.issparse(dictionary)):
            # Squared distances come from squared norms; far from the origin these would cancel.
            origin = dictionary.mean(axis=0)
            instances, dictionary = instances - origin, dictionary - origin
        return rbf_kernel(instances, dictionary, gamma=1 / self.delta_)


def _dictionary_size(n_components, n_instances):
    if isinstance(n_components, Integral):
        if not isinstance(n_components, bool) and int(n_components) >= 1:
            return min(int(n_components), n_instances)
    elif isinstance(n_components, Real) and 0 < float(n_components) <= 1:
        return max(1, round(float(n_components) * n_instances))
    raise ValueError(
        f"n_components must be a float in (0, 1] or an int from 1 on, not {n_components!r}."
    )


def _mean_squared_distance(X):
    """Compute the mean over all ordered pairs of rows, each with itself included."""
    if sparse.issparse(X):
        low, high = min_max_axis(X, axis=0)
        _, variances = mean_variance_axis(X, axis=0)
    else:
        low, high, variances = X.min(axis=0), X.max(axis=0), X.var(axis=0, dtype=np.float64)
    # Where the mean of equal numbers is rounded, their variance is not quite zero.
    return 2 * variances[low < high].sum(dtype=np.float64)


def _called(method, bags):
    """Call a method of a scikit-learn transformer; where it rejects a value, say whose it is."""
    try:
        # What overflows is refused, or a gap in the data.
        with np.errstate(over="ignore", invalid="ignore"):
            return method(bags.X)
    except ValueError:
        check_finite(bags)
        raise
