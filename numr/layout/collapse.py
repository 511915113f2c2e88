"""Collapsing several layouts together, for kernels that walk several arrays in step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numr.errors import ShapeError
from numr.layout.layout import Layout
from numr.layout.strides import merge_axes

if TYPE_CHECKING:
    from collections.abc import Sequence


def collapse_together(layouts: Sequence[Layout]) -> tuple[Layout, ...]:
    """Collapse several layouts of one shape, merging only axes that are jointly contiguous in each.

    Parameters
    ----------
    layouts : sequence of Layout
        The layouts, of equal shapes.

    Returns
    -------
    tuple of Layout
        Layouts of one common shape, whose elements correspond as before.

    Raises
    ------
    ShapeError
        If the shapes differ.

    Examples
    --------
    >>> row = Layout((3,), (1,)).broadcast_to((2, 3))
    >>> collapse_together((Layout.contiguous((2, 3)), row))
    (Layout(shape=(2, 3), strides=(3, 1), offset=0), Layout(shape=(2, 3), strides=(0, 1), offset=0))
    """
    if not layouts:
        return ()
    shape = layouts[0].shape
    for layout in layouts:
        if layout.shape != shape:
            raise ShapeError(
                "collapse_together: the layouts must have one shape, not "
                f"{', '.join(str(each.shape) for each in layouts)}."
            )
    # The usual case, and the only one in which a length may be 0.
    if all(layout.is_contiguous for layout in layouts):
        size = layouts[0].size
        flat, step = ((), ()) if size == 1 else ((size,), (1,))
        return tuple(Layout(flat, step, layout.offset) for layout in layouts)
    lengths, strides = merge_axes(shape, [layout.strides for layout in layouts])
    merged = tuple(lengths)
    return tuple(
        Layout(merged, tuple(steps), layout.offset)
        for layout, steps in zip(layouts, strides, strict=True)
    )
