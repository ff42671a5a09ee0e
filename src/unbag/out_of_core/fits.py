"""Fits to Parquet sets, with checkpoints and progress."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from time import perf_counter
from typing import Any, Literal, TypeVar, Unpack

from unbag._files import DataError, PathLike, check_output
from unbag.estimators import ORLogisticRegression
from unbag.fitting import Progress
from unbag.fitting.linear import Watch
from unbag.learning import (
    TrainingSet,
    refuse_contradiction,
    refuse_corrections,
    refuse_truth,
)
from unbag.tables import Roles
from unbag.tables.extracted import extraction_of
from unbag.tables.guess import with_known
from unbag.tables.parquet_set import ParquetSet
from unbag.tables.roles import ColumnRoles
from unbag.tables.stored import StoredBags

from .blocks import BlockSource
from .checkpoints import describe_fit, reached, write_checkpoint

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
    first_iteration : int
        Iterations that were completed before the fit was resumed.
    begun : float
        When the fit started, by `time.perf_counter`.
    report : callable, optional
        Called with this object after each block of bags.
    """

    n_bags: int
    max_iter: int
    iteration: int = 0
    log_likelihood: float = math.nan
    bags_done: int = 0
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
        if self.report is not None:
            self.report(self)

    def on_iteration(self, now: Progress) -> None:
        """Note a completed iteration.

        Parameters
        ----------
        now : unbag.fitting.Progress
        """
        self.iteration, self.log_likelihood = len(now.history), now.history[-1]

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
        rest = "" if left is None else f", at most {timedelta(seconds=round(left))} left"
        return (
            f"iteration {self.iteration}/{self.max_iter}, log-likelihood "
            f"{self.log_likelihood:.6g}, {self.bags_per_second:,.0f} bags/s{rest}"
        )


def fit(
    model: Model,
    path: PathLike | StoredBags,
    *,
    checkpoint: PathLike | None = None,
    resume: bool = False,
    scratch: PathLike | Literal["auto"] | None = "auto",
    progress: Callable[[Pace], object] | None = None,
    watch: Watch | None = None,
    **named: Unpack[ColumnRoles],
) -> Model:
    """Fit a model to a Parquet set that may be larger than memory.

    Parameters
    ----------
    model : ORLogisticRegression
        Fitted in place, as by its `fit` method.
    path : str or path
        A Parquet file or a folder of them: a row per instance, with the rows of each bag
        contiguous; or a row per bag, with lists. Files are read in the order of their names, and a
        bag may continue from one file to the next.
    checkpoint : str or path, optional
        A file that is written after each iteration. It replaces an earlier checkpoint, but no other
        file.
    resume : bool, default=False
        Whether to continue from the checkpoint, if it exists. Data, labels and parameters must be
        the same, except `max_iter` and `tol`. L-BFGS restarts with an empty history.
    scratch : str or path, "auto" or None
        A folder for an unnamed temporary file of decoded features, so that they are decoded only
        once. "auto" uses the system's temporary folder, unless it is too small or compression saves
        more than half. With None, features are decoded in every pass.
    progress : callable, optional
        Called with a `Pace` after each block of bags.
    watch : callable, optional
        As in `ORLogisticRegression.fit`.
    **named
        Roles of columns, `roles` and `ignore_known`, as in `unbag.fit`. `corrections` are refused:
        the rows of two tables are compared in memory only. Fit to the annotated table in which
        people have filled in ``known_label``, or use `unbag.fit`.

    Returns
    -------
    ORLogisticRegression
        The model itself; it remembers the roles of the columns, as after `unbag.fit`. Its
        coefficients are the same as in memory.

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
    check_model(model)
    stored = opened(path, roles_of_call(**named), ignore_known=named.get("ignore_known", False))
    data = training_set_of(stored).check_learnable().announced()
    pace = Pace(len(stored), model.max_iter, report=progress)
    start, of = None, {}
    if checkpoint is not None:
        second = stored.roles.label_table
        check_output(checkpoint, *stored.table.files, *([] if second is None else [second]))
        of = describe_fit(model, data)
        start = reached(checkpoint, of, resume)
    if start is not None:
        pace.iteration = pace.first_iteration = len(start.history)

    def keep(now: Progress) -> object:
        pace.on_iteration(now)
        if checkpoint is not None:
            write_checkpoint(checkpoint, now, of)
        return watch is not None and watch(now)

    with stored.decoded_once(scratch):
        source = BlockSource(stored, pace.on_bags_done)
        model.fit(source, data.labels, data.known, start=start, watch=keep)
    data.remember(model)
    return model


def roles_of_call(
    *,
    roles: Roles | None = None,
    corrections: PathLike | None = None,
    ignore_known: bool = False,
    **named: Any,
) -> Roles:
    """Return the roles that a call names; refuse what only tables in memory have."""
    refuse_truth(named.get("instance_labels"))
    refuse_corrections(corrections)
    refuse_contradiction(ignore_known, known=named.get("known"))
    return Roles.given(roles, **named)


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
    path, columns, unused = stored.table.path, stored.table.columns, stored.unused_names
    return TrainingSet(
        stored, stored.labels, stored.known, stored.roles, path, columns, unused,
        extraction_of(stored.table),
    )  # fmt: skip


def check_model(model: Any, where: str = "out of core") -> None:
    """Raise an error if a model cannot be fitted to bags that are not in memory."""
    if isinstance(model, ORLogisticRegression):
        return
    needs = "its transformers need" if hasattr(model, "steps") else "it needs"
    raise DataError(
        f"{type(model).__name__} cannot be fitted {where}, since {needs} all instances in memory: "
        "fit ORLogisticRegression, or fit it in memory to a part of the data."
    )
