"""Compare the time of fits in the working tree with another commit, in alternation.

    python benchmarks/against.py [COMMIT]

By default with the last commit, which shows what uncommitted changes cost. Each side runs in its
own process. If UNBAG_DATA names a folder with the paper's data, the 10 folds of HJA are timed,
otherwise those of the digits.
"""

import argparse
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path
from statistics import median

from rich.console import Console

from measure import answer_of, machine, save

REPOSITORY = Path(__file__).parents[1]
ROUNDS = 5

# Old commits do not have this file, so it contains the code that they run.
WORK = """
import json, os, warnings
from pathlib import Path
from time import perf_counter
import numpy as np
from sklearn.model_selection import KFold, cross_val_score
from unbag import Bags, ORLogisticRegression
from unbag.datasets import load_digit_bags
from unbag.model_selection import inductive_accuracy

warnings.simplefilter("ignore")
path = Path(os.environ.get("UNBAG_DATA", "not set")) / "hja_union.npz"
if path.exists():
    with np.load(path, allow_pickle=True) as file:
        bags = Bags(file["X"], file["offsets"], instance_labels=file["instance_labels"])
        y = file["bag_labels"].astype(int)
else:
    digits = load_digit_bags()
    bags, y = digits.bags, digits.y
folds = KFold(10, shuffle=True, random_state=0)
cross_val_score(ORLogisticRegression(max_iter=1), bags, y, cv=folds, scoring=inductive_accuracy)
start = perf_counter()
scores = cross_val_score(ORLogisticRegression(), bags, y, cv=folds, scoring=inductive_accuracy)
print(json.dumps({"seconds": perf_counter() - start, "accuracy": float(scores.mean())}))
"""


def export(commit, folder):
    """Write the sources of a commit into a folder."""
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=REPOSITORY, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return Path(folder) / "src"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD")
    commit = parser.parse_args().commit
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        sides = {"before": export(commit, folder), "now": REPOSITORY / "src"}
        runs = {side: [] for side in sides}
        for _ in range(ROUNDS):
            for side, sources in sides.items():
                runs[side].append(answer_of(WORK, sources))
    seconds = {side: median(run["seconds"] for run in runs[side]) for side in sides}
    ratio = seconds["now"] / seconds["before"]
    console.print(
        f"10 folds, default settings: {seconds['now']:.2f} s, at {commit} "
        f"{seconds['before']:.2f} s: {ratio:.2f} times as long"
    )
    save("against", {"machine": machine(), "commit": commit, **seconds, "ratio": ratio}, console)


if __name__ == "__main__":
    main()
