"""numr's own transcendental functions, as expressions over basic operations.

Each takes expressions of type f32 or f64 (f16 is computed in f32) and gives one of the same type. They need no loop,
no table in memory and no operation beyond :mod:`numr.codegen.expr`; those of f32 use 32-bit types only. Results are
within 2 units in the last place (``pow``: 4), with the special values of the Python array API standard.
"""

from numr.codegen.libm.exponential import cosh, exp, exp2, expm1, sinh, tanh
from numr.codegen.libm.formats import copysign, is_finite, is_inf, is_nan
from numr.codegen.libm.inverse import acos, asin, atan, atan2, hypot
from numr.codegen.libm.logarithmic import (
    acosh,
    asinh,
    atanh,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
)
from numr.codegen.libm.power import pow
from numr.codegen.libm.trigonometric import cos, sin, sin_cos, tan

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "copysign",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "hypot",
    "is_finite",
    "is_inf",
    "is_nan",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "pow",
    "sin",
    "sin_cos",
    "sinh",
    "tan",
    "tanh",
]
