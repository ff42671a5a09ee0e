"""``unbag fit``: from a table of bags, and perhaps of known instances, to a model file."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from unbag._files import check, check_output, existing_file, looks_like_file, refuse
from unbag.annotations import COLUMNS, KNOWN_LABEL
from unbag.bags import Bags
from unbag.io import BagTable, Roles, read
from unbag.io.reading import open_source
from unbag.io.roles import text_of

from . import options as o
from .main import messages, progress, show_plan

MODEL = "The model"


@o.with_roles(*o.OF_TABLES)
def fit(
    table: o.Data,
    output: Annotated[Path, o.written("The model file to write.")],
    alpha: Annotated[
        float, typer.Option(help="Strength of the penalty.", rich_help_panel=MODEL)
    ] = 1.0,
    background: Annotated[
        bool,
        typer.Option("--background", help="Instances may be of no class.", rich_help_panel=MODEL),
    ] = False,
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
    ] = 100,
    seed: Annotated[int, typer.Option(help="Of the dictionary.", rich_help_panel=MODEL)] = 0,
    dry_run: o.DryRun = False,
    as_json: o.Json = False,
    **given: Any,
) -> None:  # fmt: skip
    """Learn to label instances from the labels of their bags.

    Example: unbag fit words.csv --bag word --labels tags -o words.unbag
    """
    with open_source(table) as source:
        corrections = corrections_in(given["instance_labels"], source.columns)
        if corrections is not None:
            given["instance_labels"] = None
        wanted = Roles.from_options(**given)
        if wanted.features is None and set(COLUMNS) <= set(source.columns):
            # What annotate has written is no feature.
            taken = {column for _, column in wanted.columns()}
            written = [name for name in (*COLUMNS, KNOWN_LABEL) if name not in taken]
            wanted = replace(wanted, carry=(*wanted.carry, *written))
        if dry_run:
            show_plan(source.peek(wanted), output)
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
    model = build(alpha, background, context, kernel, dictionary, max_iter, seed)
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
    model.save(output, info=facts(data))
    summarise(model, data, known, output)


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
    background: bool,
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
    }
    messages.result(result)
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
    corrected = read(path, wanted, need_labels=False)
    check(
        corrected.source is not None and KNOWN_LABEL in corrected.source.columns,
        f"{path} has no column {KNOWN_LABEL}: fill in that column of annotate's output where you "
        "know the label, and leave it empty elsewhere.",
    )
    known = [text_of(value) or None for value in corrected.column(KNOWN_LABEL).tolist()]
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
    label_of = dict(zip(map(text_of, corrected.column(column).tolist()), known, strict=True))
    ids = [text_of(value) for value in data.column(column).tolist()]
    refuse(
        sorted(label_of.keys() - set(ids)),
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
        and list(map(text_of, first.ids.tolist())) == list(map(text_of, second.ids.tolist()))
        and np.allclose(first.X, second.X, rtol=1e-4, atol=1e-8)
    )
