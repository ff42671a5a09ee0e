"""The interface of a kind of media, from which folders of it become tables of instances.

`extraction.extract` does the rest: it walks over files, matches tags, works in parallel, resumes
what was stopped, and writes the table. To add a kind, derive from `MediaKind`, and pass it to
`extraction.extracted` in a function of `unbag.extract`, and in a command of ``unbag extract``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Self, get_type_hints

import pyarrow as pa

from unbag._files import PathLike, check, refuse, value_of_type
from unbag._messages import argument
from unbag.tables.roles import Roles

from .given_segments import Given
from .networks import Network

#: Called with the share of a file that is done, from 0 to 1.
OnShare = Callable[[float], object]


def ignore_share(share: float) -> None:
    """Do nothing about the share of a file that is done."""


@dataclass(frozen=True)
class FileInstances:
    """The instances of one file, its bags without any, notes about it, and seconds by bag."""

    rows: pa.Table
    without_instances: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class MediaKind(ABC):
    """Settings by which instances of one kind of media are found and described.

    For each file it is sent to another process, with no more than that file needs: see `for_file`.
    """

    name: ClassVar[str]
    #: What its files are called in messages.
    things: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    #: Whether the settings are those of a model, so that there is nothing to advise.
    follows_model: bool = field(default=False, kw_only=True)
    #: Seconds of the bags that its files are cut into, if they are; the rows do not depend on it.
    split: float | None = field(default=None, kw_only=True)
    #: Whether the role ``bag`` names a column of the files, which tags may call by another name.
    has_bag_column: ClassVar[bool] = False
    #: Whether stretches of its files may be bags: rows have a start and an end in seconds.
    has_stretches: ClassVar[bool] = False

    @property
    def inputs(self) -> Sequence[PathLike | None]:
        """The files that settings name, such as segments."""
        return ()

    @property
    def one_bag_per_file(self) -> bool:
        """Whether each file is a bag; known once the kind is `prepared`."""
        return True

    @property
    def remarks(self) -> list[str]:
        """Sentences that are said before the work; known once the kind is `prepared`."""
        return []

    def check(self) -> None:
        """Raise an error for wrong settings and missing extras, before any file is read."""
        check(
            self.split is None or (self.has_stretches and 1 <= self.split < inf),
            f"{argument('split')} is for recordings of sound, and must be 1 second or more.",
        )
        if getattr(self, "embed", None) is None:
            refuse(
                (each.name for each in fields(self)
                 if each.name.startswith("embed_") and getattr(self, each.name)),
                lambda name: f"{argument(name)} is for {argument('embed')}: pass both.",
            )  # fmt: skip

    def prepared(self, paths: Mapping[str, Path]) -> Self:
        """Return the kind with all that has to be read before its files, which have these names."""
        return self

    @classmethod
    def like(cls, settings: Mapping[str, Any], embed: PathLike | None = None) -> Self:
        """Return the kind by what its `settings` gave for a table, which may have been edited.

        Facts about a network become options of the same names after ``embed_``; its file does not.
        """
        refuse(
            (name for name in ("segments", "masks") if settings.get(name) is not None),
            lambda name: (
                f"The instances of the model were given by a file ({argument(name)}, "
                f"{settings[name]}), and not found: extract from the new {cls.things} with such a "
                "file, and use that table."
            ),
        )
        network = settings.get("network")
        of_network = network.items() if isinstance(network, dict) else ()
        # Only a person names files, and nothing else that fields hold comes from a model.
        known = {f"embed_{name}": value for name, value in of_network}
        names = {*cls().settings(), "split"} - {"network"}
        known |= {name: settings.get(name) for name in names}
        hints = get_type_hints(cls) | {"embed_layer": tuple[str, ...]}
        found: dict[str, Any] = {} if embed is None else {"embed": embed}
        for each in fields(cls):
            value = known.get(each.name)
            if isinstance(value, bool):
                check(hints[each.name] is bool, f"{each.name} of the model is {value}.")
                found[each.name] = value
            elif value is not None:
                found[each.name] = value_of_type(hints[each.name], value)
        return cls(**found)

    def for_file(self, name: str) -> Self:
        """Return the kind with what is given for one file alone."""
        given = {
            each.name: value.of_file(name)
            for each in fields(self)
            if isinstance(value := getattr(self, each.name), Given)
        }
        return replace(self, **given)

    def on_threads(self, n_threads: int) -> Self:
        """Return the kind with networks that this many threads run in each process."""
        networks = {
            each.name: value.on_threads(n_threads)
            for each in fields(self)
            if isinstance(value := getattr(self, each.name), Network)
        }
        return replace(self, **networks)

    @property
    @abstractmethod
    def roles(self) -> Roles:
        """The roles of the columns, except for tags: at least the bag, and the features."""

    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """Return everything that the rows depend on, as JSON has it, except for the files."""

    @abstractmethod
    def schema(self) -> pa.Schema:
        """Return the columns of the rows, the bag's among them."""

    @abstractmethod
    def instances(self, path: Path, name: str, on_share: OnShare = ignore_share) -> FileInstances:
        """Find the instances of a file, which the table calls `name`.

        Files that take long call `on_share` now and then. A file that cannot be used is a
        DataError, OSError or ValueError with a message of one line.
        """
