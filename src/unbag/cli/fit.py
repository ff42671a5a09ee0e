"""``unbag fit``: from a table of bags, and perhaps of known instances, to a model file."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbag._files import check_output, existing_file, looks_like_parquet
from unbag._messages import listed, words
from unbag.labels import LabelSets, bags_per_class, rare_classes
from unbag.settings import Settings
from unbag.tables.roles import NOT_LEARNT_FROM, ROLES

from . import options as o
from .console import messages, progress, show_plan

if TYPE_CHECKING:
    from unbag.learning import TrainingSet


@o.with_options(*(name for name in ROLES if name != "instance_labels"), settings=Settings)
def fit(
    table: o.Data,
    output: Annotated[Path, o.written("The model file to write.")],
    given: o.Given,
    settings: Settings,
    corrections: o.Corrections = None,
    ignore_known: Annotated[bool, o.rarely("--ignore-known", help=o.IGNORE_KNOWN)] = False,
    minutes: Annotated[
        float | None,
        o.rarely(min=0, help="With --model auto: time limit; keeps the best settings so far."),
    ] = None,
    in_memory: Annotated[bool, o.rarely("--in-memory", help=o.IN_MEMORY)] = False,
    out_of_core: Annotated[bool, o.rarely("--out-of-core", help=o.OUT_OF_CORE)] = False,
    resume: Annotated[
        bool, o.rarely("--resume", help="Go on where a fit with --out-of-core was stopped.")
    ] = False,
    dry_run: o.DryRun = False,
    as_json: o.Json = False,
) -> None:
    """Learn to label single rows, such as calls, from the tags of whole bags.

    A bag is all rows with one list of tags, such as the calls of a recording.

    Example: unbag fit words.csv --bag bag --labels labels -o words.unbag
    """
    # It brings scikit-learn, which takes a second.
    from unbag.learning import (
        decided,
        learns_rates,
        read_source,
        refuse_contradiction,
        sentence_about_rates,
    )

    refuse_contradiction(ignore_known, corrections=corrections, known=given.roles.known)
    if minutes is not None and settings.model != "auto":
        raise typer.BadParameter("--minutes is for --model auto")
    is_on_disk = False
    if out_of_core or resume or any(map(looks_like_parquet, table)):
        from . import large

        is_on_disk = large.stays_on_disk(table, given.roles, in_memory, out_of_core or resume)
        is_linear = settings.model == "linear"
        refused = {f"--model {settings.model}": not is_linear, "--corrections": corrections}
        large.refuse_with(is_on_disk, **refused)
        if is_on_disk and not dry_run:
            large.fit_on_disk(
                table[0], given.roles, settings.unfitted(), output, resume, ignore_known
            )
            return
    with o.open_table(table) as source:
        wanted = given.roles
        if dry_run:
            from unbag.tables.guess import with_known

            wanted = wanted if not source.columns else with_known(source, wanted, ignore_known)
            show_plan(source.peek(wanted), output, NOT_LEARNT_FROM)
            if corrections is not None:
                messages.note(f"corrections: {existing_file(corrections)}")
            return
        inputs = [*source.files, *given.files, *([] if corrections is None else [corrections])]
        check_output(output, *inputs)
        with progress("reading") as report:
            data = read_source(
                source, wanted, corrections=corrections, ignore_known=ignore_known, progress=report
            ).check_learnable()
        data.announced()
    show_classes(data.label_sets)
    if settings.model == "auto":
        from .tune import tuned_model

        fitted = tuned_model(settings, data, minutes)
    else:
        fitted = fit_shown(settings.unfitted(), data)
    info = {**data.facts(), "decision": decided(fitted.model)}
    if corrections is not None:
        info["corrections"] = corrections.name
    fitted.save(output, info=info)
    summarise(fitted, data, output)
    if learns_rates(fitted.model):
        messages.note(sentence_about_rates(fitted, data.bags, data.label_sets))


def show_classes(labels: LabelSets) -> None:
    """Print in how many bags each class is, what else bags may be, and which classes are rare."""
    counts = sorted(bags_per_class(labels).items(), key=lambda item: -item[1])
    bags = words().bags
    messages.note(
        f"{bags.capitalize()} with each class: {listed(f'{name} {n:,}' for name, n in counts)}."
    )
    n_none = int((labels.forbidden.all(axis=1) & ~labels.open).sum())
    is_any = labels.optional.all(axis=1) | (labels.open & ~labels.required.any(1))
    n_unknown = int((is_any & ~labels.is_tagged).sum())
    others = [f"{n:,} {what}" for n, what in ((n_none, "have none of them"),
                                              (n_unknown, "may have any")) if n]  # fmt: skip
    if others:
        messages.note(f"Of {len(labels):,} {bags}, {' and '.join(others)}.")
    rare = rare_classes(labels)
    if rare is not None:
        messages.warn(f"{rare}.")


def fit_shown(unfitted: Any, data: "TrainingSet") -> Any:
    """Fit a model, and show how far that has got."""
    from unbag.fitting.linear import interruptions_raised

    # Networks take several trainings.
    most = getattr(unfitted.model, "n_steps", unfitted.model.max_iter)
    # In Python a fit keeps what it has reached; a command leaves what was there before.
    with progress("fitting") as report, interruptions_raised():
        return data.fit(unfitted, watch=lambda reached: report(len(reached.history), most))


def summarise(model: Any, data: "TrainingSet", output: Path) -> None:
    """Print what was fitted to which data."""
    from unbag.learning import decided

    fitted = model.model
    facts = data.facts()
    result = {
        "model": str(output),
        "bags": facts["bags"],
        "instances": facts["instances"],
        "features": data.bags.n_features,
        "feature_names": data.feature_names,
        "columns_not_used": data.unused,
        "roles": {} if data.roles is None else asdict(data.roles),
        "roles_not_learnt_from": list(NOT_LEARNT_FROM),
        "classes": [str(label) for label in model.classes_],
        "bags_per_class": bags_per_class(data.label_sets),
        "known_instance_labels": facts["known_instance_labels"],
        "iterations": int(fitted.n_iter_),
        "converged": bool(fitted.converged_),
        "log_likelihood": float(fitted.log_likelihood_),
        "relaxed_bags": len(fitted.relaxed_),
        "decision": decided(fitted),
    }
    tuning = getattr(model, "tuning_", None)
    messages.result(result if tuning is None else {**result, "tuning": tuning})
    if tuning is not None:
        from .tune import show_search

        show_search(tuning)
    decision = fitted.decision_
    every = f" To label every {words().instance}: --background no." if decision.background else ""
    messages.note(f"{decision.sentence(*words())}{every}")
    messages.note(
        f"Fitted to {result['bags']:,} {words().bags}, {result['instances']:,} "
        f"{words().instances}, {result['features']} features, {len(result['classes'])} classes in "
        f"{result['iterations']} iterations."
    )
    messages.note(f"Written to {output}.")
