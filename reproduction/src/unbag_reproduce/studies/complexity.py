"""The cost of one E-step, counted and timed: Table 9 of the paper.

The paper counts the steps of its two algorithms. Ours needs at most 2^k n of them.
"""

from itertools import product

import numpy as np

from unbag_reproduce.e_steps import (
    PARTS,
    count_unit,
    e_step_unit,
    profile_fit,
    time_random_bags,
)
from unbag_reproduce.figures import Figure, curve_figure
from unbag_reproduce.ledger import Results
from unbag_reproduce.methods import levels
from unbag_reproduce.plan import Plan, Study
from unbag_reproduce.published import published_figure
from unbag_reproduce.tables import Table, beside, comparison_table
from unbag_reproduce.unit import Unit

#: Bags of these sizes, so many of each, for the time over the number of instances.
N_INSTANCES = levels([8, 16, 32, 64, 128, 256, 512], quick=[8, 32])
N_LABELS = (2, 4, 6)
N_BAGS = 20
OVER_N = {"forward": "forward", "fast": "FAST", "auto": "unbag"}
COUNTED = {
    "forward": "forward: k 2ᵏ n²",
    "substitution": "FAST: k 2ᵏ n",
    "prior": "priors: n C d",
    "dense": "dense: 2ᵏ n",
}
TIMED = {
    "prior": "priors",
    "forward": "forward",
    "fast": "FAST",
    "chain": "chain",
    "dense": "dense",
    "adaptive": "adaptive",
    "auto": "auto",
}


def size_unit(plan: Plan, method: str, n_labels: int, n_instances: int) -> Unit:
    """Return the unit of work that times bags of one size."""
    condition = {"n_bags": N_BAGS, "n_instances": n_instances, "n_labels": n_labels}
    return Unit(time_random_bags, method=method, condition=condition, seed=plan.seed)


def size_units(plan: Plan) -> list[Unit]:
    """List the times of bags of all sizes."""
    return [
        size_unit(plan, method, n_labels, n_instances)
        for method in OVER_N
        for n_labels in N_LABELS
        for n_instances in N_INSTANCES[plan.level]
    ]


def profile_unit(plan: Plan, name: str, method: str) -> Unit:
    """Return the unit of work that says in which parts of a fit its time goes."""
    return Unit(profile_fit, name, plan.seed, method, fold=0, n_folds=plan.n_folds, seed=plan.seed)


def units(plan: Plan, ledger: Results | None = None) -> list[Unit]:
    """List counts and timed E-steps of each data set and draw, and times of synthetic bags."""
    return [
        unit
        for name in plan.data
        for unit in [
            count_unit(plan, name),
            *(e_step_unit(plan, name, draw, method) for draw in plan.draws(name)
              for method in TIMED),
            *(profile_unit(plan, name, method) for method in OVER_N),
        ]
    ] + size_units(plan)  # fmt: skip


def count_table(plan: Plan, ledger: Results) -> Table:
    """Make the table of counted steps."""
    records = [
        {
            "data": name, "steps": COUNTED[key],
            **beside(found[key], published_figure("complexity", name).get(key)),
        }
        for name in plan.data
        for found in [ledger[count_unit(plan, name)]]
        for key in COUNTED
    ]  # fmt: skip
    return comparison_table(
        "complexity",
        "Steps of one E-step, summed over bags",
        records,
        [
            "n instances and k labels in a bag, C classes, d features. In brackets: the difference "
            "to the published count."
        ],
        row="data",
        column="steps",
        write=lambda record: (
            f"{record['ours']:,.0f}"
            if record["published"] is None
            else f"{record['ours']:,} ({record['difference']:+,})"
        ),
    )


def time_table(plan: Plan, ledger: Results) -> Table:
    """Make the table of measured times."""
    records = []
    for name in plan.data:
        for method, title in TIMED.items():
            found = [ledger[e_step_unit(plan, name, draw, method)] for draw in plan.draws(name)]
            records.append(
                {
                    "data": name, "method": title,
                    "milliseconds": 1e3 * float(np.mean([each["seconds"] for each in found])),
                    "uncertified": sum(each["uncertified"] for each in found),
                }
            )  # fmt: skip
    uncertified = sum(each["uncertified"] for each in records if each["method"] == TIMED["fast"])
    return comparison_table(
        "complexity-time",
        "Time of one E-step over all bags (ms), at the fitted model",
        records,
        [
            "One thread, the shortest of many trials; all methods are compiled. *Priors*: the "
            "product of features and weights, which every method needs first. *Auto*: for each bag "
            "the cheapest that certifies its answer. Bags that FAST could not certify: "
            f"{uncertified}."
        ],
        row="data",
        column="method",
        write=lambda record: f"{record['milliseconds']:.3g}",
    )  # fmt: skip


def share_table(plan: Plan, ledger: Results) -> Table:
    """Make the table of the parts of a fit that its time goes to."""
    records = []
    for name, (method, title) in product(plan.data, OVER_N.items()):
        found = ledger[profile_unit(plan, name, method)]
        seconds = {part: found[f"{part} seconds"] for part in PARTS}
        total = sum(seconds.values())
        records += [
            {
                "data": name, "inference": title, "part": part, "percent": 100 * each / total,
                "seconds": each,
            }
            for part, each in seconds.items()
        ]  # fmt: skip
    return comparison_table(
        "complexity-share",
        "Share of a fit's time (%) in each of its parts",
        records,
        [
            "MLR as published, 50 steps on the training bags of the first fold, one thread. "
            "E-step: logits, priors and posteriors. Gradient: their product with the features. "
            "Line search: another product, and the lower bound at each step that it tries."
        ],
        row=lambda record: f"{record['data']}, {record['inference']}",
        column="part",
        write=lambda record: f"{record['percent']:.0f}",
    )


def size_table(plan: Plan, ledger: Results) -> Table:
    """Make the table of the time of a bag over the number of its instances."""
    sizes = N_INSTANCES[plan.level]
    records = []
    for n_labels, (method, title) in product(N_LABELS, OVER_N.items()):
        seconds = [ledger[size_unit(plan, method, n_labels, n)]["seconds"] for n in sizes]
        records += [
            {
                "labels": f"{n_labels} labels", "method": title, "instances": n,
                "microseconds": 1e6 * each,
            }
            for n, each in zip(sizes, seconds, strict=True)
        ]  # fmt: skip
    return comparison_table(
        "complexity-size",
        "Time of one bag (µs) over the number of its instances",
        records,
        [
            f"{N_BAGS} bags of each size, with normal logits; one thread, the shortest of many "
            "trials."
        ],
        row=lambda record: f"{record['labels']}, {record['method']}",
        column=lambda record: str(record["instances"]),
        write=lambda record: f"{record['microseconds']:.3g}",
    )


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make tables of counts and times, and a figure of times over bag sizes."""
    over_n = size_table(plan, ledger)
    curves = curve_figure(
        "complexity-size",
        "Time of a bag over the number of its instances",
        over_n.records,
        line="method",
        x="instances",
        x_label="instances in a bag",
        y_label="µs per bag",
        panel="labels",
        y="microseconds",
        logarithmic=True,
        y_logarithmic=True,
    )
    tables = (table(plan, ledger) for table in (count_table, time_table, share_table))
    return [*tables, over_n, curves]


STUDY = Study(
    "complexity",
    "the cost of one E-step, counted as in the paper, and timed",
    units=units,
    present=present,
    listed=("complexity-size",),
    timed=True,
)
