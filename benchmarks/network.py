"""Measure the accuracy of the network with default parameters, and the cost of a fit.

    python benchmarks/network.py export letter-carroll --draw 0 --output carroll.npz
    python benchmarks/network.py accuracy carroll.npz --device cuda > accuracy.jsonl
    python benchmarks/network.py cost carroll.npz > cost.jsonl
    python benchmarks/network.py collect accuracy.jsonl cost.jsonl

`export` writes bags, label sets, instance labels and the folds of the experiments; all else reads
nothing but that, so that it runs where little more than torch is installed. `accuracy` prints one
line of JSON per fold: the share of instances that are labelled right in its test bags (inductive);
then one with the mean, and one of a fit to all bags, given their label sets (transductive). `cost`
compares a step of a fit with its matrix products alone, by turns, and says how long a fit is to
take. `collect` writes what the others printed to `benchmarks/results/network.json`.
"""

import argparse
import ast
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import torch

from unbag import Bags
from unbag.torch import ORNetwork
from unbag.torch.training import Trainer

N_FOLDS = 10
RESULTS = Path(__file__).parent / "results" / "network.json"


def export(name, draw, path):
    from unbag_reproduce.data import load, split

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


def share_right(labels, bags):
    return float(np.mean(labels == bags.instance_labels))


# Accuracy


def cross_validate(path, folds, settings):
    """Fit to all folds but one, for each of them, and to all bags."""
    of_data, bags, y, fold = load_exported(path)
    every = np.arange(len(bags))
    # Compile the kernels before timing.
    _, compiling = fitted({**settings, "max_iter": 1}, bags, y)
    records = []
    for k in folds:
        train, test = every[fold != k], every[fold == k]
        model, seconds = fitted(settings, bags[train], y[train])
        held_out = bags[test]
        records.append({
            "inductive": share_right(model.predict_instances(held_out), held_out),
            "held_out_score": model.score(held_out, y[test]),
            "seconds": seconds,
        })  # fmt: skip
        say({**of_data, "fold": k, **records[-1]})
    mean = {name: float(np.mean([record[name] for record in records])) for name in records[0]}
    total = sum(record["seconds"] for record in records)
    say({**of_data, "folds": len(records), **mean, "seconds": total, "first_seconds": compiling})
    model, seconds = fitted(settings, bags, y)
    right = share_right(model.annotate(bags, y), bags)
    say({**of_data, "transductive": right, "seconds": seconds})


def fitted(settings, bags, y):
    started = time.perf_counter()
    model = ORNetwork(**settings).fit(bags, y)
    return model, time.perf_counter() - started


# Cost


class StepsByTurns(Trainer):
    """Alternates steps with their matrix products, and records the time of both."""

    clock = staticmethod(time.perf_counter)

    def __init__(self, network, encoder, bags, *arguments):
        super().__init__(network, encoder, bags, *arguments)
        self.products = MatrixProducts(self.groups, len(bags.X), len(bags.targets))
        self.seconds: dict[str, list[float]] = {"step": [], "products": []}

    def _learn_from(self, *arguments):
        started = self.clock()
        loss = super()._learn_from(*arguments)
        between = self.clock()
        self.products.run()
        self.seconds["step"].append(between - started)
        self.seconds["products"].append(self.clock() - between)
        return loss


class MatrixProducts:
    """The matrix products of a step, and nothing else."""

    def __init__(self, groups, n_rows, n_bags):
        self.triples = []
        for group in groups:
            n_members = group.n_members
            for layer, weight in enumerate(group.weights):
                self._add(n_members, n_rows, *weight.shape[1:], needs_inputs=layer > 0)
            if len(group.context):
                units, _, effect = group.context
                self._add(n_members, n_rows, *units.shape[1:])
                self._add(n_members, n_bags, *effect.shape[1:])

    def _add(self, n_members, n_rows, n_in, n_out, needs_inputs=True):
        shapes = (n_rows, n_in), (n_in, n_out), (n_rows, n_out)
        inputs, weight, outputs = (torch.rand(n_members, *shape) for shape in shapes)
        self.triples.append((inputs, weight, outputs))
        self.triples.append((inputs.mT, outputs, torch.empty_like(weight)))
        if needs_inputs:
            self.triples.append((outputs, weight.mT, torch.empty_like(inputs)))

    @property
    def n_operations(self):
        """Multiplications and additions."""
        return sum(2 * first.numel() * second.shape[2] for first, second, _ in self.triples)

    def run(self):
        """Multiply."""
        for first, second, result in self.triples:
            torch.bmm(first, second, out=result)


def compare_cost(path, n_steps, settings):
    """Print how much longer steps take than their matrix products, in a committee of all parts."""
    import unbag.torch.committee as committee
    import unbag.torch.estimator as estimator

    of_data, bags, y, _ = load_exported(path)
    trainers = []

    def watched(*arguments):
        trainers.append(StepsByTurns(*arguments))
        return trainers[-1]

    unwatched = estimator.Trainer
    try:
        estimator.Trainer = committee.Trainer = watched
        ORNetwork(**{**settings, "max_iter": n_steps}).fit(bags, y)
    finally:
        estimator.Trainer = committee.Trainer = unwatched

    def total(name, of_steps):
        # Neighbouring steps ran under the same load; the first one compiles.
        return sum(of_steps(each.seconds[name][1:]) * each.n_steps for each in trainers)

    share = ORNetwork().max_iter / n_steps
    operations = sum(each.products.n_operations * each.n_steps for each in trainers)
    best, products = (total(name, np.min) for name in ("step", "products"))
    say({
        **of_data,
        "fit_teraflop": operations * share / 1e12,
        "gigaflops_of_products": operations / products / 1e9,
        "ratio_of_best": best / products,
        "ratio_of_medians": float(total("step", np.median) / total("products", np.median)),
        "fit_seconds_at_best": best * share,
    })  # fmt: skip


# What is printed


def machine(device):
    on_gpu = torch.cuda.is_available() and device != "cpu"
    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), model)
    return {
        "machine": torch.cuda.get_device_name() if on_gpu else model,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def say(record):
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in record.items()}
    print(json.dumps(rounded), flush=True)


def collect(paths):
    """Write all records, each run's under the machine that its first line names."""
    runs = {}
    for path in paths:
        header, *records = [json.loads(line) for line in Path(path).read_text().splitlines()]
        runs.setdefault(json.dumps(header), []).extend(records)
    lines = []
    for header, records in runs.items():
        listed = ",\n".join(f"    {json.dumps(record)}" for record in records)
        lines.append(f'  {header[:-1]}, "records": [\n{listed}\n  ]}}')
    RESULTS.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def folds_in(text):
    """Read 3, or 0..9."""
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def setting(text):
    name, _, value = text.partition("=")
    return name, ast.literal_eval(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    exporting = commands.add_parser("export", help="write a data set of the experiments to a file")
    exporting.add_argument("name")
    exporting.add_argument("--draw", type=int, default=0, help="of the letters")
    exporting.add_argument("--output", required=True)
    for command in ("accuracy", "cost"):
        measuring = commands.add_parser(command)
        measuring.add_argument("files", nargs="+", help="written by export")
        measuring.add_argument("--device", default="auto" if command == "accuracy" else "cpu")
        measuring.add_argument(
            "--set", type=setting, action="append", default=[], metavar="NAME=VALUE",
            help="a parameter of the network, such as n_members=4",
        )  # fmt: skip
    commands.choices["accuracy"].add_argument("--folds", type=folds_in, default=range(N_FOLDS))
    costing = commands.choices["cost"]
    costing.add_argument("--steps", type=int, default=30)
    costing.add_argument(
        "--busy", action="store_true",
        help="one thread, by processor time: for machines with other things to do",
    )  # fmt: skip
    commands.add_parser("collect").add_argument("files", nargs="+", help="what was printed")
    given = parser.parse_args()
    if given.command == "export":
        export(given.name, given.draw, given.output)
    elif given.command == "collect":
        collect(given.files)
    else:
        settings = {"random_state": 0, "device": given.device, **dict(given.set)}
        if given.command == "cost" and given.busy:
            torch.set_num_threads(1)
            StepsByTurns.clock = staticmethod(time.process_time)
        say({**machine(given.device), "settings": dict(given.set)})
        for path in given.files:
            if given.command == "accuracy":
                cross_validate(path, given.folds, settings)
            else:
                compare_cost(path, given.steps, settings)


if __name__ == "__main__":
    main()
