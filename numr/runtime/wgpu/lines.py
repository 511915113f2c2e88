"""How reductions walk through an array: along lines, each of which gives one result.

Axes that are kept give the results, those that are reduced their elements. What a kernel loads at once is one element,
or four that are neighbours in memory: four of a line, or one of each of four lines side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from numr.layout.strides import merge_axes
from numr.runtime.wgpu.texts import Walk

if TYPE_CHECKING:
    from numr.layout import Layout
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.windows import Windows

__all__ = ["WIDTH", "Axes", "Lines", "by_loads", "fits"]

#: Elements that are loaded together where they can be.
WIDTH: Final = 4


@dataclass(frozen=True)
class Lines:
    """The lines of an array; steps and positions count loads.

    Attributes
    ----------
    outputs : int
        Lines, or groups of four where one load serves four.
    length : int
        Loads along a line.
    elements : int
        Elements along a line.
    kept, reduced : Walk
        The way to the start of each line, and along it.
    start : int
        Where the first line starts, from the start of what is bound.
    wide : bool
        Whether four elements are loaded at once.
    apart : bool
        Whether these belong to four lines.
    by_columns : bool
        Whether neighbours in memory belong to different lines.
    """

    outputs: int
    length: int
    elements: int
    kept: Walk
    reduced: Walk
    start: int
    wide: bool
    apart: bool
    by_columns: bool

    @property
    def results(self) -> int:
        """Number of results."""
        return WIDTH * self.outputs if self.apart else self.outputs

    @classmethod
    def of(
        cls,
        array: DeviceArray,
        axes: tuple[int, ...],
        windows: Windows,
        *,
        ordered: bool = False,
        may_be_apart: bool = True,
    ) -> Lines:
        """The lines of an array without axes of length 0.

        Parameters
        ----------
        array : DeviceArray
            The array.
        axes : tuple of int
            The axes that are reduced.
        windows : Windows
            What is bound of it.
        ordered : bool
            Whether elements have to be met in the order of the axes; else they are in that of memory.
        may_be_apart : bool
            Whether one invocation may give four results.
        """
        may_be_wide = windows.is_one and array.dtype.kind != "V"
        return cls.of_layout(
            replace(array.layout, offset=windows.start),
            axes,
            ordered=ordered,
            may_be_wide=may_be_wide,
            may_be_apart=may_be_apart,
        )

    @classmethod
    def of_layout(
        cls,
        layout: Layout,
        axes: tuple[int, ...],
        *,
        ordered: bool = False,
        may_be_wide: bool = True,
        may_be_apart: bool = True,
    ) -> Lines:
        """The lines of an array that lies so from the start of what is bound; see :meth:`of`.

        ``may_be_wide`` says whether four elements may be loaded at once.
        """
        shape, strides, start = layout.shape, layout.strides, layout.offset
        kept_axes = [axis for axis in range(layout.ndim) if axis not in axes]
        pairs = [(shape[axis], strides[axis]) for axis in axes]
        if not ordered:
            start += sum((n - 1) * step for n, step in pairs if step < 0)
            pairs = sorted(((n, abs(step)) for n, step in pairs), key=lambda pair: -pair[1])
        kept = _merged([(shape[axis], strides[axis]) for axis in kept_axes])
        reduced = _merged(pairs)
        elements = outputs = 1
        for n, _ in reduced:
            elements *= n
        for n, _ in kept:
            outputs *= n
        nearest_kept = min((abs(step) for _, step in kept if step), default=1 << 62)
        nearest_reduced = min((abs(step) for _, step in reduced if step), default=1 << 62)
        by_columns = nearest_kept < nearest_reduced
        wide = apart = False
        if may_be_wide:
            wide = fits(reduced, kept, start, may_end_anywhere=len(reduced) == 1)
            if not wide and may_be_apart:
                wide = apart = fits(kept, reduced, start)
        length = elements
        if wide:
            kept, reduced, start = by_loads(kept), by_loads(reduced), start // WIDTH
            outputs = -(-outputs // WIDTH) if apart else outputs
            length = elements if apart else -(-elements // WIDTH)
        return cls(
            outputs, length, elements, _walk(kept), _walk(reduced), start, wide, apart, by_columns
        )


Axes = list[tuple[int, int]]


def _merged(pairs: Axes) -> Axes:
    lengths, (steps,) = merge_axes(tuple(n for n, _ in pairs), [tuple(step for _, step in pairs)])
    return list(zip(lengths, steps, strict=True))


def fits(neighbours: Axes, others: Axes, start: int, *, may_end_anywhere: bool = False) -> bool:
    """Whether elements are loaded by fours along the last of some axes."""
    if not neighbours or neighbours[-1][1] != 1 or neighbours[-1][0] < WIDTH:
        return False
    steps = [step for _, step in neighbours[:-1] + others]
    numbers = [start, *steps] if may_end_anywhere else [start, neighbours[-1][0], *steps]
    return all(number % WIDTH == 0 for number in numbers)


def by_loads(axes: Axes) -> Axes:
    """Axes in loads instead of elements."""
    return [(-(-n // WIDTH), 1) if step == 1 else (n, step // WIDTH) for n, step in axes]


def _walk(axes: Axes) -> Walk:
    return Walk(tuple(n for n, _ in axes), [tuple(step for _, step in axes)])
