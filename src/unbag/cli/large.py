"""Tables that do not fit in memory: ``fit`` and ``annotate`` in blocks, and what a fit costs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import typer

from unbag import _platform, costs, out_of_core
from unbag._files import DataError, check, check_outputs, looks_like_parquet, refuse
from unbag.costs import in_bytes
from unbag.fitting.objective import SAMPLE_BYTES
from unbag.fitting.solvers import interruptions_raised
from unbag.io import Roles
from unbag.io.parquet_set import ParquetSet
from unbag.io.stored import StoredBags
from unbag.io.table import Source
from unbag.out_of_core.checkpoints import checkpoint_beside
from unbag.out_of_core.fits import check_fit, is_network, opened, training_set_of

from .annotate import described, least_probability
from .console import messages, progress
from .fit import background_facts, describe_noise, facts, show_classes, summarise

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


def refuse_with(is_on_disk: bool, **used: bool) -> None:
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

    While the fit lasts, its checkpoint lies beside the model file. It stays there if the fit is
    stopped, and `resume` goes on from it; networks have none.
    """
    checkpoint = None if is_network(model) else checkpoint_beside(output)
    check_fit(model, checkpoint, resume)
    checkpoints = [] if checkpoint is None else [checkpoint]
    second = [] if wanted.label_table is None else [wanted.label_table]
    check_outputs([output, *checkpoints], [*ParquetSet(table).files, *second])
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
    model.save(output, info={**facts(data), "background": background_facts(model)})
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    summarise(model, data, output)
    if any(isinstance(rate, str) for rate in (model.missed, model.false)):
        bags, places = stored.sample(SAMPLE_BYTES)
        messages.note(describe_noise(model, bags, data.label_sets[places]))


@contextmanager
def told_how_to_resume(checkpoint: Path | None) -> Iterator[None]:
    """Print that a stopped fit can be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is not None and checkpoint.exists():
            messages.note(f"What the fit has reached is in {checkpoint}: --resume goes on there.")
        raise


def annotate_on_disk(
    model: Any,
    table: Path,
    wanted: Roles,
    output: Path,
    use_labels: bool,
    review: float,
    options: dict[str, Any],
) -> None:
    """Annotate a table that stays on disk, as `unbag.out_of_core.annotate` does, and print that."""
    start = perf_counter()
    with progress("reading") as report:
        stored = StoredBags(table, wanted, need_labels=False, progress=report)
    with progress("annotating") as report:
        found = out_of_core.annotate(
            model, stored, output, use_labels=use_labels, review_share=review, progress=report,
            **options,
        )  # fmt: skip
    result = {"output": str(output), **asdict(found), "seconds": perf_counter() - start}
    del result["columns"]
    messages.result(result)
    least = least_probability(options["unknown_below"], options["back_off"])
    for line in described(found, found.columns, least, options["joint"]):
        messages.note(line)
    messages.note(f"Written to {output}.")


def show_cost(table: Path | Source, wanted: Roles, background: bool) -> None:
    """Print what an iteration of a fit to a table would cost: an open one, or one on disk."""
    data: Any = StoredBags(table, wanted) if isinstance(table, Path) else table.read(wanted)
    if data.labels is not None:
        bags = data if isinstance(table, Path) else data.bags
        for line in str(costs.cost(bags, data.labels, background=background)).splitlines():
            messages.note(line)
