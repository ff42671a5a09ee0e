"""The beginning of a file or folder, by which the tool is known that wrote it."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from pyarrow import ArrowException, parquet

from unbag._files import (
    DELIMITED,
    PARQUET,
    DataError,
    PathLike,
    check,
    existing_file,
    suffix_of,
)

# Longer first lines are those of no format that is known here.
LONGEST_HEADER = 1 << 20


class Head:
    """What can be told of a file or folder without reading all of it, except where it is JSON.

    Parameters
    ----------
    path : str or path
        It must exist.
    """

    def __init__(self, path: PathLike):
        self.path: Path = Path(path)
        self.is_folder: bool = self.path.is_dir()
        if not self.is_folder:
            existing_file(self.path)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in a folder; of a file, none."""
        if not self.is_folder:
            return frozenset()
        return frozenset(each.name for each in self.path.iterdir())

    @cached_property
    def first_line(self) -> str:
        """The first line of a text that is not blank; of anything else, nothing."""
        if self.is_folder or self.path.suffix.lower() not in DELIMITED:
            return ""
        with self.path.open("rb") as file:
            for line in file.read(LONGEST_HEADER).splitlines():
                if line.strip():
                    return line.decode("utf-8-sig", "replace").rstrip("\r")
        return ""

    @cached_property
    def columns(self) -> list[str]:
        """The names of columns that a text or a Parquet file begins with, if it does."""
        if not self.is_folder and suffix_of(self.path) in PARQUET:
            try:
                return parquet.read_schema(self.path).names
            except (OSError, ArrowException, UnicodeDecodeError):
                return []
        separator = max("\t,;", key=self.first_line.count)
        return [cell.strip().strip('"') for cell in self.first_line.split(separator)]

    @cached_property
    def document(self) -> Any:
        """What a JSON file holds; None for anything else."""
        if self.is_folder or self.path.suffix.lower() != ".json":
            return None
        try:
            return json.loads(self.path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path} is no JSON file, or a damaged one: {error}.") from error

    def first_of_folder(self) -> "Head | None":
        """Return the first text file of a folder, by name; None if there is none."""
        names = sorted(name for name in self.names if name.lower().endswith(DELIMITED))
        return Head(self.path / names[0]) if names else None

    def files(self, what: str) -> list[Path]:
        """Return the file, or the text files of a folder, by name.

        Parameters
        ----------
        what : str
            What they should be, for the error if there is none.
        """
        if not self.is_folder:
            return [self.path]
        names = sorted(name for name in self.names if name.lower().endswith(DELIMITED))
        check(names, f"{self.path} is a folder without {what}: name another.")
        return [self.path / name for name in names]
