"""Files of other tools, damaged: what is read is sound, and all else refused by the file's name."""

import copy
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from foreign_files import samples
from fuzz.damage import damaged, hostile_text
from fuzz.reading import check_refusal, check_sound
from unbag import tables
from unbag.tables import DataError

#: What stands in JSON where it should not.
STRANGE = (
    None,
    "",
    0,
    -1,
    1e308,
    float("inf"),
    True,
    "nan",
    [],
    {},
    [None],
    [[]],
    {"a": 1},
    [1, 2],
)


def paths_in(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the places of everything in a JSON document."""
    found = [path] if path else []
    if isinstance(document, (dict, list)):
        entries = document.items() if isinstance(document, dict) else enumerate(document)
        for key, value in entries:
            found += paths_in(value, (*path, key))
    return found


def strange_document(rng: np.random.Generator, document: Any) -> Any:
    """Remove something from a JSON document, or put something else in its place."""
    document = copy.deepcopy(document)
    places = paths_in(document)
    *path, last = places[rng.integers(len(places))]
    holder = document
    for key in path:
        holder = holder[key]
    if rng.random() < 0.3:
        del holder[last]
    else:
        text = hostile_text(rng) if rng.random() < 0.2 else None
        holder[last] = STRANGE[rng.integers(len(STRANGE))] if text is None else text
    return document


def spoil(rng: np.random.Generator, path: Path) -> None:
    """Damage a file, or one of a folder."""
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    file = files[rng.integers(len(files))]
    if file.suffix == ".json" and rng.random() < 0.8:
        document = strange_document(rng, json.loads(file.read_text()))
        file.write_text(json.dumps(document, ensure_ascii=False), "utf-8", "surrogatepass")
    else:
        file.write_bytes(damaged(rng, file.read_bytes()))


def check(rng: np.random.Generator, folder: Path) -> Counter[str]:
    """Read and convert a damaged file, with or without tags that may be damaged, too."""
    found = samples(folder)
    names = list(found)
    name = names[rng.integers(len(names))]
    tags = found["birdnet-detections"] if name == "birdnet-embeddings" else None
    spoil(rng, tags if tags is not None and rng.random() < 0.5 else found[name])
    for other in set(found.values()) - {found[name], tags}:
        shutil.rmtree(other) if other.is_dir() else other.unlink()
    target = folder / ("out.csv", "out.parquet")[rng.integers(2)]
    try:
        tables.convert_from(found[name], name, target, tags=tags)
    except DataError as error:
        check_refusal(error, folder)
        assert not target.exists(), "something was written"
        return Counter(["refused"])
    try:
        check_sound(tables.read_from(found[name], name, tags=tags, need_labels=False))
    except DataError as error:
        check_refusal(error, folder)
        return Counter(["converted"])
    return Counter(["read"])
