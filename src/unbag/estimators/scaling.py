"""Bringing features to one scale inside an estimator, learnt from the training bags."""

from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from .parameters import check_choices

SCALINGS = ("standard", "minmax", None)


def fitted_scaler(model, X):
    """Learn how to scale features, as the parameter `scaling` of a model says.

    Parameters
    ----------
    model : estimator
        Its `scaling` is "standard" (mean zero, variance one), "minmax" (from zero to one) or
        None (as they are).
    X : ndarray of shape (n_instances, n_features)
        The instances of the training bags. Constant features stay finite.

    Returns
    -------
    transformer
        Fitted; what it transforms keeps its precision.
    """
    check_choices(model, scaling=SCALINGS)
    kinds = {"standard": StandardScaler, "minmax": MinMaxScaler, None: FunctionTransformer}
    return kinds[model.scaling]().fit(X)
