"""Fits to Parquet sets: from files to a fitted model, with checkpoints and a pace on the way."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, TypeVar

import numpy as np

from unbag._files import DataError, PathLike, check_output
from unbag.estimators import ORLogisticRegression
from unbag.estimators.stored_fit import fit_stored
from unbag.fitting import Progress, StreamedTraining, Training
from unbag.io import Roles
from unbag.io.stored import StoredBags

from .checkpoints import Checkpoint, KeptProgress, describe_fit

#: The kind of a model: what is fitted is what comes back.
Model = TypeVar("Model", bound=Any)


@dataclass
class Pace:
    """How far a fit has got, and how fast it goes.

    Parameters
    ----------
    n_bags : int
        Of the set.
    max_iter : int
    iteration : int
        Iterations that are completed.
    log_likelihood : float
        After the last of them; NaN before the first.
    bags_done : int
        Bags that have answered so far: all of them, many times.
    bags_since : int
        Those that have since the last iteration.
    first_iteration : int
        Iterations that were completed before, if the fit goes on.
    begun : float
        When it began, by `time.perf_counter`.
    """

    n_bags: int
    max_iter: int
    iteration: int = 0
    log_likelihood: float = math.nan
    bags_done: int = 0
    bags_since: int = 0
    first_iteration: int = 0
    begun: float = field(default_factory=perf_counter, repr=False)

    @property
    def seconds(self) -> float:
        """Time since the fit began."""
        return perf_counter() - self.begun

    @property
    def bags_per_second(self) -> float:
        """Bags that have answered in a second."""
        return self.bags_done / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Time until `max_iter` iterations are done; None before the first. It may end earlier."""
        done = self.iteration - self.first_iteration
        if done < 1:
            return None
        return (self.max_iter - self.iteration) * self.seconds / done

    def __str__(self) -> str:
        left = self.seconds_left
        rest = "" if left is None else f", at most {duration(left)} left"
        return (
            f"iteration {self.iteration}/{self.max_iter}, log-likelihood "
            f"{self.log_likelihood:.6g}, {self.bags_per_second:,.0f} bags/s{rest}"
        )


def duration(seconds: float) -> str:
    """Write a time span for people.

    Examples
    --------
    >>> duration(59.6), duration(3725)
    ('0:01:00', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def fit(
    model: Model,
    path: PathLike | StoredBags,
    *,
    bag: str | None = None,
    labels: str | None = None,
    instance_labels: str | None = None,
    roles: Roles | None = None,
    checkpoint: PathLike | None = None,
    resume: bool = False,
    scratch: PathLike | Literal["auto"] | None = "auto",
    progress: Callable[[Pace], object] | None = None,
) -> Model:
    """Fit a model to a Parquet set that need not fit in memory.

    Parameters
    ----------
    model : ORLogisticRegression or ORNetwork
        Fitted in place, as by its `fit`.
    path : str or path
        A folder of Parquet files, or one: a row per instance, the rows of each bag one after the
        other; or a row per bag, with lists. Files come in the order of their names, and a bag may
        go on from the end of one to the start of the next. Or `StoredBags` that were opened before.
    bag, labels : str, optional
        The columns that name the bag, and its labels; by default those called so.
    instance_labels : str, optional
        A column of known labels of instances, to be fitted to as well.
    roles : Roles, optional
        What the other columns are.
    checkpoint : str or path, optional
        A file that is written after each iteration; not of networks.
    resume : bool, default=False
        Whether to go on from the checkpoint, if it is there. Data and parameters must be the same,
        but for `max_iter` and `tol`. L-BFGS begins a new history there.
    scratch : str or path, "auto" or None
        A folder for features as they are decoded, in a file without a name, so that this is done
        once. "auto" is one for temporary files, unless there is no room in it or compression saves
        more than half; with None they are decoded each time.
    progress : callable, optional
        Called with a `Pace` after each block of bags; of networks, after each step.

    Returns
    -------
    ORLogisticRegression or ORNetwork
        The model itself; it remembers the roles of the columns, as after `unbag.fit`. Its
        coefficients are those of a fit in memory; those of the "stochastic"
        solver are not, since its samples are blocks of rows. Networks learn from batches of bags
        out of a few blocks at a time; they are those of a fit in memory where one batch holds all.

    Notes
    -----
    Memory holds what is known of bags (size, id, label set), and a few blocks of features. Every
    evaluation of the objective reads all features; while a block is computed, the next is read.
    Features in single precision stay such.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from unbag import ORLogisticRegression, out_of_core
    >>> table = pa.table({"night": [1, 1, 2, 2, 3], "tags": ["a|b"] * 2 + ["a"] * 2 + ["b"],
    ...                   "pitch": [0.0, 9.0, 1.0, 0.0, 8.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/part-0.parquet")
    ...     model = out_of_core.fit(ORLogisticRegression(), folder, bag="night", labels="tags")
    >>> model.predict_instances([[[0.5], [8.5]]])
    array(['a', 'b'], dtype='<U1')
    """
    check_fit(model, checkpoint, resume)
    given = Roles(bag=bag, labels=labels, instance_labels=instance_labels)
    stored = opened(
        path,
        given if roles is None else roles.merged(given),
        with_instance_labels=instance_labels is not None,
    )
    if stored.labels is None:
        raise DataError(f"{stored.table.path} has no labels to fit to: name their column.")
    if is_network(model):
        with stored.decoded_once(scratch):
            fit_network(model, stored, progress)
        model.roles_ = stored.roles.remembered()
        return model
    of = describe_fit(model, stored)
    reached = None
    if checkpoint is not None:
        check_output(Path(checkpoint), *stored.table.files)
        if resume and Path(checkpoint).exists():
            reached = Checkpoint.load(checkpoint)
            reached.check_same(of, checkpoint)
    n_before = 0 if reached is None else len(reached.history)
    pace = Pace(len(stored), model.max_iter, n_before, first_iteration=n_before)

    def heard(n_bags: int) -> None:
        pace.bags_done += n_bags
        pace.bags_since += n_bags
        if progress is not None:
            progress(pace)

    def begin(training: Training, W: np.ndarray, watch: Callable[[int, float], object]) -> Progress:
        def keep(now: KeptProgress) -> None:
            pace.iteration, pace.log_likelihood = len(now.history), now.history[-1]
            pace.bags_since = 0
            if checkpoint is not None:
                kept = Checkpoint(now.weights, training.scale, now.history, now.rates, of)
                kept.save(checkpoint)

        history = [] if reached is None else list(reached.history)
        return KeptProgress(W, watch, history, keep=keep)

    make: Any = partial(StreamedTraining, on_bags_done=heard)
    with stored.decoded_once(scratch):
        fit_stored(
            model,
            stored,
            stored.labels,
            instance_labels=stored.instance_labels,
            scale=None if reached is None else reached.scale,
            reached=None if reached is None else reached.progress,
            begin=begin,
            make=make,
        )
    model.roles_ = stored.roles.remembered()
    return model


def is_network(model: Any) -> bool:
    """Return whether a model learns from batches of stored bags by itself, as networks do."""
    return hasattr(model, "_fit_stored")


def check_fit(model: Any, checkpoint: PathLike | None, resume: bool) -> None:
    """Raise an error if a model cannot be fitted block by block, or not with checkpoints."""
    if not is_network(model):
        check_model(model)
    elif checkpoint is not None or resume:
        raise DataError(
            f"checkpoint and resume are for ORLogisticRegression: a fit of {type(model).__name__} "
            "has no checkpoints. Leave them out; warm_start=True goes on with fitted networks."
        )


def fit_network(model: Any, stored: StoredBags, progress: Callable[[Pace], object] | None) -> Any:
    """Fit networks to batches of bags, and say how far that has got."""
    pace = Pace(len(stored), model.max_iter)

    def watch(iteration: int, log_likelihood: float) -> object:
        pace.iteration, pace.log_likelihood = iteration, log_likelihood
        if progress is not None:
            progress(pace)
        return model._watch(iteration, log_likelihood)

    def heard(n_bags: int) -> None:
        pace.bags_done += n_bags

    return model._fit_stored(
        stored,
        stored.labels,
        instance_labels=stored.instance_labels,
        watch=None if progress is None else watch,
        on_bags_done=heard,
    )


def opened(path: PathLike | StoredBags, roles: Roles, **options: Any) -> StoredBags:
    """Return the bags of a set, which may have been opened before."""
    return path if isinstance(path, StoredBags) else StoredBags(path, roles, **options)


def check_model(model: Any, where: str = "out of core") -> None:
    """Raise an error if a model cannot be fitted to bags that are not all in one place."""
    if isinstance(model, ORLogisticRegression):
        return
    steps = ", since it has steps that look at all instances first" * hasattr(model, "steps")
    raise DataError(
        f"{type(model).__name__} cannot be fitted {where}{steps}: fit ORLogisticRegression, or "
        "fit it in memory to a part of the data."
    )
