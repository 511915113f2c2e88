"""``CudaClient``: numr's kernels on CuPy's arrays, and NVIDIA's libraries through CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from numr import dtypes as dt
from numr.codegen.elementwise import Operand
from numr.dtypes import DType, Kind, Scalar
from numr.errors import ShapeError
from numr.ir.ops import Op, Reduction
from numr.runtime.arraylib.client import ArrayLibClient
from numr.runtime.client import Loop, RuntimeClient
from numr.runtime.cuda import driver, exchange, formulas, texts
from numr.runtime.cuda.context import DeviceContext
from numr.runtime.cuda.copies import mover
from numr.runtime.cuda.elementwise import Elementwise, of_operation
from numr.runtime.cuda.folding import Fold
from numr.runtime.cuda.fused import Fusion
from numr.runtime.cuda.graphs import Graphs
from numr.runtime.cuda.indexing import gather_across, gather_into, prefers_across, scatter_from
from numr.runtime.cuda.linalg import LinalgFamilies
from numr.runtime.cuda.memory import CudaAllocator
from numr.runtime.cuda.ranges import as_word, extent, overlaps
from numr.runtime.cuda.reductions import reduce_into, reduced_dtype, reduced_shape
from numr.runtime.cuda.runtime import CudaRuntime
from numr.runtime.cuda.scans import scan_into
from numr.runtime.cuda.searching import search_into
from numr.runtime.cuda.selecting import Selection
from numr.runtime.device import Device
from numr.runtime.folds import EMPTY
from numr.runtime.integer_comparisons import comparing
from numr.runtime.storage import Storage

Array = Any


class CudaClient(Fusion, Graphs, LinalgFamilies, ArrayLibClient):
    """Dispatches operations on one GPU.

    Attributes
    ----------
    context : DeviceContext
        What the runtime holds of the device.
    """

    runtime = CudaRuntime
    defaults = DeviceContext.defaults
    # Of the class in type only: CuPy is loaded when the first client is made.
    xp: ClassVar[Any]
    array_type: ClassVar[type]

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        cupy = driver.library()
        type(self).xp = cupy
        type(self).array_type = cupy.ndarray
        self.context = CudaRuntime.context(device)
        self._unowned: Any = cupy.cuda.memory.UnownedMemory
        self._pointer: Any = cupy.cuda.memory.MemoryPointer
        self._conversions: dict[tuple[DType, DType], Elementwise] = {}
        self._fills: dict[DType, Elementwise] = {}
        self._iotas: dict[DType, Elementwise] = {}
        self._keys: dict[tuple[DType, bool], Elementwise] = {}
        self._operations: dict[tuple[Any, ...], Elementwise] = {}
        self._folds: dict[tuple[Reduction, DType, DType, bool], Fold] = {}

    @property
    def allocator(self) -> CudaAllocator:
        return self.context.allocator

    def synchronize(self) -> None:
        self.context.synchronize()

    def compute_stream_handle(self) -> int:
        """The ``cudaStream_t`` that work is queued on; 0 is the default stream."""
        return int(self.context.stream.ptr)

    # ------------------------------------------------------------------- memory
    def empty(self, shape: tuple[int, ...], dtype: DType) -> Array:
        return self.context.empty(shape, dtype)

    def as_array(self, value: Any) -> Array:
        return value

    def storage(self, array: Array) -> Storage:
        memory = array.data.mem
        if type(memory) is self._unowned:
            owner = memory._owner
            if type(owner) is Storage:
                return owner
            size = memory.size
        else:
            # DLPack says no size; up to the last element of this view, memory is there.
            size = array.data.ptr - memory.ptr + extent(array)
        return Storage.foreign(memory.ptr, size, self.device, CudaRuntime, memory)

    def pointer(self, array: Array) -> int:
        return int(array.data.ptr)

    def wrap(self, storage: Storage, layout: Any, dtype: DType) -> Array:
        size = dtype.itemsize
        memory: Any = storage.owner
        if type(memory) is not self._unowned or storage.readonly:
            memory = self._unowned(storage.handle, storage.size, storage, self.context.number)
        return self.context.array(
            layout.shape,
            dtype,
            self._pointer(memory, layout.offset * size if storage.handle else 0),
            tuple(stride * size for stride in layout.strides),
        )

    def is_writable(self, array: Array) -> bool:
        memory = array.data.mem
        if type(memory) is not self._unowned:
            return True
        owner = memory._owner
        return not (type(owner) is Storage and owner.readonly)

    # ---------------------------------------------------------------- exchange
    def from_host(self, array: np.ndarray[Any, Any], *, copy: bool) -> Array:
        native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        result = self.empty(native.shape, native.dtype)
        if native.size:
            contiguous = np.ascontiguousarray(native).reshape(-1).view(np.uint8)
            self.context.upload(contiguous, result.data.ptr)
        return result

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        host: np.ndarray[Any, Any] = np.empty(array.shape, array.dtype)
        if host.size:
            source = array if array._c_contiguous else self.copy(array)
            self.context.download(source.data.ptr, host.reshape(-1).view(np.uint8))
        return host

    def from_other(self, other: RuntimeClient[Any], array: Array) -> Array:
        """Bring an array to this GPU; from another GPU without the host where the hardware can."""
        if not isinstance(other, CudaClient):
            return super().from_other(other, array)
        source = array if array._c_contiguous else other.copy(array)
        result = self.empty(source.shape, source.dtype)
        if source.size:
            self.context.receive(
                other.context, source.data.ptr, result.data.ptr, int(source.nbytes)
            )
        return result

    def to_dlpack(
        self,
        array: Array,
        stream: Any,
        max_version: tuple[int, int] | None,
        dl_device: tuple[int, int] | None,
        copy: bool | None,
    ) -> Any:
        return exchange.to_dlpack(self, array, stream, max_version, dl_device, copy)

    def from_dlpack(self, producer: Any, copy: bool | None) -> Array:
        return exchange.from_dlpack(self, producer, copy)

    def dlpack_device(self) -> tuple[int, int]:
        return (exchange.CUDA, self.context.number)

    def cuda_array_interface(self, array: Array) -> dict[str, Any]:
        """The CUDA array interface, version 3, of an array."""
        with self.context.inside():
            interface: dict[str, Any] = dict(array.__cuda_array_interface__)
        interface["data"] = (interface["data"][0], not self.is_writable(array))
        return interface

    # ------------------------------------------------------------------- views
    def diagonal(self, array: Array, offset: int, axis1: int, axis2: int) -> Array:
        return array.diagonal(offset, axis1, axis2)

    def bitcast(self, array: Array, dtype: DType) -> Array:
        try:
            result = array.view(dtype)
        except (ValueError, TypeError) as error:
            raise ShapeError(
                f"view: an array of shape {array.shape} and dtype {array.dtype} cannot be read as {dtype}: "
                f"{error} Copy it with contiguous() first, or convert it with astype()."
            ) from None
        # The device stops at numbers that do not lie at multiples of their size.
        number = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
        if result.size and result.data.ptr % number:
            raise ShapeError(
                f"view: the array of shape {array.shape} and dtype {array.dtype} starts {result.data.ptr % number} "
                f"bytes beyond a multiple of {number}, so that it cannot be read as {dtype}. Copy it with contiguous() "
                "or asarray(x, copy=True) first."
            )
        return result

    # ---------------------------------------------------------------- creation
    def full(self, shape: tuple[int, ...], value: Scalar, dtype: DType) -> Array:
        fill = self._fills.get(dtype)
        if fill is None:
            fill = self._fills[dtype] = Elementwise(
                self.context, "full", [(dtype, False)], dtype, lambda x: x
            )
        return fill.constant(value, shape)

    def iota(self, size: int, start: Scalar, step: Scalar, dtype: DType) -> Array:
        result = self.empty((size,), dtype)
        if size:
            iota = self._iotas.get(dtype)
            if iota is None:
                iota = self._iotas[dtype] = formulas.iota(self.context, dtype)
            if dtype.kind in "iu":
                # Modulo 2**64, as the arithmetic of the device is.
                arguments = [int(x) % (1 << 64) for x in (start, step)]  # type: ignore[arg-type]
                iota.fill(arguments, result)
            else:
                iota.fill((start, step), result)
        return result

    # ------------------------------------------------------------- elementwise
    def elementwise_loop(self, op: Op, kinds: tuple[Kind, ...]) -> Loop:
        compute = op.signature(kinds, self.defaults).compute
        return comparing(op, kinds, compute, self._operation(op, kinds).loop, self.full)

    def elementwise_into(
        self, op: Op, kinds: tuple[Kind, ...], operands: tuple[Any, ...], target: Array
    ) -> None:
        operation = self._operation(op, kinds)
        if any(type(x) is self.array_type and overlaps(x, target) for x in operands):
            self.assign(target, operation(*operands))
        else:
            operation.fill(operands, target)

    def _operation(self, op: Op, kinds: tuple[Kind, ...]) -> Elementwise:
        key = (op, *kinds)
        found = self._operations.get(key)
        if found is None:
            found = self._operations[key] = of_operation(self.context, op, kinds)
        return found

    def cast(self, array: Array, dtype: DType) -> Array:
        return self._conversion(array.dtype, dtype)(array)

    def _conversion(self, source: DType, target: DType) -> Elementwise:
        found = self._conversions.get((source, target))
        if found is None:

            def formula(x: Operand) -> Operand:
                return texts.taken(x, source, target)

            found = self._conversions[source, target] = Elementwise(
                self.context, "astype", [(source, True)], target, formula
            )
        return found

    # -------------------------------------------------------------------- copy
    def copy(self, array: Array) -> Array:
        result = self.empty(array.shape, array.dtype)
        self._move(result, array)
        return result

    def assign(self, target: Array, source: Array) -> None:
        if overlaps(source, target):
            source = self.copy(source)
        if source.dtype == target.dtype:
            self._move(target, source)
        else:
            self._conversion(source.dtype, target.dtype).fill((source,), target)

    def _move(self, target: Array, source: Array) -> None:
        """Copy elements of one dtype, as bytes."""
        if target._c_contiguous and source._c_contiguous and source.shape == target.shape:
            if target.size:
                self.context.move(source.data.ptr, target.data.ptr, target.nbytes)
            return
        word = mover(self.context, target.dtype.itemsize)
        word.fill((as_word(source, word.result),), as_word(target, word.result))

    # --------------------------------------------------------------- reductions
    def reduce(
        self, kind: Reduction, array: Array, axes: tuple[int, ...], keepdims: bool, dtype: DType
    ) -> Array:
        dtype = reduced_dtype(kind, array.dtype, dtype)
        return self._reduced(self._fold(kind, array.dtype, dtype, False), array, axes, keepdims)

    def argreduce(self, kind: Reduction, array: Array, axis: int, keepdims: bool) -> Array:
        fold = self._fold(kind, array.dtype, self.defaults.indexing, True)
        return self._reduced(fold, array, (axis,), keepdims)

    def _reduced(self, fold: Fold, array: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        shape = reduced_shape(array.shape, axes, keepdims)
        if not array.size:
            return self.full(shape, EMPTY.get(fold.kind, 0), fold.result)
        out = self.empty(shape, fold.result)
        reduce_into(self.context, fold, array, axes, out)
        return out

    def _fold(self, kind: Reduction, source: DType, result: DType, position: bool) -> Fold:
        key = (kind, source, result, position)
        found = self._folds.get(key)
        if found is None:
            found = self._folds[key] = Fold(*key)
        return found

    def scan(self, kind: Reduction, array: Array, axis: int, dtype: DType) -> Array:
        out = self.empty(array.shape, dtype)
        if out.size:
            source = array if array._c_contiguous else self.copy(array)
            scan_into(self.context, self._fold(kind, array.dtype, dtype, False), source, axis, out)
        return out

    # ------------------------------------------------------- gather and scatter
    def gather(self, array: Array, indices: Sequence[Array]) -> Array:
        picked, rest = indices[0].shape, array.shape[len(indices) :]
        ready = self._index_arrays(indices)
        if prefers_across(array, ready):
            out = self.empty((*rest, *picked), array.dtype)
            gather_across(self.context, array, ready[0], out)
            axes = range(out.ndim)
            return out.transpose((*axes[len(rest) :], *axes[: len(rest)]))
        out = self.empty((*picked, *rest), array.dtype)
        gather_into(self.context, array, ready, out)
        return out

    def scatter(self, array: Array, indices: Sequence[Array], values: Array) -> None:
        shape = (*indices[0].shape, *array.shape[len(indices) :])
        if values.dtype != array.dtype:
            values = self.cast(values, array.dtype)
        if values.shape != shape:
            values = self.broadcast(values, shape)
        if not values._c_contiguous or overlaps(values, array):
            values = self.copy(values)
        scatter_from(self.context, array, self._index_arrays(indices), values)

    def _index_arrays(self, indices: Sequence[Array]) -> list[Array]:
        ready = []
        for index in indices:
            if index.dtype != dt.int64:
                index = self.cast(index, dt.int64)
            ready.append(index if index._c_contiguous else self.copy(index))
        return ready

    def nonzero(self, array: Array) -> tuple[Array, ...]:
        count = 0
        if array.size:
            selection = self._selection(array)
            count = selection.count
        found = tuple(self.empty((count,), self.defaults.indexing) for _ in range(array.ndim))
        if count:
            selection.positions(found)
        return found

    def compress(self, array: Array, mask: Array) -> Array:
        if not mask.ndim:
            array, mask = array.reshape((1, *array.shape)), mask.reshape((1,))
        if array.ndim > mask.ndim:
            return self.gather(array, self.nonzero(mask))
        if not mask.size:
            return self.empty((0,), array.dtype)
        selection = self._selection(mask)
        out = self.empty((selection.count,), array.dtype)
        selection.elements(array, out)
        return out

    def _selection(self, array: Array) -> Selection:
        """What an array that has elements selects as a mask."""
        mask = array if array.dtype == dt.bool_ else self.cast(array, dt.bool_)
        if not mask._c_contiguous or mask.data.ptr % texts.VECTOR:
            mask = self.copy(mask)
        return Selection(self.context, mask)

    # ----------------------------------------------------- sorting and searching
    def sort(self, array: Array, axis: int, descending: bool) -> Array:
        keys = self._sorting_keys(array, descending)
        if keys.size:
            with self.context.inside():
                keys.sort(axis)
        if descending:
            self._key(keys.dtype, descending).fill((keys,), keys)
        return keys

    def argsort(self, array: Array, axis: int, descending: bool) -> Array:
        if not array.size:
            return self.empty(array.shape, self.defaults.indexing)
        keys = self._sorting_keys(array, descending)
        with self.context.inside():
            result = keys.argsort(axis)
        return result if result.dtype == self.defaults.indexing else self.cast(result, dt.int64)

    def _sorting_keys(self, array: Array, descending: bool) -> Array:
        """A C-contiguous copy whose ascending order is the one that is wanted."""
        keys = self.empty(array.shape, array.dtype)
        if descending or array.dtype.kind == "f":
            self._key(array.dtype, descending).fill((array,), keys)
        else:
            self._move(keys, array)
        return keys

    def _key(self, dtype: DType, descending: bool) -> Elementwise:
        found = self._keys.get((dtype, descending))
        if found is None:
            found = self._keys[dtype, descending] = Elementwise(
                self.context,
                "sort",
                [(dtype, True)],
                dtype,
                formulas.reversed_key if descending else formulas.ascending_key,
            )
        return found

    def searchsorted(self, sorted_array: Array, values: Array, side: str) -> Array:
        out = self.empty(values.shape, self.defaults.indexing)
        contiguous = values if values._c_contiguous else self.copy(values)
        search_into(self.context, sorted_array, contiguous, side == "right", out)
        return out

    # --------------------------------------------------------------- transforms
    def fft(self, array: Array, kind: str, length: int) -> Array:
        if not array.size:
            return self._empty_transform(array, kind, length)
        fft = self.xp.fft
        with self.context.inside():
            if kind == "forward":
                return fft.fft(array)
            if kind == "backward":
                return fft.ifft(array, norm="forward")
            if kind == "real":
                return fft.rfft(array)
            return fft.irfft(array, n=length, norm="forward")

    def _empty_transform(self, array: Array, kind: str, length: int) -> Array:
        """The transform of no lines at all, which cuFFT does not take."""
        dtype: DType = array.dtype
        if kind == "real":
            length, dtype = array.shape[-1] // 2 + 1, dt.complex_of(dtype)
        elif kind == "hermitian":
            dtype = dt.real_of(dtype)
        else:
            length = array.shape[-1]
        return self.empty((*array.shape[:-1], length), dtype)
