"""Which labels people should check first, and how many of the others are wrong.

`next_questions` chooses the instances that are worth a look, `estimate_errors` says when to stop.
"""

from importlib import import_module

# Loaded when first asked for.
_LAZY = {
    "ErrorEstimate": "estimates",
    "Questions": "questions",
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
