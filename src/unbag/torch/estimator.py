"""The network estimator: parameters, `fit` and predictions."""

import copy
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from unbag._messages import warn_caller
from unbag.bags import Bags
from unbag.estimators.answers import UnionClassifier
from unbag.estimators.contract import (
    BagsLike,
    LabelSetsLike,
    RandomState,
    Threshold,
    check_background_cost,
    check_threshold,
    possible_label_sets,
)
from unbag.fitting import Decision
from unbag.fitting.decide import decide
from unbag.fitting.linear import InterruptedFitWarning, LinearSettings, scale_of, shown
from unbag.fitting.pooling import pooled
from unbag.fitting.scaling import SCALINGS, Scale, Scaling
from unbag.union import Conditioner
from unbag.union.noise import impossible_bags
from unbag.union.policy import OnIntractable
from unbag.union.rates import Rate
from unbag.validation import (
    all_or_nothing,
    check_choices,
    check_known_background,
    check_numbers,
    check_positive_integers,
)

from .batches import LearningBags, checked_scores
from .committee import FEWEST_MEMBERS, fit_committee, kinds_of, log_proba_of
from .network import BagRows, MemberNetworks, network_inputs, quantile_edges, scaled
from .operators import chunks
from .training import History, device_of, limited_threads, train_networks

# Hidden units, over all members, that are computed at once.
SCORED_AT_ONCE = 2**24
# Learnt attributes of networks of one kind, and of a committee.
OF_ONE_KIND = ("weights_", "biases_", "context_", "edges_", "encoder_")
OF_COMMITTEES = ("committee_", "pool_weights_")

#: The cost of a background, as a part of the naming cost.
BACKGROUND_PART = 0.2


class ORNetwork(UnionClassifier):
    """Learn to label instances from the label sets of their bags, with neural networks.

    The model of `ORLogisticRegression` with small neural networks instead of linear scores. By
    default it is a *committee*: networks of several kinds, a linear model and one with a kernel.
    Held-out bags decide the weight of each part, and how sure they may be together.

    Parameters
    ----------
    hidden : tuple of int, default=(256, 256)
        Units of each hidden layer.
    context_units : int, default=16
        Size of the learnt summary of a bag that is an input for each of its instances; 0 for none.
        With it, the prediction for an instance depends on the other instances of its bag. In a
        committee, networks with a context are taught by those without; see Notes.
    encoding : {None, "quantile"}, default=None
        "quantile" adds the position of each feature among the quantiles of the training instances
        to the inputs. In a committee, some networks have such inputs in any case.
    n_members : int, default=12
        Number of networks.
    committee : bool, default=True
        Whether to fit networks of several kinds and linear models. With False, the `n_members`
        networks differ only in their random numbers, and their probabilities are averaged. The
        same holds for fewer than 9 members, and with an `encoder` or `distill`.
    distill : int, default=0
        Number of additional rounds. In each, new networks learn the instance labels that the
        previous networks infer, given the label sets.
    dropout : float, default=0.3
        Share of hidden units dropped in each step.
    noise : float, default=0.2
        Standard deviation of the noise that is added to scaled features in each step.
    weight_decay : float, default=0.1
    learning_rate : float, default=3e-3
        Highest learning rate. It is reached after 20 steps, and then follows a cosine down to zero.
    max_iter : int, default=400
        Number of steps.
    batch_size : int, optional
        Bags in each step. By default all bags, if they are expected to fit in memory; networks of a
        committee learn from random batches of about 256 instances.
    background : bool or "auto", default=False
        Whether to add a class for instances that belong to no other class: optional in every bag,
        and never in a label set. "auto" decides with linear models, as
        ``ORLogisticRegression(background="auto")`` does.
    scaling, background_cost, missed_rate, false_rate, on_impossible, on_intractable, classes
        As in `unbag.ORLogisticRegression`.
    encoder : torch.nn.Module, optional
        Module that computes the inputs of the networks, of shape (n_instances, n_outputs), from the
        scaled features and their `encoding`, if any. It is copied, and trained together with the
        networks. A model file has the weights of the encoder, but not its code: load it with
        ``unbag.load(path, encoder=MyEncoder())``.
    instance_shape : tuple of int, optional
        Shape of an instance for the `encoder`, such as (1, 8, 8) for pictures. The encoder gets a
        tensor of shape (n_instances, 1, 8, 8). Features of tables and Bags, here 64, are reshaped.
        Lists of bags may also have arrays of that shape. Each pixel is a feature, and scaled as
        one.
    threshold : float or "union", default=0.5
        As in `unbag.ORLogisticRegression`; nothing is learnt.
    device : str, default="auto"
        A torch device, such as "cpu" or "cuda:1". "auto" uses a CUDA device if there is one.
    random_state : int, RandomState instance or None
        Seed of the initial weights and of the training. The same seed gives the same model on the
        same device.
    verbose : int, default=0
        1 shows a line of progress.

    Attributes
    ----------
    committee_ : list of (name, model)
        The fitted parts of a committee: "linear", "kernel", and one for each kind of networks.
    pool_weights_ : ndarray of shape (n_parts,)
        Weights of these parts. Log-probabilities are multiplied by the weights, added up and
        normalised. A sum below 1 means that the parts were overconfident.
    weights_ : list of ndarray of shape (n_members, n_inputs, n_outputs)
        Weights of each layer. A committee has neither this nor the next two attributes.
    biases_ : list of ndarray of shape (n_members, 1, n_outputs)
        Biases of each layer.
    context_ : list of ndarray
        Weights and biases of the context units, and the weights of the second layer for them; empty
        without a context.
    scale_ : Scale
        Shift and scale of the features.
    edges_ : ndarray of shape (n_features, n_pieces + 1)
        Quantiles of the features, with a quantile encoding.
    encoder_ : torch.nn.Module
        The fitted encoder, if there is one.
    n_iter_ : int
    converged_ : bool
        Whether all steps were taken, or `watch` stopped the fit.
    history_ : ndarray of shape (n_iter_,)
        Log-likelihood of the bags of each step, averaged over members, before the step and with
        dropout and noise. For networks that are taught, minus the cross-entropy. In a committee,
        the steps of all trainings, one after the other.
    log_likelihood_ : float
        Log-likelihood of the training bags, with the probabilities averaged over all networks. A
        background cost is subtracted.
    relaxed_ : dict
        Labels that were treated as optional, by the ids of impossible bags.
    classes_, class_counts_, n_features_in_, feature_names_in_, has_background_
        As in `unbag.ORLogisticRegression`.
    background_cost_, missed_rate_, false_rate_, decision_, conditioner_
        As in `unbag.ORLogisticRegression`.

    Notes
    -----
    For each kind of networks of a committee, three more networks leave out a third of the bags
    each. These bags decide the weight of each kind.

    A network with a context can recognise the bag and recite its label set, and give the labels to
    the wrong instances at no cost in likelihood. So in a committee, networks with a context first
    learn the instance labels that a part without a context infers, given the label sets, and only
    then the label sets.

    Examples
    --------
    >>> from unbag import Bags
    >>> from unbag.torch import ORNetwork
    >>> bags = Bags.from_list([[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]])
    >>> model = ORNetwork((16,), n_members=2, max_iter=50, device="cpu", random_state=0)
    >>> model.fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}]).predict_instances([[[0.5], [8.5]]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        hidden: Sequence[int] = (256, 256),
        *,
        context_units: int = 16,
        encoding: Literal["quantile"] | None = None,
        n_members: int = 12,
        committee: bool = True,
        distill: int = 0,
        dropout: float = 0.3,
        noise: float = 0.2,
        weight_decay: float = 0.1,
        learning_rate: float = 3e-3,
        max_iter: int = 400,
        batch_size: int | None = None,
        scaling: Scaling = "standard",
        background: bool | Literal["auto"] = False,
        background_cost: float | None = None,
        missed_rate: Rate = 0.0,
        false_rate: Rate = 0.0,
        on_impossible: Literal["relax", "drop", "raise"] = "relax",
        on_intractable: OnIntractable = "relax",
        encoder: torch.nn.Module | None = None,
        instance_shape: Sequence[int] | None = None,
        classes: ArrayLike | None = None,
        threshold: Threshold = 0.5,
        device: str = "auto",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.context_units = context_units
        self.encoding: Literal["quantile"] | None = encoding
        self.n_members = n_members
        self.committee = committee
        self.distill = distill
        self.dropout = dropout
        self.noise = noise
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.scaling: Scaling = scaling
        self.background: bool | Literal["auto"] = background
        self.background_cost = background_cost
        self.missed_rate: Rate = missed_rate
        self.false_rate: Rate = false_rate
        self.on_impossible: Literal["relax", "drop", "raise"] = on_impossible
        self.on_intractable: OnIntractable = on_intractable
        self.encoder = encoder
        self.instance_shape = instance_shape
        self.classes = classes
        self.threshold: Threshold = threshold
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    weights_: list[np.ndarray]
    biases_: list[np.ndarray]
    context_: list[np.ndarray]
    scale_: Scale
    edges_: np.ndarray
    committee_: list[tuple[str, Any]]
    pool_weights_: np.ndarray
    encoder_: torch.nn.Module
    converged_: bool
    decision_: Decision
    relaxed_: dict[object, np.ndarray]

    #: Loss that replaces `union_loss`, with the same arguments, for comparisons.
    approximation: Callable[..., torch.Tensor] | None = None

    # Training needs gradients, even if the caller has turned them off.
    @torch.inference_mode(False)
    @torch.enable_grad()
    @all_or_nothing
    def fit(
        self,
        X: BagsLike,
        y: LabelSetsLike,
        instance_labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        watch: Callable[[History], object] | None = None,
    ) -> Self:
        """Fit the networks to bags and their label sets.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
            A 2-D array has one instance per bag. With `instance_shape`, also a list of arrays of
            shape (n_instances, *instance_shape).
        y : label sets
            As in `ORLogisticRegression.fit`.
        instance_labels : array-like of shape (n_instances,), optional
            Labels of the instances whose label is known; None or -1 for the others. Unless it is a
            class, "background" is the label of instances of no class.
        sample_weight : array-like of shape (n_bags,), optional
            Weight of each bag.
        watch : callable, optional
            Called after each step with an object whose `history` is a list of log-likelihoods; a
            true answer stops the fit.

        Returns
        -------
        self
        """
        check_parameters(self)
        check_threshold(self.threshold)
        bags, labels, pinned, weight = self._read_fit(X, y, instance_labels, sample_weight)
        self._check_inputs()
        settings = LinearSettings(
            scaling=self.scaling, missed_rate=self.missed_rate, false_rate=self.false_rate
        )
        decision = decide(
            bags, labels, settings, background=self.background, cost=self.background_cost,
            pinned=pinned, weight=weight,
        )  # fmt: skip
        if self.background_cost is None and "naming_cost" in decision.held_out:
            # At the costs that suit linear models, networks learn to give background a class.
            cost = BACKGROUND_PART * decision.held_out["naming_cost"] * decision.background
            decision = replace(decision, background_cost=cost)
        n_classes, cost = len(self.classes_), decision.background_cost
        check_known_background(pinned, bags, n_classes, self, decision.background)
        self.decision_ = decision
        self.conditioner_: Conditioner = decision.conditioner(on_intractable=self.on_intractable)
        problem = self.conditioner_.problem(bags.offsets, labels, pinned, relax=False)
        noise = settings.noise(n_classes, problem.y.shape[1], decision.rates, cost)
        impossible = impossible_bags(problem, None if noise is None else noise.rates)
        given = bags, labels, problem, self.on_impossible, impossible
        problem, used, relaxed = possible_label_sets(*given)
        names = bags.ids[list(relaxed)].tolist()
        self.relaxed_ = dict(zip(names, map(self._label_values, relaxed.values()), strict=True))
        self._learn_inputs(scale_of(bags, problem, self.scaling, used, weight), bags.X)
        if self._is_committee:
            self._learn_committee(bags, problem, used, weight, noise, watch)
        else:
            X = torch.from_numpy(network_inputs(self, bags.X, np.float32)).to(device_of(self))
            learning = LearningBags(X, problem, self.has_background_, weight, bags.ids)
            self._learn(learning.chosen(np.flatnonzero(used)), noise, watch)
        self._keep_log_likelihood(problem, used, weight, bags)
        return self

    def _read_bags(self, X, reset=False):
        """Read bags; their instances may have the shape `instance_shape`."""
        return super()._read_bags(flattened(X, self.instance_shape), reset)

    def _check_inputs(self):
        """Raise an error unless instances have as many numbers as `instance_shape` says."""
        shape = self.instance_shape
        if shape is not None and math.prod(shape) != self.n_features_in_:
            raise ValueError(
                f"instance_shape={tuple(shape)} has {math.prod(shape)} numbers, but each instance "
                f"has {self.n_features_in_} features."
            )

    def _learn_inputs(self, scale, X):
        """Forget the last fit, keep the scale of the features, and learn their encoding."""
        self.scale_ = scale
        for name in OF_ONE_KIND + OF_COMMITTEES:
            self.__dict__.pop(name, None)
        if self.encoding == "quantile":
            self.edges_ = quantile_edges(scaled(X, scale))

    def _learn(self, bags, noise, watch):
        """Take all steps of all rounds; if interrupted, keep the networks of the last step."""
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.distill + 1)
        with self._recorded(watch) as history:
            for round_, seed in enumerate(seeds.tolist()):
                if round_:
                    bags = self._with_teacher(bags)
                if train_networks(self, bags, noise, seed, history):
                    break

    @property
    def _is_committee(self):
        """Whether to fit several kinds of networks, and linear models."""
        is_one_kind = self.encoder is not None or self.approximation is not None
        is_one_kind = is_one_kind or self.distill
        return self.committee and not is_one_kind and self.n_members >= FEWEST_MEMBERS

    def _learn_committee(self, bags, problem, used, weight, noise, watch):
        """Fit networks of several kinds and linear models; if interrupted, keep finished parts."""
        chosen = np.flatnonzero(used)
        if len(chosen) < len(bags):
            bags, problem = bags[chosen], problem.take(chosen)
            weight = None if weight is None else weight[chosen]
        rng = check_random_state(self.random_state)
        with self._recorded(watch) as history:
            fit_committee(self, bags, problem, weight, noise, history, rng)

    @contextmanager
    def _recorded(self, watch):
        """Record the steps of a fit; if it is interrupted, warn."""
        history = History(shown(watch, self.n_steps) if self.verbose else watch)
        self.converged_ = False
        try:
            yield history
            self.converged_ = True
        except KeyboardInterrupt:
            warn_caller(
                f"fit was interrupted: the model has the weights of the last completed iteration, "
                f"{len(history.to_array())}.",
                InterruptedFitWarning,
            )
        finally:
            if self.verbose:
                print(file=sys.stderr)
        self.history_: np.ndarray = history.to_array()
        self.n_iter_: int = max(len(self.history_), 1)

    def _with_teacher(self, bags):
        """Return the bags with a teacher: the posteriors of instances, given the label sets."""
        log_proba = checked_scores(self._scored(bags.X.double(), bags.problem.offsets))
        return replace(bags, teacher=self._conditioned(log_proba, bags.problem))

    def _keep_log_likelihood(self, problem, used, weight, bags):
        """Compute the likelihood of the training bags."""
        inferred = self.conditioner_.infer(checked_scores(self._label_scores(bags)), problem)
        weight = used if weight is None else weight * used
        self.log_likelihood_: float = float(inferred.log_likelihood[used] @ weight[used])

    @property
    def n_steps(self) -> int:
        """Most steps that a fit takes, over all its trainings."""
        n_rounds = len(kinds_of(self)) if self._is_committee else self.distill + 1
        return self.max_iter * n_rounds

    # Predictions.

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_") or hasattr(self, "committee_")

    def _label_scores(self, bags):
        """Return the log-probability of each class for each instance, given the bags."""
        if hasattr(self, "committee_"):
            parts = [log_proba_of(part, bags) for _, part in self.committee_]
            return pooled(parts, self.pool_weights_)
        X = torch.from_numpy(network_inputs(self, bags.X, np.float64))
        return self._scored(X, bags.offsets)

    def _instance_log_proba(self, X):
        """Score instances, each in a bag of its own."""
        return self._label_scores(Bags(X, np.arange(len(X) + 1)))

    @torch.no_grad()
    def _scored(self, X, offsets):
        """Compute the logarithm of the mean probabilities over members, in float64.

        Bags are scored whole, so that scores of a bag do not depend on other bags.
        """
        device = device_of(self)
        networks = MemberNetworks.kept_in(self).double().to(device)
        encoder = getattr(self, "encoder_", None)
        if encoder is not None:
            encoder = copy.deepcopy(encoder).double().to(device)
        answers = [np.empty((0, self.biases_[-1].shape[2]))]
        n_rows = SCORED_AT_ONCE // (networks.n_members * networks.widest)
        with limited_threads(networks.n_multiplications(min(n_rows, len(X)))):
            for bags, own in chunks(offsets, n_rows):
                inputs = X[own].to(device)
                features = inputs if encoder is None else encoder(inputs)
                rows = BagRows.of(offsets[bags.start : bags.stop + 1] - own.start, device)
                logits = networks(features.expand(networks.n_members, *features.shape), rows)
                log_proba = torch.logsumexp(torch.log_softmax(logits, 2), 0)
                answers.append((log_proba - math.log(networks.n_members)).cpu().numpy())
        return np.concatenate(answers)


def check_parameters(model: Any) -> None:
    """Raise an error that names the first invalid parameter of an `ORNetwork`."""
    check_numbers(
        model, dropout=(0, 0.99), noise=(0, np.inf), weight_decay=(0, np.inf),
        learning_rate=(0, np.inf),
    )  # fmt: skip
    check_positive_integers(model, "n_members", "max_iter")
    for name in ("context_units", "distill"):
        if not is_count(getattr(model, name)):
            raise ValueError(f"{name} must be 0 or more; got {getattr(model, name)!r}.")
    if model.batch_size is not None:
        check_positive_integers(model, "batch_size")
    layers = model.hidden if isinstance(model.hidden, tuple | list) else ()
    if not layers or not all(is_count(units) and units for units in layers):
        raise ValueError(
            f"hidden must be a tuple of integers, the units of each layer; got {model.hidden!r}."
        )
    check_background_cost(model)
    check_choices(
        model,
        encoding=(None, "quantile"),
        on_impossible=("relax", "drop", "raise"),
        on_intractable=("relax", "raise"),
        scaling=SCALINGS,
        background=(False, True, "auto"),
    )
    if model.encoder is not None and not isinstance(model.encoder, torch.nn.Module):
        raise ValueError(f"encoder must be a torch.nn.Module; got {model.encoder!r}.")
    check_instance_shape(model)
    check_device(model.device)


def check_instance_shape(model: Any) -> None:
    """Raise an error unless `instance_shape` is valid and there is an encoder to take it."""
    shape = model.instance_shape
    if shape is None:
        return
    is_shape = isinstance(shape, tuple | list) and len(shape) > 0
    if not is_shape or not all(is_count(n) and n for n in shape):
        raise ValueError(
            f"instance_shape must be a tuple of integers, such as (1, 8, 8); got {shape!r}."
        )
    if model.encoder is None:
        raise ValueError(
            f"instance_shape={shape!r} needs an encoder that takes instances of this shape, such "
            "as a convolutional network: set encoder."
        )
    if model.encoding is not None:
        raise ValueError(
            f"encoding={model.encoding!r} adds inputs, which instance_shape leaves no room for: "
            "use encoding=None, or no instance_shape."
        )


def flattened(X: Any, shape: Sequence[int] | None) -> Any:
    """Flatten the instances of a list of bags to rows of features; return other bags as given."""
    if not isinstance(X, list | tuple) or not X or np.ndim(X[0]) <= 2:
        return X
    if shape is None:
        shape = np.shape(X[0])[1:]
        raise ValueError(
            f"X has instances of shape {shape}: set instance_shape={shape}, and an encoder that "
            "takes them; or flatten them to rows of features."
        )
    rows = []
    for b, bag in enumerate(map(np.asarray, X)):
        if bag.shape[1:] != tuple(shape):
            raise ValueError(
                f"Bag {b} has instances of shape {bag.shape[1:]}, but "
                f"instance_shape={tuple(shape)}."
            )
        rows.append(bag.reshape(len(bag), math.prod(shape)))
    return rows


def is_count(value: Any) -> bool:
    """Return whether a value is a non-negative integer."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def check_device(name: Any) -> None:
    """Raise an error if a fit cannot run on a device."""
    try:
        device = None if name == "auto" else torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(
            f'device must be "auto" or a torch device such as "cpu"; got {name!r}.'
        ) from None
    if device is None or device.type == "cpu":
        return
    if device.type != "cuda":
        raise ValueError(f"device must be a CPU or a CUDA device; got {name!r}.")
    if not torch.cuda.is_available():
        raise ValueError(f"device={name!r} is not available: torch finds no CUDA device.")
