"""Names and values in messages, warnings that name the caller, and extras that are missing."""

import sys
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

# Longer values and names are cut, and longer messages.
LONGEST_VALUE = 60
LONGEST_MESSAGE = 2000
# Among more or longer names, no similar one is looked for: that would take minutes.
MOST_COMPARED, LONGEST_COMPARED = 2000, 100
# Spaces of other scripts, and what joins letters and emoji, are part of names that people give.
# Everything else that is not printable may move the cursor, hide text, or turn it round.
HARMLESS = {"\u200c", "\u200d"}
# Packages between the caller's line and the line that finds something to warn of.
PASSED_OVER = {"unbag", "sklearn", "scipy", "torch", "joblib", "contextlib", "functools"}


def as_code(name: str, *value: object) -> str:
    """Write an argument as Python code does: ``name=``, and its value if there is one."""
    return f"{name}={value[0]!r}" if value else f"{name}="


#: How `argument` writes. While a command runs, that is as an option: see `unbag.cli.app`.
write_argument: Callable[..., str] = as_code


def argument(name: str, *value: object) -> str:
    """Write an argument, and its value if there is one, as the reader would pass it.

    Examples
    --------
    >>> argument("label_separator", ";"), argument("label_table")
    ("label_separator=';'", 'label_table=')
    """
    return write_argument(name, *value)


class Words(NamedTuple):
    """Names of instances and bags for people, in the plural."""

    instances: str = "instances"
    bags: str = "bags"

    @property
    def instance(self) -> str:
        """The word for one instance."""
        return self.instances.removesuffix("s")

    @property
    def bag(self) -> str:
        """The word for one bag."""
        return self.bags.removesuffix("s")


#: The words that `words` returns. While a command runs, they are those of its table, such as calls
#: and recordings: see `unbag.cli.options.open_table`.
current_words: Words = Words()


def words() -> Words:
    """Return what messages call instances and bags.

    Examples
    --------
    >>> words().bags, words().instance
    ('bags', 'instance')
    """
    return current_words


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

    All errors about files, warnings and lines of the program go through here. The middle is cut
    out: a message begins with the file, and ends with what to do.

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

    Examples
    --------
    >>> counted(1, "gap"), counted(2000, "gap"), counted(2, "row is", "rows are")
    ('1 gap', '2,000 gaps', '2 rows are')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def suggestion(name: str, names: Collection[str]) -> str:
    """Propose the name that was probably meant, as a sentence to append; empty if all are far."""
    wanted = str(name).lower()
    by_lower = {str(each).lower(): each for each in names}
    near = [wanted] if wanted in by_lower else []
    if not near and len(wanted) <= LONGEST_COMPARED and len(by_lower) <= MOST_COMPARED:
        short = [each for each in by_lower if len(each) <= LONGEST_COMPARED]
        near = get_close_matches(wanted, short, n=1)
    return f" Did you mean {shortened(by_lower[near[0]])}?" if near else ""


# Warnings.


def warn_caller(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn, and name the line that called the package, through however many pipelines."""
    message = one_line(message) if isinstance(message, str) else message
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_passed_over(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_passed_over(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0] in PASSED_OVER


# Modules that only an extra of the package brings.


def installing(extra: str) -> str:
    """Say how to install an extra: from a clone, as no index has it."""
    return f'run pip install ".[{extra}]" in unbag\'s folder'


#: What to say where a module is missing: what needs it, and what brings it.
MISSING = {
    "ai_edge_litert": f"Running a TFLite network needs ai-edge-litert: {installing('embed')}",
    "distributed": f"Clusters need Dask: {installing('dask')}",
    "PIL": f"Reading pictures needs Pillow and scikit-image: {installing('images')}",
    "matplotlib": f"Drawing figures needs matplotlib: {installing('figures')}",
    "onnx": f"Exporting models needs onnx and a runtime: {installing('onnx')}",
    "onnxruntime": f"Running an ONNX network needs onnxruntime: {installing('embed')}",
    "skimage": f"Reading pictures needs Pillow and scikit-image: {installing('images')}",
    "soundfile": f"Reading recordings needs soundfile: {installing('audio')}",
    "starlette": f"The page of a review needs a server: {installing('review')}",
    "torch": f"Networks and their losses need PyTorch: {installing('torch')}",
    "uvicorn": f"The page of a review needs a server: {installing('review')}",
}


class MissingExtraError(ImportError):
    """Something needs a module that only an extra brings, and it is not installed."""


def require(module: str) -> ModuleType:
    """Import a module that not everybody has, or a part of one: see `MISSING`.

    Where it is not installed, a MissingExtraError says how to install it.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtraError(MISSING[package], name=package) from error
