"""Measure what looking at instances brings: ``python docs/measure_review.py``."""

import numpy as np

from unbag import LabelSets, ORLogisticRegression
from unbag.annotations import annotate
from unbag.datasets import load_letter_carroll


def accuracies(share, chosen_by, seed):
    """Fit to two thirds of the words, with some of their letters known.

    Returns
    -------
    new, own : float
        Letters labelled rightly in the other words, without their labels; and in these, with them.
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
        looks = rng.permutation(bags.n_instances)
        if chosen_by == "review":
            looks = np.argsort(-annotate(model, bags, labels).entropy, kind="stable")
        looks = looks[: round(share * bags.n_instances)]
        known[looks] = bags.instance_labels[looks]
        model.fit(bags, labels, instance_labels=known)
    return (
        np.mean(model.predict_instances(new) == new.instance_labels),
        np.mean(model.annotate(bags, labels, instance_labels=known) == bags.instance_labels),
    )


def main():
    print("| letters looked at | chosen by | right in new words | right in these words |")
    print("|---|---|---:|---:|")
    for share, chosen_by in (
        (0.0, "-"), (0.05, "chance"), (0.05, "review"), (0.1, "chance"), (0.1, "review"),
        (0.2, "chance"), (0.2, "review"),
    ):  # fmt: skip
        new, own = 100 * np.mean([accuracies(share, chosen_by, seed) for seed in range(5)], axis=0)
        print(f"| {share:.0%} | {chosen_by} | {new:.1f} % | {own:.1f} % |")


if __name__ == "__main__":
    main()
