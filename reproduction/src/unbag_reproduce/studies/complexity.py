"""What one E-step costs, counted and timed: Table 9 of the paper.

The paper counts the steps of its two algorithms. Ours needs at most 2^k n of them, and visits
only those sets of labels that matter: how many these are depends on the priors, so they are
counted at W = 0, where all classes are alike, and at the fitted model.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy.special import log_softmax

from unbag.union.adaptive import adaptive
from unbag_reproduce import (
    STYLES,
    Figure,
    Plan,
    Results,
    Study,
    Table,
    Unit,
    Values,
    beside,
    comparison_table,
    curve_figure,
    levels,
    load,
    panels,
    published_figure,
)
from unbag_reproduce.e_steps import (
    PARTS,
    count_unit,
    e_step_unit,
    fit_profile,
    fitted_model,
    log_priors,
    random_bags_time,
)

TOLERANCE = 1e-9
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
    "adaptive_uniform": "adaptive, W = 0",
    "adaptive_fitted": "adaptive, fitted",
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
#: Colour and hatch of each bar, the same wherever it stands for the same method.
BARS = {
    **dict.fromkeys(("forward: k 2ᵏ n²", "forward"), (0, "")),
    **dict.fromkeys(("FAST: k 2ᵏ n", "FAST"), (1, "//")),
    **dict.fromkeys(("priors: n C d", "priors"), (7, "")),
    **dict.fromkeys(("dense: 2ᵏ n", "dense"), (3, "xx")),
    **dict.fromkeys(("adaptive, fitted", "adaptive"), (5, "--")),
    "adaptive, W = 0": (6, "oo"),
    "chain": (2, ".."),
    "auto": (4, ""),
}


def visited_sets(share: np.ndarray, tolerance: float = TOLERANCE) -> int:
    """Count the sets of missing labels that adaptive inference visits in one bag.

    Adaptive inference gives up after a given number of sets. The smallest number with which it
    does not is what it visits, repeated walks included.

    Parameters
    ----------
    share : ndarray of shape (n_labels, n_instances)
        Priors of the labels of the bag; those of an instance sum to one.
    tolerance : float
        Error bound to reach.

    Examples
    --------
    Two labels, each of them surely shown by an instance: nothing can be missing, and the empty
    set is all there is to visit.

    >>> visited_sets(np.array([[1.0, 0.0], [0.0, 1.0]]))
    1

    Undecided instances: no label missing, the first, the second; both is impossible.

    >>> visited_sets(np.full((2, 2), 0.5))
    3
    """
    n_instances = share.shape[1]
    share = np.ascontiguousarray(share)
    posterior, rest = np.empty_like(share), np.empty(n_instances)

    def gives_up(most):
        return adaptive(share, np.zeros(n_instances), tolerance, most, posterior, rest)[2]

    enough = 1
    while gives_up(enough):
        enough *= 2
    return bisect_left(range(enough), True, lo=enough // 2 + 1, key=lambda most: not gives_up(most))


def adaptive_steps(log_prior: np.ndarray, offsets: np.ndarray, y: np.ndarray) -> int:
    """Sum up, over bags, the instances times the sets that adaptive inference visits.

    Bags of fewer instances than labels, and those without labels, need no visit.

    Parameters
    ----------
    log_prior : ndarray of shape (n_instances, n_classes)
    offsets : ndarray of int of shape (n_bags + 1,)
    y : ndarray of shape (n_bags, n_classes)
        1 for the labels of a bag, else 0.

    Returns
    -------
    int
    """
    steps = 0
    for b, labels in enumerate(y == 1):
        rows = log_prior[offsets[b] : offsets[b + 1], labels]
        if 0 < rows.shape[1] <= rows.shape[0]:
            steps += rows.shape[0] * visited_sets(np.exp(log_softmax(rows, axis=1)).T)
    return steps


def count_visits(unit: Unit) -> dict[str, int]:
    """Count what adaptive inference visits in one E-step, at W = 0 or at the fitted model."""
    bags, y = load(unit.data, unit.draw)
    if unit.condition["fitted"]:
        log_prior = log_priors(fitted_model(unit.data, unit.draw, unit.seed), bags.X)
    else:
        log_prior = np.zeros((bags.n_instances, y.shape[1]))
    return {"steps": adaptive_steps(log_prior, bags.offsets, y)}


def visit_unit(plan: Plan, name: str, draw: int, fitted: bool) -> Unit:
    """Return the unit of work that counts visits."""
    return Unit(count_visits, name, draw, condition={"fitted": fitted}, seed=plan.seed)


def size_unit(plan: Plan, method: str, n_labels: int, n_instances: int) -> Unit:
    """Return the unit of work that times bags of one size."""
    condition = {"n_bags": N_BAGS, "n_instances": n_instances, "n_labels": n_labels}
    return Unit(random_bags_time, method=method, condition=condition, seed=plan.seed)


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
    return Unit(fit_profile, name, plan.seed, method, fold=0, n_folds=plan.n_folds, seed=plan.seed)


def units(plan: Plan, ledger: Results | None = None) -> list[Unit]:
    """List counts and timed E-steps of each data set and draw, and times of made bags."""
    return [
        unit
        for name in plan.data
        for unit in [
            count_unit(plan, name),
            *(visit_unit(plan, name, draw, fitted) for draw in plan.draws(name)
              for fitted in (False, True)),
            *(e_step_unit(plan, name, draw, method) for draw in plan.draws(name)
              for method in TIMED),
            *(profile_unit(plan, name, method) for method in OVER_N),
        ]
    ] + size_units(plan)  # fmt: skip


def counts_of(plan: Plan, ledger: Results, name: str) -> dict[str, float]:
    """Return every count of a data set, those of visits as means over draws."""
    visits = {
        key: [ledger[visit_unit(plan, name, draw, fitted)]["steps"] for draw in plan.draws(name)]
        for key, fitted in (("adaptive_uniform", False), ("adaptive_fitted", True))
    }
    means = {key: float(np.mean(steps)) for key, steps in visits.items()}
    return {**ledger[count_unit(plan, name)], **means}


def count_table(plan: Plan, ledger: Results) -> Table:
    """Make the table of counted steps."""
    records = [
        {
            "data": name, "steps": COUNTED[key],
            **beside(found[key], published_figure("complexity", name).get(key)),
        }
        for name in plan.data
        for found in [counts_of(plan, ledger, name)]
        for key in COUNTED
    ]  # fmt: skip
    return comparison_table(
        "complexity",
        "Steps of one E-step, summed over bags",
        records,
        [
            "n instances and k labels in a bag, C classes, d features. In brackets: the difference "
            "to the published count. Adaptive: instances times sets of missing labels that are "
            f"visited for an error bound of {TOLERANCE:g}, repeated walks included. Fitted: by the "
            "published algorithm, 50 EM iterations, to all bags. "
            f"{plan.describe(folds=False)}."
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
            "One thread, the shortest of many trials; all methods are compiled, the published ones "
            "(forward, FAST) too. \"Priors\" is the product of features and weights, which every "
            "method needs first. \"Auto\" is what unbag uses: for each bag the cheapest method "
            f"that certifies its answer. Bags that FAST could not certify: {uncertified}. "
            f"{plan.describe(folds=False)}."
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
            "Of MLR as published, 50 steps, fitted to the training bags of the first fold on one "
            "thread, with timers in its parts; the shortest of several fits. The E-step is the "
            "logits, the priors and the posteriors; the gradient, their product with the features. "
            "The line search has another product, and the lower bound at each step that it tries. "
            "A share, so that other work on the machine hardly matters."
        ],
        row=lambda record: f"{record['data']}, {record['inference']}",
        column="part",
        write=lambda record: f"{record['percent']:.0f}",
    )


def growth(n_instances: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the exponent at which time grows with the number of instances, where bags are large.

    Examples
    --------
    >>> round(growth([8, 64, 128, 256, 512], [9.0, 1.0, 4.0, 16.0, 64.0]), 3)
    2.0
    """
    last = max(len(n_instances) // 2, 2)
    return float(np.polyfit(np.log(n_instances[-last:]), np.log(seconds[-last:]), 1)[0])


def size_table(plan: Plan, ledger: Results) -> Table:
    """Make the table of the time of a bag over the number of its instances."""
    sizes = N_INSTANCES[plan.level]
    records, exponents = [], []
    for n_labels, (method, title) in product(N_LABELS, OVER_N.items()):
        seconds = [ledger[size_unit(plan, method, n_labels, n)]["seconds"] for n in sizes]
        exponents.append(f"{title}, {n_labels} labels {growth(sizes, seconds):.2f}")
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
            "trials, shared by the bags. The paper's FAST is linear in the number of instances "
            "where the forward algorithm is quadratic. Exponents that time grows with, over the "
            f"larger half of the sizes: {'; '.join(exponents)}."
        ],
        row=lambda record: f"{record['labels']}, {record['method']}",
        column=lambda record: str(record["instances"]),
        write=lambda record: f"{record['microseconds']:.3g}",
    )


def draw_bars(records_of_panels: dict[str, tuple[str, str, list[Values]]]) -> object:
    """Draw grouped bars on logarithmic scales.

    Parameters
    ----------
    records_of_panels : dict of str to (str, str, list of dict)
        What the y-axis shows, to the entries of its records that hold the title of a bar and its
        height, and the records.

    Returns
    -------
    matplotlib figure
    """
    figure, axes = panels(len(records_of_panels), n_columns=1, size=(9.2, 3.6))
    for axis, (label, (bar, height, records)) in zip(axes, records_of_panels.items(), strict=True):
        titles, groups = (
            list(dict.fromkeys(each[key] for each in records)) for key in (bar, "data")
        )
        width = 0.85 / len(titles)
        for place, title in enumerate(titles):
            colour, hatch = BARS[title]
            axis.bar(
                np.arange(len(groups)) + (place - (len(titles) - 1) / 2) * width,
                [record[height] for record in records if record[bar] == title],
                width, label=title, color=STYLES[colour][0], hatch=hatch, edgecolor="white",
            )  # fmt: skip
        axis.set(yscale="log", ylabel=label)
        smallest = min(record[height] for record in records)
        axis.set_ylim(bottom=10.0 ** np.floor(np.log10(smallest)))
        axis.set_xticks(range(len(groups)), groups)
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make tables of counts and times, a figure of both, and one of times over bag sizes."""
    counts, times = count_table(plan, ledger), time_table(plan, ledger)
    bars = {
        "steps": ("steps", "ours", counts.records),
        "milliseconds": ("method", "milliseconds", times.records),
    }
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
    figure = Figure("complexity", "Cost of one E-step", lambda: draw_bars(bars))
    return [counts, times, share_table(plan, ledger), over_n, figure, curves]


STUDY = Study(
    "complexity",
    "what one E-step costs, counted as in the paper, visited by unbag, and timed",
    units=units,
    present=present,
    drawn=("complexity-size",),
    timed=True,
)
