"""The softmax of many short rows, in two passes over them and one of exponentials."""

import numpy as np

from unbag._compile import kernel


def log_softmax(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Turn logits into log-probabilities and probabilities, row by row.

    Parameters
    ----------
    logits : ndarray of float64 of shape (n_instances, n_classes)

    Returns
    -------
    log_prior, prior : ndarrays of shape (n_instances, n_classes)
    """
    log_prior = np.empty(logits.shape)
    subtract_largest(logits, log_prior)
    # numpy's exponentials are vectorised, and several times faster.
    prior = np.exp(log_prior)
    normalise(log_prior, prior)
    return log_prior, prior


@kernel
def subtract_largest(logits, log_prior):
    """Bring the largest entry of each row to zero."""
    for i in range(logits.shape[0]):
        largest = -np.inf
        for c in range(logits.shape[1]):
            largest = max(largest, logits[i, c])
        for c in range(logits.shape[1]):
            log_prior[i, c] = logits[i, c] - largest


@kernel
def normalise(log_prior, prior):
    """Divide each row by its sum."""
    for i in range(prior.shape[0]):
        total = 0.0
        for c in range(prior.shape[1]):
            total += prior[i, c]
        log_total = np.log(total)
        for c in range(prior.shape[1]):
            log_prior[i, c] -= log_total
            prior[i, c] /= total
