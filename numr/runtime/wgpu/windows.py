"""Arrays that may be larger than one binding: kernels see several windows of a buffer as one array."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from numr.runtime.wgpu.pipelines import StorageBuffer

if TYPE_CHECKING:
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.launch import DeviceContext
    from numr.runtime.wgpu.records import Binding

__all__ = ["Pattern", "Windows", "buffers", "reader", "writer"]


class Pattern(NamedTuple):
    """What the text of a kernel says about windows.

    Attributes
    ----------
    number : int
        How many there are.
    size : int
        Elements in each but the last, packed ones by words; 0 where there is one window.
    """

    number: int
    size: int


@dataclass(frozen=True)
class Windows:
    """What a kernel binds of an array that is not empty.

    Attributes
    ----------
    bindings : list of tuple
        The windows, each as large as a binding may be but for the last.
    start : int
        The array's first element, from the start of the first window.
    pattern : Pattern
        Their number and size.
    handle : int
        Of the array's storage.
    """

    bindings: list[Binding]
    start: int
    pattern: Pattern
    handle: int

    @classmethod
    def of(cls, context: DeviceContext, array: DeviceArray, function: str) -> Windows:
        """The windows that hold all elements of an array."""
        itemsize = array.itemsize
        low, high = array.layout.span()
        buffer, _ = context.allocator.buffer(array.storage.handle, high * itemsize, function)
        # Aligned to whole elements as well, so that the start can be counted in them.
        step = math.lcm(context.alignment, itemsize)
        base = low * itemsize // step * step
        end = min((high * itemsize + 15) & -16, buffer.size)
        window = context.max_binding // step * step
        bindings = [(buffer, at, min(window, end - at)) for at in range(base, end, window)]
        size = window // max(itemsize, 4) if len(bindings) > 1 else 0
        start = array.offset - base // itemsize
        return cls(bindings, start, Pattern(len(bindings), size), array.storage.handle)

    @classmethod
    def imagined(cls, context: DeviceContext, array: DeviceArray) -> Windows:
        """The windows that a C-contiguous array would have in memory of its own, with nothing to bind."""
        step = math.lcm(context.alignment, array.itemsize)
        window = context.max_binding // step * step
        pattern = Pattern(-(-(array.nbytes + 15 & -16) // window), 0)
        return cls([], 0, pattern, array.storage.handle)

    @property
    def is_one(self) -> bool:
        """Whether one binding holds the array."""
        return self.pattern.number == 1


def buffers(
    name: str, access: Literal["read", "read_write"], type: str, pattern: Pattern
) -> tuple[StorageBuffer, ...]:
    """The buffers of an array's windows: ``name0``, ``name1``, ..."""
    return tuple(StorageBuffer(f"{name}{i}", access, f"array<{type}>") for i in range(pattern[0]))


def reader(name: str, type: str, pattern: Pattern) -> str:
    """The function ``name_at`` that reads an element from its window."""
    return f"fn {name}_at(i: u32) -> {type} {{\n{_chosen(f'return {name}#[@];', pattern)}}}\n"


def writer(name: str, type: str, pattern: Pattern) -> str:
    """The function ``name_put`` that writes an element into its window."""
    head = f"fn {name}_put(i: u32, value: {type})"
    return f"{head} {{\n{_chosen(f'{name}#[@] = value;', pattern)}}}\n"


def _chosen(statement: str, pattern: Pattern) -> str:
    """A statement with the window's number for ``#`` and the place in it for ``@``."""
    number, size = pattern
    first = statement.replace("#", "0")
    if number == 1:
        return f"    {first.replace('@', 'i')}\n"
    cases = "".join(
        f"        case {k}u: {{ {statement.replace('#', str(k))} }}\n" for k in range(1, number)
    )
    text = f"    switch i / {size}u {{\n{cases}        default: {{ {first} }}\n    }}\n"
    return text.replace("@", f"i % {size}u")
