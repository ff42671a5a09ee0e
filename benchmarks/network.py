"""Cross-validate the network on data sets that lie in files of their own.

    python benchmarks/network.py --export letter-carroll --draw 0 --output carroll.npz
    python benchmarks/network.py --data-set carroll.npz --folds 0..9 --device cuda

The first command writes bags, label sets, instance labels and the folds of the experiments; the
second reads nothing else, so that it runs where little more than torch is installed. It prints one
line of JSON per fold: accuracy on the instances of its test bags (inductive) and on those of its
training bags, given their label sets (transductive); then one with the means, and one of a fit to
all bags.
"""

import argparse
import ast
import json
import time

import numpy as np
import torch

from unbag import Bags
from unbag.torch import ORNetwork

N_FOLDS = 10


def export(name, draw, path):
    from unbag.experiments.data import load, split

    bags, y = load(name, draw)
    fold = np.empty(len(bags), dtype=int)
    for k in range(N_FOLDS):
        fold[split(len(bags), N_FOLDS, k, 0)[1]] = k
    np.savez(path, name=name, draw=draw, X=bags.X, offsets=bags.offsets, y=np.asarray(y), fold=fold,
             instance_labels=bags.instance_labels)  # fmt: skip


def load_exported(path):
    with np.load(path) as file:
        data = {name: file[name] for name in file.files}
    bags = Bags(data["X"], data["offsets"], instance_labels=data["instance_labels"])
    return {"data": str(data["name"]), "draw": int(data["draw"])}, bags, data["y"], data["fold"]


def told_right(said, bags):
    return float(np.mean(said == bags.instance_labels))


def fit_and_measure(settings, bags, y, train, test):
    started = time.perf_counter()
    model = ORNetwork(**settings).fit(bags[train], y[train])
    seconds = time.perf_counter() - started
    measured = {
        "transductive": told_right(model.annotate(bags[train], y[train]), bags[train]),
        "log_likelihood_per_training_bag": model.log_likelihood_ / len(train),
        "seconds": seconds,
    }
    if len(test):
        held_out = bags[test]
        measured["inductive"] = told_right(model.predict_instances(held_out), held_out)
        measured["held_out_score"] = model.score(held_out, y[test])
    return measured


def say(record):
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in record.items()}
    print(json.dumps(rounded), flush=True)


def cross_validate(path, folds, settings):
    named, bags, y, fold = load_exported(path)
    every = np.arange(len(bags))
    records = []
    for k in folds:
        records.append(fit_and_measure(settings, bags, y, every[fold != k], every[fold == k]))
        say({**named, "fold": k, **records[-1]})
    means = {name: float(np.mean([record[name] for record in records])) for name in records[0]}
    say({**named, "fold": "mean", **means})
    say({**named, "fold": "none", **fit_and_measure(settings, bags, y, every, every[:0])})


def folds_in(text):
    """Read 3, or 0..9."""
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def setting(text):
    name, _, value = text.partition("=")
    return name, ast.literal_eval(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--export", metavar="NAME", help="a data set of the experiments")
    parser.add_argument("--draw", type=int, default=0, help="of the letters")
    parser.add_argument("--output", help="the file that --export writes")
    parser.add_argument("--data-set", action="append", default=[], help="an exported file")
    parser.add_argument("--folds", type=folds_in, default=range(N_FOLDS))
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--set", type=setting, action="append", default=[], metavar="NAME=VALUE",
        help="a parameter of the network, such as n_members=4",
    )  # fmt: skip
    given = parser.parse_args()
    if given.export:
        export(given.export, given.draw, given.output)
    settings = {"random_state": 0, "device": given.device, **dict(given.set)}
    if given.data_set:
        on_gpu = torch.cuda.is_available() and given.device != "cpu"
        machine = torch.cuda.get_device_name() if on_gpu else f"{torch.get_num_threads()} threads"
        say({"torch": torch.__version__, "machine": machine, "settings": str(dict(given.set))})
    for path in given.data_set:
        cross_validate(path, given.folds, settings)


if __name__ == "__main__":
    main()
