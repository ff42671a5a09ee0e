"""Handwritten digits in bags: learn to read single digits from the set of digits in each bag.

The digits ship with scikit-learn. A few of them go into each bag, and all that is told of a
bag is *which* digits are in it, not which image is which.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ._extras import MissingExtraError, require
from ._files import atomic_write, make_folder
from .bags import Bags
from .datasets import load_digit_bags
from .estimators import ORLogisticRegression
from .fitting.solvers import interruptions_raised

IMAGE_SHAPE = (8, 8)


def accuracies(
    bags: Bags, y: NDArray[np.integer], n_train: int
) -> tuple[ORLogisticRegression, dict[str, float]]:
    """Fit on the first bags, and count how many instances each way of labelling gets right.

    Returns
    -------
    model : ORLogisticRegression
        Fitted to bag labels alone.
    table : dict of str to float
    """
    train, test = bags[:n_train], bags[n_train:]
    model = ORLogisticRegression().fit(train, y[:n_train])
    supervised = ORLogisticRegression().fit(train.X, train.instance_labels)
    majority = np.bincount(train.instance_labels).argmax()
    truth = test.instance_labels
    return model, {
        "majority class": np.mean(majority == truth),
        "bag labels, new bags without labels (inductive)": np.mean(
            model.predict_instances(test) == truth
        ),
        "bag labels, new bags with labels (transductive)": np.mean(
            model.annotate(test, y[n_train:]) == truth
        ),
        "every digit labelled by hand (supervised bound)": np.mean(
            supervised.predict(test.X) == truth
        ),
    }


def draw(
    model: ORLogisticRegression, bags: Bags, y: NDArray[np.integer], path: Path, n_bags: int = 8
) -> None:
    """Draw some bags, each digit with the label and probability that were inferred for it."""
    require("matplotlib").use("agg")
    from matplotlib import pyplot

    bags, y = bags[:n_bags], y[:n_bags]
    proba = model.annotate_proba(bags, y)
    labels = model.annotate(bags, y, joint=True)
    figure, axes = pyplot.subplots(n_bags, bags.sizes.max(), figsize=(6.5, 1.05 * n_bags))
    for b in range(n_bags):
        told = ", ".join(str(digit) for digit in np.flatnonzero(y[b]))
        axes[b, 0].text(-6, 3.5, f"told: {{{told}}}", ha="right", va="center", fontsize=10)
        for place, axis in enumerate(axes[b]):
            axis.axis("off")
            if place < bags.sizes[b]:
                i = bags.offsets[b] + place
                right = labels[i] == bags.instance_labels[i]
                axis.imshow(bags.X[i].reshape(IMAGE_SHAPE), cmap="gray_r")
                axis.set_title(
                    f"{labels[i]} ({proba[i, labels[i]]:.0%})",
                    fontsize=9,
                    color="black" if right else "#b2182b",
                    pad=2,
                )
    figure.suptitle("What each digit is, inferred from what is in its bag (mistakes in red)")
    figure.subplots_adjust(left=0.24, right=0.99, top=0.91, bottom=0.01, hspace=0.55, wspace=0.1)
    make_folder(path.parent)
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=130)
    pyplot.close(figure)


def run(out: Path, *, quiet: bool = False) -> dict[str, Any]:
    """Fit, print a table, and draw a picture into the folder `out`.

    Returns
    -------
    dict
        The accuracies, and where the picture is; None if it could not be drawn.
    """
    console = Console(quiet=quiet)
    digits = load_digit_bags()
    bags, y = digits.bags, digits.y
    n_train = len(bags) * 2 // 3
    console.print(
        f"{bags.n_instances} digits in {len(bags)} bags. Learning from the sets of digits in "
        f"{n_train} of them ..."
    )
    # Not a picture of what half a fit has learnt.
    with interruptions_raised():
        model, table = accuracies(bags, y, n_train)
    printed = Table(title="Digits of the other bags that are labelled right")
    printed.add_column("learnt from")
    printed.add_column("accuracy", justify="right")
    for name, accuracy in table.items():
        printed.add_row(name, f"{accuracy:.1%}")
    console.print(printed)
    picture = out / "digits.png"
    try:
        draw(model, bags[n_train:], y[n_train:], picture)
        drawn = f"Some of these bags are drawn in {picture}."
    except MissingExtraError as error:
        drawn, picture = f"No picture was drawn. {error}", None
    _, inductive, transductive, supervised = table.values()
    console.print(
        f"Nobody said which image is which digit. Knowing only the set of digits in each bag, the "
        f"model reads {inductive:.1%} of new digits right, where labels for every digit would have "
        f"given {supervised:.1%}; told what is in the new bags too, it gets {transductive:.1%}.\n"
        f"{drawn}",
        markup=False,  # The name of an extra stands in brackets.
    )
    return {"accuracies": table, "picture": picture}
