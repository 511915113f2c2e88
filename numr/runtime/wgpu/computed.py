"""Reductions of what is computed from other arrays: kernels that need no array of it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from numr.codegen.elementwise import Operand
from numr.codegen.fused import expressions
from numr.dtypes import DType
from numr.ir.fused import Computation
from numr.layout import Layout
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import grouping, scalars, texts
from numr.runtime.wgpu.elementwise import express
from numr.runtime.wgpu.folding import Fold
from numr.runtime.wgpu.formulas import ZERO, Code
from numr.runtime.wgpu.grouping import Grouping
from numr.runtime.wgpu.lines import WIDTH
from numr.runtime.wgpu.loading import Elements, Loads
from numr.runtime.wgpu.pipelines import StorageBuffer
from numr.runtime.wgpu.texts import Walk
from numr.runtime.wgpu.windows import Pattern, Windows

if TYPE_CHECKING:
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["Computed", "ComputedLoads", "code_of", "functions_of", "pack_scalars", "way_of"]


@dataclass(frozen=True)
class ComputedLoads(Loads):
    """Loads of what is computed.

    Attributes
    ----------
    computation : Computation
        With one result.
    modes : str or None
        How operands are read for four elements, see ``Grouping``; None where each element is computed by itself.
    rank : int
        Of the walk.
    """

    computation: Computation
    modes: str | None
    rank: int

    @cached_property
    def _scalars(self) -> int:
        return sum(scalars.words_of(x.dtype) for x in self.computation.sources if not x.is_array)

    @property
    def words(self) -> int:
        if self.modes is not None:
            return self._scalars + grouping.words_of(self.modes, self.rank)
        arrays = sum(source.is_array for source in self.computation.sources)
        return self._scalars + arrays + self.rank * (1 + arrays)

    @property
    def types(self) -> frozenset[str]:
        return self.code(0).types

    def source(self, start: int = 0) -> tuple[tuple[StorageBuffer, ...], str]:
        code = self.code(start)
        return functions_of(code, self.modes, self.rank, start + code.words, wide=self.wide)

    def code(self, start: int) -> Code:
        """The function of one element, whose scalars are in the parameters' words from ``start`` on."""
        return code_of(self.computation, start)

    def load(self, name: str, place: str, position: str) -> tuple[list[str], list[str]]:
        source = self.fold.source
        if not self.wide:
            lines = [f"let {name}_bits = source_at({place});"]
            lines += texts.unpacked(name, source, f"{name}_bits", "0u")
            return lines, [self.fold.taken(name, position)]
        lines, values = [f"let {name}_bits = four_at({place});"], []
        for lane in range(WIDTH):
            element = f"{name}v{lane}"
            lines += texts.unpacked(element, source, f"{name}_bits.l{lane}", "0u")
            at = position if self.apart else f"{WIDTH}u * {position} + {lane}u"
            values.append(self.fold.taken(element, at))
        return lines, values


def functions_of(
    code: Code, modes: str | None, rank: int, start: int, *, wide: bool
) -> tuple[tuple[StorageBuffer, ...], str]:
    """The buffers of what is computed, and its functions: ``four_at`` of four elements, or ``source_at`` of one.

    Parameters
    ----------
    code : Code
        The function of one element.
    modes, rank
        As of :class:`ComputedLoads`.
    start : int
        The first word of the parameters' array that says where operands are.
    wide : bool
        Whether four elements are computed at once.
    """
    if modes is not None:
        buffers, lines = code.group(modes, rank, start, "0u", aliased=False)
    else:
        slots = tuple(range(len(code.arrays)))
        buffers, lines = code.single(rank, slots, start, aliased=False)
    body = "".join(f"    {line}\n" for line in lines)
    text = code.text
    if modes is None:
        text += f"fn source_at(e: u32) -> {code.type} {{\n{body}    return r;\n}}\n"
    if wide:
        fields = ", ".join(f"l{lane}: {code.type}" for lane in range(WIDTH))
        made = ", ".join(f"r{lane}" for lane in range(WIDTH))
        if modes is None:
            made = ", ".join(f"source_at({WIDTH}u * i + {lane}u)" for lane in range(WIDTH))
            body = ""
        text += (
            f"struct Four {{ {fields} }}\n"
            f"fn four_at(i: u32) -> Four {{\n{body}    return Four({made});\n}}\n"
        )
    return tuple(buffers), text


@lru_cache(maxsize=256)
def code_of(computation: Computation, first: int) -> Code:
    """The function of a computation whose result is reduced."""

    def formulas(*operands: Operand) -> list[Operand]:
        return expressions(computation, operands, express, ZERO)

    dtypes = computation.result_dtypes
    return Code(computation.sources, dtypes, formulas, first=first, opaque=True)


class Computed(Elements):
    """The elements of one result of a computation, as if they lay in a C-contiguous array.

    Parameters
    ----------
    context : DeviceContext
        The device.
    computation : Computation
        With one result.
    operands : sequence
        Arrays that broadcast to the shape, at least one, each of which fits into a binding, and scalars.
    shape : tuple of int
        The shape of the result, without axes of length 0.
    """

    def __init__(
        self,
        context: DeviceContext,
        computation: Computation,
        operands: Sequence[Any],
        shape: tuple[int, ...],
    ) -> None:
        self._context = context
        self._computation = computation
        self._shape = shape
        pairs = list(zip(operands, computation.sources, strict=True))
        self._arrays: list[DeviceArray] = [x for x, source in pairs if source.is_array]
        given = [(x, source.dtype) for x, source in pairs if not source.is_array]
        self._scalars = pack_scalars([x for x, _ in given], [dtype for _, dtype in given])
        (dtype,) = computation.result_dtypes
        # Nobody looks at the memory of an array that is not there.
        anywhere = self._arrays[0].storage
        array = DeviceArray(anywhere, Layout.contiguous(shape), dtype)
        super().__init__(array, Windows.imagined(context, array))
        self._windows = [Windows.of(context, x, "graph") for x in self._arrays]
        self._tail: tuple[int, ...] = ()

    @property
    def bound(self) -> tuple[Windows, ...]:
        return tuple(self._windows)

    @property
    def numbers(self) -> tuple[int, ...]:
        return (*self._scalars, *self._tail)

    def loads(self, fold: Fold, *, wide: bool, apart: bool) -> ComputedLoads:
        modes, rank, self._tail = way_of(self._context, self._arrays, self._shape, wide=wide)
        return ComputedLoads(
            fold, False, wide, apart, Pattern(1, 0), self._computation, modes, rank
        )


def way_of(
    context: DeviceContext, arrays: Sequence[DeviceArray], shape: tuple[int, ...], *, wide: bool
) -> tuple[str | None, int, tuple[int, ...]]:
    """How operands broadcast to a shape are read beside its elements: modes and rank, and the words that say where."""
    found = Grouping.of(context, arrays, shape, "graph") if wide else None
    if found is not None:
        return found.modes, found.rank, found.tail
    walk = Walk(shape, [x.layout.broadcast_to(shape).strides for x in arrays])
    starts = [Windows.of(context, x, "graph").start for x in arrays]
    return None, walk.rank, tuple(number & 0xFFFFFFFF for number in (*starts, *walk.packed()))


def pack_scalars(operands: Sequence[Any], dtypes: Sequence[DType]) -> tuple[int, ...]:
    """Python scalars as words of parameters."""
    packed = struct.pack(
        f"<{''.join(map(scalars.format_of, dtypes))}",
        *(
            number
            for x, dtype in zip(operands, dtypes, strict=True)
            for number in scalars.maker(dtype)(x)
        ),
    )
    return struct.unpack(f"<{len(packed) // 4}I", packed)
