"""Facts in the metadata of a table of extracted instances.

`unbag.extract` writes them: the roles of columns, the meaning of blanks in place of tags, the
settings, and the recordings or pictures that have no rows. So its readers need no options.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from unbag._files import parsed_json, value_of_type
from unbag._messages import Words, listed, shortened, warn_caller

from .roles import MANY_COLUMNS, ONE_COLUMN, Roles

# Key of the metadata: a JSON object.
MARK = b"unbag.extracted"
#: What rows are called, by the kind of media.
INSTANCES = {"audio": "calls", "images": "regions", "signals": "windows"}


@dataclass(frozen=True)
class Facts:
    """Facts about a table of extracted instances."""

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
    #: How text is written in the table of tags: delimiter, decimal, line_end and mark.
    style: dict[str, str] = field(default_factory=dict)

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
        return value_of_type(Facts, parsed_json(metadata[MARK]))
    except (ValueError, TypeError):
        # Not ours, or damaged: the table is read as any other.
        return None


def words_of(kind: str, things: str, settings: Mapping[str, Any], bag: object = None) -> Words:
    """Return what people call the rows and the bags of an extracted table.

    Examples
    --------
    >>> words_of("audio", "recordings", {"windows": None})
    Words(instances='calls', bags='recordings')
    """
    instances = "windows" if settings.get("windows") else INSTANCES.get(kind, "rows")
    # Files that are cut into several bags have a column of that name.
    return Words(instances, "pieces" if bag == "bag" else things)


def words_for(source: Any) -> Words:
    """Return what people call the rows and the bags of any table."""
    facts = extracted_facts(source)
    if facts is None:
        return Words("rows", "bags")
    return words_of(facts.kind, facts.things, facts.settings, facts.roles.get("bag"))


def extraction_of(source: Any) -> dict[str, Any] | None:
    """Return how the instances of a table were found and described, if `unbag.extract` did it."""
    facts = extracted_facts(source)
    return None if facts is None else {"kind": facts.kind, "settings": facts.settings}


def network_of(extraction: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the facts about the network that described instances; nothing if none did."""
    settings = (extraction or {}).get("settings")
    network = settings.get("network") if isinstance(settings, dict) else None
    return network if isinstance(network, dict) else {}


def are_same_networks(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two networks give the same numbers: a name or a runtime does not matter."""
    names = {*one, *other} - {"name", "runtime"}
    return all(one.get(name) == other.get(name) for name in names)


def described_network(network: Mapping[str, Any]) -> str:
    """Describe a network in a message.

    Examples
    --------
    >>> described_network({"name": "ears.onnx", "checksum": "1f2e3d4c5b6a7988", "layer": ["y"]})
    "'ears.onnx' (checksum 1f2e3d4c5b6a, layer y)"
    >>> described_network({})
    'no network'
    """
    if not network:
        return "no network"
    facts = {key: value for key, value in network.items() if key not in ("name", "runtime")}
    facts["checksum"] = str(facts.get("checksum"))[:12]
    texts = [
        f"{key} {listed(value) if isinstance(value, list) else value}"
        for key, value in facts.items()
    ]
    return f"{shortened(network.get('name'))} ({', '.join(texts)})"


def with_stored_roles(source: Any, roles: Roles) -> Roles:
    """Return roles with those that the file of a table stores, where none are named.

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
