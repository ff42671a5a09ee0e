"""The command line: from a table on disk to annotated instances and a report."""

from .app import main

__all__ = ["main"]
