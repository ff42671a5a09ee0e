"""The figures of the paper, as data."""

import tomllib
from functools import cache, reduce
from importlib.resources import files

from .unit import Values


@cache
def published() -> Values:
    """Read every figure of the paper's experiments.

    Examples
    --------
    >>> published()["inductive"]["accuracy"]["hja-union"]["mlr"]["mean"]
    72.3
    """
    return tomllib.loads((files("unbag_reproduce") / "published.toml").read_text(encoding="utf-8"))


def published_figure(*path: str) -> Values:
    """Find a figure: its mean and deviation, as far as they are printed.

    Examples
    --------
    >>> published_figure("kernel", "msrcv2", "lsbcmm")
    {}
    """
    return reduce(lambda figures, key: figures.get(key, {}), path, published())
