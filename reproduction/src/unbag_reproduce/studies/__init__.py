"""Every experiment, one file each: what it does, and how it shows the results."""

from importlib import import_module

from unbag_reproduce.plan import Study

#: Every experiment, and the module that has it, in the paper's order; then our own.
STUDIES = {
    "datasets": "datasets",
    "inductive": "inductive",
    "guesses": "guesses",
    "convergence": "convergence",
    "transductive": "transductive",
    "training-size": "training_size",
    "bag-level": "bag_level",
    "kernel": "kernel",
    "complexity": "complexity",
    "pruning": "pruning",
    "sampling": "sampling",
    "dictionary": "dictionary",
    "beyond": "beyond",
    "partitions": "partitions",
    "wider": "wider",
}


def find_study(name: str) -> Study:
    """Return the experiment of that name.

    Examples
    --------
    >>> find_study("inductive").name
    'inductive'
    """
    if name not in STUDIES:
        raise ValueError(f"Unknown experiment {name!r}; there are {', '.join(STUDIES)}.")
    return import_module(f"{__package__}.{STUDIES[name]}").STUDY
