"""Reductions and scans of a WebGPU client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from numr import dtypes as dt
from numr.dtypes import DType
from numr.errors import ShapeError
from numr.ir.fused import Computation
from numr.ir.ops import Reduction
from numr.runtime.device import Device
from numr.runtime.folds import EMPTY
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.computed import Computed, code_of
from numr.runtime.wgpu.families import Families
from numr.runtime.wgpu.folding import Fold, fold_of
from numr.runtime.wgpu.programs import Programs, Recording
from numr.runtime.wgpu.reducing import reduce_elements, reduce_into
from numr.runtime.wgpu.scanning import scan_into

__all__ = ["MOST_COMPUTED", "SMALL", "Reductions"]

#: Elements that are computed and reduced by one kernel at most, so that all numbers fit into 32 bits.
MOST_COMPUTED: Final = 1 << 31
#: Up to this many operations, elements are computed by the kernel that reduces them, which has the code many times.
SMALL: Final = 384


class Reductions(Families):
    """The families that join elements along axes."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.programs = Programs(self.context)

    def reduce(
        self,
        kind: Reduction,
        array: DeviceArray,
        axes: tuple[int, ...],
        keepdims: bool,
        dtype: DType,
    ) -> DeviceArray:
        return self._fold(_fold_of(kind, array.dtype, dtype), array, axes, keepdims)

    def reduce_fused(
        self,
        computation: Computation,
        operands: Sequence[Any],
        shape: tuple[int, ...],
        kind: Reduction,
        axes: tuple[int, ...],
        keepdims: bool,
        dtype: DType,
    ) -> DeviceArray:
        fold = _fold_of(kind, computation.result_dtypes[0], dtype)
        if not self.computes(computation, operands, shape, fold):
            return super().reduce_fused(computation, operands, shape, kind, axes, keepdims, dtype)
        arrays = [x for x, s in zip(operands, computation.sources, strict=True) if s.is_array]
        # By their text: numbers are equal to others, and to booleans.
        given = [
            repr(x) for x, s in zip(operands, computation.sources, strict=True) if not s.is_array
        ]

        def reduced(work: Recording) -> tuple[DeviceArray]:
            out = work.empty(_shape(shape, axes, keepdims), fold.result)
            elements = Computed(self.context, computation, operands, shape)
            reduce_elements(work, fold, elements, axes, out)
            return (out,)

        key = (computation, shape, fold, axes, keepdims, *given)
        return self.programs.run_on(key, arrays, reduced)[0]

    def computes(
        self, computation: Computation, operands: Sequence[Any], shape: tuple[int, ...], fold: Fold
    ) -> bool:
        """Whether one kernel computes elements and reduces them."""
        context = self.context
        arrays = [x for x, s in zip(operands, computation.sources, strict=True) if s.is_array]
        buffers = context.limits["max-storage-buffers-per-shader-stage"]
        return (
            0 < len(arrays) < buffers
            and 0 < math.prod(shape) <= MOST_COMPUTED
            and math.prod(shape) * fold.source.itemsize <= context.max_binding
            and all(map(context.fits, arrays))
            and code_of(computation, 0).size <= SMALL
        )

    def argreduce(
        self, kind: Reduction, array: DeviceArray, axis: int, keepdims: bool
    ) -> DeviceArray:
        fold = fold_of(kind, array.dtype, self.defaults.indexing, position=True)
        return self._fold(fold, array, (axis,), keepdims)

    def scan(self, kind: Reduction, array: DeviceArray, axis: int, dtype: DType) -> DeviceArray:
        fold = fold_of(kind, array.dtype, dtype)
        if not array.size:
            return self.empty(array.shape, dtype)

        def scanned(work: Recording) -> tuple[DeviceArray]:
            out = work.empty(array.shape, dtype)
            scan_into(work, fold, array, axis, out)
            return (out,)

        return self.programs.run((fold, axis), array, scanned)[0]

    def _fold(
        self, fold: Fold, array: DeviceArray, axes: tuple[int, ...], keepdims: bool
    ) -> DeviceArray:
        def reduced(work: Recording) -> tuple[DeviceArray]:
            out = work.empty(_shape(array.shape, axes, keepdims), fold.result)
            reduce_into(work, fold, array, axes, out)
            return (out,)

        if array.size:
            return self.programs.run((fold, axes, keepdims), array, reduced)[0]
        shape = _shape(array.shape, axes, keepdims)
        if 0 in shape:
            return self.empty(shape, fold.result)
        if fold.position or fold.kind not in EMPTY:
            raise ShapeError(
                f"{fold.kind.value}: an array of shape {array.shape} has no elements along the axes "
                f"{axes}; at least one is needed."
            )
        return self.from_host(np.full(shape, EMPTY[fold.kind], fold.result), copy=True)


def _fold_of(kind: Reduction, source: DType, dtype: DType) -> Fold:
    """The fold of elements of a dtype that is computed in another."""
    if kind in (Reduction.ANY, Reduction.ALL):
        return fold_of(kind, source, dt.bool_)
    if kind in (Reduction.MAX, Reduction.MIN):
        return fold_of(kind, source, source)
    return fold_of(kind, source, dtype)


def _shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape of a reduction's result."""
    return tuple(
        1 if axis in axes else n for axis, n in enumerate(shape) if keepdims or axis not in axes
    )
