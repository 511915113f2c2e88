"""Functions beyond the standard that other libraries reach for, written over the same primitives.

They carry NumPy's names and take NumPy's arguments, as far as these make sense on any device. Like all of numr they
read nothing from a device; where a result's length depends on the data, the function's notes say so.
"""

from __future__ import annotations

from numr.array_api.extras.calculus import gradient, interp, trapezoid
from numr.array_api.extras.comparing import allclose, array_equal, isclose
from numr.array_api.extras.contraction import einsum
from numr.array_api.extras.counting import bincount, histogram
from numr.array_api.extras.nan_extremes import nanargmax, nanargmin, nanmax, nanmin
from numr.array_api.extras.nan_reductions import (
    nancumsum,
    nanmean,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)
from numr.array_api.extras.order_statistics import median, nanmedian, nanquantile, quantile
from numr.array_api.extras.padding import pad
from numr.array_api.extras.shaping import diag, ravel, swapaxes, transpose

__all__ = [
    "allclose",
    "array_equal",
    "bincount",
    "diag",
    "einsum",
    "gradient",
    "histogram",
    "interp",
    "isclose",
    "median",
    "nanargmax",
    "nanargmin",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "pad",
    "quantile",
    "ravel",
    "swapaxes",
    "transpose",
    "trapezoid",
]
