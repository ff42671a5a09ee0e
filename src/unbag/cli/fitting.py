"""``unbag fit``: from a table of bags to a model file."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from unbag.annotations import Annotations
from unbag.io import DataError, peek, read

from . import options as o
from .corrections import KNOWN, corrected_labels
from .model_table import peek_columns
from .outputs import refuse_unwritable, show_plan
from .terminal import messages, print_json, progress

MODEL = "The model"


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
    if wanted.features is None and set(Annotations.names()) <= set(peek_columns(table)):
        # What annotate has written is no feature.
        wanted = replace(wanted, carry=(*wanted.carry, *written_columns(wanted)))
    if dry_run:
        show_plan(peek(table, wanted), output, as_json)
        return
    refuse_unwritable(output, table)
    with progress("reading") as report:
        source = read(table, wanted, progress=report)
    refuse_unsplit(source)
    pinned = None
    if is_file:
        pinned = corrected_labels(Path(instance_labels), source)
    elif wanted.instance_labels is not None:
        pinned = source.bags.instance_labels
    model = build(alpha, background, context, kernel, dictionary, max_iter, seed)
    # The truth that a table may carry is for evaluation: fit sees only what it is given.
    bags = replace_truth(source.bags)
    with progress("fitting") as report:
        model.model.set_params(callback=lambda done, _: report(done, max_iter))
        model.fit(bags, source.labels, **fit_options(model, pinned))
    model.model.set_params(callback=None)
    model.save(output, info=facts(source))
    summarise(model, source, pinned, output, as_json)


def refuse_unsplit(source):
    """Refuse labels that seem to be separated by something else than the delimiter."""
    names, given = {str(name) for name in source.labels.classes}, source.roles.delimiter
    for mark in ";,/+":
        for name in names if mark != given else ():
            parts = [part.strip() for part in name.split(mark)]
            if len(parts) > 1 and all(part in names for part in parts):
                raise DataError(
                    f"{source.path}: the label {name!r} looks like several, separated by {mark!r} "
                    f"rather than {given!r}: use --delimiter {mark!r}."
                )


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


def fit_options(model, pinned):
    """Name the argument of known labels as the model, or its pipeline, wants it."""
    if pinned is None:
        return {}
    return {"model__instance_labels" if hasattr(model, "steps") else "instance_labels": pinned}


def replace_truth(bags):
    """Return the same bags without the labels of their instances."""
    from unbag.bags import Bags

    return Bags(bags.X, bags.offsets, ids=bags.ids, feature_names=bags.feature_names)


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
    fitted = model.model
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
