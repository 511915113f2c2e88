"""Exact results of the elementwise operations, from mpmath, fractions and Python's integers.

A real result is an ``mpf`` (of enough precision that its own error does not show), a ``Fraction``, an ``int``, a ``bool``
or an infinite or NaN ``float``; a complex one an ``mpc``. Operands are finite Python numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import mp, mpc, mpf

Function = Callable[..., Any]

#: Bits that two evaluations of a reference must agree to, relative to the result.
_AGREE = 90


def converged(function: Function, *operands: mpf | mpc) -> Any:
    """``function`` evaluated with more and more precision until two results agree.

    mpmath guards most functions against cancellation, but not all of them at all arguments: a result that does not
    change when the precision is doubled needs no trust in that. The first precision already holds the sum of
    one and of the squares of the operands, where what is small could otherwise be lost twice.
    """
    parts = [part for x in operands for part in (x.real, x.imag) if part]
    precision = 160 + 2 * max(abs(mp.frexp(part)[1]) for part in parts)
    previous = None
    while precision < 40000:
        with mp.workprec(precision):
            value = function(*operands)
            if isinstance(value, float):
                return value
            if previous is not None and abs(value - previous) <= abs(value) * mpf(2) ** -_AGREE:
                return value
        previous = value
        precision += precision // 4 + 64
    raise ArithmeticError(f"the reference of {function} at {operands} does not converge")


def _within(function: Function, low: float, high: float) -> Function:
    return lambda x: function(x) if low <= x <= high else math.nan


def _pow(x: mpf, y: mpf) -> Any:
    if x < 0 and y != int(y):
        return math.nan
    # A power that no dtype holds has more digits than mpmath should be asked for.
    if abs(y * mp.log(abs(x))) > 1e6:
        sign = -1 if x < 0 and int(y) % 2 else 1
        return mpf(sign) * mp.exp(mp.sign(y * mp.log(abs(x))) * 1e6)
    return x**y


def _logaddexp(x: mpf, y: mpf) -> mpf:
    return max(x, y) + mp.log1p(mp.exp(-abs(x - y)))


#: Functions that mpmath evaluates; all operands are mpf.
TRANSCENDENTAL: dict[str, Function] = {
    "acos": _within(mp.acos, -1, 1),
    "acosh": _within(mp.acosh, 1, math.inf),
    "asin": _within(mp.asin, -1, 1),
    "asinh": mp.asinh,
    "atan": mp.atan,
    "atan2": mp.atan2,
    "atanh": lambda x: (
        mp.atanh(x) if abs(x) < 1 else math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    ),
    "cos": mp.cos,
    "cosh": lambda x: mp.cosh(_bounded(x)),
    "exp": lambda x: mp.exp(_bounded(x)),
    "expm1": lambda x: mp.expm1(_bounded(x)),
    "hypot": mp.hypot,
    "log": lambda x: mp.log(x) if x > 0 else math.nan,
    "log10": lambda x: mp.log10(x) if x > 0 else math.nan,
    "log1p": lambda x: mp.log1p(x) if x > -1 else -math.inf if x == -1 else math.nan,
    "log2": lambda x: mp.log(x, 2) if x > 0 else math.nan,
    "logaddexp": _logaddexp,
    "pow": _pow,
    "sin": mp.sin,
    "sinh": lambda x: mp.sinh(_bounded(x)),
    "sqrt": lambda x: mp.sqrt(x) if x >= 0 else math.nan,
    "tan": mp.tan,
    "tanh": lambda x: mp.tanh(_bounded(x)),
}


def _bounded(x: mpf) -> mpf:
    # Where every dtype over- or underflows; mpmath would compute millions of digits.
    return max(min(x, mpf(10) ** 6), -(mpf(10) ** 6))


def _nextafter(dtype: np.dtype[Any], x: float, y: float) -> Any:
    # Neighbouring floats of one sign have neighbouring bit patterns.
    if x == y:
        return Fraction(y)
    signed = np.dtype(f"i{dtype.itemsize}")
    if x == 0:
        return math.copysign(1, y) * Fraction(float(np.ones(1, signed).view(dtype)[0]))
    bits = np.asarray([x], dtype).view(signed)
    step = 1 if (x < y) == (x > 0) else -1
    value = float((bits + signed.type(step)).view(dtype)[0])
    return value if math.isinf(value) else Fraction(value)


def _round_half_even(x: Fraction) -> int:
    return round(x)


#: Functions that are exact on rational numbers, or round one.
RATIONAL: dict[str, Function] = {
    "abs": abs,
    "add": operator.add,
    "ceil": math.ceil,
    "clip": lambda x, low, high: min(max(x, low), high),
    "conj": lambda x: x,
    "copysign": lambda x, y: abs(x) if y > 0 else -abs(x),
    "divide": operator.truediv,
    "equal": operator.eq,
    "floor": math.floor,
    "floor_divide": operator.floordiv,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "imag": lambda _: Fraction(0),
    "isfinite": lambda _: True,
    "isinf": lambda _: False,
    "isnan": lambda _: False,
    "less": operator.lt,
    "less_equal": operator.le,
    "maximum": max,
    "minimum": min,
    "multiply": operator.mul,
    "negative": operator.neg,
    "not_equal": operator.ne,
    "positive": lambda x: x,
    "real": lambda x: x,
    "reciprocal": lambda x: 1 / x,
    "remainder": operator.mod,
    "round": _round_half_even,
    "sign": lambda x: (x > 0) - (x < 0),
    "signbit": lambda x: x < 0,
    "square": lambda x: x * x,
    "subtract": operator.sub,
    "trunc": math.trunc,
}


def of_floats(op: str, dtype: np.dtype[Any], *operands: float) -> Any:
    """The exact result of a real floating-point operation on finite, nonzero numbers."""
    if op == "nextafter":
        return _nextafter(dtype, *operands)
    if op in RATIONAL:
        return RATIONAL[op](*map(Fraction, operands))
    return converged(TRANSCENDENTAL[op], *map(mpf, operands))


def _bounded_exponent(function: Function) -> Function:
    def bounded(z: mpc) -> mpc:
        return function(mpc(_bounded(z.real), z.imag))

    return bounded


def _turned(function: Function) -> Function:
    """The circular function of a hyperbolic one: both are bounded in the same component."""
    return lambda z: function(z) if abs(z.imag) < 1e6 else function(mpc(z.real, _bounded(z.imag)))


def _asinh(z: mpc) -> mpc:
    # mpmath's inverse functions give 0 for components near the smallest numbers; these definitions only cancel,
    # which more precision cures.
    if z.real < 0:
        return -_asinh(-z)
    return mp.log(z + mp.sqrt(z * z + 1))


def _asin(z: mpc) -> mpc:
    return -1j * _asinh(1j * z)


def _acosh(z: mpc) -> mpc:
    return mp.log(z + mp.sqrt(z + 1) * mp.sqrt(z - 1))


def _atanh(z: mpc) -> mpc:
    return (mp.log(1 + z) - mp.log(1 - z)) / 2


def _round_parts(z: mpc) -> mpc:
    return mpc(round(Fraction(float(z.real))), round(Fraction(float(z.imag))))


def _complex_pow(x: mpc, y: mpc) -> mpc:
    return mp.exp(_bounded_parts(y * mp.log(x)))


def _bounded_parts(z: mpc) -> mpc:
    return mpc(_bounded(z.real), z.imag)


#: Complex functions; all operands are mpc.
COMPLEX: dict[str, Function] = {
    "abs": abs,
    "acos": lambda z: mp.pi / 2 - _asin(z),
    "acosh": _acosh,
    "add": operator.add,
    "asin": _asin,
    "asinh": _asinh,
    "atan": lambda z: -1j * _atanh(1j * z),
    "atanh": _atanh,
    "conj": mp.conj,
    "cos": _turned(mp.cos),
    "cosh": _bounded_exponent(mp.cosh),
    "divide": operator.truediv,
    "equal": operator.eq,
    "exp": _bounded_exponent(mp.exp),
    "expm1": _bounded_exponent(lambda z: mp.exp(z) - 1),
    "imag": lambda z: z.imag,
    "isfinite": lambda _: True,
    "isinf": lambda _: False,
    "isnan": lambda _: False,
    "log": mp.log,
    "log10": lambda z: mp.log(z) / mp.log(10),
    "log1p": lambda z: mp.log(1 + z),
    "log2": lambda z: mp.log(z) / mp.log(2),
    "multiply": operator.mul,
    "negative": operator.neg,
    "not_equal": operator.ne,
    "positive": lambda z: z,
    "pow": _complex_pow,
    "real": lambda z: z.real,
    "reciprocal": lambda z: 1 / z,
    "round": _round_parts,
    "sign": lambda z: z / abs(z),
    "sin": _turned(mp.sin),
    "sinh": _bounded_exponent(mp.sinh),
    "sqrt": mp.sqrt,
    "square": lambda z: z * z,
    "subtract": operator.sub,
    "tan": _turned(mp.tan),
    "tanh": _bounded_exponent(mp.tanh),
}


def of_complex(op: str, *operands: complex) -> Any:
    """The exact result of a complex operation on finite numbers with nonzero components."""
    exact = [mpc(z.real, z.imag) for z in operands]
    value = COMPLEX[op](*exact)
    return value if isinstance(value, bool) else converged(COMPLEX[op], *exact)


def _shift_left(x: int, count: int) -> int:
    return x << count if 0 <= count < 64 else 0


def _shift_right(x: int, count: int) -> int:
    # A negative count counts as a large one.
    return x >> (count if 0 <= count < 64 else 64)


def _truncated_power(x: int, y: int) -> int:
    if y >= 0:
        return pow(x, y, 1 << 64)
    # Of a negative exponent only the bases 1 and -1 have an integer power; all others tend to zero.
    return x ** (y % 2) if abs(x) == 1 else 0


#: Integer operations on Python's integers; a result is taken modulo the width of the dtype.
INTEGER: dict[str, Function] = {
    **RATIONAL,
    "bitwise_and": operator.and_,
    "bitwise_invert": operator.invert,
    "bitwise_left_shift": _shift_left,
    "bitwise_or": operator.or_,
    "bitwise_right_shift": _shift_right,
    "bitwise_xor": operator.xor,
    "floor_divide": lambda x, y: x // y if y else 0,
    "imag": lambda _: 0,
    "pow": _truncated_power,
    "remainder": lambda x, y: x % y if y else 0,
}


def of_integers(op: str, dtype: np.dtype[Any], *operands: int) -> int | bool:
    """The exact result of an integer operation, wrapped to the dtype; of booleans for the boolean dtype."""
    value = INTEGER[op](*operands)
    if isinstance(value, bool):
        return value
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


BOOLEAN: dict[str, Function] = {
    **INTEGER,
    "bitwise_invert": operator.not_,
    "ceil": lambda x: x,
    "floor": lambda x: x,
    "logical_and": operator.and_,
    "logical_not": operator.not_,
    "logical_or": operator.or_,
    "logical_xor": operator.xor,
    "trunc": lambda x: x,
}
