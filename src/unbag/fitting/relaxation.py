"""Which labels of a bag to stop insisting on, when it has too many for exact inference."""

import numpy as np

# Labels that stay required: a fit asks again at every iteration, so these must not only be
# possible, but quick.
RELAXED_TO = 16


def surest_labels(log_prior, allowed, required):
    """Find the required labels that most surely occur anyway, all but `RELAXED_TO` of them.

    Parameters
    ----------
    log_prior : ndarray of shape (n_instances, n_classes)
        Of the bag's instances.
    allowed, required : ndarrays of int
        Columns of the classes that the bag allows, and of those that it requires.

    Returns
    -------
    ndarray of int
        Columns.
    """
    prior = np.exp(log_prior)
    share = prior[:, required] / prior[:, allowed].sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_missing = np.log1p(-np.minimum(share, 1.0)).sum(axis=0)
    surest = np.argsort(log_missing, kind="stable")
    return required[surest[: max(len(required) - RELAXED_TO, 0)]]
