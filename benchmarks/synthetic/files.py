"""Tables next to synthetic media: their tags, and the truth about them."""

import csv
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path


def write_tags(folder: Path, files: Sequence[str], tags: Sequence[Collection[str]]) -> None:
    """Write ``tags.csv``, with columns ``file`` and ``tags``."""
    cells = ["|".join(sorted(each)) or "(none)" for each in tags]
    write_rows(folder / "tags.csv", [("file", "tags"), *zip(files, cells, strict=True)])


def write_rows(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write rows as a CSV file; the first row has the names of the columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
