"""Index arrays: where the elements lie that they pick, with every index checked on the device.

A kernel that meets an index out of range notes the first pick it happens to. The host reads that one word, which
costs as much as waiting for the device does; in exchange a bad index is an error, and not another element.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from numr import dtypes as dt
from numr.dtypes import DType
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import Parameters, Walk, invocation, load, source

if TYPE_CHECKING:
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.launch import DeviceContext
    from numr.runtime.wgpu.records import Binding

__all__ = ["AT_ONCE", "REPORT", "IndexText", "Picks", "Reports"]

#: Index arrays that a kernel binds at most: with the others it has no more buffers than every device allows.
AT_ONCE: Final = 4
REPORT: Final = StorageBuffer("report", "read_write", "array<atomic<u32>>")


class Reports:
    """Words that kernels leave a report in, all zero while nobody uses them."""

    def __init__(self, context: DeviceContext) -> None:
        self._context = context
        self._free: deque[tuple[Any, Binding]] = deque()

    def take(self) -> Binding:
        """A word that is zero."""
        opened = self._context.opened
        while self._free:
            try:
                owner, word = self._free.pop()
            except IndexError:  # another thread took it
                break
            if owner is opened:  # not lost with its device
                return word
        return opened.own_buffer(16), 0, 16

    def read(self, word: Binding) -> int:
        """What is reported, when all work so far is done; others may use the word then."""
        opened = self._context.opened
        host = np.zeros(4, np.uint8)
        opened.staging.read(word[0], host)
        value = int(host.view(np.uint32)[0])
        if value:
            opened.queue.write(word[0], 0, np.zeros(4, np.uint8))
        self._free.append((opened, word))
        return value


class IndexText(NamedTuple):
    """What the part of a kernel that reads index arrays is made for.

    Attributes
    ----------
    dtypes : tuple of dtype
        Of the index arrays.
    rank : int
        Of the walk through them.
    """

    dtypes: tuple[DType, ...]
    rank: int

    @property
    def words(self) -> int:
        """Words of parameters: three for each index array, and the walk."""
        return 3 * len(self.dtypes) + self.rank * (1 + len(self.dtypes))

    @property
    def buffers(self) -> list[StorageBuffer]:
        """The index arrays, and the report."""
        wide = "array<vec2<u32>>"
        return [
            StorageBuffer(f"indices{k}", "read", wide)
            if dtype.itemsize == 8
            else source(f"indices{k}", dtype)
            for k, dtype in enumerate(self.dtypes)
        ] + [REPORT]

    def text(self, start: int = 0) -> str:
        """The function ``offset_of`` a pick, which leaves a report and gives 0 for a bad index.

        Parameters
        ----------
        start : int
            The first word of the parameters' array that belongs to this.
        """
        count = len(self.dtypes)
        lines = ["var offset = 0u;", "var is_good = true;"]
        for k, dtype in enumerate(self.dtypes):
            size, step, first = (Parameters.word(start + 3 * k + j) for j in range(3))
            lines += self._index(k, dtype, f"({first} + at{k})")
            lines.append(f"let i{k} = checked(low{k}, high{k}, {size});")
            lines.append(f"is_good = is_good && i{k} < {size};")
            lines.append(f"offset += i{k} * {step};")
        # The first bad pick is the one whose complement is the largest.
        lines.append("if (!is_good) { atomicMax(&report[0], ~pick); return 0u; }")
        lines.append("return offset;")
        walk = Walk.text(self.rank, count, "pick", start + 3 * count)
        return (
            # The index of an element for one in 64 bits, or the size if there is none.
            "fn checked(low: u32, high: u32, size: u32) -> u32 {\n"
            "    let i = select(low, low + size, high == 0xffffffffu);\n"
            "    return select(size, min(i, size), high == 0u || high == 0xffffffffu);\n}\n"
            f"fn offset_of(pick: u32) -> u32 {{\n{walk}"
            + "".join(f"    {line}\n" for line in lines)
            + "}\n"
        )

    @staticmethod
    def _index(k: int, dtype: DType, at: str) -> list[str]:
        """Declarations of the two halves of an index in 64 bits."""
        if dtype.itemsize == 8:
            # Any large unsigned number is as bad as another, but must not pass for a negative one.
            high = "given{k}.y" if dtype.kind == "i" else "min(given{k}.y, 1u)"
            return [
                f"let given{k} = indices{k}[{at}];",
                f"let low{k} = given{k}.x;",
                f"let high{k} = {high.format(k=k)};",
            ]
        lines = load(f"given{k}", dtype, f"indices{k}", at)
        if dtype.kind == "i":
            lines.append(f"let low{k} = bitcast<u32>(given{k});")
            return [*lines, f"let high{k} = select(0u, 0xffffffffu, given{k} < 0i);"]
        return [*lines, f"let low{k} = given{k};", f"let high{k} = 0u;"]


class Picks:
    """Index arrays of one common shape that is not empty, one for each leading axis of an array.

    Parameters
    ----------
    context : DeviceContext
        The device.
    shape : tuple of int
        Lengths of the axes.
    steps : tuple of int
        What one step along each axis is worth: an offset is a sum of steps.
    indices : sequence of DeviceArray
        The index arrays, of integer dtypes.
    report : tuple
        The binding where a bad index is reported, see :class:`Reports`.
    """

    def __init__(
        self,
        context: DeviceContext,
        shape: tuple[int, ...],
        steps: Sequence[int],
        indices: Sequence[DeviceArray],
        report: Binding,
    ) -> None:
        self.context = context
        self.count = indices[0].size
        self.report = report
        self._shape = shape
        self._steps = steps
        self._indices = indices

    def part(self, start: int, end: int) -> tuple[IndexText, list[Binding], list[int]]:
        """Text, bindings and words of parameters for a kernel that reads some of the index arrays."""
        indices = self._indices[start:end]
        bound = [self.context.bind(index, "indexing") for index in indices]
        walk = Walk(indices[0].shape, [index.strides for index in indices])
        words: list[int] = []
        for size, step, (_, first) in zip(
            self._shape[start:end], self._steps[start:end], bound, strict=True
        ):
            words += [size, step, first]
        text = IndexText(tuple(index.dtype for index in indices), walk.rank)
        bindings = [*(binding for binding, _ in bound), self.report]
        return text, bindings, words + walk.packed()

    def offsets(self) -> DeviceArray:
        """A new array of uint32 with the offset of each pick."""
        context = self.context
        result = context.empty((self.count,), dt.uint32)
        target = context.bind(result, "indexing").binding
        groups, row = context.grid(self.count)
        for start in range(0, len(self._indices), AT_ONCE):
            text, bindings, words = self.part(start, start + AT_ONCE)
            kernel, params = _offsets_text(text, start > 0)
            context.run(kernel, [*bindings, target], params.pack(self.count, row, *words), groups)
        return result


@cache
def _offsets_text(index: IndexText, adds: bool) -> tuple[KernelText, Parameters]:
    params = Parameters("count", "row", words=index.words)
    body = (
        f"{params.text}{index.text()}{invocation()}"
        f"    if (i < params.count) {{ offsets[i] {'+=' if adds else '='} offset_of(i); }}\n"
        "}\n"
    )
    buffers = (*index.buffers, StorageBuffer("offsets", "read_write"))
    return KernelText(body, buffers, params.size), params
