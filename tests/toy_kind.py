"""The simplest kind of media: files of numbers, in which each line is an instance."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from unbag._files import DataError
from unbag.extract.kinds import FileInstances, MediaKind
from unbag.tables import Roles


@dataclass(frozen=True)
class Lines(MediaKind):
    """A line is an instance, and its number the only feature; ``bug`` in a line is ours."""

    factor: float = 1.0
    name: ClassVar[str] = "lines"
    things: ClassVar[str] = "files of lines"
    suffixes: ClassVar[tuple[str, ...]] = (".num",)

    @property
    def roles(self):
        return Roles(bag="file", media="file", features=["value"])

    def settings(self):
        return {"factor": self.factor}

    def schema(self):
        return pa.schema([("file", pa.string()), ("value", pa.float32())])

    def instances(self, path: Path, name: str, on_share=None):
        if on_share is not None:
            on_share(0.5)
        log = path.parent.parent / "log.txt"
        with log.open("a") as file:
            file.write(f"{name}\n")
        lines = path.read_text().splitlines()
        if "bug" in lines:
            raise RuntimeError("this should not happen")
        try:
            values = [self.factor * float(line) for line in lines]
        except ValueError as error:
            raise DataError(f"{path} is damaged: {error}.") from error
        rows = pa.table({"file": [name] * len(values), "value": values}, self.schema())
        return FileInstances(
            rows, [] if values else [name], ["It is long."] if len(values) > 3 else []
        )
