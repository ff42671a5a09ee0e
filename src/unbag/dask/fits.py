"""Fits on a cluster, to any kind of data with partitions."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from unbag._files import PathLike, check
from unbag.estimators import ORLogisticRegression
from unbag.fitting import Progress, Training
from unbag.io import Roles
from unbag.learning import (
    TrainingSet,
    read_tags,
    refuse_contradiction,
    refuse_corrections,
    refuse_truth,
)
from unbag.out_of_core.fits import Pace, check_model, fit_not_in_memory, opened, training_set_of

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
from .training import ClusterTraining


def fit(
    model: ORLogisticRegression,
    data: Any,
    client: ClientLike = None,
    *,
    bag: str | None = None,
    labels: str | None = None,
    known: str | None = None,
    corrections: PathLike | None = None,
    ignore_known: bool = False,
    instance_labels: str | None = None,
    untagged: str | None = None,
    roles: Roles | None = None,
    progress: Callable[[Pace], object] | None = None,
) -> ORLogisticRegression:
    """Fit a model to bags that are spread over the workers of a cluster.

    Parameters
    ----------
    model : ORLogisticRegression
        Fitted in place, as by its `fit` method.
    data : dask DataFrame, list of (Bags, labels), str or path
        A Dask DataFrame with one row per instance, or one row per bag with lists; all rows of a bag
        must be in one partition. Or a list of pairs, each of which is a partition: as values,
        delayed, or futures. Or a Parquet set as in `unbag.out_of_core.fit`, which all workers must
        see under the same path.
    client : distributed.Client or str, optional
        A client, or the address of a scheduler. By default the current client; if there is none, a
        cluster of threads in this process, which ends with the fit. Use only a scheduler that you
        trust: whoever runs it can run code in this process.
    bag, labels : str, optional
        The columns of the bag and of its labels; by default "bag" and "labels".
    known : str, optional
        A column of labels of instances that people gave, to be fitted to as well; by default
        ``known_label``, if there is one.
    corrections : str or path, optional
        Refused: the rows of two tables are compared in memory only. Fit to the annotated table in
        which people have filled in ``known_label``, or use `unbag.fit`.
    ignore_known : bool, default=False
        Whether to do without such labels, where the data have some.
    instance_labels : str, optional
        Refused: labels to compare with are not learnt from. Use `known`.
    untagged : {"refuse", "unknown", "absent"}, optional
        What an empty cell in place of labels means, as in :class:`unbag.io.Roles`.
    roles : Roles, optional
        The roles of other columns; the arguments above take precedence.
    progress : callable, optional
        Called with an `unbag.out_of_core.Pace` after each pass over all bags.

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
    refuse_truth(instance_labels)
    refuse_corrections(corrections)
    refuse_contradiction(ignore_known, known=known)
    given = Roles.given(roles, bag=bag, labels=labels, known=known, untagged=untagged)
    pace = Pace(0, model.max_iter, report=progress)

    def watch(training: Training, now: Progress, iteration: int, log_likelihood: float) -> object:
        pace.on_iteration(iteration, log_likelihood)
        return model._watch(iteration, log_likelihood)

    make = partial(ClusterTraining, on_bags_done=pace.on_bags_done)
    with connected(client) as own, Tasks(own) as tasks:
        found = on_workers(data, tasks, given, ignore_known).check_learnable().announced()
        pace.n_bags = len(found.bags)
        fit_not_in_memory(model, found, make, watch)
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
