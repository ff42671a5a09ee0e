r"""MIML ARFF files: a relational attribute holds the bag, and every label is an attribute {0, 1}.

A line of data is a bag: ``dawn,"0.5,1.0\n0.7,2.0",1,0`` has two instances of two features, and the
first of two labels. Names and values may stand in single or double quotes, with a backslash before
quotes within.
"""

import re
from dataclasses import dataclass, field
from xml.etree import ElementTree

import numpy as np

from unbag._files import DataError, PathLike, existing_file, listed, shortened, unreadable, writing
from unbag.bags import Bags
from unbag.labels import LabelSets

from .arrays import bag_table, checked_bags, feature_names, instance_label_texts
from .bag_table import BagTable
from .roles import USUAL

NUMERIC = {"numeric", "real", "integer"}
INSTANCE_LABEL = USUAL["instance_labels"]
STATES = {"1": 1, "0": 0, "?": -1}
ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
IN_QUOTES = re.compile(r"""[ \t]*('[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")""", re.DOTALL)
NEEDS_NO_QUOTES = re.compile(r"[^\s,{}'\"%\\?][^\s,{}'\"%\\]*")


@dataclass
class Header:
    """What the header of an ARFF file declares, in order."""

    before: list = field(default_factory=list)
    bag: str | None = None
    features: list = field(default_factory=list)
    after: list = field(default_factory=list)
    n_lines: int = 0


def read_arff(path: PathLike, xml: PathLike | None = None) -> BagTable:
    """Read bags from a MIML ARFF file.

    Parameters
    ----------
    path : str or path
        One relational attribute holds the instances, with numeric attributes as features. The
        attribute before it names the bag; bags are counted if there is none. Labels are the
        attributes {0, 1} after it, or those that `xml` names; ``?`` is unknown. A text attribute
        ``instance_label`` within the bag holds known labels of instances.
    xml : str or path, optional
        A file that lists the labels as ``<label name="...">``; by default the file of the same
        name as `path` but for the suffix, if there is one.

    Returns
    -------
    BagTable
        Its classes are in the order of the file.
    """
    path = existing_file(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not encoded in UTF-8: save it so.") from error
    lines = text.split("\n")
    header = _read_header(path, lines)
    columns = _columns(path, header, _listed_labels(path, xml))
    return _read_data(path, lines, header, *columns)


# The header.


def _read_header(path, lines):
    header, inside = Header(), False
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        keyword, _, rest = line.partition(" ") if " " in line else line.partition("\t")
        keyword = keyword.lower()
        if keyword == "@data":
            header.n_lines = number
            break
        if keyword == "@end":
            inside = False
        elif keyword == "@attribute":
            name, kind = _attribute(path, number, rest)
            if kind.lower() == "relational":
                if header.bag is not None:
                    raise DataError(f"{path}, line {number}: a second relational attribute.")
                header.bag, inside = name, True
            elif inside:
                header.features.append((name, kind))
            else:
                (header.before if header.bag is None else header.after).append((name, kind))
        elif keyword != "@relation":
            raise DataError(
                f"{path}, line {number}: {shortened(line)} is neither @relation nor @attribute nor "
                "@data. Is it an ARFF file?"
            )
    if not header.n_lines:
        raise DataError(f"{path} has no line @data: it is no ARFF file, or a cut one.")
    if header.bag is None:
        raise DataError(
            f"{path} has no relational attribute, which holds the instances of a bag: it is no "
            "MIML file."
        )
    return header


def _attribute(path, number, rest):
    try:
        name, end = _token(rest.strip() + " ", 0, " \t")
    except ValueError as error:
        raise DataError(f"{path}, line {number}: {error}.") from error
    kind = rest.strip()[end:].strip()
    if not name or not kind:
        raise DataError(f"{path}, line {number}: an attribute needs a name and a type.")
    return name, kind


def _listed_labels(path, xml):
    """Names in the file of labels; None if there is none."""
    if xml is None:
        xml = path.with_suffix(".xml")
        if not xml.is_file():
            return None
    xml = existing_file(xml)
    try:
        content = xml.read_bytes()
        if b"<!DOCTYPE" in content:
            # Definitions can make a small file swell without end.
            raise DataError(f"{xml} defines a document type: remove that.")
        root = ElementTree.fromstring(content)
    except OSError as error:
        raise unreadable(xml, error) from error
    except ElementTree.ParseError as error:
        raise DataError(f"{xml} is no XML file: {error}.") from error
    names = [each.get("name") for each in root.iter() if each.tag.rpartition("}")[2] == "label"]
    if not names or None in names:
        raise DataError(f'{xml} lists no labels: write <label name="..."></label> for each.')
    return names


def _columns(path, header, names):
    """Positions of id, bag and labels within a line, and of the instance label within the bag."""
    outer = [name for name, _ in [*header.before, (header.bag, ""), *header.after]]
    at_bag = len(header.before)
    binary = [
        name for name, kind in header.after if re.sub(r"[\s'\"]", "", kind) in ("{0,1}", "{1,0}")
    ]
    if names is None:
        others = [name for name, _ in header.after if name not in binary]
        if others:
            raise DataError(
                f"{path}: the attribute {others[0]!r} is no label, since its type is not {{0,1}}: "
                "remove it, or list the labels in an XML file."
            )
        names = binary
    missing = [name for name in names if name not in outer]
    if missing:
        raise DataError(f"{path} has no attribute for the label {missing[0]!r} of the XML file.")
    if not names:
        raise DataError(f"{path} has no labels: attributes of type {{0,1}} after the bag.")
    id_names = [name for name, _ in header.before if name not in names]
    if len(id_names) > 1:
        raise DataError(f"{path}: one attribute names the bag, not {listed(id_names)}.")
    labels = [position for position, name in enumerate(outer) if name in names]
    known = None
    for position, (name, kind) in enumerate(header.features):
        if name == INSTANCE_LABEL and kind.lower() not in NUMERIC:
            known = position
        elif kind.lower() not in NUMERIC:
            raise DataError(f"{path}: the feature {name!r} is {kind}; it must be numeric.")
    if len(header.features) == (known is not None):
        raise DataError(f"{path}: the bag has no numeric attributes, so there are no features.")
    at_id = outer.index(id_names[0]) if id_names else None
    return at_id, at_bag, labels, [outer[position] for position in labels], known


# The data.


def _read_data(path, lines, header, at_id, at_bag, at_labels, classes, known):
    n_cells = len(header.before) + 1 + len(header.after)
    ids, arrays, states, instance_labels, line_of = [], [], [], [], {}
    for number, line in enumerate(lines[header.n_lines :], header.n_lines + 1):
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        where = f"{path}, line {number}"
        if line.startswith("{"):
            raise DataError(f"{where}: sparse data are not supported: write all values.")
        try:
            cells = split_line(line)
        except ValueError as error:
            raise DataError(f"{where}: {error}.") from error
        if len(cells) != n_cells:
            raise DataError(f"{where} has {len(cells)} values for {n_cells} attributes.")
        name = cells[at_id] if at_id is not None else len(ids)
        if line_of.setdefault(name, number) != number:
            raise DataError(f"{where}: bag {shortened(name)} is in line {line_of[name]} already.")
        ids.append(name)
        rows = [row for row in cells[at_bag].split("\n") if row.strip()]
        if known is not None:
            rows = _without_labels(where, rows, known, instance_labels)
        arrays.append(_numbers(where, rows, header, known))
        states.append([_state(where, cells[at], name) for at, name in
                       zip(at_labels, classes, strict=True)])  # fmt: skip
    if not ids:
        raise DataError(f"{path} has no data: a line for each bag after @data.")
    features = [name for place, (name, _) in enumerate(header.features) if place != known]
    try:
        bags = Bags.from_list(arrays, ids=ids)
        given = None if known is None else np.array(instance_labels, dtype=object)
        bags = Bags(bags.X, bags.offsets, bags.ids, given, features)
        labels = LabelSets(np.array(states), classes)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    return bag_table(path, checked_bags(path, bags, labels), labels)


def _state(where, value, name):
    if value not in STATES:
        raise DataError(
            f"{where}: the label {name!r} is {shortened(value)}, but should be 0, 1 or ?."
        )
    return STATES[value]


def _numbers(where, rows, header, known):
    width = len(header.features) - (known is not None)
    for instance, row in enumerate(rows, 1):
        if row.count(",") != width - 1:
            raise DataError(
                f"{where}, instance {instance} has {row.count(',') + 1} values for {width} "
                "numeric attributes."
            )
    try:
        values = np.array(",".join(rows).split(",") if rows else [], dtype=np.float64)
    except ValueError:
        names = [name for place, (name, _) in enumerate(header.features) if place != known]
        for instance, row in enumerate(rows, 1):
            for name, text in zip(names, row.split(","), strict=True):
                _check_number(f"{where}, instance {instance}, feature {name!r}", text)
        raise
    return values.reshape(len(rows), width)


def _check_number(where, text):
    try:
        float(text)
    except ValueError as error:
        raise DataError(f"{where}: {shortened(text)} is not a number.") from error


def _without_labels(where, rows, known, instance_labels):
    """Take the labels of the instances out of their rows, and append them to a list."""
    numeric = []
    for row in rows:
        try:
            cells = split_line(row)
        except ValueError as error:
            raise DataError(f"{where}: {error}.") from error
        if len(cells) <= known:
            raise DataError(f"{where}: an instance has no {INSTANCE_LABEL}.")
        label = cells.pop(known)
        instance_labels.append(None if label in ("", "?") else label)
        numeric.append(",".join(cells))
    return numeric


def split_line(line: str) -> list[str]:
    r"""Split a line at its commas, and take off quotes and backslashes.

    Examples
    --------
    >>> split_line(r"dawn,'1,2\n3,4',1")
    ['dawn', '1,2\n3,4', '1']
    """
    cells, start = [], 0
    while True:
        cell, stop = _token(line, start, ",")
        cells.append(cell)
        if stop >= len(line):
            return cells
        start = stop + 1


def _token(text, start, ends):
    """Read a value from `start` to one of the characters `ends`; return it and where it ended."""
    found = IN_QUOTES.match(text, start)
    after = found.end() if found else start
    places = [text.find(end, after) for end in ends]
    stop = min((place for place in places if place >= 0), default=len(text))
    rest = text[after:stop].strip()
    if found:
        if rest:
            raise ValueError(f"text follows a closing quote: {shortened(text[after - 1 :])}")
        return _unescaped(found[1][1:-1]), stop
    if rest.startswith(("'", '"')):
        raise ValueError(f"a quote is opened but never closed: {shortened(text[start:].lstrip())}")
    return _unescaped(rest), stop


def _unescaped(text):
    if "\\" not in text:
        return text
    return re.sub(r"\\(.)", lambda match: ESCAPED.get(match[1], match[1]), text, flags=re.DOTALL)


# Writing.


def write_arff(
    path: PathLike,
    bags: Bags,
    labels: LabelSets,
    *,
    relation: str = "bags",
    instance_labels: bool = True,
) -> None:
    """Write bags as a MIML ARFF file; the inverse of `read_arff`.

    Parameters
    ----------
    path : str or path
    bags : Bags
    labels : LabelSets
        Unknown labels become ``?``.
    relation : str, default="bags"
        Name of the data.
    instance_labels : bool, default=True
        Whether to write known labels of instances, as a text attribute within the bag. Other
        libraries may expect numbers only there.
    """
    names = feature_names(bags)
    known = instance_label_texts(bags, labels) if instance_labels else None
    if known is not None and INSTANCE_LABEL in names:
        raise DataError(f"The feature {INSTANCE_LABEL!r} has the name of the labels: rename it.")
    ids = [str(name) for name in bags.ids]
    if len(set(ids)) < len(ids):
        raise DataError(f"{path}: two bags have the same name: give them different ids.")
    values = {1: "1", 0: "0", -1: "?"}
    with writing(path) as file:
        header = [f"@relation {_quoted(relation)}", "",
                  f"@attribute bagid {{{','.join(map(_quoted, ids))}}}",
                  "@attribute bag relational"]  # fmt: skip
        header += [f"  @attribute {_quoted(name)} numeric" for name in names]
        header += [f"  @attribute {INSTANCE_LABEL} string"] * (known is not None)
        header += ["@end bag"]
        header += [f"@attribute {_quoted(str(name))} {{0,1}}" for name in labels.classes]
        file.write("\n".join([*header, "", "@data", ""]).encode())
        for bag, X in enumerate(bags):
            X = X.toarray() if hasattr(X, "toarray") else X
            rows = [",".join(map(repr, row)) for row in X.astype(np.float64).tolist()]
            if known is not None:
                own = known[bags.offsets[bag] : bags.offsets[bag + 1]]
                own = ["?" if label is None else _quoted(label) for label in own]
                rows = [f"{row},{label}" for row, label in zip(rows, own, strict=True)]
            states = [values[state] for state in labels.indicator[bag].tolist()]
            inner = _backslashed("\n".join(rows))
            file.write(f'{_quoted(ids[bag])},"{inner}",{",".join(states)}\n'.encode())


def _quoted(text):
    return text if NEEDS_NO_QUOTES.fullmatch(text) else f"'{_backslashed(text)}'"


def _backslashed(text):
    text = re.sub(r"([\\'\"%])", r"\\\1", text)
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
