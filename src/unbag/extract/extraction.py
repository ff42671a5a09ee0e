"""From a folder of files to a table of instances, for every kind of media.

The instances of a file are kept in a hidden folder next to the table as soon as the file is done,
and a run that was stopped resumes from there. The table is written at the end, in the order of the
files' names, so that it always has the same bytes. Then the folder is removed.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pyarrow as pa
from pyarrow import ipc

from unbag._files import (
    FEATHER,
    PARQUET,
    DataError,
    PathLike,
    check,
    check_format,
    check_output,
    existing_file,
    file_state,
    make_folder,
    parsed_json,
    unreadable,
    writing,
)
from unbag._messages import (
    MissingExtraError,
    argument,
    counted,
    listed,
    one_line,
    shortened,
    warn_caller,
    words,
)
from unbag._platform import locked_folder
from unbag._threads import completed, job_count
from unbag._version import __version__
from unbag.tables.extracted import Facts
from unbag.tables.roles import Roles
from unbag.tables.writing import write_tables
from unbag.tagging import ANY_LABEL, DELIMITER, NO_LABEL, write_cell

from .kinds import FileInstances, MediaKind, OnShare, ignore_share
from .stretches import Stretches, TagsByStretch, are_timed, bags_of, n_after
from .tags import (
    MatchedTags,
    Tags,
    TagSummary,
    matched_tags,
    read_tags,
    without_file,
)
from .walk import found_files, suffix_counts

#: The columns of tags, of ids, and of bags that are stretches of files.
TAGS, ID, BAG = "tags", "id", "bag"

logger: logging.Logger = logging.getLogger(__name__)

#: Called with the bytes of the files that are done, those of all files, the name of the last one,
#: and its fault or None.
OnFile = Callable[[int, int, str, str | None], None]
#: Called with the bytes that are done, parts of files among them, and those of all files.
OnProgress = Callable[[float, int], object]


class ExtractOptions(TypedDict, total=False):
    """Options of `audio`, `images` and `signals`.

    Finished files are kept in a hidden folder next to the output, ``.OUTPUT.parts``, until the
    table is written. The same call again goes on from there.

    Attributes
    ----------
    bag, tags_column : str
        The columns of the table of tags that name the file, and that hold its tags.
    label_columns, label_separator, untagged, none, fold_case, rename
        How tags are read, as in :class:`unbag.tables.Roles`. The table keeps `untagged`, the
        meaning of missing tags.
    split : float
        Seconds into which recordings are cut: each piece is a bag. The tags of a whole recording
        are then unsure in each of its bags. A tag of a stretch holds in the bag that has at least
        half of the stretch, and is unsure in others that it overlaps.
    n_jobs : int
        Number of processes; each reads a file at a time. 1 by default, -1 for all cores.
    on_file : callable
        Called after each file with the bytes done, all bytes, the name of the file, and its fault
        or None.
    """

    bag: str | None
    tags_column: str | None
    label_columns: str | Sequence[str] | None
    label_separator: str | None
    untagged: str | None
    none: str | Sequence[str]
    fold_case: bool | None
    rename: Mapping[str, str] | PathLike | None
    split: float | None
    n_jobs: int | None
    on_file: OnFile | None


@dataclass(frozen=True)
class Extracted:
    """The outcome of an extraction.

    Attributes
    ----------
    output : Path
        The table.
    files : int
        Number of files; a folder that could not be read counts as one.
    resumed : int
        Number of files that an earlier run had finished.
    bags : int
        Number of bags of the files that were read: recordings, stretches of them, or pictures.
    instances : int
        Rows of the table.
    without_instances : list of str
        Bags in which nothing was found; they have no rows.
    tagged_without_instances : list of str
        Those among them that have tags.
    failed : dict of str to str
        Files and folders that could not be read, and why.
    files_without_tags, tags_without_file : list of str
        Bags that have no tags, and names with tags that no file has.
    tagged_other_files : list of str
        Files with tags that were passed over, since their format is not read.
    other_files : dict of str to int
        Number of files that were passed over, by suffix.
    notes : dict of str to str
        Oddities of files that were read, and links that were left out.
    are_stretches : bool
        Whether bags are stretches of recordings.
    tags : TagSummary or None
        What the table of tags holds.
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
    tagged_other_files: list[str]
    other_files: dict[str, int]
    notes: dict[str, str]
    are_stretches: bool = False
    tags: TagSummary | None = None


@dataclass(frozen=True)
class FileWork:
    """One file, and where to keep what is found in it."""

    kind: MediaKind
    name: str
    path: Path
    part: Path


def extracted(
    kind: MediaKind,
    folder: PathLike,
    output: PathLike,
    tags: PathLike | None = None,
    **options: Unpack[ExtractOptions],
) -> Extracted:
    """Extract as Python calls it: with options by name, and a warning about files that failed."""
    if strange := options.keys() - ExtractOptions.__annotations__.keys():
        raise TypeError(f"got an unexpected keyword argument {min(strange)!r}.")
    own = ("tags_column", "split", "n_jobs", "on_file")
    roles: dict[str, Any] = {name: value for name, value in options.items() if name not in own}
    if "split" in options:
        kind = replace(kind, split=options["split"])
    result = extract(
        kind, folder, output, tags, Roles(labels=options.get("tags_column"), **roles),
        n_jobs=options.get("n_jobs", 1), on_file=options.get("on_file"),
    )  # fmt: skip
    if result.failed:
        warn_caller(
            f"{len(result.failed):,} of {result.files:,} {kind.things} could not be read, and the "
            f"table is without them (see `failed`): {next(iter(result.failed.values()))}"
        )
    return result


def extract(
    kind: MediaKind,
    folder: PathLike,
    output: PathLike,
    tags: PathLike | None = None,
    roles: Roles | None = None,
    *,
    n_jobs: int | None = 1,
    on_file: OnFile | None = None,
    on_progress: OnProgress | None = None,
) -> Extracted:
    """Find and describe the instances of all files of a folder, and write them as one table.

    `roles` say how the table of tags is read, which has them in the column of `labels`; what they
    say about blanks is kept.
    """
    output = Path(output)
    check_format(output, (*PARQUET, *FEATHER))
    most_jobs = job_count(n_jobs)
    kind.check()
    own = [] if tags is None else [tags]
    found = found_files(folder, kind.suffixes, kind.things, output, own)
    inputs = [*own, *(each for each in kind.inputs if each is not None)]
    check_output(output, *inputs, *(found.paths.values() if Path(folder).is_file() else ()))
    kind = kind.prepared(found.paths)
    read = matched = None
    if tags is not None:
        read = read_tags(
            tags, roles or Roles(), has_bag_column=kind.has_bag_column,
            has_stretches=kind.has_stretches, splits=kind.split is not None,
        )  # fmt: skip
    told = None if read is None else TagSummary.of(read)
    _say(f"{folder}: {counted(len(found.paths), 'file')}.", *(told.sentences() if told else ()))
    if read is not None and kind.one_bag_per_file:
        # Before hours of work.
        matched = matched_tags(list(found.paths), read, kind.things, found.others)
        _say(*_about_matches(matched, read, kind))
    _say(*(() if kind.follows_model else kind.remarks))
    failed = dict(found.faults)
    with _parts_folder(output) as parts:
        part_of = _part_namer(parts, kind)
        sizes = {name: _size(path) for name, path in found.paths.items()}
        total, done = sum(sizes.values()), 0
        pending, resumed = [], 0
        for name, fault in failed.items():
            if on_file is not None:
                on_file(done, total, name, fault)
        for name, path in found.paths.items():
            work = FileWork(kind.for_file(name), name, path, part_of(name))
            if _is_finished(work):
                resumed, done = resumed + 1, done + sizes[name]
            else:
                pending.append(work)
        jobs = min(most_jobs, max(len(pending), 1))
        n_threads = max(1, most_jobs // jobs)
        pending = [replace(work, kind=work.kind.on_threads(n_threads)) for work in pending]

        def reported(work: FileWork) -> str | None:
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
        finished = {name: part_of(name) for name in found.paths if name not in failed}
        result, notes = _write(kind, folder, output, finished, matched, read, failed, found.others)
        shutil.rmtree(parts, ignore_errors=True)
    return Extracted(
        output=output, files=len(found.paths) + len(found.faults), resumed=resumed,
        other_files=suffix_counts(found.others), notes=found.notes | notes, tags=told,
        **result,
    )  # fmt: skip


def _say(*sentences: str) -> None:
    for each in sentences:
        logger.info("%s", each)


# One file.


def _do(work: FileWork, on_share: OnShare = ignore_share) -> str | None:
    """Extract from one file, and keep what is found; return its fault in a line, or None."""
    try:
        _check_name(work.name)
        state = file_state(work.path)
        # Opening a pipe would wait for somebody to write to it.
        existing_file(work.path)
        found = work.kind.instances(work.path, work.name, on_share)
        changed = file_state(work.path) != state
        check(not changed, f"{work.path} has changed while it was read: start again.")
        _write_part(work, found, state)
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
        # One file of thousands must not stop the others.
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
        # The error comes when it is read.
        return 0


def _write_part(work: FileWork, found: FileInstances, state: tuple[int, ...]) -> None:
    in_rows = found.rows.column(work.kind.roles.bag).unique().to_pylist()
    facts = {
        # The inode may change where files are copied.
        "state": list(state[1:]),
        "n_rows": found.rows.num_rows,
        "bags": [*in_rows, *found.without_instances],
        "notes": found.notes,
        "seconds": found.seconds,
    }
    rows = found.rows.replace_schema_metadata({b"part": json.dumps(facts).encode()})
    with writing(work.part) as file, ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)


def _read_facts(part: Path) -> dict[str, Any]:
    """Read the facts about a finished file."""
    with pa.OSFile(str(part)) as file:
        return parsed_json((ipc.open_file(file).schema.metadata or {})[b"part"])


def _read_rows(part: Path, columns: Collection[int] = ()) -> pa.Table:
    """Read the rows of a finished file, or some of their columns."""
    options = ipc.IpcReadOptions(included_fields=sorted(columns) or None)
    with pa.OSFile(str(part)) as file:
        return ipc.open_file(file, options=options).read_all().replace_schema_metadata(None)


def _is_finished(work: FileWork) -> bool:
    """Return whether an earlier run has finished a file that has not changed since."""
    try:
        _read_rows(work.part)
        return _read_facts(work.part)["state"] == list(file_state(work.path)[1:])
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        return False


# Finished files.


def _parts_of(output: Path) -> Path:
    return output.with_name(f".{output.name}.parts")


@contextmanager
def _parts_folder(output: Path) -> Iterator[Path]:
    """Make the folder of finished files, and lock it against other runs."""
    parts = _parts_of(output)
    make_folder(parts)
    try:
        with locked_folder(parts):
            yield parts
    except BlockingIOError as error:
        raise DataError(f"{parts} is in use: another run writes the same table.") from error


def _part_namer(parts: Path, kind: MediaKind) -> Callable[[str], Path]:
    """Return where the instances of each file are kept: elsewhere for other settings."""
    settings = {"kind": kind.name, "version": __version__, **kind.settings()}
    run = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())

    def part_of(name: str) -> Path:
        own = run.copy()
        own.update(name.encode(errors="surrogateescape"))
        return parts / f"{own.hexdigest()[:24]}.arrow"

    return part_of


# The table.


def _about_matches(matched: MatchedTags, tags: Tags, kind: MediaKind) -> list[str]:
    """Say which names match nothing, and what the bags will be."""
    lines = [without_file(matched.tags_without, tags.path)] if matched.tags_without else []
    if matched.bags_without:
        n_without = counted(len(matched.bags_without), "file")
        lines.append(f"Without tags: {n_without}: {listed(matched.bags_without)}.")
    n_timed = sum(map(are_timed, matched.of_bags.values()))
    if tags.times is not None and not n_timed:
        lines.append(f"The columns {' and '.join(tags.times)} of {tags.path} are not used.")
    if n_timed and kind.split is None:
        lines.append(
            f"Tags of stretches: each stretch of these {n_timed:,} {kind.things} is a piece, and "
            f"the rest of each is one without tags, whose meaning {argument('untagged')} says. "
            f"Even pieces of all: {argument('split', 60)}."
        )
    elif kind.split is not None and n_timed < len(matched.of_bags):
        lines.append(
            f"Tags of whole {kind.things} are unsure in each piece of {kind.split:g} seconds, "
            f"since they do not say where: {counted(len(matched.of_bags) - n_timed, 'file')}."
        )
    return lines


@dataclass(frozen=True)
class FileBags:
    """The bag of each row of a file, the names of all of its bags, and their tags as cells."""

    of_rows: list[str]
    names: list[str]
    cells: dict[str, str | None]

    @property
    def without_rows(self) -> list[str]:
        """The bags that have no rows."""
        return [name for name in self.names if name not in {*self.of_rows}]


class TableRows:
    """The rows of finished files as the table has them: with bags, ids and tags.

    `tags` are those of bags, or of the files that are cut into bags; None if there are none.
    """

    def __init__(self, kind: MediaKind, tags: Mapping[str, TagsByStretch] | None) -> None:
        # Once: there may be thousands of columns, and of files.
        self._of_file: Roles = kind.roles
        self._tags = tags
        stretches = Stretches(kind.split, tags or {})
        self._stretches = stretches if kind.has_stretches and stretches.are_needed else None
        self.roles: Roles = replace(self._of_file, instance_id=ID, labels=tags and TAGS)
        #: The columns that say which bags there are.
        self.few: set[int] = {place for place, name in enumerate(kind.schema().names)
                    if name in (self.roles.bag, self.roles.start, self.roles.end)}  # fmt: skip
        if self._stretches is not None:
            self.roles = replace(self.roles, bag=BAG)

    @property
    def are_stretches(self) -> bool:
        """Whether bags are stretches of files."""
        return self._stretches is not None

    def bags(self, name: str, rows: pa.Table, facts: Mapping[str, Any]) -> FileBags:
        """Return the bags of a file."""
        roles = self._of_file
        of_rows = rows.column(roles.bag).to_pylist()
        names = facts["bags"]
        sets = {bag: (self._tags or {}).get(bag, {}).get(None) for bag in names}
        if self._stretches is not None:
            start, end = (rows.column(each).to_numpy() for each in (roles.start, roles.end))
            pieces = self._stretches.cut(name, facts["seconds"].get(name, max(end, default=0.0)))
            of_rows = bags_of(pieces, (start + end) / 2)
            sets = {each.bag: each.tags for each in pieces}
            # The rest of a file is a bag if there is something in it.
            names = [each for each in sets if each != name or name in of_rows or len(sets) == 1]
        cells = {bag: None if each is None else write_cell(each, DELIMITER)
                 for bag, each in sets.items()}  # fmt: skip
        return FileBags(of_rows, names, cells)

    def of_file(self, name: str, rows: pa.Table, facts: Mapping[str, Any]) -> pa.Table:
        """Return the rows of a file."""
        bags = self.bags(name, rows, facts)
        if self._stretches is not None:
            rows = rows.add_column(0, BAG, pa.array(bags.of_rows, pa.string()))
        ids = [f"{name}#{place}" for place in range(1, rows.num_rows + 1)]
        rows = rows.append_column(ID, pa.array(ids, pa.string()))
        if self._tags is not None:
            cells = pa.array([bags.cells[bag] for bag in bags.of_rows], pa.string())
            rows = rows.append_column(TAGS, cells)
        return rows


def _write(
    kind: MediaKind,
    folder: PathLike,
    output: Path,
    parts: Mapping[str, Path],
    matched: MatchedTags | None,
    tags: Tags | None,
    failed: Mapping[str, str],
    others: Sequence[str],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Write the rows of all parts as one table; return what is in it, and notes about files."""
    facts_of = {name: _read_facts(part) for name, part in parts.items()}
    notes = {name: " ".join(each["notes"]) for name, each in facts_of.items() if each["notes"]}
    media = [bag for each in facts_of.values() for bag in each["bags"]]
    n_rows = sum(each["n_rows"] for each in facts_of.values())
    if not n_rows:
        shutil.rmtree(_parts_of(output), ignore_errors=True)
        raise DataError(
            f"Nothing was found in any of {len(parts):,} {kind.things}: no table is written."
            if parts
            else f"None of {len(failed):,} {kind.things} could be read; the first: "
            f"{next(iter(failed.values()))}"
        )
    if tags is not None and matched is None:
        matched = matched_tags(list(dict.fromkeys(media)), tags, kind.things, others)
    of_files = TableRows(kind, None if matched is None else matched.of_bags)
    seconds = {bag: each for own in facts_of.values() for bag, each in own["seconds"].items()}
    if kind.split is not None and matched is not None:
        for bag, own in seconds.items():
            if n_late := n_after(matched.of_bags.get(bag, {}), own):
                late = f"The tags of {counted(n_late, 'stretch', 'stretches')} begin after its end."
                notes[bag] = f"{notes[bag]} {late}" if bag in notes else late
    n_bags, without, tagged = 0, [], []
    for name, part in parts.items():
        found = of_files.bags(name, _read_rows(part, of_files.few), facts_of[name])
        n_bags += len(found.names)
        without += found.without_rows
        tagged += [bag for bag in found.without_rows
                   if found.cells.get(bag) not in (None, NO_LABEL, ANY_LABEL)]  # fmt: skip
    matched = matched or MatchedTags({}, [], [], [])
    result: dict[str, Any] = {
        "without_instances": sorted(without),
        "tagged_without_instances": sorted(tagged),
        "failed": dict(sorted(failed.items())),
        "files_without_tags": matched.bags_without,
        "tags_without_file": matched.tags_without,
    }
    stored = {name: value for name, value in vars(of_files.roles).items()
              if value not in (None, ())}  # fmt: skip
    if tags is not None and tags.roles.untagged is not None:
        stored["untagged"] = tags.roles.untagged
    facts = Facts(
        kind.name, kind.things, __version__, str(folder), parsed_json(json.dumps(stored)),
        dict(kind.settings()) | ({} if kind.split is None else {"split": kind.split}),
        seconds=seconds, style=tags.style if tags is not None else {}, **result,
    )  # fmt: skip
    metadata = facts.metadata()
    tables = (of_files.of_file(name, _read_rows(part), facts_of[name])
              for name, part in parts.items())  # fmt: skip
    write_tables(
        output, (each.replace_schema_metadata(metadata) for each in tables if each.num_rows), "zstd"
    )
    more = {
        "bags": n_bags, "instances": n_rows, "tagged_other_files": matched.other_files,
        "are_stretches": of_files.are_stretches,
    }  # fmt: skip
    return result | more, notes


def summary(result: Extracted, things: str) -> list[str]:
    """Return sentences on what was extracted, and what was not."""
    thing = things.removesuffix("s")
    n_read = result.files - len(result.failed)
    bags = counted(n_read, thing, things)
    if result.are_stretches:
        thing, things = "piece", "pieces"
    if result.bags != n_read:
        bags = f"{counted(result.bags, thing, things)} in {counted(n_read, 'file')}"
    lines = [f"{counted(result.instances, words().instance)} of {bags}."]
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
            f"Without {words().instances}: "
            f"{counted(len(result.without_instances), thing, things)}, such as "
            f"{listed(result.without_instances[:3])}{of_tagged}."
        )
    if result.tagged_other_files:
        n_tagged = counted(len(result.tagged_other_files), "tagged file is", "tagged files are")
        lines.append(
            f"{n_tagged} in a format that is not read: {listed(result.tagged_other_files)}. "
            "Convert them, and extract again."
        )
    if result.other_files:
        counts = listed(f"{n} {suffix}" for suffix, n in result.other_files.items())
        lines.append(f"Files that were passed over: {counts}.")
    return lines
