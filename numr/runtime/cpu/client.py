"""``CpuClient``: NumPy over pooled memory, large operations in blocks over threads."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from numr import dtypes as dt
from numr.dtypes import DefaultDTypes, DType, Kind
from numr.ir.fused import Computation
from numr.ir.ops import CLIP, MAXIMUM, MINIMUM, POW, SELECT, Op, Reduction
from numr.ir.rows import RowComputation
from numr.layout import broadcast_shapes
from numr.runtime.arraylib.client import ArrayLibClient
from numr.runtime.arraylib.functions import Function
from numr.runtime.buffers import array_from_dlpack
from numr.runtime.client import FusedLoop, Loop
from numr.runtime.cpu.blockwise import (
    FOLDS,
    MANY,
    THREADED_BYTES,
    Compute,
    Grain,
    Writer,
    clip_function,
    extremum_function,
    fill,
    grain_of,
    in_memory_order,
    moving,
    overlaps,
    power_function,
    select_function,
)
from numr.runtime.cpu.memory import CpuAllocator, Lease
from numr.runtime.cpu.reductions import (
    DECISION_BYTES,
    DISTANCES_BLOCK,
    EXTREMUM_BYTES,
    PARTS_ABOVE,
    REDUCTIONS,
    adds_one_by_one,
    decide_blocks,
    reduce_blocks,
    reduce_parts,
    squared_distances,
)
from numr.runtime.cpu.runtime import CpuRuntime
from numr.runtime.cpu.threads import blocks, run_blocks
from numr.runtime.device import Device
from numr.runtime.storage import Storage

if TYPE_CHECKING:
    from numr.runtime.cpu.fused import BlockLoop
    from numr.runtime.cpu.jit.loops import KernelLoop

Array = np.ndarray[Any, Any]

#: Results of fewer bytes come from NumPy's own allocation, which is quicker, and are in no figure.
SMALL_BYTES = 1 << 18
#: Parts of this size are worth handing to threads.
PART_BYTES = 1 << 20
#: So many fused computations stay prepared.
FUSED_KEPT = 256


class CpuClient(ArrayLibClient):
    """Dispatches operations on the host."""

    runtime = CpuRuntime
    host_memory = True
    xp: ClassVar[Any] = np
    array_type: ClassVar[type] = np.ndarray
    defaults = DefaultDTypes(dt.float64, dt.complex128, dt.int64, dt.int64)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._allocator: CpuAllocator = CpuRuntime.allocator(device)
        self._small = SMALL_BYTES
        # Ufuncs that compute an operation in place as they are, None where none does; and how finely work is cut.
        self._inplace: dict[tuple[Any, ...], tuple[Function | None, Grain]] = {}
        self._fused: OrderedDict[tuple[Computation, bool], KernelLoop | BlockLoop] = OrderedDict()
        self._allocator.on_strict_change.append(self._strict_changed)
        self._strict_changed()

    def _strict_changed(self) -> None:
        # A frozen or limited allocator must see every allocation, so that prepared loops that leave small
        # results to NumPy are dropped.
        self._small = -1 if self._allocator.strict else SMALL_BYTES
        self.loops.clear()

    @property
    def allocator(self) -> CpuAllocator:
        return self._allocator

    def synchronize(self) -> None:
        """Nothing to wait for: operations on the host are done when their call returns."""

    # ------------------------------------------------------------------- memory
    def empty(self, shape: tuple[int, ...], dtype: DType) -> Array:
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes < self._small or not nbytes:
            return np.empty(shape, dtype)
        return self._allocator.empty_array(shape, dtype)

    def as_array(self, value: Any) -> Array:
        array: Array = value if type(value) is np.ndarray else np.asarray(value)
        # What NumPy allocated is counted from here on, if it is the array's own and large enough to matter.
        if array.nbytes >= self._small and array.nbytes:
            flags = array.flags
            if flags.owndata and flags.forc:
                return self._allocator.adopt(array)
        return array

    def storage(self, array: Array) -> Storage:
        root: Any = array
        while isinstance(root.base, np.ndarray) and not isinstance(root, Lease):
            root = root.base
        if isinstance(root.base, Storage):
            return root.base
        low, high = np.lib.array_utils.byte_bounds(root)
        return Storage.foreign(
            low, high - low, self.device, CpuRuntime, root, readonly=not array.flags.writeable
        )

    def pointer(self, array: Array) -> int:
        return int(array.__array_interface__["data"][0])

    def wrap(self, storage: Storage, layout: Any, dtype: DType) -> Array:
        if 0 in layout.shape:
            return np.empty(layout.shape, dtype)  # no element lies anywhere
        size = dtype.itemsize
        return np.ndarray(
            layout.shape,
            dtype,
            np.asarray(storage),
            layout.offset * size,
            tuple(stride * size for stride in layout.strides),
        )

    def from_host(self, array: Array, *, copy: bool) -> Array:
        native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        if copy:
            return self.copy(native)
        return native if type(native) is np.ndarray else native.view(np.ndarray)

    def take_host(self, array: Array) -> Array:
        return self.as_array(array)

    def to_host(self, array: Array) -> Array:
        return array

    def to_dlpack(
        self,
        array: Array,
        stream: Any,
        max_version: tuple[int, int] | None,
        dl_device: tuple[int, int] | None,
        copy: bool | None,
    ) -> Any:
        if stream is not None:
            raise BufferError(
                f"__dlpack__: stream={stream!r}, but {self.device} has no streams; leave stream out."
            )
        if dl_device is not None and tuple(dl_device) != self.dlpack_device():
            raise BufferError(
                f"__dlpack__: dl_device={tuple(dl_device)} is not {self.device}, which is "
                f"{self.dlpack_device()}. Move the tensor with to_device() first."
            )
        return array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def from_dlpack(self, producer: Any, copy: bool | None) -> Array:
        # Memory for the copy is the allocator's.
        return self.copy(array_from_dlpack(producer)) if copy else array_from_dlpack(producer, copy)

    def dlpack_device(self) -> tuple[int, int]:
        return (1, 0)

    # -------------------------------------------------------------- elementwise
    def elementwise_loop(self, op: Op, kinds: tuple[Kind, ...]) -> Loop:
        function, converts = self.resolve(op, kinds)
        compute, result = op.signature(kinds, self.defaults)
        grain = grain_of(op, function, _width(kinds) + result.itemsize)
        large = self._large_loop(op, function, converts, result, grain)
        asarray = np.asarray
        ndarray = np.ndarray
        if self._small < 0:
            return large
        limit = self._small // max(compute.itemsize, result.itemsize)
        arrays = [isinstance(kind, np.dtype) for kind in kinds]
        if op.arity > 2 and sum(arrays) == 1 and not any(converts):
            place = arrays.index(True)

            def with_scalars(*operands: Any) -> Array:
                if operands[place].size > limit:
                    return large(*operands)  # type: ignore[no-any-return]
                value = function(*operands)
                return value if value.__class__ is ndarray else asarray(value)

            return with_scalars
        if op.arity > 2 or any(converts):

            def general(*operands: Any) -> Array:
                bound = 1
                for x in operands:
                    if x.__class__ is ndarray:
                        bound *= max(x.size, 1)
                if bound > limit:
                    return large(*operands)  # type: ignore[no-any-return]
                try:
                    value = function(
                        *(self._convert(x, to) for x, to in zip(operands, converts, strict=True))
                    )
                except ValueError:
                    return large(*operands)  # type: ignore[no-any-return]  # as below
                return value if value.__class__ is ndarray else asarray(value)

            return general
        if len(arrays) == 1:

            def unary(a: Array) -> Array:
                if a.size > limit:
                    return large(a)  # type: ignore[no-any-return]
                value = function(a)
                return value if value.__class__ is ndarray else asarray(value)

            return unary
        if not all(arrays):
            first = arrays[0]

            def with_scalar(a: Any, b: Any) -> Array:
                if (a if first else b).size > limit:
                    return large(a, b)  # type: ignore[no-any-return]
                value = function(a, b)
                return value if value.__class__ is ndarray else asarray(value)

            return with_scalar

        def binary(a: Array, b: Array) -> Array:
            # The product bounds what broadcasting can make of the two, and is quicker than comparing shapes.
            if a.size * b.size > limit and (a.size > limit or a.shape != b.shape):
                return large(a, b)  # type: ignore[no-any-return]
            try:
                value = function(a, b)
            except ValueError:
                return large(a, b)  # type: ignore[no-any-return]  # raises numr's error, if shapes differ
            return value if value.__class__ is ndarray else asarray(value)

        return binary

    def resolve(
        self, op: Op, kinds: tuple[Kind, ...], compute: DType | None = None
    ) -> tuple[Function, tuple[DType | None, ...]]:
        if compute is None:
            compute = op.signature(kinds, self.defaults).compute
        function, converts = super().resolve(op, kinds, compute)
        if op is SELECT and compute.itemsize <= 8 and compute.kind != "c":
            function = select_function(compute)
        elif op is CLIP:
            function = clip_function()
        elif op is POW and compute.kind == "f" and compute.itemsize >= 4:
            function = power_function(function)
        elif op in (MAXIMUM, MINIMUM) and compute.kind == "f" and not all(map(_is_dtype, kinds)):
            function = extremum_function(function)
        return function, converts

    def elementwise_into(
        self, op: Op, kinds: tuple[Kind, ...], operands: tuple[Any, ...], target: Array
    ) -> None:
        key = (op, *kinds)
        found = self._inplace.get(key)
        if found is None:
            resolved, converts = self.resolve(op, kinds)
            as_it_is = isinstance(resolved, np.ufunc) and not any(converts)
            grain = grain_of(op, resolved, _width(kinds))  # what is written was read before
            found = self._inplace[key] = (resolved if as_it_is else None, grain)
        function, grain = found
        if function is None:
            super().elementwise_into(op, kinds, operands, target)
            return
        if target.size <= grain.whole or any(overlaps(x, target) for x in operands):
            function(*operands, out=target)  # NumPy copies what would be overwritten too early
        else:
            fill(target, operands, lambda out, xs: function(*xs, out=out), grain)

    def writing(self, function: Function, converts: tuple[DType | None, ...]) -> Compute:
        """What writes a function's result on operands, converted as :meth:`resolve` says, into an array."""
        if isinstance(function, np.ufunc) and not any(converts):
            ufunc = function
            return lambda out, operands: ufunc(*operands, out=out)
        if isinstance(function, Writer) and not any(converts):
            into = function.into
            return lambda out, operands: into(out, *operands)

        def compute(out: Array, operands: tuple[Any, ...]) -> None:
            converted = (self._convert(x, to) for x, to in zip(operands, converts, strict=True))
            out[...] = function(*converted)

        return compute

    def _large_loop(
        self,
        op: Op,
        function: Function,
        converts: tuple[DType | None, ...],
        result: DType,
        grain: Grain,
    ) -> Loop:
        """The loop that works in blocks, over threads, into pooled memory."""
        compute = self.writing(function, converts)
        whole = grain.whole
        name = op.name
        ndarray = np.ndarray

        def loop(*operands: Any) -> Array:
            # One block of operands in C order: each step counts beside the work.
            shape = None
            alike = True
            for x in operands:
                if x.__class__ is ndarray:
                    if not x.flags.c_contiguous:
                        break
                    if shape is None:
                        shape = x.shape
                    elif x.shape != shape:
                        alike = False
            else:
                if not alike:
                    shapes = [x.shape for x in operands if x.__class__ is ndarray]
                    shape = _common_shape(*shapes, function=name)
                if math.prod(shape) <= whole:  # type: ignore[arg-type]  # one operand is an array
                    out = self.empty(shape, result)  # type: ignore[arg-type]
                    compute(out, operands)
                    return out
            return self._blockwise(name, compute, operands, result, grain)

        return loop

    def _blockwise(
        self, name: str, compute: Compute, operands: tuple[Any, ...], dtype: DType, grain: Grain
    ) -> Array:
        """A new array of ``compute``'s results on broadcast operands."""
        shapes = [x.shape for x in operands if x.__class__ is np.ndarray]
        shape = shapes[0]
        if any(other != shape for other in shapes):
            shape = _common_shape(*shapes, function=name)
        if len(shape) > 1 and in_memory_order(shape, operands) == "F":
            # Operands in Fortran order give a result in Fortran order, so that memory is walked in order.
            turned = tuple(x.T if x.__class__ is np.ndarray else x for x in operands)
            return self._blockwise(name, compute, turned, dtype, grain).T
        out = self.empty(shape, dtype)
        fill(out, operands, compute, grain)
        return out

    def fuses(self, op: Op | None, compute: DType) -> bool:
        """All operations: what kernels do not compute as NumPy does, NumPy computes between them."""
        return True

    def fused(self, computation: Computation) -> KernelLoop | BlockLoop:
        # The expressions of all operations take a while to load, and few programs fuse.
        from numr.runtime.cpu.fused import compiler, fused_loop

        key = (computation, compiler() is not None)
        loop = self._fused.get(key)
        if loop is None:
            loop = self._fused[key] = fused_loop(self, computation)
            if len(self._fused) > FUSED_KEPT:
                self._fused.popitem(last=False)
        return loop

    def cast(self, array: Array, dtype: DType) -> Array:
        grain = moving(array.itemsize + dtype.itemsize)
        if array.size <= grain.whole and array.flags.c_contiguous:
            result = self.empty(array.shape, dtype)
            self._copy_cast(result, array)
            return result
        return self._blockwise("astype", self._copy_one, (array,), dtype, grain)

    def copy(self, array: Array) -> Array:
        result = self.empty(array.shape, array.dtype)
        grain = moving(_read_width(array) + array.itemsize)
        if array.size <= grain.whole:
            np.copyto(result, array)
        else:
            fill(result, (array,), self._copy_one, grain)
        return result

    def assign(self, target: Array, source: Array) -> None:
        # A source that is broadcast is read from cache.
        read = _read_width(source) if source.size == target.size else 0
        grain = moving(target.itemsize + read)
        if target.size <= grain.whole or np.may_share_memory(target, source):
            self._copy_cast(target, source)
        else:
            fill(target, (source,), self._copy_one, grain)

    def assign_all(self, parts: Sequence[tuple[Array, Array]]) -> None:
        moved = 2 * sum(target.nbytes for target, _ in parts)
        if moved <= THREADED_BYTES or moved < len(parts) * PART_BYTES:
            super().assign_all(parts)
            return
        # Each part may be too small for threads of its own where all of them are not.
        places = [slice(i, i + 1) for i in range(len(parts))]
        run_blocks(lambda place: self.assign(*parts[place.start]), places)

    def _copy_one(self, target: Array, operands: tuple[Array, ...]) -> None:
        self._copy_cast(target, operands[0])

    # --------------------------------------------------------------- reductions
    def reduce(
        self, kind: Reduction, array: Array, axes: tuple[int, ...], keepdims: bool, dtype: DType
    ) -> Array:
        ufunc, computes = REDUCTIONS[kind]
        compute = dtype if computes else None
        if computes:
            whole = array.size <= FOLDS.whole
        else:
            # NumPy stops at the first element that decides any() or all(), which blocks would not.
            whole = array.nbytes <= EXTREMUM_BYTES or array.dtype == dt.bool_
        value: Array
        if (
            kind in (Reduction.ANY, Reduction.ALL)
            and array.dtype == dt.bool_
            and len(axes) == array.ndim
            and array.size > DECISION_BYTES
            and array.flags.c_contiguous
        ):
            shape = (1,) * array.ndim if keepdims else ()
            value = np.full(shape, decide_blocks(array, kind))
        elif not whole and axes:
            value = reduce_blocks(array, axes, keepdims, ufunc, compute, dtype, self.empty)
        elif (
            computes
            and array.size > PARTS_ABOVE
            and adds_one_by_one(array.shape, axes, contiguous=array.flags.c_contiguous)
        ):
            value = reduce_parts(array, axes, keepdims, ufunc, compute, dtype)
        else:
            value = ufunc.reduce(array, axis=axes, dtype=compute, keepdims=keepdims)
        return self.as_array(value)

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
        from numr.runtime.cpu.computed import Computed, reduce_computed

        elements = Computed(self, computation, operands, shape)
        value = reduce_computed(elements, kind, axes, keepdims, dtype, self.empty)
        if value is not None:
            return self.as_array(value)
        whole = self.empty(shape, elements.dtype)
        elements.loop(operands, [whole])
        return self.reduce(kind, whole, axes, keepdims, dtype)

    def fuses_rows(
        self, shape: tuple[int, ...], axes: tuple[int, ...], dtypes: tuple[DType, ...]
    ) -> bool:
        from numr.runtime.cpu.rows import keeps_rows_whole

        return keeps_rows_whole(shape, axes)

    def fused_rows(
        self, computation: RowComputation, shape: tuple[int, ...], axes: tuple[int, ...]
    ) -> FusedLoop:
        from numr.runtime.cpu.rows import row_loop

        return row_loop(
            self, computation, shape, axes, super().fused_rows(computation, shape, axes)
        )

    def composes_distances(self, array: Array, axes: tuple[int, ...]) -> bool:
        from numr.runtime.cpu.rows import keeps_rows_whole

        # The sum of each row is the same however many rows there are.
        return array.flags.c_contiguous and keeps_rows_whole(array.shape, axes)

    def squared_distances(
        self, array: Array, center: Array, axes: tuple[int, ...], keepdims: bool
    ) -> Array:
        dtype = array.dtype
        if dtype.kind != "f" or center.dtype != dtype or array.size <= DISTANCES_BLOCK or not axes:
            composed: Array = super().squared_distances(array, center, axes, keepdims)
            return composed
        return self.as_array(squared_distances(array, center, axes, keepdims, self.empty))

    def scan(self, kind: Reduction, array: Array, axis: int, dtype: DType) -> Array:
        result = self.empty(array.shape, dtype)
        ufunc = _SCANS[kind]
        others = tuple(n for i, n in enumerate(array.shape) if i != axis)
        if array.size <= FOLDS.whole or not others or max(others) < MANY:
            ufunc.accumulate(array, axis=axis, dtype=dtype, out=result)
            return result
        split = next(i for i, n in enumerate(array.shape) if i != axis and n >= MANY)
        leading = (slice(None),) * split

        def body(part: slice) -> None:
            key = (*leading, part)
            ufunc.accumulate(array[key], axis=axis, dtype=dtype, out=result[key])

        length = array.shape[split]
        # Rows that are read in runs of a few cache lines: a block is no narrower than 64 places.
        step = max(64, blocks(length, array.size // length, FOLDS.block)[0].stop)
        run_blocks(body, [slice(i, min(i + step, length)) for i in range(0, length, step)])
        return result


_SCANS: dict[Reduction, np.ufunc] = {
    Reduction.SUM: np.add,
    Reduction.PROD: np.multiply,
    Reduction.MAX: np.maximum,
    Reduction.MIN: np.minimum,
}


#: Programs meet the same shapes again and again.
_common_shape = lru_cache(maxsize=256)(broadcast_shapes)


def _is_dtype(kind: Kind) -> bool:
    return isinstance(kind, np.dtype)


def _read_width(array: Array) -> int:
    """Bytes that reading an array in C order costs for each element: more where neighbours lie apart."""
    return array.itemsize if array.flags.c_contiguous else 3 * array.itemsize


def _width(kinds: tuple[Kind, ...]) -> int:
    """Bytes that an operation reads for each element."""
    return sum(kind.itemsize for kind in kinds if isinstance(kind, np.dtype))
