"""Elementwise kernels: an expression of the op table on arrays of any strides and on scalars.

Small formulas have a kernel that works on four neighbouring elements at once, for operands that lie as the result
does. The other kernel takes any strides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numr import dtypes as dt
from numr.codegen import expr as ex
from numr.codegen.calls import Formula, call_of
from numr.codegen.elementwise import Complex, Operand
from numr.codegen.expr import F32, U32, Expr
from numr.dtypes import DType, Kind
from numr.ir.ops import SELECT, Op, Signature
from numr.layout import Layout, broadcast_shapes
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import scalars, texts, vectors
from numr.runtime.wgpu.elementwise_texts import Prepared, Texts
from numr.runtime.wgpu.ranges import is_whole, overlaps
from numr.runtime.wgpu.texts import Walk

if TYPE_CHECKING:
    from numr.runtime.wgpu.launch import DeviceContext, Plan
    from numr.runtime.wgpu.queue import Binding

__all__ = ["Elementwise", "of_operation"]

#: Elements of one dispatch, so that all numbers of elements and bytes fit into 32 bits.
_MOST: Final = 1 << 31
#: Plans that are kept.
_KEPT: Final = 256


class _Planned(NamedTuple):
    """A dispatch on arrays of given layouts, but for the buffers and the scalars."""

    plan: Plan
    #: Of the result, and how many bytes it has.
    layout: Layout
    nbytes: int
    #: What packs the parameters, and what is packed before and after the scalars.
    pack: Callable[..., bytes]
    head: tuple[int, ...]
    tail: tuple[int, ...]


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
        self.context = context
        self.name = name
        self.sources = tuple(sources)
        self.result = result
        self._arrays = tuple(i for i, (_, is_array) in enumerate(sources) if is_array)
        self._makers = tuple(
            (i, scalars.maker(dtype)) for i, (dtype, is_array) in enumerate(sources) if not is_array
        )
        self._itemsizes = (*(sources[i][0].itemsize for i in self._arrays), result.itemsize)
        # Whether each array can be a buffer of its own.
        most = context.limits["max-storage-buffers-per-shader-stage"]
        self._has_buffers = len(self._arrays) < most
        self._texts = Texts(sources, result, formula)
        # By the layouts of the operands, or the identity of the one that all have and that the plan keeps alive; for
        # results that are written into existing arrays by more.
        self._planned: dict[Any, _Planned] = {}

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
            self._again(planned, operands, arrays, out)
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
        planned = self._run(operands, arrays, out, fresh=True)
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
        arrays = [operands[i] for i in self._arrays]
        handle = out.storage.handle
        whole = is_whole(out)
        key = (whole, out.layout, *((x.storage.handle == handle, x.layout) for x in arrays))
        planned = self._planned.get(key)
        if planned is not None and planned.plan.opened is self.context.table.opened:
            self._again(planned, operands, arrays, out)
            return True
        if any(overlaps(array, out) for array in arrays):
            return False
        if not whole and (
            # Words that elements share with others, or with each other, are not written by elements.
            out.itemsize < 4 or out.layout.has_internal_overlap or not self.context.fits(out)
        ):
            return False
        planned = self._run(operands, arrays, out, fresh=whole)
        if planned is not None:
            self._keep(key, planned)
        return True

    def _keep(self, key: Any, planned: _Planned) -> None:
        if len(self._planned) >= _KEPT:
            self._planned.clear()
        self._planned[key] = planned

    # -------------------------------------------------------------------- running
    def _again(
        self,
        planned: _Planned,
        operands: Sequence[Any],
        arrays: Sequence[DeviceArray],
        out: DeviceArray,
    ) -> None:
        plan, _, _, pack, head, tail = planned
        params = pack(*head, *self._values(operands), *tail) if self._makers else plan.params
        self.context.run_again(plan, (*arrays, out), params)

    def _values(self, operands: Sequence[Any]) -> list[int | float]:
        return [number for i, make in self._makers for number in make(operands[i])]

    def _run(
        self,
        operands: Sequence[Any],
        arrays: Sequence[DeviceArray],
        out: DeviceArray,
        *,
        fresh: bool,
    ) -> _Planned | None:
        """Write the result into an array; into a ``fresh`` one by whole pieces, past its end as well.

        The plan is returned if there was one dispatch, on the arrays themselves.
        """
        if not out.size:
            return None
        shape, context = out.shape, self.context
        aliased = any(array.storage.handle == out.storage.handle for array in arrays)
        if (
            fresh
            and self._has_buffers
            and self._texts.is_small
            and all(array.shape == shape and array.layout.is_contiguous for array in arrays)
        ):
            starts = [context.aligned_start(array) for array in (*arrays, out)]
            if None not in starts:
                return self._run_flat(operands, arrays, out, starts, aliased)
        return self._run_strided(operands, arrays, out, fresh=fresh, aliased=aliased)

    def _run_flat(
        self,
        operands: Sequence[Any],
        arrays: Sequence[DeviceArray],
        out: DeviceArray,
        starts: Sequence[Any],
        aliased: bool,
    ) -> _Planned | None:
        prepared = self._texts.flat(aliased)
        buffers = [self.context.buffer(array, self.name) for array in (*arrays, out)]
        size = out.size
        step = self._step(max(self._itemsizes))
        planned = None
        for first in range(0, size, step):
            count = min(step, size - first)
            groups, row = self.context.grid(-(-count // vectors.WIDTH))
            bindings = []
            for buffer, begin, itemsize in zip(buffers, starts, self._itemsizes, strict=True):
                start = begin + first * itemsize
                end = start + count * itemsize
                # Writes go on to the end of the last piece, reads beyond a binding find something else.
                end = end + 63 & -64 if buffer is buffers[-1] else end + 15 & -16
                bindings.append((buffer, start, end - start))
            head = (0, count, row, first)
            planned = self._first(prepared, bindings, (head, ()), groups, operands, out)
        return planned if size <= step else None

    def _first(
        self,
        prepared: Prepared,
        bindings: Sequence[Binding],
        numbers: tuple[tuple[int, ...], tuple[int, ...]],
        groups: tuple[int, int, int],
        operands: Sequence[Any],
        out: DeviceArray,
    ) -> _Planned:
        text, pack = prepared
        head, tail = numbers
        params = pack(*head, *self._values(operands), *tail)
        plan = self.context.run_first(text, bindings, params, groups)
        return _Planned(plan, out.layout, out.nbytes, pack, head, tail)

    def _step(self, itemsize: int) -> int:
        """Elements of one dispatch, such that the bindings of the next are aligned."""
        unit = self.context.alignment
        return min(self.context.max_binding // itemsize, _MOST) // unit * unit

    def _run_strided(
        self,
        operands: Sequence[Any],
        arrays: Sequence[DeviceArray],
        out: DeviceArray,
        *,
        fresh: bool,
        aliased: bool,
    ) -> _Planned | None:
        context, shape, size = self.context, out.shape, out.size
        given = arrays
        step = size
        if size > _MOST or not all(context.fits(array) for array in (*arrays, out)):
            step = self._step(max(self._itemsizes))
            # What is too large for one binding is bound in parts, which it has in C order alone.
            arrays = [
                array if context.fits(array) else context.contiguous(array, shape)
                for array in arrays
            ]
        slots = self._slots()
        joined = len(set(slots)) < len(slots)
        if joined:
            arrays = context.joined(arrays, slots)
        strides = [array.layout.broadcast_to(shape).strides for array in arrays]
        walk = Walk(shape, strides if fresh else [*strides, out.strides])
        prepared = self._texts.strided(walk.rank, slots, fresh=fresh, aliased=aliased)
        planned = None
        for first in range(0, size, step):
            count = min(step, size - first)
            bindings: dict[int, Binding] = {}
            starts = []
            for slot, array in zip(slots, arrays, strict=True):
                if joined:
                    end = array.storage.size // array.itemsize
                    bound = context.bind_range(array, 0, end, array.offset, self.name)
                else:
                    bound = context.bind_part(array, first, count, self.name)
                bindings[slot], start = bound
                starts.append(start)
            if fresh:
                end = first + count
                bindings[len(slots)], _ = context.bind_range(out, first, end, 0, self.name)
            else:
                bindings[len(slots)], start = context.bind(out, self.name)
                starts.append(start)
            groups, row = context.grid(-(-count // texts.lanes(self.result)))
            head = (0, count, row, first)
            tail = tuple(number & 0xFFFFFFFF for number in (*starts, *walk.packed()))
            every = list(bindings.values())
            planned = self._first(prepared, every, (head, tail), groups, operands, out)
        return planned if size <= step and arrays is given else None

    def _slots(self) -> tuple[int, ...]:
        """For each array which buffer it is bound as: one of its own, or one for all of a type where these are few."""
        if self._has_buffers:
            return tuple(range(len(self._arrays)))
        types = [texts.memory_type(self.sources[i][0]) for i in self._arrays]
        return tuple(types.index(type) for type in types)


def of_operation(
    context: DeviceContext, op: Op, kinds: tuple[Kind, ...], signature: Signature
) -> Elementwise:
    """An operation of the op table for operands of given dtypes and scalar types."""
    call = call_of(op, kinds, signature)
    formula = call.formula
    if op is SELECT and call.result in (dt.float32, dt.complex64):
        formula = _choice_of_bits(call.sources, call.computed)
    return Elementwise(context, op.name, call.sources, call.result, formula)


def _choice_of_bits(sources: Sequence[tuple[DType, bool]], computed: Sequence[DType]) -> Formula:
    """``where`` of floats as one of their bits: where a device flushes subnormal floats, a choice does as well."""

    def chosen(condition: Expr, x: Expr, y: Expr) -> Expr:
        return ex.bitcast(ex.select(condition, ex.bitcast(x, U32), ex.bitcast(y, U32)), F32)

    def formula(*operands: Operand) -> Operand:
        condition, x, y = (
            texts.taken(value, source, target)
            for value, (source, _), target in zip(operands, sources, computed, strict=True)
        )
        assert isinstance(condition, Expr)
        if isinstance(x, Complex):
            assert isinstance(y, Complex)
            return Complex(chosen(condition, x.re, y.re), chosen(condition, x.im, y.im))
        assert isinstance(x, Expr)
        assert isinstance(y, Expr)
        return chosen(condition, x, y)

    return formula


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
