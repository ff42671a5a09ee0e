"""Names, values and arguments, as messages show them."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches

# Longer values are cut.
LONGEST_VALUE = 60


def as_code(name: str, *value: object) -> str:
    """Write an argument as Python code does: ``name=``, and its value if there is one."""
    return f"{name}={value[0]!r}" if value else f"{name}="


#: How `argument` writes. While a command runs, that is as an option: see `unbag.cli.app`.
write_argument: Callable[..., str] = as_code


def argument(name: str, *value: object) -> str:
    """Write an argument, and its value if there is one, as the reader would pass it.

    Examples
    --------
    >>> argument("delimiter", ";"), argument("label_table")
    ("delimiter=';'", 'label_table=')
    """
    return write_argument(name, *value)


def shortened(value: object) -> str:
    """Write a value so that it fits into the one line of a message.

    Examples
    --------
    >>> shortened("wren")
    "'wren'"
    >>> len(shortened("w" * 1000))
    60
    """
    text = " ".join(repr(value).splitlines())
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 4]}...{text[-1]}"


def listed(names: Iterable[object]) -> str:
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


def suggestion(name: str, names: Iterable[str]) -> str:
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
