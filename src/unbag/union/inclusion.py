"""Inclusion-exclusion and its certificate.

One bag with n instances and k required labels, rows normalised so that each
instance's shares sum to one:

=============== ===========================================================
``share[k, i]`` prior of instance i for required label k
``slack[i]``    prior of instance i for all optional labels together
s_i(S)          slack[i] + sum of share[k, i] over k in S
F(S)            product of s_i(S) over i: chance that nothing outside S and
                the optional labels occurs; F(all) = 1
w(T)            F(all without T): chance that no label of T occurs
z               sum over S of (-1)^(k - |S|) F(S): chance that every
                required label occurs
=============== ===========================================================

The chance that instance i has label k *and* every required label occurs is
``share[k, i] * sum of (-1)^(k-|S|) F(S) / s_i(S)`` over the S that contain k.

`unbag.union.few` and `unbag.union.dense` sum over all S, `unbag.union.adaptive` over those that
matter.

**Certificate.** All F(S) are products and sums of positive numbers. So their relative errors are at
most ``n (k + 7)`` half-roundings, and 70 more from the log-priors: a rounded log-prior of -70 is
off by 70 of them, and an F(S) below exp(-70) does not count. F(all) is exact. Only the alternating
sum cancels. As share[k, i] <= s_i(S) for k in S, the error of every posterior is at most the error
of the sum, divided by z: see `bound`.
"""

import math

import numpy as np

from unbag._compile import kernel

from .arithmetic import EPS


@kernel
def bound(n_instances, n_labels, n_additions, others, pruned, z):
    """Bound the error of every posterior of a bag, and of z relative to itself."""
    if not z > 0.0:
        return math.inf
    products = n_instances * (n_labels + 7.0) + 70.0
    additions = n_additions + 24.0
    result = (EPS * (products * others + additions * (1.0 + others)) + 1.0001 * pruned) / z
    if result >= 1.0:
        return math.inf
    return result


@kernel
def normalise_rows(posterior, slack_posterior, share, slack):
    """Normalise the joint probabilities of each instance.

    Rounding may leave tiny negative numbers, which become zero. If the certificate fails, it may
    leave only zeros: then the prior replaces them, which is finite but not certified.
    """
    n_labels, n_instances = posterior.shape
    total = np.empty(n_instances)
    for i in range(n_instances):
        slack_posterior[i] = slack_posterior[i] if slack_posterior[i] > 0.0 else 0.0
        total[i] = slack_posterior[i]
    for k in range(n_labels):
        for i in range(n_instances):
            posterior[k, i] = posterior[k, i] if posterior[k, i] > 0.0 else 0.0
            total[i] += posterior[k, i]
    lost = False
    for i in range(n_instances):
        lost |= total[i] == 0.0
    if lost:
        for i in range(n_instances):
            if total[i] == 0.0:
                total[i] = 1.0
                slack_posterior[i] = slack[i]
                for k in range(n_labels):
                    posterior[k, i] = share[k, i]
    for k in range(n_labels):
        for i in range(n_instances):
            posterior[k, i] /= total[i]
    for i in range(n_instances):
        slack_posterior[i] /= total[i]
