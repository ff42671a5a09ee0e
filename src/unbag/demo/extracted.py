"""What the demos of recordings, pictures and signals share: from a table of instances to a report.

Each makes its media, extracts instances, and knows the truth; the commands in between are the same.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from unbag import io
from unbag._files import make_folder, written_together
from unbag.annotations import annotate
from unbag.extract.extraction import Extracted
from unbag.fitting.solvers import interruptions_raised
from unbag.frames import read_for_model, roles_for_model
from unbag.io.annotated import Status, write_annotated
from unbag.io.table import open_source
from unbag.learning import fit
from unbag.report import write_report


@dataclass(frozen=True)
class Annotated:
    """What a demo has annotated.

    Attributes
    ----------
    model
        As it was fitted.
    table : BagTable
    labels : LabelSets
        What the bags are said to hold.
    selected : ndarray of shape (n_instances,)
        The label of each instance, or None.
    is_background : ndarray of bool of shape (n_instances,)
    """

    model: Any
    table: io.BagTable
    labels: Any
    selected: Any
    is_background: Any


class Demo:
    """The files of a demo, and the commands that make one from the other, which it prints.

    Parameters
    ----------
    out : path
        The folder of all files.
    names : dict of str to str
        Of the files, by what they are: at least ``table``, ``model``, ``annotated`` and ``report``.
    quiet : bool
    """

    def __init__(self, out: Path, names: Mapping[str, str], quiet: bool):
        self.console: Console = Console(quiet=quiet, soft_wrap=True, highlight=False)
        make_folder(out)
        self.files: dict[str, Path] = {name: out / each for name, each in names.items()}

    def show(self, command: str) -> None:
        """Print a command."""
        self.console.print(f"$ {command}", markup=False)

    @contextmanager
    def annotated(self, extracted: Extracted) -> Iterator[Annotated]:
        """Fit a model to the extracted table, and annotate it; the table is open meanwhile."""
        files = self.files
        self.show(f"unbag fit {files['table']} -o {files['model']}")
        # Not a report on what half a fit has learnt.
        with interruptions_raised():
            model = fit(files["table"])
        model.save(files["model"], info={"source": files["table"].name, "bags": extracted.bags,
                                         "instances": extracted.instances})  # fmt: skip
        raven = f" --raven {files['raven']}" if "raven" in files else ""
        self.show(
            f"unbag annotate {files['model']} {files['table']} -o {files['annotated']}{raven}"
        )
        with open_source(files["table"]) as source:
            data, labels = read_for_model(model, source, roles_for_model(model, source, io.Roles()))
            answers = annotate(model, data.bags, labels)
            selected = answers.columns()["annotation"].copy()
            selected[answers.status != Status.LABELLED] = None
            with written_together():
                if raven:
                    io.write_raven(files["raven"], data, selected)
                write_annotated(data, files["annotated"], answers.columns(), {})
            yield Annotated(model, data, labels, selected, answers.status == Status.BACKGROUND)

    def report(
        self, found: Annotated, title: str, media_root: Path, files: Any, places: Any, **more: Any
    ) -> None:
        """Write the report, with media of the folder `media_root`."""
        model, table, report = (self.files[name] for name in ("model", "table", "report"))
        self.show(f"unbag report {model} {table} -o {report} --media-root {media_root}")
        write_report(
            report, found.model, found.table.bags, found.labels, media=files,
            media_root=media_root, places=places, title=title,
            settings={"model file": model.name, "table": table.name}, **more,
        )  # fmt: skip

    def result(self, title: str, shares: Mapping[str, float], closing: str) -> dict[str, Any]:
        """Print which shares are right, and a last line; return the shares and the files."""
        table = Table(title=title)
        table.add_column("labels")
        table.add_column("share", justify="right")
        for name, share in shares.items():
            table.add_row(name, f"{share:.1%}")
        self.console.print(table)
        self.console.print(closing)
        files = {name: str(path) for name, path in self.files.items()}
        return {"accuracies": dict(shares), "files": files}


def shares_right(
    found: Annotated, truth: Sequence[object], tags: Sequence[Collection[str]], bags: str, held: str
) -> dict[str, float]:
    """Compute how many of the instances of a class have its label, and by tags at random.

    Parameters
    ----------
    found : Annotated
    truth : sequence of shape (n_instances,)
        The class of each instance; None for those of no class.
    tags : sequence of shape (n_instances,)
        The tags of the bag of each instance.
    bags, held : str
        What to call the bags, and instances of a class.
    """
    holds = np.array([each is not None for each in truth])
    right = np.array([one == other for one, other in zip(found.selected, truth, strict=True)])
    at_random = [1 / len(each) for each, is_held in zip(tags, holds, strict=True) if is_held]
    return {
        "tags copied at random": float(np.mean(at_random)),
        f"learnt from the tags of the {bags}": float(np.mean(right[holds])),
        held: float(holds.mean()),
        "of the others, left without a label": float(np.mean(found.is_background[~holds])),
    }
