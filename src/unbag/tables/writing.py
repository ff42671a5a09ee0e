"""Writing bags in any format, and the rows of a table again, in their order, with more columns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike
from pyarrow import types

from unbag._files import (
    DELIMITED,
    FEATHER,
    PARQUET,
    TABLES,
    DataError,
    PathLike,
    check,
    check_format,
    check_output,
    check_same,
    refuse,
    suffix_of,
    writing,
)
from unbag._messages import argument, listed
from unbag.bags import Bags, value_array
from unbag.labels import LabelSets
from unbag.tagging import NO_LABEL, Tagging, warn_of_unused_names

from .annotated import STATUS, Status, marked_metadata
from .arrays import OWN_COLUMNS, feature_names, id_column, long_chunks
from .bag_table import BagTable, Progress
from .extracted import extracted_facts
from .formats.arff import write_arff
from .formats.arrow import (
    row_groups,
    table_writer,
    with_new_columns,
    with_shared_categories,
)
from .formats.npz import write_npz
from .roles import USUAL, Roles, check_has_columns
from .scan import counted
from .table import open_source
from .text import TextStyle, TextWriter, as_text, compressed

WRITERS: dict[str, Callable[..., None]] = {".arff": write_arff, ".npz": write_npz}
#: Suffixes of files that can be written; those of MATLAB are only read.
WRITTEN = (*TABLES, *WRITERS)
# A cell of text that is empty or a number, and no id: no zeros before, and not too many digits.
PLAIN_NUMBER = r"^(-?(0|[1-9][0-9]{0,14})([.][0-9]+([eE][+-]?[0-9]+)?)?)?$"


def convert(
    source: PathLike,
    target: PathLike,
    roles: Roles | None = None,
    *,
    progress: Progress | None = None,
) -> BagTable:
    """Write the bags of a file in another format, with nothing lost.

    Parameters
    ----------
    source : str or path
        Any file that `read` takes.
    target : str or path
        Its suffix selects the format. From table to table, all columns are kept. From a table to
        ``.arff`` or ``.npz`` go bags, labels and instance labels. From one of those, a
        long table has the usual names of columns, so that `read` needs no roles for it.
    roles : Roles, optional
        Which column of a table is what; its label separator is used in writing too.
    progress : callable, optional
        As in `read`.

    Returns
    -------
    BagTable
        What was read from `source`.

    Notes
    -----
    Names of bags become text in ARFF and in CSV. Tables forget classes that no bag has. A long
    table cannot hold an empty bag, and that is an error.
    """
    check_format(target, WRITTEN)
    second = roles and roles.label_table
    check_output(target, source, *([] if second is None else [second]))
    with open_source(source) as opened:
        check_has_columns(opened, roles)
        table = opened.read(roles, progress=progress)
    classes = () if table.labels is None else table.labels.classes.tolist()
    warn_of_unused_names(table.path, table.unused_names, classes)
    unfolds = table.is_wide and suffix_of(target) in DELIMITED
    is_renamed = any(getattr(table.roles, name) for name in ("none", "fold_case", "rename"))
    check(
        not (is_renamed and table.roles.label_columns and suffix_of(target) in TABLES),
        f"{table.path}: labels in columns of their own have the names of these columns, which a "
        f"converted table keeps: rename the columns, use {argument('rename')} when you fit, or "
        "convert to .npz.",
    )
    if table.source is None or suffix_of(target) in WRITERS or unfolds:
        write_bags(target, table.bags, table.labels, (roles and roles.label_separator) or "|")
    else:
        cells = _labels_of_bags(table) | _renamed_instance_labels(table)
        write_rows(table, target, {}, label_cells=cells)
    return table


def write_bags(
    path: PathLike, bags: Bags, labels: LabelSets | None, label_separator: str = "|"
) -> None:
    """Write bags and label sets as a file, whose suffix selects the format.

    Parameters
    ----------
    path : str or path
        ``.arff``, ``.npz``; or a long table, which cannot hold an empty bag.
    bags : Bags
    labels : LabelSets
    label_separator : str, default="|"
        What separates labels in a cell of a table.
    """
    if suffix_of(path) in WRITERS:
        WRITERS[suffix_of(path)](path, bags, labels)
        return
    check_format(path, WRITTEN)
    refuse(
        bags.ids[bags.sizes == 0],
        lambda bag: (
            f"Bag {bag} has no instances, so {path} cannot hold it: a row is an instance. Choose "
            ".arff or .npz."
        ),
    )
    chunks = long_chunks(bags, labels, label_separator, numbered=False, path=path)
    write_tables(path, (chunk for _, chunk in chunks))


def _labels_of_bags(table):
    """Make a column of labels in the order of the rows; nothing if that in the file will do.

    It will not if labels come from a second table, or if the roles say how to read its blanks: the
    new table needs no such roles.
    """
    roles, name, kind = table.roles, table.roles.labels, None
    if roles.label_table is not None:
        name = USUAL["labels"]
        check(
            name not in own_columns(table),
            f"{table.path} has a column {name!r} already, which the labels of {roles.label_table} "
            "would replace: rename it.",
        )
    elif name is None or roles.tagging == Tagging():
        return {}
    elif not is_text(table):
        kind = table.source.schema.field(name).type
    cells: Any = table.labels.to_cells(roles.label_separator)
    if kind is not None and types.is_nested(kind):
        cells = [[] if cell == NO_LABEL else cell.split(roles.label_separator) for cell in cells]
    bag_of_row = np.arange(len(table.bags))
    if not table.is_wide:
        bag_of_row = np.full(table.n_rows, -1)
        bag_of_row[table.rows] = np.repeat(np.arange(len(table.bags)), table.bags.sizes)
    return {name: pa.array(cells).take(pa.array(bag_of_row, mask=bag_of_row < 0))}


def _renamed_instance_labels(table):
    """Make the columns of labels of instances again, in all rows, where labels have new names."""
    tagging = table.roles.tagging
    if not (tagging.none or tagging.fold_case or tagging.rename):
        return {}

    def renamed(cell):
        if isinstance(cell, list):
            return [renamed(each) for each in cell]
        return tagging.name_of_instance(cell) or None

    found = {}
    for name in (table.roles.instance_labels, table.roles.known):
        if name is not None:
            cells = table.source.column(name).to_pylist()
            kind = pa.list_(pa.string()) if table.is_wide else pa.string()
            found[name] = pa.array(map(renamed, cells), kind)
    return found


def write_rows(
    table: BagTable,
    path: PathLike,
    columns: Mapping[str, ArrayLike],
    progress: Progress | None = None,
    annotated: Mapping[str, str] | None = None,
    label_cells: Mapping[str, pa.Array] | None = None,
    order: Sequence[str] | None = None,
) -> None:
    """Write all rows of a BagTable's file with more columns; see `BagTable.write`.

    What annotate writes is marked as such, where the format has room for it. `label_cells` take
    the place of a column of labels, and are in the order of the rows. `order` names the columns to
    write, if these are not all, in the order of the file. Text is written like the text that the
    table comes from, or that its tags come from.
    """
    check_format(path, TABLES)
    columns = _in_rows(table, _checked(table, columns), annotated or {})
    columns |= dict(label_cells or {})
    delimited = suffix_of(path) in DELIMITED
    check(
        not (table.is_wide and delimited),
        f"{path}: a table with list columns cannot be written as text: choose .parquet.",
    )
    style = _style(table.source) if delimited else None
    metadata = getattr(getattr(table.source, "schema", None), "metadata", None)
    metadata = marked_metadata(metadata, columns, annotated or {})
    is_kept = delimited and is_text(table)
    chunks = _with_columns(table, columns, metadata, as_numbers=not is_kept, order=order)
    if table.source is not None and not is_text(table):
        chunks = with_shared_categories(table.source, chunks)
    chunks = counted(chunks, progress, table.n_rows)
    if style is not None:
        chunks = ((first, _styled(chunk, style)) for first, chunk in chunks)
    compression = "snappy" if table.source is None else table.source.compression
    write_tables(path, (chunk for _, chunk in chunks), compression, style)


def write_beside(source: Any, path: PathLike, rows: pa.Table) -> None:
    """Write a new table; text in the style of the source, so that the same program opens both."""
    style = _style(source) if suffix_of(path) in DELIMITED else None
    write_tables(path, [rows if style is None else _styled(rows, style)], style=style)


def _style(source):
    """Return the style of the text that a table, or its tags, come from, if it is known."""
    if getattr(source, "is_text", False):
        return source.style
    facts = extracted_facts(source)
    return None if facts is None else TextStyle.of(facts.style)


def _styled(rows, style):
    """Return rows with numbers as text in a style."""
    texts = [as_text(column.cast(pa.float64()), style) if types.is_floating(column.type) else column
             for column in rows.columns]  # fmt: skip
    return pa.table(texts, rows.column_names)


def write_tables(
    path: PathLike,
    chunks: Iterable[pa.Table],
    compression: str = "snappy",
    style: TextStyle | None = None,
) -> None:
    """Write pyarrow tables of one schema as one file, whose suffix selects the format."""
    chunks = iter(chunks)
    first = next(chunks)
    schema = storable(path, first.schema)
    chunks = chain([first], chunks)
    try:
        with writing(path) as file:
            if suffix_of(path) in DELIMITED:
                with compressed(path, file) as out:
                    writer = TextWriter(path, out, schema.names, style)
                    for chunk in chunks:
                        writer.write_table(chunk.cast(schema))
                return
            with table_writer(path, file, schema, compression) as writer:
                for chunk in row_groups(chunks) if suffix_of(path) in PARQUET else chunks:
                    writer.write_table(chunk if chunk.schema == schema else chunk.cast(schema))
                    # Not held while the next row group is collected.
                    del chunk
    except pa.ArrowException as error:
        raise DataError(f"{path} cannot be written: {error}.") from error


def storable(path: PathLike, schema: pa.Schema) -> pa.Schema:
    """Return the types that a format keeps, with the same values.

    Text has no categories, and only Feather has views of text. The short decimals of a number of
    single precision give another number when they are read in double precision.
    """
    suffix = suffix_of(path)
    for index, field in enumerate(() if suffix in FEATHER else schema):
        if field.type == pa.string_view():
            schema = schema.set(index, field.with_type(pa.string()))
        elif suffix in DELIMITED and types.is_dictionary(field.type):
            schema = schema.set(index, field.with_type(field.type.value_type))
        elif suffix in DELIMITED and types.is_floating(field.type):
            schema = schema.set(index, field.with_type(pa.float64()))
    nested = [field.name for field in schema if types.is_nested(field.type)]
    check(
        not nested or suffix not in DELIMITED,
        f"{path}: lists cannot be written as text, and {listed(nested)} has them: choose .parquet.",
    )
    return schema


# New columns.


def is_text(table: BagTable) -> bool:
    """Return whether a table comes from files of delimited text."""
    return table.source is not None and table.source.is_text


def own_columns(table: BagTable) -> list[str]:
    """Return the columns that a table has before there are new ones.

    One that comes from a file without rows has those that a long table of its bags would have.
    """
    if table.source is not None:
        return list(table.source.columns)
    return [*OWN_COLUMNS, *feature_names(table.bags)]


def _checked(table, columns):
    """Make pyarrow arrays of the new columns, in the order of the bags."""
    role_of = {column: role for role, column in table.roles.columns() if role != "carry"}
    if table.source is None:
        role_of |= dict.fromkeys(own_columns(table), "a column")
    checked = {}
    for name, values in columns.items():
        check(
            name not in role_of,
            f"The new column {name!r} would overwrite the one that is {role_of.get(name)} of "
            f"{table.path}: choose another name.",
        )
        checked[name] = arrow_array(name, values, table.bags.n_instances)
    return checked


def arrow_array(name: str, values: ArrayLike, size: int) -> pa.Array:
    """Make a pyarrow array of text, numbers or booleans; None where there is no value.

    Examples
    --------
    >>> arrow_array("label", np.array(["wren", None], dtype=object), 2).to_pylist()
    ['wren', None]
    """
    given = value_array(values)
    check(
        given.shape == (size,),
        f"The new column {name!r} has shape {given.shape}, but there are {size} instances.",
    )
    cells: Any = given.tolist() if given.dtype.kind == "O" else given
    if given.dtype.kind == "O" and any(isinstance(cell, str) for cell in cells):
        cells = [cell if cell is None else str(cell) for cell in cells]
    try:
        array = pa.array(cells)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise DataError(f"The new column {name!r} cannot be written: {error}.") from error
    return array.cast(pa.string()) if types.is_null(array.type) else array


def id_array(table: BagTable) -> pa.Array:
    """Make a pyarrow array of the ids of bags, of the type that they have in the file."""
    ids = id_column(table.bags.ids)
    schema = getattr(table.source, "schema", None)
    if schema is None:
        return ids
    kind = schema.field(table.roles.bag).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    # Text cannot be cast to a time of day.
    return ids if types.is_time(kind) else ids.cast(kind)


def _with_columns(table, columns, metadata, as_numbers, order):
    """Yield the rows of the file with the new columns: the first row's position, and a table.

    Columns of text become numbers where nothing is lost by that, if they should.
    """
    if table.source is None:
        chunks = long_chunks(table.bags, table.labels, table.roles.label_separator, path=table.path)
    else:
        names, numbers = table.source.columns, set()
        if order is not None:
            names = [name for name in names if name in {*order}]
        if is_text(table) and as_numbers:
            numbers = {*table.roles.features, *_plain_numbers(table, columns)} & {*names}
        chunks = table.source.chunks([name for name in names if name not in numbers], numbers)
        chunks = ((first, chunk.select(names)) for first, chunk in chunks)
    n_rows = 0
    for first, chunk in chunks:
        new = {name: column.slice(first, chunk.num_rows) for name, column in columns.items()}
        chunk = with_new_columns(chunk, new)
        chunk = chunk if order is None else chunk.select(list(order))
        n_rows += chunk.num_rows
        yield first, chunk.replace_schema_metadata(metadata or None)
    check_same(table.path, n_rows == table.n_rows)


def _plain_numbers(table, columns):
    """Return other columns of a text that hold nothing but numbers which lose nothing as such.

    Those that have a role other than times stay text, like numbers such as 007.
    """
    kept = {name for role, name in table.roles.columns() if role not in ("carry", "start", "end")}
    found = [name for name in table.source.numbers() if name not in kept and name not in columns]
    for part in table.source.parts if found else ():
        number = PLAIN_NUMBER.replace("[.]", f"[{part.decimal}]")
        found = [
            name
            for name in found
            if pc.all(pc.match_substring_regex(part.rows.column(name), number)).as_py()
        ]
    return found


def columns_of_rows(
    table: BagTable,
    columns: Mapping[str, ArrayLike],
    annotated: Mapping[str, str],
    *,
    per_bag: bool = False,
) -> dict[str, pa.Array]:
    """Put new columns, in the order of the bags, into the order of the table's rows.

    Cells are lists where a row is a bag, unless there is a value `per_bag`; and null where a row
    was dropped, which the status among the `annotated` columns says.
    """
    if per_bag and table.is_wide:
        return {name: arrow_array(name, each, len(table.bags)) for name, each in columns.items()}
    if per_bag:
        sizes = table.bags.sizes
        columns = {name: np.repeat(np.asarray(each), sizes) for name, each in columns.items()}
    return _in_rows(table, _checked(table, columns), annotated)


def _in_rows(table, columns, annotated):
    """Put pyarrow arrays, in the order of the bags, into the order of the rows."""
    if not table.is_wide:
        # A row that was dropped has no answer, but a status.
        place = np.full(table.n_rows, -1, np.intp)
        place[table.rows] = np.arange(len(table.rows))
        places = pa.array(place, mask=place < 0)
        columns = {name: column.take(places) for name, column in columns.items()}
        if (status := annotated.get(STATUS)) in columns:
            columns[status] = columns[status].fill_null(Status.DROPPED.value)
        return columns
    offsets = pa.array(table.bags.offsets, pa.int32())
    return {name: pa.ListArray.from_arrays(offsets, column) for name, column in columns.items()}
