"""``unbag review``: a page on which people check labels, and what they have corrected as files."""

import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from unbag._files import check, check_outputs
from unbag._messages import require, words
from unbag.tables.answers import log_beside

from . import options as o
from .console import messages, progress
from .evaluate import group_names, media_folder, places, signal_layout

if TYPE_CHECKING:
    from unbag.labels import LabelSets
    from unbag.tables import BagTable

#: Answers after which the model is fitted again.
REFIT_EVERY = 20


@o.with_options(*o.OF_MODELS)
def review(
    model: o.Model,
    table: o.Data,
    given: o.Given,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page; 0 for one that is free.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
    media_root: o.MediaRoot = None,
    log: Annotated[
        Path | None,
        typer.Option(
            help="Log of the answers. Default: next to the table, with .answers.jsonl added to its "
            "name."
        ),
    ] = None,
    refit_every: Annotated[
        int,
        typer.Option(
            min=0,
            help="Fit the model again after so many answers, for --export too; 0: only when asked "
            "to on the page.",
        ),
    ] = REFIT_EVERY,
    export: Annotated[
        list[Path] | None,
        typer.Option(
            help="Write the corrected table to this file, and do not open the page; .json: for "
            "Label Studio; .txt: a Raven selection table. May be given several times."
        ),
    ] = None,
    ignore_labels: o.IgnoreLabels = False,
    as_json: o.Json = False,
) -> None:
    """Look, listen, and correct labels and tags, on a page of this machine.

    Each answer is on disk before the page confirms it: the review can be stopped at any time, and
    goes on where it was. `unbag fit --corrections LOG` learns from the answers.

    Example: unbag review words.unbag words.csv
    """
    if not export:
        require("starlette")
        require("uvicorn")
    # They bring scikit-learn, which takes a second.
    from unbag.learning import without_truth
    from unbag.review.log import AnswerLog
    from unbag.review.session import Session

    fitted, data, labels = read_for_review(model, table, given, not ignore_labels, export or [])
    path = log_beside(data.path) if log is None else log
    check(
        hasattr(fitted, "annotate_proba"),
        f"{model}: {type(fitted.model).__name__} gives {words().instances} no probabilities, and "
        "cannot be reviewed: fit a model that does, such as a linear one.",
    )
    if export:
        check(path.exists(), f"{path} does not exist: nothing has been answered yet.")
        check_outputs(export, [path])
    ids = None if data.roles.instance_id is None else data.texts(data.roles.instance_id)
    bags = without_truth(data.bags)
    with AnswerLog(path, bags, data.path) as answers:
        # Ids say more surely whether rows have changed places.
        notes = answers.notes(bags if ids is None else None)
        for note in notes:
            messages.warn(note)
        session = Session(
            fitted, bags, labels, answers, known=data.known, ids=ids,
            delimiter=data.roles.label_separator, group_names=group_names(data, fitted.classes_),
            tagging=data.roles.tagging,
        )  # fmt: skip
        for note in session.notes():
            messages.warn(note)
        if export:
            write_exports(export, session, data, media_root, refit_every)
            return
        serve(session, data, media_root, port, not no_browser, refit_every, notes)


def read_for_review(
    model: Path, table: list[Path], given: o.Given, use_labels: bool, outputs: list[Path]
) -> "tuple[Any, BagTable, LabelSets | None]":
    """Load a model, and read a table for it, with the labels of instances that people gave."""
    from unbag.frames import check_features, roles_for_model
    from unbag.models import load
    from unbag.tables.guess import with_known

    fitted = load(model)
    with o.open_table(table) as source, progress("reading") as report:
        check_outputs(outputs, [model, *source.files, *given.files])
        roles = roles_for_model(fitted, source, given.roles, use_labels=use_labels)
        roles = with_known(source, roles) if source.columns else roles
        data = source.read(roles, need_labels=False, progress=report)
        check_features(fitted, data)
    if not use_labels or data.labels is None:
        return fitted, data, None
    return fitted, data, data.labels.with_groups_of(data.roles.tagging, fitted.classes_)


def serve(
    session: Any,
    data: "BagTable",
    media_root: Path | None,
    port: int,
    opens: bool,
    refit_every: int,
    notes: list[str],
) -> None:
    """Serve the page until the command is stopped."""
    import threading

    from unbag.report.media import Media
    from unbag.review.refitting import Refitting
    from unbag.review.server import ReviewServer

    column = data.roles.media
    layout = signal_layout(data)
    media = Media(
        None if column is None else data.column(column, "media").tolist(),
        media_folder(data, media_root),
        places(data),
        layout=layout,
        recordings=np.repeat(data.bags.ids, data.bags.sizes).astype(str).tolist()
        if layout
        else None,
    )
    refitting = Refitting(session, refit_every, path=data.path, roles=data.roles)
    server = ReviewServer(
        session, refitting, media, port=port, title=data.path.name, notes=notes,
    )  # fmt: skip
    messages.result({"address": server.address, "log": str(session.log.path)})
    if session.done:
        messages.note(f"{session.log.path}: going on after {n_answers(session)}.")
    else:
        messages.note(f"Answers are kept in {session.log.path}.")
    if not messages.as_json:
        print(server.address)
    # Whoever reads it from a pipe waits for it.
    sys.stdout.flush()
    messages.note("Ctrl-C ends the review.")

    def begin() -> None:
        session.survey()
        # What was answered before teaches the model first.
        refitting.start_if_due()
        session.check_tags()

    threading.Thread(target=begin, name="survey", daemon=True).start()
    try:
        if opens:
            # Where there is no browser, or no home, people copy the address.
            with suppress(webbrowser.Error, OSError, RuntimeError):
                webbrowser.open_new_tab(server.redirect().as_uri())
        server.run()
        # It ends by a signal, whose exception may have been lost where none can be raised.
        raise KeyboardInterrupt
    finally:
        server.end_redirect()
        session.stop()
        refitting.stop()
        # Also after Ctrl-C, by which a review usually ends.
        messages.note(f"{session.log.path} holds {n_answers(session)}.")


def n_answers(session: Any) -> str:
    """Return how many answers count, in words."""
    n = len(session.done)
    return f"{n:,} answer{'s' * (n != 1)}"


def write_exports(
    outputs: list[Path], session: Any, data: "BagTable", media_root: Path | None, refit_every: int
) -> None:
    """Write what people have corrected, and what the model says of the rest.

    With as many answers as the page wants for a fit, the model learns from them first.
    """
    from unbag.review.exporting import write_corrected
    from unbag.review.refitting import Refitting

    refitting = Refitting(session, refit_every, path=data.path, roles=data.roles)
    if refitting.is_due:
        with progress("fitting"):
            refitting.run(survey=False)
        if refitting.error is None:
            messages.note("The model was fitted again with the answers.")
    with progress("asking the model") as report:
        session.survey(report, choose=False)
    write_corrected(outputs, session, data, media_root=media_root)
    n_labelled = int(sum(each is not None for each in session.known()))
    messages.result(
        {"outputs": [str(each) for each in outputs], "answers": len(session.done),
         "known_labels": n_labelled, "fitted_again": session.model_number > 0}
    )  # fmt: skip
    messages.note(
        f"{n_answers(session)}; {n_labelled:,} of {session.bags.n_instances:,} "
        f"{words().instances} have a label that people gave."
    )
    for output in outputs:
        messages.note(f"Written to {output}.")
