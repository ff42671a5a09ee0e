"""What fitted networks say of bags."""

import copy
import math
import os
from typing import Any

import numpy as np
import torch
from torch import nn

from unbag.estimators.instances import UnionClassifier
from unbag.fitting import Scale
from unbag.models import ModelFileError

from .activation import BagRows
from .encoding import piecewise_linear
from .network import MemberNetworks
from .threads import threads_that_pay

# Hidden units, of all members together, that are computed at once.
SCORED_AT_ONCE = 2**24


class NetworkClassifier(UnionClassifier):
    """Base of the estimators whose instances are scored by networks, and by what their bag is like.

    A subclass learns the attributes below, and has the parameters `device` and `encoder`.
    """

    device: str
    encoder: nn.Module | None

    weights_: list[np.ndarray]
    biases_: list[np.ndarray]
    context_: list[np.ndarray]
    scale_: Scale
    edges_: np.ndarray
    encoder_: nn.Module
    has_background_: bool

    @property
    def _has_background(self):
        return self.has_background_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def _scaled(self, X):
        return (X.astype(np.float64, copy=False) - self.scale_.shift) / self.scale_.scale

    def _inputs(self, X, dtype):
        """Return what networks are shown of features."""
        inputs = self._scaled(X)
        if hasattr(self, "edges_"):
            inputs = np.hstack([inputs, piecewise_linear(inputs, self.edges_)])
        return inputs.astype(dtype, copy=False)

    def _networks(self):
        """Return the fitted networks, on the CPU."""
        parts = (self.weights_, self.biases_, self.context_)
        return MemberNetworks(*([torch.from_numpy(each) for each in part] for part in parts))

    def _device(self):
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)

    def _label_scores(self, bags):
        return self._scored(self._tensor(bags.X), bags.offsets)

    def _instance_log_proba(self, X):
        """Score instances that are each alone in its bag."""
        return self._scored(self._tensor(X), np.arange(len(X) + 1))

    def _tensor(self, X):
        return torch.from_numpy(self._inputs(X, np.float64))

    @torch.no_grad()
    def _scored(self, X, offsets):
        """Compute log-probabilities, the mean over members of probabilities, in float64.

        Whole bags at a time, so that what is said of a bag does not depend on the others.
        """
        device = self._device()
        # A model file may come from a machine with other devices.
        if device.type == "cuda" and not torch.cuda.is_available():
            device = torch.device("cpu")
        networks = self._networks().double().to(device)
        encoder = getattr(self, "encoder_", None)
        if encoder is not None:
            encoder = copy.deepcopy(encoder).double().to(device)
        answers = [np.empty((0, self.biases_[-1].shape[2]))]
        for first, last in networks.affordable(offsets, SCORED_AT_ONCE):
            inputs = X[offsets[first] : offsets[last]].to(device)
            features = inputs if encoder is None else encoder(inputs)
            rows = BagRows.of(offsets[first : last + 1] - offsets[first], device)
            with threads_that_pay(networks.n_multiplications(len(inputs))):
                logits = networks(features.expand(networks.n_members, *features.shape), rows)
            log_proba = torch.logsumexp(torch.log_softmax(logits, 2), 0)
            answers.append((log_proba - math.log(networks.n_members)).cpu().numpy())
        return np.concatenate(answers)

    def save(self, path: str | os.PathLike[str], *, info: dict[str, Any] | None = None) -> None:
        """Write the fitted model to a file that `unbag.load` reads; it holds no code.

        Parameters
        ----------
        path : str or path-like
            An old file there is replaced when the new one is complete, and else stays.
        info : dict, optional
            Facts to keep with the model, of what JSON can hold, for
            `unbag.models.read_header`.
        """
        if self.encoder is not None:
            raise ModelFileError(
                "A model file holds no code, and so no encoder: save encoder_.state_dict() by "
                "torch.save, or give the encoder's features to a network without one."
            )
        super().save(path, info=info)
