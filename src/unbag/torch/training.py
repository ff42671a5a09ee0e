"""Training of networks: AdamW steps towards the label sets of bags, or towards a teacher."""

import copy
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import torch

from unbag.fitting import LabelNoise

from .activation import Disturbance
from .batches import Batch, LearningSource, Settings
from .network import MemberNetworks
from .threads import limited_threads

# Steps until the learning rate is reached.
WARM_UP = 20
# Hidden units of the members that take a step together on the CPU: few enough for its cache.
CACHED = 2**22
# Rates of wrong labels are updated every so many steps, and by this share of the difference.
RATES_EVERY, RATES_SHARE = 5, 0.5


@dataclass
class Course:
    """The results of each step so far.

    `watch` is called as ``watch(iteration, log_likelihood)`` after each step; True stops training.
    """

    watch: Callable[[int, float], object] | None = None
    _values: list[torch.Tensor] = field(default_factory=list)

    def completed(self, log_likelihood: torch.Tensor) -> bool:
        """Record a step; return whether to stop. Waits for the device only with a `watch`."""
        self._values.append(log_likelihood)
        if self.watch is None:
            return False
        return bool(self.watch(len(self._values), float(log_likelihood)))

    @property
    def history(self) -> np.ndarray:
        """Log-likelihood of each step."""
        if not self._values:
            return np.empty(0)
        return torch.stack(self._values).double().cpu().numpy()


class Trainer:
    """Trains networks, step by step.

    Training starts from copies of the network and of the encoder, which computes inputs from
    features and is trained with the networks. The generator is on the device. The rates of `noise`
    are updated if they are learnt.
    """

    def __init__(
        self,
        network: MemberNetworks,
        encoder: torch.nn.Module | None,
        bags: LearningSource,
        settings: Settings,
        generator: torch.Generator,
        noise: LabelNoise | None = None,
    ) -> None:
        device = bags.device
        self.settings = settings
        self.n_bags: int = bags.n_bags
        self.has_teacher: bool = bags.teacher is not None
        self.noise = noise
        self.groups: list[MemberNetworks] = grouped(network, bags, device)
        self.encoder: torch.nn.Module | None = None
        learning = [part for group in self.groups for part in group.parameters()]
        if encoder is not None:
            self.encoder = copy.deepcopy(encoder).to(device).train()
            learning += list(self.encoder.parameters())
        # A fused step is taken completely or not at all if it is interrupted.
        self.optimizer: torch.optim.Optimizer = torch.optim.AdamW(
            learning, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.disturbance: Disturbance = Disturbance(settings.dropout, settings.noise, generator)
        self.batches: Iterator[Batch] = bags.batches(network, settings, generator)

    def networks(self) -> MemberNetworks:
        """Return the current networks of all groups, joined."""
        return MemberNetworks.joined(self.groups)

    def run(self, course: Course) -> bool:
        """Take all steps and record them; return whether `watch` stopped the training."""
        settings = self.settings
        learns_rates = self.noise is not None and self.noise.is_learnt and not self.has_teacher
        for step in range(settings.max_iter):
            for parameters in self.optimizer.param_groups:
                parameters["lr"] = settings.learning_rate * pace(step, settings.max_iter)
            self.optimizer.zero_grad(set_to_none=True)
            batch = next(self.batches)
            n_rows = len(batch.bags.X)
            with limited_threads(sum(group.n_multiplications(n_rows) for group in self.groups)):
                loss = self._learn_from(batch, learns_rates and step % RATES_EVERY == 0)
            if course.completed(-loss / self.n_members):
                return True
        return False

    @property
    def n_members(self) -> int:
        """Number of networks."""
        return sum(group.n_members for group in self.groups)

    def _learn_from(self, batch, learns_rates):
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
            loss = batch.loss(logits, rates)
            if loss.requires_grad:
                loss.backward()
            total += loss.detach()
            if rates is not None and learns_rates:
                counts.append(batch.noise_counts(logits, rates))
        # An encoder without parameters, or a frozen one, has no gradient.
        if features.requires_grad:
            features.backward(given.grad)
        self.optimizer.step()
        if noise is not None and counts:
            # Over all members, as if each had bags of its own.
            prior = self.n_members * len(batch.bags.targets) / self.n_bags
            noise.learn(reduce(operator.add, counts), RATES_SHARE, prior)
        return total * batch.weight


def grouped(
    network: MemberNetworks, bags: LearningSource, device: torch.device
) -> list[MemberNetworks]:
    """Split the members into groups: one on a GPU, as many as the cache holds on a CPU."""
    n_members = network.n_members
    if device.type == "cpu":
        n_units = max(weight.shape[2] for weight in network.weights) * max(bags.n_instances, 1)
        n_together = min(max(CACHED // n_units, 1), n_members)
    else:
        n_together = n_members
    starts = range(0, n_members, n_together)
    return [network.members(start, start + n_together).to(device) for start in starts]


def pace(step: int, n_steps: int) -> float:
    """Return the factor of the learning rate of a step: a warm-up, then half a cosine.

    >>> [round(pace(step, 400), 3) for step in (0, 19, 200, 399)]
    [0.05, 0.994, 0.5, 0.0]
    """
    warm = min(1.0, (step + 1) / min(WARM_UP, n_steps))
    return warm * 0.5 * (1.0 + math.cos(math.pi * step / n_steps))
