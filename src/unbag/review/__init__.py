"""Which labels people should check first: `next_questions`."""

from importlib import import_module

# Loaded when first asked for.
_LAZY = {"Questions": "questions", "next_questions": "questions"}

__all__ = [*_LAZY]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
