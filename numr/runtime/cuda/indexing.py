"""Gathering and scattering by index arrays, with every index checked.

Whether an index is out of range is known to the device alone. So each call waits for the device, some ten
microseconds; in exchange a bad index is an error, as on the CPU, and not another element.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from math import gcd
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numr.errors import IndexingError
from numr.layout.strides import merge_axes
from numr.runtime.cuda import texts
from numr.runtime.cuda.texts import BLOCK, NARROW, VECTOR, power_of_two

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["gather_across", "gather_into", "prefers_across", "scatter_from"]

_RANKS: Final = (1, 2, 3, 4, 8, 64)
#: Elements that one thread moves.
_UNROLL: Final = 4
#: Blocks that keep a device busy, of so many threads: as many as there can be, so that few rows are in the cache at
#: a time.
_BUSY: Final = 512
_LARGE: Final = 1024
#: Indices are checked by themselves where there are so many bytes behind each, and so many in all.
_WORTH: Final = 64
_MUCH: Final = 1 << 22


class _Plan(NamedTuple):
    """How the elements behind each pick of an array's leading axes are moved, in words that are not looked at."""

    #: Bytes of a word.
    width: int
    #: Words behind a pick.
    inner: int
    #: Places that an index picks from.
    places: int
    index_rank: int
    inner_rank: int
    #: Lengths and strides of the indexed axes, and those of the others.
    indexed: bytes
    dims: bytes


@lru_cache(maxsize=1024)
def _plan(
    shape: tuple[int, ...], strides: tuple[int, ...], count: int, itemsize: int, alignment: int
) -> _Plan:
    """For an array of which the first ``count`` axes are indexed; addresses are multiples of ``alignment``."""
    lengths: list[int] = []
    steps: list[int] = []
    inner = 1
    for n in shape[count:]:
        inner *= n
    width = itemsize
    if inner:
        lengths, (steps,) = merge_axes(shape[count:], [strides[count:]])
        if steps[-1:] == [itemsize]:
            # What is behind a pick, and behind the next, lies in whole words of at most 16 bytes.
            run = lengths[-1] * itemsize
            width = gcd(alignment, VECTOR, run, *strides[:count], *steps[:-1])
            lengths[-1], steps[-1] = run // width, width
            inner = inner * itemsize // width
    index_rank = next(rank for rank in _RANKS if count <= rank)
    missing = index_rank - count
    numbers = [*shape[:count], *[1] * missing, *strides[:count], *[0] * missing]
    inner_rank = texts.rank_for(len(lengths))
    places = 1
    for n in shape[:count]:
        places *= n
    return _Plan(
        width,
        inner,
        places,
        index_rank,
        inner_rank,
        struct.pack(f"{len(numbers)}q", *numbers),
        texts.pack_dims(inner_rank, lengths, [steps]),
    )


def gather_into(context: DeviceContext, array: Any, indices: Sequence[Any], out: Any) -> None:
    """Read elements at index arrays, which are contiguous and int64, into a C-contiguous array.

    Raises
    ------
    IndexingError
        If an index is out of range; ``out`` is arbitrary then.
    """
    if indices[0].size:
        _Moves(context, array, indices, out).gather()


def prefers_across(array: Any, indices: Sequence[Any]) -> bool:
    """Whether neighbours in memory are neighbours of the one indexed axis, so that picks should run along rows."""
    shape, strides = array.shape, array.strides
    if len(indices) != 1 or len(shape) < 2 or indices[0].size < 32 or not array.size:
        return False
    return all(
        n == 1 or abs(step) > abs(strides[0])
        for n, step in zip(shape[1:], strides[1:], strict=True)
    )


def gather_across(context: DeviceContext, array: Any, index: Any, out: Any) -> None:
    """Read elements at one index array, as :func:`gather_into` does, with the picks as ``out``'s last axis.

    Raises
    ------
    IndexingError
        If an index is out of range; ``out`` is arbitrary then.
    """
    if index.size:
        _Moves(context, array, [index], out).gather_across()


def scatter_from(context: DeviceContext, array: Any, indices: Sequence[Any], values: Any) -> None:
    """Write a C-contiguous array's elements at index arrays; the last write to an element wins.

    Threads write in any order. So that the last value wins, a first kernel notes for each place the last
    position that writes to it, in a table of 4 or 8 bytes for each indexed place.

    Raises
    ------
    IndexingError
        If an index is out of range; nothing is written then.
    """
    if indices[0].size:
        _Moves(context, array, indices, values).scatter()


class _Moves:
    """Elements of an array that index arrays pick, and their counterparts in a contiguous one."""

    def __init__(
        self, context: DeviceContext, array: Any, indices: Sequence[Any], other: Any
    ) -> None:
        self.context = context
        self.shape = array.shape
        self.picks = int(indices[0].size)
        self.addresses = array.data.ptr, other.data.ptr
        plan = self.plan = _plan(
            array.shape,
            array.strides,
            len(indices),
            array.dtype.itemsize,
            gcd(*self.addresses, VECTOR),
        )
        pointers = [index.data.ptr for index in indices]
        pointers += [0] * (plan.index_rank - len(indices))
        self.count = len(indices)
        self.index = struct.pack(f"{len(pointers)}q", *pointers) + plan.indexed

    def gather(self) -> None:
        if self._is_checked_first():
            self._move(0, 0, scatters=False, wide=False)
            return
        with self.context.report() as report:
            self._move(0, report.ptr, scatters=False, wide=False)
            self.context.synchronize()
            self._check(report.values)

    def _is_checked_first(self) -> bool:
        """Check the indices by themselves where that is little work beside the rest, so that none waits for the rest."""
        plan = self.plan
        if plan.inner * plan.width < _WORTH or plan.inner * plan.width * self.picks < _MUCH:
            return False
        kernel = self.context.kernel(_check_text(plan.index_rank), 3, len(self.index))
        with self.context.report() as report:
            arguments = report.ptr, self.picks, self.count, self.index
            self.context.launch(kernel, -(-self.picks // BLOCK), 1, BLOCK, 1, *arguments)
            self.context.synchronize()
            self._check(report.values)
        return True

    def gather_across(self) -> None:
        plan, picks = self.plan, self.picks
        # A block goes along a whole row, of which the cache keeps what other picks read, unless there are few rows.
        chunks = max(1, min(-(-picks // (_LARGE * _UNROLL)), _BUSY // plan.inner))
        text = _across_text(plan.width, plan.inner_rank, plan.inner >= NARROW)
        tail = self.index + plan.dims
        kernel = self.context.kernel(text, 5, len(tail))
        grid = plan.inner * chunks
        if self._is_checked_first():
            self.context.launch(kernel, grid, 1, _LARGE, 1, *self.addresses, 0, picks, chunks, tail)
            return
        with self.context.report() as report:
            arguments = *self.addresses, report.ptr, picks, chunks, tail
            self.context.launch(kernel, grid, 1, _LARGE, 1, *arguments)
            self.context.synchronize()
            self._check(report.values)

    def scatter(self) -> None:
        context, plan = self.context, self.plan
        wide = self.picks >= NARROW
        size = (8 if wide else 4) * max(plan.places, 1)
        table = context.allocator.pointer(size)
        context.set_bytes(table.ptr, 0xFF, size)
        text = _mark_text(plan.index_rank, wide)
        mark = context.kernel(text, 4, len(self.index))
        with context.report() as report:
            blocks = -(-self.picks // BLOCK)
            arguments = table.ptr, report.ptr, self.picks, self.count, self.index
            context.launch(mark, blocks, 1, BLOCK, 1, *arguments)
            context.synchronize()
            self._check(report.values)
        if plan.inner:
            self._move(table.ptr, 0, scatters=True, wide=wide)

    def _move(self, table: int, report: int, *, scatters: bool, wide: bool) -> None:
        plan, picks = self.plan, self.picks
        single = plan.inner == 1
        chunks, down = 1, 1
        if single:
            across, blocks = BLOCK, -(-picks // (BLOCK * _UNROLL))
        else:
            across = min(power_of_two(max(-(-plan.inner // _UNROLL), 1)), BLOCK)
            down = BLOCK // across
            chunks = max(-(-plan.inner // (across * _UNROLL)), 1)
            blocks = chunks * -(-picks // down)
        text = _move_text(
            plan.width,
            plan.index_rank,
            plan.inner_rank,
            single,
            scatters,
            wide,
            plan.inner >= NARROW,
        )
        tail = self.index + plan.dims
        kernel = self.context.kernel(text, 8, len(tail))
        arguments = *self.addresses, table, report, picks, self.count, plan.inner, chunks, tail
        self.context.launch(kernel, blocks, 1, across, down, *arguments)

    def _check(self, report: Any) -> None:
        """Raise IndexingError if a kernel met an index out of range."""
        if report[0]:
            axis = int(report[2])
            raise IndexingError(
                f"indexing an array of shape {self.shape}: index {int(report[1])} is out of bounds for axis {axis} "
                f"with size {self.shape[axis]}."
            )


def _find(rank: int) -> str:
    """The function that finds the place of one pick: its bytes into the array, and its number among the places.

    It gives -1 and leaves a report where an index is out of range.
    """
    return (
        f"struct numr_index {{ const long long* at[{rank}]; long long n[{rank}]; "
        f"long long step[{rank}]; }};\n"
        "__device__ __forceinline__ long long numr_find(const numr_index& index, const int count, "
        "const long long pick, long long* offset, volatile long long* report) {\n"
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


@cache
def _move_text(
    width: int,
    index_rank: int,
    inner_rank: int,
    single: bool,
    scatters: bool,
    wide: bool,
    wide_inner: bool,
) -> str:
    """Threads side by side move what is behind one pick, or where that is a single word, picks side by side.

    All reads of a thread come before its first write, so that they are under way together.
    """
    memory = texts.memory_type(texts.word(width))
    entry = "long long" if wide else "int"
    array, other = ("char*", f"const {memory}*") if scatters else ("const char*", f"{memory}*")
    picked = f"*({'' if scatters else 'const '}{memory}*)(array + offset{{0}} + numr_inner(tail.dims, {{1}}))"
    found = "place{0} >= 0"
    if scatters:
        found += f" && (({entry}*)table)[place{{0}}] == ({entry}){{1}}"
    find = "numr_find(tail.index, (int)count, {1}, &offset{0}, report)"
    begin = f"    {memory} word[{_UNROLL}];\n"
    unroll = f"    #pragma unroll\n    for (int u = 0; u < {_UNROLL}; ++u) {{\n"
    if single:
        begin += (
            f"    const long long start = blockIdx.x * {BLOCK * _UNROLL}ll + threadIdx.x;\n"
            f"    long long offset[{_UNROLL}], place[{_UNROLL}];\n"
            f"{unroll}        const long long pick = start + u * {BLOCK};\n"
            f"        place[u] = -1;\n        if (pick < picks) place[u] = {find.format('[u]', 'pick')};\n    }}\n"
        )
        at = f"        const long long pick = start + u * {BLOCK}, i = pick;\n"
        test = found.format("[u]", "pick")
        element = picked.format("[u]", "0")
    else:
        begin += (
            "    const unsigned int band = blockIdx.x / (unsigned int)chunks;\n"
            "    const long long chunk = blockIdx.x - band * (unsigned int)chunks;\n"
            "    const long long pick = (long long)band * blockDim.y + threadIdx.y;\n"
            "    if (pick >= picks) return;\n"
            f"    long long offset;\n    const long long place = {find.format('', 'pick')};\n"
            f"    if (!({found.format('', 'pick')})) return;\n"
        )
        at = (
            f"        const long long j = (chunk * {_UNROLL} + u) * blockDim.x + threadIdx.x, "
            "i = pick * inner + j;\n"
        )
        test = "j < inner"
        element = picked.format("", "j")
    source, target = ("other[i]", element) if scatters else (element, "other[i]")
    return (
        _start(index_rank, inner_rank, wide_inner)
        + texts.signature(
            f"{array} array, {other} other, const void* table, volatile long long* report, "
            "const long long picks, const long long count, const long long inner, const long long chunks, "
            "const numr_tail tail"
        )
        + f"{begin}{unroll}{at}        if ({test}) word[u] = {source};\n    }}\n"
        f"{unroll}{at}        if ({test}) {target} = word[u];\n    }}\n}}\n"
    )


@cache
def _across_text(width: int, inner_rank: int, wide_inner: bool) -> str:
    """A block reads picks of one row, and writes them side by side."""
    memory = texts.memory_type(texts.word(width))
    unroll = f"        #pragma unroll\n        for (int u = 0; u < {_UNROLL}; ++u) {{\n"
    step = _LARGE * _UNROLL
    return (
        _start(1, inner_rank, wide_inner)
        + texts.signature(
            f"const char* array, {memory}* out, volatile long long* report, const long long picks, "
            "const long long chunks, const numr_tail tail",
            threads=_LARGE,
        )
        + "    const long long row = blockIdx.x / chunks, chunk = blockIdx.x - row * chunks;\n"
        "    const char* const from = array + numr_inner(tail.dims, row);\n"
        f"    {memory}* const to = out + row * picks;\n"
        f"    for (long long start = chunk * {step}; start < picks; start += chunks * {step}) {{\n"
        f"        {memory} word[{_UNROLL}];\n"
        f"{unroll}            const long long pick = start + u * {_LARGE} + threadIdx.x;\n"
        "            long long offset;\n"
        "            if (pick < picks && numr_find(tail.index, 1, pick, &offset, report) >= 0)\n"
        f"                word[u] = *(const {memory}*)(from + offset);\n        }}\n"
        f"{unroll}            const long long pick = start + u * {_LARGE} + threadIdx.x;\n"
        "            if (pick < picks) to[pick] = word[u];\n        }\n    }\n}\n"
    )


def _start(index_rank: int, inner_rank: int, wide_inner: bool) -> str:
    """What kernels that move elements begin with."""
    return (
        f"{texts.head()}{_find(index_rank)}{texts.dims_type(inner_rank, 1)}"
        "struct numr_tail { numr_index index; numr_dims dims; };\n"
        "__device__ __forceinline__ long long numr_inner(const numr_dims& dims, const long long j) {\n"
        f"{texts.walk(inner_rank, 1, 'j', wide_inner)}    return at0;\n}}\n"
    )


@cache
def _check_text(index_rank: int) -> str:
    return (
        f"{texts.head()}{_find(index_rank)}"
        + texts.signature(
            "volatile long long* report, const long long picks, const long long count, const numr_index index"
        )
        + f"    const long long pick = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
        "    long long offset;\n"
        "    if (pick < picks) numr_find(index, (int)count, pick, &offset, report);\n"
        "}\n"
    )


@cache
def _mark_text(index_rank: int, wide: bool) -> str:
    entry = "long long" if wide else "int"
    return (
        f"{texts.head()}{_find(index_rank)}"
        + texts.signature(
            f"{entry}* table, volatile long long* report, const long long picks, const long long count, "
            "const numr_index index"
        )
        + f"    const long long pick = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
        "    if (pick >= picks) return;\n"
        "    long long offset;\n"
        "    const long long place = numr_find(index, (int)count, pick, &offset, report);\n"
        f"    if (place >= 0) atomicMax(&table[place], ({entry})pick);\n"
        "}\n"
    )
