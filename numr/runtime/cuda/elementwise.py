"""Elementwise kernels: an expression of the op table on arrays of any strides and on scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from numr.codegen import cuda
from numr.codegen.calls import Formula, call_of
from numr.codegen.elementwise import operand
from numr.codegen.expr import Expr
from numr.dtypes import DType, Kind
from numr.ir.ops import Op
from numr.layout import broadcast_shapes
from numr.runtime.cuda import texts
from numr.runtime.cuda.texts import BLOCK, Walk

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["Elementwise", "of_operation"]

Array = Any

#: Up to this many operations one thread computes several elements, so that more memory is under way.
_SMALL_CODE: Final = 128
_UNROLL: Final = 4


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
            (i, _scalar_maker(dtype)) for i, (dtype, is_array) in enumerate(sources) if not is_array
        )
        self._itemsizes = tuple(sources[i][0].itemsize for i in self._arrays)
        self._code: cuda.Code | None = None
        self._flat: Any = None
        self._tile = BLOCK
        self._strided: dict[tuple[int, bool], Any] = {}

    def __call__(self, *operands: Any) -> Array:
        """The result on broadcast operands, in a new array."""
        arrays = [operands[i] for i in self._arrays]
        shape = arrays[0].shape
        flat = True
        for array in arrays:
            if array.shape != shape or not array._c_contiguous:
                flat = False
                break
        if not flat:
            if any(array.shape != shape for array in arrays):
                shape = broadcast_shapes(*(array.shape for array in arrays), function=self.name)
            if len(shape) > 1 and _in_fortran_order(arrays, shape):
                turned = [x.T if i in self._arrays else x for i, x in enumerate(operands)]
                return self(*turned).T
        out = self.context.empty(shape, self.result)
        if out.size:
            self._run(operands, arrays, out, flat)
        return out

    def fill(self, operands: Sequence[Any], out: Array) -> None:
        """Write the result into an array. An operand may be the array itself, but not overlap it otherwise."""
        if not out.size:
            return
        arrays = [operands[i] for i in self._arrays]
        flat = out._c_contiguous and all(
            array.shape == out.shape and array._c_contiguous for array in arrays
        )
        self._run(operands, arrays, out, flat)

    def _run(self, operands: Sequence[Any], arrays: list[Array], out: Array, flat: bool) -> None:
        arguments: list[Any] = list(operands)
        for i in self._arrays:
            arguments[i] = arguments[i].data.ptr
        for i, make in self._scalars:
            arguments[i] = make(arguments[i])
        arguments.append(out.data.ptr)
        size = out.size
        context = self.context
        if not flat:
            shape = out.shape
            strides = [_broadcast_strides(array, shape) for array in arrays]
            walk = Walk(shape, [*strides, out.strides], size)
            steps = [steps[0] for steps in walk.steps] if len(walk.lengths) == 1 else []
            if steps != [*self._itemsizes, self.result.itemsize]:
                kernel = self._strided.get((walk.rank, walk.wide))
                with context.current():
                    if kernel is None:
                        kernel = self._strided_kernel(walk.rank, walk.wide)
                    arguments += [size, walk.packed()]
                    kernel((-(-size // BLOCK),), (BLOCK,), arguments, 0, context.stream)
                return
        arguments.append(size)
        with context.current():
            if self._flat is None:
                self._flat = self._flat_kernel()
            kernel = self._flat
            kernel((-(-size // self._tile),), (BLOCK,), arguments, 0, context.stream)

    # ------------------------------------------------------------------- text
    def _expression(self) -> cuda.Code:
        if self._code is None:
            operands = [operand(f"x{i}", dtype) for i, (dtype, _) in enumerate(self.sources)]
            value = self._formula(*operands)
            roots = [value] if isinstance(value, Expr) else list(value)
            self._code = cuda.code(roots, indent="            ")
        return self._code

    def _parameters(self) -> str:
        parts = []
        for i, (dtype, is_array) in enumerate(self.sources):
            if is_array:
                parts.append(f"const {texts.memory_type(dtype)}* p{i}")
            else:
                parts.append(f"const {texts.memory_type(dtype)} s{i}")
        parts.append(f"{texts.memory_type(self.result)}* out")
        return ", ".join(parts) + ", const long long size"

    def _body(self, elements: dict[int, str], target: str) -> str:
        code = self._expression()
        lines = []
        for i, (dtype, is_array) in enumerate(self.sources):
            lines += texts.load(f"x{i}", dtype, elements[i] if is_array else f"s{i}")
        loads = "".join(f"            {line}\n" for line in lines)
        return (
            f"{loads}{code.statements}"
            f"            {texts.store(target, self.result, code.results)}\n"
        )

    def _flat_kernel(self) -> Any:
        unroll = _UNROLL if self._expression().size <= _SMALL_CODE else 1
        self._tile = BLOCK * unroll
        raws = "".join(
            f"    {texts.memory_type(self.sources[i][0])} raw{i}[{unroll}];\n" for i in self._arrays
        )
        reads = "".join(f" raw{i}[u] = p{i}[i];" for i in self._arrays)
        place = f"const long long i = start + u * {BLOCK};"
        source = (
            f"{texts.head()}"
            f'extern "C" __global__ void __launch_bounds__({BLOCK}) numr_kernel({self._parameters()}) {{\n'
            f"    const long long start = (long long)blockIdx.x * {self._tile} + threadIdx.x;\n"
            f"{raws}"
            "    #pragma unroll\n"
            f"    for (int u = 0; u < {unroll}; ++u) {{\n"
            f"        {place}\n"
            f"        if (i < size) {{{reads} }}\n"
            "    }\n"
            "    #pragma unroll\n"
            f"    for (int u = 0; u < {unroll}; ++u) {{\n"
            f"        {place}\n"
            "        if (i < size) {\n"
            f"{self._body({i: f'raw{i}[u]' for i in self._arrays}, 'out[i]')}"
            "        }\n"
            "    }\n"
            "}\n"
        )
        return self.context.compiler.functions(source, "numr_kernel")[0]

    def _strided_kernel(self, rank: int, wide: bool) -> Any:
        arrays = len(self._arrays) + 1
        elements = {
            i: f"(*(const {texts.memory_type(self.sources[i][0])}*)((const char*)p{i} + at{k}))"
            for k, i in enumerate(self._arrays)
        }
        target = f"*({texts.memory_type(self.result)}*)((char*)out + at{arrays - 1})"
        source = (
            f"{texts.head()}{texts.dims_type(rank, arrays)}"
            f'extern "C" __global__ void __launch_bounds__({BLOCK}) numr_kernel('
            f"{self._parameters()}, const numr_dims dims) {{\n"
            f"    const long long i = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
            "    if (i >= size) return;\n"
            f"{texts.walk(rank, arrays, 'i', wide)}"
            f"{self._body(elements, target)}"
            "}\n"
        )
        kernel = self.context.compiler.functions(source, "numr_kernel")[0]
        self._strided[rank, wide] = kernel
        return kernel


def of_operation(context: DeviceContext, op: Op, kinds: tuple[Kind, ...]) -> Elementwise:
    """An operation of the op table for operands of given dtypes and scalar types."""
    call = call_of(op, kinds, op.signature(kinds, context.defaults))
    return Elementwise(context, op.name, call.sources, call.result, call.formula)


def _scalar_maker(dtype: DType) -> Callable[[Any], Any]:
    """What turns a Python scalar into a kernel's argument: the number as elements of the dtype are in memory."""
    cls = dtype.type
    if dtype.kind == "b":
        return lambda value: np.uint8(bool(value))
    if dtype.kind in "iu":
        return cls
    if dtype.kind == "c":
        return lambda value: _quietly(dtype, value).reshape(1).view(f"V{dtype.itemsize}")
    if dtype.name == "float16":
        return lambda value: _quietly(dtype, value).view(np.uint16)[()]
    if dtype.name == "float64":
        return cls
    return lambda value: _quietly(dtype, value)[()]


def _quietly(dtype: DType, value: Any) -> np.ndarray[Any, Any]:
    """A scalar of a dtype as an array; a number beyond its range is infinite, which is no reason to warn."""
    with np.errstate(over="ignore"):
        return np.asarray(value, dtype)


def _broadcast_strides(array: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
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
