"""Docstrings of the reference as the site shows them."""

import ast
import inspect
import re
from typing import Any

import griffe

# What Sphinx would link: the name alone is enough.
ROLE = re.compile(r":(?:attr|class|func|meth|mod|ref|term):`~?\.?([^`<]+?)(?: <[^`]+>)?`")


class CompletedDocstrings(griffe.Extension):
    """Complete docstrings, and show one signature for each function.

    `unbag._declared.documented` completes docstrings that have ``...`` in place of entries, when
    the package is imported: from what is declared of roles and settings.
    """

    def on_module(self, *, mod: griffe.Module, **_: Any) -> None:
        """Know the names that a package loads when they are first used, unless stubs have them."""
        lazy = mod.members.get("_LAZY")
        if lazy is not None and mod.path != "unbag":
            for name, home in ast.literal_eval(str(lazy.value)).items():
                mod.set_member(name, griffe.Alias(name, f"{mod.path}.{home}.{name}", parent=mod))

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Complete the docstring of a class or function."""
        if isinstance(obj, griffe.Function):
            obj.overloads = None
        if obj.docstring is None:
            return
        if "\n...\n" in f"{obj.docstring.value}\n":
            obj.docstring.value = inspect.getdoc(griffe.dynamic_import(obj.path)) or ""
        obj.docstring.value = ROLE.sub(r"`\1`", obj.docstring.value)
