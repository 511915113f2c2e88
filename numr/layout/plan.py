"""How an index key is carried out: a view first, then a gather or scatter along some of its axes.

::

    view = x[plan.basic]                                       layout arithmetic only
    moved = permute(view, plan.gather_order(view.ndim))        advanced axes first
    picked = gather of the leading axes of `moved`             index axes, then the axes kept
    result = permute(picked, plan.result_order(index_ndim, kept_ndim))

Assignment goes the other way: the value is broadcast to ``plan.result_shape(...)``, permuted by
``plan.value_order(...)`` and scattered into `moved`.
"""

from __future__ import annotations

from dataclasses import dataclass

from numr.errors import IndexingError, ShapeError
from numr.layout.broadcasting import broadcast_shapes
from numr.layout.keys import (
    AdvancedPart,
    ArrayPart,
    BasicPart,
    IntPart,
    KeepPart,
    MaskPart,
    Part,
)


@dataclass(frozen=True, slots=True, eq=False)
class IndexPlan:
    """The two steps of an index key.

    Index arrays broadcast against each other to the index shape; a mask of n axes counts as n index
    arrays of one axis (the coordinates of its true elements), and a mask without axes as the shape
    (1,) or (0,) in that broadcast. Integers take part in the view only: beside index arrays they
    decide, as in NumPy, where the index axes go, but need no gather.

    Attributes
    ----------
    basic : tuple of IntPart, SlicePart, NewAxisPart or KeepPart
        The view, for `Layout.slice`. Axes of index arrays and masks are kept whole.
    advanced : tuple of (int, ArrayPart or MaskPart)
        Index arrays and masks in order, each with its (first) axis in the view.
    result_axis : int
        Where the index axes stand in the result: how many kept axes precede them. In the place of
        the advanced indices if these are adjacent, otherwise 0.
    """

    basic: tuple[BasicPart, ...]
    advanced: tuple[tuple[int, AdvancedPart], ...]
    result_axis: int

    @property
    def is_basic(self) -> bool:
        """Whether the view is the result."""
        return not self.advanced

    @property
    def axes(self) -> tuple[int, ...]:
        """Axes of the view that index arrays and masks stand for, in order."""
        return tuple(a for axis, part in self.advanced for a in range(axis, axis + part.ndim))

    def gather_order(self, view_ndim: int) -> tuple[int, ...]:
        """Permutation that moves the advanced axes of the view to the front, in order."""
        axes = self.axes
        return axes + tuple(axis for axis in range(view_ndim) if axis not in axes)

    def result_order(self, index_ndim: int, kept_ndim: int) -> tuple[int, ...]:
        """Permutation that takes (index axes, kept axes) to the axes of the result."""
        before = index_ndim + self.result_axis
        kept = range(index_ndim, index_ndim + kept_ndim)
        return (*range(index_ndim, before), *range(index_ndim), *kept[self.result_axis :])

    def value_order(self, index_ndim: int, kept_ndim: int) -> tuple[int, ...]:
        """Permutation that takes the axes of the result to (index axes, kept axes)."""
        after = self.result_axis + index_ndim
        return (
            *range(self.result_axis, after),
            *range(self.result_axis),
            *range(after, index_ndim + kept_ndim),
        )

    def result_shape(
        self, view_shape: tuple[int, ...], index_shape: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Shape of the result, from the shape of the view and the index shape."""
        axes = self.axes
        kept = tuple(n for axis, n in enumerate(view_shape) if axis not in axes)
        return kept[: self.result_axis] + index_shape + kept[self.result_axis :]


def split_key(parts: tuple[Part, ...]) -> IndexPlan:
    """Plan how a parsed index key is carried out.

    Parameters
    ----------
    parts : tuple of Part
        What :func:`~numr.layout.parse_key` returned.

    Returns
    -------
    IndexPlan
        The view, and what is to be gathered from it.

    Examples
    --------
    >>> plan = split_key((KeepPart(1), IntPart(2), ArrayPart([0, 0], (2,), 2)))
    >>> plan.basic
    (KeepPart(count=1), IntPart(index=2), KeepPart(count=1))
    >>> plan.result_shape((5, 7), (2,))
    (5, 2)
    """
    basic: list[BasicPart] = []
    advanced: list[tuple[int, AdvancedPart]] = []
    view_axis = 0
    kept = 0
    before_first = 0
    state = _NONE_YET
    for part in parts:
        if isinstance(part, (IntPart, ArrayPart, MaskPart)):
            if state == _NONE_YET:
                state = _RUNNING
                before_first = kept
            elif state == _ENDED:
                state = _SEPARATED
            if isinstance(part, IntPart):
                basic.append(part)
                continue
            advanced.append((view_axis, part))
            view_axis += part.ndim
            # A mask without axes adds nothing to the view.
            if part.ndim:
                basic.append(KeepPart(part.ndim))
            continue
        # An ellipsis separates even where it stands for no axis, and so does a new axis.
        if state == _RUNNING:
            state = _ENDED
        basic.append(part)
        count = part.count if isinstance(part, KeepPart) else 1
        view_axis += count
        kept += count
    if not advanced:
        return IndexPlan(tuple(basic), (), 0)
    return IndexPlan(tuple(basic), tuple(advanced), 0 if state == _SEPARATED else before_first)


# How far the run of adjacent advanced indices (integers included) has come.
_NONE_YET, _RUNNING, _ENDED, _SEPARATED = range(4)


def broadcast_index_shapes(shapes: tuple[tuple[int, ...], ...], function: str) -> tuple[int, ...]:
    """Broadcast the shapes of index arrays, masks counted as their coordinates.

    Parameters
    ----------
    shapes : tuple of tuple of int
        Shapes of the index arrays. A mask gives ``(n,)`` for n true elements.
    function : str
        Name of the caller, for the error message.

    Returns
    -------
    tuple of int
        The index shape.

    Raises
    ------
    IndexingError
        If the shapes do not broadcast.

    Examples
    --------
    >>> broadcast_index_shapes(((3, 1), (2,)), "getitem")
    (3, 2)
    """
    try:
        return broadcast_shapes(*shapes, function=f"{function}: index arrays")
    except ShapeError as error:
        raise IndexingError(*error.args) from error
