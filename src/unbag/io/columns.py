"""Which types the columns of Parquet and Feather files may have, by the role that they play.

What is not allowed is refused: a struct or bytes can be written as text too, and would be read as
labels that nobody has given.
"""

from collections.abc import Callable

import pyarrow as pa
from pyarrow import types

try:
    pa.array([], pa.string_view()).cast(pa.string())
    VIEWS_OF_TEXT: tuple[pa.DataType, ...] = (pa.string_view(),)
except pa.ArrowNotImplementedError:
    # Older releases know the type, but cannot make text of it.
    VIEWS_OF_TEXT = ()

VALUES = "text, numbers, booleans, dates or times"
IN_LISTS = "in a table with list columns, "


def type_fault(kind: pa.DataType, role: str, is_wide: bool = False) -> str | None:
    """Return what the column of a role should hold, if a type is something else; otherwise None.

    Parameters
    ----------
    kind : pyarrow.DataType
    role : str
        Of `ALLOWED`.
    is_wide : bool, default=False
        Whether the table has one row per bag.

    Examples
    --------
    >>> type_fault(pa.binary(), "labels")
    'labels are text, numbers, booleans, dates or times, or lists of these.'
    """
    is_allowed, rule = (ALLOWED_IN_LISTS if is_wide else {}).get(role, ALLOWED[role])
    return None if is_allowed(kind) else rule


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is one of the list types.

    Examples
    --------
    >>> is_list(pa.list_(pa.float64())), is_list(pa.float64())
    (True, False)
    """
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type holds numbers or booleans.

    Examples
    --------
    >>> is_number(pa.int8()), is_number(pa.bool_()), is_number(pa.string())
    (True, True, False)
    """
    real = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return real or types.is_boolean(kind)


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type holds text, or categories that are text.

    Examples
    --------
    >>> is_text(pa.dictionary(pa.int8(), pa.string())), is_text(pa.binary())
    (True, False)
    """
    kind = _without_categories(kind)
    return types.is_string(kind) or types.is_large_string(kind) or kind in VIEWS_OF_TEXT


def is_value(kind: pa.DataType) -> bool:
    """Return whether a type holds one value that has an exact text, or nothing at all.

    Examples
    --------
    >>> is_value(pa.timestamp("ns")), is_value(pa.binary()), is_value(pa.list_(pa.string()))
    (True, False, False)
    """
    kind = _without_categories(kind)
    is_time = types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind)
    return is_text(kind) or is_number(kind) or is_time or types.is_null(kind)


def is_list_of_numbers(kind: pa.DataType) -> bool:
    """Return whether a type holds lists of numbers.

    Examples
    --------
    >>> is_list_of_numbers(pa.list_(pa.int8())), is_list_of_numbers(pa.list_(pa.string()))
    (True, False)
    """
    return _is_list_of(is_number)(kind)


def is_list_of_vectors(kind: pa.DataType) -> bool:
    """Return whether a type holds lists of lists of numbers.

    Examples
    --------
    >>> is_list_of_vectors(pa.list_(pa.list_(pa.float32(), 3)))
    True
    """
    return _is_list_of(is_list_of_numbers)(kind)


def _is_vector(kind):
    return is_list_of_numbers(kind) or is_text(kind)


def _without_categories(kind):
    return kind.value_type if types.is_dictionary(kind) else kind


def _is_list_of(is_allowed: Callable[[pa.DataType], bool]) -> Callable[[pa.DataType], bool]:
    return lambda kind: is_list(kind) and is_allowed(kind.value_type)


def _is_one_or_list_of(is_allowed: Callable[[pa.DataType], bool]) -> Callable[[pa.DataType], bool]:
    return lambda kind: is_allowed(kind) or _is_list_of(is_allowed)(kind)


def _is_number_or_text(kind):
    return is_number(kind) or is_text(kind) or types.is_null(kind)


def _is_text_or_null(kind):
    return is_text(kind) or types.is_null(kind)


Rule = tuple[Callable[[pa.DataType], bool], str]
LABELS = (_is_one_or_list_of(is_value), f"labels are {VALUES}, or lists of these.")

#: What a column may hold, and how to say it, by role.
ALLOWED: dict[str, Rule] = {
    "bag": (is_value, f"bag is one value: {VALUES}."),
    "labels": LABELS,
    "unknown": LABELS,
    "label_columns": (is_value, "the column of a label holds 1, 0 and -1."),
    "embedding": (_is_vector, "a vector is a list of numbers, or text of numbers."),
    "features": (is_number, "a feature is a number."),
    "instance_labels": (is_value, f"instance_labels is one value: {VALUES}."),
    "instance_id": (is_value, f"instance_id is one value: {VALUES}."),
    "media": (_is_text_or_null, "the name of a picture or recording is text."),
    "start": (_is_number_or_text, "where an instance begins is a number."),
    "end": (_is_number_or_text, "where an instance ends is a number."),
    "band": (_is_number_or_text, "a frequency is a number."),
    # Columns of a second table of labels, and of corrections.
    "label": (is_value, f"a label is one value: {VALUES}."),
    "state": (is_value, "a state is present, unknown or absent."),
    "known_label": (is_value, f"a known label is one value: {VALUES}."),
}
#: The same in a table of one row per bag, where it differs.
ALLOWED_IN_LISTS: dict[str, Rule] = {
    "embedding": (is_list_of_vectors, f"{IN_LISTS}vectors are a list of lists of numbers."),
    "features": (
        is_list_of_numbers,
        f"{IN_LISTS}a feature is a list of numbers. If rows are instances, carry the list columns.",
    ),
    "instance_labels": (
        _is_list_of(is_value),
        f"{IN_LISTS}labels of instances are a list of {VALUES}.",
    ),
    "known_label": (_is_list_of(is_value), f"{IN_LISTS}known labels are a list of {VALUES}."),
} | {
    role: (_is_one_or_list_of(ALLOWED[role][0]), f"{ALLOWED[role][1][:-1]}, or a list of such.")
    for role in ("media", "start", "end", "band")
}
