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

from unbag._extras import MissingExtraError, require
from unbag._files import atomic_write, make_folder
from unbag.bags import Bags
from unbag.datasets import load_digit_bags
from unbag.estimators import ORLogisticRegression
from unbag.fitting.solvers import interruptions_raised

IMAGE_SHAPE = (8, 8)
MISTAKE_COLOUR = "#b2182b"


def accuracies(
    bags: Bags, y: NDArray[np.integer], n_train: int
) -> tuple[ORLogisticRegression, dict[str, float]]:
    """Fit on the first bags, and count how many instances each way of labelling gets right."""
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


def bags_to_draw(has_mistake: NDArray[np.bool_], n_bags: int) -> NDArray[np.intp]:
    """Choose the first bags; if none of them has a mistake, the first that has one comes last.

    Examples
    --------
    >>> bags_to_draw(np.array([False, False, False, False, True]), 3)
    array([0, 1, 4])
    """
    chosen = np.arange(min(n_bags, len(has_mistake)))
    if has_mistake.any() and not has_mistake[chosen].any():
        chosen[-1] = np.flatnonzero(has_mistake)[0]
    return chosen


def caption(wrong: NDArray[np.bool_], wrong_in_all: NDArray[np.bool_]) -> str:
    """Describe the picture, and count mistakes in what is drawn and in all digits.

    Examples
    --------
    >>> print(caption(np.array([False, True]), np.array([False, True, False])))
    What each digit is, inferred from what is in its bag
    (mistakes in red: 1 of these 2 digits; 1 of all 3)
    """
    mistakes = f"mistakes in red: {wrong.sum()} of" if wrong.any() else "no mistake in"
    return (
        "What each digit is, inferred from what is in its bag\n"
        f"({mistakes} these {len(wrong)} digits; {wrong_in_all.sum()} of all {len(wrong_in_all)})"
    )


def draw(
    model: ORLogisticRegression, bags: Bags, y: NDArray[np.integer], path: Path, n_bags: int = 8
) -> None:
    """Draw some bags, each digit with the label and probability that were inferred for it."""
    require("matplotlib").use("agg")
    from matplotlib import pyplot

    labels = model.annotate(bags, y, joint=True)
    proba = model.annotate_proba(bags, y)
    wrong = labels != bags.instance_labels
    chosen = bags_to_draw(np.add.reduceat(wrong, bags.offsets[:-1]) > 0, n_bags)
    figure, axes = pyplot.subplots(
        len(chosen), int(bags.sizes[chosen].max()), figsize=(6.5, 1.05 * len(chosen) + 0.5),
        squeeze=False,
    )  # fmt: skip
    for b, row in zip(chosen, axes, strict=True):
        told = ", ".join(str(digit) for digit in np.flatnonzero(y[b]))
        row[0].text(-6, 3.5, f"told: {{{told}}}", ha="right", va="center", fontsize=10)
        for axis in row:
            axis.axis("off")
        for i, axis in zip(range(bags.offsets[b], bags.offsets[b + 1]), row, strict=False):
            axis.imshow(bags.X[i].reshape(IMAGE_SHAPE), cmap="gray_r")
            axis.set_title(
                f"{labels[i]} ({proba[i, labels[i]]:.0%})",
                fontsize=9,
                color=MISTAKE_COLOUR if wrong[i] else "black",
                pad=2,
            )
    drawn = np.concatenate([wrong[bags.offsets[b] : bags.offsets[b + 1]] for b in chosen])
    figure.suptitle(caption(drawn, wrong), fontsize=11)
    figure.subplots_adjust(left=0.27, right=0.99, top=0.89, bottom=0.03, hspace=0.55, wspace=0.1)
    make_folder(path.parent)
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=130)
    pyplot.close(figure)


def run(out: Path, *, quiet: bool = False) -> dict[str, Any]:
    """Fit, print a table, and draw a picture into the folder `out`.

    Return the accuracies, and where the picture is; None if it could not be drawn.
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
