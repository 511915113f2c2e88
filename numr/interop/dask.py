"""What dask.array has to be told to keep chunks on devices.

Importing this module is enough, in the program and in each worker, for example by ``--preload numr.interop.dask``. On
the CPU it is not needed, because there tensors and NumPy's arrays mix.
"""

from __future__ import annotations

import math
from typing import Any

from dask.array.dispatch import numel_lookup

from numr.array_api.following_functions import full_like
from numr.tensor.core import Tensor

__all__ = ["number_of_elements"]


@numel_lookup.register(Tensor)  # type: ignore[untyped-decorator]
def number_of_elements(
    x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, dtype: Any = "f8"
) -> Tensor:
    """How many elements a reduction over axes joins, as a tensor on the device of ``x``.

    dask divides sums by this, and would make an array of NumPy's, which does not mix with tensors on devices.
    """
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    reduced = {index % x.ndim for index in axes}
    lengths = [
        1 if i in reduced else n for i, n in enumerate(x.shape) if keepdims or i not in reduced
    ]
    count = math.prod(x.shape[i] for i in reduced)
    return full_like(x, count, shape=tuple(lengths), dtype=dtype)
