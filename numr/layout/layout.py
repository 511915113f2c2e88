"""Shape, strides and offset of an array, and the views that are arithmetic on these."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

from numr.errors import AxisError, ShapeError
from numr.layout.axes import normalize_axes, normalize_axis
from numr.layout.keys import BasicPart, IntPart, KeepPart, NewAxisPart, SlicePart
from numr.layout.strides import contiguous_strides, merge_axes, reshape_strides

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of an array lie in its storage.

    The element at ``index`` lies at ``offset + sum(i * s for i, s in zip(index, strides))``. Every
    method that makes a view returns a new layout over the same storage.

    Parameters
    ----------
    shape : tuple of int
        Length of each axis.
    strides : tuple of int
        Step of each axis, in elements; zero and negative steps are legal.
    offset : int
        Element at which index (0, 0, ...) lies, from the start of the storage.

    Raises
    ------
    ShapeError
        If there are not as many strides as axes.

    Examples
    --------
    >>> Layout.contiguous((2, 3)).permute((1, 0))
    Layout(shape=(3, 2), strides=(1, 3), offset=0)
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.strides):
            raise ShapeError(
                f"Layout: shape {self.shape} and strides {self.strides} must have as many entries."
            )

    @classmethod
    def contiguous(cls, shape: tuple[int, ...], offset: int = 0) -> Layout:
        """Layout of an array in C order without gaps."""
        return cls(shape, contiguous_strides(shape), offset)

    # What a layout says

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps; axes of length 1 do not matter."""
        expected = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1:
                if stride != expected:
                    return 0 in self.shape
                expected *= n
        return True

    @property
    def has_internal_overlap(self) -> bool:
        """Whether two indices may share an element, as after broadcasting.

        Exact for every view of a contiguous layout. Strides from elsewhere may be so tangled that
        their axes interleave without meeting: these count as overlapping.
        """
        if 0 in self.shape:
            return False
        reach = 0
        for stride, n in sorted(
            (abs(stride), n) for n, stride in zip(self.shape, self.strides, strict=True) if n != 1
        ):
            if stride <= reach:
                return True
            reach += stride * (n - 1)
        return False

    def span(self) -> tuple[int, int]:
        """Range of elements touched, as (lowest, highest + 1); an empty range if there are none."""
        low = high = self.offset
        for n, stride in zip(self.shape, self.strides, strict=True):
            if n == 0:
                return self.offset, self.offset
            if stride < 0:
                low += stride * (n - 1)
            else:
                high += stride * (n - 1)
        return low, high + 1

    def may_overlap(self, other: Layout) -> bool:
        """Whether two layouts over one storage may share elements: whether their spans meet."""
        low, high = self.span()
        other_low, other_high = other.span()
        return max(low, other_low) < min(high, other_high)

    def element_offsets(self) -> Iterator[int]:
        """Offset of each element, in C order of the indices."""
        steps = (
            [stride * i for i in range(n)]
            for n, stride in zip(self.shape, self.strides, strict=True)
        )
        return (self.offset + sum(step) for step in itertools.product(*steps))

    # Views

    def permute(self, axes: Sequence[SupportsIndex]) -> Layout:
        """Put the axes into another order.

        Parameters
        ----------
        axes : sequence of int
            For each axis of the result, the axis that it was; each axis once.

        Returns
        -------
        Layout
            The view.

        Raises
        ------
        AxisError
            If `axes` is not a permutation of the axes.
        """
        order = normalize_axes(tuple(axes), self.ndim, "permute_dims")
        if len(order) != self.ndim:
            raise AxisError(
                f"permute_dims: axes {order} do not name every axis of shape {self.shape} once."
            )
        return Layout(
            tuple(self.shape[axis] for axis in order),
            tuple(self.strides[axis] for axis in order),
            self.offset,
        )

    def flip(self, axes: SupportsIndex | Sequence[SupportsIndex] | None = None) -> Layout:
        """Reverse some axes, all of them by default.

        Parameters
        ----------
        axes : int, sequence of int or None
            The axes.

        Returns
        -------
        Layout
            The view.

        Raises
        ------
        AxisError
            If an axis is out of range or named twice.
        """
        strides = list(self.strides)
        offset = self.offset
        for axis in normalize_axes(axes, self.ndim, "flip"):
            # An empty axis has no last element to start from.
            offset += strides[axis] * max(self.shape[axis] - 1, 0)
            strides[axis] = -strides[axis]
        return Layout(self.shape, tuple(strides), offset)

    def broadcast_to(self, shape: tuple[int, ...], *, function: str = "broadcast_to") -> Layout:
        """Repeat axes of length 1, and add axes at the front, without moving an element.

        Parameters
        ----------
        shape : tuple of int
            Shape of the result.
        function : str
            Name of the caller, for the error message.

        Returns
        -------
        Layout
            The view; repeated axes have the stride 0.

        Raises
        ------
        ShapeError
            If the shape has fewer axes, or changes a length other than 1.
        """
        if shape == self.shape:
            return self
        lead = len(shape) - self.ndim
        if lead < 0:
            raise ShapeError(
                f"{function}: shape {self.shape} could not be broadcast to {shape}, which has fewer "
                "axes."
            )
        strides = [0] * len(shape)
        for axis, (n, stride) in enumerate(zip(self.shape, self.strides, strict=True), lead):
            if n == shape[axis]:
                strides[axis] = stride
            elif n != 1:
                raise ShapeError(
                    f"{function}: shape {self.shape} could not be broadcast to {shape}: axis {axis} of "
                    f"the result has length {shape[axis]} where {n} is needed; only axes of length 1 "
                    "repeat."
                )
        return Layout(shape, tuple(strides), self.offset)

    def reshape(self, shape: tuple[int, ...]) -> Layout | None:
        """Give the elements, in C order, another shape.

        Parameters
        ----------
        shape : tuple of int
            Shape of the result, of as many elements.

        Returns
        -------
        Layout or None
            The view, None if only a copy can have this shape.

        Raises
        ------
        ShapeError
            If the shape has another number of elements.

        Examples
        --------
        >>> columns = Layout.contiguous((4, 3)).permute((1, 0))
        >>> columns.reshape((3, 2, 2))
        Layout(shape=(3, 2, 2), strides=(1, 6, 3), offset=0)
        >>> columns.reshape((12,)) is None
        True
        """
        if math.prod(shape) != self.size:
            raise ShapeError(
                f"reshape: shape {self.shape} has {self.size} elements, shape {shape} has "
                f"{math.prod(shape)}; the number of elements must stay the same."
            )
        if self.is_contiguous:
            return Layout.contiguous(shape, self.offset)
        strides = reshape_strides(self.shape, self.strides, shape)
        return None if strides is None else Layout(shape, strides, self.offset)

    def squeeze(self, axes: SupportsIndex | Sequence[SupportsIndex]) -> Layout:
        """Drop axes of length 1.

        Parameters
        ----------
        axes : int or sequence of int
            The axes.

        Returns
        -------
        Layout
            The view.

        Raises
        ------
        AxisError
            If an axis is out of range or named twice.
        ShapeError
            If an axis has another length than 1.
        """
        dropped = normalize_axes(axes, self.ndim, "squeeze")
        for axis in dropped:
            if self.shape[axis] != 1:
                raise ShapeError(
                    f"squeeze: axis {axis} of shape {self.shape} has length {self.shape[axis]}; "
                    "only axes of length 1 can be dropped."
                )
        kept = [axis for axis in range(self.ndim) if axis not in dropped]
        return Layout(
            tuple(self.shape[axis] for axis in kept),
            tuple(self.strides[axis] for axis in kept),
            self.offset,
        )

    def expand_dims(self, axes: SupportsIndex | Sequence[SupportsIndex]) -> Layout:
        """Insert axes of length 1.

        Parameters
        ----------
        axes : int or sequence of int
            Where the new axes stand in the result.

        Returns
        -------
        Layout
            The view.

        Raises
        ------
        AxisError
            If an axis is out of range of the result or named twice.
        """
        count = len(axes) if isinstance(axes, (tuple, list)) else 1
        new = normalize_axes(axes, self.ndim + count, "expand_dims")
        shape, strides = list(self.shape), list(self.strides)
        for axis in sorted(new):
            shape.insert(axis, 1)
            strides.insert(axis, 0)
        return Layout(tuple(shape), tuple(strides), self.offset)

    def slice(self, parts: Sequence[BasicPart]) -> Layout:
        """Pick elements by the basic parts of an index key.

        Parameters
        ----------
        parts : sequence of IntPart, SlicePart, NewAxisPart or KeepPart
            The parts, as :func:`~numr.layout.parse_key` reads them against this shape; axes after
            the last part are kept whole.

        Returns
        -------
        Layout
            The view.

        Raises
        ------
        TypeError
            If a part is an index array or a mask, which no view can follow.
        """
        shape: list[int] = []
        strides: list[int] = []
        offset = self.offset
        axis = 0
        for part in parts:
            if isinstance(part, IntPart):
                offset += self.strides[axis] * part.index
                axis += 1
            elif isinstance(part, SlicePart):
                offset += self.strides[axis] * part.start
                shape.append(part.length)
                strides.append(self.strides[axis] * part.step)
                axis += 1
            elif isinstance(part, KeepPart):
                shape += self.shape[axis : axis + part.count]
                strides += self.strides[axis : axis + part.count]
                axis += part.count
            elif isinstance(part, NewAxisPart):
                shape.append(1)
                strides.append(0)
            else:
                raise TypeError(f"slice: {type(part).__name__} is not part of a basic index key.")
        return Layout((*shape, *self.shape[axis:]), (*strides, *self.strides[axis:]), offset)

    def diagonal(
        self,
        offset: int = 0,
        axis1: SupportsIndex = -2,
        axis2: SupportsIndex = -1,
        *,
        function: str = "diagonal",
    ) -> Layout:
        """Pick the elements whose indices along two axes differ by `offset`.

        Parameters
        ----------
        offset : int
            Index along `axis2` minus index along `axis1`.
        axis1, axis2 : int
            The axes.
        function : str
            Name of the caller, for the error message.

        Returns
        -------
        Layout
            The view: the other axes, then the diagonal, which may be empty.

        Raises
        ------
        AxisError
            If an axis is out of range, or both are the same.
        """
        first = normalize_axis(axis1, self.ndim, function)
        second = normalize_axis(axis2, self.ndim, function)
        if first == second:
            raise AxisError(
                f"{function}: axis1 and axis2 are both axis {first} of shape {self.shape}; a "
                "diagonal needs two axes."
            )
        skip1, skip2 = max(-offset, 0), max(offset, 0)
        length = max(min(self.shape[first] - skip1, self.shape[second] - skip2), 0)
        start = self.offset
        if length:
            start += skip1 * self.strides[first] + skip2 * self.strides[second]
        kept = [axis for axis in range(self.ndim) if axis not in (first, second)]
        return Layout(
            (*(self.shape[axis] for axis in kept), length),
            (
                *(self.strides[axis] for axis in kept),
                self.strides[first] + self.strides[second],
            ),
            start,
        )

    # Fewer axes, same elements

    def collapse(self) -> Layout:
        """Describe the same elements in the same order with as few axes as possible.

        Axes of length 1 are dropped and adjacent axes that are jointly contiguous are merged, so a
        kernel computes fewer indices, and layouts that differ only in such axes become equal. A
        contiguous layout keeps one axis (none if it has one element), and so does an empty one.

        Returns
        -------
        Layout
            The collapsed layout.

        Examples
        --------
        >>> Layout((2, 1, 3, 4), (24, 99, 4, 1)).collapse()
        Layout(shape=(2, 12), strides=(24, 1), offset=0)
        """
        if self.is_contiguous:
            size = self.size
            return Layout((), (), self.offset) if size == 1 else Layout((size,), (1,), self.offset)
        lengths, (strides,) = merge_axes(self.shape, [self.strides])
        return Layout(tuple(lengths), tuple(strides), self.offset)
