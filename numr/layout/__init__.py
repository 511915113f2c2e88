"""Where the elements of an array lie, and how shapes, axes and index keys are read.

Pure integer arithmetic: nothing here knows a device, a dtype or a memory handle. ``axes`` reads
axes and shapes as users write them, ``broadcasting`` joins shapes, ``layout`` is the class with its
views (``strides`` holds their arithmetic, ``collapse`` what several layouts share), ``keys`` reads
index keys and ``plan`` says how an index key is carried out.
"""

from __future__ import annotations

from numr.layout.axes import (
    MAX_SIZE,
    infer_reshape,
    normalize_axes,
    normalize_axis,
    normalize_shape,
)
from numr.layout.broadcasting import broadcast_shapes
from numr.layout.collapse import collapse_together
from numr.layout.keys import (
    AdvancedPart,
    ArrayPart,
    BasicPart,
    IntPart,
    KeepPart,
    MaskPart,
    NewAxisPart,
    Part,
    SlicePart,
    parse_key,
)
from numr.layout.layout import Layout
from numr.layout.plan import IndexPlan, broadcast_index_shapes, split_key
from numr.layout.strides import contiguous_strides

__all__ = [
    "MAX_SIZE",
    "AdvancedPart",
    "ArrayPart",
    "BasicPart",
    "IndexPlan",
    "IntPart",
    "KeepPart",
    "Layout",
    "MaskPart",
    "NewAxisPart",
    "Part",
    "SlicePart",
    "broadcast_index_shapes",
    "broadcast_shapes",
    "collapse_together",
    "contiguous_strides",
    "infer_reshape",
    "normalize_axes",
    "normalize_axis",
    "normalize_shape",
    "parse_key",
    "split_key",
]
