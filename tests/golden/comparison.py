"""How recorded leaves are compared with new ones, and which differences are intended."""

import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

INTENDED = Path(__file__).parent / "intended.toml"
MOST_CHARACTERS = 160


def differences(old: dict, new: dict, rtol: float) -> dict:
    """Compare leaves by name.

    Returns
    -------
    dict
        By name, what differs, in a few words; empty if nothing does.
    """
    found = {}
    for name in dict.fromkeys([*old, *new]):
        if name not in new:
            found[name] = f"{shortened(old[name])} -> nothing"
        elif name not in old:
            found[name] = f"nothing -> {shortened(new[name])}"
        else:
            difference = unlike(old[name], new[name], rtol)
            if difference:
                found[name] = difference
    return found


def unlike(old, new, rtol: float) -> str | None:
    """Say how two leaves differ, or return None."""
    if is_number(old) and is_number(new):
        same = close([old], [new], rtol * abs(old))
        return None if same else f"{old} -> {new}"
    if not (is_array(old) and is_array(new)):
        return None if old == new else changed_part(old, new)
    if old["array"] != new["array"]:
        return f"{old['array']} -> {new['array']}"
    if "values" in old:
        largest = np.abs(finite(old["values"])).max(initial=0.0)
        return far(old["values"], new["values"], rtol * largest)
    # Rounding errors of many entries add up as the root of their number.
    allowed = rtol * old["largest"]
    in_sums = allowed * np.sqrt(old["size"])
    if old["infinite"] != new["infinite"]:
        return f"{old['infinite']} -> {new['infinite']} entries not finite"
    return far(old["first"], new["first"], allowed) or far(old["sums"], new["sums"], in_sums)


def is_number(leaf) -> bool:
    """Tell whether a leaf is a number, and neither true nor false."""
    return isinstance(leaf, int | float) and not isinstance(leaf, bool)


def is_array(leaf) -> bool:
    """Tell whether a leaf is an array of numbers."""
    return isinstance(leaf, dict) and "array" in leaf


def finite(values) -> np.ndarray:
    """Return the finite ones of some numbers."""
    array = np.asarray(values, dtype=float)
    return array[np.isfinite(array)]


def close(old, new, allowed: float) -> bool:
    """Tell whether all numbers are as near to each other as is allowed."""
    return np.allclose(new, old, rtol=0, atol=allowed, equal_nan=True)


def far(old, new, allowed: float) -> str | None:
    """Say how far two arrays of one shape are apart, if further than is allowed."""
    if close(old, new, allowed):
        return None
    old, new = np.asarray(old, dtype=float), np.asarray(new, dtype=float)
    with np.errstate(invalid="ignore"):
        gaps = np.where(np.isclose(old, new, rtol=0, atol=0, equal_nan=True), 0.0, abs(new - old))
    place = int(np.nan_to_num(gaps, nan=np.inf).argmax())
    n_changed = int((~(gaps <= allowed)).sum())
    return (
        f"{old[place]:.12g} -> {new[place]:.12g} (entry {place}, the most of {n_changed} changed; "
        f"{allowed:.1e} is allowed)"
    )


def changed_part(old, new) -> str:
    """Show two texts or lists from shortly before the first place where they differ."""
    if isinstance(old, str) and isinstance(new, str):
        pairs = zip(old, new, strict=False)
        start = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))
        start = max(0, start - 30)
        old, new = old[start:], new[start:]
    elif isinstance(old, list) and isinstance(new, list):
        shared = [line for line in old if line in new]
        old = [line for line in old if line not in shared] or old
        new = [line for line in new if line not in shared] or new
    return f"{shortened(old)} -> {shortened(new)}"


def shortened(leaf) -> str:
    """Show a leaf in one short line."""
    text = repr(leaf)
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 4] + " ..."


def intended() -> dict:
    """Read which names may differ, and why: patterns such as ``commands/{fit,predict}/*/help``."""
    listed = tomllib.loads(INTENDED.read_text(encoding="utf-8"))
    return {each: why for pattern, why in listed.items() for each in alternatives(pattern)}


def alternatives(pattern: str) -> list[str]:
    """Write out what braces stand for, as the shell does, but none inside others.

    >>> alternatives("{fit,annotate}/*/{coef_,n_iter_}")
    ['fit/*/coef_', 'fit/*/n_iter_', 'annotate/*/coef_', 'annotate/*/n_iter_']
    """
    braces = re.search(r"{(.*?)}", pattern)
    if braces is None:
        return [pattern]
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    return [before + part + rest for part in braces[1].split(",") for rest in alternatives(after)]


def reason_for(name: str, patterns: dict) -> str | None:
    """Return why a name may differ, if it may."""
    return next((why for pattern, why in patterns.items() if fnmatchcase(name, pattern)), None)
