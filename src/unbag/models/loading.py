"""Loading models: decoded by `unbag.models.kinds`, and tested before they are returned."""

import os
import warnings
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from unbag._messages import one_line
from unbag._scikit_learn import BaseEstimator
from unbag.bags import Bags, first_nonfinite
from unbag.labels import LabelSets
from unbag.union.conditioner import Conditioner
from unbag.union.rates import RANGE, is_rate

from . import container
from .container import IN_HEADER, first_learnt
from .kinds import Decoder, ModelFileError, ModuleError, is_module

if TYPE_CHECKING:
    from unbag.fitting import Progress
    from unbag.frames import BagModel

# Models with more features are not tested, as one instance would be too large.
MOST_FEATURES = 10**7
# Instances of the test: a number that hardly any array has as its size.
N_TRIED = 7
# Errors that an invalid value can cause.
ERRORS_OF_WRONG_VALUES = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RuntimeError,
    MemoryError, NameError, AssertionError,
)  # fmt: skip


def load(path: str | os.PathLike[str], *, encoder: Any = None) -> "BagModel":
    """Read a model that ``model.save(path)`` wrote.

    Parameters
    ----------
    path : str or path-like
    encoder : torch.nn.Module, optional
        Only for an `ORNetwork` that was fitted with an encoder: a module of the same layers. What
        the encoder had learnt is put into a copy of it.

    Returns
    -------
    estimator
        The fitted model, of the class that was saved. Its predictions are the same to the last
        digit.

    Raises
    ------
    unbag.models.ModelFileError
        If the file is not a model, is damaged, contains numbers that no model can have, or has a
        format that this release cannot read; and if its model needs an encoder, and none that fits
        is given. Files contain no code, so nothing is run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import unbag
    >>> bags = [[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]]
    >>> model = unbag.ORLogisticRegression().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "letters.unbag")
    ...     again = unbag.load(Path(folder) / "letters.unbag")
    >>> again.predict_instances([[[0.5], [8.5]]]).tolist()
    ['a', 'b']
    """
    if encoder is not None and not is_module(encoder):
        raise TypeError(
            f"encoder must be a torch.nn.Module, such as MyEncoder(); got {encoder!r:.80}."
        )
    header, arrays = container.read(path)
    try:
        model = decoded(header, arrays, encoder)
        if not isinstance(model, BaseEstimator):
            raise ModelFileError("it holds no model")
        if encoder is not None and first_learnt(model, "encoder_") is None:
            raise ModuleError("its model has no encoder: leave out the argument encoder")
        _try_out(model)
    except ModuleError as error:
        raise _other_module(path, error) from None
    except ModelFileError as error:
        raise _unsound(path, header, error) from None
    except ERRORS_OF_WRONG_VALUES as error:
        if encoder is not None:
            why = f"it does not work with this encoder ({type(error).__name__}: {error})"
            raise _other_module(path, why) from None
        why = f"its values do not fit together ({type(error).__name__}: {error})"
        raise _unsound(path, header, why) from None
    for name, said in IN_HEADER.items():
        if isinstance(found := header["info"].get(said), dict):
            setattr(model, name, found)
    try:
        _check_info(model)
    except (ValueError, TypeError, AttributeError) as error:
        raise _unsound(path, header, f"what it says of its table is wrong ({error})") from None
    return cast("BagModel", model)


def decoded(header: dict[str, Any], arrays: dict[str, np.ndarray], encoder: Any = None) -> Any:
    """Return what a file holds, as its header and its arrays describe it."""
    decoder = Decoder(arrays, encoder)
    found = decoder.decode(header["model"])
    if type(found).__name__ != header["kind"]:
        raise ModelFileError("its header names another kind than it contains")
    if unused := sorted(arrays.keys() - {name for name, _ in decoder.used}):
        raise ModelFileError(f"the array {unused[0]!r} is not used")
    return found


def _check_info(model):
    """Raise an error unless roles and tuning, which stand in the header, have the right form."""
    # Those of the last step of a pipeline do not stand in the header, but count there.
    for part in (model, getattr(model, "model", model)):
        if hasattr(part, "roles_"):
            # It brings pyarrow, which other models need not load.
            from unbag.frames import remembered_roles

            remembered_roles(part)
    tuning = getattr(model, "tuning_", {})
    for name, kind in (("chosen", dict), ("tried", list)):
        if name in tuning and not isinstance(tuning[name], kind):
            raise ValueError(f"{name!r} of its tuning is no {kind.__name__}")


def _unsound(path, header, why):
    written = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
    return ModelFileError(
        f"{os.fsdecode(path)} is damaged, was edited, or comes from another version: "
        f"{one_line(why, 300)}. It was written by {one_line(written, 300)}; save the model "
        "again with the installed one."
    )


def _other_module(path, why):
    return ModelFileError(f"{os.fsdecode(path)} cannot be loaded: {one_line(why, 600)}.")


def _try_out(model):
    """Test a model on one bag, which fails if arrays do not match."""
    n_features = first_learnt(model, "n_features_in_")
    if n_features is None:
        raise ModelFileError("it does not say how many features it takes")
    if n_features > MOST_FEATURES:
        return
    # Ones, because some scalers only accept positive numbers.
    bags = Bags(np.ones((N_TRIED, n_features)), [0, N_TRIED])
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        if not hasattr(model, "decision_function"):
            _check_finite("transform", model.transform(bags).X)
            return
        n_classes = len(_checked_classes(model.classes_))
        _check_scores("decision_function", model.decision_function(bags), 1, n_classes)
        model.predict(bags)
        if hasattr(model, "predict_instances_proba"):
            probabilities = model.predict_instances_proba(bags)
            n_columns = n_classes + bool(getattr(model.model, "has_background_", False))
            _check_scores("predict_instances_proba", probabilities, N_TRIED, n_columns)
        _check_one_for_each_class(model, n_classes)
        if (progress := getattr(model.model, "progress_", None)) is not None:
            check_progress(progress, n_classes)
        # Exact inference would use the same scores, but also compiled code.
        if hasattr(model, "annotate") and not hasattr(model, "log_likelihood"):
            model.annotate(bags, LabelSets(np.eye(1, n_classes), model.classes_))


def _checked_classes(classes):
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or not classes.size:
        raise ModelFileError("classes_ is not a list of classes")
    # `LabelSets` checks classes.
    return LabelSets(np.empty((0, classes.size)), classes).classes


def _check_one_for_each_class(model, n_classes):
    """Raise an error unless rates and numbers of bags, if there are any, are one for each class."""
    given = getattr(model.model, "conditioner_", Conditioner())
    rates = {"missed_rate": given.missed_rate, "false_rate": given.false_rate}
    for name, found in {**rates, "class_counts_": first_learnt(model, "class_counts_")}.items():
        _check_shape(name, found, (n_classes,))
        if found is not None and np.asarray(found).dtype.kind not in "iuf":
            raise ModelFileError(f"{name} holds other than numbers")
        if found is not None and name in rates and not np.all(is_rate(found)):
            raise ModelFileError(f"{name} must be {RANGE}")


def check_progress(progress: "Progress", n_classes: int) -> None:
    """Raise an error unless a fit can go on from what the file holds of it."""
    n_columns = n_classes + bool(progress.decision.background)
    scale, n_features = progress.scale, progress.scale.shift.size
    _check_shape("weights", progress.weights, (n_columns, n_features + 1))
    for found in (scale.shift, scale.scale, scale.centre):
        _check_shape("the scale of its fit", found, (n_features,))
    for rate in (*(progress.rates or ()), *(progress.decision.rates or ())):
        _check_shape("a rate of its fit", rate, (1, n_columns))


def _check_shape(name, found, shape):
    if found is not None and np.shape(found) != shape:
        raise ModelFileError(f"{name} has shape {np.shape(found)}, not {shape}")


def _check_scores(method, scores, n_rows, n_columns):
    if scores.shape not in ((n_rows, n_columns), (n_rows,)):
        raise ModelFileError(
            f"{method} gives scores of shape {scores.shape}, not {(n_rows, n_columns)}"
        )
    _check_finite(method, scores)


def _check_finite(method, answer):
    if first_nonfinite(answer if np.ndim(answer) == 2 else np.reshape(answer, (-1, 1))) is not None:
        raise ModelFileError(f"{method} gives NaN or infinity where all features are 1")
