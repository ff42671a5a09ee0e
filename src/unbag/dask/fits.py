"""Fits on a cluster: from data of any kind that has partitions to a fitted model."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from unbag.estimators import ORLogisticRegression
from unbag.fitting import Progress, Training
from unbag.io import Roles
from unbag.learning import TrainingSet
from unbag.out_of_core.fits import Pace, check_model, fit_elsewhere, opened, training_set_of

from .bags import ClusterBags, joined_label_sets, joined_labels
from .clusters import ClientLike, Tasks, connected
from .sources import (
    check_kind,
    frames_of,
    is_pairs,
    is_path,
    pairs_of,
    partitions_of_frames,
    partitions_of_set,
    roles_of_frames,
)
from .training import ClusterTraining


def fit(
    model: ORLogisticRegression,
    data: Any,
    client: ClientLike = None,
    *,
    bag: str | None = None,
    labels: str | None = None,
    instance_labels: str | None = None,
    roles: Roles | None = None,
    progress: Callable[[Pace], object] | None = None,
) -> ORLogisticRegression:
    """Fit a model to bags that are spread over the workers of a cluster.

    Parameters
    ----------
    model : ORLogisticRegression
        Fitted in place, as by its `fit`.
    data : dask DataFrame, list of (Bags, labels), str or path
        A Dask DataFrame with one row per instance, or one per bag and lists, each bag in one
        partition. A list of pairs, each of them a partition: as they are, delayed, or futures. Or
        a Parquet set as in `unbag.out_of_core.fit`, that all workers see under the same name.
    client : distributed.Client or str, optional
        Or the address of a scheduler. By default the current client; if there is none, a cluster
        of threads in this process, which ends with the fit. Use only a scheduler that you trust:
        whoever runs it can run code in this process.
    bag, labels : str, optional
        The columns that name the bag, and its labels; by default those called so.
    instance_labels : str, optional
        A column of known labels of instances, to be fitted to as well.
    roles : Roles, optional
        What the other columns are; what is named beside it wins.
    progress : callable, optional
        Called with an `unbag.out_of_core.Pace` each time that all bags have answered.

    Returns
    -------
    ORLogisticRegression
        The model itself. Its coefficients are those of a fit in memory, but for roundings. It
        remembers the roles of columns, as after `unbag.fit`.

    Notes
    -----
    Partitions stay on their workers, unless the scheduler gives one to a worker that is idle. An
    evaluation of the objective sends the weights out, and gets one likelihood and gradient back,
    added up in a tree. When a worker is lost, others read its partitions again, and the fit goes
    on, to the same digits. When all are lost, it waits for new ones, with a LostWorkersWarning.
    This process holds what is known of bags: their sizes, ids and label sets. When a fit ends,
    however it does, none of its tasks is left.

    Examples
    --------
    >>> import dask.dataframe, pandas
    >>> import unbag.dask
    >>> from unbag import ORLogisticRegression
    >>> table = pandas.DataFrame({"night": [1, 1, 2, 2, 3], "tags": ["a|b"] * 2 + ["a"] * 2 + ["b"],
    ...                           "pitch": [0.0, 9.0, 1.0, 0.0, 8.0]})
    >>> nights = dask.dataframe.from_pandas(table.set_index("night"), npartitions=2)
    >>> model = unbag.dask.fit(ORLogisticRegression(), nights, bag="night", labels="tags")
    >>> model.predict_instances([[[0.5], [8.5]]])
    array(['a', 'b'], dtype='<U1')
    """
    check_model(model, "on a cluster")
    check_kind(data)
    given = Roles.given(roles, bag=bag, labels=labels, instance_labels=instance_labels)
    pace = Pace(0, model.max_iter, report=progress)

    def watch(training: Training, now: Progress, iteration: int, log_likelihood: float) -> object:
        pace.on_iteration(iteration, log_likelihood)
        return model._watch(iteration, log_likelihood)

    make = partial(ClusterTraining, on_bags_done=pace.on_bags_done)
    with connected(client) as own, Tasks(own) as tasks:
        found = on_workers(data, tasks, given).check_learnable()
        pace.n_bags = len(found.bags)
        fit_elsewhere(model, found, make, watch)
    found.remember(model)
    return model


def on_workers(data: Any, tasks: Tasks, roles: Roles) -> TrainingSet:
    """Bring data to the workers; return what a fit may see of them."""
    if is_path(data):
        stored = training_set_of(opened(data, roles))
        return replace(stored, bags=ClusterBags(tasks, partitions_of_set(stored.bags, tasks)))
    if is_pairs(data):
        bags = ClusterBags(tasks, pairs_of(data, tasks))
        return TrainingSet(bags, joined_labels(bags))
    frames = frames_of(data, tasks)
    found = roles_of_frames(frames, tasks, roles, need_labels=True)
    is_known = roles.instance_labels is not None
    bags = ClusterBags(tasks, partitions_of_frames(frames, tasks, found), is_known)
    path = Path("The DataFrame")
    return TrainingSet(bags, joined_label_sets(bags), bags.instance_labels, found, path)
