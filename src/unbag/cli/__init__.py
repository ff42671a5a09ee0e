"""The command line: from a table on disk to annotated instances and a report."""

from .main import app, main

__all__ = ["app", "main"]
