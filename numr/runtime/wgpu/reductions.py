"""Reductions and scans of a WebGPU client."""

from __future__ import annotations

from typing import Final

import numpy as np

from numr import dtypes as dt
from numr.dtypes import DType
from numr.errors import ShapeError
from numr.ir.ops import Reduction
from numr.runtime.device import Device
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.families import Families
from numr.runtime.wgpu.folding import Fold, fold_of
from numr.runtime.wgpu.programs import Programs, Recording
from numr.runtime.wgpu.reducing import reduce_into
from numr.runtime.wgpu.scanning import scan_into

__all__ = ["Reductions"]

#: What a reduction of no elements gives.
_EMPTY: Final = {Reduction.SUM: 0, Reduction.PROD: 1, Reduction.ANY: 0, Reduction.ALL: 1}


class Reductions(Families):
    """The families that join elements along axes."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._programs = Programs(self.context)

    def reduce(
        self,
        kind: Reduction,
        array: DeviceArray,
        axes: tuple[int, ...],
        keepdims: bool,
        dtype: DType,
    ) -> DeviceArray:
        if kind in (Reduction.ANY, Reduction.ALL):
            dtype = dt.bool_
        elif kind in (Reduction.MAX, Reduction.MIN):
            dtype = array.dtype
        return self._fold(fold_of(kind, array.dtype, dtype), array, axes, keepdims)

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

        return self._programs.run((fold, axis), array, scanned)[0]

    def _fold(
        self, fold: Fold, array: DeviceArray, axes: tuple[int, ...], keepdims: bool
    ) -> DeviceArray:
        def reduced(work: Recording) -> tuple[DeviceArray]:
            out = work.empty(_shape(array, axes, keepdims), fold.result)
            reduce_into(work, fold, array, axes, out)
            return (out,)

        if array.size:
            return self._programs.run((fold, axes, keepdims), array, reduced)[0]
        shape = _shape(array, axes, keepdims)
        if 0 in shape:
            return self.empty(shape, fold.result)
        if fold.position or fold.kind not in _EMPTY:
            raise ShapeError(
                f"{fold.kind.value}: an array of shape {array.shape} has no elements along the axes "
                f"{axes}; at least one is needed."
            )
        return self.from_host(np.full(shape, _EMPTY[fold.kind], fold.result), copy=True)


def _shape(array: DeviceArray, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape of a reduction's result."""
    return tuple(
        1 if axis in axes else n
        for axis, n in enumerate(array.shape)
        if keepdims or axis not in axes
    )
