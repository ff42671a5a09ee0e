"""Vectors of `LANES` doubles in numba kernels, which one instruction adds or divides.

LLVM does not vectorise short loops over the instances of a bag by itself, so the kernels for few
labels calculate in vectors. Each lane is rounded as IEEE demands, on every machine.

=============================== ====================================================
``load_lanes(array, start)``    the lanes at ``array[start : start + LANES]``
``store_lanes(array, ...)``     the way back
``scratch_for_sets(labels)``    memory to use like an array within a kernel
``same_lanes(number)``          the same number in every lane
``a + b``, ``a - b``, ...       lane by lane
``above(a, limit, otherwise)``  lane by lane, `a` if it is above the limit
=============================== ====================================================

Arrays are flat and contiguous. Their bounds are not checked.
"""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once, get_item_pointer
from numba.extending import lower_builtin, models, register_model, type_callable

from unbag._compile import intrinsic

LANES = 4
VECTOR: Any = ir.VectorType(ir.DoubleType(), LANES)
# Alignment in bytes that numba guarantees for the doubles of an array.
ALIGNMENT = 8


class LanesType(types.Type):
    """The type of lanes in numba."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes({LANES})")


LANES_TYPE = LanesType()


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """Stores lanes as one vector of LLVM."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def _pointer(context, builder, array_type, array, start):
    """Point at the vector that starts at an entry of an array, or of scratch memory."""
    if isinstance(array_type, types.CPointer):
        return builder.bitcast(builder.gep(array, [start]), VECTOR.as_pointer())
    structure = context.make_array(array_type)(context, builder, array)
    entry = _entry(context, builder, array_type, structure, start)
    return builder.bitcast(entry, VECTOR.as_pointer())


def _entry(context, builder, array_type, structure, place):
    """Point at an entry of an array."""
    return get_item_pointer(
        context, builder, array_type, structure, [place], wraparound=False, boundscheck=False
    )


@intrinsic
def scratch_for_sets(typingctx, labels):
    """Allocate two vectors of lanes for each subset of ``len(labels)`` labels.

    They lie on the stack, where arrays cannot, so that LLVM may keep them in registers.
    """

    def codegen(context, builder, signature, arguments):
        scratch = alloca_once(builder, VECTOR, size=2 << len(labels))
        return builder.bitcast(scratch, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(labels), codegen


@intrinsic
def load_lanes(typingctx, array, start):
    """Load `LANES` entries of an array of float64, the first at `start`."""

    def codegen(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=ALIGNMENT)

    return LANES_TYPE(array, types.int64), codegen


@intrinsic
def store_lanes(typingctx, array, start, lanes):
    """Store lanes in an array of float64, the first at `start`."""

    def codegen(context, builder, signature, arguments):
        array, start, lanes = arguments
        pointer = _pointer(context, builder, signature.args[0], array, start)
        builder.store(lanes, pointer, align=ALIGNMENT)
        return context.get_dummy_value()

    return types.void(array, types.int64, LANES_TYPE), codegen


@intrinsic
def same_lanes(typingctx, number):
    """Put the same number into every lane."""

    def codegen(context, builder, signature, arguments):
        vector = ir.Constant(VECTOR, ir.Undefined)
        for lane in range(LANES):
            place = ir.Constant(ir.IntType(32), lane)
            vector = builder.insert_element(vector, arguments[0], place)
        return vector

    return LANES_TYPE(types.float64), codegen


@intrinsic
def product_of_lanes(typingctx, lanes):
    """Multiply the lanes with each other."""

    def codegen(context, builder, signature, arguments):
        product = ir.Constant(ir.DoubleType(), 1.0)
        for lane in range(LANES):
            place = ir.Constant(ir.IntType(32), lane)
            product = builder.fmul(product, builder.extract_element(arguments[0], place))
        return product

    return types.float64(LANES_TYPE), codegen


@intrinsic
def gather_lanes(typingctx, array, start, step, last):
    """Load `LANES` entries of an array of float64, `step` apart; repeat the one at `last`."""

    def codegen(context, builder, signature, arguments):
        array, start, step, last = arguments
        structure = context.make_array(signature.args[0])(context, builder, array)
        vector = ir.Constant(VECTOR, ir.Undefined)
        place = start
        for lane in range(LANES):
            place = builder.add(place, step) if lane else place
            within = builder.select(builder.icmp_signed("<", place, last), place, last)
            entry = _entry(context, builder, signature.args[0], structure, within)
            number = ir.Constant(ir.IntType(32), lane)
            vector = builder.insert_element(vector, builder.load(entry), number)
        return vector

    return LANES_TYPE(array, types.int64, types.int64, types.int64), codegen


@intrinsic
def above(typingctx, lanes, limit, otherwise):
    """Return ``lanes if lanes > limit else otherwise``, lane by lane; NaN is replaced as well."""

    def codegen(context, builder, signature, arguments):
        lanes, limit, otherwise = arguments
        return builder.select(builder.fcmp_ordered(">", lanes, limit), lanes, otherwise)

    return LANES_TYPE(LANES_TYPE, LANES_TYPE, LANES_TYPE), codegen


def _define_operator(function, instruction):
    """Compile an operator of Python to an instruction for lanes."""

    @type_callable(function)
    def typed(context):
        def result(a, b):
            return LANES_TYPE if a is LANES_TYPE and b is LANES_TYPE else None

        return result

    @lower_builtin(function, LanesType, LanesType)
    def lowered(context, builder, signature, arguments):
        return getattr(builder, instruction)(*arguments)


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.iadd, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.imul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define_operator(_function, _instruction)
