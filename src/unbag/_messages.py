"""Names, values and arguments, as messages show them."""

import unicodedata
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches

# Longer values and names are cut, and longer messages.
LONGEST_VALUE = 60
LONGEST_MESSAGE = 2000
# Among more or longer names, no similar one is looked for: that would take minutes.
MOST_COMPARED, LONGEST_COMPARED = 2000, 100
# Spaces of other scripts, and what joins letters and emoji, are part of names that people give.
# Everything else that is not printable may move the cursor, hide text, or turn it round.
HARMLESS = {"\u200c", "\u200d"}


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


def escaped(text: str) -> str:
    r"""Write a text so that a terminal shows it and does nothing else: line ends as ``\n``.

    Examples
    --------
    >>> print(escaped("wren\n\x1b[31mowl"))
    wren\n\x1b[31mowl
    """
    if text.isprintable():
        return text
    return "".join(
        sign
        if sign.isprintable() or sign in HARMLESS or unicodedata.category(sign) == "Zs"
        else repr(sign)[1:-1]
        for sign in text
    )


def one_line(text: object, longest: int = LONGEST_MESSAGE) -> str:
    r"""Write a message in one line that does no harm to a terminal, and cut it where it is long.

    All errors about files, warnings and lines of the program go through here. What is cut out is in
    the middle: a message begins with the file, and ends with what to do.

    Examples
    --------
    >>> print(one_line("a\nb \x1b[31m"))
    a b \x1b[31m
    >>> len(one_line("w" * 10**6))
    2000
    """
    # What will be cut is not looked at.
    text = cut(str(text), 2 * longest)
    return cut(escaped(" ".join(text.splitlines())), longest)


def cut(text: str, longest: int) -> str:
    """Cut a text to a length by leaving out some of its middle; a third stays at the end."""
    if len(text) <= longest:
        return text
    gap, n_last = " ... ", longest // 3
    return f"{text[: longest - n_last - len(gap)]}{gap}{text[len(text) - n_last :]}"


def shortened(value: object) -> str:
    """Write a value so that it fits into the one line of a message.

    Examples
    --------
    >>> shortened("wren")
    "'wren'"
    >>> len(shortened("w" * 1000))
    60
    """
    text = escaped(" ".join(repr(value).splitlines()))
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
    names = list(names)
    shown = [cut(escaped(cut(str(name), 2 * LONGEST_VALUE)), LONGEST_VALUE) for name in names[:12]]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(shown) + more


def counted(number: int, one: str, several: str | None = None) -> str:
    """Write a number of things, with the word for one of them or for several.

    Parameters
    ----------
    number : int
    one : str
    several : str, optional
        By default `one` with an s.

    Examples
    --------
    >>> counted(1, "gap"), counted(2000, "gap"), counted(2, "row is", "rows are")
    ('1 gap', '2,000 gaps', '2 rows are')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def suggestion(name: str, names: Collection[str]) -> str:
    """Propose the name that was probably meant, as a sentence to append; empty if none is near.

    Examples
    --------
    >>> suggestion("labels", ["Label", "word"])
    " Did you mean 'Label'?"
    >>> suggestion("labels", ["word"])
    ''
    """
    wanted = str(name).lower()
    by_lower = {str(each).lower(): each for each in names}
    near = [wanted] if wanted in by_lower else []
    if not near and len(wanted) <= LONGEST_COMPARED and len(by_lower) <= MOST_COMPARED:
        short = [each for each in by_lower if len(each) <= LONGEST_COMPARED]
        near = get_close_matches(wanted, short, n=1)
    return f" Did you mean {shortened(by_lower[near[0]])}?" if near else ""
