r"""MIML ARFF files: a relational attribute holds the bag, and every label is an attribute {0, 1}.

A line of data is a bag: ``dawn,"0.5,1.0\n0.7,2.0",1,0`` has two instances of two features, and the
first of two labels. Names and values may stand in single or double quotes, with a backslash before
quotes within.
"""

import re
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from unbag._files import (
    DataError,
    PathLike,
    check,
    existing_file,
    faults_at,
    refuse,
    unreadable,
    writing,
)
from unbag._messages import listed, shortened
from unbag.bags import Bags
from unbag.labels import LabelSets
from unbag.tables.arrays import (
    bag_table,
    check_no_groups,
    checked_bags,
    dense,
    feature_names,
    instance_label_texts,
)
from unbag.tables.bag_table import BagTable, Peek
from unbag.tables.roles import USUAL, Roles
from unbag.tagging import normal_spelling

NUMERIC = {"numeric", "real", "integer"}
BINARY = ("{0,1}", "{1,0}")
INSTANCE_LABEL = USUAL["instance_labels"]
STATES = {"1": 1, "0": 0, "?": -1}
ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
IN_QUOTES = re.compile(r"""[ \t]*('[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")""", re.DOTALL)
NEEDS_NO_QUOTES = re.compile(r"[^\s,{}'\"%\\?][^\s,{}'\"%\\]*")


class Header(NamedTuple):
    """The names and types that the header of an ARFF file declares, in order."""

    outer: list[tuple[str, str]]
    at_bag: int
    inner: list[tuple[str, str]]
    n_lines: int


def read_arff(path: PathLike) -> BagTable:
    """Read bags from a MIML ARFF file; its classes are in the order of the file.

    One relational attribute holds the instances, with numeric attributes as features. The attribute
    before it names the bag; bags are counted if there is none. Labels are the attributes {0, 1}
    after it, or those that an XML file of the same name lists as ``<label name="...">``; ``?`` is
    unknown. A text attribute ``instance_label`` within the bag holds known labels of instances.
    """
    path = existing_file(path)
    lines = _lines(path)
    header = _read_header(path, lines)
    return _read_data(path, lines, header, *_columns(path, header))


def peek_arff(path: PathLike) -> Peek:
    """Find out how a MIML ARFF file would be read, from its header; its lines are only counted."""
    path = existing_file(path)
    lines = _lines(path)
    header = _read_header(path, lines)
    at_id, at_labels, known = _columns(path, header)
    outer = [name for name, _ in header.outer]
    # An attribute within the bag may have the name of one outside.
    inner = [
        f"{outer[header.at_bag]}.{name}" if name in outer else name for name, _ in header.inner
    ]
    roles = Roles(
        bag=None if at_id is None else outer[at_id],
        label_columns=[outer[place] for place in at_labels],
        features=[name for place, name in enumerate(inner) if place != known],
        instance_labels=None if known is None else inner[known],
    )
    n_bags = sum(bool(line) and line[0] != "%" for line in map(str.strip, lines[header.n_lines :]))
    columns = [name for place, name in enumerate(outer) if place != header.at_bag]
    return Peek(path, "MIML ARFF", [*columns, *inner], roles, n_bags, True)


def _lines(path):
    try:
        return path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not encoded in UTF-8: save it as UTF-8.") from error


# The header.


def _read_header(path, lines):
    outer, at_bag, inner, inside = [], None, [], False
    for number, line in enumerate(map(str.strip, lines), 1):
        where = f"{path}, line {number}"
        keyword, rest, *_ = *line.split(None, 1), "", ""
        keyword = keyword.lower()
        if keyword == "@data":
            if at_bag is None:
                raise DataError(
                    f"{path} is not a MIML file: it has no relational attribute, which holds the "
                    "instances of a bag."
                )
            return Header(outer, at_bag, inner, number)
        if keyword == "@attribute":
            name, kind = _attribute(where, rest)
            is_bag = kind.lower() == "relational"
            if is_bag:
                check(at_bag is None, f"{where}: a second relational attribute.")
                at_bag = len(outer)
            (inner if inside else outer).append((name, kind))
            inside = inside or is_bag
        elif keyword == "@end":
            inside = False
        elif keyword not in ("", "@relation") and not line.startswith("%"):
            raise DataError(
                f"{where}: {shortened(line)} is neither @relation nor @attribute nor @data. Is it "
                "an ARFF file?"
            )
    raise DataError(f"{path} has no line @data: it is not an ARFF file, or is incomplete.")


def _attribute(where, text):
    with faults_at(where):
        name, end = _token(text + " ", 0, " \t")
    kind = text[end:].strip()
    check(name and kind, f"{where}: an attribute needs a name and a type.")
    return name, kind


def _listed_labels(path):
    """Return the names that an XML file of the same name lists as labels; None without it."""
    xml = path.with_suffix(".xml")
    if not xml.is_file():
        return None
    try:
        content = xml.read_bytes()
        # Definitions can make a small file swell without end.
        check(b"<!DOCTYPE" not in content, f"{xml} defines a document type: remove that.")
        root = ElementTree.fromstring(content)
    except OSError as error:
        raise unreadable(xml, error) from error
    except ElementTree.ParseError as error:
        raise DataError(f"{xml} is not an XML file: {error}.") from error
    names = [each.get("name") for each in root.iter() if each.tag.rpartition("}")[2] == "label"]
    check(
        names and None not in names,
        f'{xml} lists no labels: write <label name="..."></label> for each.',
    )
    return names


def _columns(path, header):
    """Return positions of id and labels in a line, and of the instance label in the bag."""
    names = _listed_labels(path)
    outer = [name for name, _ in header.outer]
    if names is None:
        after = header.outer[header.at_bag + 1 :]
        names = [name for name, kind in after if re.sub(r"[\s'\"]", "", kind) in BINARY]
        refuse(
            (name for name, _ in after if name not in names),
            lambda name: (
                f"{path}: the attribute {name!r} cannot be a label, since its type is not "
                "{0,1}: remove it, or list the labels in an XML file."
            ),
        )
    refuse(
        (name for name in names if name not in outer),
        lambda name: f"{path} has no attribute for the label {name!r} of the XML file.",
    )
    check(names, f"{path} has no labels: attributes of type {{0,1}} after the bag.")
    ids = [place for place, name in enumerate(outer[: header.at_bag]) if name not in names]
    check(
        len(ids) < 2,
        f"{path}: one attribute names the bag, not {listed(outer[place] for place in ids)}.",
    )
    texts = {name: kind for name, kind in header.inner if kind.lower() not in NUMERIC}
    refuse(
        (name for name in texts if name != INSTANCE_LABEL),
        lambda name: f"{path}: the feature {name!r} is {texts[name]}; it must be numeric.",
    )
    check(
        len(header.inner) > len(texts),
        f"{path}: the bag has no numeric attributes, so there are no features.",
    )
    known = [place for place, (name, _) in enumerate(header.inner) if name in texts]
    labels = [place for place, name in enumerate(outer) if name in names]
    return next(iter(ids), None), labels, next(iter(known), None)


# The data.


def _read_data(path, lines, header, at_id, at_labels, known):
    features = [name for place, (name, _) in enumerate(header.inner) if place != known]
    classes = [normal_spelling(header.outer[place][0]) for place in at_labels]
    line_of, arrays, states, instance_labels = {}, [], [], []
    for number, line in enumerate(map(str.strip, lines[header.n_lines :]), header.n_lines + 1):
        if not line or line.startswith("%"):
            continue
        where = f"{path}, line {number}"
        check(line[0] != "{", f"{where}: sparse data are not supported: write all values.")
        with faults_at(where):
            cells = split_line(line)
        check(
            len(cells) == len(header.outer),
            f"{where} has {len(cells)} values for {len(header.outer)} attributes.",
        )
        bag = cells[at_id] if at_id is not None else len(line_of)
        earlier = line_of.setdefault(bag, number)
        check(earlier == number, f"{where}: bag {shortened(bag)} is in line {earlier} already.")
        rows = [row for row in cells[header.at_bag].split("\n") if row.strip()]
        if known is not None:
            rows = _without_labels(where, rows, known, instance_labels)
        arrays.append(_numbers(where, rows, features))
        found = [cells[place] for place in at_labels]
        refuse(
            (pair for pair in zip(classes, found, strict=True) if pair[1] not in STATES),
            lambda pair, where=where: (
                f"{where}: the label {pair[0]!r} is {shortened(pair[1])}, but should be 0, 1 or ?."
            ),
        )
        states.append([STATES[state] for state in found])
    check(arrays, f"{path} has no data: a line for each bag after @data.")
    with faults_at(path):
        bags = Bags.from_list(arrays, ids=list(line_of))
        given = None if known is None else np.array(instance_labels, dtype=object)
        bags = Bags(bags.X, bags.offsets, bags.ids, given, features)
        labels = LabelSets(np.array(states), classes)
        return bag_table(path, checked_bags(path, bags, labels), labels)


def _numbers(where, rows, features):
    values = np.empty((len(rows), len(features)))
    for instance, row in enumerate(rows):
        texts, place = row.split(","), f"{where}, instance {instance + 1}"
        check(
            len(texts) == len(features),
            f"{place} has {len(texts)} values for {len(features)} numeric attributes.",
        )
        with faults_at(place):
            values[instance] = texts
    return values


def _without_labels(where, rows, known, instance_labels):
    """Take the labels of the instances out of their rows, and append them to a list."""
    with faults_at(where):
        instances = [split_line(row) for row in rows]
    for cells in instances:
        check(len(cells) > known, f"{where}: an instance has no {INSTANCE_LABEL}.")
        label = normal_spelling(cells.pop(known))
        instance_labels.append(None if label in ("", "?") else label)
    return [",".join(cells) for cells in instances]


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
            raise ValueError(f"text follows a closing quote: {shortened(text[after - 1 :])}.")
        return _unescaped(found[1][1:-1]), stop
    if rest.startswith(("'", '"')):
        raise ValueError(f"a quote is opened but never closed: {shortened(text[start:].lstrip())}.")
    return _unescaped(rest), stop


def _unescaped(text):
    return re.sub(r"\\(.)", lambda match: ESCAPED.get(match[1], match[1]), text, flags=re.DOTALL)


# Writing.


def write_arff(path: PathLike, bags: Bags, labels: LabelSets) -> None:
    """Write bags as a MIML ARFF file; the inverse of `read_arff`."""
    check_no_groups(path, labels, ".arff")
    names = feature_names(bags)
    known = instance_label_texts(bags, labels)
    check(
        known is None or INSTANCE_LABEL not in names,
        f"The feature {INSTANCE_LABEL!r} has the name of the labels: rename it.",
    )
    ids = [str(name) for name in bags.ids]
    check(
        len(set(ids)) == len(ids),
        f"{path}: two bags have the same name: give them different ids.",
    )
    mark_of = {state: mark for mark, state in STATES.items()}
    with writing(path) as file:
        header = ["@relation bags", "",
                  f"@attribute bagid {{{','.join(map(_quoted, ids))}}}",
                  "@attribute bag relational"]  # fmt: skip
        header += [f"  @attribute {_quoted(name)} numeric" for name in names]
        header += [f"  @attribute {INSTANCE_LABEL} string"] * (known is not None)
        header += ["@end bag"]
        header += [f"@attribute {_quoted(str(name))} {{0,1}}" for name in labels.classes]
        file.write("\n".join([*header, "", "@data", ""]).encode())
        for bag, X in enumerate(bags):
            rows = [",".join(map(repr, row)) for row in dense(X).astype(np.float64).tolist()]
            if known is not None:
                own = known[bags.offsets[bag] : bags.offsets[bag + 1]]
                own = ["?" if label is None else _quoted(label) for label in own]
                rows = [f"{row},{label}" for row, label in zip(rows, own, strict=True)]
            states = [mark_of[state] for state in labels.indicator[bag].tolist()]
            inner = _backslashed("\n".join(rows))
            file.write(f'{_quoted(ids[bag])},"{inner}",{",".join(states)}\n'.encode())


def _quoted(text):
    return text if NEEDS_NO_QUOTES.fullmatch(text) else f"'{_backslashed(text)}'"


def _backslashed(text):
    text = re.sub(r"([\\'\"%])", r"\\\1", text)
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
