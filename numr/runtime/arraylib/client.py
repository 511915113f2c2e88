"""``ArrayLibClient``: the primitive families over NumPy, or a library with NumPy's names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from numr import dtypes as dt
from numr.dtypes import DType, Kind, Scalar
from numr.errors import IndexingError, ShapeError
from numr.ir.ops import SELECT, Op, Reduction
from numr.layout import BasicPart, IntPart, Layout, NewAxisPart, SlicePart
from numr.runtime.arraylib.functions import Function, elementwise_function
from numr.runtime.client import Loop, RuntimeClient

Array = Any

#: Parts of an index key that the library resolves by itself, as numr would.
_PLAIN = frozenset({int, slice, type(None), type(Ellipsis)})


class ArrayLibClient(RuntimeClient[Any]):
    """Primitives as calls of the library ``xp``; subclasses own memory, threads and streams."""

    #: The library: its module, bound by each subclass.
    xp: ClassVar[Any]
    #: The library's array class.
    array_type: ClassVar[type]

    def as_array(self, value: Any) -> Array:
        """An array from what the library gave, which is a scalar where NumPy drops the last axis."""
        return value if type(value) is self.array_type else self.xp.asarray(value)

    # ------------------------------------------------------------------- views
    def index(self, array: Array, key: Any) -> Array | None:
        cls = key.__class__
        if cls is tuple:
            for part in key:
                if part.__class__ not in _PLAIN:
                    return None
        elif cls not in _PLAIN:
            return None
        try:
            result = array[key]
        except (IndexError, TypeError, ValueError):
            return None  # parsing the key raises numr's own error, which names the values
        if result.__class__ is not self.array_type:
            result = array[(*key, ...) if cls is tuple else (key, ...)]
        return result

    def slice(self, array: Array, parts: Sequence[BasicPart]) -> Array:
        key: list[Any] = []
        for part in parts:
            if isinstance(part, IntPart):
                key.append(part.index)
            elif isinstance(part, SlicePart):
                stop = part.start + part.step * part.length
                key.append(slice(part.start, stop if stop >= 0 else None, part.step))
            elif isinstance(part, NewAxisPart):
                key.append(None)
            else:
                key.extend([slice(None)] * part.count)
        return array[(*key, ...)]

    def permute(self, array: Array, axes: tuple[int, ...]) -> Array:
        return array.transpose(axes)

    def reshape(self, array: Array, shape: tuple[int, ...]) -> Array | None:
        try:
            return array.reshape(shape, copy=False)
        except ValueError:
            return None  # only a copy has the shape

    def diagonal(self, array: Array, offset: int, axis1: int, axis2: int) -> Array:
        result = array.diagonal(offset, axis1, axis2)
        result.flags.writeable = array.flags.writeable
        return result

    def broadcast(self, array: Array, shape: tuple[int, ...]) -> Array:
        # NumPy makes every result read-only; where nothing is repeated, there is no reason to.
        return array if array.shape == shape else self.xp.broadcast_to(array, shape)

    def bitcast(self, array: Array, dtype: DType) -> Array:
        try:
            return array.view(dtype)
        except ValueError as error:
            raise ShapeError(
                f"view: an array of shape {array.shape} and dtype {array.dtype} cannot be read as {dtype}: "
                f"{error} Copy it with contiguous() first, or convert it with astype()."
            ) from None

    # ---------------------------------------------------------------- creation
    def full(self, shape: tuple[int, ...], value: Scalar, dtype: DType) -> Array:
        result = self.empty(shape, dtype)
        result.fill(value)
        return result

    def iota(self, size: int, start: Scalar, step: Scalar, dtype: DType) -> Array:
        xp = self.xp
        if dtype.kind in "iu":
            # In 64 bits, wrapping, so that no intermediate value overflows a narrower dtype.
            wide = xp.arange(size, dtype=xp.int64)
            if step != 1:
                wide *= step
            if start != 0:
                wide += start if start < 2**63 else start - 2**64  # type: ignore[operator]
            return wide.astype(dtype, copy=False)
        # In 64 bits, so that narrower dtypes get each value rounded once and places beyond their integers.
        return (start + xp.arange(size, dtype=xp.float64) * step).astype(dtype, copy=False)

    # ------------------------------------------------------------- elementwise
    def elementwise_loop(self, op: Op, kinds: tuple[Kind, ...]) -> Loop:
        function, converts = self.resolve(op, kinds)
        as_array = self.as_array
        if not any(converts):
            return lambda *operands: as_array(function(*operands))

        def loop(*operands: Any) -> Array:
            return as_array(
                function(*(self._convert(x, to) for x, to in zip(operands, converts, strict=True)))
            )

        return loop

    def resolve(
        self, op: Op, kinds: tuple[Kind, ...], compute: DType | None = None
    ) -> tuple[Function, tuple[DType | None, ...]]:
        """The library's function for an operation, and the dtype that each array operand is cast to first.

        It computes in ``compute``, by default in what the operands promote to.
        """
        if compute is None:
            compute = op.signature(kinds, self.defaults).compute
        first_cast = 1 if op is SELECT else 0  # where's condition stays boolean
        converts = tuple(
            compute if i >= first_cast and isinstance(kind, np.dtype) and kind != compute else None
            for i, kind in enumerate(kinds)
        )
        function = elementwise_function(self.xp, op, compute)
        if all(isinstance(kind, type) for kind in kinds[first_cast:]):
            # Only scalars: the library would choose the dtype by its own rules.
            converts = converts[:first_cast] + (compute,) * (op.arity - first_cast)
        return function, converts

    def _convert(self, operand: Any, dtype: DType | None) -> Any:
        if dtype is None:
            return operand
        return self.xp.asarray(operand, dtype=dtype)

    def cast(self, array: Array, dtype: DType) -> Array:
        result = self.empty(array.shape, dtype)
        self._copy_cast(result, array)
        return result

    def _copy_cast(self, target: Array, source: Array) -> None:
        if source.dtype == target.dtype:
            self.xp.copyto(target, source)
            return
        if source.dtype.kind == "c" and target.dtype.kind not in "bc":
            source = source.real
        if _always_fits(source.dtype, target.dtype):
            self.xp.copyto(target, source, casting="unsafe")
            return
        # What a value out of the target's range becomes is nobody's promise, and no reason to warn.
        with self.xp.errstate(invalid="ignore", over="ignore"):
            self.xp.copyto(target, source, casting="unsafe")

    # -------------------------------------------------------------------- copy
    def copy(self, array: Array) -> Array:
        result = self.empty(array.shape, array.dtype)
        self.xp.copyto(result, array)
        return result

    def assign(self, target: Array, source: Array) -> None:
        self._copy_cast(target, source)

    def concat(self, arrays: Sequence[Array], axis: int) -> Array:
        shape = list(arrays[0].shape)
        shape[axis] = sum(array.shape[axis] for array in arrays)
        result = self.empty(tuple(shape), arrays[0].dtype)
        start = 0
        leading: tuple[Any, ...] = (slice(None),) * axis
        parts = []
        for array in arrays:
            stop = start + array.shape[axis]
            parts.append((result[(*leading, slice(start, stop))], array))
            start = stop
        self.assign_all(parts)
        return result

    def assign_all(self, parts: Sequence[tuple[Array, Array]]) -> None:
        """Write each source into its target; no target shares memory with anything else."""
        for target, source in parts:
            self.assign(target, source)

    # -------------------------------------------------------------- reductions
    def reduce(
        self, kind: Reduction, array: Array, axes: tuple[int, ...], keepdims: bool, dtype: DType
    ) -> Array:
        function = getattr(self.xp, kind.value)
        if kind in (Reduction.SUM, Reduction.PROD):
            return self.as_array(function(array, axis=axes, keepdims=keepdims, dtype=dtype))
        return self.as_array(function(array, axis=axes, keepdims=keepdims))

    def argreduce(self, kind: Reduction, array: Array, axis: int, keepdims: bool) -> Array:
        function = self.xp.argmax if kind is Reduction.MAX else self.xp.argmin
        result = self.xp.asarray(function(array, axis=axis, keepdims=keepdims))
        return self.as_array(result.astype(self.defaults.indexing, copy=False))

    def scan(self, kind: Reduction, array: Array, axis: int, dtype: DType) -> Array:
        ufunc = {
            Reduction.SUM: self.xp.add,
            Reduction.PROD: self.xp.multiply,
            Reduction.MAX: self.xp.maximum,
            Reduction.MIN: self.xp.minimum,
        }[kind]
        result = self.empty(array.shape, dtype)
        ufunc.accumulate(array, axis=axis, dtype=dtype, out=result)
        return result

    # ------------------------------------------------------- gather and scatter
    def gather(self, array: Array, indices: Sequence[Array]) -> Array:
        try:
            return self.as_array(array[tuple(indices)])
        except IndexError as error:
            raise IndexingError(f"{error} (shape {array.shape}).") from None

    def scatter(self, array: Array, indices: Sequence[Array], values: Array) -> None:
        try:
            with self.xp.errstate(invalid="ignore", over="ignore"):
                array[tuple(indices)] = values
        except IndexError as error:
            raise IndexingError(f"{error} (shape {array.shape}).") from None

    def nonzero(self, array: Array) -> tuple[Array, ...]:
        return tuple(self.as_array(index) for index in self.xp.nonzero(array))

    def compress(self, array: Array, mask: Array) -> Array:
        return self.as_array(array[mask])

    # ----------------------------------------------------- sorting and searching
    def sort(self, array: Array, axis: int, descending: bool) -> Array:
        if not descending:
            return self._sorted(array, axis)
        reverse = self._reversing(array.dtype)
        result = self._sorted(reverse(array), axis)
        return reverse(result, out=result)

    def _sorted(self, array: Array, axis: int) -> Array:
        """Sorted in ascending order, as if by a stable algorithm."""
        result = self.xp.sort(array, axis=axis)
        if array.dtype.kind == "f":
            # Equal elements that can be told apart are zeros of both signs; only these need the slower
            # algorithm that keeps their order.
            signs = self.xp.signbit(array[array == 0])
            if signs.any() and not signs.all():
                result = self.xp.sort(array, axis=axis, stable=True)
        return self.as_array(result)

    def argsort(self, array: Array, axis: int, descending: bool) -> Array:
        keys = self._reversing(array.dtype)(array) if descending else array
        result = self.xp.argsort(keys, axis=axis, stable=True)
        return self.as_array(result.astype(self.defaults.indexing, copy=False))

    def _reversing(self, dtype: DType) -> Function:
        # The map that turns the order of a dtype round, is its own inverse, and keeps NaN the largest:
        # negation overflows for integers, the complement of their bits does not.
        return self.xp.negative if dtype.kind in "fc" else self.xp.invert  # type: ignore[no-any-return]

    def searchsorted(self, sorted_array: Array, values: Array, side: str) -> Array:
        result = self.xp.asarray(self.xp.searchsorted(sorted_array, values, side=side))
        return self.as_array(result.astype(self.defaults.indexing, copy=False))

    # ---------------------------------------------------------- linear algebra
    def matmul(self, left: Array, right: Array) -> Array:
        return self.as_array(self.xp.matmul(left, right))

    def fft(self, array: Array, kind: str, length: int) -> Array:
        fft = self.xp.fft
        if kind == "forward":
            result = fft.fft(array)
        elif kind == "backward":
            result = fft.ifft(array, norm="forward")
        elif kind == "real":
            result = fft.rfft(array)
        else:
            result = fft.irfft(array, n=length, norm="forward")
        return self.as_array(result)

    def _factorise(self, family: str, *operands: Array, **options: Any) -> tuple[Array, ...]:
        """Call the library's factorisation; its results as arrays that the allocator knows of."""
        results = getattr(self.xp.linalg, family)(*operands, **options)
        if not isinstance(results, tuple):
            results = (results,)
        return tuple(self.as_array(result) for result in results)

    def cholesky(self, array: Array) -> Array:
        return self._factorise("cholesky", array)[0]

    def qr(self, array: Array, complete: bool) -> tuple[Array, ...]:
        return self._factorise("qr", array, mode="complete" if complete else "reduced")

    def eigh(self, array: Array) -> tuple[Array, ...]:
        return self._factorise("eigh", array)

    def eig(self, array: Array) -> tuple[Array, ...]:
        # Given a real input, NumPy gives real results where all eigenvalues are real. Computing with complex
        # numbers from the start would cost more and lose the exact symmetry of conjugate pairs.
        cplx = dt.complex_of(array.dtype)
        return tuple(result.astype(cplx, copy=False) for result in self._factorise("eig", array))

    def eigvalsh(self, array: Array) -> Array:
        values = self._factorise("eigvalsh", array)[0]
        # LAPACK finds finite values for small matrices with NaN.
        lost = ~self.xp.isfinite(array).all(axis=(-2, -1))
        if lost.any():
            values[lost] = np.nan
        return values

    def eigvals(self, array: Array) -> Array:
        cplx = dt.complex_of(array.dtype)
        return self._factorise("eigvals", array)[0].astype(cplx, copy=False)

    def svd(self, array: Array, full_matrices: bool) -> tuple[Array, ...]:
        return self._factorise("svd", array, full_matrices=full_matrices)

    def svdvals(self, array: Array) -> Array:
        return self._factorise("svd", array, compute_uv=False)[0]

    def solve(self, left: Array, right: Array) -> Array:
        return self._factorise("solve", left, right)[0]

    def inv(self, array: Array) -> Array:
        return self._factorise("inv", array)[0]

    def slogdet(self, array: Array) -> tuple[Array, ...]:
        return self._factorise("slogdet", array)

    def det(self, array: Array) -> Array:
        return self._factorise("det", array)[0]

    # --------------------------------------------------- storage and host data
    def is_writable(self, array: Array) -> bool:
        return bool(array.flags.writeable)

    def layout(self, array: Array) -> Layout:
        storage = self.storage(array)
        size = array.dtype.itemsize
        offset, unaligned = divmod(self.pointer(array) - storage.handle, size)
        if unaligned or any(stride % size for stride in array.strides):
            raise IndexingError(
                f"layout: an array of dtype {array.dtype} with byte strides {array.strides} does not lie on "
                "whole elements. Copy it with contiguous() first."
            )
        return Layout(array.shape, tuple(stride // size for stride in array.strides), offset)

    @abstractmethod
    def pointer(self, array: Array) -> int:
        """Address of the array's first element."""


@cache
def _always_fits(source: DType, target: DType) -> bool:
    """Whether the library finds no value of a dtype out of another one's range: integers just wrap.

    Never of a float: a signalling NaN is invalid whatever it is converted to.
    """
    return source.kind in "biu" and (target.kind in "biu" or bool(np.can_cast(source, target)))
