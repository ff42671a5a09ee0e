"""Look, listen, correct: a page on which people check the labels of instances.

``unbag review`` serves it. `unbag.review.session` knows the state of a review, `unbag.review.log`
keeps every answer, `unbag.review.server` is what a browser talks to. `next_questions` chooses the
instances that are worth a look, `estimate_errors` says when to stop.
"""

from importlib import import_module

# Loaded when first asked for: the server needs modules that only an extra brings.
_LAZY = {
    "AnswerLog": "log",
    "ErrorEstimate": "estimates",
    "Questions": "questions",
    "Session": "session",
    "estimate_errors": "estimates",
    "next_questions": "questions",
}

__all__ = [*_LAZY]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
