"""Public names, and the parameters of everything that can be called."""

import inspect
from importlib import import_module

import unbag
from recording import recording

MODULES = ("unbag", "unbag.datasets", "unbag.estimators", "unbag.io", "unbag.labels", "unbag.union")


def signatures(module_name):
    """Return the parameters of a module's public functions and classes."""
    module = import_module(module_name)
    names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    found = {}
    for name in sorted(names):
        value = getattr(module, name)
        if inspect.ismodule(value) or not callable(value):
            found[name] = type(value).__name__
        elif getattr(value, "__module__", "").startswith(unbag.__name__):
            found[name] = described(value)
    return found


def described(value):
    """Return the parameters of a function, or of a class and its public methods."""
    if not inspect.isclass(value):
        return parameter_list(value)
    methods = inspect.getmembers(value, inspect.isroutine)
    own = {
        name: parameter_list(method)
        for name, method in methods
        if not name.startswith("_") and is_ours(method)
    }
    return {"()": parameter_list(value), **own}


def is_ours(method):
    """Tell whether a method is unbag's own."""
    return (getattr(method, "__module__", None) or "").startswith(unbag.__name__)


def parameter_list(function):
    """Return names and defaults of parameters, without types and addresses in memory."""
    try:
        known = inspect.signature(function).parameters.values()
    except ValueError:
        return "unknown"
    shown = []
    for parameter in known:
        text = str(parameter.replace(annotation=parameter.empty))
        shown.append(text.split(" at 0x")[0])
    return ", ".join(shown)


for module_name in MODULES:
    recording(f"interface/{module_name}", module_name)(signatures)
