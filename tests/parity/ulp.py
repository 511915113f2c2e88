"""The accuracy that every elementwise function promises, and how it is measured."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import mp, mpc, mpf

from numr import dtypes as dt

_DTYPES = (dt.float16, dt.float32, dt.float64, dt.complex64, dt.complex128)

# The classes that most rows fall into. A libm result is correctly rounded or almost so in C libraries; the vectorised loops
# that NumPy has for some processors, and those of GPUs, are allowed four units. In float16 the functions are computed in float32
# and rounded. Complex functions are compositions of a few real ones.
_EXACT = (0, 0, 0, 0, 0)
_ROUNDED = (0.5, 0.5, 0.5, None, None)
_LIBM = (1, 4, 4, 4, 4)
_LIBM_REAL = (1, 4, 4, None, None)
_EXACT_REAL = (0, 0, 0, None, None)

#: These hold on all devices but for numbers below the smallest normal one, where a device has none in its arithmetic:
#: ``flushing`` finds out and says what is right then.
#:
#: Largest error in units in the last place, by function, for (float16, float32, float64, complex64, complex128);
#: None outside the function's domain. Complex errors are relative to the modulus of the result: one unit is the
#: spacing of the components' dtype at 1 times the modulus.
BOUNDS: dict[str, tuple[float | None, ...]] = {
    "abs": (0, 0, 0, 2, 2),
    "acos": _LIBM,
    "acosh": _LIBM,
    "add": (0.5, 0.5, 0.5, 0.5, 0.5),
    "asin": _LIBM,
    "asinh": _LIBM,
    "atan": _LIBM,
    "atan2": _LIBM_REAL,
    "atanh": _LIBM,
    "ceil": _EXACT_REAL,
    "clip": _EXACT_REAL,
    "conj": _EXACT,
    "copysign": _EXACT_REAL,
    "cos": _LIBM,
    "cosh": _LIBM,
    "divide": (0.5, 0.5, 0.5, 3, 3),
    "exp": _LIBM,
    "expm1": _LIBM,
    "floor": _EXACT_REAL,
    # As Python's: the quotient is rounded before it is rounded down, which can be one number too low or too high
    # where the quotient needs almost all digits.
    "floor_divide": (1, 2, 2, None, None),
    "hypot": (1, 1, 1, None, None),
    "imag": _EXACT,
    "log": _LIBM,
    "log10": _LIBM,
    "log1p": _LIBM,
    "log2": _LIBM,
    # Relative to the larger operand: near a zero of the result its own last place is beyond the operands' digits.
    "logaddexp": (1, 4, 4, None, None),
    "maximum": _EXACT_REAL,
    "minimum": _EXACT_REAL,
    "multiply": (0.5, 0.5, 0.5, 2, 2),
    "negative": _EXACT,
    "nextafter": _EXACT_REAL,
    "positive": _EXACT,
    # Complex128: more where the exponent is large, see `allowed`.
    "pow": (1, 4, 4, 2, 4),
    "real": _EXACT,
    "reciprocal": (0.5, 0.5, 0.5, 3, 3),
    "remainder": _ROUNDED,
    "round": _EXACT,
    "sign": (0, 0, 0, 3, 3),
    "sin": _LIBM,
    "sinh": _LIBM,
    "sqrt": (0.5, 0.5, 0.5, 2, 2),
    "square": (0.5, 0.5, 0.5, 2, 2),
    "subtract": (0.5, 0.5, 0.5, 0.5, 0.5),
    "tan": _LIBM,
    "tanh": _LIBM,
    "trunc": _EXACT_REAL,
    "where": _EXACT,
}


def allowed(op: str, dtype: np.dtype[Any], operands: tuple[Any, ...]) -> float:
    """The bound of a function in a floating-point dtype, at the given operands."""
    bound = BOUNDS[op][_DTYPES.index(dtype)]
    assert bound is not None, f"{op} has no bound for {dtype}"
    if op == "pow" and dtype == dt.complex128:
        # exp(x2 * log(x1)): the rounding of the product counts as often as the product is large.
        bound += 2 * pow_condition(*operands)
    return bound


def pow_condition(x: complex, y: complex) -> float:
    """How much a relative error of the exponent is magnified in a complex power."""
    with mp.workprec(80):
        return float(abs(mpc(y.real, y.imag) * mp.log(mpc(x.real, x.imag))))


def scale(op: str, operands: tuple[Any, ...]) -> float:
    """What an error is relative to beside the result itself, 0 where that is all."""
    return max(map(abs, operands)) if op == "logaddexp" else 0.0


def spacing(value: Any, dtype: np.dtype[Any]) -> mpf:
    """Distance between neighbouring numbers of a real dtype at ``value``, as if exponents had no upper end."""
    info = np.finfo(dtype)
    exponent = info.minexp if value == 0 else max(mp.frexp(value)[1] - 1, info.minexp)
    return mpf(2) ** (exponent - info.nmant)


def to_mp(value: Any) -> Any:
    """An exact result as a number of mpmath."""
    if isinstance(value, int | Fraction):
        with mp.workprec(2400):
            return mpf(Fraction(value).numerator) / Fraction(value).denominator
    # Not mpf(value) of an mpf: that would round it to the working precision.
    return value if isinstance(value, mpf | mpc) else mpf(value)


def error(
    got: float | complex,
    exact: Any,
    dtype: np.dtype[Any],
    at: float = 0.0,
    *,
    zero_below: float = 0.0,
) -> float:
    """How far a computed number is from the exact one, in units in the last place of its dtype.

    Parameters
    ----------
    got, exact : number
        What was computed, and what is right.
    dtype : dtype
        The dtype of the result.
    at : float
        A number whose last place counts where it is larger than the result.
    zero_below : float
        For results, or components, below this a zero is right too, as on devices without subnormal numbers.
    """
    if isinstance(exact, float) and not math.isfinite(exact):
        same = math.isnan(got.real) if math.isnan(exact) else got == exact
        return 0.0 if same else math.inf
    if isinstance(exact, int | Fraction) and got == exact:
        return 0.0
    exact = to_mp(exact)
    if dtype.kind != "c":
        unit = spacing(max(abs(exact), mpf(at)), dtype)
        return _distance(got.real, exact, unit, dtype, zero_below)
    parts = dt.real_of(dtype)
    with mp.workprec(160):
        modulus = abs(exact)
    if modulus > mpf(float(np.finfo(parts).max)) / 4 and not (
        math.isfinite(got.real) and math.isfinite(got.imag)
    ):
        # The textbook formulas may overflow a little early, and then give NaN in the other component.
        return 0.0
    unit = max(modulus * mpf(float(np.finfo(parts).eps)), spacing(0, parts))
    return math.hypot(
        _distance(got.real, exact.real, unit, parts, zero_below),
        _distance(got.imag, exact.imag, unit, parts, zero_below),
    )


def _distance(got: float, exact: Any, unit: mpf, dtype: np.dtype[Any], zero_below: float) -> float:
    if math.isnan(got):
        return math.inf
    if got == 0 and abs(exact) < zero_below:
        return 0.0
    with mp.workprec(2400):
        if math.isinf(got):
            if got * exact < 0:
                return math.inf
            # Rounding to infinity begins half a unit beyond the largest number.
            missing = mpf(float(np.finfo(dtype).max)) + unit / 2 - abs(exact)
            return max(0.0, float(missing / unit) + 0.5) if missing > 0 else 0.0
        return float(abs(mpf(got) - exact) / unit)
