"""``unbag review``: a page on which people check labels, and what they have corrected as files."""

import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from unbag._extras import require
from unbag._files import check, check_outputs
from unbag.io import Roles
from unbag.io.answers import log_beside

from . import options as o
from .console import messages, progress
from .evaluate import group_names, places, signal_layout

if TYPE_CHECKING:
    from unbag.io import BagTable
    from unbag.labels import LabelSets

#: Answers after which the model is fitted again.
REFIT_EVERY = 20


@o.with_roles(*o.OF_MODELS, "known", "instance_id", *o.OF_TOOLS)
def review(
    model: o.Model,
    table: o.Data,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page; 0 for one that is free.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
    media_root: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False,
            help="Folder of the files named in --media. Default: the folder of the table.",
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            help="Log of the answers. Default: beside the table, with .answers.jsonl added to its "
            "name."
        ),
    ] = None,
    refit_every: Annotated[
        int,
        typer.Option(
            min=0, help="Fit the model again after so many answers; 0: only when asked to."
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
    **given: Any,
) -> None:  # fmt: skip
    """Look at bags, listen, and correct their labels on a page of this machine.

    Each answer is on disk before the page says so: the review can be stopped at any time, and goes
    on where it was. `unbag fit --corrections LOG` learns from the answers.

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
        f"{model}: {type(fitted.model).__name__} gives instances no probabilities, and cannot be "
        "reviewed: fit a model that does, such as a linear one.",
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
            delimiter=data.roles.delimiter, group_names=group_names(data, fitted.classes_),
        )  # fmt: skip
        if export:
            write_exports(export, session, data, media_root)
            return
        serve(session, data, media_root, port, not no_browser, refit_every, notes)


def read_for_review(
    model: Path, table: list[Path], given: dict[str, Any], use_labels: bool, outputs: list[Path]
) -> "tuple[Any, BagTable, LabelSets | None]":
    """Load a model, and read a table for it, with the labels of instances that people gave."""
    from unbag.frames import check_features, roles_for_model
    from unbag.io.guess import with_known
    from unbag.models import load_with_header

    fitted, _ = load_with_header(model)
    named = o.files_named(given)
    with o.open_table(table, given) as source, progress("reading") as report:
        check_outputs(outputs, [model, *source.files, *named])
        roles = roles_for_model(fitted, source, Roles.from_options(**given), use_labels=use_labels)
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

    from unbag.review.refitting import Refitting
    from unbag.review.server import Instances, ReviewServer

    column = data.roles.media
    layout = signal_layout(data)
    instances = Instances(
        None if column is None else data.column(column, "media").tolist(),
        data.path.parent if media_root is None else media_root,
        places(data),
        layout=layout,
        recordings=np.repeat(data.bags.ids, data.bags.sizes).astype(str) if layout else None,
    )
    refitting = Refitting(session, refit_every, path=data.path, roles=data.roles)
    server = ReviewServer(
        session, instances, refitting, port=port, title=data.path.name, notes=notes,
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
    if opens:
        # Where there is no browser, people copy the address.
        with suppress(webbrowser.Error, OSError):
            webbrowser.open_new_tab(server.address)
    try:
        server.run()
        # It ends by a signal, whose exception may have been lost where none can be raised.
        raise KeyboardInterrupt
    finally:
        session.stop()
        refitting.stop()
        # Also after Ctrl-C, by which a review usually ends.
        messages.note(f"{session.log.path} holds {n_answers(session)}.")


def n_answers(session: Any) -> str:
    """Return how many answers count, in words."""
    n = len(session.done)
    return f"{n:,} answer{'s' * (n != 1)}"


def write_exports(
    outputs: list[Path], session: Any, data: "BagTable", media_root: Path | None
) -> None:
    """Write what people have corrected, and what the model says of the rest."""
    from unbag.review.exporting import write_corrected

    with progress("asking the model") as report:
        session.survey(report, choose=False)
    write_corrected(outputs, session, data, media_root=media_root)
    n_labelled = int(sum(each is not None for each in session.known()))
    messages.result(
        {"outputs": [str(each) for each in outputs], "answers": len(session.done),
         "known_labels": n_labelled}
    )  # fmt: skip
    messages.note(
        f"{n_answers(session)}; {n_labelled:,} of {session.bags.n_instances:,} instances "
        "have a label that people gave."
    )
    for output in outputs:
        messages.note(f"Written to {output}.")
