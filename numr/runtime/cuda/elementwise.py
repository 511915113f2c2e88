"""Elementwise operations: a formula on arrays of any strides and on scalars, into a new array or a given one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from numr.codegen.calls import Formula, call_of
from numr.dtypes import DType, Kind
from numr.ir.ops import Op
from numr.layout import broadcast_shapes
from numr.layout.strides import contiguous_strides
from numr.runtime.cuda.compiler import Kernel
from numr.runtime.cuda.elementwise_texts import Texts
from numr.runtime.cuda.geometry import Geometry, geometry
from numr.runtime.cuda.texts import BLOCK, NARROW

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["Elementwise", "broadcast_strides", "of_operation", "scalar_slot"]

Array = Any

#: Broadcasts that an operation remembers.
_REMEMBERED: Final = 256


class _Broadcast(NamedTuple):
    """The shape that arrays broadcast to, its size, and the byte strides of each array and of the result for it.

    ``plans`` are those of :meth:`Elementwise.launch`.
    """

    shape: tuple[int, ...]
    size: int
    strides: tuple[tuple[int, ...], ...]
    plans: dict[bool, tuple[Any, ...]]


class Elementwise:
    """One formula for operands of given kinds, made ready for a device.

    Parameters
    ----------
    context : DeviceContext
        The device.
    name : str
        The operation, for errors.
    sources : sequence of (dtype, bool)
        For each operand the dtype of its elements, and whether it is an array; else it is a scalar of that dtype.
    result : dtype
        Of the result's elements.
    formula : callable
        Makes the result's expression from the operands'.

    Attributes
    ----------
    loop : callable
        The result on broadcast operands, in a new array: the quickest way for this number of operands.
    """

    def __init__(
        self,
        context: DeviceContext,
        name: str,
        sources: Sequence[tuple[DType, bool]],
        result: DType,
        formula: Formula,
    ) -> None:
        self.context = context
        self.name = name
        self.sources = tuple(sources)
        self.result = result
        self._formula = formula
        self._arrays = tuple(i for i, (_, is_array) in enumerate(sources) if is_array)
        self._scalars = tuple(
            (i, *scalar_slot(dtype)) for i, (dtype, is_array) in enumerate(sources) if not is_array
        )
        self._itemsizes = (*(sources[i][0].itemsize for i in self._arrays), result.itemsize)
        self._texts: Texts | None = None
        self._kernels: dict[tuple[object, ...], Kernel] = {}
        self._broadcasts: dict[tuple[Any, ...], _Broadcast] = {}
        # Kernels for contiguous operands: those that start at multiples of 16 bytes, and others.
        self._whole: Any = None
        self._other: Any = None
        self._share = self._lone_share = BLOCK
        kinds = tuple(is_array for _, is_array in sources)
        quickest: dict[tuple[bool, ...], Callable[..., Array]] = {
            (True,): self._one,
            (True, True): self._two,
            (True, False): self._one_and_scalar,
            (False, True): self._scalar_and_one,
            (False,): self.constant,
        }
        self.loop = quickest.get(kinds, self.__call__)

    def __call__(self, *operands: Any) -> Array:
        """The result on broadcast operands, in a new array."""
        arrays = [operands[i] for i in self._arrays]
        key = tuple([(array.shape, array.strides) for array in arrays])
        found = self._broadcasts.get(key)
        if found is None:
            found = self._broadcast(arrays, key)
        context = self.context
        memory = context.allocator.pointer(found.size * self.result.itemsize)
        if found.size:
            values = self._values(operands, arrays)
            values.append(memory.ptr)
            self.launch(values, found.shape, found.strides, found.plans)
        return context.array(found.shape, self.result, memory, found.strides[-1])

    def _broadcast(self, arrays: list[Array], key: tuple[Any, ...]) -> _Broadcast:
        shape: tuple[int, ...] = arrays[0].shape
        if any(array.shape != shape for array in arrays):
            shape = broadcast_shapes(*(array.shape for array in arrays), function=self.name)
        strides = [broadcast_strides(array, shape) for array in arrays]
        # Where all arrays lie in Fortran order, a result in that order is quickest.
        turned = len(shape) > 1 and _in_fortran_order(arrays, shape)
        lengths = shape[::-1] if turned else shape
        steps = contiguous_strides(lengths)
        own = tuple([step * self.result.itemsize for step in (steps[::-1] if turned else steps)])
        size = 1
        for n in shape:
            size *= n
        if len(self._broadcasts) >= _REMEMBERED:
            self._broadcasts.clear()
        found = self._broadcasts[key] = _Broadcast(shape, size, (*strides, own), {})
        return found

    def _values(self, operands: Sequence[Any], arrays: list[Array]) -> list[Any]:
        """Addresses of the arrays, and the scalars as they are packed."""
        values = list(operands)
        for i, array in zip(self._arrays, arrays, strict=True):
            values[i] = array.data.ptr
        for i, _, make in self._scalars:
            values[i] = make(values[i])
        return values

    # The next ones are what __call__ is, in as few steps as can be for contiguous arrays of one shape.
    def _one(self, x: Array) -> Array:
        size = x.size
        kernel = self._whole
        if kernel is None or not x._c_contiguous or not 0 < size < NARROW:
            return self(x)
        context = self.context
        memory = context.allocator.pointer(size * self._itemsizes[1])
        ptr = x.data.ptr
        share = self._share
        if ptr & 15:
            kernel, share = self._other, self._lone_share
        context.launch(kernel, -(-size // share), 1, BLOCK, 1, ptr, memory.ptr, size)
        return context.array(x.shape, self.result, memory)

    def _two(self, x: Array, y: Array) -> Array:
        size = x.size
        shape = x.shape
        kernel = self._whole
        if (
            kernel is None
            or not (x._c_contiguous and y._c_contiguous)
            or y.shape != shape
            or not 0 < size < NARROW
        ):
            return self(x, y)
        context = self.context
        memory = context.allocator.pointer(size * self._itemsizes[2])
        one, two = x.data.ptr, y.data.ptr
        share = self._share
        if (one | two) & 15:
            kernel, share = self._other, self._lone_share
        context.launch(kernel, -(-size // share), 1, BLOCK, 1, one, two, memory.ptr, size)
        return context.array(shape, self.result, memory)

    def _one_and_scalar(self, x: Array, y: Any) -> Array:
        return self._scaled(x, (x, y))

    def _scalar_and_one(self, x: Any, y: Array) -> Array:
        return self._scaled(y, (x, y))

    def _scaled(self, array: Array, operands: tuple[Any, Any]) -> Array:
        size = array.size
        kernel = self._whole
        if kernel is None or not array._c_contiguous or not 0 < size < NARROW:
            return self(*operands)
        context = self.context
        ((place, _, make),) = self._scalars
        scalar = make(operands[place])
        memory = context.allocator.pointer(size * self._itemsizes[1])
        ptr = array.data.ptr
        share = self._share
        if ptr & 15:
            kernel, share = self._other, self._lone_share
        one, two = (ptr, scalar) if place else (scalar, ptr)
        context.launch(kernel, -(-size // share), 1, BLOCK, 1, one, two, memory.ptr, size)
        return context.array(array.shape, self.result, memory)

    def constant(self, value: Any, shape: tuple[int, ...] = ()) -> Array:
        """A new array that a scalar fills."""
        context = self.context
        size = 1
        for n in shape:
            size *= n
        memory = context.allocator.pointer(size * self.result.itemsize)
        array = context.array(shape, self.result, memory)
        kernel = self._whole
        if kernel is None or not 0 < size < NARROW:
            self.fill((value,), array)
        else:
            scalar = self._scalars[0][2](value)
            grid = -(-size // self._share)
            context.launch(kernel, grid, 1, BLOCK, 1, scalar, memory.ptr, size)
        return array

    def fill(self, operands: Sequence[Any], out: Array) -> None:
        """Write the result into an array. An operand may be the array itself, but not overlap it otherwise."""
        if not out.size:
            return
        shape = out.shape
        arrays = [operands[i] for i in self._arrays]
        strides = (*[broadcast_strides(array, shape) for array in arrays], out.strides)
        values = self._values(operands, arrays)
        values.append(out.data.ptr)
        self.launch(values, shape, strides)

    def launch(
        self,
        values: list[Any],
        shape: tuple[int, ...],
        strides: tuple[tuple[int, ...], ...],
        plans: dict[bool, tuple[Any, ...]] | None = None,
    ) -> None:
        """Run on addresses: those of the arrays, among them the scalars as they are packed, and the result's.

        ``strides`` are those of the arrays and of the result, in bytes, for one shape without lengths of 0. ``plans``
        remembers what follows from them, by whether all addresses are multiples of 16.
        """
        addresses = values[-1]
        for i in self._arrays:
            addresses |= values[i]
        aligned = not addresses & 15
        found = plans.get(aligned) if plans is not None else None
        if found is None:
            found = self._planned(shape, strides, aligned)
            if plans is not None:
                plans[aligned] = found
        kernel, grid, across, down, numbers = found
        self.context.launch(kernel, grid, 1, across, down, *values, *numbers)

    def _planned(
        self, shape: tuple[int, ...], strides: tuple[tuple[int, ...], ...], aligned: bool
    ) -> tuple[Any, ...]:
        """The kernel, its grid and block, and the arguments after the addresses."""
        texts = self._texts
        if texts is None:
            texts = self._prepared()
        plan = geometry(shape, strides, self._itemsizes, texts.vector, texts.unroll, aligned)
        kernel = self._kernels.get(plan.variant)
        if kernel is None:
            kernel = self._kernel(plan)
        numbers = (*plan.numbers, plan.dims) if kernel.has_tail else plan.numbers
        return (kernel, plan.grid, *plan.block, numbers)

    # ---------------------------------------------------------------- kernels
    def _prepared(self) -> Texts:
        texts = self._texts = Texts(
            self.sources, [self.result], lambda *operands: [self._formula(*operands)]
        )
        if self.loop != self.__call__:
            # What one array or two need on the short way.
            self._share = BLOCK * texts.vector * texts.unroll
            self._lone_share = BLOCK * texts.unroll
            classes = "c" * len(self._itemsizes)
            kernels = [
                self._made(("rows", whole, classes, 0, False), 1, 0) for whole in (True, False)
            ]
            self._other = kernels[1]
            self._whole = kernels[0]
        return texts

    def _kernel(self, plan: Geometry) -> Kernel:
        kind, *rest = plan.variant
        has_dims = kind == "tiles" or bool(rest[2]) or "s" in str(rest[1])
        return self._made(plan.variant, len(plan.numbers), len(plan.dims) if has_dims else 0)

    def _made(self, variant: tuple[object, ...], numbers: int, tail: int) -> Kernel:
        assert self._texts is not None
        kind, *parameters = variant
        text: str = getattr(self._texts, str(kind))(*parameters)
        layout = ["q8x"] * len(self.sources)
        for i, scalar, _ in self._scalars:
            layout[i] = scalar
        layout += ["q8x"] * (1 + numbers)
        if tail:
            layout.append(f"{tail}s")
        context = self.context
        with context.current():
            kernel = context.compiler.laid_out(text, "".join(layout))
        self._kernels[variant] = kernel
        return kernel


def of_operation(context: DeviceContext, op: Op, kinds: tuple[Kind, ...]) -> Elementwise:
    """An operation of the op table for operands of given dtypes and scalar types."""
    call = call_of(op, kinds, op.signature(kinds, context.defaults))
    return Elementwise(context, op.name, call.sources, call.result, call.formula)


def scalar_slot(dtype: DType) -> tuple[str, Callable[[Any], Any]]:
    """How a Python scalar lies in its slot among the arguments, and what makes it ready to be packed.

    In the slot are the number's bytes as elements of the dtype have them. Integers are packed as longer ones, of which
    the first bytes count; those that the dtype does not hold raise OverflowError.
    """
    if dtype.kind == "b":
        return "q8x", bool
    if dtype.kind in "iu":
        return "Q8x" if dtype.name == "uint64" else "q8x", dtype.type
    if dtype.kind == "c":
        return f"{dtype.itemsize}s{16 - dtype.itemsize}x", lambda x: _quietly(dtype, x).tobytes()
    if dtype.name == "float16":
        return "H14x", lambda x: int(_quietly(dtype, x).view(np.uint16))
    if dtype.name == "float32":
        # A number beyond the range is infinite, for which struct would raise.
        return "f12x", lambda x: ctypes.c_float(x).value
    return "d8x", float


def _quietly(dtype: DType, value: Any) -> np.ndarray[Any, Any]:
    """A scalar of a dtype as an array; a number beyond its range is infinite, which is no reason to warn."""
    with np.errstate(over="ignore"):
        return np.asarray(value, dtype)


def broadcast_strides(array: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Byte strides of an array that is broadcast to a shape."""
    own = array.shape
    strides: tuple[int, ...] = array.strides
    if own == shape:
        return strides
    missing = len(shape) - len(own)
    return (0,) * missing + tuple(
        0 if n == 1 else stride for n, stride in zip(own, strides, strict=True)
    )


def _in_fortran_order(arrays: list[Array], shape: tuple[int, ...]) -> bool:
    """Whether all arrays lie in Fortran order, so that a result in that order is quickest; scalars aside."""
    return all(
        (array.shape == shape and array._f_contiguous and not array._c_contiguous) or not array.ndim
        for array in arrays
    )
