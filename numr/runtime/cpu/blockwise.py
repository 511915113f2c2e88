"""Elementwise work on large arrays, in blocks over threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from numr.ir import ops
from numr.ir.ops import Op
from numr.runtime.cpu.threads import blocks, run_blocks

Array = np.ndarray[Any, Any]
#: Writes an operation's result on (parts of) the operands into (a part of) the target.
Compute = Callable[[Array, tuple[Any, ...]], object]


class Grain(NamedTuple):
    """How finely work is cut: up to ``whole`` elements one call does it all, above it comes in blocks."""

    whole: int
    block: int


#: Memory-bound ufuncs and copies go over threads when they read and write more bytes than this: waiting for a
#: thread soon costs more than it saves.
THREADED_BYTES: Final = 10 << 20
#: Reductions and running sums. They may round otherwise where they are cut otherwise, so that only the number of
#: elements decides.
FOLDS: Final = Grain(1 << 20, 1 << 19)
#: Ufuncs that take nanoseconds per element.
COSTLY: Final = Grain(1 << 17, 1 << 17)
#: Operations of several NumPy calls, whose intermediate results should stay in cache.
COMPOSED: Final = Grain(1 << 15, 1 << 15)

COSTLY_OPS: Final = frozenset(
    {
        *(
            ops.ACOS,
            ops.ACOSH,
            ops.ASIN,
            ops.ASINH,
            ops.ATAN,
            ops.ATAN2,
            ops.ATANH,
            ops.COS,
            ops.COSH,
        ),
        *(ops.EXP, ops.EXPM1, ops.FLOOR_DIVIDE, ops.HYPOT, ops.LOG, ops.LOG1P, ops.LOG2, ops.LOG10),
        *(
            ops.LOGADDEXP,
            ops.NEXTAFTER,
            ops.POW,
            ops.REMAINDER,
            ops.SIN,
            ops.SINH,
            ops.TAN,
            ops.TANH,
        ),
    }
)

#: An axis of this length or more is worth splitting.
MANY: Final = 16
#: Blocks of a transposed operand are this long along the axis where neighbours lie together in memory.
_RUN: Final = 64


def grain_of(op: Op, function: Any, width: int) -> Grain:
    """The grain of an operation that ``function`` computes, which reads and writes ``width`` bytes for each element."""
    if isinstance(function, Writer):
        if op is ops.POW:
            return COSTLY
        return moving(width) if op in (ops.CLIP, ops.MAXIMUM, ops.MINIMUM) else COMPOSED
    if not isinstance(function, np.ufunc):
        return COMPOSED
    if op is ops.SIGN:
        width *= (
            2  # NumPy computes it element by element, which takes as long as moving twice the bytes
        )
    return COSTLY if op in COSTLY_OPS else moving(width)


@cache
def moving(width: int) -> Grain:
    """The grain of memory-bound work that reads and writes so many bytes for each element."""
    whole = THREADED_BYTES // width
    return Grain(whole, whole // 2)


class Writer:
    """A function that can also write its result into an array, so that blocks need no memory of their own."""

    __slots__ = ("function", "into")

    def __init__(self, function: Callable[..., Array], into: Callable[..., object]) -> None:
        self.function = function
        self.into = into

    def __call__(self, *operands: Any) -> Array:
        """The result in a new array."""
        return self.function(*operands)


def select_function(dtype: np.dtype[Any]) -> Writer:
    """``numpy.where`` on operands of a dtype, without its branch for each element.

    Where the condition follows no pattern, mispredicted branches are most of numpy.where's time; blending the
    bits of the operands under a mask takes several passes over a block in cache and is quicker by far.
    """
    bits = np.dtype(f"i{dtype.itemsize}")

    def into(out: Array, condition: Array, x: Any, y: Any) -> None:
        mask = condition.astype(bits)
        np.negative(mask, out=mask)
        base = np.asarray(y, dtype=dtype).view(bits)
        blended = out.view(bits)
        np.bitwise_xor(np.asarray(x, dtype=dtype).view(bits), base, out=blended)
        np.bitwise_and(blended, mask, out=blended)
        np.bitwise_xor(blended, base, out=blended)

    return Writer(np.where, into)


def extremum_function(ufunc: Any) -> Writer:
    """``numpy.maximum`` or ``minimum`` of an array and a number, which NumPy computes without vector instructions.

    With the number in an array of the block's size it takes them.
    """

    def into(out: Array, x: Any, y: Any) -> None:
        array, number = (x, y) if x.__class__ is np.ndarray else (y, x)
        out.fill(number)
        ufunc(array, out, out=out)

    return Writer(ufunc, into)


def clip_function() -> Writer:
    """``numpy.clip`` of an array between two bounds, which takes one pass."""

    def into(out: Array, x: Any, low: Any, high: Any) -> None:
        x.clip(low, high, out=out)

    return Writer(np.clip, into)


def power_function(power: Callable[..., Array]) -> Writer:
    """Powers of arrays by ``numpy.power``, of which only exponents of one half need the repair in ``power``."""

    def into(out: Array, x: Any, y: Any) -> None:
        if y.__class__ is not np.ndarray or np.equal(y, 0.5).any():
            out[...] = power(x, y)
        else:
            np.power(x, y, out=out)

    return Writer(power, into)


def in_memory_order(shape: tuple[int, ...], operands: tuple[Any, ...]) -> str:
    """``"C"`` or ``"F"`` if all arrays with axes have this shape and lie in that order, else ``""``."""
    order = ""
    for x in operands:
        if x.__class__ is not np.ndarray or not x.ndim:
            continue
        if x.shape != shape:
            return ""
        flags = x.flags
        if flags.c_contiguous:
            if order == "F" and not flags.f_contiguous:
                return ""
            order = order or "C"
        elif flags.f_contiguous:
            if order == "C":
                return ""
            order = "F"
        else:
            return ""
    return order or "C"


def fill(target: Array, operands: tuple[Any, ...], compute: Compute, grain: Grain) -> None:
    """Write ``compute``'s result on broadcast operands into the target."""
    size = target.size
    if size <= grain.whole:
        if size:
            compute(target, operands)
        return
    if (
        target.ndim != 1
        and target.flags.c_contiguous
        and in_memory_order(target.shape, operands) == "C"
    ):
        operands = tuple(
            x.reshape(-1) if x.__class__ is np.ndarray and x.ndim else x for x in operands
        )
        target = target.reshape(-1)
    if target.ndim == 1:
        parts = _equal_parts(size, grain.block)
        # Only scalars and single elements are broadcast along the one axis.
        whole = [x.__class__ is np.ndarray and x.size != 1 for x in operands]

        def body(part: slice) -> None:
            compute(
                target[part],
                tuple([x[part] if cut else x for x, cut in zip(operands, whole, strict=True)]),
            )

        run_blocks(body, parts)
        return
    axis = split_axis(target.shape)
    leading = (slice(None),) * axis
    ndim = target.ndim
    length = target.shape[axis]
    parts = blocks(length, size // length, grain.block)
    if parts[0].stop < _RUN and any(_is_turned(x, axis) for x in operands):
        parts = [slice(start, min(start + _RUN, length)) for start in range(0, length, _RUN)]

    def body_of_axis(part: slice) -> None:
        compute(target[(*leading, part)], tuple(_part(x, axis, ndim, part) for x in operands))

    run_blocks(body_of_axis, parts)


def _equal_parts(size: int, block: int) -> list[slice]:
    """Slices of about ``block`` places and of equal length, so that no thread waits long for the last one."""
    step = -(-size // -(-size // block))
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def split_axis(shape: tuple[int, ...]) -> int:
    """The outermost axis that is long enough to be split, so that blocks are read in long runs."""
    for axis, length in enumerate(shape):
        if length >= MANY:
            return axis
    return max(range(len(shape)), key=lambda axis: shape[axis])


def overlaps(operand: Any, target: Array) -> bool:
    """Whether an operand shares memory with the target at other places than the target's own."""
    if not isinstance(operand, np.ndarray) or not np.may_share_memory(operand, target):
        return False
    same = operand.__array_interface__["data"] == target.__array_interface__["data"]
    return not (same and operand.shape == target.shape and operand.strides == target.strides)


def _is_turned(operand: Any, axis: int) -> bool:
    """Whether neighbours along the axis that is split lie together in memory."""
    return (
        isinstance(operand, np.ndarray)
        and operand.ndim > axis
        and operand.shape[axis] > 1
        and abs(operand.strides[axis]) == operand.itemsize
    )


def _part(operand: Any, axis: int, ndim: int, part: slice) -> Any:
    """The part of an operand that belongs to a part of an axis of the broadcast shape."""
    if operand.__class__ is not np.ndarray:
        return operand
    own = axis - (ndim - operand.ndim)
    if own < 0 or operand.shape[own] == 1:
        return operand
    return operand[(slice(None),) * own + (part,)]
