"""The network estimator: its parameters, `fit`, and its predictions."""

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

from unbag._warnings import warn_caller
from unbag.bags import Bags
from unbag.estimators import ORLogisticRegression
from unbag.estimators.contract import BagsLike, LabelSetsLike, RandomState
from unbag.estimators.instances import LabelSetLearner, Threshold, check_background_cost
from unbag.fitting import SCALINGS, Rate, Scale, Scaling, Training, progress_watch
from unbag.fitting.background import PARTS_OF_COST
from unbag.fitting.objective import SAMPLE_BYTES
from unbag.fitting.pooling import pooled
from unbag.fitting.solvers import InterruptedFitWarning
from unbag.union.policy import OnIntractable
from unbag.validation import (
    all_or_nothing,
    check_choices,
    check_numbers,
    check_positive_integers,
)

from .activation import BagRows
from .batches import DivergedError, LearningBags, Settings, bounded_scores
from .committee import FEWEST_MEMBERS, fit_committee, log_proba_of, n_trainings
from .encoding import piecewise_linear, quantile_edges
from .network import MemberNetworks
from .threads import limited_threads
from .training import Course, Trainer

# Hidden units, over all members, that are computed at once.
SCORED_AT_ONCE = 2**24
# What is learnt of networks of one kind, and of a committee.
OF_ONE_KIND = ("weights_", "biases_", "context_", "edges_", "encoder_")
OF_COMMITTEES = ("committee_", "pool_weights_")


class ORNetwork(LabelSetLearner):
    """Learn to label instances from the label sets of their bags, with neural networks.

    The model of `ORLogisticRegression` with small neural networks instead of linear scores. By
    default it is a *committee*: networks of several kinds, a linear model and one with a kernel.
    Held-out bags decide how much each of them counts, how sure they may be together, and when the
    networks have learnt enough.

    Parameters
    ----------
    hidden : tuple of int, default=(256, 256)
        Units of each hidden layer.
    context_units : int, default=16
        Size of the learnt summary of a bag that is an input for each of its instances; 0 for none.
        With it, the prediction for an instance depends on the other instances of its bag. In a
        committee, networks with a context are taught by those without; see Notes.
    encoding : {None, "quantile"}, default=None
        Whether the inputs also say how each feature compares with the quantiles of the training
        instances. In a committee, some networks have such inputs in any case.
    n_members : int, default=12
        Number of networks.
    committee : bool, default=True
        Whether the networks are of several kinds, among which `n_members` are shared out. With
        False, they differ only in their random numbers, and their probabilities are averaged. So
        they do with fewer than 9 members, with an `encoder`, `distill` or `warm_start`, and if
        bags are not in memory.
    distill : int, default=0
        Number of additional rounds. In each, new networks learn the instance labels that the
        previous networks infer, given the label sets.
    dropout : float, default=0.3
        Share of hidden units dropped in each step.
    noise : float, default=0.2
        Standard deviation of the noise that is added to scaled features in each step.
    weight_decay : float, default=0.1
    learning_rate : float, default=3e-3
        The highest learning rate: it increases over 20 steps, and then follows a cosine down to
        zero.
    max_iter : int, default=400
        Number of steps. Networks of a committee take three quarters of them.
    batch_size : int, optional
        Bags in each step. By default all bags, if they are expected to fit in memory.
    scaling : {"standard", "minmax", None}, default="standard"
        How features are scaled first.
    background : bool or "auto", default=False
        Whether to add a class for instances that belong to no other: optional in every bag, and
        never in a label set. "auto" decides with linear models, as
        ``ORLogisticRegression(background="auto")`` does.
    background_cost : float, optional
        The cost of an instance of the background in bags with labels; see `ORLogisticRegression`.
    missed : float, array-like of shape (n_classes,), "learn" or "learn-per-class", default=0.0
        How often an instance is missed when its bag is labelled; see `ORLogisticRegression`.
    false : float, array-like of shape (n_classes,), "learn" or "learn-per-class", default=0.0
        How often a class is added to a label set by mistake; see `ORLogisticRegression`.
    on_impossible : {"relax", "drop", "raise"}, default="relax"
        What to do with a bag whose label set no labelling can produce: treat its labels as optional
        (if it has none, drop it), drop it, or raise an error.
    on_intractable : {"relax", "raise"}, default="relax"
        What to do with a bag that has too many labels for exact inference: treat the labels that
        are most certain to occur as optional, or raise an error.
    encoder : torch.nn.Module, optional
        Computes the inputs of the networks, of shape (n_instances, n_outputs), from the scaled
        features and their `encoding`, if any. It is copied, and trained together with the networks.
        A file of the model holds what the encoder has learnt, but not its code: load it with
        ``unbag.load(path, encoder=MyEncoder())``.
    instance_shape : tuple of int, optional
        The shape in which `encoder` takes each instance, such as (1, 8, 8) for pictures. It gets a
        tensor of shape (n_instances, 1, 8, 8). Features of tables and Bags, 64 of them here, are
        brought into this shape. Lists of bags may also hold arrays of that shape:
        (n_instances, 1, 8, 8). Each pixel is a feature, and scaled as such.
    classes : array-like of shape (n_classes,), optional
        The vocabulary, in the order of `classes_`. By default the sorted labels of the training
        bags.
    threshold : float or "union", default=0.5
        The lowest probability at which `predict` predicts a class for a bag; or the published rule,
        as in `ORLogisticRegression`.
    device : str, default="auto"
        A torch device, such as "cpu" or "cuda:1". "auto" uses a CUDA device if there is one.
    warm_start : bool, default=False
        Whether to start from the networks of the last fit.
    callback : callable, optional
        Called as ``callback(iteration, log_likelihood)``; if it returns True, the fit stops.
    random_state : int, RandomState instance or None
        Seed of the initial weights and of the training. The same seed gives the same model on the
        same device.
    verbose : int, default=0
        1 shows a line of progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_counts_ : ndarray of int of shape (n_classes,)
        How many training bags have each class.
    committee_ : list of (name, model)
        The parts of a committee, each fitted: "linear", "kernel", and one for each kind of
        networks.
    pool_weights_ : ndarray of shape (n_parts,)
        How much each part counts. Log-probabilities are multiplied by these weights, added up and
        normalised. A sum below 1 means that the parts were too sure of themselves.
    weights_ : list of ndarray of shape (n_members, n_inputs, n_outputs)
        Of each layer of the networks, if all are of one kind; and so the next two.
    biases_ : list of ndarray of shape (n_members, 1, n_outputs)
    context_ : list of ndarray
        Weights and biases of the context units, and the weights of the second layer for them; empty
        without a context.
    scale_ : Scale
        What is subtracted from the features, and what they are divided by.
    edges_ : ndarray of shape (n_features, n_pieces + 1)
        Of the quantile encoding, if there is one.
    encoder_ : torch.nn.Module
        The fitted encoder, if there is one.
    n_iter_ : int
    converged_ : bool
        Whether all steps were taken, or the callback stopped the fit.
    history_ : ndarray of shape (n_iter_,)
        Log-likelihood of the bags of each step, averaged over members, before the step and with
        dropout and noise; of networks that are taught, minus the cross-entropy. In a committee, the
        steps of all trainings, one after the other.
    log_likelihood_ : float
        Of the training bags, with the probabilities averaged over all networks. If a
        background has a cost, less that cost.
    missed_, false_ : ndarrays of shape (n_classes,)
        The rates, as given or learnt.
    has_background_ : bool
        Whether the model has a background class.
    background_cost_, background_scores_, background_share_, background_note_
        The cost of the background, and why ``background="auto"`` was decided so; see
        `ORLogisticRegression`.
    relaxed_ : dict
        For the id of each impossible bag that was used, its labels that were treated as optional.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if the features had names.

    Notes
    -----
    For each kind of networks of a committee, three more networks leave out a third of the bags
    each. These bags say after how many steps the training ends, and how much each kind counts.

    A context can lie: a network that recognises the bag can recite its label set, and give the
    labels to the wrong instances at no cost in likelihood. So in a committee, networks with a
    context first learn the instance labels that a part without a context infers, given the label
    sets, and only then the label sets.

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
        missed: Rate = 0.0,
        false: Rate = 0.0,
        on_impossible: Literal["relax", "drop", "raise"] = "relax",
        on_intractable: OnIntractable = "relax",
        encoder: torch.nn.Module | None = None,
        instance_shape: Sequence[int] | None = None,
        classes: ArrayLike | None = None,
        threshold: Threshold = 0.5,
        device: str = "auto",
        warm_start: bool = False,
        callback: Callable[[int, float], object] | None = None,
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
        self.missed: Rate = missed
        self.false: Rate = false
        self.on_impossible: Literal["relax", "drop", "raise"] = on_impossible
        self.on_intractable: OnIntractable = on_intractable
        self.encoder = encoder
        self.instance_shape = instance_shape
        self.classes = classes
        self.threshold: Threshold = threshold
        self.device = device
        self.warm_start = warm_start
        self.callback = callback
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
    has_background_: bool
    converged_: bool

    #: A loss with the arguments of `union_loss` that replaces the exact one, for comparisons.
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
            Labels of the instances whose label is known; None or -1 for the others. The word
            "background", unless it is a class, is the label of instances of none of the classes.
        sample_weight : array-like of shape (n_bags,), optional
            Weight of each bag.

        Returns
        -------
        self
        """
        given = self._begin(X, y, instance_labels, sample_weight)
        start, bags, problem, used, weight, noise = given
        if self._is_committee:
            self._learn_committee(bags, problem, used, weight, noise)
            self._keep_log_likelihood(problem, used, weight, bags)
            return self
        X = torch.from_numpy(self._inputs(bags.X, np.float32)).to(self._device())
        learning = LearningBags.of(X, problem, self.has_background_, weight, bags.ids)
        learning = learning.chosen(np.flatnonzero(used))
        self._learn(learning, start, noise)
        self._keep_log_likelihood(problem, used, weight, bags)
        return self

    def _begin(self, X, y, instance_labels, sample_weight, make=Training):
        """Check the arguments of `fit`, and learn scaling and encoding, unless it is a warm start.

        `make` creates a `Training` of the bags, which need not be in memory.
        """
        check_parameters(self)
        start = self._start()
        last = getattr(self, "n_features_in_", None)
        given = self._read_fit(X, y, instance_labels, sample_weight, make is not Training)
        bags, labels, pinned, weight = given
        self._check_instance_shape()
        self._check_same_features(start, last)
        self._refuse_groups_of_approximations(labels)
        rates = self._decide_background(*given, start)
        problem, used = self._possible_label_sets(bags, labels, pinned)
        if not used.any():
            raise ValueError("No bag is left to fit to: all were dropped.")
        if start is None:
            scale = make(bags, problem, used, weight, scaling=self.scaling).scale
            is_here = isinstance(bags, Bags)
            self._learn_inputs(scale, lambda: (bags if is_here else bags.sample(SAMPLE_BYTES)[0]).X)
        noise = self._noise_of_fit(problem, rates, self.background_cost_)
        return start, bags, problem, used, weight, noise

    def _fit_stored(self, bags, labels, **options):
        """Fit to bags whose features are on disk; see `unbag.torch.stored_learning`."""
        from .stored_learning import fit_stored_network

        return fit_stored_network(self, bags, labels, **options)

    def _start(self):
        """Return the networks, classes and background of a warm start, or None."""
        if not self.warm_start or not hasattr(self, "weights_"):
            return None
        networks = self._networks()
        had = {
            "hidden": tuple(weight.shape[2] for weight in networks.weights[:-1]),
            "n_members": networks.n_members,
            "context_units": networks.context[0].shape[2] if len(networks.context) else 0,
            "encoding": "quantile" if hasattr(self, "edges_") else None,
        }
        for name, value in had.items():
            wanted = tuple(self.hidden) if name == "hidden" else getattr(self, name)
            if wanted != value:
                raise ValueError(
                    f"warm_start continues with the networks of the last fit, which have "
                    f"{name}={value!r}; got {wanted!r}: use warm_start=False to start over."
                )
        return networks, self.classes_, self.has_background_

    def _read_bags(self, X, reset=False):
        return super()._read_bags(flattened(X, self.instance_shape), reset)

    def _check_instance_shape(self):
        """Raise an error if features cannot be brought into the shape that the encoder takes."""
        shape = self.instance_shape
        if shape is not None and math.prod(shape) != self.n_features_in_:
            raise ValueError(
                f"instance_shape={tuple(shape)} has {math.prod(shape)} numbers, but each instance "
                f"has {self.n_features_in_} features."
            )

    def _check_same_features(self, start, last):
        """Raise an error if a warm start has another number of features than the last fit."""
        if start is not None and self.n_features_in_ != last:
            raise ValueError(
                f"warm_start needs the {last} features of the last fit; X has "
                f"{self.n_features_in_}."
            )

    def _refuse_groups_of_approximations(self, labels):
        """Raise an error if another loss than the exact one is to learn from groups of classes."""
        if self.approximation is not None and labels.groups is not None:
            raise ValueError(
                "A loss that approximates the exact one knows no labels that name groups of "
                "classes: leave them out."
            )

    def _decide_background(self, bags, labels, pinned, weight, start):
        """Decide on a background; return how often labels are wrong, as far as that is known."""
        for name in ("background_scores_", "background_share_"):
            self.__dict__.pop(name, None)
        cost, rates = self.background_cost or 0.0, None
        if start is not None:
            _, classes, background = start
            wanted = background if self.background == "auto" else bool(self.background)
            if not np.array_equal(classes, self.classes_) or wanted != background:
                raise ValueError(
                    f"warm_start needs the classes and the background of the last fit, "
                    f"{classes.tolist()}, background={background}; got {self.classes_.tolist()}, "
                    f"background={wanted}."
                )
            cost = self.background_cost_ if self.background == "auto" else cost
            rates = self._rates()
        else:
            linear = ORLogisticRegression(
                background=self.background, background_cost=self.background_cost,
                scaling=self.scaling, missed=self.missed, false=self.false,
            )  # fmt: skip
            linear.classes_ = self.classes_
            # At costs that do linear models good, networks learn to name the background.
            linear._parts_of_cost = PARTS_OF_COST[:1]
            with linear._decided_background(bags, labels, pinned, weight):
                wanted, cost = linear._has_background, linear.background_cost_
                rates = linear._rates_beside_cost(bags, labels, pinned, weight)
            for name in ("background_scores_", "background_share_"):
                if hasattr(linear, name):
                    setattr(self, name, getattr(linear, name))
        self._check_known_background(pinned, bags, wanted)
        self.has_background_ = wanted
        self.background_cost_: float = float(cost) if wanted else 0.0
        if self.background_cost_ and self.approximation is not None:
            raise ValueError(
                "A loss that approximates the exact one knows no background that costs something: "
                "set background_cost=0."
            )
        return rates

    def _learn_inputs(self, scale, features):
        """Keep the scale of the training instances, and learn their encoding."""
        self.scale_ = scale
        for name in OF_ONE_KIND + OF_COMMITTEES:
            self.__dict__.pop(name, None)
        if self.encoding == "quantile":
            self.edges_ = quantile_edges(self._scaled(features()))

    def _learn(self, bags, start, noise, watch=None):
        """Take all steps of all rounds; if interrupted, keep the networks of the last step."""
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.distill + 1)
        with self._recorded(watch) as course:
            for round_, seed in enumerate(seeds.tolist()):
                if round_:
                    bags, start = self._with_teacher(bags), None
                if self._learn_round(bags, start, noise, seed, course):
                    break

    @property
    def _is_committee(self):
        """Whether members are of several kinds."""
        is_one_kind = self.encoder is not None or self.approximation is not None
        is_one_kind = is_one_kind or self.distill or self.warm_start
        return self.committee and not is_one_kind and self.n_members >= FEWEST_MEMBERS

    def _learn_committee(self, bags, problem, used, weight, noise):
        """Fit networks of several kinds and linear models; if interrupted, keep what there is."""
        chosen = np.flatnonzero(used)
        if len(chosen) < len(bags):
            bags, problem = bags[chosen], problem.take(chosen)
            weight = None if weight is None else weight[chosen]
        rng = check_random_state(self.random_state)
        with self._recorded(None) as course:
            fit_committee(self, bags, problem, weight, noise, course, rng)

    @contextmanager
    def _recorded(self, watch):
        """Record the steps of a fit; if it is interrupted, warn."""
        if watch is None and (self.verbose or self.callback is not None):
            watch = self._watch
        course = Course(watch)
        self.converged_ = False
        try:
            yield course
            self.converged_ = True
        except KeyboardInterrupt:
            warn_caller(
                f"fit was interrupted: the model is that of the last completed iteration, "
                f"{len(course.history)}.",
                InterruptedFitWarning,
            )
        finally:
            if self.verbose:
                print(file=sys.stderr)
        self.history_: np.ndarray = course.history
        self.n_iter_: int = max(len(self.history_), 1)

    def _learn_round(self, bags, start, noise, seed, course):
        """Train new networks, or those of the last fit; return whether the callback stopped it."""
        device = bags.device
        generator = torch.Generator(device).manual_seed(seed)
        encoder = self.encoder if start is None else getattr(self, "encoder_", None)
        # Encoders use torch's global generators.
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            network = start[0] if start is not None else self._drawn_networks(bags, seed)
            trainer = Trainer(network, encoder, bags, Settings.of(self), generator, noise)
            try:
                return trainer.run(course)
            finally:
                self._keep(trainer.networks(), trainer.encoder)
                self._keep_rates(None if noise is None else noise.rates)

    def _drawn_networks(self, bags, seed):
        inputs = bags.first_inputs()
        n_inputs = inputs.shape[1]
        if self.encoder is not None:
            with torch.no_grad():
                encoder = copy.deepcopy(self.encoder).to(bags.device).eval()
                features = encoder(inputs)
            if features.ndim != 2 or len(features) != len(inputs):
                raise ValueError(
                    "encoder must return features of shape (n_instances, n_outputs); given "
                    f"{tuple(inputs.shape)}, it returned {tuple(features.shape)}."
                )
            n_inputs = features.shape[1]
        n_columns = len(self.classes_) + self.has_background_
        generator = torch.Generator().manual_seed(seed)
        return MemberNetworks.drawn(
            self.n_members, n_inputs, self.hidden, n_columns, self.context_units, generator
        )

    def _keep(self, networks, encoder):
        """Keep networks as learnt attributes."""
        for name, parts in networks.named_parts().items():
            setattr(self, f"{name}_", [part.detach().cpu().numpy() for part in parts])
        if not all(np.isfinite(part).all() for part in (*self.weights_, *self.biases_)):
            raise DivergedError
        self.__dict__.pop("encoder_", None)
        if encoder is not None:
            self.encoder_ = encoder.cpu().eval()

    def _with_teacher(self, bags):
        """Return the bags with a teacher: the posteriors of instances, given the label sets."""
        log_proba = bounded_scores(self._scored(bags.X.double(), bags.offsets))
        problem = bags.problem()
        return replace(bags, teacher=self._conditioned(self._charged(log_proba, problem), problem))

    def _keep_log_likelihood(self, problem, used, weight, bags):
        """Compute the likelihood of the training bags."""
        inferred = problem.infer(
            self._charged(bounded_scores(self._label_scores(bags)), problem),
            on_intractable=self.on_intractable,
            **self._rates(),
        )
        weight = used if weight is None else weight * used
        self.log_likelihood_: float = float(inferred.log_likelihood[used] @ weight[used])

    @property
    def _watch(self):
        """The function to call after each step of a fit."""
        return progress_watch(self.callback, self.n_steps, self.verbose)

    @property
    def n_steps(self) -> int:
        """The most steps that a fit takes, in all its trainings together."""
        n_rounds = n_trainings(self) if self._is_committee else self.distill + 1
        return self.max_iter * n_rounds

    # Predictions.

    @property
    def _has_background(self):
        return self.has_background_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_") or hasattr(self, "committee_")

    def _scaled(self, X):
        return (X.astype(np.float64, copy=False) - self.scale_.shift) / self.scale_.scale

    def _inputs(self, X, dtype):
        """Return the inputs of the networks."""
        inputs = self._scaled(X)
        if hasattr(self, "edges_"):
            inputs = np.hstack([inputs, piecewise_linear(inputs, self.edges_)])
        inputs = inputs.astype(dtype, copy=False)
        shape = self.instance_shape
        return inputs if shape is None else inputs.reshape(len(inputs), *shape)

    def _networks(self):
        """Return the fitted networks, on the CPU."""
        parts = (self.weights_, self.biases_, self.context_)
        return MemberNetworks(*([torch.from_numpy(each) for each in part] for part in parts))

    def _device(self):
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)

    def _label_scores(self, bags):
        if hasattr(self, "committee_"):
            parts = [log_proba_of(part, bags) for _, part in self.committee_]
            return pooled(parts, self.pool_weights_)
        return self._scored(self._tensor(bags.X), bags.offsets)

    def _instance_log_proba(self, X):
        """Score instances, each in a bag of its own."""
        if hasattr(self, "committee_"):
            return self._label_scores(Bags(X, np.arange(len(X) + 1)))
        return self._scored(self._tensor(X), np.arange(len(X) + 1))

    def _tensor(self, X):
        return torch.from_numpy(self._inputs(X, np.float64))

    @torch.no_grad()
    def _scored(self, X, offsets):
        """Compute the logarithm of the mean probabilities over members, in float64.

        Whole bags at a time, so that the result for a bag does not depend on other bags.
        """
        device = self._device()
        # The model may have been saved on a machine with other devices.
        if device.type == "cuda" and not torch.cuda.is_available():
            device = torch.device("cpu")
        networks = self._networks().double().to(device)
        encoder = getattr(self, "encoder_", None)
        if encoder is not None:
            encoder = copy.deepcopy(encoder).double().to(device)
        answers = [np.empty((0, self.biases_[-1].shape[2]))]
        for first, last in networks.affordable(offsets, SCORED_AT_ONCE):
            inputs = X[offsets[first] : offsets[last]].to(device)
            features = inputs if encoder is None else encoder(inputs)
            rows = BagRows.of(offsets[first : last + 1] - offsets[first], device)
            with limited_threads(networks.n_multiplications(len(inputs))):
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
    model._check_threshold()


def check_instance_shape(model: Any) -> None:
    """Raise an error unless there is an encoder that can take instances of `instance_shape`."""
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
            f"encoding={model.encoding!r} adds inputs that have no place in instances of a shape: "
            "use encoding=None, or no instance_shape."
        )


def flattened(X: Any, shape: Sequence[int] | None) -> Any:
    """Return a list of bags with a row of features for each instance, and all else as it is."""
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
    """Raise an error unless a fit can run on a device."""
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
