"""How pointwise kernels read operands four elements at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from numr.layout.strides import merge_axes
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.texts import Walk
from numr.runtime.wgpu.vectors import WIDTH

if TYPE_CHECKING:
    from numr.runtime.wgpu.launch import DeviceContext
    from numr.runtime.wgpu.records import Binding

__all__ = ["SAME", "SIDE_BY_SIDE", "Grouping", "words_of"]

#: Where an operand's elements are that belong to four neighbours of the result.
SIDE_BY_SIDE: Final = "v"
SAME: Final = "s"


class Grouping(NamedTuple):
    """How operands are read for four neighbouring elements of results in C order.

    Attributes
    ----------
    modes : str
        For each operand where its elements are.
    rank : int
        Of the walk over groups of four; 0 where none is needed, as group ``i`` of operands whose elements are side by
        side is their piece ``i``.
    bindings : tuple
        What is bound of each operand; None for operands that lie as the results do, which can be bound in parts.
    tail : tuple of int
        Parameters: where each operand starts in its binding, in pieces where its elements are side by side, and the
        walk. None where every operand lies as the results do.
    """

    modes: str
    rank: int
    bindings: tuple[Binding | None, ...]
    tail: tuple[int, ...]

    @classmethod
    def of(
        cls,
        context: DeviceContext,
        arrays: Sequence[DeviceArray],
        shape: tuple[int, ...],
        function: str,
    ) -> Grouping | None:
        """The grouping of operands broadcast to a shape, None if there is none."""
        strides = [array.layout.broadcast_to(shape).strides for array in arrays]
        direct = [
            array.shape == shape
            and array.layout.is_contiguous
            and context.aligned_start(array) is not None
            for array in arrays
        ]
        if all(direct):
            return cls(SIDE_BY_SIDE * len(arrays), 0, (None,) * len(arrays), ())
        if not all(map(context.fits, arrays)):
            return None
        bounds = [context.bind(array, function) for array in arrays]
        lengths, steps = merge_axes(shape, strides)
        if all(here or not any(own) for here, own in zip(direct, steps, strict=True)):
            modes = "".join(SIDE_BY_SIDE if here else SAME for here in direct)
            starts = (0 if here else b.start for here, b in zip(direct, bounds, strict=True))
            parts = (None if here else b[0] for here, b in zip(direct, bounds, strict=True))
            return cls(modes, 0, tuple(parts), tuple(starts))
        if lengths[-1] % WIDTH:
            return None
        lengths[-1] //= WIDTH
        modes, places = "", []
        for own, (_, start) in zip(steps, bounds, strict=True):
            gap = own.pop()
            if gap == 0:
                modes += SAME
                own.append(0)
            elif gap == 1 and all(number % WIDTH == 0 for number in (start, *own)):
                modes += SIDE_BY_SIDE
                own[:] = [*(step // WIDTH for step in own), 1]
                start //= WIDTH
            else:
                return None
            places.append(start)
        walk = Walk(tuple(lengths), [tuple(own) for own in steps])
        tail = tuple(number & 0xFFFFFFFF for number in (*places, *walk.packed()))
        return cls(modes, walk.rank, tuple(binding for binding, _ in bounds), tail)


def words_of(modes: str, rank: int) -> int:
    """Words in the tail of a grouping."""
    starts = len(modes) if rank or SAME in modes else 0
    return starts + rank * (1 + len(modes))
