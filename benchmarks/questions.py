"""How many answers people must give until half of the errors of an annotated table are gone.

    python benchmarks/questions.py [--jobs 2] [--data hja-union,msrcv2,letter-carroll] [--figure]

Reviewers are simulated: the truth answers, and once more with 5 % of the answers wrong, another
label of the bag where there is one. Bags are annotated by ``ORLogisticRegression()``, which is
fitted again after every sixtieth of the instances has been answered, with all answers. The table is
what it says of all instances, answers included, and an answer changes the labels of its bag at
once. Seeds are those of random questions and of wrong answers: where there are none of either, one
seed stands for all. At the end of each run of the default, the share of wrong labels is estimated,
from the random answers and what the model said before them, and compared with the truth.

Finished runs are kept in ``build/review``, and a run that was stopped goes on. Needs the real data
in ``UNBAG_DATA``; ``--figure`` needs matplotlib.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from measure import RESULTS, machine, save
from unbag import LabelSets, ORLogisticRegression
from unbag.datasets import make_bags
from unbag.review import estimate_errors, next_questions
from unbag_reproduce import datasets
from unbag_reproduce.ledger import Ledger
from unbag_reproduce.unit import Unit
from unbag_reproduce.work import run

#: The three of the target, and others. The default strategy was chosen with a look at all of them.
TARGETS = ("hja-union", "msrcv2", "letter-carroll")
OTHERS = ("letter-frost", "digits", "made of 8 classes", "made of 20 classes", "made of long bags")
STRATEGIES = ("random", "entropy", "margin", "gain", "default")
SEEDS = range(5)
WRONG = (0.0, 0.05)
#: Fits until all instances would have been answered.
N_FITS = 60
#: Runs end when so many have been.
MOST = 0.75
FIGURE = RESULTS.parents[1] / "docs" / "figures" / "questions.png"
MADE = {
    "made of 8 classes": {
        "n_bags": 300, "n_classes": 8, "bag_size": (3, 10), "labels_per_bag": (2, 4),
        "separability": 2.0, "random_state": 1,
    },
    "made of 20 classes": {
        "n_bags": 400, "n_classes": 20, "n_features": 20, "bag_size": (2, 6),
        "labels_per_bag": (1, 5), "separability": 3.0, "random_state": 2,
    },
    "made of long bags": {
        "n_bags": 60, "n_classes": 10, "n_features": 30, "bag_size": (10, 40),
        "labels_per_bag": (3, 6), "separability": 2.5, "random_state": 3,
    },
}  # fmt: skip


def loaded(name):
    """Return a data set by the name that the results call it."""
    if name in MADE:
        return make_bags(**MADE[name])
    return datasets.load(name)


def review(unit):
    """Let one simulated reviewer ask until half of the errors are gone."""
    # Wrong answers may leave a tag without an instance.
    warnings.simplefilter("ignore")
    reviewer = Reviewer(loaded(unit.data), unit.condition["wrong"], unit.seed)
    return reviewer.reviewed(unit.method)


class Reviewer:
    """Somebody who answers, and the table so far."""

    def __init__(self, data, wrong, seed):
        self.bags, self.truth = data.bags, np.asarray(data.instance_labels)
        self.labels = LabelSets(data.y.astype(np.int8))
        self.wrong, self.rng = wrong, np.random.default_rng(seed)
        self.known = np.full(len(self.truth), -1)
        self.bag = np.repeat(np.arange(len(self.bags)), self.bags.sizes)

    def answer(self, row):
        """Return the true label, or now and then another one of the bag."""
        truth = self.truth[row]
        others = np.flatnonzero(self.labels.required[self.bag[row]])
        others = others[others != truth]
        if self.rng.random() < self.wrong and len(others):
            return self.rng.choice(others)
        return truth

    def errors(self, model):
        """Return how many labels of each bag are wrong, and the table."""
        table = model.annotate(self.bags, self.labels, self.known)
        return np.bincount(self.bag, table != self.truth, minlength=len(self.bags)), table

    def reviewed(self, strategy):
        """Return the curve, the answers until half of the errors are gone, and the estimate."""
        n_instances = len(self.truth)
        model = ORLogisticRegression().fit(self.bags, self.labels)
        errors, table = self.errors(model)
        first, curve, records = int(errors.sum()), [(0, int(errors.sum()))], []
        until = None
        while until is None and curve[-1][0] < MOST * n_instances:
            questions = next_questions(
                model, self.bags, self.labels, self.known, strategy,
                round(n_instances / N_FITS), self.rng,
            )  # fmt: skip
            last_of_bag = {}
            for place, row in enumerate(questions.instances):
                self.known[row] = self.answer(row)
                last_of_bag[self.bag[row]] = place
                if questions.strategies[place] == "random":
                    doubt = float(questions.p_wrong[place])
                    records.append((int(row), doubt, bool(table[row] != self.known[row])))
            # Before the next fit, an answer changes nothing but its bag.
            after, _ = self.errors(model)
            left = int(errors.sum())
            for bag, place in sorted(last_of_bag.items(), key=lambda each: each[1]):
                left -= int(errors[bag] - after[bag])
                if until is None and left <= first / 2:
                    until = curve[-1][0] + place + 1
            model = ORLogisticRegression().fit(self.bags, self.labels, self.known)
            errors, table = self.errors(model)
            curve.append((curve[-1][0] + len(questions), int(errors.sum())))
            if until is None and errors.sum() <= first / 2:
                until = curve[-1][0]
        found = {"n_instances": n_instances, "curve": curve, "until": until}
        if strategy == "default":
            found["estimate"] = self.estimated(model, records) | {
                "truth": errors.sum() / n_instances
            }
        return found

    def estimated(self, model, records):
        """Estimate the share of wrong labels from what the random answers said at their time."""
        rows, doubts, wrongs = (list(each) for each in zip(*records, strict=True))
        found = estimate_errors(
            model, self.bags, self.labels, self.known, rows, p_wrong=doubts, was_wrong=wrongs
        )
        return {name: getattr(found, name) for name in ("share", "low", "high", "n_random")}


def units_of(data):
    """Return the runs: one seed where nothing is random."""
    return [
        Unit(review, name, method=strategy, condition={"wrong": wrong}, seed=seed)
        for name in data
        for wrong in WRONG
        for strategy in STRATEGIES
        for seed in (SEEDS if wrong or strategy in ("random", "default") else (0,))
    ]


def summarised(data, ledger):
    """Return for each data set and share of wrong answers what was measured."""
    found = {}
    for name in data:
        for wrong in WRONG:
            runs = [unit for unit in units_of([name]) if unit.condition["wrong"] == wrong]
            answers = {strategy: [] for strategy in STRATEGIES}
            for unit in runs:
                result = ledger[unit]
                # A run that never got there counts as far as it went.
                until = result["until"] or result["curve"][-1][0]
                answers[unit.method].append(until / result["n_instances"])
            means = {strategy: float(np.mean(shares)) for strategy, shares in answers.items()}
            estimates = [ledger[unit]["estimate"] for unit in runs if unit.method == "default"]
            found[f"{name}, {wrong:.0%} wrong"] = {
                "answers": answers,
                "means": means,
                "of_random": means["default"] / means["random"],
                "of_best_other": means["default"]
                / min(mean for strategy, mean in means.items() if strategy != "default"),
                "estimates": estimates,
                "held": sum(each["low"] <= each["truth"] <= each["high"] for each in estimates),
                "largest_error": max(abs(each["share"] - each["truth"]) for each in estimates),
            }
    return found


def drawn(data, ledger):
    """Draw errors left against answers given, without wrong answers, one panel per data set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(data), figsize=(4 * len(data), 3.4), sharey=True)
    for panel, name in zip(np.atleast_1d(panels), data, strict=True):
        for strategy in STRATEGIES:
            runs = [each for each in units_of([name]) if each.method == strategy]
            curves = [ledger[each] for each in runs if not each.condition["wrong"]]
            # As far as all runs went.
            shortest = min(len(each["curve"]) for each in curves)
            points = np.array([each["curve"][:shortest] for each in curves], dtype=float)
            asked = 100 * points[0, :, 0] / curves[0]["n_instances"]
            left = 100 * (points[:, :, 1] / points[:, :1, 1]).mean(axis=0)
            panel.plot(asked, left, label=strategy, lw=2.5 if strategy == "default" else 1.5)
        panel.axhline(50, color="grey", lw=0.8, ls=":")
        panel.set_title(name)
        panel.set_xlabel("answers, % of instances")
        panel.set_xlim(0, 40)
    np.atleast_1d(panels)[0].set_ylabel("errors left, %")
    np.atleast_1d(panels)[0].legend()
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=110, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="reviewers at a time")
    parser.add_argument("--data", default=",".join([*TARGETS, *OTHERS]))
    parser.add_argument("--figure", action="store_true", help=f"draw {FIGURE.name} too")
    parser.add_argument("--ledger", type=Path, default=Path("build/review"))
    given = parser.parse_args()
    console, names = Console(), given.data.split(",")
    ledger = Ledger(given.ledger)
    with ledger.writing():
        run(units_of(names), ledger, n_jobs=given.jobs, console=console, title="reviewing")
    results = summarised(names, ledger)
    shown = Table("data", *STRATEGIES, "of random", "of best other", "held", "largest error")
    for name, each in results.items():
        means = (f"{100 * each['means'][strategy]:.1f} %" for strategy in STRATEGIES)
        ratios = f"{each['of_random']:.2f}", f"{each['of_best_other']:.2f}"
        held = f"{each['held']} of {len(each['estimates'])}"
        shown.add_row(name, *means, *ratios, held, f"{100 * each['largest_error']:.1f}")
    console.print(shown)
    if given.figure:
        drawn(TARGETS, ledger)
    save("questions", {"machine": machine(), "results": results}, console)


if __name__ == "__main__":
    main()
