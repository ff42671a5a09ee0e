"""Compare an iteration of a fit on a GPU with supervised logistic regression in torch.

Both use the same L-BFGS, with the same features on the same device, in the same blocks and with the
same products. Supervised regression knows every instance's label, and computes loss and gradient
from the logits in one kernel that torch compiles. A second variant is what one would normally
write: torch's cross-entropy and its backward pass. Evaluations alternate in the same run, and the
best of several rounds counts. Iterations are timed over whole fits, which may need different
numbers of evaluations.

    python benchmarks/gpu_fit.py [--quick]

10,000,000 x 128 float32 instances in bags of 10, of 1 to 4 of 100 classes; the same with 1 to 8
classes in a bag; 20,000,000 x 32 of 1 to 4 of 20 classes; and the coefficients of a smaller fit
beside those of the processor.
"""

import argparse
import gc
import platform
from time import perf_counter

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.nn.functional import cross_entropy

import unbag
from measure import save
from unbag import Bags, ORLogisticRegression
from unbag.fitting import Objective, Progress, fit_lbfgs, one_blas_thread
from unbag.torch import parts
from unbag.union import UnionProblem

BAG_SIZE = 10
ALPHA = 1.0
N_ITERATIONS = 20
WANTED = 1.5
#: What is compared, and by which figure: the same iteration takes the same number of evaluations.
RATIOS = {
    "evaluation": "milliseconds_per_evaluation",
    "same_iteration": "milliseconds_per_evaluation_of_a_climb",
    "iteration": "milliseconds_per_iteration",
}


def drawn_bags(n_instances, n_features, n_classes, most_labels, seed=0):
    """Draw bags around centres of classes; label sets are what their instances show."""
    generator = torch.Generator("cuda").manual_seed(seed)

    def draw(kind, *shape, **options):
        return getattr(torch, kind)(*shape, generator=generator, device="cuda", **options)

    n_bags = n_instances // BAG_SIZE
    chosen = draw("rand", n_bags, n_classes).topk(most_labels, 1).indices
    n_labels = draw("randint", 1, most_labels + 1, (n_bags, 1))
    place = (draw("rand", n_bags, BAG_SIZE) * n_labels).long()
    labels = chosen.gather(1, place)
    y = torch.zeros((n_bags, n_classes), dtype=torch.int8, device="cuda").scatter_(1, labels, 1)
    labels = labels.flatten()
    centres = draw("randn", n_classes, n_features)
    X = np.empty((n_instances, n_features), dtype=np.float32)
    for start in range(0, n_instances, 2**20):
        own = labels[start : start + 2**20]
        noise = draw("randn", len(own), n_features)
        X[start : start + 2**20] = (centres[own] + 3 * noise).cpu().numpy()
    bags = Bags(X, BAG_SIZE * np.arange(n_bags + 1))
    return bags, y.cpu().numpy(), labels


@torch.compile(dynamic=False)
def fused_cross_entropy(scores, labels):
    """Return the log-likelihood of labels, and its gradient, in one pass over the scores."""
    log_prior = torch.log_softmax(scores, 1)
    own = labels[:, None]
    is_own = own == torch.arange(scores.shape[1], device=scores.device)
    likelihood = torch.where(is_own, log_prior, 0.0).sum(1)
    return likelihood.sum(dtype=torch.float64), is_own.to(scores.dtype) - log_prior.exp()


def recorded_cross_entropy(scores, labels):
    """Return the same by torch's own loss, and its backward pass."""
    scores = scores.detach().requires_grad_()
    with torch.enable_grad():
        loss = cross_entropy(scores, labels, reduction="sum")
        loss.backward()
    return -loss.detach().double(), -scores.grad


class SupervisedPart:
    """The blocks of a fit, with a label for every instance."""

    def __init__(self, part, labels, loss):
        self.blocks = part.blocks
        self.labels = labels.split([len(block.X) for block in part.blocks])
        self.loss = loss
        self.weight = part.weight

    def statistics(self, W):
        """Compute what `DevicePart.statistics` does, of the labels of instances."""
        weights = torch.tensor(W, device="cuda")
        gradient, value = torch.zeros_like(weights), torch.zeros_like(weights[0, 0])
        for block, labels in zip(self.blocks, self.labels, strict=True):
            likelihood, residual = self.loss(parts.logits(block.X, weights), labels)
            value += likelihood
            gradient += parts.weight_gradient(residual, block.X)
        found = torch.cat([gradient.flatten(), value[None]]).cpu().numpy()
        return parts.Statistics(float(found[-1]), found[:-1].reshape(W.shape), self.weight)


class Counted(Objective):
    """An objective that counts how often it is evaluated."""

    n_evaluations = 0

    def statistics(self, W):
        """Count, and compute what an objective does."""
        self.n_evaluations += 1
        return super().statistics(W)


def best_evaluations(objectives, W, rounds):
    """Return the best time of an evaluation of each objective, in alternation."""
    best = dict.fromkeys(objectives, float("inf"))
    for _ in range(rounds):
        for name, objective in objectives.items():
            for _ in range(3):
                start = perf_counter()
                objective.statistics(W)
                best[name] = min(best[name], perf_counter() - start)
    return best


def climb(objective, shape):
    """Return seconds, iterations, and evaluations of a run of L-BFGS."""
    objective.n_evaluations = 0
    progress = Progress(np.zeros(shape))
    # As in a fit: threads of the processor only wait for each other over so few numbers.
    with one_blas_thread():
        start = perf_counter()
        fit_lbfgs(objective, np.zeros(shape), max_iter=N_ITERATIONS, tol=0.0, progress=progress)
        seconds = perf_counter() - start
    return seconds, len(progress.history), objective.n_evaluations


def iterations(n_instances, n_features, n_classes, most_labels, rounds):
    """Time evaluations and climbs of one shape of data."""
    bags, y, labels = drawn_bags(n_instances, n_features, n_classes, most_labels)
    problem = UnionProblem(bags.offsets, y)
    used = np.ones(len(bags), dtype=bool)
    torch.cuda.reset_peak_memory_stats()
    start = perf_counter()
    training = parts.DeviceTraining(bags, problem, used, device="cuda", alpha=ALPHA)
    torch.cuda.synchronize()
    placed = perf_counter() - start
    part = training._part
    asked = {
        "union": part,
        "supervised, fused": SupervisedPart(part, labels, fused_cross_entropy),
        "supervised, by autograd": SupervisedPart(part, labels, recorded_cross_entropy),
    }
    objectives = {
        name: Counted([each], alpha=ALPHA, scale=training.scale) for name, each in asked.items()
    }
    W = 0.01 * np.random.default_rng(0).normal(size=training.shape)
    for objective in objectives.values():
        objective.statistics(W)
    best = best_evaluations(objectives, W, rounds)
    found = {}
    for name, objective in objectives.items():
        seconds, n_iterations, n_evaluations = climb(objective, training.shape)
        found[name] = {
            "milliseconds_per_evaluation": round(1e3 * best[name], 2),
            "evaluations_per_iteration": round(n_evaluations / n_iterations, 2),
            "milliseconds_per_evaluation_of_a_climb": round(1e3 * seconds / n_evaluations, 2),
            "milliseconds_per_iteration": round(1e3 * seconds / n_iterations, 2),
            "million_instances_per_second": round(n_instances * n_iterations / seconds / 1e6, 1),
        }
    ours, fused = found["union"], found["supervised, fused"]
    peak = torch.cuda.max_memory_allocated()
    return {
        "instances": n_instances,
        "features": n_features,
        "classes": n_classes,
        "labels_in_a_bag": f"1 to {most_labels}",
        "seconds_to_place_and_scale": round(placed, 2),
        "peak_gigabytes": round(peak / 1e9, 2),
        "gigabytes_of_features": round(bags.X.nbytes / 1e9, 2),
        "fits": found,
        **{
            f"{what}_over_fused": round(ours[figure] / fused[figure], 3)
            for what, figure in RATIOS.items()
        },
    }


def agreement(n_instances):
    """Compare coefficients of fits on the device and on the processor, and their times."""
    bags, y, _ = drawn_bags(n_instances, 32, 20, 4)
    found = {}
    for dtype in (np.float32, np.float64):
        given = Bags(bags.X.astype(dtype), bags.offsets)
        coefficients, seconds = [], []
        for device in ("cpu", "cuda"):
            model = ORLogisticRegression(ALPHA, tol=0.0, max_iter=N_ITERATIONS, device=device)
            # Compile the kernels before timing.
            model.fit(given[:1000], y[:1000])
            start = perf_counter()
            coefficients.append(model.fit(given, y).coef_)
            seconds.append(round(perf_counter() - start, 2))
        found[np.dtype(dtype).name] = {
            "largest_difference": float(f"{np.abs(coefficients[0] - coefficients[1]).max():.2g}"),
            "largest_coefficient": round(float(np.abs(coefficients[0]).max()), 3),
            "seconds_of_fits": dict(zip(("cpu", "cuda"), seconds, strict=True)),
        }
    return {"instances": n_instances, "features": 32, "classes": 20, **found}


def whole_fit(n_instances, n_features, n_classes):
    """Time all of a fit, from arrays in memory to a model."""
    bags, y, _ = drawn_bags(n_instances, n_features, n_classes, 4)
    model = ORLogisticRegression(ALPHA, tol=0.0, max_iter=N_ITERATIONS, device="cuda")
    start = perf_counter()
    model.fit(bags, y)
    return round(perf_counter() - start, 1)


def shown(results):
    """Return a table of the figures."""
    table = Table(title=f"an iteration on {torch.cuda.get_device_name()}")
    for heading in ("data", "fit", "ms/evaluation", "ms/iteration", "M instances/s", "x fused"):
        table.add_column(heading, justify="left" if heading in ("data", "fit") else "right")
    for each in results:
        data = f"{each['instances']:,} x {each['features']}, {each['classes']} classes, "
        for name, figures in each["fits"].items():
            ratio = figures["milliseconds_per_iteration"]
            ratio /= each["fits"]["supervised, fused"]["milliseconds_per_iteration"]
            table.add_row(
                data + each["labels_in_a_bag"], name,
                f"{figures['milliseconds_per_evaluation']:.2f}",
                f"{figures['milliseconds_per_iteration']:.2f}",
                f"{figures['million_instances_per_second']:,.0f}", f"{ratio:.3f}",
            )  # fmt: skip
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, nothing saved")
    quick = parser.parse_args().quick
    if not torch.cuda.is_available():
        raise SystemExit("This benchmark needs a GPU, and PyTorch for CUDA.")
    size, rounds = (1_000_000, 3) if quick else (10_000_000, 8)
    console = Console(width=130)
    shapes = [(size, 128, 100, 4), (size, 128, 100, 8), (2 * size, 32, 20, 4)]
    results = []
    for shape in shapes:
        results.append(iterations(*shape, rounds))
        gc.collect()
        torch.cuda.empty_cache()
    console.print(shown(results))
    ratio = results[0]["same_iteration_over_fused"]
    console.print(f"An iteration takes {ratio} times the same supervised one; wanted: {WANTED}.")
    agreed = agreement(size // 20)
    console.print(agreed)
    seconds = whole_fit(size, 128, 100)
    console.print(f"A fit of {N_ITERATIONS} iterations takes {seconds} s, from arrays to a model.")
    if not quick:
        import triton

        device = {
            "processor": torch.cuda.get_device_name(),
            "python": platform.python_version(),
            "unbag": unbag.__version__,
            "torch": torch.__version__,
            "triton": triton.__version__,
        }
        figures = {
            "machine": device,
            "iterations": results,
            "agreement_with_the_processor": agreed,
            "seconds_of_a_whole_fit": {"iterations": N_ITERATIONS, "seconds": seconds},
        }
        save("gpu_fit", figures, console)


if __name__ == "__main__":
    main()
