"""Kernels that work element by element: formulas on arrays of any strides and on scalars, with any number of results.

Small formulas have a kernel that works on four neighbouring elements at once, for results in C order and operands that
lie likewise or are broadcast. The other kernel takes any strides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numr.dtypes import DType
from numr.layout import Layout
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import scalars, texts, vectors
from numr.runtime.wgpu.formulas import Formulas
from numr.runtime.wgpu.grouping import Grouping
from numr.runtime.wgpu.pointwise_texts import Prepared, Texts
from numr.runtime.wgpu.ranges import is_whole, overlaps
from numr.runtime.wgpu.texts import Walk

if TYPE_CHECKING:
    from numr.runtime.wgpu.launch import DeviceContext, Plan
    from numr.runtime.wgpu.records import Binding

__all__ = ["Planned", "Pointwise"]

#: Elements of one dispatch, so that all numbers of elements and bytes fit into 32 bits.
_MOST: Final = 1 << 31
#: Plans that are kept.
_KEPT: Final = 256
#: Up to this many operations, a kernel has the formulas for four elements: more text takes longer to compile.
_SMALL: Final = 512
#: Up to this many operations, reading and writing is most of a software adapter's time, and worth the work of doubled
#: pieces.
_FEW: Final = 64


class Planned(NamedTuple):
    """A dispatch on arrays of given layouts, but for the buffers and the scalars."""

    plan: Plan
    #: Of the first result, and how many bytes it has.
    layout: Layout
    nbytes: int
    #: What packs the parameters, and what is packed before and after the scalars.
    pack: Callable[..., bytes]
    head: tuple[int, ...]
    tail: tuple[int, ...]


class Pointwise:
    """Formulas for operands of given kinds, made ready for a device.

    Parameters
    ----------
    context : DeviceContext
        The device.
    name : str
        The operation, for errors.
    sources : sequence of (dtype, bool)
        For each operand the dtype of its elements, and whether it is an array; else it is a scalar of that dtype.
    results : sequence of dtype
        Of the results' elements.
    formulas : callable
        Makes the results' expressions from the operands'. It may use the variable ``i`` of type u32, the number of
        the element.
    """

    def __init__(
        self,
        context: DeviceContext,
        name: str,
        sources: Sequence[tuple[DType, bool]],
        results: Sequence[DType],
        formulas: Formulas,
    ) -> None:
        self.context = context
        self.name = name
        self.sources = tuple(sources)
        self.results = tuple(results)
        self._arrays = tuple(i for i, (_, is_array) in enumerate(sources) if is_array)
        self._makers = tuple(
            (i, scalars.maker(dtype)) for i, (dtype, is_array) in enumerate(sources) if not is_array
        )
        dtypes = (*(sources[i][0] for i in self._arrays), *results)
        self._itemsizes = tuple(dtype.itemsize for dtype in dtypes)
        # Whether each array can be a buffer of its own.
        self._has_buffers = len(dtypes) <= context.limits["max-storage-buffers-per-shader-stage"]
        self._texts = Texts(sources, results, formulas)
        # By the layouts of the operands, or the identity of the one that all have and that the plan keeps alive; for
        # results that are written into existing arrays by more.
        self._planned: dict[Any, Planned] = {}

    def write(self, operands: Sequence[Any], outs: Sequence[DeviceArray]) -> bool:
        """Write the results into arrays of one shape; if that is possible at once, and nothing is written otherwise.

        An operand may be one of these arrays, but not overlap them otherwise.
        """
        arrays = [operands[i] for i in self._arrays]
        handles = [out.storage.handle for out in outs]
        whole = tuple([is_whole(out) for out in outs])
        shared = [
            handles.index(x.storage.handle) if x.storage.handle in handles else -1 for x in arrays
        ]
        key = (whole, *(out.layout for out in outs), *shared, *(x.layout for x in arrays))
        planned = self._planned.get(key)
        if planned is not None and planned.plan.opened is self.context.table.opened:
            self._again(planned, operands, arrays, outs)
            return True
        if not all(map(self._can_be_written, outs, whole)):
            return False
        if any(overlaps(array, out) for array in arrays for out in outs):
            return False
        planned = self._run(operands, arrays, outs, fresh=whole)
        if planned is not None:
            self._keep(key, planned)
        return True

    def takes(self, operands: Sequence[Any], out: DeviceArray) -> bool:
        """Whether :meth:`write` can write into an array."""
        return self._can_be_written(out, is_whole(out)) and not any(
            overlaps(operands[i], out) for i in self._arrays
        )

    def _can_be_written(self, out: DeviceArray, is_whole: bool) -> bool:
        """Whether each invocation can write its elements of an array."""
        # Words that elements share with others, or with each other, are not written by elements.
        return is_whole or (
            out.itemsize >= 4 and not out.layout.has_internal_overlap and self.context.fits(out)
        )

    def _keep(self, key: Any, planned: Planned) -> None:
        if len(self._planned) >= _KEPT:
            self._planned.clear()
        self._planned[key] = planned

    # -------------------------------------------------------------------- running
    def _again(
        self,
        planned: Planned,
        operands: Sequence[Any],
        arrays: Sequence[DeviceArray],
        outs: Sequence[DeviceArray],
    ) -> None:
        plan, _, _, pack, head, tail = planned
        if self._makers:
            params = pack(*head, *self._values(operands), *tail)
            self.context.run_again(plan, (*arrays, *outs), params)
        else:
            self.context.repeat(plan, (*arrays, *outs))

    def _values(self, operands: Sequence[Any]) -> list[int | float]:
        return [number for i, make in self._makers for number in make(operands[i])]

    def _run(
        self,
        operands: Sequence[Any],
        arrays: Sequence[DeviceArray],
        outs: Sequence[DeviceArray],
        *,
        fresh: tuple[bool, ...],
    ) -> Planned | None:
        """Write the results into arrays; into ``fresh`` ones by whole pieces, past their ends as well.

        The plan is returned if there was one dispatch, on the arrays themselves.
        """
        if not outs[0].size:
            return None
        context, shape = self.context, outs[0].shape
        straight = context.turned(arrays, shape)
        if any(a is not b for a, b in zip(straight, arrays, strict=True)):
            # The plan would be for the copies.
            self._run(operands, straight, outs, fresh=fresh)
            return None
        handles = {out.storage.handle for out in outs}
        aliased = any(array.storage.handle in handles for array in arrays)
        if all(fresh) and self._has_buffers and self._texts.size <= _SMALL:
            grouping = Grouping.of(context, arrays, shape, self.name)
            fits = all(map(context.fits, outs))
            if grouping is not None and (fits or not grouping.rank):
                return self._run_grouped(operands, arrays, outs, grouping, aliased)
        return self._run_strided(operands, arrays, outs, fresh=fresh, aliased=aliased)

    def _run_grouped(
        self,
        operands: Sequence[Any],
        arrays: Sequence[DeviceArray],
        outs: Sequence[DeviceArray],
        grouping: Grouping,
        aliased: bool,
    ) -> Planned | None:
        context = self.context
        doubled = context.doubles_words and self._texts.size <= _FEW
        prepared = self._texts.grouped(
            grouping.modes, grouping.rank, aliased=aliased, doubled=doubled
        )
        known = (*grouping.bindings, *[None] * len(outs))
        # Writes go on to the end of the last piece, reads beyond a binding find something else.
        units = [16] * len(arrays) + [64] * len(outs)
        size = outs[0].size
        step = self._step(max(self._itemsizes)) if grouping.rank == 0 else size
        planned = None
        for first in range(0, size, step):
            count = min(step, size - first)
            groups, row = context.grid(-(-count // vectors.WIDTH))
            bindings = []
            for array, binding, unit in zip((*arrays, *outs), known, units, strict=True):
                if binding is None:
                    start = (array.offset + first) * array.itemsize
                    end = start + count * array.itemsize + unit - 1 & -unit
                    binding = (context.buffer(array, self.name), start, end - start)
                bindings.append(binding)
            numbers = (0, count, row, first), grouping.tail
            planned = self._first(prepared, bindings, numbers, groups, operands, outs)
        return planned if size <= step else None

    def _first(
        self,
        prepared: Prepared,
        bindings: Sequence[Binding],
        numbers: tuple[tuple[int, ...], tuple[int, ...]],
        groups: tuple[int, int, int],
        operands: Sequence[Any],
        outs: Sequence[DeviceArray],
    ) -> Planned:
        text, pack = prepared
        head, tail = numbers
        params = pack(*head, *self._values(operands), *tail)
        plan = self.context.run_first(text, bindings, params, groups)
        return Planned(plan, outs[0].layout, outs[0].nbytes, pack, head, tail)

    def _step(self, itemsize: int) -> int:
        """Elements of one dispatch, such that the bindings of the next are aligned."""
        unit = self.context.alignment
        return min(self.context.max_binding // itemsize, _MOST) // unit * unit

    def _run_strided(
        self,
        operands: Sequence[Any],
        arrays: Sequence[DeviceArray],
        outs: Sequence[DeviceArray],
        *,
        fresh: tuple[bool, ...],
        aliased: bool,
    ) -> Planned | None:
        context, shape, size = self.context, outs[0].shape, outs[0].size
        given = arrays
        step = size
        if size > _MOST or not all(context.fits(array) for array in (*arrays, *outs)):
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
        strides += [out.strides for out, is_fresh in zip(outs, fresh, strict=True) if not is_fresh]
        walk = Walk(shape, strides)
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
            for slot, (out, is_fresh) in enumerate(zip(outs, fresh, strict=True), len(slots)):
                if is_fresh:
                    end = first + count
                    bindings[slot], _ = context.bind_range(out, first, end, 0, self.name)
                else:
                    bindings[slot], start = context.bind(out, self.name)
                    starts.append(start)
            groups, row = context.grid(-(-count // max(map(texts.lanes, self.results))))
            head = (0, count, row, first)
            tail = tuple(number & 0xFFFFFFFF for number in (*starts, *walk.packed()))
            every = list(bindings.values())
            planned = self._first(prepared, every, (head, tail), groups, operands, outs)
        return planned if size <= step and arrays is given else None

    def _slots(self) -> tuple[int, ...]:
        """For each array which buffer it is bound as: one of its own, or one for all of a type where these are few."""
        if self._has_buffers:
            return tuple(range(len(self._arrays)))
        types = [texts.memory_type(self.sources[i][0]) for i in self._arrays]
        return tuple(types.index(type) for type in types)
