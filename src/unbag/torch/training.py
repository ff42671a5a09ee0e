"""Training of networks: AdamW steps, devices and threads."""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unbag.fitting.noise import LabelNoise

from .batches import LearningBags, StepBags, TrainingSettings, rows_per_batch
from .network import Disturbance, MemberNetworks

# Steps until the learning rate is reached.
WARM_UP = 20
# Most hidden units of the members that take a step together on the CPU; they fit in its cache.
CACHED = 2**22
# Steps between updates of the rates of wrong labels, and the share of the difference they take.
RATES_EVERY, RATES_SHARE = 5, 0.5
# Multiplications from which torch's threads are worthwhile. They wait for each other after every
# operation; on a busy machine, that can take ten times as long as the products of small networks.
MULTIPLICATIONS = 2**30


@dataclass
class History:
    """Log-likelihoods of all steps of a fit so far.

    `watch` is called with this object after each step; a true answer stops training. `history` has
    numbers then, and tensors otherwise: reading them would wait for the device.
    """

    watch: Callable[["History"], object] | None = None
    history: list[Any] = field(default_factory=list)

    def add(self, log_likelihood: Tensor) -> bool:
        """Record a step; return whether to stop."""
        if self.watch is None:
            self.history.append(log_likelihood)
            return False
        self.history.append(float(log_likelihood))
        return bool(self.watch(self))

    def to_array(self) -> np.ndarray:
        """Return the log-likelihood of each step."""
        if self.watch is not None or not self.history:
            return np.array(self.history, dtype=np.float64)
        return torch.stack(self.history).double().cpu().numpy()


class Trainer:
    """Training of networks, and of an encoder that computes their inputs from features.

    It starts from copies of both. The generator is on the device. The rates of `noise` are updated
    if they are learnt.
    """

    def __init__(
        self,
        network: MemberNetworks,
        encoder: torch.nn.Module | None,
        bags: LearningBags,
        settings: TrainingSettings,
        generator: torch.Generator,
        noise: LabelNoise | None = None,
    ) -> None:
        device = bags.device
        self.settings = settings
        self.n_bags: int = bags.n_bags
        self.noise = noise
        n_rows = rows_per_batch(bags, network, settings)
        self.groups: list[MemberNetworks] = member_groups(network, bags, n_rows)
        #: About the number of multiplications to score the instances of a step.
        self.n_multiplications: int = network.n_multiplications(n_rows)
        self.encoder: torch.nn.Module | None = None
        learning = parameters_of(self.groups)
        if encoder is not None:
            self.encoder = copy.deepcopy(encoder).to(device).train()
            learning += list(self.encoder.parameters())
        # A fused step is taken completely or not at all if it is interrupted.
        self.optimizer: torch.optim.Optimizer = torch.optim.AdamW(
            learning, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.disturbance: Disturbance = Disturbance(settings.dropout, settings.noise, generator)
        self.batches: Iterator[StepBags] = bags.batches(network, settings, generator)

    def networks(self) -> MemberNetworks:
        """Return the current networks of all groups, joined."""
        return MemberNetworks.joined(self.groups)

    def run(self, history: History) -> bool:
        """Take all steps; return whether the `watch` stopped them."""
        # As a whole, since threads spin for a while after all that they do together.
        with limited_threads(self.n_multiplications):
            return any(self._take_step(history, step) for step in range(self.settings.max_iter))

    def _take_step(self, history, step):
        """Take a step; return whether to stop."""
        settings = self.settings
        learns_rates = self.noise is not None and self.noise.is_learnt
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = settings.learning_rate * rate_factor(step, settings.max_iter)
        self.optimizer.zero_grad(set_to_none=True)
        batch = next(self.batches)
        loss = self._learn_from(batch, step, learns_rates and step % RATES_EVERY == 0)
        return history.add(-loss / self.n_members)

    @property
    def n_members(self) -> int:
        """Number of networks."""
        return sum(group.n_members for group in self.groups)

    def _learn_from(self, batch, step, learns_rates):
        """Take a step, with gradients group by group; return the sum of the losses of the bags."""
        encoder, disturbance = self.encoder, self.disturbance
        noise = self.noise
        rates = None if noise is None else noise.rates
        features = batch.bags.X if encoder is None else encoder(batch.bags.X)
        # Gradients of all groups are added here, so that there is one backward pass of the encoder.
        given = features.detach().requires_grad_(encoder is not None)
        total = torch.zeros((), device=given.device)
        counts = []
        for group in self.groups:
            inputs = disturbance.noisy(given, group.n_members)
            logits = group(inputs, batch.rows, disturbance)
            loss = batch.loss(logits, rates, step)
            if loss.requires_grad:
                loss.backward()
            total += loss.detach()
            if rates is not None and learns_rates and not batch.bags.is_taught(step):
                counts.append(batch.noise_counts(logits, rates))
        # An encoder without parameters, or a frozen one, has no gradient.
        if features.requires_grad:
            features.backward(given.grad)
        self.optimizer.step()
        if noise is not None and counts:
            # Over all members, as if each had bags of its own.
            prior = self.n_members * batch.bags.n_bags / self.n_bags
            noise.learn(np.sum(counts, axis=0), RATES_SHARE, prior)
        return total * batch.weight


def train_networks(
    model: Any, bags: LearningBags, noise: LabelNoise | None, seed: int, history: History
) -> bool:
    """Train new networks of an `unbag.torch.ORNetwork`; return whether they were stopped.

    The model keeps them, even if the training is interrupted.
    """
    device = bags.device
    generator = torch.Generator(device).manual_seed(seed)
    # Encoders use torch's global generators.
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        n_columns = len(model.classes_) + model.has_background_
        network = MemberNetworks.drawn(model, n_inputs_of(model, bags), n_columns, seed)
        settings = TrainingSettings.of(model)
        trainer = Trainer(network, model.encoder, bags, settings, generator, noise)
        try:
            return trainer.run(history)
        finally:
            trainer.networks().keep_in(model)
            vars(model).pop("encoder_", None)
            if trainer.encoder is not None:
                model.encoder_ = trainer.encoder.cpu().eval()
            rates = None if noise is None else noise.rates
            model.conditioner_ = model.decision_.conditioner(rates, model.on_intractable)


def n_inputs_of(model: Any, bags: LearningBags) -> int:
    """Return the number of inputs of networks: of outputs of the encoder, if there is one."""
    inputs = bags.X[:2]
    if model.encoder is None:
        return inputs.shape[1]
    with torch.no_grad():
        encoder = copy.deepcopy(model.encoder).to(bags.device).eval()
        features = encoder(inputs)
    if features.ndim != 2 or len(features) != len(inputs):
        raise ValueError(
            "encoder must return features of shape (n_instances, n_outputs); given "
            f"{tuple(inputs.shape)}, it returned {tuple(features.shape)}."
        )
    return features.shape[1]


def parameters_of(groups: list[MemberNetworks]) -> list[Tensor]:
    """List the weights of all groups."""
    return [part for group in groups for part in group.parameters()]


def member_groups(network: MemberNetworks, bags: LearningBags, n_rows: int) -> list[MemberNetworks]:
    """Split the members into groups that take steps together, on the device of the bags.

    On a CPU, the units of a group fit in its cache; on a GPU, all members are one group. So are
    those for which bags have different weights.
    """
    n_members, device = network.n_members, bags.device
    n_together = n_members
    if device.type == "cpu" and not bags.has_weights_of_members:
        n_together = min(max(CACHED // (network.widest * max(n_rows, 1)), 1), n_members)
    starts = range(0, n_members, n_together)
    return [network.members(start, start + n_together).to(device) for start in starts]


def rate_factor(step: int, n_steps: int) -> float:
    """Return the factor of the learning rate in a step: a warm-up, then half a cosine.

    >>> [round(rate_factor(step, 400), 3) for step in (0, 19, 200, 399)]
    [0.05, 0.994, 0.5, 0.0]
    """
    warm = min(1.0, (step + 1) / min(WARM_UP, n_steps))
    return warm * 0.5 * (1.0 + math.cos(math.pi * step / n_steps))


def device_of(model: Any) -> torch.device:
    """Return the device that an `unbag.torch.ORNetwork` runs on: the CPU without CUDA devices."""
    device = torch.device("cuda" if model.device == "auto" else model.device)
    # A model may have been saved on a machine with other devices.
    is_missing = device.type == "cuda" and not torch.cuda.is_available()
    return torch.device("cpu") if is_missing else device


@contextmanager
def limited_threads(n_multiplications: int) -> Iterator[None]:
    """Limit torch to one thread within a block, unless there is enough work for more."""
    n_threads = torch.get_num_threads()
    if n_multiplications >= MULTIPLICATIONS or n_threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
