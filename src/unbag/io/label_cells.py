"""Labels as people write them into cells, and the second table that may hold them instead."""

from unbag.labels import Unknown

from .errors import DataError, missing_column, shown, suggestion

UNKNOWN_MARK = "?"
# What the column `state` of a table of labels may say; an empty cell means present.
STATES = {
    "": "present", "present": "present", "1": "present", "true": "present", "yes": "present",
    "unknown": "unknown", "?": "unknown", "-1": "unknown",
    "absent": "absent", "0": "absent", "false": "absent", "no": "absent",
}  # fmt: skip


def text_of(value):
    """Write a label or a bag's name as text, whatever type the file gives it.

    Examples
    --------
    >>> text_of(" wren "), text_of(3), text_of(3.0), text_of(None)
    ('wren', '3', '3', '')
    """
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def parse_cell(cell, delimiter, all_unknown=False):
    """Read the label set that a cell holds.

    Parameters
    ----------
    cell : str, number, list or None
        Delimited text, a single label, or a list of labels.
    delimiter : str
    all_unknown : bool, default=False
        Whether all labels of the cell are unknown, with or without a question mark.

    Returns
    -------
    frozenset of str and Unknown

    Examples
    --------
    >>> sorted(parse_cell("wren | thrush", "|"))
    ['thrush', 'wren']
    >>> parse_cell("?wren", "|")
    frozenset({Unknown('wren')})
    >>> parse_cell("", "|")
    frozenset()
    """
    parts = cell if isinstance(cell, list) else text_of(cell).split(delimiter)
    members = set()
    for part in map(text_of, parts):
        name = part.removeprefix(UNKNOWN_MARK).strip()
        if name:
            unknown = all_unknown or part.startswith(UNKNOWN_MARK)
            members.add(Unknown(name) if unknown else name)
        elif part:
            raise ValueError("a question mark without a label")
    both = next((name for name in members if Unknown(name) in members), None)
    if both is not None:
        raise ValueError(f"the label {both!r} both as present and as unknown")
    return frozenset(members)


def write_cell(labels, delimiter):
    """Write a label set as a cell, sorted; the inverse of `parse_cell`.

    Parameters
    ----------
    labels : collection of str and Unknown
    delimiter : str

    Examples
    --------
    >>> write_cell({"wren", "owl", Unknown("thrush")}, "|")
    'owl|?thrush|wren'
    """
    pairs = sorted(
        (str(each.label), UNKNOWN_MARK) if isinstance(each, Unknown) else (str(each), "")
        for each in labels
    )
    for name, _ in pairs:
        if delimiter in name or name.startswith(UNKNOWN_MARK) or name != name.strip() or not name:
            raise DataError(
                f"The label {name!r} cannot be written into a cell of labels separated by "
                f"{delimiter!r}: rename it, or choose another delimiter."
            )
    return delimiter.join(mark + name for name, mark in pairs)


def read_label_table(source, ids, place_of_bag):
    """Read the label set of each bag from a table with one row per label.

    Parameters
    ----------
    source : DelimitedFile or ArrowFile
        With columns ``bag`` and ``label``, and perhaps ``state``. A bag without labels has one
        row, with an empty label; bags that `ids` does not have are passed over.
    ids : list
        The bags of the instances.
    place_of_bag : callable
        Gives the file and row of a bag in the table of instances.

    Returns
    -------
    list of set
        One per bag, of str and Unknown.
    """
    for column in ("bag", "label"):
        if column not in source.columns:
            raise missing_column(source.path, column, source.columns, f"the {column}s of the bags")
    columns = [name for name in ("bag", "label", "state") if name in source.columns]
    sets = {text_of(bag): None for bag in ids}
    for first, table in source.chunks(texts=columns):
        cells = [table.column(name).to_pylist() for name in columns]
        for row, (bag, label, *state) in enumerate(zip(*cells, strict=True), first):
            bag = text_of(bag)
            if not bag:
                raise DataError(f"{source.path}, {source.place(row)} names no bag: fill it in.")
            member = _member(source, row, label, state)
            if bag not in sets:
                continue
            members = sets[bag] = sets[bag] or set()
            if member is not None:
                other = member.label if isinstance(member, Unknown) else Unknown(member)
                if other in members:
                    raise DataError(
                        f"{source.path}, {source.place(row)}: bag {bag!r} has the label "
                        f"{shown(text_of(label))} both as present and as unknown: decide for one."
                    )
                members.add(member)
    without = next((bag for bag, members in sets.items() if members is None), None)
    if without is not None:
        raise DataError(
            f"Bag {without!r} ({place_of_bag(without)}) has no row in {source.path}: add one, with "
            f"an empty label if there is none.{suggestion(without, _bags_of(source, sets))}"
        )
    return [sets[text_of(bag)] for bag in ids]


def _member(source, row, label, state):
    """Label of one row, Unknown if it is; None if it is absent or empty."""
    try:
        found = parse_cell([label], "")
    except ValueError as error:
        raise DataError(f"{source.path}, {source.place(row)}: {error}.") from error
    word = text_of(state[0]).lower() if state else ""
    if word not in STATES:
        raise DataError(
            f"{source.path}, {source.place(row)}, column 'state': {shown(state[0])} should be "
            "present, unknown or absent."
        )
    if not found or STATES[word] == "absent":
        return None
    (member,) = found
    if STATES[word] == "unknown" and not isinstance(member, Unknown):
        return Unknown(member)
    return member


def _bags_of(source, known):
    names = set()
    for _, table in source.chunks(texts=["bag"]):
        names.update(map(text_of, table.column("bag").to_pylist()))
    return sorted(names - set(known))
