"""What one E-step costs, counted and timed: Table 9 of the paper.

The paper counts the steps of its two algorithms. Ours needs at most 2^k n of them, and visits
only those sets of labels that matter: how many these are depends on the priors, so they are
counted at W = 0, where all classes are alike, and at the fitted model.
"""

import numpy as np
from scipy.special import log_softmax

from unbag.union.adaptive import adaptive

from .data import load
from .e_steps import count_unit, e_step_unit, fitted_model, log_priors
from .experiment import Experiment
from .figures import STYLES, Figure, panels
from .published import published_figure
from .tables import Table

TOLERANCE = 1e-9
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
    "prior": (7, ""),
    "forward": (0, ""),
    "substitution": (1, "//"),
    "fast": (1, "//"),
    "chain": (2, ".."),
    "dense": (3, "xx"),
    "adaptive_uniform": (6, "oo"),
    "adaptive_fitted": (5, "--"),
    "adaptive": (5, "--"),
    "auto": (4, ""),
}


def visited_sets(share, tolerance=TOLERANCE):
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
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if gives_up(middle):
            too_few = middle
        else:
            enough = middle
    return enough


def adaptive_steps(log_prior, offsets, y):
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


def count_visits(data, draw, fitted, seed):
    """Count what adaptive inference visits in one E-step, at W = 0 or at the fitted model."""
    bags, y = load(data, draw)
    if fitted:
        log_prior = log_priors(fitted_model(data, draw, seed), bags.X)
    else:
        log_prior = np.zeros((bags.n_instances, y.shape[1]))
    return {"steps": adaptive_steps(log_prior, bags.offsets, y)}


def visit_unit(plan, name, draw, fitted):
    """Name the unit of work that counts visits."""
    return {
        "task": "count_visits", "data": name, "draw": draw, "fitted": fitted, "seed": plan.seed,
    }  # fmt: skip


def units(plan, ledger):
    """List the counts of each data set, and a timed E-step for each draw and method."""
    return [
        unit
        for name in plan.data
        for unit in [
            count_unit(plan, name),
            *(visit_unit(plan, name, draw, fitted) for draw in plan.draws(name)
              for fitted in (False, True)),
            *(e_step_unit(plan, name, draw, method) for draw in plan.draws(name)
              for method in TIMED),
        ]
    ]  # fmt: skip


def counts_of(plan, ledger, name):
    """Return every count of a data set, those of visits as means over draws."""
    counts = dict(ledger[count_unit(plan, name)])
    for key, fitted in (("adaptive_uniform", False), ("adaptive_fitted", True)):
        counts[key] = float(
            np.mean(
                [ledger[visit_unit(plan, name, draw, fitted)]["steps"] for draw in plan.draws(name)]
            )
        )
    return counts


def times_of(plan, ledger, name):
    """Return the milliseconds of one E-step by each method, and the bags it did not certify."""
    found = {
        method: [ledger[e_step_unit(plan, name, draw, method)] for draw in plan.draws(name)]
        for method in TIMED
    }
    times = {m: 1e3 * float(np.mean([each["seconds"] for each in r])) for m, r in found.items()}
    return times, {m: sum(each["uncertified"] for each in r) for m, r in found.items()}


def count_table(plan, counts):
    """Make the table of counted steps."""
    body, records = [], []
    for name, found in counts.items():
        row = [name]
        for key in COUNTED:
            ours, known = found[key], published_figure("complexity", name).get(key)
            row.append(f"{ours:,.0f}" if known is None else f"{ours:,} ({ours - known:+,})")
            records.append(
                {
                    "data": name, "steps": COUNTED[key], "ours": ours, "published": known,
                    "difference": None if known is None else ours - known,
                }
            )  # fmt: skip
        body.append(row)
    return Table(
        "complexity",
        "Steps of one E-step, summed over bags",
        ["", *COUNTED.values()],
        body,
        records,
        [
            "n instances and k labels in a bag, C classes, d features. In brackets: the difference "
            "to the published count. Adaptive: instances times sets of missing labels that are "
            f"visited for an error bound of {TOLERANCE:g}, repeated walks included. Fitted: by the "
            "published algorithm, 50 EM iterations, to all bags. "
            f"{plan.describe(folds=False)}."
        ],
    )


def time_table(plan, ledger):
    """Make the table of measured times, and return the times too."""
    body, records, times, uncertified = [], [], {}, 0
    for name in plan.data:
        times[name], flagged = times_of(plan, ledger, name)
        uncertified += flagged["fast"]
        body.append([name, *(f"{times[name][method]:.3g}" for method in TIMED)])
        records += [
            {
                "data": name, "method": TIMED[method], "milliseconds": times[name][method],
                "uncertified": flagged[method],
            }
            for method in TIMED
        ]  # fmt: skip
    table = Table(
        "complexity-time",
        "Time of one E-step over all bags (ms), at the fitted model",
        ["", *TIMED.values()],
        body,
        records,
        [
            "One thread, the shortest of many trials; all methods are compiled, the published ones "
            "(forward, FAST) too. \"Priors\" is the product of features and weights, which every "
            "method needs first. \"Auto\" is what unbag uses: for each bag the cheapest method "
            f"that certifies its answer. Bags that FAST could not certify: {uncertified}. "
            f"{plan.describe(folds=False)}."
        ],
    )  # fmt: skip
    return table, times


def draw_bars(panels_of_bars):
    """Draw grouped bars on logarithmic scales.

    Parameters
    ----------
    panels_of_bars : dict of str to (dict of str to str, dict of str to (dict of str to float))
        What the y-axis shows, to the titles of the bars and, by data set, their heights.

    Returns
    -------
    matplotlib figure
    """
    figure, axes = panels(len(panels_of_bars), n_columns=1, size=(9.2, 3.6))
    for axis, (label, (titles, groups)) in zip(axes, panels_of_bars.items(), strict=True):
        width = 0.85 / len(titles)
        for place, (key, title) in enumerate(titles.items()):
            colour, hatch = BARS[key]
            axis.bar(
                np.arange(len(groups)) + (place - (len(titles) - 1) / 2) * width,
                [group[key] for group in groups.values()],
                width, label=title, color=STYLES[colour][0], hatch=hatch, edgecolor="white",
            )  # fmt: skip
        smallest = min(group[key] for group in groups.values() for key in titles)
        axis.set_yscale("log")
        axis.set_ylim(bottom=10.0 ** np.floor(np.log10(smallest)))
        axis.set_ylabel(label)
        axis.set_xticks(range(len(groups)), list(groups))
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def present(plan, ledger):
    """Make a table of counts, one of times, and a figure of both."""
    counts = {name: counts_of(plan, ledger, name) for name in plan.data}
    timed, times = time_table(plan, ledger)
    bars = {"steps": (COUNTED, counts), "milliseconds": (TIMED, times)}
    figure = Figure("complexity", "Cost of one E-step", lambda: draw_bars(bars))
    return [count_table(plan, counts), timed, figure]


EXPERIMENT = Experiment(
    "complexity",
    "what one E-step costs, counted as in the paper, visited by unbag, and timed",
    units=units,
    present=present,
    timed=True,
)
