"""Widening a grid around the best setting, until no setting next to it is better.

A grid that was fixed beforehand may have its best setting at an end, and what lies beyond might be
better still. So each number of a setting has a *ladder*, a row of values in steps. The settings one
step up and down from the best are also tried, and if one of them is better, those next to it.
"""

from collections.abc import Callable, Mapping, Sequence

from .unit import Values

#: Entry of a setting to the values it may have, in increasing order.
Ladders = Mapping[str, Sequence[float]]

#: Of the weight of a bag's mean, which may be none, and of the width of a kernel.
CONTEXTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
WIDTHS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
#: Of a penalty. Written out, as powers of ten that are computed may differ in the last digit.
ALPHAS = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1e3, 1e4)


def neighbours(setting: Values, ladders: Ladders) -> list[Values]:
    """Return the settings that differ in one number, by one step of its ladder.

    Numbers that have no ladder stay as they are, like entries that are None.

    Examples
    --------
    >>> neighbours({"alpha": 0.1, "width": None}, {"alpha": [0.1, 1.0], "width": [1.0, 2.0]})
    [{'alpha': 1.0, 'width': None}]
    """
    found = []
    for entry, ladder in ladders.items():
        if setting.get(entry) is None:
            continue
        place = list(ladder).index(setting[entry])
        found += [
            {**setting, entry: ladder[step]}
            for step in (place - 1, place + 1)
            if 0 <= step < len(ladder)
        ]
    return found


def widened(
    settings: Sequence[Values],
    chosen: Values | None,
    ladders: Ladders,
    best: Callable[[list[Values]], Values | None],
) -> tuple[list[Values], Values | None]:
    """Return settings and those that are to be tried around the best of them; and the best of all.

    Examples
    --------
    >>> def largest(settings):
    ...     return max(settings, key=lambda setting: setting["alpha"])
    >>> wide, best = widened([{"alpha": 1}], {"alpha": 1}, {"alpha": [0, 1, 2, 3]}, largest)
    >>> [each["alpha"] for each in wide], best
    ([1, 0, 2, 3], {'alpha': 3})
    """
    wide = list(settings)
    while chosen is not None:
        new = [each for each in neighbours(chosen, ladders) if each not in wide]
        if not new:
            break
        wide += new
        chosen = best([chosen, *new])
    return wide, chosen


def at_an_end(setting: Values, ladders: Ladders) -> list[str]:
    """Return the entries of a setting that lie at an end of their ladder, except 0.

    Examples
    --------
    >>> at_an_end({"alpha": 10.0, "context": 0.0}, {"alpha": [1.0, 10.0], "context": [0.0, 1.0]})
    ['alpha']
    """
    return [
        entry
        for entry, ladder in ladders.items()
        if setting.get(entry) and setting[entry] in (ladder[0], ladder[-1])
    ]
