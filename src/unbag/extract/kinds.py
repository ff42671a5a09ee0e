"""What a kind of media has to say, so that folders of it become tables of instances.

`extraction.extract` does the rest: it walks over files, matches tags, works in parallel, goes on
where it was stopped, and writes the table. To add a kind, derive from `Kind`, and call `extract`
with it in a function of `unbag.extract` and a command of ``unbag extract``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from unbag.io.roles import Roles

#: Called with the share of a file that is done, from 0 to 1.
Report = Callable[[float], object]


def unreported(share: float) -> None:
    """Tell nobody how much of a file is done."""


@dataclass(frozen=True)
class Instances:
    """What was found in one file.

    Attributes
    ----------
    rows : pyarrow.Table
        One row per instance, of the schema of its kind.
    without_instances : list of str
        Bags of the file in which nothing was found.
    notes : list of str
        What people should know of this file, in a line each, without its name.
    seconds : dict of str to float
        How long its bags are, where they are recordings.
    """

    rows: pa.Table
    without_instances: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


class Kind(ABC):
    """How instances of one kind of media are found and described, with all settings.

    It is sent to other processes, so that it has to be small, or to be made so by `for_file`.

    Attributes
    ----------
    name : str
        As in ``unbag extract audio``.
    things : str
        What its bags are, in messages.
    suffixes : tuple of str
        Of the files that are read, in lower case.
    one_bag_per_file : bool
        Whether the bag of every row is its file; if so, missing tags are found before the work.
    """

    name: ClassVar[str]
    things: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    one_bag_per_file: ClassVar[bool] = True

    @property
    @abstractmethod
    def roles(self) -> Roles:
        """The roles of the columns, but for tags: at least the bag, and features or embedding."""

    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """Return everything that the rows depend on, as JSON has it, but for the files."""

    @abstractmethod
    def schema(self) -> pa.Schema:
        """Return the columns of the rows, the bag's among them."""

    @abstractmethod
    def instances(self, path: Path, name: str, report: Report = unreported) -> Instances:
        """Find the instances of a file, which the table calls `name`.

        Files that take long call `report` now and then.
        What is wrong with the file is a DataError, OSError or ValueError, of one line.
        """

    def for_file(self, name: str) -> "Kind":
        """Return what is needed for one file, which is all that its process gets."""
        return self

    def check(self) -> None:  # noqa: B027, since most kinds have nothing to check
        """Raise an error for what can be known before the first file is read."""
