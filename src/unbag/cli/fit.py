"""``unbag fit``: from a table of bags, and perhaps of known instances, to a model file."""

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from unbag._files import (
    check,
    check_output,
    existing_file,
    looks_like_file,
    looks_like_parquet,
    refuse,
)
from unbag.bags import Bags
from unbag.io import BagTable, DataError, Roles
from unbag.io.annotated import KNOWN_LABEL, known_label_column
from unbag.io.reading import open_source
from unbag.io.roles import label_text
from unbag.labels import LabelSets

from . import options as o
from .main import messages, progress, show_plan

MODEL = "The model"


class Background(StrEnum):
    """Whether instances may be of no class."""

    AUTO = "auto"
    YES = "yes"
    NO = "no"


#: The same, as estimators have it.
BACKGROUNDS: dict[Background, bool | Literal["auto"]] = {
    Background.AUTO: "auto",
    Background.YES: True,
    Background.NO: False,
}


@o.with_roles(*o.OF_TABLES)
def fit(
    table: o.Data,
    output: Annotated[Path, o.written("The model file to write.")],
    alpha: Annotated[
        float, typer.Option(help="Strength of the penalty.", rich_help_panel=MODEL)
    ] = 1.0,
    background: Annotated[
        Background,
        typer.Option(
            help="Whether instances may be of no class; auto asks held-out bags.",
            rich_help_panel=MODEL,
        ),
    ] = Background.AUTO,
    missed: Annotated[
        str,
        typer.Option(
            help="How often an instance goes unnoticed when a bag is labelled, such as 0.1; or "
            "learn, or learn-per-class.",
            rich_help_panel=MODEL,
        ),
    ] = "0",
    false: Annotated[
        str,
        typer.Option(
            help="How often a class is named in a bag by mistake; likewise.",
            rich_help_panel=MODEL,
        ),
    ] = "0",
    context: Annotated[
        float,
        typer.Option(help="Weight of the bag's mean, as more features.", rich_help_panel=MODEL),
    ] = 0.0,
    kernel: Annotated[
        float | None,
        typer.Option(help="Width of a kernel, such as 1.0; without, a linear model.",
                     rich_help_panel=MODEL),
    ] = None,
    dictionary: Annotated[
        int, typer.Option(help="Instances in the kernel's dictionary.", rich_help_panel=MODEL)
    ] = 600,
    max_iter: Annotated[
        int, typer.Option(help="Most iterations of the fit.", rich_help_panel=MODEL)
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Of the dictionary.", rich_help_panel=MODEL)] = 0,
    in_memory: o.InMemory = False,
    out_of_core: o.OutOfCore = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a fit out of core was stopped.")
    ] = False,
    dry_run: o.DryRun = False,
    as_json: o.Json = False,
    **given: Any,
) -> None:  # fmt: skip
    """Learn to label instances from the labels of their bags.

    Example: unbag fit words.csv --bag word --labels tags -o words.unbag
    """
    rates = {"missed": rate_of("--missed", missed), "false": rate_of("--false", false)}
    if resume or out_of_core or looks_like_parquet(table):
        from . import large

        roles = Roles.from_options(**{**given, "instance_labels": None})
        if large.stays_on_disk(table, roles, in_memory, out_of_core or resume) and not dry_run:
            model = build(
                alpha, BACKGROUNDS[background], context, kernel, dictionary, max_iter, seed
            )
            model.model.set_params(**rates)
            large.fit_on_disk(table, Roles.from_options(**given), model, output, resume)
            return
    with open_source(table) as source:
        corrections = corrections_in(given["instance_labels"], source.columns)
        if corrections is not None:
            given["instance_labels"] = None
        wanted = Roles.from_options(**given)
        if dry_run:
            show_plan(source.peek(wanted), output)
            from .large import show_cost

            show_cost(source, wanted, BACKGROUNDS[background] is True)
            return
        check_output(output, table)
        with progress("reading") as report:
            data = source.read(wanted, progress=report)
    refuse_unsplit(data)
    known = None
    if corrections is not None:
        known = corrected_labels(corrections, data)
    elif wanted.instance_labels is not None:
        known = data.bags.instance_labels
    model = build(alpha, BACKGROUNDS[background], context, kernel, dictionary, max_iter, seed)
    model.model.set_params(**rates)
    # The truth that a table may carry is for evaluation: fit sees only what it is given.
    bags = Bags(
        data.bags.X, data.bags.offsets, data.bags.ids, feature_names=data.bags.feature_names
    )
    with progress("fitting") as report:
        model.model.set_params(callback=lambda done, _: report(done, max_iter))
        from unbag.fitting.solvers import interruptions_raised

        # In Python a fit keeps what it has reached; a command leaves what was there before.
        with interruptions_raised():
            model.fit(bags, data.labels, **fit_options(model, known))
    model.model.set_params(callback=None)
    model.save(output, info={**facts(data), "background": background_facts(model.model)})
    summarise(model, data, known, output)
    if data.labels is not None and any(isinstance(rate, str) for rate in rates.values()):
        messages.note(describe_noise(model, bags, data.labels))


def rate_of(option: str, given: str) -> float | Literal["learn", "learn-per-class"]:
    """Return a rate of wrong labels, or how it is to be learnt."""
    if given == "learn" or given == "learn-per-class":
        return given
    try:
        rate = float(given)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < 1:
        raise DataError(
            f"{option} must be a number from 0 to below 1, learn or learn-per-class; got {given!r}."
        )
    return rate


def describe_noise(model: Any, bags: Bags, labels: LabelSets) -> str:
    """Say in one line what was learnt of wrong labels.

    The rate of unnoticed instances is none of labels, and takes up what the model cannot explain:
    shown is how often all instances of a label that was given would have gone unnoticed.
    """
    fitted = model.model
    n_classes = len(fitted.classes_)
    expected = np.zeros((len(bags), n_classes))
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    np.add.at(expected, bag, model.annotate_proba(bags, labels)[:, :n_classes])
    given = labels.reindex(fitted.classes_).required
    missing = np.mean((fitted.missed_**expected)[given]) if given.any() else 0.0
    return (
        f"Wrong labels, an estimate: {100 * missing:.1f} % of the labels that should be there are "
        f"missing, and a class that is not there is named in {100 * fitted.false_.mean():.1f} % "
        "of the bags."
    )


def corrections_in(given: str | None, columns: Sequence[str]) -> Path | None:
    """Return the corrected table that --instance-labels names; None if it names a column."""
    if given is None or given in columns:
        return None
    return existing_file(given) if looks_like_file(given) else None


def refuse_unsplit(data: BagTable) -> None:
    """Refuse labels that seem to be separated by something else than the delimiter."""
    delimiter = data.roles.delimiter
    names = set() if data.labels is None else {str(name) for name in data.labels.classes}
    for mark in ";,/+":
        refuse(
            (
                name
                for name in names
                if mark != delimiter
                and mark in name
                and names.issuperset(map(str.strip, name.split(mark)))
            ),
            lambda name, mark=mark: (
                f"{data.path}: the label {name!r} looks like several, "
                f"separated by {mark!r} rather than {delimiter!r}: use --delimiter {mark!r}."
            ),
        )


def build(
    alpha: float,
    background: bool | Literal["auto"],
    context: float,
    kernel: float | None,
    dictionary: int,
    max_iter: int,
    seed: int,
) -> Any:
    """Build the model that the options describe."""
    from sklearn.preprocessing import StandardScaler

    from unbag.estimators import ORLogisticRegression
    from unbag.pipeline import BagPipeline, kernel_pipeline
    from unbag.preprocessing import BagContext, OnInstances

    model = ORLogisticRegression(alpha, background=background, max_iter=max_iter)
    if kernel is not None:
        return kernel_pipeline(
            model, context=context, scale=kernel, n_components=dictionary, random_state=seed
        )
    if context:
        return BagPipeline(
            [
                ("scale", OnInstances(StandardScaler())),
                ("context", BagContext(context)),
                ("model", model.set_params(scaling=None)),
            ]
        )
    return model


def fit_options(model: Any, known: NDArray[Any] | None) -> dict[str, Any]:
    """Name the argument of known labels as the model, or its pipeline, wants it."""
    if known is None:
        return {}
    return {"model__instance_labels" if hasattr(model, "steps") else "instance_labels": known}


def facts(data: BagTable) -> dict[str, Any]:
    """Return what a model file remembers of the table."""
    remembered = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(data.roles).items()
        if value and name not in ("features", "label_table")
    }
    return {
        "source": data.path.name,
        "bags": len(data.bags),
        "instances": data.bags.n_instances,
        "roles": remembered,
    }


def background_facts(fitted: Any) -> dict[str, Any]:
    """Return whether a model has a background and, where that was decided here, by what."""
    scores = getattr(fitted, "background_scores_", None)
    if scores is None:
        return {"used": fitted.has_background_}
    return {
        "used": fitted.has_background_,
        "held_out": {
            name: {"information": information, "wrong_labels": n_wrong}
            for name, (information, n_wrong) in zip(
                ("without", "with"), scores.tolist(), strict=True
            )
        },
    }


def describe_background(facts: dict[str, Any]) -> str:
    """Say in one line what was decided on a background, and why."""
    without, with_it = facts["held_out"]["without"], facts["held_out"]["with"]
    return (
        f"Background: {'yes' if facts['used'] else 'no'}. Labels of held-out bags tell "
        f"{without['information']:.1f} nats a bag without it, {with_it['information']:.1f} with "
        f"it, and {without['wrong_labels']:.1f} or {with_it['wrong_labels']:.1f} predicted are "
        "wrong."
    )


def summarise(model: Any, data: BagTable, known: NDArray[Any] | None, output: Path) -> None:
    """Say what was learnt from what."""
    fitted = model.model
    result = {
        "model": str(output),
        "bags": len(data.bags),
        "instances": data.bags.n_instances,
        "features": data.bags.n_features,
        "classes": [str(label) for label in model.classes_],
        "known_instance_labels": sum(each is not None for each in ([] if known is None else known)),
        "iterations": int(fitted.n_iter_),
        "converged": bool(fitted.converged_),
        "log_likelihood": float(fitted.log_likelihood_),
        "relaxed_bags": len(fitted.relaxed_),
        "background": background_facts(fitted),
    }
    messages.result(result)
    if "held_out" in result["background"]:
        messages.note(describe_background(result["background"]))
    messages.note(
        f"Fitted to {result['bags']:,} bags, {result['instances']:,} instances, "
        f"{result['features']} features, {len(result['classes'])} classes in "
        f"{result['iterations']} iterations; log-likelihood {result['log_likelihood']:.1f}."
    )
    messages.note(f"Written to {output}.")


def corrected_labels(path: Path, data: BagTable) -> np.ndarray:
    """Read known labels from a table that annotate wrote and a person corrected.

    Parameters
    ----------
    path : Path
        A table with a column ``known_label``, empty where the label is not known.
    data : BagTable
        What is fitted. Its instances are found again by their id, where there is one; else by
        their place, as long as bags and features are the same there.

    Returns
    -------
    ndarray of object of shape (n_instances,)
        Labels as text; None where not known.
    """
    wanted = Roles(
        bag=data.roles.bag, instance_id=data.roles.instance_id, features=data.roles.features
    )
    with open_source(path) as source:
        corrected = source.read(wanted, need_labels=False)
        column = known_label_column(source)
    if column is None:
        raise DataError(
            f"{path} has no column {KNOWN_LABEL}: fill in that column of annotate's output where "
            "you know the label, and leave it empty elsewhere."
        )
    known = [label_text(value) or None for value in corrected.texts(column, "known_label")]
    check(
        any(known),
        f"{path}: no label is filled in in the column {column!r}: do so, or leave "
        "out --instance-labels.",
    )
    if data.roles.instance_id is not None:
        known = by_id(known, path, corrected, data, data.roles.instance_id)
    else:
        check(
            are_same(corrected, data),
            f"{path} has other rows than {data.path}, or in another order: keep the order of the "
            "rows, or name a column of ids by --instance-id.",
        )
    return np.array(known, dtype=object)


def by_id(
    known: Sequence[str | None], path: Path, corrected: BagTable, data: BagTable, column: str
) -> list[str | None]:
    """Bring known labels into the order of the table that is fitted, by a column of ids."""
    label_of = dict(zip(corrected.texts(column), known, strict=True))
    ids = data.texts(column)
    refuse(
        sorted(str(each) for each in label_of.keys() - set(ids)),
        lambda strange: (
            f"{path} has the {column} {strange!r}, which {data.path} does not have: "
            "correct the id, or leave out the row."
        ),
    )
    return [label_of.get(each) for each in ids]


def are_same(corrected: BagTable, data: BagTable) -> bool:
    """Return whether two tables hold the same instances in the same order.

    Spreadsheets round numbers, so features need only be close.
    """
    first, second = corrected.bags, data.bags
    return (
        first.X.shape == second.X.shape
        and np.array_equal(first.offsets, second.offsets)
        and list(map(str, first.ids.tolist())) == list(map(str, second.ids.tolist()))
        and np.allclose(first.X, second.X, rtol=1e-4, atol=1e-8)
    )
