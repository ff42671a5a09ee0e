"""What a search for settings finds, and what it costs.

    python benchmarks/tuning.py          # letters only, a few minutes
    python benchmarks/tuning.py --all    # an hour; goes on where it was stopped

grid: beside a full grid, every setting on all folds until it has converged. Held-out likelihood is
the mean log-likelihood of the label sets of held-out bags, by the full grid's own estimate for the
best of its settings and for that which the search has chosen; the loss is their difference as a
share of the best. Both cost bag-iterations: iterations times training bags, of all fits.

rival: beside logistic regression, one per label, on the mean, deviation, least and largest value of
each feature in a bag: average precision and Hamming loss of held-out bags, means of three folds, on
205 bags of each data set (all, where there are less). "n classes never named" leaves labels out, so
that their instances are of no class and some label sets are empty.

background: whether one is taken on data made with and without, and how many instances of held-out
bags get their own label, or none if they have none.
"""

import argparse
import json
import os
import warnings
from itertools import groupby
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import unbag
from measure import machine, save
from unbag import LabelSets, datasets
from unbag.estimators.background import is_background
from unbag.metrics import average_precision, hamming_loss
from unbag.model_selection import MultilabelStratifiedKFold
from unbag.tuning import candidates
from unbag.tuning.background import decided_background, with_background
from unbag.tuning.search import Round, Search, rounds_of
from unbag.tuning.settings import MAX_ITER
from unbag.union import ImpossibleBagWarning, IntractableBagWarning

DATA = ("letter-frost", "letter-carroll", "msrcv2", "hja-union")
CV = 3
N_BAGS = 205
#: Data set, seeds of the bags that are taken, and how many classes are never named.
SMALL = (
    ("letter-frost", (0,), 0),
    ("letter-carroll", (0,), 0),
    ("hja-union", (0, 1, 2), 0),
    ("hja-union", (0, 1, 2), 5),
    ("msrcv2", (0, 1), 0),
)
SHARES_OF_BACKGROUND = (0.0, 0.2, 0.4)


class Notes:
    """Results that are kept in a file as they come, so that a stopped run can go on.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path):
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.known = dict(json.loads(line) for line in lines)

    def recall(self, key, call):
        """Return what was noted under a key; else call, and note it."""
        if key not in self.known:
            self.known[key] = call()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]


def tried(bags, labels, settings, rounds):
    """Run a search; return the held-out likelihood of each setting, and what it cost."""
    search = Search(bags, labels, settings, cv=CV)
    search.run(rounds)
    return {
        "scores": {repr(trial.setting): trial.score for trial in search.trials if trial.scores},
        "chosen": repr(search.best.setting),
        "bag_iterations": search.bag_iterations,
    }


def beside_full_grid(name, notes, networks):
    """Compare a search with the full grid of its settings, on one data set."""
    data = datasets.load(name)
    bags, labels = data.bags, LabelSets.parse(data.y)
    left_open = candidates(networks=networks)
    found = notes.recall(
        f"search {name} {networks}", lambda: tried(bags, labels, left_open, rounds_of(CV))
    )
    has_background, _ = notes.recall(
        f"background {name}", lambda: decided_background(bags, labels, left_open)
    )
    settings = with_background(left_open, has_background)
    scores, cost = {}, 0
    for key, group in groupby(settings, key=lambda each: repr({**each, "alpha": None})):
        of_group = list(group)
        part = notes.recall(
            f"grid {name} {key}",
            lambda of_group=of_group: tried(bags, labels, of_group, [Round(CV, MAX_ITER)]),
        )
        scores |= part["scores"]
        cost += part["bag_iterations"]
    best = max(scores.values())
    chosen = scores[found["chosen"]]
    return {
        "settings": len(settings),
        "grid_bag_iterations": cost,
        "search_bag_iterations": found["bag_iterations"],
        "share_of_cost": found["bag_iterations"] / cost,
        "best_likelihood": best,
        "chosen_likelihood": chosen,
        "loss": (best - chosen) / abs(best),
        "best": max(scores, key=scores.__getitem__),
        "chosen": found["chosen"],
    }


def subsample(name, seed, n_unnamed):
    """Draw bags of a data set, some of whose classes are never named.

    Parameters
    ----------
    name : str
    seed : int
    n_unnamed : int

    Returns
    -------
    bags : Bags
    y : ndarray of shape (n_bags, n_classes)
        Of the classes that are left and occur.
    """
    data = datasets.load(name)
    rng = np.random.default_rng([seed, n_unnamed])
    drawn = np.sort(rng.permutation(len(data.bags))[:N_BAGS])
    named = np.sort(rng.permutation(data.y.shape[1])[n_unnamed:])
    y = data.y[drawn][:, named]
    return data.bags[drawn], y[:, y.any(axis=0)]


def bag_statistics(bags):
    """Compute mean, deviation, least and largest value of each feature in each bag."""
    of_bags = np.split(bags.X, bags.offsets[1:-1])
    return np.array(
        [
            np.concatenate([X.mean(axis=0), X.std(axis=0), X.min(axis=0), X.max(axis=0)])
            for X in of_bags
        ]
    )


def beside_logistic_regression(name, seed, n_unnamed, networks):
    """Compare a tuned model with logistic regression on bag statistics: two measures of each."""
    bags, y = subsample(name, seed, n_unnamed)
    statistics = bag_statistics(bags)
    found = {"tuned": [], "logistic regression": []}
    for train, test in MultilabelStratifiedKFold(CV, random_state=seed).split(bags, y):
        linear = OneVsRestClassifier(LogisticRegression(max_iter=MAX_ITER))
        rival = make_pipeline(StandardScaler(), linear).fit(statistics[train], y[train])
        ours = unbag.tune(bags[train], y[train], networks=networks, seed=seed)
        for model, of_model, held_out in (
            ("tuned", ours, bags[test]),
            ("logistic regression", rival, statistics[test]),
        ):
            scores, answers = of_model.predict_proba(held_out), of_model.predict(held_out)
            found[model].append(
                [average_precision(y[test], scores), hamming_loss(y[test], answers)]
            )
    empty = int((y.sum(axis=1) == 0).sum())
    means = {model: np.mean(measures, axis=0).tolist() for model, measures in found.items()}
    return {"bags": len(bags), "classes": y.shape[1], "empty_label_sets": empty, **means}


def on_made_data(share):
    """Tell whether a background is taken, and what that does to instances of new bags."""
    toy = datasets.make_bags(
        300, n_classes=8, bag_size=(4, 12), labels_per_bag=(1, 3), background=share, random_state=0
    )
    train, test = toy.bags[:150], toy.bags[150:]
    found = {}
    for way, more in (("decided", {}), ("by likelihood", {"background": [False, True]})):
        grid = {"kernel": [None], "context": [0.0], "missed": [0.0], "false": [0.0], **more}
        model = unbag.tune(train, toy.y[:150], grid=grid)
        answers = model.predict_instances(test)
        answers = np.where(is_background(answers), -1, answers).astype(int)
        found[way] = {
            "background": model.tuning_["chosen"]["background"],
            "instance_accuracy": float(np.mean(answers == test.instance_labels)),
        }
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="all data sets; writes the results")
    parser.add_argument("--data", nargs="+", choices=DATA, help="some of the data sets")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS], help="some of it")
    parser.add_argument("--networks", action="store_true", help="networks among the settings")
    parser.add_argument("--fresh", action="store_true", help="forget what a stopped run has noted")
    options = parser.parse_args()
    console = Console()
    for category in (ConvergenceWarning, ImpossibleBagWarning, IntractableBagWarning):
        warnings.simplefilter("ignore", category)
    # Logistic regression says that a label is in no training bag, or in all.
    warnings.filterwarnings("ignore", message="Label .* is present in all training examples")
    kept = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    notes = Notes(Path(kept, "unbag", "benchmarks", f"tuning-{unbag.__version__}.jsonl"))
    if options.fresh:
        notes.path.unlink(missing_ok=True)
        notes = Notes(notes.path)
    wanted = options.data or (DATA if options.all else DATA[:1])
    names = [name for name in wanted if datasets.is_available(name)]
    results = {"machine": machine()}
    for part in options.parts:
        results[part] = PARTS[part](console, names, notes, options.networks)
    if options.all and not options.data and options.parts == [*PARTS]:
        save("tuning", results, console)


def show_grid(console, names, notes, networks):
    table = Table(title="A search beside the full grid of its settings")
    for column in ("data", "settings", "cost (%)", "best", "chosen", "loss (%)"):
        table.add_column(column, justify="left" if column == "data" else "right")
    results = {}
    for name in names:
        results[name] = found = beside_full_grid(name, notes, networks)
        table.add_row(
            name, str(found["settings"]), f"{100 * found['share_of_cost']:.1f}",
            f"{found['best_likelihood']:.3f}", f"{found['chosen_likelihood']:.3f}",
            f"{100 * found['loss']:.2f}",
        )  # fmt: skip
    console.print(table)
    return results


def show_rival(console, names, notes, networks):
    table = Table(title="Held-out bags: average precision and Hamming loss (%)")
    for column in ("data", "seed", "empty", "tuned", "logistic regression"):
        table.add_column(column, justify="left" if column == "data" else "right")
    results = {}
    for name, seeds, n_unnamed in SMALL:
        if name not in names:
            continue
        described = f"{name}, {n_unnamed} classes never named" if n_unnamed else name
        for seed in seeds:
            key = f"{described} {seed}"
            found = notes.recall(
                f"rival {key} {networks}",
                lambda of=(name, seed, n_unnamed): beside_logistic_regression(*of, networks),
            )
            results[key] = found
            measures = (found[model] for model in ("tuned", "logistic regression"))
            texts = (f"{100 * precise:.1f} {100 * loss:.1f}" for precise, loss in measures)
            table.add_row(described, str(seed), str(found["empty_label_sets"]), *texts)
    console.print(table)
    return results


def show_background(console, _names, notes, _networks):
    table = Table(title="Whether there is a background; instances with their own label (%)")
    for column in ("share of background", "decided before", "by likelihood"):
        table.add_column(column, justify="right")
    results = {}
    for share in SHARES_OF_BACKGROUND:
        found = notes.recall(f"made {share}", lambda share=share: on_made_data(share))
        results[f"{share:g}"] = found
        texts = (
            f"{'yes' if each['background'] else 'no'} {100 * each['instance_accuracy']:.1f}"
            for each in found.values()
        )
        table.add_row(f"{share:g}", *texts)
    console.print(table)
    return results


PARTS = {"grid": show_grid, "rival": show_rival, "background": show_background}

if __name__ == "__main__":
    main()
