"""Fits to Parquet sets, with checkpoints and progress."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, Literal, TypeVar

from unbag._files import DataError, PathLike, check_output
from unbag.estimators import ORLogisticRegression
from unbag.fitting import Progress, StreamedTraining, Training
from unbag.io import Roles
from unbag.io.guess import with_known
from unbag.io.parquet_set import ParquetSet
from unbag.io.stored import StoredBags
from unbag.learning import (
    TrainingSet,
    refuse_contradiction,
    refuse_corrections,
    refuse_truth,
)
from unbag.validation import unchanged_on_error

from .checkpoints import KeptFit, describe_fit

#: The type of a model, which is also the type that `fit` returns.
Model = TypeVar("Model", bound=Any)


@dataclass
class Pace:
    """Progress and speed of a fit.

    Parameters
    ----------
    n_bags : int
        Of the set.
    max_iter : int
    iteration : int
        Completed iterations.
    log_likelihood : float
        After the last of them; NaN before the first.
    bags_done : int
        Bags processed so far, over all iterations.
    bags_since : int
        Bags processed since the last iteration.
    first_iteration : int
        Iterations that were completed before the fit was resumed.
    begun : float
        When the fit started, by `time.perf_counter`.
    report : callable, optional
        Called with this object after each block of bags; for networks, after each step.
    """

    n_bags: int
    max_iter: int
    iteration: int = 0
    log_likelihood: float = math.nan
    bags_done: int = 0
    bags_since: int = 0
    first_iteration: int = 0
    begun: float = field(default_factory=perf_counter, repr=False)
    report: "Callable[[Pace], object] | None" = field(default=None, repr=False)

    def on_bags_done(self, n_bags: int) -> None:
        """Count processed bags, and report progress.

        Parameters
        ----------
        n_bags : int
        """
        self.bags_done += n_bags
        self.bags_since += n_bags
        if self.report is not None:
            self.report(self)

    def on_iteration(self, iteration: int, log_likelihood: float) -> None:
        """Note a completed iteration.

        Parameters
        ----------
        iteration : int
        log_likelihood : float
        """
        self.iteration, self.log_likelihood, self.bags_since = iteration, log_likelihood, 0

    @property
    def seconds(self) -> float:
        """Time since the fit began."""
        return perf_counter() - self.begun

    @property
    def bags_per_second(self) -> float:
        """Bags processed per second."""
        return self.bags_done / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Time until `max_iter` iterations are done, or None. The fit may converge earlier."""
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
    """Format a duration.

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
    known: str | None = None,
    corrections: PathLike | None = None,
    ignore_known: bool = False,
    instance_labels: str | None = None,
    untagged: str | None = None,
    roles: Roles | None = None,
    checkpoint: PathLike | None = None,
    resume: bool = False,
    scratch: PathLike | Literal["auto"] | None = "auto",
    progress: Callable[[Pace], object] | None = None,
) -> Model:
    """Fit a model to a Parquet set that may be larger than memory.

    Parameters
    ----------
    model : ORLogisticRegression or ORNetwork
        Fitted in place, as by its `fit` method.
    path : str or path
        A Parquet file or a folder of them: a row per instance, with the rows of each bag
        contiguous; or a row per bag, with lists. Files are read in the order of their names, and a
        bag may continue from one file to the next. Or `StoredBags` that were opened before.
    bag, labels : str, optional
        The columns of the bag and of its labels; by default "bag" and "labels".
    known : str, optional
        A column of labels of instances that people gave, to be fitted to as well; by default
        ``known_label``, if there is one.
    corrections : str or path, optional
        Refused: the rows of two tables are compared in memory only. Fit to the annotated table in
        which people have filled in ``known_label``, or use `unbag.fit`.
    ignore_known : bool, default=False
        Whether to do without such labels, where the set has some.
    instance_labels : str, optional
        Refused: labels to compare with are not learnt from. Use `known`.
    untagged : {"refuse", "unknown", "absent"}, optional
        What an empty cell in place of labels means, as in :class:`unbag.io.Roles`.
    roles : Roles, optional
        The roles of other columns; the arguments above take precedence.
    checkpoint : str or path, optional
        A file that is written after each iteration; not for networks. It replaces an earlier
        checkpoint, but no other file.
    resume : bool, default=False
        Whether to continue from the checkpoint, if it exists. Data, labels and parameters must be
        the same, except `max_iter` and `tol`. L-BFGS restarts with an empty history.
    scratch : str or path, "auto" or None
        A folder for an unnamed temporary file of decoded features, so that they are decoded only
        once. "auto" uses the system's temporary folder, unless it is too small or compression saves
        more than half. With None, features are decoded in every pass.
    progress : callable, optional
        Called with a `Pace` after each block of bags; for networks, after each step.

    Returns
    -------
    ORLogisticRegression or ORNetwork
        The model itself; it remembers the roles of the columns, as after `unbag.fit`. Its
        coefficients are the same as in memory, except with the "stochastic" solver, which samples
        blocks of rows. Networks learn from batches of bags out of a few blocks at a time; they are
        the same as in memory if one batch contains all bags.

    Notes
    -----
    Memory holds the size, id and label set of each bag, and a few blocks of features. Every
    evaluation of the objective reads all features; while one block is processed, the next is read.
    Features in single precision are not converted.

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
    refuse_truth(instance_labels)
    refuse_corrections(corrections)
    refuse_contradiction(ignore_known, known=known)
    given = Roles.given(roles, bag=bag, labels=labels, known=known, untagged=untagged)
    stored = opened(path, given, ignore_known=ignore_known)
    data = training_set_of(stored).check_learnable().announced()
    pace = Pace(len(stored), model.max_iter, report=progress)
    with stored.decoded_once(scratch):
        if is_network(model):
            fit_network(model, data, pace)
        else:
            fit_linear(model, data, pace, checkpoint, resume)
    data.remember(model)
    return model


def fit_linear(
    model: ORLogisticRegression,
    data: TrainingSet,
    pace: Pace,
    checkpoint: PathLike | None,
    resume: bool,
) -> None:
    """Fit a linear model block by block, and write a checkpoint after each iteration."""
    stored, reached, kept = data.bags, None, None
    if checkpoint is not None:
        second = stored.roles.label_table
        check_output(checkpoint, *stored.table.files, *([] if second is None else [second]))
        kept = KeptFit(checkpoint, describe_fit(model, stored))
        reached = kept.reached() if resume else None
    if reached is not None:
        pace.iteration = pace.first_iteration = len(reached[1].history)

    def watch(training: Training, now: Progress, iteration: int, log_likelihood: float) -> object:
        pace.on_iteration(iteration, log_likelihood)
        if kept is not None:
            kept.save(training.scale, now)
        return model._watch(iteration, log_likelihood)

    make = partial(StreamedTraining, on_bags_done=pace.on_bags_done)
    fit_not_in_memory(model, data, make, watch, reached)


def fit_not_in_memory(
    model: ORLogisticRegression, data: TrainingSet, make: Any, watch: Any, reached: Any = None
) -> None:
    """Fit a linear model to bags that are not in memory, as its `fit` does in memory."""
    with unchanged_on_error(model):
        model._fit(data.bags, data.labels, data.known, None, make, reached, watch)


def fit_network(model: Any, data: TrainingSet, pace: Pace) -> None:
    """Fit networks to batches of bags, and report after each step."""
    report, pace.report = pace.report, None

    def watch(iteration: int, log_likelihood: float) -> object:
        pace.on_iteration(iteration, log_likelihood)
        if report is not None:
            report(pace)
        return model._watch(iteration, log_likelihood)

    model._fit_stored(
        data.bags,
        data.labels,
        instance_labels=data.known,
        # Without a report, no step waits for the device.
        watch=None if report is None else watch,
        on_bags_done=pace.on_bags_done,
    )


def is_network(model: Any) -> bool:
    """Return whether a model has its own fit to stored bags, as networks do."""
    return hasattr(model, "_fit_stored")


def check_fit(model: Any, checkpoint: PathLike | None, resume: bool) -> None:
    """Raise an error if a model cannot be fitted block by block, or has no checkpoints."""
    if not is_network(model):
        check_model(model)
    elif checkpoint is not None or resume:
        raise DataError(
            f"checkpoint and resume are for ORLogisticRegression: a fit of {type(model).__name__} "
            "has no checkpoints. Leave them out; warm_start=True continues with fitted networks."
        )


def opened(
    path: PathLike | StoredBags, roles: Roles, *, ignore_known: bool = False, **options: Any
) -> StoredBags:
    """Return the bags of a set, which may have been opened before, with labels that people gave."""
    if isinstance(path, StoredBags):
        return path
    table = ParquetSet(path)
    roles = with_known(table, roles, ignore_known)
    return StoredBags(table, roles, with_known=True, **options)


def training_set_of(stored: StoredBags) -> TrainingSet:
    """Return stored bags as a `TrainingSet`."""
    known = stored.known
    if known is not None and not any(each is not None for each in known):
        # A column that nobody has filled in.
        known = None
    path, columns = stored.table.path, stored.table.columns
    unused = stored.unused_names
    return TrainingSet(stored, stored.labels, known, stored.roles, path, columns, unused)


def check_model(model: Any, where: str = "out of core") -> None:
    """Raise an error if a model cannot be fitted to bags that are not in memory."""
    if isinstance(model, ORLogisticRegression):
        return
    steps = ", since its transformers need all instances at once" * hasattr(model, "steps")
    raise DataError(
        f"{type(model).__name__} cannot be fitted {where}{steps}: fit ORLogisticRegression, or "
        "fit it in memory to a part of the data."
    )
