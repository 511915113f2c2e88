"""Random host arrays with every kind of layout, and random index keys for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from numr.dtypes import STANDARD_DTYPES

SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple)


@st.composite
def arrays(draw: st.DrawFn, shapes: Any = SHAPES, dtypes: Any = STANDARD_DTYPES) -> np.ndarray:
    """An array of distinct-looking values, viewed through random slices, transposes and broadcasts."""
    shape = draw(shapes)
    dtype = draw(st.sampled_from(dtypes))
    steps = [draw(st.sampled_from([1, 1, 2, -1, -2])) for _ in shape]
    full = tuple(n * abs(step) for n, step in zip(shape, steps, strict=True))
    order = draw(st.permutations(range(len(shape))))
    size = int(np.prod(full, dtype=np.int64))
    values = (np.arange(size) * 7 % 101 - 50).astype(dtype)
    stored = values.reshape(tuple(full[axis] for axis in order))
    unordered = stored.transpose(np.argsort(order)) if shape else stored
    view = unordered[(*(slice(None, None, step) for step in steps), ...)]
    view = view[(*(slice(n) for n in shape), ...)]
    assert view.shape == shape
    return view


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """An index key that is legal for a shape: arrays in it are NumPy arrays."""
    parts: list[Any] = []
    axis = 0
    index_shape = draw(st.sampled_from([(), (1,), (3,), (2, 3), (2, 1), (0,)]))
    masked = False
    while axis < len(shape):
        n = shape[axis]
        kinds = ["slice", "slice", "stop"]
        if n:
            kinds += ["int", "array"]
        if not masked:
            kinds += ["mask"]
        kind = draw(st.sampled_from(kinds))
        if draw(st.integers(0, 5)) == 0:
            parts.append(None)
        if kind == "stop":
            break
        if kind == "slice":
            bound = st.none() | st.integers(-n - 2, n + 2)
            step = draw(st.none() | st.sampled_from([1, 2, -1, -2, 3]))
            parts.append(slice(draw(bound), draw(bound), step))
        elif kind == "int":
            parts.append(draw(st.integers(-n, n - 1)))
        elif kind == "array":
            dtype = draw(st.sampled_from([np.int64, np.int8, np.uint16]))
            low = 0 if np.dtype(dtype).kind == "u" else -n
            count = int(np.prod(index_shape))
            values = draw(st.lists(st.integers(low, n - 1), min_size=count, max_size=count))
            parts.append(np.asarray(values, dtype=dtype).reshape(index_shape))
        else:
            # Only beside index arrays of one place does a mask of any count broadcast.
            span = draw(st.integers(1, len(shape) - axis))
            others = [part for part in parts if isinstance(part, np.ndarray)]
            if any(part.shape not in ((), (1,)) for part in others):
                break
            bits = draw(
                st.lists(
                    st.booleans(),
                    min_size=int(np.prod(shape[axis : axis + span])),
                    max_size=int(np.prod(shape[axis : axis + span])),
                )
            )
            parts.append(np.asarray(bits, dtype=bool).reshape(shape[axis : axis + span]))
            masked = True
            index_shape = (1,)
            axis += span - 1
        axis += 1
    if draw(st.integers(0, 3)) == 0:
        parts.append(...)
    if len(parts) == 1 and draw(st.booleans()):
        return parts[0]
    return tuple(parts)
