"""Checkpoints: the state of a fit, written after each iteration, so that it can be resumed."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from unbag._files import DataError, PathLike, existing_file, unreadable, writing
from unbag._messages import argument
from unbag.fitting import Progress, Scale
from unbag.union.rates import Rates

#: Parameters that may change when a fit is resumed.
MAY_CHANGE = (
    "max_iter", "tol", "callback", "verbose", "n_jobs", "device", "warm_start", "threshold"
)  # fmt: skip


@dataclass
class Checkpoint:
    """The state of a fit: weights for scaled features, the scale, and the history.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_features + 1)
    scale : Scale
    history : list of float
        Log-likelihood after each iteration.
    rates : Rates or None
        The learnt rates of wrong labels, if any.
    of : dict
        Description of the model and the data; see `describe_fit`.
    """

    weights: np.ndarray
    scale: Scale
    history: list[float]
    rates: Rates | None
    of: dict[str, Any]

    def save(self, path: PathLike) -> None:
        """Write it to a file, completely or not at all.

        Parameters
        ----------
        path : str or path
        """
        arrays: dict[str, Any] = {
            "weights": self.weights, "shift": self.scale.shift, "scale": self.scale.scale,
            "history": np.array(self.history), "of": np.array(json.dumps(self.of)),
        }  # fmt: skip
        if self.scale.centre is not None:
            arrays["centre"] = self.scale.centre
        if self.rates is not None:
            arrays |= {"missed": self.rates.missed, "false": self.rates.false}
        packed = io.BytesIO()
        np.savez(packed, **arrays)
        with writing(path) as file:
            file.write(packed.getbuffer())

    @classmethod
    def load(cls, path: PathLike) -> "Checkpoint":
        """Read a file that `save` has written.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Checkpoint
        """
        path = existing_file(path)
        try:
            # From memory: numpy does not close the file of a damaged archive.
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as found:
                arrays = dict(found)
            rates = None
            if "missed" in arrays:
                rates = Rates(arrays["missed"], arrays["false"])
            scale = Scale(arrays["shift"], arrays["scale"], arrays.get("centre"))
            of = json.loads(str(arrays["of"]))
            return cls(arrays["weights"], scale, arrays["history"].tolist(), rates, of)
        except OSError as error:
            raise unreadable(path, error) from error
        except (ValueError, KeyError, EOFError, TypeError, BadZipFile) as error:
            raise DataError(f"{path} is not a checkpoint of a fit, or is damaged.") from error

    @property
    def progress(self) -> Progress:
        """The same as a `Progress` of a solver."""
        return Progress(self.weights, history=self.history, rates=self.rates)

    def check_same(self, of: dict[str, Any], path: PathLike) -> None:
        """Raise an error if the checkpoint belongs to another fit.

        Parameters
        ----------
        of : dict
            Description of the fit to resume.
        path : str or path
            Of the checkpoint.
        """
        for name, value in of.items():
            if self.of.get(name) != value:
                raise DataError(
                    f"{path} belongs to another fit: {name} was {self.of.get(name)!r}, and is "
                    f"{value!r} now. Use the same model and data, or leave out "
                    f"{argument('resume', True)} to start over."
                )


def describe_fit(model: Any, stored: Any) -> dict[str, Any]:
    """Describe, for JSON, what must be the same for a fit to be resumed: model and data."""
    parameters = {
        name: np.asarray(value).tolist() if isinstance(value, np.ndarray) else value
        for name, value in model.get_params().items()
        if name not in MAY_CHANGE
    }
    of = {
        "files": [[part.path.name, *part.state[1:3]] for part in stored.table.parts],
        "features": stored.feature_names.tolist(),
        "classes": [str(label) for label in stored.labels.classes.tolist()],
        "bags": len(stored),
        **{f"{name} of the model": value for name, value in parameters.items()},
    }
    return json.loads(json.dumps(of, default=str))


class KeptFit:
    """The checkpoint file of a running fit, which `describe_fit` describes."""

    def __init__(self, path: PathLike, of: dict[str, Any]) -> None:
        self.path = path
        self.of = of

    def reached(self) -> tuple[Scale, Progress] | None:
        """Return the scale of features and the progress so far; None without a checkpoint."""
        if not Path(self.path).exists():
            return None
        found = Checkpoint.load(self.path)
        found.check_same(self.of, self.path)
        return found.scale, found.progress

    def save(self, scale: Scale, now: Progress) -> None:
        """Write the current state of the fit."""
        Checkpoint(now.weights, scale, now.history, now.rates, self.of).save(self.path)


def checkpoint_beside(output: PathLike) -> Path:
    """Return the path of the checkpoint of a model that is being fitted."""
    return Path(f"{output}.checkpoint")
