"""How well extracted instances are labelled: what audio.py, pictures.py and signals.py share."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

import unbag


class Instances(NamedTuple):
    """Extracted instances, and what each of them truly is."""

    rows: pa.Table
    features: list[str]
    truth: np.ndarray
    holds: np.ndarray
    """Which of them hold a class."""
    nothing: np.ndarray
    """Which of them are nothing, and should be left without a label."""


def percent(values):
    """Return the share of what is true; None if there is nothing."""
    return round(100 * float(np.mean(values)), 1) if len(values) else None


def answers_of(model, rows, **options):
    """Return labels and statuses of the instances of a table."""
    answers = model.annotate_frame(rows, **options)
    return (
        np.array(answers.column(name).to_pylist(), dtype=object)
        for name in ("annotation", "status")
    )


def labelling(own, new, media):
    """Fit to instances with the tags of their media, and label these and new ones.

    Parameters
    ----------
    own, new : Instances
    media : str
        What the instances come from, such as ``"recordings"``.

    Returns
    -------
    figures : dict
    is_left : ndarray of bool
        Which of `own` a model with a background leaves without a label.
    """
    figures, left = {}, []
    for name, chosen in (("", "auto"), (", background=False", False)):
        model = unbag.fit(
            own.rows, bag="file", labels="tags", features=own.features, background=chosen
        )
        given, status = answers_of(model, own.rows)
        left.append(status == "background")
        without, _ = answers_of(model, new.rows, ignore_labels=True)
        figures[f"right given the tags{name}"] = percent((given == own.truth)[own.holds])
        figures[f"right given the tags, or left{name}"] = percent(
            np.where(own.holds, given == own.truth, left[-1])
        )
        figures[f"right without tags, new {media}{name}"] = percent(
            (without == new.truth)[new.holds]
        )
    figures["nothing left unlabelled"] = percent(left[0][own.nothing])
    X, new_X = (
        np.column_stack([each.rows.column(name).to_numpy() for name in own.features])[each.holds]
        for each in (own, new)
    )
    forest = RandomForestClassifier(300, random_state=0)
    forest.fit(X, own.truth[own.holds].astype(str))
    figures[f"a forest told the truth, new {media}"] = percent(
        forest.predict(new_X) == new.truth[new.holds]
    )
    tags = [cell.split("|") for cell in own.rows.column("tags").to_pylist()]
    figures["tags copied at random"] = percent(
        [(label in of_file) / len(of_file)
         for label, of_file, holds in zip(own.truth, tags, own.holds, strict=True) if holds]
    )  # fmt: skip
    return figures, left[0]


def show(console, kind, levels):
    """Print the figures of one kind of media, a column for each level of difficulty."""
    table = Table("%", *levels, title=kind)
    for name in next(iter(levels.values())):
        table.add_row(name, *(f"{row[name]}" for row in levels.values()))
    console.print(table)
