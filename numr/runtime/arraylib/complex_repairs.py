"""Repairs of NumPy's elementwise functions of complex numbers.

NumPy's other complex functions are the C library's, which follow the special cases of C99 that the standard repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numr import dtypes as dt
from numr.dtypes import DType
from numr.runtime.arraylib.real_repairs import quiet

Function = Callable[..., Any]


def real(xp: Any, compute: DType) -> Function:
    """A copy: NumPy gives a view of the argument, but an elementwise result shares no memory with it."""
    return lambda z: z.real.copy()


def imag(xp: Any, compute: DType) -> Function:
    """A copy, as for :func:`real`."""
    return lambda z: z.imag.copy()


def divide(xp: Any, compute: DType) -> Function:
    """Quotients at the ends of the range: NumPy's method inverts the divisor and loses the result where that overflows.

    Dividing by numbers near the largest one gives 0, by subnormal numbers infinity or NaN.
    """
    parts = dt.real_of(compute)

    def function(x: Any, y: Any) -> Any:
        result = xp.asarray(xp.true_divide(x, y), dtype=compute)
        # Components are quicker to look at than complex numbers.
        flat = result.ravel(order="K").view(parts)
        finite = xp.count_nonzero(xp.isfinite(flat)) == flat.size
        if finite and not xp.count_nonzero(flat == 0):
            return result
        doubtful = result == 0
        if not finite:
            doubtful |= ~xp.isfinite(result)
        if xp.count_nonzero(doubtful):
            x, y = xp.broadcast_arrays(xp.asarray(x, dtype=compute), xp.asarray(y, dtype=compute))
            result[doubtful] = _recovered(xp, result[doubtful], x[doubtful], y[doubtful])
        return result

    return function


def _recovered(xp: Any, quotient: Any, x: Any, y: Any) -> Any:
    """Quotients that are zero or not finite, corrected where the operands are neither."""
    lost = xp.isfinite(x) & xp.isfinite(y) & (x != 0) & (y != 0)
    if xp.count_nonzero(lost):
        with quiet(xp):
            quotient[lost] = _scaled_quotient(xp, x[lost], y[lost])
    return quotient


def _scaled_quotient(xp: Any, x: Any, y: Any) -> Any:
    """The quotient of numbers whose larger components are brought to about one."""
    x_exponent, y_exponent = _exponent(xp, x), _exponent(xp, y)
    quotient = _shifted(xp, x, -x_exponent) / _shifted(xp, y, -y_exponent)
    return _shifted(xp, quotient, x_exponent - y_exponent)


def _exponent(xp: Any, z: Any) -> Any:
    """Exponent of two of the larger component."""
    return xp.frexp(xp.maximum(xp.abs(z.real), xp.abs(z.imag)))[1]


def _shifted(xp: Any, z: Any, exponent: Any) -> Any:
    """``z * 2**exponent`` without overflow on the way."""
    result = xp.empty_like(z)
    result.real = xp.ldexp(z.real, exponent)
    result.imag = xp.ldexp(z.imag, exponent)
    return result


def reciprocal(xp: Any, compute: DType) -> Function:
    """``1 / z``: NumPy's ``reciprocal`` loses the same results as its division."""
    quotient = divide(xp, compute)
    return lambda z: quotient(1, z)


def pow_complex(xp: Any, compute: DType) -> Function:
    """Powers in single precision: NumPy's are off by as many units as ``x2 * log(x1)`` is large.

    They are computed in double precision instead. For complex128 there is no wider type everywhere.
    """
    power = xp.power
    wide = dt.complex128
    if compute == wide:
        return power  # type: ignore[no-any-return]

    def function(x: Any, y: Any) -> Any:
        if isinstance(y, int | float) and y in _ALGEBRAIC:
            return power(x, y)
        result = power(xp.asarray(x, dtype=wide), xp.asarray(y, dtype=wide))
        with quiet(xp):
            return result.astype(compute)

    return function


#: Exponents for which NumPy multiplies, divides or takes the root.
_ALGEBRAIC = frozenset({-1, 0, 0.5, 1, 2})


def sign(xp: Any, compute: DType) -> Function:
    """``z / abs(z)``: where the modulus over- or underflows NumPy gives 0, or a few digits of the quotient."""
    info = dt.finfo_of(compute)
    smallest = info.smallest_normal / info.eps

    def function(z: Any) -> Any:
        z = xp.asarray(z)
        with quiet(xp):
            modulus = xp.absolute(z)
            result = _divided(xp, z, modulus)
            # NaN passes neither comparison.
            safe = (modulus >= smallest) & (modulus <= info.max)
            if xp.count_nonzero(safe) == safe.size:
                return result
            unsafe = ~safe
            rest = z[unsafe]
            scaled = _shifted(xp, rest, -_exponent(xp, rest))
            # Infinite and NaN components have no exponent; they keep the quotients of the plain division.
            scaled = xp.where(xp.isfinite(rest), scaled, rest)
            signs = _divided(xp, scaled, xp.absolute(scaled))
            result[unsafe] = xp.where(rest == 0, 0, signs)
            return result

    return function


def _divided(xp: Any, z: Any, by: Any) -> Any:
    """A complex by a real array, component by component."""
    result = xp.empty(z.shape, z.dtype)
    result.real = z.real / by
    result.imag = z.imag / by
    return result


def expm1(xp: Any, compute: DType) -> Function:
    """``exp(z) - 1`` away from zero: NumPy's formula for small ``z`` overflows early and lacks the special cases.

    It gives NaN for ``inf + 0j``, ``-inf + inf*j`` or ``nan + 0j``, and a real part of -0 for ``-0 + 0j``.
    """

    def function(z: Any) -> Any:
        z = xp.asarray(z)
        with quiet(xp):
            result = xp.asarray(xp.expm1(z))
            result.real += 0  # turns -0.0 into 0.0
            far = ~(xp.abs(z.real) <= 1)
            if xp.count_nonzero(far):
                power = xp.exp(z[far])
                power.real -= 1
                result[far] = power
            return result

    return function


def log1p(xp: Any, compute: DType) -> Function:
    """``log(1 + z)`` near zero: NumPy rounds ``1 + z`` first and loses the real part of a small ``z``."""
    info = dt.finfo_of(compute)

    def function(z: Any) -> Any:
        z = xp.asarray(z)
        a, b = z.real, z.imag
        with quiet(xp):
            result = xp.empty(z.shape, compute)
            # |1 + z|**2 - 1 cancels only where the imaginary part of the result outweighs what is lost.
            excess = a * (a + 2) + b * b
            result.real = xp.log1p(excess) / 2
            result.imag = xp.arctan2(b, a + 1)
            # Towards the pole at -1 the sum 1 + a is exact, far out its rounding does not matter.
            other = ~((excess > -0.5) & (excess <= info.max))
            if xp.count_nonzero(other):
                shifted = z[other]
                shifted.real += 1
                result[other] = xp.log(shifted)
            return result

    return function


def tanh(xp: Any, compute: DType) -> Function:
    """Zeros beside an infinite real part: NumPy gives them the sign of ``sin(2 * b)``, the standard that of ``b``."""

    def function(z: Any) -> Any:
        with quiet(xp):
            return _with_zeros(xp, xp.asarray(xp.tanh(z)), "imag", z.real, z.imag)

    return function


def tan(xp: Any, compute: DType) -> Function:
    """Zeros beside an infinite imaginary part, as for :func:`tanh`: the tangent is ``-1j * tanh(1j * z)``."""

    def function(z: Any) -> Any:
        with quiet(xp):
            return _with_zeros(xp, xp.asarray(xp.tan(z)), "real", z.imag, z.real)

    return function


def _with_zeros(xp: Any, result: Any, part: str, unbounded: Any, other: Any) -> Any:
    """``result`` with zeros of ``other``'s sign in one component where ``unbounded`` is infinite and ``other`` finite."""
    infinite = xp.isinf(unbounded)
    if xp.count_nonzero(infinite):
        zero = infinite & xp.isfinite(other)
        setattr(result, part, xp.where(zero, xp.copysign(0, other), getattr(result, part)))
    return result
