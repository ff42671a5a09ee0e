"""Time the union loss against cross-entropy told every instance's label, and against rivals.

Forward plus backward, float32 logits. Every ratio is of two times taken alternately in the same
run, the best of several rounds each; beside them stands what moves through memory if forward and
backward read the logits once each, and the gradient is written once. Beside the loss of a linear
layer, whose logits are never stored, stand the three matrix products that it cannot do without.

    python benchmarks/torch_loss.py [--quick]

On a GPU, 2^20 instances of 1,000 classes in bags of 16; without one, 2^16 on two threads. Figures
of the two are kept beside each other.
"""

import argparse
import json
import platform
from time import perf_counter

import torch
from rich.console import Console
from rich.table import Table
from torch.nn.functional import cross_entropy

import unbag
from measure import RESULTS, machine, save
from unbag.torch import union_loss, union_loss_linear
from unbag_reproduce.approximations import linear_softmax_loss, max_pooling_loss, noisy_or_loss

N_CLASSES = 1000
BAG_SIZE = 16


def label_sets(sizes, most_labels, device, fewest_labels=None):
    """Draw label sets, none larger than its bag."""
    n_bags = len(sizes)
    n_labels = torch.full((n_bags,), most_labels, device=device)
    if fewest_labels is not None:
        n_labels = torch.randint(fewest_labels, most_labels + 1, (n_bags,), device=device)
    n_labels = torch.minimum(n_labels, sizes)
    y = torch.zeros((n_bags, N_CLASSES), dtype=torch.int8, device=device)
    chosen = torch.rand((n_bags, N_CLASSES), device=device).topk(most_labels, 1).indices
    listed = torch.arange(most_labels, device=device) < n_labels[:, None]
    return y.scatter_(1, chosen, listed.to(torch.int8))


def varied_sizes(n_rows, largest, device):
    """Draw sizes of bags, from one to the largest, that add up to all rows."""
    sizes = torch.randint(1, largest + 1, (2 * n_rows // largest + largest,), device=device)
    sizes = sizes[sizes.cumsum(0) < n_rows]
    return torch.cat([sizes, n_rows - sizes.sum(0, keepdim=True)])


def offsets_of(sizes):
    return torch.nn.functional.pad(sizes.cumsum(0), (1, 0))


def cases(n_rows, device, quick):
    """Return what is timed: names, and functions that go forward and backward."""
    torch.manual_seed(0)
    logits = torch.randn((n_rows, N_CLASSES), device=device, requires_grad=True)
    instance_labels = torch.randint(N_CLASSES, (n_rows,), device=device)
    on_gpu = device == "cuda"

    def step(loss, *arguments, **options):
        def forward_and_backward():
            logits.grad = None
            loss(logits, *arguments, **options).backward()

        return forward_and_backward

    calls = {"cross-entropy": step(cross_entropy, instance_labels)}
    if on_gpu:
        calls["compiled cross-entropy"] = step(torch.compile(cross_entropy), instance_labels)
    sizes = torch.full((n_rows // BAG_SIZE,), BAG_SIZE, device=device)
    even = offsets_of(sizes)
    targets = {k: label_sets(sizes, k, device) for k in (2, 4, 8)}
    for k, y in targets.items():
        calls[f"union, {k} labels"] = step(union_loss, even, y)
    calls["union, 4 labels, summed"] = step(union_loss, even, targets[4], reduction="sum")
    sizes = varied_sizes(n_rows, 64, device)
    varied = label_sets(sizes, 8, device, fewest_labels=1)
    calls["union, 1 to 8 labels, bags of 1 to 64"] = step(union_loss, offsets_of(sizes), varied)
    for long in (4096, 65536) if on_gpu else (4096,):
        sizes = torch.full((n_rows // long,), long, device=device)
        y = label_sets(sizes, 4, device)
        calls[f"union, 4 labels, bags of {long:,}"] = step(union_loss, offsets_of(sizes), y)
    if not quick:
        for name, loss in (
            ("noisy-or", noisy_or_loss),
            ("max pooling", max_pooling_loss),
            ("linear softmax", linear_softmax_loss),
        ):
            calls[f"{name}, 4 labels"] = step(loss, even, targets[4])
    return calls


def best_times(calls, device, rounds, together):
    """Return the best time of each call, taken in turns, several calls at once."""
    for call in calls.values():
        for _ in range(3 if device == "cuda" else 1):
            call()
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            if device == "cuda":
                torch.cuda.synchronize()
            start = perf_counter()
            for _ in range(together):
                call()
            if device == "cuda":
                torch.cuda.synchronize()
            best[name] = min(best[name], (perf_counter() - start) / together)
    return best


def peak_memory(calls):
    """Return what each call has allocated at its peak, beside the logits and their gradient."""
    found = {}
    for name, call in calls.items():
        call()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        # The gradient of the call before is let go, and as large as the new one.
        found[name] = torch.cuda.max_memory_allocated() - before
    return found


def linear_layer(device):
    """Time `union_loss_linear` beside its three matrix products, in TF32; return the figures."""
    n_rows, n_features, n_classes = (
        (2**20, 1024, 10_000) if device == "cuda" else (2**12, 256, 2000)
    )
    torch.manual_seed(0)
    sizes = torch.full((n_rows // BAG_SIZE,), BAG_SIZE, device=device)
    features = torch.randn((n_rows, n_features), device=device, requires_grad=True)
    weight = (0.03 * torch.randn((n_classes, n_features), device=device)).requires_grad_()
    bias = torch.zeros(n_classes, device=device, requires_grad=True)
    offsets = offsets_of(sizes)
    # Four classes of each bag, as lists: of all of them, the numbers would be 655 MB.
    chosen = torch.randint(n_classes // 4, (len(sizes), 4), device=device)
    chosen = (4 * chosen + torch.arange(4, device=device)).flatten()
    packed = chosen, torch.arange(0, len(chosen) + 1, 4, device=device)

    def products():
        with torch.no_grad():
            logits = features @ weight.T
            return logits @ weight, logits.T @ features

    def loss():
        features.grad = weight.grad = bias.grad = None
        union_loss_linear(features, weight, bias, offsets, packed).backward()

    tf32 = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        extra = peak_memory({"loss": loss})["loss"] if device == "cuda" else None
        calls = {"three matrix products": products, "union_loss_linear": loss}
        times = best_times(calls, device, 3, 1)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = tf32
    return {
        "rows": n_rows,
        "features": n_features,
        "classes": n_classes,
        "milliseconds": {name: round(1e3 * seconds, 2) for name, seconds in times.items()},
        "times_three_products": round(
            times["union_loss_linear"] / times["three matrix products"], 3
        ),
        "extra_megabytes": None if extra is None else round(extra / 1e6, 1),
    }


def shown(times, memory, yardstick, n_rows):
    """Return a table of the figures."""
    must_move = 3 * 4 * n_rows * N_CLASSES
    table = Table(title=f"{n_rows:,} x {N_CLASSES:,}; {must_move / 1e9:.2f} GB must move")
    for heading in ("forward and backward", "ms", f"x {yardstick}", "GB/s", "extra MB"):
        table.add_column(heading, justify="left" if heading.startswith("forward") else "right")
    for name, seconds in times.items():
        extra = f"{memory[name] / 1e6:,.0f}" if memory else ""
        ratio = f"{seconds / times[yardstick]:.3f}"
        rate = f"{must_move / seconds / 1e9:,.0f}"
        table.add_row(name, f"{1e3 * seconds:.2f}", ratio, rate, extra)
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no rivals")
    quick = parser.parse_args().quick
    device = "cuda" if torch.cuda.is_available() else "cpu"
    n_rows, yardstick = (2**20, "compiled cross-entropy") if device == "cuda" else (2**16, "")
    yardstick = yardstick or "cross-entropy"
    torch.set_num_threads(2)
    rounds, together = (5, 20) if device == "cuda" else (6, 1)
    rounds = 3 if quick else rounds
    console = Console(width=100)
    path = RESULTS / "torch_loss.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    calls = cases(n_rows, device, quick)
    times = best_times(calls, device, rounds, together)
    memory = peak_memory(calls) if device == "cuda" else {}
    console.print(shown(times, memory, yardstick, n_rows))
    del calls
    linear = linear_layer(device)
    console.print("union_loss_linear:", linear)
    figures = {
        "machine": described(device),
        "rows": n_rows,
        "classes": N_CLASSES,
        "bytes_that_must_move": 3 * 4 * n_rows * N_CLASSES,
        "milliseconds": {name: round(1e3 * seconds, 3) for name, seconds in times.items()},
        f"times_{yardstick.replace(' ', '_').replace('-', '_')}": {
            name: round(seconds / times[yardstick], 3) for name, seconds in times.items()
        },
        "extra_megabytes": {name: round(extra / 1e6, 1) for name, extra in memory.items()},
    }
    figures["linear"] = linear
    if not quick:
        save("torch_loss", {**kept, device: figures}, console)


def described(device):
    """Describe what the figures were measured on."""
    if device == "cpu":
        return {**machine(), "threads": torch.get_num_threads(), "torch": torch.__version__}
    import triton

    return {
        "processor": torch.cuda.get_device_name(),
        "python": platform.python_version(),
        "unbag": unbag.__version__,
        "torch": torch.__version__,
        "triton": triton.__version__,
    }


if __name__ == "__main__":
    main()
