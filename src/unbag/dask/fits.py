"""Fits on a cluster, to any kind of data with partitions."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

from unbag._files import check
from unbag.estimators import ORLogisticRegression
from unbag.fitting import Progress
from unbag.fitting.linear import Watch
from unbag.learning import TrainingSet, read_tags
from unbag.out_of_core.fits import Pace, check_model, opened, roles_of_call, training_set_of
from unbag.tables import Roles
from unbag.tables.roles import ColumnRoles

from .bags import ClusterBags, joined_labels
from .clusters import ClientLike, Tasks, connected
from .sources import (
    DATAFRAME,
    check_kind,
    frames_of,
    is_pairs,
    is_path,
    pairs_of,
    partitions_of_frames,
    partitions_of_set,
    roles_of_frames,
    tagged_bags,
)


def fit(
    model: ORLogisticRegression,
    data: Any,
    client: ClientLike = None,
    *,
    progress: Callable[[Pace], object] | None = None,
    watch: Watch | None = None,
    **named: Unpack[ColumnRoles],
) -> ORLogisticRegression:
    """Fit a model to bags that are spread over the workers of a cluster.

    Parameters
    ----------
    model : ORLogisticRegression
        Fitted in place, as by its `fit` method.
    data : dask DataFrame, list of (Bags, labels), str or path
        A Dask DataFrame with one row per instance, or one row per bag with lists; all rows of a bag
        must be in one partition. Or a list of pairs; each pair is a partition: as values,
        delayed, or futures. Or a Parquet set as in `unbag.out_of_core.fit`, which all workers must
        see under the same path.
    client : distributed.Client or str, optional
        A client, or the address of a scheduler. By default the current client; if there is none, a
        cluster of threads in this process, which ends with the fit. Use only a scheduler that you
        trust: whoever runs it can run code in this process.
    progress : callable, optional
        Called with an `unbag.out_of_core.Pace` after each pass over all bags.
    watch : callable, optional
        As in `ORLogisticRegression.fit`.
    **named
        Roles of columns, `roles` and `ignore_known`, as in `unbag.out_of_core.fit`.

    Returns
    -------
    ORLogisticRegression
        The model itself. Its coefficients are the same as in memory, up to rounding. It remembers
        the roles of the columns, as after `unbag.fit`.

    Notes
    -----
    Partitions stay on their workers, unless the scheduler moves one to an idle worker. An
    evaluation of the objective sends the weights to the workers, and gets one likelihood and one
    gradient back, added up in a tree. If a worker is lost, others read its partitions again, and
    the fit continues, with the same result to the last digit. If all are lost, it waits for new
    ones, with a LostWorkersWarning. The client holds the sizes, ids and label sets of the bags.
    When a fit ends, even with an error, all of its tasks are released.

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
    given, ignore_known = roles_of_call(**named), named.get("ignore_known", False)
    pace = Pace(0, model.max_iter, report=progress)

    def keep(now: Progress) -> object:
        pace.on_iteration(now)
        return watch is not None and watch(now)

    with connected(client) as own, Tasks(own) as tasks:
        found = on_workers(data, tasks, given, ignore_known).check_learnable().announced()
        pace.n_bags, found.bags.on_bags_done = len(found.bags), pace.on_bags_done
        model.fit(found.bags, found.labels, found.known, watch=keep)
    found.remember(model)
    return model


def on_workers(data: Any, tasks: Tasks, roles: Roles, ignore_known: bool = False) -> TrainingSet:
    """Load data on the workers; return it as a `TrainingSet`."""
    if is_path(data):
        stored = training_set_of(opened(data, roles, ignore_known=ignore_known))
        bags = ClusterBags(tasks, partitions_of_set(stored.bags, tasks), have_ids=True)
        return replace(stored, bags=bags)
    if is_pairs(data):
        check(roles.known is None, "known= names a column, and pairs of bags and labels have none.")
        bags = ClusterBags(tasks, pairs_of(data, tasks))
        return TrainingSet(bags, read_tags(joined_labels(bags), bags, roles.tagging))
    frames = frames_of(data, tasks)
    found = roles_of_frames(frames, tasks, roles, ignore_known)
    bags = ClusterBags(tasks, partitions_of_frames(frames, tasks, found), have_ids=True)
    tagged = tagged_bags(frames, tasks, found)
    columns = list(map(str, data.columns))
    return TrainingSet(
        bags, tagged.labels, bags.known, found, DATAFRAME, columns, tagged.unused_names
    )
