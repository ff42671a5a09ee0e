"""How far the kernels err when the priors are confident: ours, for what the paper leaves open.

The published forward and substitution algorithm (FAST) takes an instance out of a union again by
subtraction and division. Here every kernel answers random bags, whose logits are normal with a
growing scale, and is compared with a sum over all labellings of the bag. All labels of a bag are
required. An answer is *wrong* if a posterior probability errs by more than `WRONG`, and *flagged*
if its error bound, infinite or not, is above that too: a wrong answer must be flagged.
"""

from dataclasses import replace
from itertools import product

import numpy as np

from unbag.paper.fast import infer_as_published
from unbag.union import UnionProblem, infer
from unbag_reproduce.figures import Figure, curve_figure
from unbag_reproduce.ledger import Results
from unbag_reproduce.methods import levels
from unbag_reproduce.plan import Plan, Study
from unbag_reproduce.tables import Table, comparison_table
from unbag_reproduce.unit import Unit, Values, task

PUBLISHED = ("fast", "forward")
KERNELS = (*PUBLISHED, "dense", "adaptive", "chain", "auto")
WRONG = 1e-6
#: Labels, instances, and what the answers are compared with.
SHAPES = (
    (4, 4, "enumeration"),
    (4, 6, "enumeration"),
    (3, 8, "enumeration"),
    (10, 11, "chain"),
)
SCALES = levels(
    (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 70.0, 100.0),
    quick=(1.0, 3.0, 10.0, 30.0, 100.0),
)
#: Number of bags per scale: of those that are enumerated, and of the larger ones.
N_BAGS = {"quick": (300, 30), "standard": (5000, 300)}
#: Bags enumerated at once, to bound the memory.
BLOCK = 200
#: What a figure can show of an error of zero.
SMALLEST = 1e-17


def covering_labellings(n_instances: int, n_labels: int) -> np.ndarray:
    """List every labelling that uses each label at least once.

    Examples
    --------
    >>> covering_labellings(2, 2).argmax(axis=2).tolist()
    [[0, 1], [1, 0]]
    """
    labellings = product(range(n_labels), repeat=n_instances)
    return np.eye(n_labels)[[each for each in labellings if len(set(each)) == n_labels]]


def enumerated_posterior(log_prior: np.ndarray) -> np.ndarray:
    """Compute the posteriors of bags from their definition, summing over all labellings.

    Only positive terms are added, each relative to the largest of its bag, so nothing cancels
    and what underflows does not count. This shares nothing with the kernels.

    Examples
    --------
    Instance 0 is probably label 0, so label 1 needs instance 1.

    >>> enumerated_posterior(np.log([[[0.9, 0.1], [0.5, 0.5]]])).round(2)[0]
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """
    n_bags, n_instances, n_labels = log_prior.shape
    labellings = covering_labellings(n_instances, n_labels).reshape(-1, n_instances * n_labels)
    posterior = np.empty((n_bags, n_instances * n_labels))
    flat = log_prior.reshape(n_bags, -1)
    for start in range(0, n_bags, BLOCK):
        block = slice(start, start + BLOCK)
        log_weight = flat[block] @ labellings.T
        weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        posterior[block] = weight @ labellings / weight.sum(axis=1, keepdims=True)
    return posterior.reshape(log_prior.shape)


def draw_priors(
    n_bags: int, n_instances: int, n_labels: int, scale: float, seed: int
) -> np.ndarray:
    """Draw log-probabilities whose logits are normal with the given scale."""
    rng = np.random.default_rng([seed, n_instances, n_labels, round(1000 * scale)])
    logits = scale * rng.normal(size=(n_bags, n_instances, n_labels))
    logits -= logits.max(axis=2, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))


@task
def answer_random_bags(unit: Unit) -> dict[str, float]:
    """Let every kernel answer the same random bags, and compare with the reference.

    The errors are the largest of a posterior of a bag; shares of bags are in percent.
    """
    n_bags, n_instances, n_labels, scale, reference = (
        unit.condition[key] for key in ("n_bags", "n_instances", "n_labels", "scale", "reference")
    )
    log_prior = draw_priors(n_bags, n_instances, n_labels, scale, unit.seed)
    bags = (
        log_prior.reshape(-1, n_labels), np.arange(n_bags + 1) * n_instances,
        np.ones((n_bags, n_labels), dtype=np.int8),
    )  # fmt: skip
    if reference == "enumeration":
        expected = enumerated_posterior(log_prior)
    else:
        expected = infer(*bags, method=reference).posterior.reshape(log_prior.shape)
    result = {}
    for kernel in KERNELS:
        if kernel in PUBLISHED:
            answer = infer_as_published(UnionProblem(*bags[1:]), bags[0], kernel)
        else:
            answer = infer(*bags, method=kernel)
        error = np.abs(answer.posterior.reshape(log_prior.shape) - expected).max(axis=(1, 2))
        wrong, flagged = error > WRONG, answer.error_bound > WRONG
        result |= {
            f"{kernel} median": float(np.median(error)),
            f"{kernel} worst": float(error.max()),
            f"{kernel} wrong": 100.0 * float(wrong.mean()),
            f"{kernel} flagged": 100.0 * float(flagged.mean()),
            f"{kernel} infinite": 100.0 * float(np.isinf(answer.error_bound).mean()),
            f"{kernel} silent": 100.0 * float((wrong & ~flagged).mean()),
        }
    return result


def shape_name(n_labels: int, n_instances: int) -> str:
    """Return how large a bag is.

    Examples
    --------
    >>> shape_name(4, 6)
    '4 labels, 6 instances'
    """
    return f"{n_labels} labels, {n_instances} instances"


def units(plan: Plan, ledger: Results | None = None) -> list[Unit]:
    """List a unit for each shape and scale."""
    enumerated, larger = N_BAGS[plan.level]
    return [
        Unit(
            answer_random_bags,
            condition={
                "scale": scale, "n_labels": n_labels, "n_instances": n_instances,
                "reference": reference,
                "n_bags": enumerated if reference == "enumeration" else larger,
            },
            seed=plan.seed,
        )
        for n_labels, n_instances, reference in SHAPES
        for scale in SCALES[plan.level]
    ]  # fmt: skip


def stability_records(plan: Plan, ledger: Results) -> list[Values]:
    """Return one record for each shape, scale and kernel."""
    return [
        {
            "labels": unit.condition["n_labels"], "instances": unit.condition["n_instances"],
            "scale": unit.condition["scale"], "bags": unit.condition["n_bags"],
            "reference": unit.condition["reference"], "kernel": kernel,
            "median_error": ledger[unit][f"{kernel} median"],
            "worst_error": ledger[unit][f"{kernel} worst"],
            "wrong_percent": ledger[unit][f"{kernel} wrong"],
            "flagged_percent": ledger[unit][f"{kernel} flagged"],
            "infinite_bound_percent": ledger[unit][f"{kernel} infinite"],
            "wrong_not_flagged_percent": ledger[unit][f"{kernel} silent"],
        }
        for unit in units(plan)
        for kernel in KERNELS
        if kernel != unit.condition["reference"]
    ]  # fmt: skip


def stability_table(plan: Plan, records: list[Values]) -> Table:
    """Make a table of one row per shape and round scale, and one column per kernel."""
    enumerated, larger = N_BAGS[plan.level]
    silent = max(record["wrong_not_flagged_percent"] for record in records)
    table = comparison_table(
        "stability",
        "Bags (%) answered wrongly, and flagged",
        [record for record in records if record["scale"] in SCALES["quick"]],
        [
            f"{enumerated} bags per row with normal logits of that scale, compared with the sum "
            f"over all labellings; {larger} of the largest bags, compared with chain. Wrong: an "
            f"error above {WRONG:g}. Flagged: an error bound above that, or infinite. Wrong but "
            f"not flagged: {silent:g} % at most. By default (auto), unbag asks chain where the "
            "bound of the others is not small."
        ],
        row=lambda record: (
            f"{shape_name(record['labels'], record['instances'])}, scale {record['scale']:g}"
        ),
        column="kernel",
        write=lambda record: f"{record['wrong_percent']:.1f}, {record['flagged_percent']:.1f}",
    )
    return replace(table, records=records)


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make a table of wrong and flagged answers, and a figure of the worst errors."""
    records = stability_records(plan, ledger)
    figure = curve_figure(
        "stability",
        "Worst error of a posterior over the confidence of the priors",
        [{**each, "worst_error": max(each["worst_error"], SMALLEST)} for each in records],
        panel=lambda record: shape_name(record["labels"], record["instances"]),
        line="kernel",
        x="scale",
        y="worst_error",
        x_label="scale of the logits, nats",
        y_label=f"worst error (0 as {SMALLEST:g})",
        logarithmic=True,
        y_logarithmic=True,
    )
    return [stability_table(plan, records), figure]


STUDY = Study(
    "stability",
    "errors of E-steps, the published ones among them, under confident priors",
    units=units,
    present=present,
    data=(),
)
