"""What networks reach on data that had no part in their defaults: from a benchmark beside results.

``benchmarks/committee.py`` fits models to made families and digits, and keeps what they reach.
"""

import json
from pathlib import Path

import numpy as np

from .plan import PAPER_DATA
from .unit import Values

#: Where the repository keeps what that benchmark has found.
KEPT = Path("benchmarks/results/committee.jsonl")
METHODS = {
    "linear": "linear", "kernel": "kernel", "network": "networks of one kind",
    "committee": "committee",
}  # fmt: skip


def other_data(out: Path) -> dict[str, dict[str, tuple[float, int]]]:
    """Read the mean accuracy on new bags, and its number of draws, by data set and model.

    Parameters
    ----------
    out : path
        A folder of results, ``docs/results`` of a repository.
    """
    path = out.resolve().parents[1] / KEPT
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows: list[Values] = [json.loads(line) for line in lines]
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["data"] not in PAPER_DATA:
            found.setdefault(row["data"], {}).setdefault(row["method"], []).append(row["new"])
    return {
        name: {method: (float(np.mean(each)), len(each)) for method, each in methods.items()}
        for name, methods in found.items()
    }


def other_data_section(out: Path) -> str:
    """Write what models reach on other data, in Markdown; empty if nothing was kept."""
    found = other_data(out)
    if not found:
        return ""
    ahead = [
        name
        for name, each in found.items()
        if "network" in each
        and each["network"][0] > max(each[m][0] for m in ("linear", "kernel") if m in each)
    ]
    rows = [
        f"| {name} | "
        + " | ".join(
            f"{each[method][0]:.1f} ({each[method][1]})" if method in each else ""
            for method in METHODS
        )
        + " |"
        for name, each in sorted(found.items())
    ]
    return "\n".join(
        [
            "## Other data",
            "",
            "Instance accuracy (%) on new bags of made families and of digits, at the defaults of "
            "each model; in brackets, the number of draws. One setting of the committee, how equal "
            "the weights of its parts are, was chosen partly on these families. Words are made "
            "label sets that recur: the first number is that of the label sets, the second that of "
            "the bags. By their means, untested, networks of one kind are ahead of the linear "
            f"model and the kernel on {len(ahead)} of {len(found)} of them. "
            "`python benchmarks/committee.py` makes the table's figures; committees are those of "
            "the version that made them.",
            "",
            f"| | {' | '.join(METHODS.values())} |",
            f"|---|{'---:|' * len(METHODS)}",
            *rows,
            "",
        ]
    )
