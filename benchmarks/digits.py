"""Train a small CNN on bags of digits, labelled only with the set of digits in each bag.

    python benchmarks/digits.py --jobs 2
    python benchmarks/digits.py --mnist FOLDER

Bags of about 5, 10 and 20 images (deviations 1, 2 and 5), 2,000, 1,000 and 500 of them, drawn from
the training images; the same network learns by the exact loss, by the approximations of it, and,
as a bound, from the labels of the images. Balanced accuracy on the test images, each by itself.
The images are scikit-learn's, of 8 x 8 pixels, of which a fourth is for testing; or those of MNIST,
from a folder that holds its four files, compressed or not. Needs the extra ``torch`` and
``./reproduction``.
"""

import argparse
import gzip
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from torch import nn

from measure import machine, save
from unbag.torch import union_loss
from unbag_reproduce.approximations import (
    AttentionPooling,
    linear_softmax_loss,
    max_pooling_loss,
    noisy_or_loss,
)

#: Mean size of bags, its deviation, and how many there are.
BAGS = ((5, 1, 2000), (10, 2, 1000), (20, 5, 500))
SEEDS = range(3)
N_CLASSES, N_FEATURES = 10, 128
N_STEPS, BATCH, LEARNING_RATE = 1000, 32, 3e-3
EXACT, TOLD = "exact: union_loss", "told the label of every image"
LOSSES = {
    EXACT: union_loss,
    "noisy_or_loss": noisy_or_loss,
    "max_pooling_loss": max_pooling_loss,
    "linear_softmax_loss": linear_softmax_loss,
    "AttentionPooling": None,
    TOLD: None,
}
MNIST = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def read_idx(folder, name):
    """Read a file of MNIST: its header says how many dimensions there are, and how large."""
    path = Path(folder, name)
    data = path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())
    n_dimensions = data[3]
    shape = np.frombuffer(data, ">i4", n_dimensions, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * n_dimensions).reshape(shape)


def images_of(mnist):
    """Return training images, their labels, test images and theirs; pixels from 0 to 1."""
    if mnist is not None:
        (train, y_train), (test, y_test) = (
            [read_idx(mnist, name) for name in MNIST[part]] for part in ("train", "test")
        )
        return train / 255.0, y_train.astype(int), test / 255.0, y_test.astype(int)
    digits = load_digits()
    train, test, y_train, y_test = train_test_split(
        digits.images / 16.0, digits.target, test_size=0.25, stratify=digits.target, random_state=0
    )
    return train, y_train, test, y_test


def draw_bags(n_images, size, deviation, n_bags, rng):
    """Draw the images of each bag: return their positions, and the offsets of the bags."""
    sizes = np.maximum(np.round(rng.normal(size, deviation, n_bags)), 1).astype(int)
    return rng.integers(0, n_images, sizes.sum()), np.append(0, np.cumsum(sizes))


def features_of(n_pixels):
    """Create the part of the network that all losses share."""
    n_left = n_pixels // 2 // 2
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * n_left**2, N_FEATURES), nn.ReLU(),
    )  # fmt: skip


class Reader(nn.Module):
    """The network, and how it learns from a batch of bags.

    Parameters
    ----------
    n_pixels : int
        Of each row of an image.
    name : str
        One of `LOSSES`.
    """

    def __init__(self, n_pixels, name):
        super().__init__()
        self.name = name
        self.features = features_of(n_pixels)
        self.pooling = AttentionPooling(N_FEATURES, N_CLASSES)
        self.scores = self.pooling.scores

    def forward(self, images):
        """Score images, each by itself."""
        return self.scores(self.features(images))

    def loss(self, images, offsets, targets, labels):
        """Compute the loss of bags; only the supervised bound uses the labels of images."""
        if self.name == TOLD:
            return nn.functional.cross_entropy(self(images), labels)
        if self.name == "AttentionPooling":
            pooled = self.pooling(self.features(images), offsets)
            return nn.functional.binary_cross_entropy_with_logits(pooled, targets.float())
        return LOSSES[self.name](self(images), offsets, targets)


def learn(reader, images, labels, offsets, rng, device):
    """Train with AdamW and a cosine learning rate."""
    n_bags = len(offsets) - 1
    bag = np.repeat(np.arange(n_bags), np.diff(offsets))
    targets = np.zeros((n_bags, N_CLASSES), dtype=np.int8)
    targets[bag, labels] = 1
    optimizer = torch.optim.AdamW(reader.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, N_STEPS)
    images = torch.tensor(images, dtype=torch.float32, device=device)[:, None]
    labels = torch.tensor(labels, device=device)
    for _ in range(N_STEPS):
        chosen = np.sort(rng.choice(n_bags, BATCH, replace=False))
        rows = np.concatenate([np.arange(offsets[b], offsets[b + 1]) for b in chosen])
        sizes = np.diff(offsets)[chosen]
        loss = reader.loss(
            images[rows],
            torch.tensor(np.append(0, np.cumsum(sizes)), device=device),
            torch.tensor(targets[chosen], device=device),
            labels[rows],
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def accuracy(task):
    """Train one network, and return its balanced accuracy on the test images, in percent."""
    mnist, (size, deviation, n_bags), name, seed, device = task
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    train, y_train, test, y_test = images_of(mnist)
    rng = np.random.default_rng([seed, size])
    places, offsets = draw_bags(len(train), size, deviation, n_bags, rng)
    reader = Reader(train.shape[1], name).to(device)
    learn(reader, train[places], y_train[places], offsets, rng, device)
    with torch.no_grad():
        scores = reader(torch.tensor(test, dtype=torch.float32, device=device)[:, None])
    return 100.0 * balanced_accuracy_score(y_test, scores.argmax(1).cpu().numpy())


def column(size, deviation, n_bags):
    return f"{n_bags} bags of {size} ± {deviation}"


def show(results, console):
    """Print the table of the results."""
    table = Table("", *(column(*bags) for bags in BAGS), title=f"{results['images']}: {MEASURE}")
    for name in LOSSES:
        row = [results["balanced_accuracy"][name][column(*bags)] for bags in BAGS]
        table.add_row(name, *(f"{np.mean(seeds):.1f} ± {np.std(seeds, ddof=1):.1f}"
                              for seeds in row))  # fmt: skip
    console.print(table)


MEASURE = "balanced accuracy on test images, %"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", help="a folder with the four files of MNIST")
    parser.add_argument("--jobs", type=int, default=1, help="networks that are trained at a time")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    console = Console()
    started = perf_counter()
    tasks = [(given.mnist, bags, name, seed, given.device)
             for bags in BAGS for name in LOSSES for seed in SEEDS]  # fmt: skip
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        found = list(pool.map(accuracy, tasks))
    figures = {name: {column(*bags): [] for bags in BAGS} for name in LOSSES}
    for (_, bags, name, _, _), percent in zip(tasks, found, strict=True):
        figures[name][column(*bags)].append(percent)
    on_gpu = given.device.startswith("cuda")
    results = {
        "images": "MNIST" if given.mnist else "scikit-learn's digits",
        "balanced_accuracy": figures,
        "seconds": perf_counter() - started,
        "device": torch.cuda.get_device_name() if on_gpu else "CPU",
        "machine": {**machine(), "torch": torch.__version__},
    }
    show(results, console)
    save("digits_mnist" if given.mnist else "digits", results, console)


if __name__ == "__main__":
    main()
