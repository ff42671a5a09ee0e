"""The command line: from a table on disk to annotated instances and a report."""

from .main import main

__all__ = ["app", "main"]


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .main import command_line

    return command_line()
