"""Gathering and scattering by index arrays, with every index checked.

Whether an index is out of range is known to the device alone. So each call waits for the device and reads back a few
bytes, some 20 microseconds; in exchange a bad index is an error, as on the CPU, and not another element.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from numr.errors import IndexingError
from numr.layout.strides import merge_axes
from numr.runtime.cuda import texts
from numr.runtime.cuda.texts import BLOCK

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["gather_into", "scatter_from"]

#: What a kernel leaves behind for a bad index: whether there was one, the index, and its axis.
_REPORT_BYTES: Final = 24
_RANKS: Final = (1, 2, 3, 4, 8, 64)


class _Targets:
    """The elements of an array that index arrays pick: how a kernel finds them."""

    def __init__(self, context: DeviceContext, array: Any, indices: Sequence[Any]) -> None:
        count = len(indices)
        self.context = context
        self.shape = array.shape
        self.count = count
        self.picks = int(indices[0].size)
        self.inner = 1
        for n in array.shape[count:]:
            self.inner *= n
        lengths: list[int] = []
        steps: list[int] = []
        if self.inner:
            lengths, (steps,) = merge_axes(array.shape[count:], [array.strides[count:]])
        self.inner_rank = next(rank for rank in _RANKS if len(lengths) <= rank)
        self.index_rank = next(rank for rank in _RANKS if count <= rank)
        missing = self.index_rank - count
        numbers = [index.data.ptr for index in indices] + [0] * missing
        numbers += [*array.shape[:count], *[1] * missing]
        numbers += [*array.strides[:count], *[0] * missing]
        self.index_dims = texts.pack(numbers)
        padding = self.inner_rank - len(lengths)
        self.inner_dims = texts.pack([1] * padding + lengths + [0] * padding + steps)
        self.word = texts.word(array.dtype.itemsize)
        self.report = context.allocator.pointer(_REPORT_BYTES)
        context.set_bytes(self.report.ptr, 0, _REPORT_BYTES)

    def check(self) -> None:
        """Raise IndexingError if a kernel met an index out of range."""
        host = np.empty(3, np.int64)
        self.context.download(self.report.ptr, host.view(np.uint8))
        if host[0]:
            axis = int(host[2])
            raise IndexingError(
                f"indexing an array of shape {self.shape}: index {int(host[1])} is out of bounds for axis {axis} "
                f"with size {self.shape[axis]}."
            )


def gather_into(context: DeviceContext, array: Any, indices: Sequence[Any], out: Any) -> None:
    """Read elements at index arrays, which are contiguous and int64, into a C-contiguous array.

    Raises
    ------
    IndexingError
        If an index is out of range; ``out`` is arbitrary then.
    """
    targets = _Targets(context, array, indices)
    if not targets.picks:
        return
    # Indices count even where there is nothing to read behind them.
    size = targets.picks * max(targets.inner, 1)
    text = _gather_text(targets.word, targets.index_rank, targets.inner_rank)
    with context.current():
        (kernel,) = context.compiler.functions(text, "numr_kernel")
        arguments = [array.data.ptr, out.data.ptr, targets.report.ptr, targets.picks, targets.inner]
        arguments += [targets.count, targets.index_dims, targets.inner_dims]
        kernel((-(-size // BLOCK),), (BLOCK,), arguments, 0, context.stream)
    targets.check()


def scatter_from(context: DeviceContext, array: Any, indices: Sequence[Any], values: Any) -> None:
    """Write a C-contiguous array's elements at index arrays; the last write to an element wins.

    Threads write in any order. So that the last value wins, a first kernel notes for each place the last
    position that writes to it, in a table of 4 or 8 bytes for each indexed place.

    Raises
    ------
    IndexingError
        If an index is out of range; nothing is written then.
    """
    targets = _Targets(context, array, indices)
    if not targets.picks:
        return
    places = 1
    for n in array.shape[: targets.count]:
        places *= n
    wide = targets.picks >= 1 << 31
    entry = 8 if wide else 4
    table = context.allocator.pointer(entry * max(places, 1))
    context.set_bytes(table.ptr, 0xFF, entry * max(places, 1))
    text = _scatter_text(targets.word, targets.index_rank, targets.inner_rank, wide)
    with context.current():
        mark, kernel = context.compiler.functions(text, "numr_mark", "numr_kernel")
        arguments = [table.ptr, targets.report.ptr, targets.picks, targets.count]
        arguments += [targets.index_dims]
        mark((-(-targets.picks // BLOCK),), (BLOCK,), arguments, 0, context.stream)
    targets.check()
    size = targets.picks * targets.inner
    if size:
        with context.current():
            arguments = [array.data.ptr, values.data.ptr, table.ptr, targets.picks, targets.inner]
            arguments += [targets.count, targets.index_dims, targets.inner_dims]
            kernel((-(-size // BLOCK),), (BLOCK,), arguments, 0, context.stream)


def _find(rank: int) -> str:
    """The function that finds the place of one pick: its bytes into the array, and its number among the places.

    It gives -1 and leaves a report where an index is out of range.
    """
    return (
        f"struct numr_index {{ const long long* at[{rank}]; long long n[{rank}]; "
        f"long long step[{rank}]; }};\n"
        "__device__ __forceinline__ long long numr_find(const numr_index& index, const int count, "
        "const long long pick, long long* offset, long long* report) {\n"
        "    long long place = 0, bytes = 0;\n"
        "    bool good = true;\n"
        f"    #pragma unroll\n    for (int k = 0; k < {rank}; ++k) {{\n"
        "        if (k < count) {\n"
        "            const long long given = index.at[k][pick];\n"
        "            const long long i = given < 0 ? given + index.n[k] : given;\n"
        "            if (i < 0 || i >= index.n[k]) {\n"
        "                if (report) { report[1] = given; report[2] = k; report[0] = 1; }\n"
        "                good = false;\n"
        "            }\n"
        "            place = place * index.n[k] + i;\n"
        "            bytes += i * index.step[k];\n"
        "        }\n    }\n"
        "    *offset = bytes;\n"
        "    return good ? place : -1;\n}\n"
    )


def _inner(rank: int) -> str:
    return (
        f"{texts.dims_type(rank, 1)}"
        "__device__ __forceinline__ long long numr_inner(const numr_dims& dims, const long long j) {\n"
        f"{texts.walk(rank, 1, 'j', True)}"
        "    return at0;\n}\n"
    )


@cache
def _gather_text(word: Any, index_rank: int, inner_rank: int) -> str:
    memory = texts.memory_type(word)
    return (
        f"{texts.head()}{_find(index_rank)}{_inner(inner_rank)}"
        f'extern "C" __global__ void __launch_bounds__({BLOCK}) numr_kernel('
        f"const char* in, {memory}* out, long long* report, const long long picks, "
        "const long long inner, const long long count, const numr_index index, const numr_dims dims) {\n"
        f"    const long long i = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
        "    const long long each = inner ? inner : 1;\n"
        "    const long long pick = i / each, j = i - pick * each;\n"
        "    if (pick >= picks) return;\n"
        "    long long offset;\n"
        "    if (numr_find(index, (int)count, pick, &offset, report) < 0 || !inner) return;\n"
        f"    out[i] = *(const {memory}*)(in + offset + numr_inner(dims, j));\n"
        "}\n"
    )


@cache
def _scatter_text(word: Any, index_rank: int, inner_rank: int, wide: bool) -> str:
    memory = texts.memory_type(word)
    entry = "long long" if wide else "int"
    return (
        f"{texts.head()}{_find(index_rank)}{_inner(inner_rank)}"
        f'extern "C" __global__ void __launch_bounds__({BLOCK}) numr_mark('
        f"{entry}* table, long long* report, const long long picks, const long long count, "
        "const numr_index index) {\n"
        f"    const long long pick = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
        "    if (pick >= picks) return;\n"
        "    long long offset;\n"
        "    const long long place = numr_find(index, (int)count, pick, &offset, report);\n"
        f"    if (place >= 0) atomicMax(&table[place], ({entry})pick);\n"
        "}\n"
        f'extern "C" __global__ void __launch_bounds__({BLOCK}) numr_kernel('
        f"char* array, const {memory}* values, const {entry}* table, const long long picks, "
        "const long long inner, const long long count, const numr_index index, const numr_dims dims) {\n"
        f"    const long long i = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
        "    const long long pick = i / inner, j = i - pick * inner;\n"
        "    if (pick >= picks) return;\n"
        "    long long offset;\n"
        "    const long long place = numr_find(index, (int)count, pick, &offset, nullptr);\n"
        f"    if (table[place] != ({entry})pick) return;\n"
        f"    *({memory}*)(array + offset + numr_inner(dims, j)) = values[i];\n"
        "}\n"
    )
