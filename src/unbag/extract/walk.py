"""The files of a folder to extract from, and their names."""

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from unbag._files import (
    DataError,
    PathLike,
    check,
    existing_file,
    unreadable,
)
from unbag._messages import listed
from unbag.tables.extracted import extracted_facts
from unbag.tables.table import open_source


@dataclass(frozen=True)
class FoundFiles:
    """Files of a folder, by their names relative to it, in alphabetical order.

    `others` have other suffixes. `faults` are folders that could not be read, and `notes` links and
    folders that were left out, each with the reason.
    """

    paths: dict[str, Path]
    others: list[str] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


def found_files(
    folder: PathLike,
    suffixes: Collection[str],
    things: str,
    output: Path,
    others_given: Collection[PathLike] = (),
) -> FoundFiles:
    """Find the files with some suffixes in a folder and those below it; or take one file.

    Hidden files and folders, the output, and other given files, such as tags, are passed over.
    Links are followed, but no folder is read twice. Names have slashes on all systems.
    """
    root = Path(folder)
    if not root.is_dir():
        path = existing_file(root)
        return FoundFiles({path.name: path})
    not_meant = {os.path.realpath(each) for each in others_given}
    real_output = os.path.realpath(output)
    paths: dict[str, Path] = {}
    others: list[str] = []
    faults: dict[str, str] = {}
    notes: dict[str, str] = {}

    def name_of(path: PathLike) -> str:
        return Path(path).relative_to(root).as_posix()

    def fail(error: OSError) -> None:
        place = Path(error.filename or root)
        if place == root:
            raise unreadable(place, error)
        faults[name_of(place)] = str(unreadable(place, error))

    # A link to a folder around the root would lead into a circle.
    seen = set(map(str, Path(os.path.realpath(root)).parents))
    # Links come last, so that a folder within the root gets its own name, not that of a link.
    waiting = [root]
    while waiting:
        for place, folders, files in os.walk(waiting.pop(0), onerror=fail):
            real_place = os.path.realpath(place)
            inside = sorted(name for name in folders if not name.startswith("."))
            folders.clear()
            if real_place in seen:
                notes[name_of(place)] = (
                    f"leads to {real_place}, which is read already, or holds this folder: left out."
                )
                continue
            seen.add(real_place)
            for name in inside:
                path = Path(place, name)
                if os.path.realpath(path) != os.path.join(real_place, name):
                    waiting.append(path)
                else:
                    folders.append(name)
            for file in files:
                path = Path(place, file)
                real = os.path.realpath(path)
                is_meant = path.suffix.lower() in suffixes
                if real == real_output and is_meant:
                    _check_replaceable(output, things)
                elif file.startswith(".") or real in {real_output, *not_meant}:
                    continue
                elif is_meant:
                    paths[name_of(path)] = path
                elif os.path.exists(path):
                    others.append(name_of(path))
                else:
                    notes[name_of(path)] = "a link that leads nowhere: left out."
    if not paths:
        ends = listed(suffix_counts(others))
        instead = f"; it has files with {ends}" if others else ""
        raise DataError(
            f"{root} holds no {things}: files are looked for whose names end in "
            f"{', '.join(suffixes)}{instead}. {' '.join([*faults.values()][:1])}".rstrip()
        )
    return FoundFiles(dict(sorted(paths.items())), sorted(others), faults, notes)


def identity(path: PathLike) -> str:
    """Return the name of a file or folder, with a digest of its content."""
    path = Path(path)
    digest = hashlib.sha256()
    for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if each.is_file():
            digest.update(os.fsencode(each.relative_to(path).as_posix()))
            with each.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"{path.name} {digest.hexdigest()[:16]}"


def suffix_counts(names: Iterable[str]) -> dict[str, int]:
    """Return how many files have each suffix, in alphabetical order.

    Examples
    --------
    >>> suffix_counts(["b.txt", "a.jpg", "c.TXT", "readme"])
    {'.jpg': 1, '.txt': 2, 'no suffix': 1}
    """
    counts = Counter(Path(name).suffix.lower() or "no suffix" for name in names)
    return dict(sorted(counts.items()))


def _check_replaceable(output: Path, things: str) -> None:
    """Raise an error if the output would replace a table that is an input."""
    try:
        with open_source(output) as source:
            is_own = extracted_facts(source) is not None
    except DataError:
        is_own = False
    check(is_own, f"{output} is one of the {things} that are read: choose another output.")
