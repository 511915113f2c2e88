"""``Factorizations``: factorisations of matrices, equations and determinants on a WebGPU device.

All but the eigenvalues of general matrices are computed by numr's own kernels. Stacks of matrices are worked on side by
side, in as many pieces as the device's largest binding asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numr import dtypes as dt
from numr.dtypes import DType
from numr.layout import Layout, broadcast_shapes
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.families import Families
from numr.runtime.wgpu.linalg import cholesky, eigen, elimination, orthogonal, singular
from numr.runtime.wgpu.linalg.arithmetic import FAILED
from numr.runtime.wgpu.linalg.blocks import copied, unit
from numr.runtime.wgpu.linalg.matrices import Block, Work
from numr.runtime.wgpu.linalg.scaling import peaks_of, scale
from numr.runtime.wgpu.pieces import narrowed

__all__ = ["Factorizations"]

#: What computes results, one for each matrix of a stack with one leading axis.
Compute = Callable[..., tuple[DeviceArray, ...]]


class Factorizations(Families):
    """The families of linear algebra, beside matrix products."""

    # -------------------------------------------------------------- factorisations
    def cholesky(self, array: DeviceArray) -> DeviceArray:
        if not array.size:
            return self.empty(array.shape, array.dtype)

        def compute(stack: DeviceArray) -> tuple[DeviceArray, ...]:
            work = self._work("cholesky", stack)
            factors = self.copy(stack)
            cholesky.factorise(work, factors)
            if work.met()[FAILED]:
                raise np.linalg.LinAlgError("Matrix is not positive definite")
            return (factors,)

        return self._in_pieces([array], compute)[0]

    def qr(self, array: DeviceArray, complete: bool) -> tuple[DeviceArray, DeviceArray]:
        *lead, rows, columns = array.shape
        kept = rows if complete else min(rows, columns)
        if not array.size:
            return (
                self._unit((*lead, rows, kept), array.dtype),
                self.empty((*lead, kept, columns), array.dtype),
            )

        def compute(stack: DeviceArray) -> tuple[DeviceArray, ...]:
            work = self._work("qr", stack)
            triangle = self.copy(stack)
            given = Block.of(triangle)
            peaks = peaks_of(work, triangle)
            scale(work, given, given, rows, columns, peaks)
            reflections = orthogonal.triangularise(work, triangle)
            result = triangle if kept == rows else work.empty(kept, columns)
            scale(work, Block.of(result), given, kept, columns, peaks, back=True)
            return orthogonal.orthonormal(work, reflections, kept), result

        q, r = self._in_pieces([array], compute, rows * kept)
        return q, r

    def eigh(self, array: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        if not array.size:
            real = self.empty(array.shape[:-1], dt.real_of(array.dtype))
            return real, self.empty(array.shape, array.dtype)
        values, vectors = self._eigh(array, "eigh", vectors=True)
        return values, vectors

    def eigvalsh(self, array: DeviceArray) -> DeviceArray:
        if not array.size:
            return self.empty(array.shape[:-1], dt.real_of(array.dtype))
        return self._eigh(array, "eigvalsh", vectors=False)[0]

    def _eigh(self, array: DeviceArray, function: str, *, vectors: bool) -> tuple[DeviceArray, ...]:
        def compute(stack: DeviceArray) -> tuple[DeviceArray, ...]:
            work = self._work(function, stack)
            return eigen.diagonalise(work, self.copy(stack), vectors=vectors)

        # Large matrices are padded to an even number of blocks.
        order = array.shape[-1]
        return self._in_pieces([array], compute, eigen.padded(order) ** 2)

    def svd(
        self, array: DeviceArray, full_matrices: bool
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        *lead, rows, columns = array.shape
        kept = min(rows, columns)
        if not array.size:
            return (
                self._unit((*lead, rows, rows if full_matrices else kept), array.dtype),
                self.empty((*lead, kept), dt.real_of(array.dtype)),
                self._unit((*lead, columns if full_matrices else kept, columns), array.dtype),
            )

        def compute(stack: DeviceArray) -> tuple[DeviceArray, ...]:
            work = self._work("svd", stack)
            found = self._singular(work, stack, vectors=True, full=full_matrices)
            left, right = found.vectors
            # The adjoint of a wide matrix has been decomposed, whose vectors change sides.
            if rows < columns:
                left, right = right, left
            adjoint = work.empty(*reversed(right.shape[1:]))
            copied(work, Block.of(adjoint), Block.of(right).adjoint, *adjoint.shape[1:])
            return left, found.values, adjoint

        longest = max(rows, columns)
        elements = longest * (longest if full_matrices else kept)
        u, values, vh = self._in_pieces([array], compute, elements)
        return u, values, vh

    def svdvals(self, array: DeviceArray) -> DeviceArray:
        *lead, rows, columns = array.shape
        if not array.size:
            return self.empty((*lead, min(rows, columns)), dt.real_of(array.dtype))

        def compute(stack: DeviceArray) -> tuple[DeviceArray, ...]:
            work = self._work("svdvals", stack)
            return (self._singular(work, stack, vectors=False, full=False).values,)

        return self._in_pieces([array], compute)[0]

    def _singular(
        self, work: Work, stack: DeviceArray, *, vectors: bool, full: bool
    ) -> singular.Singular:
        wide = stack.shape[-2] < stack.shape[-1]
        matrices = self.copy(self.permute(stack, (0, 2, 1)) if wide else stack)
        conjugate = wide and stack.dtype.kind == "c"
        return singular.decompose(work, matrices, conjugate=conjugate, vectors=vectors, full=full)

    # --------------------------------------------------- eigenvalues, on the host
    def eig(self, array: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        self.on_host("eig")
        values, vectors = np.linalg.eig(self.to_host(array))
        return self._complex(values, array.dtype), self._complex(vectors, array.dtype)

    def eigvals(self, array: DeviceArray) -> DeviceArray:
        self.on_host("eigvals")
        return self._complex(np.linalg.eigvals(self.to_host(array)), array.dtype)

    def _complex(self, host: np.ndarray[Any, Any], dtype: DType) -> DeviceArray:
        """What NumPy found on the device, and complex also where all of it is real."""
        return self.from_host(host.astype(dt.complex_of(dtype), copy=False), copy=True)

    # ---------------------------------------------------- equations, determinants
    def solve(self, left: DeviceArray, right: DeviceArray) -> DeviceArray:
        lead = broadcast_shapes(left.shape[:-2], right.shape[:-2], function="solve")
        order, columns = right.shape[-2:]
        shape = (*lead, order, columns)
        if 0 in shape:
            return self.empty(shape, right.dtype)
        right = self.broadcast(right, shape)
        if math.prod(left.shape[:-2]) == 1:
            # One matrix for all right-hand sides.
            matrix = self.reshape(left, (1, order, order)) or self._reshaped(
                self.copy(left), (1, order, order)
            )
            factors, pivots = self._eliminated("solve", matrix, singular=False)

            def compute_shared(sides: DeviceArray) -> tuple[DeviceArray, ...]:
                work = self._work("solve", sides)
                result = self.copy(sides)
                elimination.solve(work, Block.of(factors)._replace(matrix=0), pivots, result)
                return (result,)

            return self._in_pieces([right], compute_shared)[0]

        def compute(matrices: DeviceArray, sides: DeviceArray) -> tuple[DeviceArray, ...]:
            factors, pivots = self._eliminated("solve", matrices, singular=False)
            result = self.copy(sides)
            elimination.solve(self._work("solve", sides), Block.of(factors), pivots, result)
            return (result,)

        left = self.broadcast(left, (*lead, order, order))
        return self._in_pieces([left, right], compute, order * max(order, columns))[0]

    def inv(self, array: DeviceArray) -> DeviceArray:
        if not array.size:
            return self.empty(array.shape, array.dtype)

        def compute(stack: DeviceArray) -> tuple[DeviceArray, ...]:
            factors, pivots = self._eliminated("inv", stack, singular=False)
            result = self._unit(stack.shape, stack.dtype)
            elimination.solve(self._work("inv", stack), Block.of(factors), pivots, result)
            return (result,)

        return self._in_pieces([array], compute)[0]

    def slogdet(self, array: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        real = dt.real_of(array.dtype)
        sign, logarithm = self._determinants("slogdet", array, (array.dtype, real), (1, 0))
        return sign, logarithm

    def det(self, array: DeviceArray) -> DeviceArray:
        return self._determinants("det", array, (array.dtype,), (1,))[0]

    def _determinants(
        self, function: str, array: DeviceArray, dtypes: Sequence[DType], empty: Sequence[int]
    ) -> tuple[DeviceArray, ...]:
        """Results of one number for each matrix, and what they are of empty matrices."""
        if not array.size:
            return tuple(
                self.from_host(np.full(array.shape[:-2], number, dtype), copy=True)
                for number, dtype in zip(empty, dtypes, strict=True)
            )

        def compute(stack: DeviceArray) -> tuple[DeviceArray, ...]:
            factors, pivots = self._eliminated(function, stack, singular=True)
            work = self._work(function, stack)
            results = tuple(work.empty(dtype=dtype) for dtype in dtypes)
            elimination.determinants(work, factors, pivots, results)
            return results

        return self._in_pieces([array], compute)

    def _eliminated(
        self, function: str, stack: DeviceArray, *, singular: bool
    ) -> tuple[DeviceArray, DeviceArray]:
        """Factors and pivots of square matrices, which may be singular or raise."""
        work = self._work(function, stack)
        factors = self.copy(stack)
        pivots = elimination.eliminate(work, factors)
        if not singular and work.met()[FAILED]:
            raise np.linalg.LinAlgError("Singular matrix")
        return factors, pivots

    # ---------------------------------------------------------------------- stacks
    def _work(self, function: str, stack: DeviceArray) -> Work:
        return Work(self, function, stack.shape[0], stack.dtype)

    def _in_pieces(
        self, arrays: Sequence[DeviceArray], compute: Compute, elements: int = 0
    ) -> tuple[DeviceArray, ...]:
        """Compute results of stacks, as many matrices at a time as fit into bindings.

        Parameters
        ----------
        arrays : sequence of DeviceArray
            Stacks with the same leading axes, not empty.
        compute : callable
            Takes stacks with one leading axis, and gives results that are C-contiguous with that axis.
        elements : int
            How many elements an array for one matrix has at most; default: as many as the given ones.
        """
        lead = arrays[0].shape[:-2]
        count = math.prod(lead)
        flat = []
        for array in arrays:
            shape = (count, *array.shape[-2:])
            flat.append(self.reshape(array, shape) or self._reshaped(self.copy(array), shape))
        elements = max(elements, *(math.prod(array.shape[-2:]) for array in arrays))
        most = self.context.max_binding // (elements * arrays[0].itemsize) or 1
        pieces = [
            compute(*(narrowed(array, 0, start, min(start + most, count)) for array in flat))
            for start in range(0, count, most)
        ]
        results = [
            parts[0] if len(parts) == 1 else self.concat(parts, 0)
            for parts in zip(*pieces, strict=True)
        ]
        return tuple(self._reshaped(result, (*lead, *result.shape[1:])) for result in results)

    def _reshaped(self, array: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
        """A C-contiguous array in another shape."""
        return self.wrap(array.storage, Layout.contiguous(shape), array.dtype)

    def _unit(self, shape: tuple[int, ...], dtype: DType) -> DeviceArray:
        """Ones on the diagonals of matrices, zeros elsewhere."""
        result = self.empty(shape, dtype)
        if result.size:
            *lead, rows, columns = shape
            stack = self._reshaped(result, (math.prod(lead), rows, columns))
            unit(self._work("qr", stack), Block.of(stack), rows, columns)
        return result
