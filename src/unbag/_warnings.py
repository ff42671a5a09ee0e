"""Warnings that point at the line that called the package, not at a line inside it."""

import sys
import warnings

from unbag._messages import one_line

# What may lie between a person's line and the one that finds something to warn of.
PASSED_OVER = {"unbag", "sklearn", "joblib", "contextlib", "functools"}


def warn_caller(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn, and name the line that called the package, through however many pipelines."""
    message = one_line(message) if isinstance(message, str) else message
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_passed_over(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_passed_over(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0] in PASSED_OVER
