"""One HTML file that shows what a model makes of some bags; it opens without a network."""

from .write import render, write_report

__all__ = ["render", "write_report"]
