"""Fused computations: one kernel for the operations of a graph that follow each other element by element."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from numr import dtypes as dt
from numr.codegen.elementwise import expression, operand
from numr.codegen.expr import Expr, by_fma, topological
from numr.codegen.fused import expressions
from numr.dtypes import DType
from numr.ir.fused import Computation, Source, Step
from numr.ir.ops import SELECT, Op, Reduction, Signature
from numr.ir.rows import RowComputation
from numr.runtime.client import FusedLoop, RuntimeClient
from numr.runtime.cuda.compiler import Kernel
from numr.runtime.cuda.elementwise import broadcast_strides, scalar_slot
from numr.runtime.cuda.elementwise_texts import Texts
from numr.runtime.cuda.folding import Fold
from numr.runtime.cuda.fused_reductions import FusedReduction
from numr.runtime.cuda.fused_rows import FusedRows, does_rows
from numr.runtime.cuda.geometry import SHARED, Geometry, geometry
from numr.runtime.cuda.reductions import reduced_dtype, reduced_shape

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext
    from numr.runtime.device import Device

__all__ = ["Fused", "Fusion", "texts_of"]

Array = Any

#: Computations whose kernels are kept.
_KEPT: Final = 1024
#: Ways through operands that a computation remembers.
_REMEMBERED: Final = 256
#: Operations of C++ that a step may have on average.
_STEP: Final = 16
#: How often the code of one element may stand in a kernel, by its number of operations. More often than that of a
#: single operation: a kernel of a graph is launched many times.
_COPIES: Final = ((24, 16), (64, 8), (768, 4), (1536, 2))
#: Operations up to which a computation may have tiles, in whose text an element stands many times.
_TILED: Final = 256
#: Axes of an array that is used as it lies where there is no kernel for all arrays as they lie.
_AXES: Final = 5
#: Bytes of arguments that a kernel takes at most.
_ARGUMENTS: Final = 4000


def texts_of(computation: Computation) -> Texts:
    """The texts of a computation's kernels."""
    return Texts(
        [(source.dtype, source.is_array) for source in computation.sources],
        computation.result_dtypes,
        lambda *operands: expressions(computation, operands),
        _COPIES,
    )


class Fused:
    """The kernels of a computation. They are the same for all streams of a device.

    Parameters
    ----------
    computation : Computation
        What is computed.
    """

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        sources = computation.sources
        self._arrays = tuple(i for i, source in enumerate(sources) if source.is_array)
        self._scalars = tuple(
            (i, *scalar_slot(source.dtype))
            for i, source in enumerate(sources)
            if not source.is_array
        )
        dtypes = [*(sources[i].dtype for i in self._arrays), *computation.result_dtypes]
        self._itemsizes = tuple(dtype.itemsize for dtype in dtypes)
        self._texts: Texts | None = None
        self._kernels: dict[tuple[object, ...], Kernel] = {}
        self._plans: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}

    def __call__(
        self, context: DeviceContext, operands: Sequence[Any], results: Sequence[Array]
    ) -> None:
        """Compute the results and write them into arrays of one shape, whatever their layouts are."""
        shape = results[-1].shape
        if not results[-1].size:
            return
        values = list(operands)
        addresses = 0
        strides = []
        for i in self._arrays:
            array = operands[i]
            values[i] = ptr = array.data.ptr
            addresses |= ptr
            strides.append(
                array.strides if array.shape == shape else broadcast_strides(array, shape)
            )
        for i, _, make in self._scalars:
            values[i] = make(values[i])
        for array in results:
            ptr = array.data.ptr
            values.append(ptr)
            addresses |= ptr
            strides.append(array.strides)
        key = (shape, tuple(strides), not addresses & 15)
        try:
            plan = self._plans[key]
        except KeyError:
            plan = self._planned(context, *key)
        if plan is None:
            self._straightened(context, operands, results)
            return
        kernel, grid, across, down, numbers = plan
        context.launch(kernel, grid, 1, across, down, *values, *numbers)

    def _straightened(
        self, context: DeviceContext, operands: Sequence[Any], results: Sequence[Array]
    ) -> None:
        """Compute by way of arrays whose elements lie in C order."""
        shape = results[-1].shape
        values = list(operands)
        for i in self._arrays:
            values[i] = _in_order(context, operands[i])
        straight = all(value is given for value, given in zip(values, operands, strict=True))
        if straight and all(array._c_contiguous for array in results):
            # Too many axes for the arguments of a kernel.
            for i in self._arrays:
                if not operands[i]._c_contiguous or operands[i].shape != shape:
                    values[i] = context.empty(shape, operands[i].dtype)
                    _copy(operands[i].dtype)(context, [operands[i]], [values[i]])
        made = [
            array if array._c_contiguous else context.empty(shape, array.dtype) for array in results
        ]
        self(context, values, made)
        for target, array in zip(results, made, strict=True):
            if target is not array:
                _copy(array.dtype)(context, [array], [target])

    # ---------------------------------------------------------------- kernels
    def _planned(
        self,
        context: DeviceContext,
        shape: tuple[int, ...],
        strides: tuple[tuple[int, ...], ...],
        aligned: bool,
    ) -> tuple[Any, ...] | None:
        """The kernel, its grid and block, and the arguments after the addresses; None if there is none."""
        printer = self._texts
        if printer is None:
            printer = self._texts = texts_of(self.computation)
        plan = geometry(shape, strides, self._itemsizes, printer.vector, printer.unroll, aligned)
        if len(self._plans) >= _REMEMBERED:
            self._plans.clear()
        key = (shape, strides, aligned)
        kernel = self._kernels.get(plan.variant)
        if kernel is None:
            kernel = self._made(context, plan)
        if kernel is None:
            self._plans[key] = None
            return None
        numbers = (*plan.numbers, plan.dims) if kernel.has_tail else plan.numbers
        found = self._plans[key] = (kernel, plan.grid, *plan.block, numbers)
        return found

    def _made(self, context: DeviceContext, plan: Geometry) -> Kernel | None:
        kind, *parameters = plan.variant
        results = len(self.computation.results)
        assert self._texts is not None
        if kind == "tiles":
            tiled, side, *_ = parameters
            assert isinstance(tiled, tuple)
            assert isinstance(side, int)
            shared = sum(self._itemsizes[k] for k in tiled) * side * (side + 1)
            if results > 1 or self._texts.size > _TILED or shared > SHARED:
                return None
        tail = (
            len(plan.dims) if kind == "tiles" or parameters[2] or "s" in str(parameters[1]) else 0
        )
        sources = len(self.computation.sources)
        if 16 * (sources + results + len(plan.numbers)) + tail > _ARGUMENTS:
            return None
        text: str = getattr(self._texts, str(kind))(*parameters)
        layout = ["q8x"] * sources
        for i, scalar, _ in self._scalars:
            layout[i] = scalar
        layout += ["q8x"] * (results + len(plan.numbers))
        if tail:
            layout.append(f"{tail}s")
        with context.current():
            kernel = context.compiler.laid_out(text, "".join(layout))
        self._kernels[plan.variant] = kernel
        return kernel


def _in_order(context: DeviceContext, array: Array) -> Array:
    """An array with the same elements that lie in C order; axes along which it is broadcast stay so."""
    steps = [abs(step) for step in array.strides if step]
    if steps == sorted(steps, reverse=True) and len(array.shape) <= _AXES:
        return array
    shape = tuple(
        n if step else min(n, 1) for n, step in zip(array.shape, array.strides, strict=True)
    )
    made = context.empty(shape, array.dtype)
    _copy(array.dtype)(
        context, [context.array(shape, array.dtype, array.data, array.strides)], [made]
    )
    return context.array(array.shape, array.dtype, made.data, broadcast_strides(made, array.shape))


@cache
def _copy(dtype: DType) -> Fused:
    """The computation that leaves elements as they are."""
    step = Step(None, Signature(dtype, dtype), (0,))
    return Fused(Computation((Source(dtype, True),), (step,), (1,)))


@cache
def _weight(op: Op | None, compute: DType) -> int:
    """The length of an operation's text, in operations that an average step may have."""
    if op is None:
        return 1
    dtypes = [dt.bool_ if op is SELECT and i == 0 else compute for i in range(op.arity)]
    value = expression(op, compute, *(operand(f"x{i}", dtype) for i, dtype in enumerate(dtypes)))
    roots = [value] if isinstance(value, Expr) else list(value)
    return max(1, sum(1 for _ in topological(by_fma(roots))) // _STEP)


class Fusion(RuntimeClient[Any]):
    """The families of fused computations."""

    context: DeviceContext
    fusion_recomputes = True
    fusion_epilogues = True

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._fused: OrderedDict[Computation, Fused] = OrderedDict()
        self._fused_reductions: OrderedDict[Any, FusedReduction] = OrderedDict()
        self._fused_rows: OrderedDict[RowComputation, FusedRows] = OrderedDict()

    def fuses(self, op: Op | None, compute: DType) -> bool:
        # An operation by itself is made of the same expressions.
        return op is None or compute.kind in dt.CATEGORIES[op.domain]

    def fusion_weight(self, op: Op | None, compute: DType) -> int:
        return _weight(op, compute)

    def fused(self, computation: Computation) -> FusedLoop:
        return partial(self._fused_of(computation), self.context)

    def _fused_of(self, computation: Computation) -> Fused:
        found = self._fused.get(computation)
        if found is None:
            found = self._fused[computation] = Fused(computation)
            if len(self._fused) > _KEPT:
                self._fused.popitem(last=False)
        return found

    def reduce_fused(
        self,
        computation: Computation,
        operands: Sequence[Any],
        shape: tuple[int, ...],
        kind: Reduction,
        axes: tuple[int, ...],
        keepdims: bool,
        dtype: DType,
    ) -> Array:
        if 0 not in shape:
            key = (computation, kind, dtype)
            found = self._fused_reductions.get(key)
            if found is None:
                (source,) = computation.result_dtypes
                fold = Fold(kind, source, reduced_dtype(kind, source, dtype))
                found = self._fused_reductions[key] = FusedReduction(computation, fold)
                if len(self._fused_reductions) > _KEPT:
                    self._fused_reductions.popitem(last=False)
            out = self.empty(reduced_shape(shape, axes, keepdims), found.fold.result)
            if found.into(self.context, operands, shape, axes, out):
                return out
        return super().reduce_fused(computation, operands, shape, kind, axes, keepdims, dtype)

    def fuses_rows(
        self, shape: tuple[int, ...], axes: tuple[int, ...], dtypes: tuple[DType, ...]
    ) -> bool:
        return does_rows(shape, axes, dtypes)

    def fused_rows(
        self, computation: RowComputation, shape: tuple[int, ...], axes: tuple[int, ...]
    ) -> FusedLoop:
        rows = self._fused_rows.get(computation)
        if rows is None:
            rows = self._fused_rows[computation] = FusedRows(computation)
            if len(self._fused_rows) > _KEPT:
                self._fused_rows.popitem(last=False)
        kernels, composed = rows, super().fused_rows(computation, shape, axes)

        def loop(operands: Sequence[Any], results: Sequence[Array]) -> None:
            if not kernels.into(self.context, operands, results, shape, axes):
                composed(operands, results)

        return loop
