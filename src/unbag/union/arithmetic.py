"""Rounding, measured and kept small: what the kernels' error bounds rest on.

=========== ==============================================================
``EPS``     spacing of doubles at one; a rounding errs by at most half of it
``TINY``    added to a divisor that may be zero where the dividend is then
            zero too; where it changes any other quotient, that is as tiny
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

    Knuth's two-sum finds the rounding error of any addition, whatever the size and
    sign of its terms, without a branch; it goes into the correction.
    """
    new_total = total + term
    added = new_total - total
    correction += (total - (new_total - added)) + (term - added)
    return new_total, correction


@kernel
def exp_sum(a, b, c, d):
    """Compute ``exp(a + b + c + d)`` as if the additions did not round; `a` may be -inf.

    A rounded sum of 700 is off by up to 6e-14, and so would be its exponential.
    """
    if a == -math.inf:
        return 0.0
    total, correction = add_exactly(a, 0.0, b)
    total, correction = add_exactly(total, correction, c)
    total, correction = add_exactly(total, correction, d)
    return math.exp(total) * math.exp(correction)


@kernel
def log_of(z):
    """Take the logarithm of z; lost in rounding, only an upper bound of it is known."""
    return math.log(z) if z > 0.0 else math.log(EPS)


@intrinsic
def trailing_zeros(typingctx, value):
    """Give the position of the lowest bit set in an int64 that is not zero."""

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen
