"""Repairs of NumPy's elementwise functions of integers and real floating-point numbers.

They ask ``count_nonzero`` whether a mask is true anywhere: on small arrays it is several times as fast as ``any``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numr.dtypes import DType

Function = Callable[..., Any]


def itself(xp: Any, compute: DType) -> Function:
    """A copy: NumPy's ``rint`` of integers is floating-point, and ``real`` is a view of its argument."""
    if compute.kind != "b":
        return xp.positive  # type: ignore[no-any-return]
    return lambda x: xp.array(x, dtype=compute)


def zeros(xp: Any, compute: DType) -> Function:
    """The imaginary part of real numbers: NumPy's ``imag`` gives a read-only array."""
    return lambda x: xp.zeros(xp.shape(x), compute)


def pow_signed(xp: Any, compute: DType) -> Function:
    """Integer powers: NumPy raises ValueError for a negative exponent.

    Whether to raise depends on data, which other devices would have to wait for. The result is the exact power
    rounded towards zero instead: 1 and -1 keep their powers, all other bases give 0.
    """
    power = xp.power

    def function(x: Any, y: Any) -> Any:
        negative = y < 0
        if negative is False or not xp.count_nonzero(negative):
            return power(x, y)
        x, y = xp.asarray(x, dtype=compute), xp.asarray(y, dtype=compute)
        odd = (y & 1).astype(bool)
        inverse = xp.where(xp.abs(x) == 1, xp.where(odd, x, 1), 0)
        return xp.where(negative, inverse, power(x, xp.where(negative, 0, y))).astype(compute)

    return function


_NUMBERS = frozenset({int, float})


def pow_float(xp: Any, compute: DType) -> Function:
    """Real powers: NumPy takes the square root for a scalar exponent of 0.5, so -0.0 gives -0.0 and -inf gives NaN."""
    power = xp.power
    inf = compute.type(xp.inf)

    def function(x: Any, y: Any) -> Any:
        if y.__class__ in _NUMBERS and y == 2:
            return xp.square(x)  # many times as quick, and rounded as well
        result = power(x, y)
        half = y == 0.5
        if half is False or not xp.count_nonzero(half):
            return result
        result = xp.asarray(result)
        if half is True:
            result += 0  # turns -0.0 into 0.0
        else:
            xp.copyto(result, 0, where=half & (x == 0))
        infinite = half & (x == -inf)
        if xp.count_nonzero(infinite):
            xp.copyto(result, inf, where=infinite)
        return result

    return function


def floor_divide(xp: Any, compute: DType) -> Function:
    """Quotients with infinities: NumPy gives NaN for ``inf // 2`` and -1.0 for ``1.0 // -inf``, division inf and -0.0."""

    def function(x: Any, y: Any) -> Any:
        infinite = xp.isinf(x) | xp.isinf(y)
        if not xp.count_nonzero(infinite):
            return xp.floor_divide(x, y)
        with quiet(xp):
            return xp.where(infinite, xp.true_divide(x, y), xp.floor_divide(x, y))

    return function


def nextafter(xp: Any, compute: DType) -> Function:
    """Neighbours of zero: NumPy's float16 loop gives the first operand for equal ones, the standard the second."""
    if compute.itemsize != 2:
        return xp.nextafter  # type: ignore[no-any-return]
    return lambda x, y: xp.where(x == y, y, xp.nextafter(x, y)).astype(compute, copy=False)


def quiet(xp: Any) -> Any:
    """No floating-point warnings: a repair may compute what it then replaces."""
    return xp.errstate(all="ignore")
