"""``unbag fit``: from a table of bags, and perhaps of known instances, to a model file."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from unbag._files import check_output, existing_file, looks_like_parquet
from unbag._messages import listed, shortened
from unbag.bags import Bags
from unbag.io import DataError, Roles
from unbag.io.roles import NOT_LEARNT_FROM
from unbag.io.table import Source
from unbag.labels import LabelSets, bags_per_class, rare_classes
from unbag.tagging import BACKGROUND_NAME
from unbag.union.rates import RANGE, is_rate

from . import options as o
from .console import messages, progress, show_plan

if TYPE_CHECKING:
    from unbag.learning import Settings, TrainingSet

MODEL = "The model"


class Model(StrEnum):
    """What scores instances."""

    LINEAR = "linear"
    NETWORK = "network"
    AUTO = "auto"


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


@o.with_roles("known", *o.OF_TABLES, *o.OF_TOOLS)
def fit(
    table: o.Data,
    output: Annotated[Path, o.written("The model file to write.")],
    corrections: o.Corrections = None,
    ignore_known: o.IgnoreKnown = False,
    model: Annotated[
        Model,
        typer.Option(
            help="What scores instances: a linear model, neural networks (needs torch), or what "
                 "held-out bags prefer, as with --tune.",
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
    background_cost: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="What an instance of no class costs in bags with labels, in nats; else 0 with "
            "--background yes, and as held-out bags have it best with auto.",
            rich_help_panel=MODEL,
        ),
    ] = None,
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
            help="How often a class is named in a bag by mistake, such as 0.01; or learn, or "
            "learn-per-class.",
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
    # It brings scikit-learn, which takes a second.
    from unbag.learning import Settings, read_source, refuse_contradiction, refuse_truth

    refuse_truth(given["instance_labels"])
    refuse_contradiction(ignore_known, corrections=corrections, known=given["known"])
    tune = tune or model is Model.AUTO
    if minutes is not None and not tune:
        raise typer.BadParameter("--minutes is for --tune and --model auto")
    rates = {"missed": rate_of("--missed", missed), "false": rate_of("--false", false)}
    try:
        settings = Settings(
            model=model.value, alpha=alpha, background=BACKGROUNDS[background],
            background_cost=background_cost, context=context, kernel=kernel, dictionary=dictionary,
            max_iter=max_iter, seed=seed, **rates,
        )  # fmt: skip
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    is_foreign = any(given[name] is not None for name in o.OF_TOOLS)
    is_on_disk = False
    if out_of_core or resume or (not is_foreign and any(map(looks_like_parquet, table))):
        from . import large

        large.refuse_with(out_of_core or resume, **{"--from": is_foreign})
        wanted = Roles.from_options(**{name: given[name] for name in (*o.OF_TABLES, "known")})
        is_on_disk = large.stays_on_disk(table, wanted, in_memory, out_of_core or resume)
        large.refuse_with(is_on_disk, **{"--tune": tune, "--corrections": corrections is not None})
        if is_on_disk and not dry_run:
            model = settings.unfitted()
            large.fit_on_disk(table[0], wanted, model, output, resume, ignore_known)
            return
    named = o.files_named(given, corrections)
    with o.open_table(table, given) as source:
        wanted = Roles.from_options(**given)
        if dry_run:
            from unbag.io.guess import with_known

            wanted = wanted if not source.columns else with_known(source, wanted, ignore_known)
            show_fit(source, wanted, output, settings, table[0] if is_on_disk else None)
            if corrections is not None:
                messages.note(f"corrections: {existing_file(corrections)}")
            return
        check_output(output, *source.files, *named)
        with progress("reading") as report:
            data = read_source(
                source, wanted, corrections=corrections, ignore_known=ignore_known, progress=report
            ).check_learnable()
        data.announced()
    show_classes(data.label_sets)
    if tune:
        from .tune import tuned_model

        fitted = tuned_model(settings, data, minutes)
    else:
        fitted = fit_shown(settings.unfitted(), data)
    info = {**facts(data), "background": background_facts(fitted.model)}
    if corrections is not None:
        info["corrections"] = corrections.name
    fitted.save(output, info=info)
    summarise(fitted, data, output)
    rates = (fitted.model.missed, fitted.model.false)
    if any(isinstance(rate, str) for rate in rates):
        messages.note(describe_noise(fitted, data.bags, data.label_sets))


def show_classes(labels: LabelSets) -> None:
    """Print in how many bags each class is, what else bags may be, and which classes are rare."""
    counts = sorted(bags_per_class(labels).items(), key=lambda item: -item[1])
    messages.note(f"Bags of each class: {listed(f'{name} {n:,}' for name, n in counts)}.")
    n_none = int((labels.forbidden.all(axis=1) & ~labels.open).sum())
    is_any = labels.optional.all(axis=1) | (labels.open & ~labels.required.any(1))
    n_unknown = int((is_any & ~labels.is_tagged).sum())
    others = [f"{n:,} {what}" for n, what in ((n_none, "have none of them"),
                                              (n_unknown, "may have any")) if n]  # fmt: skip
    if others:
        messages.note(f"Of {len(labels):,} bags, {' and '.join(others)}.")
    rare = rare_classes(labels)
    if rare is not None:
        messages.warn(f"{rare}.")


def fit_shown(unfitted: Any, data: "TrainingSet") -> Any:
    """Fit a model, and show how far that has got."""
    from unbag.fitting.solvers import interruptions_raised

    # Networks take several trainings.
    most = getattr(unfitted.model, "n_steps", unfitted.model.max_iter)
    with progress("fitting") as report:
        unfitted.model.set_params(callback=lambda done, _: report(done, most))
        # In Python a fit keeps what it has reached; a command leaves what was there before.
        with interruptions_raised():
            fitted = data.fit(unfitted)
    fitted.model.set_params(callback=None)
    return fitted


def show_fit(
    source: Source, wanted: Roles, output: Path, settings: "Settings", on_disk: Path | None
) -> None:
    """Show how a table would be read, and what an iteration of a linear fit to it would cost."""
    show_plan(source.peek(wanted), output, NOT_LEARNT_FROM)
    if settings.model == "linear":
        from .large import show_cost

        show_cost(source if on_disk is None else on_disk, wanted, settings.background is True)


def rate_of(option: str, given: str) -> float | Literal["learn", "learn-per-class"]:
    """Return a rate of wrong labels, or how it is to be learnt."""
    if given == "learn" or given == "learn-per-class":
        return given
    try:
        rate = float(given)
    except ValueError:
        rate = -1.0
    if not is_rate(rate):
        raise DataError(
            f"{option} must be {RANGE}, learn or learn-per-class; got {shortened(given)}."
        )
    return rate


def describe_noise(model: Any, bags: Bags, labels: LabelSets) -> str:
    """Return a sentence about the rates of wrong labels that were learnt.

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


def facts(data: "TrainingSet") -> dict[str, Any]:
    """Return what a model file remembers of the table."""
    return {
        "source": data.path.name,
        "bags": len(data.bags),
        "instances": data.bags.n_instances,
        "known_instance_labels": data.n_known,
    }


def background_facts(fitted: Any) -> dict[str, Any]:
    """Return whether a model has a background, what it costs, and by what that was decided here."""
    found: dict[str, Any] = {"used": fitted.has_background_}
    if fitted.has_background_:
        found["cost"] = fitted.background_cost_
    scores = getattr(fitted, "background_scores_", None)
    if scores is None:
        return found
    return found | {
        "share": fitted.background_share_,
        "held_out": {
            name: {"information": information, "wrong_labels": n_wrong}
            for name, (information, n_wrong) in zip(
                ("without", "with"), scores.tolist(), strict=True
            )
        },
    }


def summarise(model: Any, data: "TrainingSet", output: Path) -> None:
    """Print what was fitted to which data."""
    fitted = model.model
    result = {
        "model": str(output),
        "bags": len(data.bags),
        "instances": data.bags.n_instances,
        "features": data.bags.n_features,
        "feature_names": data.feature_names,
        "columns_not_used": data.unused,
        "roles": {} if data.roles is None else asdict(data.roles),
        "roles_not_learnt_from": list(NOT_LEARNT_FROM),
        "classes": [str(label) for label in model.classes_],
        "bags_per_class": bags_per_class(data.label_sets),
        "known_instance_labels": data.n_known,
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
    if "held_out" not in result["background"] and BACKGROUND_NAME in (
        () if data.known is None else data.known
    ):
        messages.note("Background: used, since instances are known to be background.")
    elif fitted.has_background_ or "held_out" in result["background"]:
        messages.note(fitted.background_note_)
    messages.note(
        f"Fitted to {result['bags']:,} bags, {result['instances']:,} instances, "
        f"{result['features']} features, {len(result['classes'])} classes in "
        f"{result['iterations']} iterations; log-likelihood {result['log_likelihood']:.1f}."
    )
    messages.note(f"Written to {output}.")
