"""Tables that do not fit in memory: ``fit`` and ``annotate`` in blocks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import typer

from unbag import _platform, out_of_core
from unbag._files import DataError, check, check_outputs, looks_like_parquet, refuse
from unbag.annotations import AnnotateSettings, sentences
from unbag.fitting.decide import SAMPLE_BYTES
from unbag.fitting.linear import interruptions_raised
from unbag.learning import decided, learns_rates, sentence_about_rates
from unbag.out_of_core.fits import check_model, opened, training_set_of
from unbag.tables import Roles
from unbag.tables.parquet_set import ParquetSet
from unbag.tables.stored import StoredBags

from .console import messages, progress
from .fit import show_classes, summarise

# Features that take more than this part of the memory are left on disk: a fit needs room as well.
SHARE_OF_MEMORY = 0.5


def stays_on_disk(table: Sequence[Path], given: Roles, in_memory: bool, on_disk: bool) -> bool:
    """Decide whether a table is read block by block, or into memory.

    Without the options ``--in-memory`` and ``--out-of-core`` it stays on disk if the features would
    take more than half of the memory. Only one Parquet file, or one folder of them, can.
    """
    if in_memory and on_disk:
        raise typer.BadParameter("choose one of --in-memory and --out-of-core")
    if on_disk:
        check(
            len(table) == 1 and looks_like_parquet(table[0]),
            f"{', '.join(map(str, table))}: --out-of-core needs Parquet, a folder of files or one: "
            "unbag data convert makes one.",
        )
        return True
    memory = _platform.total_memory()
    wanted = features_bytes(table[0], given) if len(table) == 1 else None
    if memory is None or wanted is None:
        return False
    if in_memory:
        check(
            wanted < memory,
            f"{table[0]}: its features would take {in_bytes(wanted)}, and there are "
            f"{in_bytes(memory)} of memory: leave out --in-memory.",
        )
        return False
    return wanted > SHARE_OF_MEMORY * memory


def features_bytes(path: Path, given: Roles) -> int | None:
    """Return what the features of a Parquet set would take in memory; None if it is no such set."""
    with catch_warnings():
        # They come again when it is read.
        simplefilter("ignore")
        try:
            found = ParquetSet(path)
            roles = found.resolved(given, need_labels=False)
        except DataError:
            return None
    columns = [*(roles.features or ()), *([] if roles.embedding is None else [roles.embedding])]
    return found.values_bytes(columns, np.dtype(found.dtype(columns)).itemsize)


def in_bytes(n_bytes: float) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> in_bytes(2_560_000_000), in_bytes(3_500_000), in_bytes(512)
    ('2.6 GB', '3.5 MB', '512 bytes')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def refuse_with(is_on_disk: bool, **used: Any) -> None:
    """Raise an error for options that were used, and that tables on disk do not have."""
    refuse(
        (option for option, is_used in used.items() if is_on_disk and is_used),
        lambda option: (
            f"{option} cannot be used out of core: use --in-memory, or leave out the option."
        ),
    )


def fit_on_disk(
    table: Path, wanted: Roles, model: Any, output: Path, resume: bool, ignore_known: bool
) -> None:
    """Fit a model to a table that stays on disk, and write it.

    While the fit lasts, its checkpoint lies next to the model file. It stays there if the fit is
    stopped, and `resume` goes on from it.
    """
    check_model(model)
    checkpoint = Path(f"{output}.checkpoint")
    second = [] if wanted.label_table is None else [wanted.label_table]
    check_outputs([output, checkpoint], [*ParquetSet(table).files, *second])
    with progress("reading") as report:
        stored = opened(table, wanted, ignore_known=ignore_known, progress=report)
    if stored.labels is not None:
        show_classes(stored.labels)
    with progress("fitting") as report, told_how_to_resume(checkpoint), interruptions_raised():

        def show(pace: out_of_core.Pace) -> None:
            # Between iterations, too: one may take minutes.
            within = min(pace.bags_since / pace.n_bags, 1.0)
            report(pace.iteration + within, pace.max_iter, str(pace))

        out_of_core.fit(model, stored, checkpoint=checkpoint, resume=resume, progress=show)
    data = training_set_of(stored)
    model.save(output, info={**data.facts(), "decision": decided(model)})
    checkpoint.unlink(missing_ok=True)
    summarise(model, data, output)
    if learns_rates(model):
        bags, places = stored.sample(SAMPLE_BYTES)
        messages.note(sentence_about_rates(model, bags, data.label_sets[places]))


@contextmanager
def told_how_to_resume(checkpoint: Path) -> Iterator[None]:
    """Print that a stopped fit can be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint.exists():
            messages.note(f"The fit is kept in {checkpoint}: --resume goes on from there.")
        raise


def annotate_on_disk(
    model: Any,
    table: Path,
    wanted: Roles,
    output: Path,
    use_labels: bool,
    settings: AnnotateSettings,
) -> None:
    """Annotate a table that stays on disk, as `unbag.out_of_core.annotate` does, and print that."""
    start = perf_counter()
    with progress("reading") as report:
        stored = StoredBags(table, wanted, need_labels=False, progress=report)
    with progress("annotating") as report:
        found = out_of_core.annotate(
            model, stored, output, use_labels=use_labels, progress=report, **asdict(settings)
        )
    result = {"output": str(output), **asdict(found), "seconds": perf_counter() - start}
    del result["columns"]
    messages.result(result)
    for line in sentences(found, found.columns, settings):
        messages.note(line)
    messages.note(f"Written to {output}.")
