"""From a folder of files to a table of instances, for every kind of media.

What is found in a file is kept in a folder beside the table as soon as the file is done. A run that
was stopped, however, goes on from there; the table is written in one go at the end, in the order of
the files' names, so that it is the same to the byte. Then the folder goes.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from unbag._extras import MissingExtraError
from unbag._files import (
    FEATHER,
    PARQUET,
    DataError,
    PathLike,
    check,
    check_format,
    check_output,
    file_state,
    make_folder,
    parsed_json,
    unreadable,
    write_text,
    writing,
)
from unbag._messages import argument, counted, listed, one_line, shortened
from unbag._platform import locked_folder
from unbag._processes import completed
from unbag._threads import job_count
from unbag._version import __version__
from unbag.io.extracted import Facts
from unbag.io.writing import write_tables

from .kinds import Instances, Kind, Report, unreported
from .tags import MatchedTags, Tags, matched_tags
from .walk import PARTS, found_files

SETTINGS = "settings.json"
#: The column of tags.
TAGS = "tags"

#: Called with the bytes of the files that are done, those of all files, the name of the last one,
#: and what is wrong with it or None.
OnFile = Callable[[int, int, str, str | None], None]
#: Called with the bytes that are done, parts of files among them, and those of all files.
OnProgress = Callable[[float, int], object]


@dataclass(frozen=True)
class Extracted:
    """What was extracted, and what was not.

    Attributes
    ----------
    output : Path
        The table.
    files : int
        How many files there are.
    resumed : int
        How many of them an earlier run had finished.
    bags : int
        How many recordings or pictures were read: several, where a file holds several.
    instances : int
        Rows of the table.
    without_instances : list of str
        Bags in which nothing was found; they have no rows.
    tagged_without_instances : list of str
        Those of them that have tags.
    failed : dict of str to str
        Files that could not be read, and why.
    files_without_tags, tags_without_file : list of str
        Bags that have no tags, and names in the table of tags that are those of no file.
    other_files : dict of str to int
        How many files of other suffixes were passed over.
    notes : dict of str to str
        What should be known of files that were read.
    """

    output: Path
    files: int
    resumed: int
    bags: int
    instances: int
    without_instances: list[str]
    tagged_without_instances: list[str]
    failed: dict[str, str]
    files_without_tags: list[str]
    tags_without_file: list[str]
    other_files: dict[str, int]
    notes: dict[str, str]


@dataclass(frozen=True)
class Work:
    """One file, and where to keep what is found in it."""

    kind: Kind
    name: str
    path: Path
    part: Path


def extract(
    kind: Kind,
    folder: PathLike,
    output: PathLike,
    tags: Tags | None = None,
    *,
    n_jobs: int | None = 1,
    on_file: OnFile | None = None,
    on_progress: OnProgress | None = None,
) -> Extracted:
    """Find and describe the instances of all files of a folder, and write them as one table.

    Parameters
    ----------
    kind : Kind
    folder : str or path
        Its files, and those of folders below it, are read; or one file.
    output : str or path
        A Parquet or Feather file. While the work lasts, what is finished lies beside it, in a
        folder of this name and ``.parts``.
    tags : Tags, optional
        Of the files; without, the table has no tags.
    n_jobs : int, default=1
        Number of processes; -1 for as many as there are cores.
    on_file : callable, optional
        Called after each file with the bytes done, all bytes, the name of the file, and what is
        wrong with it or None.
    on_progress : callable, optional
        Called with the bytes done and all bytes; within large files too, if there is one process.
    """
    output = Path(output)
    check_format(output, (*PARQUET, *FEATHER))
    check(
        n_jobs is None or n_jobs != 0,
        f"{argument('n_jobs')} must be a number of processes, or -1 for all cores; not 0.",
    )
    kind.check()
    inputs = [] if tags is None else [tags.path]
    found = found_files(folder, kind.suffixes, kind.things, output, inputs)
    check_output(output, *inputs, *(found.paths.values() if Path(folder).is_file() else ()))
    matched = None
    if tags is not None and kind.one_bag_per_file:
        # Before hours of work.
        matched = matched_tags(list(found.paths), tags, kind.things)
    parts = output.with_name(output.name + PARTS)
    failed: dict[str, str] = {}
    with _parts_folder(parts, kind):
        sizes = {name: _size(path) for name, path in found.paths.items()}
        total, done = sum(sizes.values()), 0
        pending, resumed = [], 0
        for name, path in found.paths.items():
            work = Work(kind.for_file(name), name, path, parts / _part_name(name))
            if _is_finished(work):
                resumed, done = resumed + 1, done + sizes[name]
            else:
                pending.append(work)
        jobs = min(job_count(n_jobs), max(len(pending), 1))

        def reported(work: Work) -> str | None:
            size = sizes[work.name]
            return _do(work, lambda share: on_progress and on_progress(done + share * size, total))

        for work, fault in completed(reported if jobs == 1 else _do, pending, jobs):
            done += sizes[work.name]
            if fault is not None:
                failed[work.name] = fault
            if on_file is not None:
                on_file(done, total, work.name, fault)
            if on_progress is not None:
                on_progress(done, total)
        finished = {name: parts / _part_name(name) for name in found.paths if name not in failed}
        result = _write(kind, folder, output, finished, matched, tags, failed)
        result = Extracted(
            output=output, files=len(found.paths), resumed=resumed, other_files=found.others,
            **result,
        )  # fmt: skip
        shutil.rmtree(parts)
    return result


# One file.


def _do(work: Work, report: Report = unreported) -> str | None:
    """Extract from one file, and keep what is found; return in a line what is wrong, if so."""
    try:
        _check_name(work.name)
        state = file_state(work.path)
        found = work.kind.instances(work.path, work.name, report)
        changed = file_state(work.path) != state
        check(not changed, f"{work.path} has changed while it was read: start again.")
        _write_part(work.part, found, state)
    except MissingExtraError:
        raise
    except MemoryError:
        return f"{work.path} does not fit into memory."
    except (DataError, OSError, ValueError) as error:
        text = one_line(
            str(error) if isinstance(error, ValueError) else unreadable(work.path, error)
        )
        return text if one_line(work.path) in text else f"{work.path}: {text}"
    except Exception as error:
        # One file of thousands shall not stop the others.
        what = f"{type(error).__name__}: {error}"
        return one_line(f"{work.path}: internal error ({what}). Please report it.")
    return None


def _check_name(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise DataError(f"{shortened(name)}: the name is not valid Unicode: rename it.") from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        # It is named when it is read.
        return 0


def _part_name(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:24] + ".arrow"


def _write_part(part: Path, found: Instances, state: tuple[int, ...]) -> None:
    facts = {
        # The inode may change where files are copied, which is no other file.
        "state": list(state[1:]),
        "without_instances": found.without_instances,
        "notes": found.notes,
        "seconds": found.seconds,
    }
    rows = found.rows.replace_schema_metadata({b"part": json.dumps(facts).encode()})
    with writing(part) as file, ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)


def _read_part(part: Path) -> tuple[pa.Table, dict[str, Any]]:
    with pa.OSFile(str(part)) as file:
        rows = ipc.open_file(file).read_all()
    facts = parsed_json((rows.schema.metadata or {})[b"part"])
    return rows.replace_schema_metadata(None), facts


def _is_finished(work: Work) -> bool:
    """Return whether an earlier run has finished a file that has not changed since."""
    try:
        _, facts = _read_part(work.part)
        return facts["state"] == list(file_state(work.path)[1:])
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        return False


# What is finished.


@contextmanager
def _parts_folder(parts: Path, kind: Kind) -> Iterator[None]:
    """Make the folder of finished files, or go on with it; no other run may use it meanwhile."""
    settings = {"kind": kind.name, "version": __version__, **kind.settings()}
    text = json.dumps(settings, sort_keys=True, indent=1)
    make_folder(parts)
    try:
        with locked_folder(parts):
            _compare_settings(parts, parsed_json(text))
            write_text(parts / SETTINGS, text)
            yield
    except BlockingIOError as error:
        raise DataError(f"{parts} is in use: another run writes the same table.") from error


def _compare_settings(parts: Path, settings: Mapping[str, Any]) -> None:
    path = parts / SETTINGS
    if not path.exists():
        return
    try:
        before = parsed_json(path.read_bytes())
    except (OSError, ValueError):
        before = None
    if not isinstance(before, dict):
        raise DataError(f"{path} is damaged: remove the folder to start over.")
    differing = [
        f"{name} was {shortened(before.get(name))} and is {shortened(settings.get(name))}"
        for name in sorted({*before, *settings})
        if before.get(name) != settings.get(name)
    ]
    check(
        not differing,
        f"{parts} holds what a run with other settings has finished ({'; '.join(differing[:3])}): "
        "use the same settings to go on, or remove the folder to start over.",
    )


# The table.


def _write(
    kind: Kind,
    folder: PathLike,
    output: Path,
    parts: Mapping[str, Path],
    matched: MatchedTags | None,
    tags: Tags | None,
    failed: Mapping[str, str],
) -> dict[str, Any]:
    """Write the rows of all parts as one table; return what is said of it."""
    roles = kind.roles
    bags: dict[str, None] = {}
    without: list[str] = []
    notes: dict[str, str] = {}
    seconds: dict[str, float] = {}
    n_rows = 0
    for name, part in parts.items():
        rows, facts = _read_part(part)
        n_rows += rows.num_rows
        bags |= dict.fromkeys(rows.column(roles.bag).unique().to_pylist())
        without += facts["without_instances"]
        seconds |= facts["seconds"]
        if facts["notes"]:
            notes[name] = " ".join(facts["notes"])
    if not n_rows:
        shutil.rmtree(output.with_name(output.name + PARTS))
        raise DataError(
            f"Nothing was found in any of {len(parts):,} {kind.things}: no table is written."
            if parts
            else f"None of {len(failed):,} {kind.things} could be read; the first: "
            f"{next(iter(failed.values()))}"
        )
    if tags is not None and matched is None:
        matched = matched_tags([*bags, *without], tags, kind.things)
    cells = {} if matched is None else matched.cells
    found = {
        "without_instances": sorted(without),
        "tagged_without_instances": sorted(
            bag for bag in without if cells.get(bag) not in (None, "(none)", "(unknown)")
        ),
        "failed": dict(sorted(failed.items())),
        "files_without_tags": [] if matched is None else matched.bags_without,
        "tags_without_file": [] if matched is None else matched.tags_without,
    }
    stored = {name: value for name, value in vars(roles).items() if value not in (None, ())}
    if tags is not None:
        stored["labels"] = TAGS
        untagged = tags.roles.untagged
        stored |= {} if untagged is None else {"untagged": untagged}
    facts = Facts(
        kind.name, kind.things, __version__, str(folder),
        parsed_json(json.dumps(stored)), dict(kind.settings()), seconds=seconds,
        **found,
    )  # fmt: skip
    with_tags = cells if tags is not None else None
    write_tables(output, _chunks(kind, parts.values(), with_tags, facts), "zstd")
    return {"bags": len({*bags, *without}), "instances": n_rows, "notes": notes, **found}


def _chunks(
    kind: Kind, parts: Iterable[Path], cells: Mapping[str, str | None] | None, facts: Facts
) -> Iterator[pa.Table]:
    metadata = facts.metadata()
    for part in parts:
        rows, _ = _read_part(part)
        rows = rows.cast(kind.schema())
        if cells is not None:
            bags = rows.column(kind.roles.bag).combine_chunks().dictionary_encode()
            own = pa.array([cells.get(bag) for bag in bags.dictionary.to_pylist()], pa.string())
            indices = bags.indices.to_numpy(zero_copy_only=False).astype(np.int32)
            rows = rows.append_column(TAGS, own.take(pa.array(indices)))
        if rows.num_rows:
            yield rows.replace_schema_metadata(metadata)


def summary(result: Extracted, things: str) -> list[str]:
    """Return what was extracted, and what was not, in a sentence each."""
    thing = things.removesuffix("s")
    n_read = result.files - len(result.failed)
    bags = counted(n_read, thing, things)
    if result.bags != n_read:
        bags = f"{counted(result.bags, thing, things)} in {counted(n_read, 'file')}"
    lines = [f"{counted(result.instances, 'instance')} of {bags}."]
    if result.resumed:
        lines.append(f"Finished by an earlier run: {counted(result.resumed, 'file')}.")
    if result.without_instances:
        tagged = result.tagged_without_instances
        of_tagged = (
            f"; {counted(len(tagged), 'of them has tags', 'of them have tags')}, and no fit will "
            f"learn from {'it' if len(tagged) == 1 else 'these'}: {listed(tagged)}"
            if tagged
            else ""
        )
        lines.append(
            f"Without instances: {counted(len(result.without_instances), thing, things)}, such as "
            f"{listed(result.without_instances[:3])}{of_tagged}."
        )
    for names, what in (
        (result.files_without_tags, (f"{thing} without tags", f"{things} without tags")),
        (result.tags_without_file, ("name with tags has no file", "names with tags have no file")),
    ):
        if names:
            lines.append(f"{counted(len(names), *what)}: {listed(names)}.")
    if result.other_files:
        counts = listed(f"{n} {suffix}" for suffix, n in result.other_files.items())
        lines.append(f"Files that were passed over: {counts}.")
    return lines
