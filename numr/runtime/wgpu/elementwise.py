"""Elementwise operations: a formula of the op table as kernels, into a new array or a given one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numr import dtypes as dt
from numr.codegen import expr as ex
from numr.codegen.calls import Formula, call_of
from numr.codegen.elementwise import Complex, Operand, expression
from numr.codegen.expr import F32, U32, Expr
from numr.dtypes import DType, Kind
from numr.ir.ops import SELECT, Op, Signature
from numr.layout import broadcast_shapes
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.pointwise import Pointwise

if TYPE_CHECKING:
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["Elementwise", "express", "of_operation"]


class Elementwise(Pointwise):
    """One formula for operands of given kinds, made ready for a device.

    Parameters
    ----------
    context, name, sources
        As of :class:`numr.runtime.wgpu.pointwise.Pointwise`.
    result : dtype
        Of the result's elements.
    formula : callable
        Makes the result's expression from the operands'. It may use the variable ``i`` of type u32, the number of
        the element.
    """

    def __init__(
        self,
        context: DeviceContext,
        name: str,
        sources: Sequence[tuple[DType, bool]],
        result: DType,
        formula: Formula,
    ) -> None:
        super().__init__(context, name, sources, (result,), lambda *x: (formula(*x),))
        self.result = result

    def __call__(self, *operands: Any) -> DeviceArray:
        """The result on broadcast operands, in a new array."""
        arrays = operands if not self._makers else [operands[i] for i in self._arrays]
        layout = arrays[0].layout
        planned = self._planned.get(id(layout))
        if planned is not None:
            for array in arrays:
                if array.layout is not layout:
                    planned = None
                    break
        key: Any = None
        if planned is None:
            key = tuple([array.layout for array in arrays])
            planned = self._planned.get(key)
        if planned is not None and planned.plan.opened is self.context.table.opened:
            out = self.context.fresh(planned.layout, planned.nbytes, self.result)
            if self._makers:
                self._again(planned, operands, arrays, (out,))
            else:
                self.context.repeat(planned.plan, (*arrays, out))
            return out
        return self._new(operands, arrays, key)

    def _new(self, operands: Sequence[Any], arrays: Sequence[DeviceArray], key: Any) -> DeviceArray:
        """The result in a new array, where there is no plan yet."""
        context = self.context
        shape = arrays[0].shape
        if any(array.shape != shape for array in arrays):
            shape = broadcast_shapes(*(array.shape for array in arrays), function=self.name)
        turned = len(shape) > 1 and _in_fortran_order(arrays, shape)
        if turned:
            shape, arrays = shape[::-1], [_turned(array) for array in arrays]
        out = context.empty(shape, self.result)
        planned = self._run(operands, arrays, (out,), fresh=(True,))
        if turned:
            out = _turned(out)
        if planned is not None and key is not None:
            layout = out.layout
            planned = planned._replace(layout=layout)
            self._keep(key, planned)
            if context.is_shared(layout) and all(other is layout for other in key):
                self._keep(id(layout), planned)
        return out

    def fill(self, operands: Sequence[Any], out: DeviceArray) -> bool:
        """Write the result into an array; if that is possible at once, and nothing is written otherwise.

        An operand may be the array itself, but not overlap it otherwise.
        """
        return self.write(operands, (out,))


def of_operation(
    context: DeviceContext, op: Op, kinds: tuple[Kind, ...], signature: Signature
) -> Elementwise:
    """An operation of the op table for operands of given dtypes and scalar types."""
    call = call_of(op, kinds, signature, express)
    return Elementwise(context, op.name, call.sources, call.result, call.formula)


def express(op: Op, compute: DType, *operands: Operand) -> Operand:
    """The expression of an operation.

    ``where`` of floats is one of their bits: where a device flushes subnormal floats, a choice does as well.
    """
    if op is not SELECT or compute not in (dt.float32, dt.complex64):
        return expression(op, compute, *operands)
    condition, x, y = operands
    assert isinstance(condition, Expr)
    if isinstance(x, Complex):
        assert isinstance(y, Complex)
        return Complex(_chosen(condition, x.re, y.re), _chosen(condition, x.im, y.im))
    assert isinstance(x, Expr)
    assert isinstance(y, Expr)
    return _chosen(condition, x, y)


def _chosen(condition: Expr, x: Expr, y: Expr) -> Expr:
    return ex.bitcast(ex.select(condition, ex.bitcast(x, U32), ex.bitcast(y, U32)), F32)


def _in_fortran_order(arrays: Sequence[DeviceArray], shape: tuple[int, ...]) -> bool:
    """Whether all arrays lie in Fortran order, so that a result in that order is quickest; those without axes aside."""
    with_axes = [array.layout for array in arrays if array.layout.shape]
    if not with_axes:
        return False
    layout = with_axes[0]
    return (
        all(other.shape == shape and other.strides == layout.strides for other in with_axes)
        and not layout.is_contiguous
        and layout.permute(range(layout.ndim)[::-1]).is_contiguous
    )


def _turned(array: DeviceArray) -> DeviceArray:
    """The view with the order of the axes reversed."""
    layout = array.layout
    return DeviceArray(array.storage, layout.permute(range(layout.ndim)[::-1]), array.dtype)
