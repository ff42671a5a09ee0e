"""``unbag fit``: from a table of bags to a model file."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from unbag.annotations import Annotations
from unbag.io import DataError, Roles, peek, read

from . import options as o
from .terminal import messages, print_json, progress

MODEL = "The model"
#: The column of annotate's output that people fill in.
KNOWN = "known_label"


def fit(
    table: o.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    bag: o.Bag = None,
    labels: o.Labels = None,
    unknown: o.Unknown = None,
    label_table: o.LabelTable = None,
    features: o.Features = None,
    instance_labels: Annotated[
        str | None,
        typer.Option(
            help="Known labels of instances: a column, or a corrected output of annotate.",
            rich_help_panel=o.ROLES,
        ),
    ] = None,
    instance_id: o.InstanceId = None,
    carry: o.Carry = None,
    delimiter: o.Delimiter = None,
    roles: o.RolesFile = None,
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
    verbose: o.Verbose = False,
):  # fmt: skip
    """Learn to label instances from the labels of their bags."""
    messages.quiet = as_json
    is_file = instance_labels is not None and Path(instance_labels).is_file()
    wanted = o.given_roles(
        roles, bag=bag, labels=labels, unknown=unknown, label_table=label_table, features=features,
        instance_labels=None if is_file else instance_labels, instance_id=instance_id, carry=carry,
        delimiter=delimiter,
    )  # fmt: skip
    if wanted.features is None:
        # Numbers that annotate has written are no features.
        wanted = replace(wanted, carry=(*wanted.carry, *written_columns(wanted)))
    if dry_run:
        show_plan(peek(table, wanted), output, as_json)
        return
    refuse_unwritable(output)
    with progress("reading") as report:
        source = read(table, wanted, progress=report)
    pinned = None
    if is_file:
        pinned = corrected_labels(Path(instance_labels), source)
    elif wanted.instance_labels is not None:
        pinned = source.bags.instance_labels
    model = build(alpha, background, context, kernel, dictionary, max_iter, seed)
    # The truth that a table may carry is for evaluation: fit sees only what it is given.
    bags = replace_truth(source.bags)
    with progress("fitting") as report:
        innermost(model).set_params(callback=lambda done, _: report(done, max_iter))
        model.fit(bags, source.labels, **fit_options(model, pinned))
    innermost(model).set_params(callback=None)
    model.save(output, info=facts(source))
    summarise(model, source, pinned, output, as_json)


def written_columns(roles):
    """Return the columns that annotate writes, but for those that have a role."""
    named = {column for _, column in roles.columns()}
    return tuple(name for name in (*Annotations.names(), KNOWN) if name not in named)


def build(alpha, background, context, kernel, dictionary, max_iter, seed):
    """Build the model that the options describe."""
    from sklearn.preprocessing import StandardScaler

    from unbag.estimators import ORLogisticRegression
    from unbag.pipeline import BagPipeline, kernel_pipeline
    from unbag.preprocessing import BagContext, OnInstances

    model = ORLogisticRegression(alpha, background=background, max_iter=max_iter)
    if kernel is not None:
        return kernel_pipeline(
            model, context=context, scale=kernel, fraction=dictionary, random_state=seed
        )
    if context:
        return BagPipeline(
            [
                ("scale", OnInstances(StandardScaler())),
                ("context", BagContext(context)),
                ("model", model.set_params(standardize=False)),
            ]
        )
    return model


def innermost(model):
    """Return the model itself, or the last step of a pipeline."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def fit_options(model, pinned):
    """Name the argument of known labels as the model, or its pipeline, wants it."""
    if pinned is None:
        return {}
    return {"model__instance_labels" if hasattr(model, "steps") else "instance_labels": pinned}


def replace_truth(bags):
    """Return the same bags without the labels of their instances."""
    from unbag.bags import Bags

    return Bags(bags.X, bags.offsets, ids=bags.ids, feature_names=bags.feature_names)


def corrected_labels(path, source):
    """Read known labels from a table that annotate wrote and a person corrected.

    The column ``known_label`` holds them, or the one with the role of instance labels. Rows are
    found again by their place, as long as the bags stand where they stood; or by the instance id.
    """
    wanted = Roles(
        bag=source.roles.bag, instance_id=source.roles.instance_id, features=source.roles.features
    )
    corrected = read(path, wanted, need_labels=False)
    columns = corrected.source.columns if corrected.source is not None else ()
    if KNOWN not in columns:
        raise DataError(
            f"{path} has no column {KNOWN}: fill in that column of annotate's output where you "
            "know the label, and leave it empty elsewhere."
        )
    known = corrected.column(KNOWN)
    if source.roles.instance_id is not None:
        place = dict(
            zip(corrected.column(source.roles.instance_id).tolist(), known.tolist(), strict=True)
        )
        ids = source.column(source.roles.instance_id).tolist()
        values = [place.get(each) for each in ids]
    else:
        same = corrected.bags.n_instances == source.bags.n_instances and np.array_equal(
            corrected.rows, source.rows
        )
        if not same or not np.array_equal(corrected.bags.ids, source.bags.ids):
            raise DataError(
                f"{path} has other rows than {source.path}, or in another order: keep the order of "
                "the rows, or name a column by --instance-id."
            )
        values = known.tolist()
    values = [None if each is None or str(each).strip() == "" else str(each) for each in values]
    return np.array(values, dtype=object)


def facts(source):
    """Return what a model file remembers of the table."""
    remembered = {}
    for name, value in asdict(source.roles).items():
        if value and name not in ("features", "label_table"):
            remembered[name] = list(value) if isinstance(value, tuple) else value
    return {
        "source": source.path.name,
        "bags": len(source.bags),
        "instances": source.bags.n_instances,
        "roles": remembered,
    }


def summarise(model, source, pinned, output, as_json):
    """Say what was learnt from what."""
    fitted = innermost(model)
    result = {
        "model": str(output),
        "bags": len(source.bags),
        "instances": source.bags.n_instances,
        "features": source.bags.n_features,
        "classes": [str(label) for label in model.classes_],
        "known_instance_labels": 0
        if pinned is None
        else int(sum(each is not None for each in pinned)),
        "iterations": int(fitted.n_iter_),
        "converged": bool(fitted.converged_),
        "log_likelihood": float(fitted.log_likelihood_),
        "relaxed_bags": len(fitted.relaxed_),
    }
    if as_json:
        print_json(result)
        return
    messages.note(
        f"Fitted to {result['bags']:,} bags, {result['instances']:,} instances, "
        f"{result['features']} features, {len(result['classes'])} classes in "
        f"{result['iterations']} iterations; log-likelihood {result['log_likelihood']:.1f}."
    )
    if not fitted.converged_:
        messages.note("The fit has not converged: --max-iter allows more iterations.")
    messages.note(f"Written to {output}.")


def show_plan(plan, output, as_json):
    """Say how a table would be read."""
    if as_json:
        roles = {} if plan.roles is None else asdict(replace(plan.roles))
        print_json(
            {"path": plan.path, "format": plan.format, "rows": plan.n_rows, "roles": roles,
             "one_row_per_bag": plan.is_wide, "output": output}
        )  # fmt: skip
        return
    typer.echo(f"{plan.path}: {plan.format}" + (", one row per bag" if plan.is_wide else ""))
    if plan.n_rows is not None:
        typer.echo(f"rows: {plan.n_rows:,}")
    if plan.roles is not None:
        for role, value in asdict(plan.roles).items():
            if value:
                shown = ", ".join(map(str, value)) if isinstance(value, tuple) else value
                typer.echo(f"{role}: {shown}")
        roles_of = {column for _, column in plan.roles.columns()}
        others = [name for name in plan.columns if name not in roles_of]
        typer.echo(f"carried through: {', '.join(others) or 'nothing'}")
    typer.echo(f"would write: {output}" if output else "would write nothing")


def refuse_unwritable(path):
    """Refuse early what could not be written late."""
    import os

    folder = path.resolve().parent
    if path.is_dir():
        raise DataError(f"{path} is a folder: name a file to write.")
    if not folder.is_dir():
        raise DataError(f"{path} cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise DataError(f"{path} cannot be written: no permission to write in {folder}.")
