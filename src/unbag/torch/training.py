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
from unbag.union.rates import Rates

from .activation import Disturbance
from .batches import Batch, LearningBags, LearningSource, Settings
from .network import MemberNetworks
from .threads import limited_threads

# Steps until the learning rate is reached.
WARM_UP = 20
# Hidden units of the members that take a step together on the CPU: few enough for its cache.
CACHED = 2**22
# Rates of wrong labels are updated every so many steps, and by this share of the difference.
RATES_EVERY, RATES_SHARE = 5, 0.5
# Held-out bags are asked every so many steps, from that step on.
CHECKED_EVERY, FIRST_CHECKED = 50, 100
# What logits are multiplied by, as networks get too sure of themselves before they get worse.
TEMPERATURES = (1.0, 0.7, 0.5, 0.35)
# Standard errors by which earlier networks are better, so that more steps are hopeless.
HOPELESS = 3.0


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


class HeldOutBags:
    """Bags that networks do not learn from, and which say when to stop.

    After every `CHECKED_EVERY` steps they are asked for the likelihood of their label sets, at the
    best of `TEMPERATURES`. The networks of the best step so far are kept. They are preferred to the
    last ones if they are better by more than a standard error; once they are better by `HOPELESS`
    standard errors, the training ends.
    """

    def __init__(self, bags: LearningBags, settings: Settings) -> None:
        self._batch = Batch(bags, settings)
        self._best: np.ndarray | None = None
        self._last: np.ndarray | None = None
        self._parts: list[torch.Tensor] = []
        self._best_step = self._last_step = 0

    @torch.no_grad()
    def have_enough(self, groups: list[MemberNetworks], rates: Rates | None, n_steps: int) -> bool:
        """Look at the networks after some steps; return whether more steps are hopeless."""
        self._last_step = n_steps
        own = self._batch
        logits = torch.cat([
            group(own.bags.X.expand(group.n_members, *own.bags.X.shape), own.rows)
            for group in groups
        ])  # fmt: skip
        found = [own.log_likelihood(each * logits, rates).mean(axis=0) for each in TEMPERATURES]
        self._last = last = max(found, key=np.sum)
        if self._best is None or last.sum() >= self._best.sum():
            self._best, self._best_step = last, n_steps
            self._parts = [part.detach().clone() for part in parameters_of(groups)]
        return self._gain() > HOPELESS

    def restored(self, groups: list[MemberNetworks]) -> int:
        """Go back to the networks of the best step, if the last ones are worse; return the step."""
        if self._gain() <= 1.0:
            return self._last_step
        with torch.no_grad():
            for part, best in zip(parameters_of(groups), self._parts, strict=True):
                part.copy_(best)
        return self._best_step

    def _gain(self):
        """By how many standard errors the best step is better than the last one."""
        if self._best is None or self._last is None:
            return 0.0
        gain = self._best - self._last
        error = gain.std() * max(len(gain), 1) ** 0.5
        return float(gain.sum() / error) if error > 0 else 0.0


class Trainer:
    """Trains networks, step by step.

    Training starts from copies of the network and of the encoder, which computes inputs from
    features and is trained with the networks. The generator is on the device. The rates of `noise`
    are updated if they are learnt. Bags that are held out may end the training early; not with an
    encoder.
    """

    def __init__(
        self,
        network: MemberNetworks,
        encoder: torch.nn.Module | None,
        bags: LearningSource,
        settings: Settings,
        generator: torch.Generator,
        noise: LabelNoise | None = None,
        held_out: LearningBags | None = None,
    ) -> None:
        device = bags.device
        self.settings = settings
        self.n_bags: int = bags.n_bags
        self.noise = noise
        self.groups: list[MemberNetworks] = grouped(network, bags, device)
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
        self.batches: Iterator[Batch] = bags.batches(network, settings, generator)
        #: The number of steps that the present networks have taken.
        self.n_steps: int = 0
        self.held_out: HeldOutBags | None = None
        if held_out is not None:
            self.held_out = HeldOutBags(held_out, settings)

    def networks(self) -> MemberNetworks:
        """Return the current networks of all groups, joined."""
        return MemberNetworks.joined(self.groups)

    def run(self, course: Course, n_steps: int | None = None) -> bool:
        """Take all steps and record them; return whether `watch` stopped the training.

        With `n_steps`, only the first ones.
        """
        settings = self.settings
        learns_rates = self.noise is not None and self.noise.is_learnt
        for step in range(settings.max_iter if n_steps is None else n_steps):
            for parameters in self.optimizer.param_groups:
                parameters["lr"] = settings.learning_rate * pace(step, settings.max_iter)
            self.optimizer.zero_grad(set_to_none=True)
            batch = next(self.batches)
            n_rows = len(batch.bags.X)
            with limited_threads(sum(group.n_multiplications(n_rows) for group in self.groups)):
                loss = self._learn_from(batch, step, learns_rates and step % RATES_EVERY == 0)
            self.n_steps = step + 1
            if course.completed(-loss / self.n_members):
                return True
            if self.held_out is not None and self._is_checked(step):
                rates = None if self.noise is None else self.noise.rates
                if self.held_out.have_enough(self.groups, rates, step + 1):
                    break
        if self.held_out is not None:
            self.n_steps = self.held_out.restored(self.groups)
        return False

    def _is_checked(self, step):
        """Return whether held-out bags are asked after a step: now and then, and after the last."""
        done = step + 1
        return done == self.settings.max_iter or (
            done >= FIRST_CHECKED and done % CHECKED_EVERY == 0
        )

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
            prior = self.n_members * len(batch.bags.targets) / self.n_bags
            noise.learn(reduce(operator.add, counts), RATES_SHARE, prior)
        return total * batch.weight


def parameters_of(groups: list[MemberNetworks]) -> list[torch.Tensor]:
    """List the weights of all groups."""
    return [part for group in groups for part in group.parameters()]


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
