"""Views of views: where the elements of a view of one array lie in another array of the same shape."""

from __future__ import annotations

from numr.layout.layout import Layout
from numr.layout.strides import contiguous_strides, merge_axes

__all__ = ["compose"]


def compose(view: Layout, inner: Layout) -> Layout | None:
    """The layout that reads from one array what ``view`` reads from a contiguous array of the same shape.

    Parameters
    ----------
    view : Layout
        Of elements of a contiguous array of ``inner.shape``, which lies at offset 0.
    inner : Layout
        Where the other array's elements lie.

    Returns
    -------
    Layout or None
        Of ``view``'s shape; None where no layout does that, as where a reshape would need a copy.

    Examples
    --------
    A row that is broadcast to (2, 3), transposed:

    >>> compose(Layout.contiguous((2, 3)).permute((1, 0)), Layout((2, 3), (0, 1), 5))
    Layout(shape=(3, 2), strides=(1, 0), offset=5)
    >>> compose(Layout((6,), (1,)), Layout((2, 3), (1, 2))) is None
    True
    """
    if 0 in view.shape:
        return Layout(view.shape, (0,) * view.ndim, inner.offset)
    contiguous = contiguous_strides(inner.shape)
    lengths, (steps, strides) = merge_axes(inner.shape, [contiguous, inner.strides])
    # The first element's place on each axis, and how far the view reaches from it.
    rest = view.offset
    low: list[int] = []
    for step in steps:
        place, rest = divmod(rest, step)
        low.append(place)
    if rest:
        return None
    offset = inner.offset + sum(place * stride for place, stride in zip(low, strides, strict=True))
    high = low.copy()
    result: list[int] = []
    for length, stride in zip(view.shape, view.strides, strict=True):
        if length == 1 or stride == 0:
            result.append(0)
            continue
        axis = _axis_of(stride, steps)
        if axis is None:
            return None
        count = stride // steps[axis]
        reach = count * (length - 1)
        low[axis] += min(reach, 0)
        high[axis] += max(reach, 0)
        result.append(count * strides[axis])
    for length, first, last in zip(lengths, low, high, strict=True):
        if first < 0 or last >= length:
            return None
    return Layout(view.shape, tuple(result), offset)


def _axis_of(stride: int, steps: list[int]) -> int | None:
    """The axis along which a stride goes: the one of the largest step that the stride is a multiple of."""
    for axis, step in enumerate(steps):
        if step <= abs(stride):
            return axis if stride % step == 0 else None
    return None
