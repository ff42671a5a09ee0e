"""The one error of all readers and writers, and how places in a file are spoken of."""

from difflib import get_close_matches

# Longer values are cut in messages.
SHOWN = 60


class DataError(ValueError):
    """A file cannot be read or written; the message says where, why, and what to do."""


def shown(value):
    """Write a value so that it fits into a message.

    Examples
    --------
    >>> shown("wren")
    "'wren'"
    >>> len(shown("w" * 1000))
    60
    """
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 4]}...{text[-1]}"


def listed(names):
    """Join names for a message, and cut a long list.

    Examples
    --------
    >>> listed(["bag", "tags"])
    'bag, tags'
    >>> listed([f"x{column}" for column in range(64)])
    'x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11 and 52 more'
    """
    names = [str(name) for name in names]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(names[:12]) + more


def suggestion(name, names):
    """Propose the name that was probably meant, as a sentence to append; empty if none is near.

    Examples
    --------
    >>> suggestion("labels", ["Label", "word"])
    " Did you mean 'Label'?"
    >>> suggestion("labels", ["word"])
    ''
    """
    by_lower = {str(each).lower(): each for each in names}
    near = get_close_matches(str(name).lower(), by_lower, n=1)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def missing_column(path, name, columns, role):
    """Make the error for a column that is not there: names the ones that are, and a near one."""
    near = suggestion(name, columns)
    return DataError(f"{path} has no column {name!r} for {role}; it has {listed(columns)}.{near}")


def no_rows(path):
    """Make the error for a table of columns without rows."""
    return DataError(f"{path} has columns but no rows: add one per instance.")
