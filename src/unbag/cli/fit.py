"""``unbag fit``: from a table of bags, and perhaps of known instances, to a model file."""

from collections.abc import Sequence
from enum import StrEnum
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from unbag._extras import require
from unbag._files import (
    check_output,
    existing_file,
    looks_like_file,
    looks_like_parquet,
)
from unbag.bags import Bags
from unbag.io import BagTable, DataError, Roles
from unbag.labels import LabelSets

from . import options as o
from .console import messages, progress, show_plan

MODEL = "The model"


class Model(StrEnum):
    """What scores instances."""

    LINEAR = "linear"
    NETWORK = "network"


#: Iterations of a fit, where nothing is said.
MAX_ITER: dict[Model, int] = {Model.LINEAR: 1000, Model.NETWORK: 400}


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


@o.with_roles(*o.OF_TABLES, *o.OF_TOOLS)
def fit(
    table: o.Data,
    output: Annotated[Path, o.written("The model file to write.")],
    model: Annotated[
        Model,
        typer.Option(
            help="What scores instances: a linear model, or neural networks (needs torch).",
            rich_help_panel=MODEL,
        ),
    ] = Model.LINEAR,
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
        int | None,
        typer.Option(
            help="Most iterations of the fit: else 1000, and 400 of networks.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Of the dictionary, or of the networks.", rich_help_panel=MODEL)
    ] = 0,
    in_memory: o.InMemory = False,
    out_of_core: o.OutOfCore = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a fit out of core was stopped.")
    ] = False,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Choose the other settings by the likelihood of held-out bags; see --minutes.",
            rich_help_panel=MODEL,
        ),
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0, help="With --tune: after so long, the best so far is taken.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    dry_run: o.DryRun = False,
    as_json: o.Json = False,
    **given: Any,
) -> None:  # fmt: skip
    """Learn to label instances from the labels of their bags.

    Example: unbag fit words.csv --bag word --labels tags -o words.unbag
    """
    rates = {"missed": rate_of("--missed", missed), "false": rate_of("--false", false)}
    if minutes is not None and not tune:
        raise typer.BadParameter("--minutes is for --tune")
    if model is Model.NETWORK:
        refuse_linear_options(alpha=alpha, context=context, kernel=kernel)
        require("torch")
    is_foreign = any(given[name] is not None for name in o.OF_TOOLS)
    is_on_disk = False
    if out_of_core or resume or (not is_foreign and any(map(looks_like_parquet, table))):
        from . import large

        large.refuse_with(out_of_core or resume, **{"--from": is_foreign})
        roles = {name: given[name] for name in o.OF_TABLES}
        wanted = Roles.from_options(**{**roles, "instance_labels": None})
        is_on_disk = large.stays_on_disk(table, wanted, in_memory, out_of_core or resume)
        large.refuse_with(is_on_disk, **{"--tune": tune})
        if is_on_disk and not dry_run:
            most = MAX_ITER[model] if max_iter is None else max_iter
            allowed = BACKGROUNDS[background]
            if model is Model.NETWORK:
                unfitted = build_network(allowed, most, seed)
            else:
                unfitted = build(alpha, allowed, context, kernel, dictionary, most, seed)
            unfitted.model.set_params(**rates)
            large.fit_on_disk(table[0], Roles.from_options(**roles), unfitted, output, resume)
            return
    with o.open_table(table, given) as source:
        corrections = corrections_in(given["instance_labels"], source.columns)
        if corrections is not None:
            given["instance_labels"] = None
        wanted = Roles.from_options(**given)
        if dry_run:
            show_plan(source.peek(wanted), output)
            if model is Model.LINEAR:
                from .large import show_cost

                read = table[0] if is_on_disk else source
                show_cost(read, wanted, BACKGROUNDS[background] is True)
            return
        check_output(output, *source.files)
        with progress("reading") as report:
            data = source.read(wanted, progress=report)
    known = None
    if corrections is not None:
        from .corrections import corrected_labels

        known = corrected_labels(corrections, data)
    elif wanted.instance_labels is not None:
        known = data.bags.instance_labels
    from unbag.validation import refuse_unlearnable

    refuse_unlearnable(data, known)
    allowed = BACKGROUNDS[background]
    # The truth that a table may carry is for evaluation: fit sees only what it is given.
    bags = Bags(
        data.bags.X, data.bags.offsets, data.bags.ids, feature_names=data.bags.feature_names
    )
    if tune:
        from .tune import fixed_settings, tuned_model

        fixed = fixed_settings(
            max_iter, alpha=alpha, background=allowed, context=context, kernel=kernel,
            dictionary=dictionary, **rates,
        )  # fmt: skip
        is_network = model is Model.NETWORK
        fitted = tuned_model(bags, data.labels, known, fixed, is_network, minutes, seed)
    else:
        if max_iter is None:
            max_iter = MAX_ITER[model]
        if model is Model.NETWORK:
            unfitted = build_network(allowed, max_iter, seed)
        else:
            unfitted = build(alpha, allowed, context, kernel, dictionary, max_iter, seed)
        unfitted.model.set_params(**rates)
        fitted = fit_shown(unfitted, bags, data.labels, known, max_iter)
    fitted.roles_ = data.roles.remembered()
    fitted.save(output, info={**facts(data), "background": background_facts(fitted.model)})
    summarise(fitted, data, known, output)
    rates = (fitted.model.missed, fitted.model.false)
    if data.labels is not None and any(isinstance(rate, str) for rate in rates):
        messages.note(describe_noise(fitted, bags, data.labels))


def fit_shown(
    unfitted: Any, bags: Bags, labels: LabelSets | None, known: NDArray[Any] | None, max_iter: int
) -> Any:
    """Fit a model, and show how far that has got."""
    from unbag.fitting.solvers import interruptions_raised

    with progress("fitting") as report:
        unfitted.model.set_params(callback=lambda done, _: report(done, max_iter))
        # In Python a fit keeps what it has reached; a command leaves what was there before.
        with interruptions_raised():
            fitted = unfitted.fit(bags, labels, **fit_options(known))
    fitted.model.set_params(callback=None)
    return fitted


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


def refuse_linear_options(**given: float | None) -> None:
    """Refuse options that networks do not have."""
    for name, value in given.items():
        if value != signature(fit).parameters[name].default:
            raise typer.BadParameter(f"--{name} is an option of linear models, not of networks")


def build_network(background: bool | Literal["auto"], max_iter: int, seed: int) -> Any:
    """Build the networks that the options describe."""
    from unbag.torch import ORNetwork

    return ORNetwork(background=background, max_iter=max_iter, random_state=seed)


def build(
    alpha: float,
    background: bool | Literal["auto"],
    context: float,
    kernel: float | None,
    dictionary: int,
    max_iter: int,
    seed: int,
) -> Any:
    """Build the linear model that the options describe, on a kernel or not."""
    from unbag.estimators import ORLogisticRegression

    model = ORLogisticRegression(alpha, background=background, max_iter=max_iter)
    if kernel is None and not context:
        return model
    from unbag.pipeline import bag_pipeline

    return bag_pipeline(
        model, context=context, kernel=kernel, dictionary=dictionary, random_state=seed
    )


def fit_options(known: NDArray[Any] | None) -> dict[str, Any]:
    """Return what a fit is told of known labels: not every model can be told."""
    return {} if known is None else {"instance_labels": known}


def facts(data: BagTable) -> dict[str, Any]:
    """Return what a model file remembers of the table."""
    return {
        "source": data.path.name,
        "bags": len(data.bags),
        "instances": data.bags.n_instances,
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
    tuning = getattr(model, "tuning_", None)
    messages.result(result if tuning is None else {**result, "tuning": tuning})
    if tuning is not None:
        from .tune import show_search

        show_search(tuning)
    if "held_out" in result["background"]:
        messages.note(describe_background(result["background"]))
    messages.note(
        f"Fitted to {result['bags']:,} bags, {result['instances']:,} instances, "
        f"{result['features']} features, {len(result['classes'])} classes in "
        f"{result['iterations']} iterations; log-likelihood {result['log_likelihood']:.1f}."
    )
    messages.note(f"Written to {output}.")
