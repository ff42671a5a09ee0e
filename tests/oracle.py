"""What inference must give, computed in the slowest and plainest ways.

Imports nothing of unbag: an oracle must not share the suspect's mistakes.
"""

from itertools import product

import mpmath
import numpy as np


def allowed_classes(y, groups):
    """List the classes that a bag allows: what `y` does not forbid, and all in groups."""
    named = set().union(*groups)
    return [c for c in range(len(y)) if y[c] != 0 or c in named]


def needed_groups(y, groups):
    """List the groups that neither a required class in them nor a group within them implies."""
    required = {c for c in range(len(y)) if y[c] == 1}
    sets = {frozenset(group) for group in groups}
    return [
        group for group in sets if not group & required and not any(other < group for other in sets)
    ]


def enumerate_bag(log_prior, y, pinned=None, groups=()):
    """List every labelling of a bag and sum over those that produce the label set.

    In the log domain, so nothing underflows. Of each of the `groups`, an instance has a class.

    Returns
    -------
    log_likelihood : float
    posterior : ndarray of shape (n_instances, n_classes)
    """
    n_instances, n_classes = log_prior.shape
    allowed = allowed_classes(y, groups)
    required = [c for c in range(n_classes) if y[c] == 1]
    choices = [
        [pinned[i]] if pinned is not None and pinned[i] >= 0 else allowed
        for i in range(n_instances)
    ]
    if any(len(choice) == 0 for choice in choices):
        return -np.inf, np.zeros((n_instances, n_classes))
    labellings = np.array(list(product(*choices)), dtype=int)
    covers = np.ones(len(labellings), dtype=bool)
    for c in required:
        covers &= (labellings == c).any(axis=1)
    for group in groups:
        covers &= np.isin(labellings, list(group)).any(axis=1)
    labellings = labellings[covers]
    posterior = np.zeros((n_instances, n_classes))
    if len(labellings) == 0:
        return -np.inf, posterior
    log_weight = log_prior[np.arange(n_instances), labellings].sum(axis=1)
    largest = log_weight.max()
    if largest == -np.inf:
        return -np.inf, posterior
    weight = np.exp(log_weight - largest)
    total = weight.sum()
    for i in range(n_instances):
        posterior[i] = np.bincount(labellings[:, i], weight, n_classes) / total
    return largest + np.log(total), posterior


def enumerate_noisy_bag(log_prior, y, missed_rate, false_rate, pinned=None, groups=()):
    """List labellings, who goes unnoticed and what is named by mistake; sum over what fits.

    For each labelling and each choice of unnoticed instances, the label set is that of the noticed
    ones and of any classes named by mistake; it fits if it agrees with `y` wherever that is known,
    and has a class of each of the `groups` that are needed. Of a class in a group that is not
    required, nobody knows whether it is in the label set.

    Returns
    -------
    likelihood : float
    posterior : ndarray of shape (n_instances, n_classes)
        Divided by the likelihood; zeros if that is zero.
    mistaken : ndarray of shape (n_classes,)
        Probability that each class is named by mistake, given the label set; zero where it is
        not named.
    """
    n_instances, n_classes = log_prior.shape
    named_by_group = set().union(*groups)
    groups = needed_groups(y, groups)
    known = [c for c in range(n_classes) if y[c] == 1 or (y[c] == 0 and c not in named_by_group)]
    may_be_named = sorted(set(known).union(*groups))
    total, posterior, mistaken = 0.0, np.zeros((n_instances, n_classes)), np.zeros(n_classes)
    choices = [
        [pinned[i]] if pinned is not None and pinned[i] >= 0 else range(n_classes)
        for i in range(n_instances)
    ]
    for labelling in product(*choices):
        prior = np.exp(sum(log_prior[i, c] for i, c in enumerate(labelling)))
        for noticed in product([False, True], repeat=n_instances):
            weight, shown = prior, set()
            for c, is_noticed in zip(labelling, noticed, strict=True):
                weight = weight * (1 - missed_rate[c] if is_noticed else missed_rate[c])
                shown |= {c} if is_noticed else set()
            if weight == 0:
                continue
            for phantoms in product([False, True], repeat=len(may_be_named)):
                chance = weight
                for c, is_phantom in zip(may_be_named, phantoms, strict=True):
                    chance = chance * (false_rate[c] if is_phantom else 1 - false_rate[c])
                named = shown | {
                    c for c, is_phantom in zip(may_be_named, phantoms, strict=True) if is_phantom
                }
                fits = all((c in named) == (y[c] == 1) for c in known)
                if fits and all(group & named for group in groups):
                    total += chance
                    for i, c in enumerate(labelling):
                        posterior[i, c] += chance
                    for c, is_phantom in zip(may_be_named, phantoms, strict=True):
                        mistaken[c] += chance * is_phantom
    if total == 0:
        return 0.0, posterior, mistaken
    return total, posterior / total, mistaken / total


def served_bits(required, groups):
    """Give each requirement a bit, and each class the bits of all that it serves."""
    bit = {c: 1 << k for k, c in enumerate(required)}
    for g, group in enumerate(groups):
        for c in group:
            bit[c] = bit.get(c, 0) | 1 << (len(required) + g)
    return bit


def noisy_recursion_bag(log_prior, y, missed_rate, false_rate, pinned=None, digits=60, groups=()):
    """Sum over labellings and notice by a recursion over who was noticed, in many digits.

    Unlike `recursion_bag`, an instance may leave the state as it is, whatever its class; at the
    end, each class that is still lacking must have been named by mistake, and so must a class of
    each group that is still lacking.

    Returns
    -------
    log_likelihood : mpmath.mpf
    posterior : list of lists of mpmath.mpf
    """
    n_instances, n_classes = log_prior.shape
    named_by_group = set().union(*groups)
    groups = needed_groups(y, groups)
    required = [c for c in range(n_classes) if y[c] == 1]
    bit = served_bits(required, groups)
    n_requirements = len(required) + len(groups)
    with mpmath.workdps(digits):
        zero, one = mpmath.mpf(0), mpmath.mpf(1)
        missed_rate = [mpmath.mpf(float(rate)) for rate in missed_rate]
        false_rate = [mpmath.mpf(float(rate)) for rate in false_rate]

        def moves(i):
            """List (class, bit, probability) of all that instance i can do to the state."""
            found = []
            for c in range(n_classes):
                excluded = log_prior[i, c] == -np.inf
                if excluded or (pinned is not None and pinned[i] >= 0 and pinned[i] != c):
                    continue
                p = mpmath.exp(mpmath.mpf(float(log_prior[i, c])))
                if c in bit:
                    found.append((c, 0, p * missed_rate[c]))
                    found.append((c, bit[c], p * (1 - missed_rate[c])))
                elif y[c] == -1 or c in named_by_group:
                    found.append((c, 0, p))
                else:
                    found.append((c, 0, p * missed_rate[c]))
            return found

        every = [moves(i) for i in range(n_instances)]
        states = range(1 << n_requirements)
        absent = [c for c in range(n_classes) if y[c] == 0 and c not in named_by_group]
        weight = one
        for c in absent:
            weight *= 1 - false_rate[c]
        last = {state: weight if state == states[-1] else zero for state in states}
        for c, b in bit.items():
            last = {
                state: false_rate[c] * last[state | b] + (1 - false_rate[c]) * last[state]
                for state in states
            }
        backward = [last]
        for i in reversed(range(n_instances)):
            after = backward[-1]
            backward.append(
                {s: sum((p * after[s | b] for _, b, p in every[i]), zero) for s in states}
            )
        backward.reverse()
        likelihood = backward[0][0]
        posterior = [[zero] * n_classes for _ in range(n_instances)]
        if likelihood == 0:
            return mpmath.ninf, posterior
        forward = {0: one}
        for i in range(n_instances):
            reached = {}
            for state, weight in forward.items():
                for c, b, p in every[i]:
                    term = weight * p
                    posterior[i][c] += term * backward[i + 1][state | b] / likelihood
                    reached[state | b] = reached.get(state | b, zero) + term
            forward = reached
        return mpmath.log(likelihood), posterior


def most_likely_labelling(log_prior, y, pinned=None, groups=()):
    """Find the log-probability of the most likely labelling that produces the label set."""
    n_instances, n_classes = log_prior.shape
    allowed = allowed_classes(y, groups)
    required = {c for c in range(n_classes) if y[c] == 1}
    choices = [
        [pinned[i]] if pinned is not None and pinned[i] >= 0 else allowed
        for i in range(n_instances)
    ]
    return max(
        (
            sum(log_prior[i, c] for i, c in enumerate(labelling))
            for labelling in product(*choices)
            if required <= set(labelling) and all(set(group) & set(labelling) for group in groups)
        ),
        default=-np.inf,
    )


def most_likely_explanation(log_prior, y, missed_rate, false_rate, pinned=None):
    """Find the log-probability of the likeliest labelling, notice and mistakes that fit.

    Returns
    -------
    best : dict of tuple to float
        Of each labelling, with the likeliest notice and mistakes; without those that do not fit.
    """
    n_instances, n_classes = log_prior.shape
    choices = [
        [pinned[i]] if pinned is not None and pinned[i] >= 0 else range(n_classes)
        for i in range(n_instances)
    ]
    known = [c for c in range(n_classes) if y[c] != -1]
    best = {}
    with np.errstate(divide="ignore"):
        log_missed, log_noticed = np.log(missed_rate), np.log1p(-np.asarray(missed_rate))
        log_false, log_true = np.log(false_rate), np.log1p(-np.asarray(false_rate))
    for labelling in product(*choices):
        prior = sum(log_prior[i, c] for i, c in enumerate(labelling))
        for noticed in product([False, True], repeat=n_instances):
            weight, shown = prior, set()
            for c, is_noticed in zip(labelling, noticed, strict=True):
                shown |= {c} if is_noticed else set()
                # Of a class that is unknown in the bag, there is nothing to notice.
                if y[c] != -1:
                    weight = weight + (log_noticed[c] if is_noticed else log_missed[c])
            for phantoms in product([False, True], repeat=len(known)):
                chance, named = weight, set(shown)
                for c, is_phantom in zip(known, phantoms, strict=True):
                    chance = chance + (log_false[c] if is_phantom else log_true[c])
                    named |= {c} if is_phantom else set()
                fits = all((c in named) == (y[c] == 1) for c in known)
                if fits and chance > best.get(labelling, -np.inf):
                    best[labelling] = chance
    return best


def recursion_bag(log_prior, y, pinned=None, digits=60, groups=()):
    """Sum over labellings by the published recursion, in as many digits as are asked for.

    The state has a bit for each required class, and for each of the `groups`.

    Returns
    -------
    log_likelihood : mpmath.mpf
    posterior : list of lists of mpmath.mpf
    """
    n_instances, n_classes = log_prior.shape
    required = [c for c in range(n_classes) if y[c] == 1]
    allowed = allowed_classes(y, groups)
    bit = served_bits(required, groups)
    full = (1 << (len(required) + len(groups))) - 1
    with mpmath.workdps(digits):
        zero = mpmath.mpf(0)
        prior = [
            {
                c: mpmath.exp(mpmath.mpf(float(log_prior[i, c])))
                for c in allowed
                if log_prior[i, c] > -np.inf and (pinned is None or pinned[i] < 0 or pinned[i] == c)
            }
            for i in range(n_instances)
        ]
        forward = [{0: mpmath.mpf(1)}]
        for row in prior:
            after = {}
            for state, weight in forward[-1].items():
                for c, p in row.items():
                    reached = state | bit.get(c, 0)
                    after[reached] = after.get(reached, zero) + weight * p
            forward.append(after)
        likelihood = forward[-1].get(full, zero)
        posterior = [[zero] * n_classes for _ in range(n_instances)]
        if likelihood == 0:
            return mpmath.ninf, posterior
        backward = {full: mpmath.mpf(1)}
        for i in reversed(range(n_instances)):
            before = {}
            for state, weight in forward[i].items():
                onward = zero
                for c, p in prior[i].items():
                    term = p * backward.get(state | bit.get(c, 0), zero)
                    posterior[i][c] += weight * term / likelihood
                    onward += term
                before[state] = onward
            backward = before
        return mpmath.log(likelihood), posterior


def extended_recursion_bag(log_prior, y, pinned=None, groups=()):
    """Sum over labellings as `recursion_bag` does, in extended precision: a hundred times faster.

    Returns
    -------
    log_likelihood : numpy.longdouble
    posterior : ndarray of longdouble of shape (n_instances, n_classes)
        None instead of both where numbers might underflow, or the machine has no such precision.
    """
    if np.finfo(np.longdouble).eps > 2e-19:
        return None
    n_instances, n_classes = log_prior.shape
    required = [c for c in range(n_classes) if y[c] == 1]
    allowed = allowed_classes(y, groups)
    bit = served_bits(required, groups)
    states = np.arange(1 << (len(required) + len(groups)))
    is_allowed = np.zeros((n_instances, n_classes), dtype=bool)
    is_allowed[:, list(allowed)] = True
    if pinned is not None:
        is_allowed &= (pinned[:, None] < 0) | (pinned[:, None] == np.arange(n_classes))
    given = np.where(is_allowed, log_prior, -np.inf).astype(np.longdouble)
    top = given.max(axis=1, initial=-np.inf)
    if (top == -np.inf).any():
        return None
    prior = np.exp(given - top[:, None])
    onward = {c: states | bit.get(c, 0) for c in allowed}
    backward = np.zeros((n_instances + 1, len(states)), np.longdouble)
    backward[n_instances, -1] = 1
    for i in reversed(range(n_instances)):
        for c in allowed:
            backward[i] += prior[i, c] * backward[i + 1, onward[c]]
    likelihood = backward[0, 0]
    if not likelihood > 1e-300:
        return None
    posterior = np.zeros((n_instances, n_classes), np.longdouble)
    forward = np.zeros(len(states), np.longdouble)
    forward[0] = 1
    for i in range(n_instances):
        after = np.zeros_like(forward)
        for c in allowed:
            step = forward * prior[i, c]
            posterior[i, c] = step @ backward[i + 1, onward[c]]
            np.add.at(after, onward[c], step)
        forward = after
    return np.log(likelihood) + top.sum(), posterior / likelihood


def errors(result, reference):
    """Compare an Inference of one bag with what `recursion_bag` gives.

    Returns
    -------
    posterior_error, likelihood_error : float
        The latter relative to ``max(1, abs(log_likelihood))``.
    """
    log_likelihood, posterior = reference
    n_instances, n_classes = result.posterior.shape
    with mpmath.workdps(60):
        posterior_error = max(
            (
                abs(mpmath.mpf(float(result.posterior[i, c])) - posterior[i][c])
                for i in range(n_instances)
                for c in range(n_classes)
            ),
            default=mpmath.mpf(0),
        )
        likelihood_error = abs(mpmath.mpf(float(result.log_likelihood[0])) - log_likelihood)
        likelihood_error /= max(1, abs(log_likelihood))
    return float(posterior_error), float(likelihood_error)


def enumerate_charged_bag(prior, y, cost, pinned=None):
    """List every labelling of a bag; in bags with labels, each background instance has a price.

    Parameters
    ----------
    prior : ndarray of shape (n_instances, n_columns)
        Probabilities; the background comes last, and is optional in `y`.
    cost : float
        Divides the weight of a labelling by its exponential, once for each background instance.

    Returns
    -------
    likelihood : float
    posterior : ndarray of shape (n_instances, n_columns)
    best : tuple of int
        The labelling of the largest weight.
    """
    n_instances, n_columns = prior.shape
    required = {c for c in range(n_columns) if y[c] == 1}
    total, posterior, best = 0.0, np.zeros(prior.shape), (0.0, None)
    for labelling in product(range(n_columns), repeat=n_instances):
        fits = all(y[c] != 0 for c in labelling) and required <= set(labelling)
        if pinned is not None:
            fits &= all(pin in (-1, c) for pin, c in zip(pinned, labelling, strict=True))
        if not fits:
            continue
        weight = 1.0
        for i, c in enumerate(labelling):
            weight *= prior[i, c]
            if required and c == n_columns - 1:
                weight /= np.exp(cost)
        total += weight
        best = max(best, (weight, labelling))
        for i, c in enumerate(labelling):
            posterior[i, c] += weight
    return total, posterior / total, best[1]
