"""Pipelines that answer for instances as well as for bags."""

import os
from collections.abc import Callable
from numbers import Real
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from unbag._scikit_learn import Pipeline, available_if
from unbag.bags import BagsLike
from unbag.frames import FrameAnswers
from unbag.labels import LabelSetsLike
from unbag.models.container import save
from unbag.preprocessing import BagContext, OnInstances, RBFDictionary
from unbag.validation import all_or_nothing

__all__ = ["BagPipeline", "kernel_pipeline"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _where_model_has(method: str) -> Callable[[_Method], _Method]:
    """Let a pipeline have a method where its model has it."""
    return available_if(lambda pipeline: hasattr(pipeline.model, method))


class BagPipeline(FrameAnswers, Pipeline):
    """A scikit-learn pipeline that also answers for instances.

    To ``Pipeline`` it adds the methods of models over bags, each where the last step has it.

    Parameters
    ----------
    steps : list of (str, estimator)
        Transformers of Bags, then a model.
    transform_input, memory, verbose
        As in ``Pipeline`` of the installed scikit-learn.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from unbag import Bags
    >>> class AboveZero(BaseEstimator):
    ...     def fit(self, X, y=None):
    ...         return self
    ...     def predict_instances(self, X):
    ...         return X.X[:, 0] > 0
    >>> bags = Bags([[1.0], [2.0], [6.0]], offsets=[0, 2, 3])
    >>> model = BagPipeline([("scale", OnInstances(StandardScaler())), ("model", AboveZero())])
    >>> model.fit(bags).predict_instances(bags).tolist()
    [False, False, True]
    """

    @property
    def model(self) -> Any:
        """The last step; a model outside a pipeline is its own `model`."""
        return self.steps[-1][1]

    @all_or_nothing
    def fit(self, X: BagsLike, y: object = None, **params: Any) -> Self:
        """Fit the transformers and the model; when one of them fails, all stay as they were.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
        y : label sets
        **params
            As in ``Pipeline`` of the installed scikit-learn; and `instance_labels`, `decision`,
            `start` and `watch`, for the model.
        """
        for name in {"instance_labels", "decision", "start", "watch"} & params.keys():
            params[f"{self.steps[-1][0]}__{name}"] = params.pop(name)
        return super().fit(X, y, **params)

    @_where_model_has("predict_instances")
    def predict_instances(self, X: BagsLike, **options: Any) -> np.ndarray:
        """Label each instance; the label sets of the bags are unknown."""
        return self._ask_model("predict_instances", X, **options)

    @_where_model_has("instance_log_proba")
    def instance_log_proba(self, X: BagsLike) -> np.ndarray:
        """Compute log-probabilities of classes of instances; label sets of bags are unknown."""
        return self._ask_model("instance_log_proba", X)

    @_where_model_has("predict_instances_proba")
    def predict_instances_proba(self, X: BagsLike, **options: Any) -> np.ndarray:
        """Predict class probabilities of each instance; the label sets of the bags are unknown."""
        return self._ask_model("predict_instances_proba", X, **options)

    @_where_model_has("annotate")
    def annotate(self, X: BagsLike, y: LabelSetsLike, **options: Any) -> np.ndarray:
        """Label each instance, given the label sets `y` of the bags."""
        return self._ask_model("annotate", X, y, **options)

    @_where_model_has("annotate_proba")
    def annotate_proba(self, X: BagsLike, y: LabelSetsLike, **options: Any) -> np.ndarray:
        """Predict class probabilities of each instance, given the label sets `y` of the bags."""
        return self._ask_model("annotate_proba", X, y, **options)

    @_where_model_has("log_likelihood")
    def log_likelihood(self, X: BagsLike, y: LabelSetsLike, **options: Any) -> np.ndarray:
        """Compute the log-probability of the label set `y` of each bag."""
        return self._ask_model("log_likelihood", X, y, **options)

    def save(self, path: str | os.PathLike[str], *, info: dict[str, Any] | None = None) -> None:
        """Write the fitted pipeline to a file that `unbag.load` reads; it holds no code.

        Parameters
        ----------
        path : str or path-like
            An old file there is replaced when the new one is complete, and else stays.
        info : dict, optional
            Facts to keep with the model, of what JSON can hold, for
            `unbag.models.read_header`.
        """
        save(self, path, info)

    def _ask_model(self, method, X, *labels, **options):
        for _, transformer in self.steps[:-1]:
            if transformer not in (None, "passthrough"):
                X = transformer.transform(X)
        return getattr(self.model, method)(X, *labels, **options)


def kernel_pipeline(
    estimator: Any,
    *,
    context: float = 0.0,
    scale: float = 1.0,
    n_components: float | int = 600,
    whiten: bool = True,
    random_state: int | np.random.RandomState | None = None,
) -> BagPipeline:
    """Build a BagPipeline, the kernel version of a model, with its steps in the right order.

    These are ``scale``, so that distances weigh all features alike, ``context``, ``kernel`` and
    ``model``; a search can name ``kernel__scale`` or ``model__alpha``.

    Parameters
    ----------
    estimator : estimator
        A clone becomes the last step, with ``scaling=None`` if it has such a parameter and
        `whiten` is true: whitened features must not be scaled.
    context : float, default=0.0
        Weight of :class:`BagContext`; 0 leaves this step out.
    scale, whiten, random_state
        As in :class:`RBFDictionary`.
    n_components : float or int, default=600
        As in :class:`RBFDictionary`. By default as many instances as ``unbag.fit(kernel=...)``
        takes: with all of them, the time grows with the cube of their number.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1]  # no line separates the two
    >>> kernel_pipeline(LogisticRegression()).fit(X, y).predict(X).tolist()
    [0, 0, 1, 1]
    """
    return _assembled(estimator, context, RBFDictionary(scale, n_components, whiten, random_state))


def _assembled(estimator, context, kernel):
    """Put scaling, context unless it is 0, and a kernel, if there is one, before a model."""
    model = clone(estimator)
    if (kernel is None or kernel.whiten) and "scaling" in model.get_params():
        model.set_params(scaling=None)
    steps: list[tuple[str, Any]] = [("scale", OnInstances(StandardScaler()))]
    if context != 0:
        steps.append(("context", BagContext(context)))
    if kernel is not None:
        steps.append(("kernel", kernel))
    return BagPipeline([*steps, ("model", model)])


def bag_pipeline(
    estimator: Any,
    *,
    context: float = 0.0,
    kernel: float | None = None,
    dictionary: float | int = 600,
    random_state: int | np.random.RandomState | None = None,
) -> Any:
    """Put context and a kernel, if they are wanted, before a model."""
    if not (isinstance(context, Real) and 0 <= context < np.inf):
        raise ValueError(f"context must be a number of at least 0; got {context!r}.")
    if not (kernel is None or (isinstance(kernel, Real) and 0 < kernel < np.inf)):
        raise ValueError(f"kernel must be a number above 0, or None; got {kernel!r}.")
    if kernel is None and not context:
        return estimator
    scale = kernel and RBFDictionary(kernel, dictionary, random_state=random_state)
    return _assembled(estimator, context, scale)
