"""How many labels made wrong on purpose `unbag check` finds, beside cleanlab.

    python benchmarks/check_labels.py

In MSRC v2 and HJA union, labels are made wrong: 5 % of the tags are removed, never the last one
of a bag, and labels are added where there was none, as many as were removed, or 5 % of them all.
Each method ranks the tags, and ranks the absent labels, by how suspicious they are; its precision
is the share of wrong ones among as many of the first as there are wrong ones. Beside the model of
`unbag check` stands a logistic regression per class on the mean, minimum and maximum of each
feature over the bag, cross-validated on the same folds and ranked by cleanlab's quality scores of
multi-label data. Its penalty is the best of three in hindsight, for each data set and kind of
error. Needs the extra ``bench``.
"""

from time import perf_counter

import numpy as np
from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from measure import machine, save
from unbag import LabelSets, ORLogisticRegression, check_labels
from unbag.cli.check import doubting_settings
from unbag.model_selection import bag_folds
from unbag.settings import Settings
from unbag_reproduce import datasets

DATA = ("msrcv2", "hja-union")
SEEDS = range(5)
SHARE = 0.05
ADDED = ("as many as were removed", "5 % of the absent ones")
#: Each kind of error is looked for among the labels that are tags, or that are none.
TAGGED = {"added": 1, "removed": 0}
PENALTIES = (1.0, 10.0, 100.0)
OURS, PLAIN, RIVAL = "unbag check", "ORLogisticRegression()", "cleanlab, best penalty"
#: The model of `unbag.fit`, which held-out bags calibrate.
CALIBRATED = "default of unbag.fit"


def made_wrong(y, added, rng):
    """Remove some of the tags, and add others where there was none."""
    wrong = y.copy()
    n_errors = round(SHARE * int((y == 1).sum()))
    n_removed = 0
    for b, c in rng.permutation(np.argwhere(y == 1)):
        if n_removed < n_errors and wrong[b].sum() > 1:
            wrong[b, c] = 0
            n_removed += 1
    absent = rng.permutation(np.argwhere(y == 0))
    n_added = n_removed if added == ADDED[0] else round(SHARE * len(absent))
    wrong[tuple(absent[:n_added].T)] = 1
    return wrong


def by_unbag(model, bags, labels, seed):
    """Probabilities that labels are wrong, of shape (n_bags, n_classes)."""
    found = check_labels(model, bags, labels, random_state=seed)
    place_of = {bag: b for b, bag in enumerate(bags.ids.tolist())}
    column_of = {label: c for c, label in enumerate(labels.classes.tolist())}
    p_wrong = np.empty(labels.shape)
    b = [place_of[bag] for bag in found["bag"].to_pylist()]
    c = [column_of[label] for label in found["class"].to_pylist()]
    p_wrong[b, c] = found["p_wrong"].to_numpy()
    return p_wrong


def by_cleanlab(penalty, bags, labels, seed):
    """Minus cleanlab's quality scores of labels, of shape (n_bags, n_classes)."""
    statistics = np.array(
        [np.concatenate([bag.mean(axis=0), bag.min(axis=0), bag.max(axis=0)]) for bag in bags]
    )
    y = labels.indicator
    proba = np.empty(y.shape)
    for train, test in bag_folds(bags, labels, 5, random_state=seed):
        for c, tags in enumerate(y[train].T):
            if tags.min() == tags.max():
                proba[test, c] = tags[0]
                continue
            model = LogisticRegression(C=1 / penalty, max_iter=1000)
            model = make_pipeline(StandardScaler(), model).fit(statistics[train], tags)
            proba[test, c] = model.predict_proba(statistics[test])[:, 1]
    sets = [np.flatnonzero(tags).tolist() for tags in y]
    return -np.asarray(get_label_quality_scores_per_class(sets, proba))


def precision(truth, given, suspicion, tagged):
    """Share of wrong labels among as many of the most suspicious as there are wrong ones."""
    is_checked = given == tagged
    is_wrong = (truth != given)[is_checked]
    first = np.argsort(-suspicion[is_checked], kind="stable")[: is_wrong.sum()]
    return float(is_wrong[first].mean())


def measured(name, added, console):
    """Precisions of each method, one per seed, of added and of removed labels."""
    data = datasets.load(name)
    truth = LabelSets.parse(data.y)
    methods = {
        OURS: lambda *given: by_unbag(doubting_settings().unfitted(), *given),
        PLAIN: lambda *given: by_unbag(ORLogisticRegression(), *given),
        CALIBRATED: lambda *given: by_unbag(Settings().unfitted(), *given),
    }
    methods |= {
        f"cleanlab, penalty {penalty:g}": lambda *given, penalty=penalty: by_cleanlab(
            penalty, *given
        )
        for penalty in PENALTIES
    }
    found = {method: {"added": [], "removed": [], "seconds": []} for method in methods}
    for seed in SEEDS:
        wrong = made_wrong(truth.indicator, added, np.random.default_rng(seed))
        given = LabelSets(wrong, truth.classes)
        for method, suspicion_of in methods.items():
            start = perf_counter()
            suspicion = suspicion_of(data.bags, given, seed)
            found[method]["seconds"].append(perf_counter() - start)
            for kind, tagged in TAGGED.items():
                found[method][kind].append(precision(truth.indicator, wrong, suspicion, tagged))
        console.print(f"{name}, {added}: seed {seed} of {len(SEEDS)}")
    return found


def compared(found, kind):
    """Mean precisions of ours, of a plain model and of the rival; by how much ours is better."""
    rivals = [figures[kind] for name, figures in found.items() if name.startswith("cleanlab")]
    rival = max(rivals, key=np.mean)
    gain = np.subtract(found[OURS][kind], rival)
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return {
        OURS: float(np.mean(found[OURS][kind])),
        PLAIN: float(np.mean(found[PLAIN][kind])),
        CALIBRATED: float(np.mean(found[CALIBRATED][kind])),
        RIVAL: float(np.mean(rival)),
        "gain": float(gain.mean()),
        "standard_error": float(error),
        "better_by_two_standard_errors": bool(gain.mean() > 2 * error),
    }


def main():
    console = Console()
    results = {"machine": machine()}
    for added in ADDED:
        table = Table(title=f"Wrong labels found, {SHARE:.0%} of the tags removed, added {added}")
        for column in ("data", "error", OURS, PLAIN, CALIBRATED, RIVAL, "gain", "standard error"):
            table.add_column(column, justify="left" if column in ("data", "error") else "right")
        for name in DATA:
            if not datasets.is_available(name):
                console.print(f"{name} is not on this machine: left out.")
                continue
            found = measured(name, added, console)
            summary = {kind: compared(found, kind) for kind in TAGGED}
            results.setdefault(added, {})[name] = {"precision": found, "compared": summary}
            for kind, row in summary.items():
                shares = (f"{row[each]:.1%}" for each in (OURS, PLAIN, CALIBRATED, RIVAL))
                points = (f"{100 * row[each]:.1f}" for each in ("gain", "standard_error"))
                table.add_row(name, kind, *shares, *points)
        console.print(table)
    save("check_labels", results, console)


if __name__ == "__main__":
    main()
