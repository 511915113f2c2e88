"""Computations of rows: one kernel for several reductions of a row and the elementwise work around them.

A computation that is one reduction, with something computed of its results, has the kernels of reductions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from numr.dtypes import DType
from numr.ir.ops import Reduction
from numr.ir.rows import RowComputation
from numr.layout.strides import contiguous_strides
from numr.runtime.cuda.compiler import Kernel
from numr.runtime.cuda.elementwise import broadcast_strides, scalar_slot
from numr.runtime.cuda.folding import Epilogue, Fold
from numr.runtime.cuda.fused_reductions import FusedReduction
from numr.runtime.cuda.reductions import Plan, plan_for
from numr.runtime.cuda.row_texts import RowTexts, Variant
from numr.runtime.cuda.texts import BLOCK, NARROW, VECTOR, power_of_two

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["FusedRows", "does_rows"]

Array = Any

#: Ways through operands that are remembered.
_REMEMBERED: Final = 256
#: Vectors of a row that a thread holds at most, and bytes of what it holds of them.
_HELD: Final = 16
_HELD_BYTES: Final = 512
#: Operations in the text of a kernel that holds what it has of a row, which has the code of an element many times.
_LONG: Final = 6000
#: Vectors that a thread takes before it computes where it holds nothing, by the number of operations of an element.
_COPIES: Final = ((24, 4), (64, 2))


def does_rows(shape: tuple[int, ...], axes: tuple[int, ...], dtypes: tuple[DType, ...]) -> bool:
    """Whether there are kernels for rows of a shape, of which elements of some dtypes are reduced."""
    return _plan(shape, axes, dtypes) is not None


def _plan(shape: tuple[int, ...], axes: tuple[int, ...], dtypes: tuple[DType, ...]) -> Plan | None:
    """The plan that all reductions of rows have; None if rows are not at the end, or not each for one block."""
    sizes = {dtype.itemsize for dtype in dtypes}
    if tuple(sorted(axes)) != tuple(range(len(shape) - len(axes), len(shape))) or len(sizes) != 1:
        return None
    (itemsize,) = sizes
    strides = tuple(step * itemsize for step in contiguous_strides(shape))
    plan = plan_for(shape, strides, axes, itemsize, True)
    whole = plan.variant[0]
    if plan.kind == "columns" or plan.grid[1] > 1 or plan.length >= NARROW:
        return None
    return None if whole and plan.length % (VECTOR // itemsize) else plan


class FusedRows:
    """The kernels of a computation of rows. They are the same for all shapes.

    Parameters
    ----------
    computation : RowComputation
        What is computed.
    """

    def __init__(self, computation: RowComputation) -> None:
        self.computation = computation
        sources = computation.sources
        self._arrays = tuple(i for i, source in enumerate(sources) if source.is_array)
        self._scalars = tuple(
            (i, *scalar_slot(source.dtype))
            for i, source in enumerate(sources)
            if not source.is_array
        )
        steps = [computation.step(number) for number in computation.reductions]
        self._reduced = [step.arguments[0] for step in steps if step is not None]
        self._dtypes = tuple(computation.dtype(value) for value in self._reduced)
        self._reduction = _as_reduction(computation)
        self._texts: RowTexts | None = None
        self._kernels: dict[Variant, Kernel] = {}
        self._plans: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}

    def into(
        self,
        context: DeviceContext,
        operands: Sequence[Any],
        results: Sequence[Array],
        shape: tuple[int, ...],
        axes: tuple[int, ...],
    ) -> bool:
        """Compute the results and write them into arrays; False where there is no kernel for these."""
        if not all(array._c_contiguous for array in results):
            return False
        if self._reduction is not None:
            (out,) = results
            lies_so = all(
                not operands[i].data.ptr & 15 and operands[i]._c_contiguous
                for i in self._arrays
                if i in self._reduced
            )
            return lies_so and self._reduction.into(context, operands, shape, axes, out)
        values = list(operands)
        strides = []
        addresses = 0
        for i in self._arrays:
            array = operands[i]
            values[i] = ptr = array.data.ptr
            addresses |= ptr
            if i in self._reduced and (ptr & 15 or not array._c_contiguous):
                # By itself it would be reduced in another order.
                return False
            strides.append(
                array.strides if array.shape == shape else broadcast_strides(array, shape)
            )
        for i, _, make in self._scalars:
            values[i] = make(values[i])
        for array in results:
            ptr = array.data.ptr
            values.append(ptr)
            addresses |= ptr
        key = (shape, axes, tuple(strides), not addresses & 15)
        if key not in self._plans:
            if len(self._plans) >= _REMEMBERED:
                self._plans.clear()
            self._plans[key] = self._planned(context, *key)
        found = self._plans[key]
        if found is None:
            return False
        kernel, grid, numbers = found
        context.launch(kernel, grid, 1, BLOCK, 1, *values, *numbers)
        return True

    def _planned(
        self,
        context: DeviceContext,
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        strides: tuple[tuple[int, ...], ...],
        aligned: bool,
    ) -> tuple[Kernel, int, tuple[int, int, int]] | None:
        """The kernel, its grid, and the arguments after the addresses; None if there is none."""
        plan = _plan(shape, axes, self._dtypes)
        classes = [
            self._class(i, shape, axes, own) for i, own in zip(self._arrays, strides, strict=True)
        ]
        if plan is None or None in classes:
            return None
        printer = self._texts
        if printer is None:
            printer = self._texts = RowTexts(self.computation)
        vector = VECTOR // self._dtypes[0].itemsize if plan.variant[0] else 1
        # Few numbers, so that few kernels are made.
        copies = max(2, -(-plan.length // (vector * plan.lanes)))
        unit = max(1, power_of_two(copies) // 8)
        copies = -(-copies // unit) * unit
        held = copies * vector
        holds = (
            copies <= _HELD
            and held * printer.held_bytes <= _HELD_BYTES
            and held * printer.size <= _LONG
        )
        if not holds:
            copies = next((most for size, most in _COPIES if printer.size <= size), 1)
        by_blocks = plan.lanes == BLOCK
        variant = Variant(by_blocks, vector, copies, holds, "".join(map(str, classes)), aligned)
        kernel = self._kernels.get(variant)
        if kernel is None:
            layout = ["q8x"] * len(self.computation.sources)
            for i, scalar, _ in self._scalars:
                layout[i] = scalar
            layout += ["q8x"] * (len(self.computation.results) + 3)
            with context.current():
                kernel = context.compiler.laid_out(printer.text(variant), "".join(layout))
            self._kernels[variant] = kernel
        grid = -(-plan.outputs * plan.lanes // BLOCK)
        return kernel, grid, (plan.outputs, plan.length, plan.lanes)

    def _class(
        self, source: int, shape: tuple[int, ...], axes: tuple[int, ...], strides: tuple[int, ...]
    ) -> str | None:
        """Where the elements of an array are, see ``Variant``; None if that is nothing a kernel is for."""
        itemsize = self.computation.sources[source].dtype.itemsize
        kept = tuple(axis for axis in range(len(shape)) if axis not in axes)

        def lies_so(along: tuple[int, ...]) -> bool:
            """Whether the elements are in order along some axes, and the same along the others."""
            expected = contiguous_strides(tuple(shape[axis] for axis in along))
            inside = all(
                shape[axis] == 1 or strides[axis] == step * itemsize
                for axis, step in zip(along, expected, strict=True)
            )
            return inside and not any(
                step and n > 1
                for axis, (step, n) in enumerate(zip(strides, shape, strict=True))
                if axis not in along
            )

        if self.computation.sources[source].per_row:
            return "1" if lies_so(()) else "r" if lies_so(kept) else None
        return "f" if lies_so(kept + axes) else "l" if lies_so(axes) else None


def _as_reduction(computation: RowComputation) -> FusedReduction | None:
    """The kernels of a computation that is one reduction; None if it is more."""
    single = computation.single_reduction()
    if single is None:
        return None
    step = computation.step(single.number)
    assert step is not None
    assert isinstance(step.op, Reduction)
    epilogue = None
    if single.epilogue is not None:
        epilogue = Epilogue(single.epilogue, tuple(f"p{i}" for i in single.scalars))
    source = computation.dtype(single.argument)
    fold = Fold(step.op, source, step.signature.result, epilogue=epilogue)
    return FusedReduction(single.prologue, fold)
