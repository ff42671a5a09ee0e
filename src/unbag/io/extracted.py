"""What a table of extracted instances says of itself, in the metadata of its file.

`unbag.extract` writes it: which column is what, what blanks in place of tags mean, the settings,
and the recordings or pictures that have no rows. So whoever reads the table needs no options.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from unbag._files import parsed_json
from unbag._messages import listed
from unbag._warnings import warn_caller

from .roles import MANY_COLUMNS, ONE_COLUMN, Roles

# Key of the metadata: a JSON object.
MARK = b"unbag.extracted"


@dataclass(frozen=True)
class Facts:
    """What is known of a table of extracted instances.

    Attributes
    ----------
    kind : str
        ``"audio"``, for example.
    things : str
        What its bags are, such as ``"recordings"``.
    version : str
        Of the package that wrote it.
    folder : str
        Where the files are, as the person named it; names of files are relative to it.
    roles : dict
        As in :class:`unbag.io.Roles`.
    settings : dict
        How instances were found and described.
    without_instances : list of str
        Bags in which nothing was found.
    tagged_without_instances : list of str
        Those of them that have tags: no fit can learn from them.
    failed : dict of str to str
        Files that could not be read, and why.
    files_without_tags, tags_without_file : list of str
    seconds : dict of str to float
        How long recordings are.
    """

    kind: str
    things: str
    version: str
    folder: str
    roles: dict[str, Any]
    settings: dict[str, Any]
    without_instances: list[str] = field(default_factory=list)
    tagged_without_instances: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    files_without_tags: list[str] = field(default_factory=list)
    tags_without_file: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def metadata(self) -> dict[bytes, bytes]:
        """Return the metadata of the file; the same facts give the same bytes."""
        # In alphabetical order: finished files come in any.
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        return {MARK: json.dumps(content, sort_keys=True).encode()}


def extracted_facts(source: Any) -> Facts | None:
    """Return what the file of a table says, if `unbag.extract` wrote it; else None."""
    metadata: Mapping[bytes, bytes] | None = getattr(
        getattr(source, "schema", None), "metadata", None
    )
    if not metadata or MARK not in metadata:
        return None
    try:
        content = parsed_json(metadata[MARK])
        known = {each.name for each in fields(Facts)}
        # A later version may say more.
        return Facts(**{name: value for name, value in content.items() if name in known})
    except (ValueError, TypeError, AttributeError):
        # Not ours, or damaged: the table is read as any other.
        return None


def with_stored_roles(source: Any, roles: Roles) -> Roles:
    """Return roles with those that the file of a table stores, where nobody has named others.

    A column that has a role already, or is not there, has none of the stored ones.
    """
    facts = extracted_facts(source)
    if facts is None:
        return roles
    names = {each.name for each in fields(Roles)}
    try:
        stored = Roles.stored({name: facts.roles[name] for name in facts.roles if name in names})
    except (ValueError, TypeError, AttributeError) as error:
        warn_caller(f"{source.path}: the roles in its metadata are not used: {error}")
        return roles
    taken = {column for _, column in roles.columns()}
    free = set(source.columns) - taken
    kept: dict[str, Any] = {
        name: None
        for name in ONE_COLUMN
        if (column := getattr(stored, name)) is not None and column not in free
    }
    for name in MANY_COLUMNS:
        columns = getattr(stored, name)
        if columns:
            kept[name] = tuple(column for column in columns if column in free) or None
    if roles.embedding is not None:
        kept["features"] = None
    if roles.features is not None:
        kept["embedding"] = None
    kept["carry"] = kept.get("carry") or ()
    return replace(stored, **kept).overridden_by(roles)


def left_out(source: Any) -> str | None:
    """Return a sentence about bags with tags that a fit cannot learn from, if there are such."""
    facts = extracted_facts(source)
    if facts is None or not facts.tagged_without_instances:
        return None
    names = facts.tagged_without_instances
    return (
        f"Left out, since nothing was found in them: {len(names):,} {facts.things} with tags "
        f"({listed(names)})."
    )
