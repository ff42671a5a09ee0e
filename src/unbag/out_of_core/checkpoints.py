"""Checkpoints: the progress of a fit in a file, written after each iteration."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from unbag._files import DataError, PathLike, existing_file, unwritable
from unbag._messages import argument, shortened
from unbag.fitting import Progress
from unbag.labels import digest_of
from unbag.learning import TrainingSet
from unbag.models import container
from unbag.models.kinds import Encoder
from unbag.models.loading import ERRORS_OF_WRONG_VALUES, check_progress, decoded

#: Parameters that may change when a fit is resumed.
MAY_CHANGE = ("max_iter", "tol", "verbose", "n_jobs", "threshold")

#: Roles that do not change a fit, or that the features and the digest of the labels cover.
NOT_FITTED = (
    "features", "instance_labels", "instance_id", "carry", "media", "start", "end", "label_table",
    "label_separator",
)  # fmt: skip


def write_checkpoint(path: PathLike, progress: Progress, of: dict[str, Any]) -> None:
    """Write the progress of the fit that `of` describes, as a file like that of a model."""
    encoder = Encoder()
    tree = encoder.encode(progress, "")
    try:
        container.write(path, container.header_of("Progress", tree, info=of), encoder.arrays)
    except OSError as error:
        raise unwritable(path, error) from error


def read_checkpoint(path: PathLike) -> tuple[Progress, dict[str, Any]]:
    """Return the progress of a fit, and what it is a fit of."""
    path = existing_file(path)
    try:
        header, arrays = container.read(path)
        progress, of = decoded(header, arrays), header["info"]
        if not isinstance(progress, Progress) or progress.scale.shift.size != len(of["features"]):
            raise ValueError("it is not the progress of such a fit")
        check_progress(progress, len(of["classes"]))
    except ERRORS_OF_WRONG_VALUES as error:
        raise DataError(
            f"{path} is not a checkpoint of a fit, or is damaged, and a checkpoint is to be "
            "written there: move it away, or choose another name."
        ) from error
    return progress, of


def describe_fit(model: Any, data: TrainingSet) -> dict[str, Any]:
    """Describe, for JSON, what must be the same for a fit to be resumed: model, data and labels.

    The roles say which columns were read. The digest of the labels also covers how they were read,
    and labels from a second table.
    """
    stored, labels = data.bags, data.label_sets
    roles = {
        f"{name} of the table": value
        for name, value in asdict(stored.roles).items()
        if name not in NOT_FITTED and value not in (None, ())
    }
    parameters = {
        f"{name} of the model": value
        for name, value in model.get_params().items()
        if name not in MAY_CHANGE
    }
    of = {
        "files": [[part.path.name, *part.state[1:3]] for part in stored.table.parts],
        "features": stored.feature_names.tolist(),
        "classes": [str(label) for label in labels.classes.tolist()],
        "bags": len(stored),
        "instances": stored.n_instances,
        **roles,
        "what the labels say": digest_of(labels, data.known),
        **parameters,
    }
    return json.loads(json.dumps(of, default=plain))


def plain(value: object) -> Any:
    """Return an array as a list, and what else JSON does not have as text."""
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


def reached(path: PathLike, of: dict[str, Any], resume: bool) -> Progress | None:
    """Return where the fit that `of` describes goes on from; None if it begins.

    Raises an error if the file is not a checkpoint: nothing else is replaced by one.
    """
    if not Path(path).exists():
        return None
    progress, found = read_checkpoint(path)
    if not resume:
        return None
    for name in of | found:
        before, now = found.get(name), of.get(name)
        if before != now:
            raise DataError(
                f"{path} belongs to another fit: {name} was {shortened(before)}, "
                f"and is {shortened(now)} now. Use the same model and data, or leave out "
                f"{argument('resume', True)} to start over."
            )
    return progress
