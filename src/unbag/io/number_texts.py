"""Columns of text whose cells are numbers to people, and so may have been meant as features."""

import re
from collections.abc import Mapping, Sequence

from unbag._files import PathLike
from unbag._messages import listed
from unbag._warnings import warn_caller

from .roles import Roles


def warn_of_numbers_in_text(
    path: PathLike, texts: Mapping[str, Sequence[str | None]], roles: Roles, marks: str = ".,"
) -> None:
    """Say which columns of text hold numbers, unless somebody has named the features.

    Parameters
    ----------
    path : path
        The table, for messages.
    texts : mapping from str to sequence of str or None
        By column, some of its cells.
    roles : Roles
        As far as they were given.
    marks : str
        What may stand before decimals; whole numbers alone are ids more often than not.
    """
    if roles.features is not None:
        return
    found = [name for name, cells in texts.items() if are_decimals(cells, marks)]
    if found:
        example = next(text for text in texts[found[0]] if text and text.strip())
        warn_caller(
            f"{path}: {listed(found)} {'holds' if len(found) == 1 else 'hold'} numbers as text, "
            f"such as {example!r}, and text is no feature: write numbers, in a CSV file with "
            "decimal points or between semicolons; or carry the column to hear no more of this."
        )


def are_decimals(texts: Sequence[str | None], marks: str = ".,") -> bool:
    """Return whether the filled cells of a column are numbers, most of them with decimals.

    Examples
    --------
    >>> are_decimals(["1,5", "-0,25", "2", None])
    True
    >>> are_decimals(["1,5", "wren"]), are_decimals(["7", "8"])
    (False, False)
    """
    filled = [text.strip() for text in texts if text is not None and text.strip()]
    with_decimals = re.compile(rf"[+-]?\d*[{marks}]\d+(?:[eE][+-]?\d+)?")
    found = [with_decimals.fullmatch(text) is not None for text in filled]
    whole = [re.fullmatch(r"[+-]?\d+", text) is not None for text in filled]
    return 2 * sum(found) > len(filled) == sum(found) + sum(whole)
