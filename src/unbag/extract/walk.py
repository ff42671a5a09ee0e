"""Which files of a folder are extracted from, and what they are called."""

import os
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from unbag._files import DataError, PathLike, existing_file, unreadable
from unbag._messages import listed


@dataclass(frozen=True)
class Found:
    """Files of a folder, by their names relative to it, in alphabetical order.

    Attributes
    ----------
    paths : dict of str to Path
    others : dict of str to int
        How many files there are of other suffixes.
    """

    paths: dict[str, Path]
    others: dict[str, int]


#: Of the folder beside a table that holds what is finished of it.
PARTS = ".parts"


def found_files(
    folder: PathLike,
    suffixes: Collection[str],
    things: str,
    output: Path,
    others_given: Collection[PathLike] = (),
) -> Found:
    """Find the files with some suffixes in a folder and those below it; or take one file.

    Hidden files and folders are passed over, and so are the table that is written, what is finished
    of it, and other files that were given, such as tags. Names have slashes on all systems.
    """
    root = Path(folder)
    if not root.is_dir():
        path = existing_file(root)
        return Found({path.name: path}, {})
    not_meant = {output.resolve(), *(Path(each).resolve() for each in others_given)}
    paths: dict[str, Path] = {}
    others: Counter[str] = Counter()

    def fail(error: OSError) -> None:
        raise unreadable(error.filename or root, error)

    for place, folders, files in os.walk(root, onerror=fail, followlinks=False):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and not name.endswith(PARTS)
        )
        for file in files:
            path = Path(place, file)
            if file.startswith(".") or path.resolve() in not_meant:
                continue
            if path.suffix.lower() in suffixes:
                paths[path.relative_to(root).as_posix()] = path
            else:
                others[path.suffix.lower() or "no suffix"] += 1
    if not paths:
        instead = f"; it has files with {listed(sorted(others))}" if others else ""
        raise DataError(
            f"{root} holds no {things}: files are looked for whose names end in "
            f"{', '.join(suffixes)}{instead}."
        )
    return Found(dict(sorted(paths.items())), dict(sorted(others.items())))
