"""Arithmetic with small rounding errors, and the constants of error bounds.

=========== ==============================================================
``EPS``     spacing of doubles at one; a rounding errs by at most half of it
``TINY``    added to divisors that are zero only if their dividends are; any
            other quotient that it changes is as tiny
=========== ==============================================================
"""

import math

from llvmlite import ir
from numba import types

from unbag._compile import intrinsic, kernel

EPS = 2.0**-52
TINY = 1e-300


@kernel
def add_exactly(total, correction, term):
    """Add `term` to the pair ``total + correction`` without losing digits.

    Knuth's two-sum finds the rounding error of any addition, whatever the sizes and signs of
    its terms, without a branch. The correction collects these errors.
    """
    new_total = total + term
    added = new_total - total
    correction += (total - (new_total - added)) + (term - added)
    return new_total, correction


@kernel
def exp_sum(a, b, c, d):
    """Compute ``exp(a + b + c + d)`` as if the additions did not round; `a` may be -inf.

    A rounded sum near 700 is off by up to 6e-14, and its exponential would be, relative to itself.
    """
    if a == -math.inf:
        return 0.0
    total, correction = add_exactly(a, 0.0, b)
    total, correction = add_exactly(total, correction, c)
    total, correction = add_exactly(total, correction, d)
    return math.exp(total) * math.exp(correction)


@kernel
def log_of(z):
    """Return the logarithm of z, or of an upper bound if z is lost in rounding."""
    return math.log(z) if z > 0.0 else math.log(EPS)


@kernel
def needs_shift(top):
    """Return whether to subtract `top` from a row of log-priors: doubles near zero are finer."""
    return top > -math.inf and not -50.0 <= top <= 1.0


@intrinsic
def trailing_zeros(typingctx, value):
    """Return the position of the lowest bit that is set in an int64 other than zero."""

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen
