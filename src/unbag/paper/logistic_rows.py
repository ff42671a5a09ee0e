"""Logistic regressions inside LSB-CMM (Liu and Dietterich 2012), and the scaling of all rivals.

The regressions are weighted, share their features, and are solved side by side. Each row is a
problem of its own, convex and with a ridge penalty. Together they are matrix products: Newton
steps, whose directions come from conjugate gradients, so that no Hessian is ever made. A row that
is done leaves the matrix.
"""

from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from unbag._compile import any_order
from unbag.fitting.scaling import SCALINGS
from unbag.validation import check_choices

# A row is done when a Newton step promises to gain less than this, in nats.
LEAST_GAIN = 0.05
NEWTON_STEPS = 30
# Steps that overshoot are cut, down to 1e-28: where all instances are far on the wrong side, the
# loss is all but straight, and Newton's step points far beyond the minimum.
CUT, MOST_CUTS = 0.2, 40
# Part of the gradient that conjugate gradients may leave, and the most steps they take.
RESIDUAL, CG_STEPS = 0.1, 40
# Curvature that even a flat direction is taken to have.
LEAST_CURVATURE = 1e-12
TINY: float = np.finfo(np.float64).tiny


class LogisticRows:
    """Logistic regressions on the same features, each with weights of its own for instances.

    The loss of a row is the sum over instances of ``whole * log(1 + exp(v)) - positive * v``,
    where v are its logits, plus ``penalty / 2 * weights**2``.
    """

    def __init__(self, X: np.ndarray, penalty: np.ndarray, n_rows: int) -> None:
        self.X = X
        self.penalty = penalty
        self._squares = X**2
        self._scratch = np.empty((6, n_rows, len(X)))

    def minimised(self, weights: np.ndarray, positive: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """Bring each row close to the minimum of its loss, and none above where it was.

        It starts from weights of shape (n_rows, n_features). `positive` and `whole`, of shape
        (n_rows, n_instances), are the weights of instances as positive examples, and as examples of
        either kind.
        """
        weights = weights.copy()
        rows = np.arange(len(weights))
        own = self._scratch[:2, : len(rows)]
        own[0], own[1] = positive, whole
        positive, whole = own
        loss, gradient, curvature = self.loss(weights, positive, whole)
        for _ in range(NEWTON_STEPS):
            direction = self.newton_direction(curvature, gradient)
            slope = np.einsum("kd,kd->k", direction, gradient)
            worthwhile = 0.5 * slope > LEAST_GAIN
            start, start_loss, length = weights[rows], loss, np.ones(len(rows))
            tried = start - direction
            loss, gradient, curvature = self.loss(tried, positive, whole)
            for _ in range(MOST_CUTS):
                too_long = np.flatnonzero(worthwhile & (loss > start_loss - 1e-4 * length * slope))
                if not len(too_long):
                    break
                length[too_long] *= CUT
                tried[too_long] = start[too_long] - length[too_long, None] * direction[too_long]
                scratch = np.empty((4, len(too_long), len(self.X)))
                loss[too_long], gradient[too_long], curvature[too_long] = self.loss(
                    tried[too_long], positive[too_long], whole[too_long], scratch
                )
            better = loss < start_loss
            weights[rows[better]] = tried[better]
            unfinished = np.flatnonzero(better & worthwhile)
            if not len(unfinished):
                break
            rows, loss, gradient = rows[unfinished], loss[unfinished], gradient[unfinished]
            positive, whole = moved_up(positive, unfinished), moved_up(whole, unfinished)
            curvature = moved_up(curvature, unfinished)
        return weights

    def loss(
        self,
        weights: np.ndarray,
        positive: np.ndarray,
        whole: np.ndarray,
        scratch: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the loss of each row, its gradient, and second derivatives in the logits.

        The arguments are as in `minimised`. The second derivatives, of shape (n_rows, n_instances),
        lie in `scratch`, by default that of this object, so the next call overwrites them.
        """
        scratch = self._scratch[2:] if scratch is None else scratch
        logits, odds, log_odds, curvature = scratch[:, : len(weights)]
        np.matmul(weights, self.X.T, out=logits)
        np.log1p(lesser_odds(logits, out=odds), out=log_odds)
        loss = 0.5 * weights**2 @ self.penalty
        add_losses(logits, odds, log_odds, positive, whole, loss, curvature)
        return loss, odds @ self.X + weights * self.penalty, curvature

    def newton_direction(self, curvature: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Solve for the Newton steps of all rows, by preconditioned conjugate gradients."""
        rows, direction = np.arange(len(gradient)), np.zeros_like(gradient)
        ridge = self.penalty + LEAST_CURVATURE
        scale = 1.0 / (curvature @ self._squares + ridge)
        residual, search = gradient.copy(), scale * gradient
        size = np.einsum("kd,kd->k", residual, search)
        goal = np.maximum(RESIDUAL**2 * size, RESIDUAL * LEAST_GAIN)
        for _ in range(CG_STEPS):
            bent = np.matmul(search, self.X.T, out=self._scratch[2, : len(rows)])
            bent *= curvature
            product = bent @ self.X + search * ridge
            along = np.einsum("kd,kd->k", search, product)
            step = (size / np.maximum(along, TINY))[:, None]
            direction[rows] += step * search
            residual -= step * product
            scaled = scale * residual
            old_size, size = size, np.einsum("kd,kd->k", residual, scaled)
            search = scaled + (size / np.maximum(old_size, TINY))[:, None] * search
            unsolved = np.flatnonzero(size > goal)
            if not len(unsolved):
                break
            # A few solved rows more cost less than moving the others.
            if len(unsolved) < 0.75 * len(rows):
                rows, scale, residual = rows[unsolved], scale[unsolved], residual[unsolved]
                search, size, goal = search[unsolved], size[unsolved], goal[unsolved]
                curvature = moved_up(curvature, unsolved)
        return direction


def lesser_odds(logits: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Fill `out` with the odds of the less probable side, from 0 to 1, and return it."""
    np.abs(logits, out=out)
    np.negative(out, out=out)
    return np.exp(out, out=out)


@any_order
def add_losses(logits, odds, log_odds, positive, whole, loss, curvature):
    """Add the losses of instances to those of rows; `odds` become derivatives in the logits."""
    for k in range(logits.shape[0]):
        total = 0.0
        for i in range(logits.shape[1]):
            logit = logits[k, i]
            larger = 1.0 / (1.0 + odds[k, i])
            smaller = odds[k, i] * larger
            total += whole[k, i] * (max(logit, 0.0) + log_odds[k, i]) - positive[k, i] * logit
            curvature[k, i] = whole[k, i] * larger * smaller
            odds[k, i] = whole[k, i] * (larger if logit >= 0.0 else smaller) - positive[k, i]
        loss[k] += total


def moved_up(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Move some rows of an array to its top, in their order, and return these."""
    for place, row in enumerate(rows):
        if place != row:
            array[place] = array[row]
    return array[: len(rows)]


# The square of a larger number, or a sum of squares of many, is more than a float can hold.
LARGEST_FEATURE = 1e150


def fitted_scaler(model: Any, X: np.ndarray) -> Any:
    """Return a transformer, fitted to features, as the parameter `scaling` of a model says.

    That is "standard" (mean zero, variance one), "minmax" (from zero to one) or None (as they are).
    Constant features stay finite, and what is transformed keeps its precision. A feature that is
    too large for distances and variances is a ValueError.
    """
    check_choices(model, scaling=SCALINGS)
    largest = np.abs(X).max(axis=0).astype(np.float64)
    if (largest > LARGEST_FEATURE).any():
        column = int(np.argmax(largest))
        names = getattr(model, "feature_names_in_", None)
        name = "" if names is None else f" ({names[column]})"
        raise ValueError(
            f"Column {column}{name} holds {largest[column]:g}, whose square is more than a float "
            "can hold: divide the feature by a constant."
        )
    kinds = {"standard": StandardScaler, "minmax": MinMaxScaler, None: FunctionTransformer}
    return kinds[model.scaling]().fit(X)


def affine_map(scaler: Any) -> tuple[np.ndarray | float, np.ndarray | float]:
    """Return the factor and the shift that a scaler applies to each feature, in this order."""
    if hasattr(scaler, "mean_"):
        return 1 / scaler.scale_, -scaler.mean_ / scaler.scale_
    if hasattr(scaler, "min_"):
        return scaler.scale_, scaler.min_
    return 1.0, 0.0
