"""Checkpoints: the state of a fit, written after each iteration, so that it can be resumed."""

import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unbag._files import DataError, PathLike, existing_file, parsed_json, writing
from unbag._messages import argument, shortened
from unbag.fitting import Progress, Scale
from unbag.io.formats.npz import read_arrays
from unbag.labels import digest_of
from unbag.union.rates import Rates

#: Parameters that may change when a fit is resumed.
MAY_CHANGE = (
    "max_iter", "tol", "callback", "verbose", "n_jobs", "device", "warm_start", "threshold"
)  # fmt: skip


#: Roles that do not change a fit, or that the features and the digest of the labels cover.
NOT_FITTED = (
    "features", "instance_labels", "instance_id", "carry", "media", "start", "end", "label_table",
    "delimiter",
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
        needed = ("weights", "shift", "scale", "history", "of")
        path = existing_file(path)
        try:
            arrays = read_arrays(path, needed, ("centre", "missed", "false"))
            of = parsed_json(str(arrays["of"]))
            if not _is_sound(arrays, of):
                raise ValueError("its arrays do not fit together")
        except ValueError as error:
            raise DataError(
                f"{path} is not a checkpoint of a fit, or is damaged, and a checkpoint is to be "
                "written there: move it away, or choose another name."
            ) from error
        rates = Rates(arrays["missed"], arrays["false"]) if "missed" in arrays else None
        scale = Scale(arrays["shift"], arrays["scale"], arrays.get("centre"))
        return cls(arrays["weights"], scale, arrays["history"].tolist(), rates, of)

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
        for name in of | self.of:
            before, now = self.of.get(name), of.get(name)
            if before != now:
                raise DataError(
                    f"{path} belongs to another fit: {name} was {shortened(before)}, "
                    f"and is {shortened(now)} now. Use the same model and data, or leave out "
                    f"{argument('resume', True)} to start over."
                )


def _is_sound(arrays: dict[str, np.ndarray], of: object) -> bool:
    """Return whether the arrays of a checkpoint are finite and fit together."""
    if not isinstance(of, dict) or not isinstance(of.get("features"), list):
        return False
    n_features = len(of["features"])
    numbers = [array for name, array in arrays.items() if name != "of"]
    if not all(array.dtype.kind == "f" and np.isfinite(array).all() for array in numbers):
        return False
    n_rows = len(arrays["weights"]) if arrays["weights"].ndim else 0
    shapes = {
        "weights": (n_rows, n_features + 1), "shift": (n_features,), "scale": (n_features,),
        "centre": (n_features,), "missed": (1, n_rows), "false": (1, n_rows), "of": (),
        "history": (arrays["history"].size,),
    }  # fmt: skip
    has_both_rates = ("missed" in arrays) == ("false" in arrays)
    return has_both_rates and all(shapes[name] == array.shape for name, array in arrays.items())


def describe_fit(model: Any, stored: Any) -> dict[str, Any]:
    """Describe, for JSON, what must be the same for a fit to be resumed: model, data and labels.

    The roles say which columns were read. The digest of the labels also covers how they were read,
    and labels from a second table.
    """
    roles = {
        f"{name} of the table": value
        for name, value in asdict(stored.roles).items()
        if name not in NOT_FITTED and value not in (None, ())
    }
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
        "instances": stored.n_instances,
        **roles,
        "what the labels say": digest_of(stored.labels, stored.known),
        **{f"{name} of the model": value for name, value in parameters.items()},
    }
    return json.loads(json.dumps(of, default=str))


class KeptFit:
    """The checkpoint file of a running fit, which `describe_fit` describes.

    It replaces an earlier checkpoint, but no other file.
    """

    def __init__(self, path: PathLike, of: dict[str, Any]) -> None:
        self.path = path
        self.of = of
        if Path(path).exists():
            # Raises an error if the file is not a checkpoint.
            Checkpoint.load(path)

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
