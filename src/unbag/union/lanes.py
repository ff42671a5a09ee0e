"""Numbers side by side: `LANES` doubles that one instruction of the machine adds or divides.

numba leaves it to LLVM to find loops worth vectorising, and short loops over the instances of
a bag are none. Kernels that calculate in lanes say so themselves. Arithmetic is that of IEEE, lane
by lane, on every machine.

============================= ======================================================
``load_lanes(array, start)``  the lanes at ``array[start : start + LANES]``
``store_lanes(array, ...)``   the way back
``room_for_sets(labels)``     what to use as an array inside of a kernel
``same_lanes(number)``        the same number in every lane
``a + b``, ``a - b``, ...     lane by lane
``above(a, limit, instead)``  `a` where it is above the limit, else `instead`
============================= ======================================================

Arrays are flat and contiguous, and nobody checks that they are long enough.
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
# What numba promises of the place of a double in an array, in bytes.
ALIGNMENT = 8


class LanesType(types.Type):
    """What numba knows of lanes: nothing but how they are stored."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes({LANES})")


LANES_TYPE = LanesType()


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """Lanes are one vector of LLVM's."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def _pointer(context, builder, array_type, array, start):
    """Point at the vector that starts at an entry of an array, or of room."""
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
def room_for_sets(typingctx, labels):
    """Make room for two lanes for each set of labels, as many as the tuple `labels` is long.

    It lies on the stack, where no array can, so that LLVM may keep it in registers.
    """

    def codegen(context, builder, signature, arguments):
        room = alloca_once(builder, VECTOR, size=2 << len(labels))
        return builder.bitcast(room, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(labels), codegen


@intrinsic
def load_lanes(typingctx, array, start):
    """Take `LANES` entries of an array of float64, from `start` on."""

    def codegen(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=ALIGNMENT)

    return LANES_TYPE(array, types.int64), codegen


@intrinsic
def store_lanes(typingctx, array, start, lanes):
    """Write lanes into an array of float64, from `start` on."""

    def codegen(context, builder, signature, arguments):
        array, start, lanes = arguments
        pointer = _pointer(context, builder, signature.args[0], array, start)
        builder.store(lanes, pointer, align=ALIGNMENT)
        return context.get_dummy_value()

    return types.void(array, types.int64, LANES_TYPE), codegen


@intrinsic
def same_lanes(typingctx, number):
    """Put one number into every lane."""

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
    """Take `LANES` entries of an array of float64 at equal distances, but none behind `last`."""

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
def above(typingctx, lanes, limit, instead):
    """Replace what is not above the limit, or no number, lane by lane."""

    def codegen(context, builder, signature, arguments):
        lanes, limit, instead = arguments
        return builder.select(builder.fcmp_ordered(">", lanes, limit), lanes, instead)

    return LANES_TYPE(LANES_TYPE, LANES_TYPE, LANES_TYPE), codegen


def _calculates(function, instruction):
    """Give an operator of Python's its meaning for lanes."""

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
    _calculates(_function, _instruction)
