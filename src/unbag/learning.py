"""From a table to a fitted model: `unbag.fit`, which is ``unbag fit`` for Python."""

import os
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from unbag._extras import require
from unbag._files import PathLike
from unbag._messages import shortened
from unbag.bags import Bags
from unbag.estimators import ORLogisticRegression
from unbag.io import BagTable
from unbag.io.roles import Roles
from unbag.io.table import Source, open_source
from unbag.pipeline import bag_pipeline
from unbag.validation import refuse_unlearnable

#: Models that have a name.
NAMES = ("linear", "network")
# Settings of models that have a name.
OF_NAMED_MODELS = ("alpha", "background", "missed", "false", "max_iter")
# Those that networks do not have, and what makes features for linear models.
OF_LINEAR_MODELS = ("alpha", "context", "kernel", "dictionary")


def fit(
    table: Any,
    *,
    bag: str | None = None,
    labels: str | None = None,
    label_columns: str | Sequence[str] | None = None,
    unknown: str | None = None,
    label_table: PathLike | None = None,
    features: Sequence[str] | None = None,
    embedding: str | None = None,
    instance_labels: str | None = None,
    instance_id: str | None = None,
    carry: Sequence[str] = (),
    delimiter: str | None = None,
    media: str | None = None,
    start: str | None = None,
    end: str | None = None,
    missing_values: str | None = None,
    roles: Roles | None = None,
    model: Any = None,
    alpha: float = 1.0,
    background: bool | Literal["auto"] = "auto",
    missed: float | Literal["learn", "learn-per-class"] = 0.0,
    false: float | Literal["learn", "learn-per-class"] = 0.0,
    context: float = 0.0,
    kernel: float | None = None,
    dictionary: int = 600,
    max_iter: int | None = None,
    seed: int = 0,
) -> Any:
    """Learn to label the instances of a table from the labels of their bags.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, polars.LazyFrame, pyarrow.Table; or str or path
        One row per instance, in any order; or one per bag, with lists. A path is that of a file of
        any format that `unbag.io.read` takes, of a folder, or a pattern; a list of them is one
        table.
    bag, labels, label_columns, unknown, label_table, features, embedding, instance_id, carry
        Which column is what, as in :class:`unbag.io.Roles`.
    instance_labels : str, optional
        The column of known labels of instances, from which the model learns too.
    delimiter, media, start, end, missing_values
        Likewise.
    roles : Roles, optional
        More of them.
    model : "linear", "network" or estimator, optional
        Any model of this library, of which a clone is fitted; or the name of one: by default an
        `ORLogisticRegression` with the next settings, or an `unbag.torch.ORNetwork`, which needs
        torch, with those that it has.
    alpha, background, missed, false
        As in :class:`unbag.ORLogisticRegression`.
    context : float, default=0.0
        Weight of the bag's mean, as more features; see :class:`unbag.BagContext`.
    kernel : float, optional
        Width of a kernel; without, the model is as it is. See :class:`unbag.RBFDictionary`.
    dictionary : int, default=600
        Instances in the kernel's dictionary.
    max_iter : int, optional
        Most iterations; by default 1000, and 400 of networks.
    seed : int, default=0
        Of the dictionary, or of the networks.

    Returns
    -------
    estimator or BagPipeline
        Fitted. It remembers the roles, so that ``annotate_frame`` and ``predict_frame``, and the
        command line once it is saved, need no more of them.

    Examples
    --------
    >>> import polars
    >>> frame = polars.DataFrame({
    ...     "file": ["a", "a", "b", "b", "c"],
    ...     "tags": ["owl|wren", "owl|wren", "owl", "owl", "wren"],
    ...     "pitch": [0.0, 9.0, 1.0, 0.0, 8.0],
    ... })
    >>> model = fit(frame, bag="file", labels="tags")
    >>> model.annotate_frame(frame)["annotation"].to_list()
    ['owl', 'wren', 'owl', 'owl', 'wren']
    """
    given = dict(locals())
    if model is None or isinstance(model, str):
        model = _named_model(model or "linear", given)
    else:
        where = "the model that fit builds: where a model is given, set it there"
        _refuse_settings(given, OF_NAMED_MODELS, where)
        if not hasattr(model, "get_params") or isinstance(model, type):
            raise ValueError(
                f"model must be a model of this library, such as unbag.ORLogisticRegression() or "
                f"unbag.torch.ORNetwork(), not {shortened(model)}."
            )
        model = clone(model)
    model = bag_pipeline(
        model, context=context, kernel=kernel, dictionary=dictionary, random_state=seed
    )
    named = {name: given[name] for name in signature(Roles).parameters if name in given}
    data, known = read_for_fit(table, roles=roles, **named)
    model.fit(data.bags, data.labels, **({} if known is None else {"instance_labels": known}))
    model.roles_ = data.roles.remembered()
    return model


def read_for_fit(
    table: Any, *, roles: Roles | None = None, **named: Any
) -> tuple[BagTable, np.ndarray | None]:
    """Read a table as a fit may see it.

    Parameters
    ----------
    table : frame, str, path, or list of paths
    roles : Roles, optional
    **named
        More of them, by name.

    Returns
    -------
    data : BagTable
        Without labels of instances.
    known : ndarray of shape (n_instances,) or None
        Those labels, if they were asked for by `instance_labels`.
    """
    wanted = Roles(**named).merged(roles)
    with open_table(table) as source:
        data = source.read(wanted)
    # The truth that a table may carry is for evaluation, unless it is named.
    known = data.bags.instance_labels if wanted.instance_labels is not None else None
    refuse_unlearnable(data, known)
    bags = Bags(
        data.bags.X, data.bags.offsets, data.bags.ids, feature_names=data.bags.feature_names
    )
    return replace(data, bags=bags), known


def open_table(table: Any) -> Source:
    """Open a frame, or a file, without reading its rows.

    Parameters
    ----------
    table : frame, str, path, or list of paths

    Returns
    -------
    Source
    """
    if isinstance(table, str | os.PathLike | list | tuple):
        return open_source(table)
    from unbag.io.frame import open_frame

    return open_frame(table)


def _named_model(name, given):
    """Build the model of a name, with the settings that it has."""
    own = {each: given[each] for each in ("background", "missed", "false")}
    if given["max_iter"] is not None:
        own["max_iter"] = given["max_iter"]
    if name == "linear":
        return ORLogisticRegression(given["alpha"], **own)
    if name != "network":
        raise ValueError(f"model is {name!r}: give {' or '.join(map(repr, NAMES))}, or a model.")
    _refuse_settings(given, OF_LINEAR_MODELS, "linear models, not of networks")
    require("torch")
    from unbag.torch import ORNetwork

    return ORNetwork(**own, random_state=given["seed"])


def _refuse_settings(given, names, whose):
    """Refuse settings that would be lost."""
    for name in names:
        if given[name] != signature(fit).parameters[name].default:
            raise ValueError(f"{name} is a setting of {whose}.")
