"""Powers: ``exp(y * log(x))`` with a logarithm of double length."""

from __future__ import annotations

from numr.codegen import expr as ex
from numr.codegen.expr import Expr
from numr.codegen.libm.exponential import clamp, exp_of_pair
from numr.codegen.libm.formats import (
    copysign,
    float_function,
    format_of,
    is_inf,
    is_nan,
    two_product,
)
from numr.codegen.libm.logarithmic import natural_log_pair

__all__ = ["pow"]


@float_function
def pow(x: Expr, y: Expr) -> Expr:
    """``x**y``; 1 for a zero exponent and for the base 1 whatever the other operand is."""
    f = format_of(x)
    one, zero = f.number(1.0), f.number(0.0)
    a = ex.absolute(x)
    # A larger exponent gives 0, 1 or infinity just as well.
    limit = 2.0 ** (f.precision + 12)
    exponent = f.clamped(y, -limit, limit)
    logarithm = natural_log_pair(f, a)
    product = two_product(exponent, logarithm.hi)
    bounded = clamp(f, product.hi)
    low = ex.select(ex.eq(bounded, product.hi), product.lo + exponent * logarithm.lo, zero)
    value = exp_of_pair(f, bounded, low)

    extreme = ex.eq(a, 0.0) | is_inf(x)
    grows = ~ex.eq(y > 0.0, ex.eq(a, 0.0))
    value = ex.select(extreme, ex.select(grows, f.inf, zero), value)
    whole = ex.eq(ex.trunc(y), y)
    half = 0.5 * y
    odd = whole & ~ex.eq(ex.trunc(half), half)
    value = ex.select(odd, copysign(value, x), value)
    value = ex.select((x < 0.0) & ~whole & ~extreme, f.nan, value)
    value = ex.select(is_nan(x) | is_nan(y), f.nan, value)
    return ex.select(ex.eq(y, 0.0) | ex.eq(x, 1.0), one, value)
