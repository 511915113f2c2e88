"""``Sorting``: sorting along an axis, and searching in sorted arrays."""

from __future__ import annotations

from numr import dtypes as dt
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import bitonic, radix
from numr.runtime.wgpu.bitonic import bitonic_sort
from numr.runtime.wgpu.families import Families
from numr.runtime.wgpu.merging import merge_sort
from numr.runtime.wgpu.ordering import Order
from numr.runtime.wgpu.radix import radix_sort
from numr.runtime.wgpu.searching import search_into
from numr.runtime.wgpu.texts import lanes, word

__all__ = ["Sorting"]


class Sorting(Families):
    """The families ``sort``, ``argsort`` and ``searchsorted``.

    Every sort is stable, also where that shows in elements: the two zeros are equal and keep their order.
    """

    def sort(self, array: DeviceArray, axis: int, descending: bool) -> DeviceArray:
        if not array.size:
            return self.empty(array.shape, array.dtype)
        ordered = self._sorted(array, axis, descending, positions=False)
        if lanes(array.dtype) > 1:
            narrow = self.cast(ordered, word(array.itemsize))
            ordered = DeviceArray(narrow.storage, narrow.layout, array.dtype)
        return self._moved_back(ordered, axis)

    def argsort(self, array: DeviceArray, axis: int, descending: bool) -> DeviceArray:
        if not array.size:
            return self.empty(array.shape, self.defaults.indexing)
        return self._moved_back(self._sorted(array, axis, descending, positions=True), axis)

    def searchsorted(
        self, sorted_array: DeviceArray, values: DeviceArray, side: str
    ) -> DeviceArray:
        if not sorted_array.size:
            return self.full(values.shape, 0, self.defaults.indexing)
        out = self.empty(values.shape, self.defaults.indexing)
        if values.size:
            search_into(self.context, sorted_array, values, side == "right", out)
        return out

    def _sorted(
        self, array: DeviceArray, axis: int, descending: bool, *, positions: bool
    ) -> DeviceArray:
        """Sort along an axis that becomes the last one; elements that share words become uint32."""
        context = self.context
        lines = self._lines(array, axis)
        order = Order(array.dtype, descending)
        out = context.empty(lines.shape, self.defaults.indexing if positions else lines.dtype)
        sort = merge_sort
        needed = max(radix.STORAGE_BYTES, bitonic.storage_bytes(order))
        available = context.limits["max-compute-workgroup-storage-size"]
        if not context.is_cpu and needed <= available:
            sort = bitonic_sort if lines.shape[-1] <= bitonic.LONGEST else radix_sort
        sort(context, order, lines, out, positions=positions)
        return out

    def _lines(self, array: DeviceArray, axis: int) -> DeviceArray:
        """The array with the axis as its last one, contiguous, and one word or more for each element."""
        if axis != array.ndim - 1:
            others = (other for other in range(array.ndim) if other != axis)
            array = self.permute(array, (*others, axis))
        if not array.layout.is_contiguous:
            array = self.copy(array)
        if lanes(array.dtype) > 1:
            bits = DeviceArray(array.storage, array.layout, word(array.itemsize))
            return self.cast(bits, dt.uint32)
        return array

    def _moved_back(self, ordered: DeviceArray, axis: int) -> DeviceArray:
        """The result with its last axis where it was."""
        last = ordered.ndim - 1
        if axis == last:
            return ordered
        return self.copy(self.permute(ordered, (*range(axis), last, *range(axis, last))))
