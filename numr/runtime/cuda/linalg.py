"""Products and factorisations by cuBLAS and cuSOLVER, through CuPy, and what CuPy leaves out.

CuPy reports neither singular nor indefinite matrices unless it is told to, since it has to wait for the device then; numr
raises, as on the CPU.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from numr import dtypes as dt
from numr.ir import ops
from numr.ir.fused import Computation, Source, Step
from numr.ir.ops import Reduction, Signature
from numr.layout import broadcast_shapes
from numr.runtime.cuda.products import product

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

Array = Any


#: Elements of integer matrices from which it is worth a kernel of its own that one of them is a vector.
_LARGE = 1 << 14
#: Factorisations that cuSOLVER breaks off, or never ends, where a matrix is not finite.
_REFUSING_NAN = frozenset({"eig", "eigvals", "svd"})


class LinalgFamilies:
    """The families of linear algebra."""

    context: DeviceContext
    xp: ClassVar[Any]

    if TYPE_CHECKING:

        def cast(self, array: Array, dtype: dt.DType) -> Array: ...
        def empty(self, shape: tuple[int, ...], dtype: dt.DType) -> Array: ...
        def to_host(self, array: Array) -> np.ndarray[Any, Any]: ...
        def broadcast(self, array: Array, shape: tuple[int, ...]) -> Array: ...
        def full(self, shape: tuple[int, ...], value: Any, dtype: dt.DType) -> Array: ...
        def reduce(
            self, kind: Reduction, array: Array, axes: tuple[int, ...], keepdims: bool, dtype: Any
        ) -> Array: ...
        def reduce_fused(
            self,
            computation: Computation,
            operands: Sequence[Any],
            shape: tuple[int, ...],
            kind: Reduction,
            axes: tuple[int, ...],
            keepdims: bool,
            dtype: Any,
        ) -> Array: ...
        def _operation(self, op: ops.Op, kinds: tuple[Any, ...]) -> Any: ...

    def matmul(self, left: Array, right: Array) -> Array:
        if left.dtype.kind in "iu" and left.size and right.size:
            # CuPy's own kernels take seconds to compile.
            return self._product_of_integers(left, right)
        with self.context.inside():
            return self.xp.matmul(left, right)

    def _product_of_integers(self, left: Array, right: Array) -> Array:
        dtype: dt.DType = left.dtype
        rows, terms = left.shape[-2:]
        columns = right.shape[-1]
        if min(rows, columns) == 1 and left.size + right.size >= _LARGE:
            # What is read once is best read by a reduction.
            stack = broadcast_shapes(left.shape[:-2], right.shape[:-2], function="matmul")
            shape = (*stack, rows, columns, terms)
            factors = (
                left[..., None, :],
                right.swapaxes(-1, -2)[..., None, :, :],
            )
            axis = len(shape) - 1
            return self.reduce_fused(
                _multiplication(dtype), factors, shape, Reduction.SUM, (axis,), False, dtype
            )
        parts = product(self.context, left, right)
        if parts.shape[0] == 1:
            return parts.reshape(parts.shape[1:])
        return self.reduce(Reduction.SUM, parts, (0,), False, dtype)

    def _factorise(self, family: str, *operands: Array, **options: Any) -> tuple[Array, ...]:
        """Call CuPy's factorisation, with failures as errors."""
        if family in _REFUSING_NAN and not self._is_finite(operands[0]):
            raise np.linalg.LinAlgError("a matrix holds NaN or infinities")
        cupyx = importlib.import_module("cupyx")
        with self.context.inside(), cupyx.errstate(linalg="raise"):
            return super()._factorise(family, *operands, **options)  # type: ignore[misc, no-any-return]

    def eigh(self, array: Array) -> tuple[Array, ...]:
        values, vectors = self._factorise("eigh", array)
        return self._with_nan(values, array), vectors

    def eigvalsh(self, array: Array) -> Array:
        return self._with_nan(self._factorise("eigvalsh", array)[0], array)

    def eig(self, array: Array) -> tuple[Array, ...]:
        values, vectors = self._factorise("eig", array)
        return self._with_nan(self._complex(values), array), self._complex(vectors)

    def eigvals(self, array: Array) -> Array:
        return self._with_nan(self._complex(self._factorise("eigvals", array)[0]), array)

    def _complex(self, values: Array) -> Array:
        """Values as complex numbers: CuPy's results of empty matrices are real."""
        return (
            values if values.dtype.kind == "c" else self.cast(values, dt.complex_of(values.dtype))
        )

    def svd(self, array: Array, full_matrices: bool) -> tuple[Array, ...]:
        u, values, vh = self._factorise("svd", array, full_matrices=full_matrices)
        return u, self._with_nan(values, array), vh

    def svdvals(self, array: Array) -> Array:
        return self._with_nan(self._factorise("svd", array, compute_uv=False)[0], array)

    def _with_nan(self, values: Array, array: Array) -> Array:
        """Values of matrices, NaN where a matrix is not finite: iterations may settle on any number then."""
        sound = self._sound(array)
        select = self._operation(ops.SELECT, (dt.bool_, values.dtype, float))
        return select(sound.reshape((*sound.shape, 1)), values, math.nan)

    def _sound(self, array: Array) -> Array:
        """Which matrices of a stack are finite."""
        finite = self._operation(ops.ISFINITE, (array.dtype,))(array)
        axes = (array.ndim - 2, array.ndim - 1)
        return self.reduce(Reduction.ALL, finite, axes, False, dt.bool_)

    def _is_finite(self, array: Array) -> bool:
        """Whether all matrices are finite; waits for the device."""
        sound = self._sound(array)
        axes = tuple(range(sound.ndim))
        return bool(self.to_host(self.reduce(Reduction.ALL, sound, axes, False, dt.bool_)))

    def solve(self, left: Array, right: Array) -> Array:
        # CuPy broadcasts no stacks.
        stack = broadcast_shapes(left.shape[:-2], right.shape[:-2], function="solve")
        left = self.broadcast(left, (*stack, *left.shape[-2:]))
        right = self.broadcast(right, (*stack, *right.shape[-2:]))
        if not right.size:
            return self.empty(right.shape, right.dtype)
        try:
            solved = self._factorise("solve", left, right)[0]
        except np.linalg.LinAlgError:
            # A pivot that is NaN is reported as if the matrix were singular.
            if self._is_finite(left):
                raise
            with self.context.inside():
                identity = self.xp.eye(left.shape[-1], dtype=left.dtype)
            select = self._operation(ops.SELECT, (dt.bool_, left.dtype, left.dtype))
            sound = self._sound(left)
            sound = sound.reshape((*sound.shape, 1, 1))
            solved = self._factorise("solve", select(sound, left, identity), right)[0]
        return self._matrices_with_nan(solved, left)

    def inv(self, array: Array) -> Array:
        return self._matrices_with_nan(self._factorise("inv", array)[0], array)

    def _matrices_with_nan(self, results: Array, array: Array) -> Array:
        """Resulting matrices, NaN where a matrix is not finite: the search for pivots may pass NaN by."""
        sound = self._sound(array)
        select = self._operation(ops.SELECT, (dt.bool_, results.dtype, float))
        return select(sound.reshape((*sound.shape, 1, 1)), results, math.nan)

    def slogdet(self, array: Array) -> tuple[Array, ...]:
        with self.context.inside():
            sign, logarithm = self.xp.linalg.slogdet(array)
        return sign, logarithm

    def det(self, array: Array) -> Array:
        """By the factors themselves: CuPy's goes through logarithms and loses digits."""
        shape = array.shape[:-2]
        if not array.size:
            # An empty stack, or empty matrices, whose determinant is 1.
            return self.full(shape, 1, array.dtype)
        decomposition = importlib.import_module("cupy.linalg._decomposition")
        with self.context.inside():
            xp = self.xp
            factors, pivots, failures = decomposition._lu_factor(array, array.dtype)
            n = array.shape[-1]
            swaps = xp.count_nonzero(pivots != xp.arange(1, n + 1, dtype=pivots.dtype), axis=-1)
            product = xp.diagonal(factors, axis1=-2, axis2=-1).prod(axis=-1)
            product = xp.where(swaps % 2 == 1, -product, product)
            # Where a pivot is zero the factors may be incomplete.
            product = xp.where(failures > 0, array.dtype.type(0), product)
            return product.reshape(shape).astype(array.dtype, copy=False)


@cache
def _multiplication(dtype: dt.DType) -> Computation:
    """Products of elements."""
    source = Source(dtype, is_array=True)
    step = Step(ops.MULTIPLY, Signature(dtype, dtype), (0, 1))
    return Computation((source, source), (step,), (2,))
