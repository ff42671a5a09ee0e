"""Roles of columns and settings of fits are declared once, as annotated fields of a dataclass.

Options of commands and docstrings are made from these declarations.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from textwrap import fill, indent
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Documented = TypeVar("Documented", bound=Callable[..., Any])


Kind = Literal["column", "columns", "text", "words", "file", "flag", "number", "choice"]
#: Types of values as docstrings have them, where annotations do not say it well.
TYPES = {"columns": "str or list of str, optional", "words": "str or list of str, optional"}


@dataclass(frozen=True)
class Declared:
    """The help on a role or a setting; it names others in backticks.

    `type` is how docstrings write it where the annotation does not say it well. ``--help`` shows
    some options, and ``--help-all`` shows all.
    """

    help: str
    kind: Kind = "column"
    type: str = ""
    is_shown: bool = False


def declarations(declaring: type) -> dict[str, Any]:
    """Return what is declared of the fields of a dataclass, by their names."""
    hints = get_type_hints(declaring, include_extras=True)
    return {each.name: hints[each.name].__metadata__[0] for each in fields(declaring)}


def type_text(hint: Any) -> str:
    """Write a type as docstrings have it.

    Examples
    --------
    >>> type_text(str | list[str] | None), type_text(Literal["mean", "drop"])
    ('str or list of str, optional', '{"mean", "drop"}')
    """
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    words = []
    for part in parts:
        if get_origin(part) is Literal:
            choices = ", ".join(f'"{each}"' for each in get_args(part))
            words.append(choices if len(get_args(part)) == 1 else f"{{{choices}}}")
        elif get_origin(part) is not None:
            words.append("list of str")
        elif part is not NoneType:
            words.append(part.__name__)
    return " or ".join(words) + ", optional" * (NoneType in parts)


def documented(*declaring: type) -> Callable[[Documented], Documented]:
    """Put what dataclasses declare into a docstring, in place of its line ``...``."""

    def complete(thing: Documented) -> Documented:
        # Python leaves out docstrings if it is asked to.
        if thing.__doc__ is not None:
            entries = "".join(entry for each in declaring for entry in entries_of(each))
            thing.__doc__ = re.sub(
                r"^( *)\.\.\.\n",
                lambda found: indent(entries, found[1]),
                thing.__doc__,
                count=1,
                flags=re.MULTILINE,
            )
        return thing

    return complete


def entries_of(declaring: type) -> Iterator[str]:
    """Yield the entries of a numpydoc section on the fields of a dataclass."""
    hints, declared = get_type_hints(declaring), declarations(declaring)
    for each in fields(declaring):
        said = declared[each.name]
        kind = said.type or TYPES.get(said.kind) or type_text(hints[each.name])
        if each.default not in (None, ()):
            default = f'"{each.default}"' if isinstance(each.default, str) else each.default
            kind = f"{kind}, default={default}"
        yield f"{each.name} : {kind}\n{indent(fill(said.help, 92), '    ')}\n"
