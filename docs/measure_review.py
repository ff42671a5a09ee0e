"""Measure how much checking instances by hand helps: ``python docs/measure_review.py``."""

import numpy as np

from unbag import LabelSets, ORLogisticRegression
from unbag.annotations import annotate
from unbag.datasets import load_letter_carroll


def accuracies(share, chosen_by, seed):
    """Fit to two thirds of the words, with some of their letters known.

    Returns
    -------
    new, own : float
        Accuracy on the letters of the other words, without their labels, and of these, with them.
    """
    data = load_letter_carroll(random_state=seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data.bags))
    cut = 2 * len(order) // 3
    bags, labels = data.bags[order[:cut]], LabelSets(data.y[order[:cut]])
    new = data.bags[order[cut:]]
    model = ORLogisticRegression().fit(bags, labels)
    known = np.full(bags.n_instances, -1)
    if share:
        checked = rng.permutation(bags.n_instances)
        if chosen_by == "by review":
            checked = np.argsort(-annotate(model, bags, labels).entropy, kind="stable")
        checked = checked[: round(share * bags.n_instances)]
        known[checked] = bags.instance_labels[checked]
        model.fit(bags, labels, instance_labels=known)
    return (
        np.mean(model.predict_instances(new) == new.instance_labels),
        np.mean(model.annotate(bags, labels, instance_labels=known) == bags.instance_labels),
    )


def main():
    print("| letters checked | chosen | accuracy on new words | accuracy on these words |")
    print("|---|---|---:|---:|")
    for share, chosen_by in (
        (0.0, "-"), (0.05, "at random"), (0.05, "by review"),
        (0.1, "at random"), (0.1, "by review"),
        (0.2, "at random"), (0.2, "by review"),
    ):  # fmt: skip
        new, own = 100 * np.mean([accuracies(share, chosen_by, seed) for seed in range(5)], axis=0)
        print(f"| {share:.0%} | {chosen_by} | {new:.1f} % | {own:.1f} % |")


if __name__ == "__main__":
    main()
