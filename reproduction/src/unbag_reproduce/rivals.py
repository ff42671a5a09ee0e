"""The rivals with what we give our own model: the bag's mean as context, and a whitened kernel.

Each is tuned on the test folds, after the fact, as the paper does, which flatters it: our own
settings are chosen within the training folds (`unbag_reproduce.nested`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from unbag.paper import LSBCMM, SIM, MIMLFast
from unbag.pipeline import bag_pipeline

from .comparison import Comparison, fit_and_measure
from .data import load_fold
from .methods import METHODS, Method, grid, levels, penalised_bound
from .nested import DICTIONARY
from .unit import Unit, Values, task
from .widening import ALPHAS, CONTEXTS, WIDTHS

#: Contexts and widths to begin with.
FIRST_CONTEXTS = [0.0, 0.5, 1.0]
FIRST_WIDTHS = [0.25, 0.5, 1.0]


def with_context_and_kernel(
    kind: Callable[..., Any],
    context: float,
    width: float | None = None,
    kernel_scaling: str | None = None,
    **setting: Any,
) -> Any:
    """Build a rival behind a bag's mean and, with a width, a kernel.

    A penalty wants whitened columns as they are, steps of a fixed size may not: so how these are
    scaled is a setting.
    """
    model = bag_pipeline(kind(**setting), context=context, kernel=width, dictionary=DICTIONARY)
    return model if width is None else model.set_params(model__scaling=kernel_scaling)


def rival(
    method: str,
    kind: Callable[..., Any],
    linear: list[Values],
    kernel: list[Values],
    kernel_contexts: Sequence[float] = FIRST_CONTEXTS,
    widths: Sequence[float] = FIRST_WIDTHS,
) -> Method:
    """Return a method whose settings are all contexts and widths with all of its own."""
    without = [{"context": context, **own} for context in FIRST_CONTEXTS for own in linear]
    within = [
        {"context": context, "width": width, **own}
        for context in kernel_contexts
        for width in widths
        for own in kernel
    ]
    return Method(
        METHODS[method].title,
        partial(with_context_and_kernel, kind),
        levels([*without, *within], quick=[without[0], within[0]]),
    )


SIM_SETTINGS = grid(alpha=[1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
#: The default, more dimensions, and what a search on the same data found good on the letters.
FAST_SETTINGS = [
    {"n_epochs": 10},
    {"n_epochs": 10, "n_dimensions": 200},
    {"n_epochs": 30, "n_concepts": 1, "divisor": 0.3},
]
BOUND_ALPHAS = [0.01, 0.1, 1.0, 10.0]
IN_CONTEXT_AND_KERNEL = {"context": CONTEXTS, "width": WIDTHS}


@task
def fit_rival(unit: Unit) -> dict[str, float]:
    """Fit a rival to the training bags of a fold, and measure on its test bags."""
    rival = RIVALS.methods[unit.method].model(unit.setting, unit.seed)
    return fit_and_measure(rival, *load_fold(unit))


RIVALS = Comparison(
    fit_rival,
    {
        "sim": rival(
            "sim",
            SIM,
            SIM_SETTINGS,
            [{"kernel_scaling": "standard", **own} for own in SIM_SETTINGS],
        ),
        "mimlfast": rival(
            "mimlfast",
            MIMLFast,
            FAST_SETTINGS,
            [
                {"kernel_scaling": scaling, **own}
                for own in FAST_SETTINGS
                for scaling in ("standard", None)
            ],
        ),
        # Unscaled columns of a kernel are about 25 times as small, and fits take the longest: so
        # larger variances, and fewer settings.
        "lsbcmm": rival(
            "lsbcmm",
            partial(LSBCMM, threshold="union"),
            grid(variance=[1.0, 10.0, 100.0]),
            grid(variance=[100.0, 1000.0]),
            kernel_contexts=[0.0, 1.0],
            widths=[0.5, 1.0],
        ),
        "slr": rival(
            "slr",
            partial(penalised_bound, max_iter=60),
            grid(alpha=[*BOUND_ALPHAS, 100.0]),
            grid(alpha=BOUND_ALPHAS),
        ),
    },
    tuned_by=("inductive_accuracy",),
    racing=True,
    ladders={
        "sim": {**IN_CONTEXT_AND_KERNEL, "alpha": ALPHAS},
        "mimlfast": {
            **IN_CONTEXT_AND_KERNEL,
            # Three times the paper's most. A fit of 1,000 epochs takes up to a minute.
            "n_epochs": (3, 10, 30, 100, 300),
            "n_dimensions": (100, 200, 400, 800),
            "divisor": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
        },
        "lsbcmm": {
            **IN_CONTEXT_AND_KERNEL,
            "variance": (0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6),
        },
        "slr": {**IN_CONTEXT_AND_KERNEL, "alpha": ALPHAS},
    },
)
