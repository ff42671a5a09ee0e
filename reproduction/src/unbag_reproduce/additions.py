"""Additions to the published model, row by row: candidates, and the fits that a row shows.

Settings are chosen within the training bags (`unbag_reproduce.nested`). The candidates of linear
and kernel models were fixed before any was tried, except those that they share with a first look;
around what is best they are widened (`unbag_reproduce.widening`), since the first grids had their
best at an end. Those of networks, and the networks' defaults, come from prototypes that were tried
by ten folds on the same four data sets. The parts of the committee were chosen by instance
accuracies on these data sets, on other folds of the same bags.
"""

from collections.abc import Iterable
from importlib.util import find_spec

import numpy as np

from .comparison import Comparison, fit_fold, measured, some_methods
from .ledger import Results
from .methods import grid
from .nested import Case, Variant, is_network, told_setting
from .plan import Plan
from .rivals import RIVALS
from .unit import Unit
from .widening import ALPHAS, CONTEXTS, WIDTHS

#: What each part of a setting is chosen from, of a linear model and of a kernel.
LINEAR = {
    "context": [0.0], "width": [None], "background": [False],
    "alpha": [0.01, 0.1, 1.0, 10.0, 100.0],
}  # fmt: skip
KERNEL = {
    "context": [0.0], "width": [0.25, 0.5, 1.0, 2.0], "background": [False],
    "alpha": [0.01, 0.1, 1.0, 10.0],
}  # fmt: skip
#: Along which these are widened, where there is more than one value to begin with.
PENALTY = {"alpha": ALPHAS}
IN_CONTEXT = {"context": CONTEXTS}
WITH_KERNEL = {"width": WIDTHS}
#: What a network is chosen from: the default, and what helps on some data.
ENCODINGS = grid(encoding=[None, "quantile"], distill=[0])
NETWORKS = grid(encoding=[None, "quantile"], distill=[0, 1])
QUICK = {"n_members": 2, "max_iter": 100}
#: Fewer members would be no committee.
QUICK_COMMITTEE = {"n_members": 9, "max_iter": 100}

#: Rows that other tables also have.
OURS, NETWORK = "penalty, context, kernel", "network, encoding and distillation chosen"
COMMITTEE = "earlier committee"

#: Row of the table to the settings to choose from.
VARIANTS = {
    "penalty": Variant("pipeline", grid(**LINEAR), ladders=PENALTY),
    "penalty, background": Variant(
        "pipeline", grid(**LINEAR | {"background": [True]}), ladders=PENALTY
    ),
    "penalty, context": Variant(
        "pipeline",
        grid(**LINEAR | {"context": [0.0, 0.5, 1.0, 2.0]}),
        ladders=PENALTY | IN_CONTEXT,
    ),
    "penalty, kernel": Variant("pipeline", grid(**KERNEL), ladders=PENALTY | WITH_KERNEL),
    OURS: Variant(
        "pipeline",
        grid(**KERNEL | {"context": [0.0, 0.5, 1.0]}),
        ladders=PENALTY | IN_CONTEXT | WITH_KERNEL,
    ),
    "network of one kind, nothing chosen": Variant("network", NETWORKS[:1], QUICK),
    "network, encoding chosen": Variant("network", ENCODINGS, QUICK),
    NETWORK: Variant("network", NETWORKS, QUICK),
    # What it pools, it chooses within the training bags itself.
    COMMITTEE: Variant("network committee", [{}], QUICK_COMMITTEE),
}
#: Rows of models that are told instance labels, with the settings of another row.
TOLD = {
    "the same, told instance labels": (OURS, "pipeline told instance labels"),
    "that network, told instance labels": (NETWORK, "network told instance labels"),
}
#: Rows of the table of losses. Only who infers labels exactly can distil.
LOSSES = {
    "exact": VARIANTS["network, encoding chosen"],
    "noisy-or of the softmax": Variant("network by noisy-or", ENCODINGS, QUICK),
    "max pooling": Variant("network by max pooling", ENCODINGS, QUICK),
    "linear softmax pooling": Variant("network by linear softmax", ENCODINGS, QUICK),
    "attention pooling": Variant("network by attention", ENCODINGS, QUICK),
}
#: Rows of the table that are made as published.
AS_PUBLISHED = {"MLR, linear, as published": "mlr", "SLR, linear, as published": "slr"}
PUBLISHED = Comparison(
    fit_fold, some_methods(*AS_PUBLISHED.values()), tuned_by=("inductive_accuracy",)
)
#: Rows of the table of accuracies, a bound below what it bounds.
ROWS = [
    "MLR, linear, as published",
    *(row for each in VARIANTS for row in (each, *(b for b in TOLD if TOLD[b][0] == each))),
    "SLR, linear, as published",
]


def cases(plan: Plan, name: str) -> list[list[Case]]:
    """Return the cases of a data set: for each fold, a list over draws."""
    return [
        [Case(plan, name, draw, fold) for draw in plan.draws(name)] for fold in range(plan.n_folds)
    ]


def units(plan: Plan, ledger: Results) -> list[Unit]:
    """List the inner fits, then those of the settings that they choose; the rivals' last.

    Networks that are not fitted yet are left out, unless they can be: see `can_fit_networks`.
    """
    told = dict(TOLD.values())
    found = [
        unit
        for folds in zip(*(cases(plan, name) for name in plan.data), strict=True)
        for draws in folds
        for case in draws
        for row, variant in (VARIANTS | LOSSES).items()
        for unit in case.units(variant, ledger, told.get(row))
    ]
    if not can_fit_networks(plan):
        found = [unit for unit in found if not is_network(unit.method) or unit in ledger]
    # Variants share settings, and each is fitted once.
    shared = [*found, *PUBLISHED.units(plan, ledger), *RIVALS.units(plan, ledger)]
    return list(dict.fromkeys(shared))


def can_fit_networks(plan: Plan) -> bool:
    """Return whether networks are fitted here: with torch, in a first look or on a GPU."""
    if find_spec("torch") is None:
        return False
    from .networks import device_name

    return plan.level == "quick" or device_name() != "CPU"


def row_units(plan: Plan, ledger: Results, name: str, row: str) -> list[list[Unit]]:
    """Return the fits that a row of a table shows: for each fold, a list over draws.

    What is not chosen yet, or has no network, is not in the list.
    """
    if row in AS_PUBLISHED:
        return PUBLISHED.units_of(plan, name, AS_PUBLISHED[row], {})
    chosen_as, model = TOLD.get(row, (row, None))
    variant = (VARIANTS | LOSSES)[chosen_as]

    def fits(case):
        setting = case.choice(variant, ledger)
        if setting is None:
            return []
        if model is None:
            return [case.unit(variant.model, setting)]
        return [case.unit(model, told_setting(setting))]

    return [[unit for case in draws for unit in fits(case)] for draws in cases(plan, name)]


def is_made(plan: Plan, ledger: Results, row: str) -> bool:
    """Return whether all fits of a row are done: networks may not be."""
    return all(
        len(draws) == len(plan.draws(name)) and all(unit in ledger for unit in draws)
        for name in plan.data
        for draws in row_units(plan, ledger, name, row)
    )


def made(plan: Plan, ledger: Results, rows: Iterable[str]) -> list[str]:
    """Return those of some rows whose fits are done."""
    return [row for row in rows if is_made(plan, ledger, row)]


def scores(plan: Plan, ledger: Results, name: str, row: str, measure: str) -> np.ndarray:
    """Return a measure of a row of a table; shape (n_folds, n_draws)."""
    return measured(ledger, row_units(plan, ledger, name, row), measure)
