"""Rows of the op table for real floating-point numbers of 32 and 64 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from numr.codegen import expr as ex
from numr.codegen import libm
from numr.codegen.expr import U32, Expr
from numr.codegen.libm.formats import Format, format_of, is_finite, is_inf, is_nan, two_product

__all__ = ["FLOAT", "nextafter_half"]

Row = Callable[..., Expr]


def _nan_of(x: Expr, y: Expr, otherwise: Expr) -> Expr:
    """``otherwise``, unless an operand is NaN."""
    return ex.select(is_nan(x), x, ex.select(is_nan(y), y, otherwise))


def _sign(x: Expr) -> Expr:
    f = format_of(x)
    sign = ex.select(x < 0.0, f.number(-1.0), f.number(0.0))
    return ex.select(is_nan(x), x, ex.select(x > 0.0, f.number(1.0), sign))


def _signbit(x: Expr) -> Expr:
    return format_of(x).bits(x) < 0


def _nextafter(x: Expr, y: Expr) -> Expr:
    f = format_of(x)
    # Neighbouring numbers of one sign have neighbouring bit patterns.
    grows = ex.eq(x < y, x > 0.0)
    bits = f.bits(x)
    step = ex.select(grows, ex.const(1, f.signed), ex.const(-1, f.signed))
    moved = f.from_bits(bits + step)
    smallest = libm.copysign(ex.const_bits(1, f.type), y)
    result = ex.select(ex.eq(x, 0.0), smallest, moved)
    return _nan_of(x, y, ex.select(ex.eq(x, y), y, result))


def nextafter_half(x: Expr, y: Expr) -> Expr:
    """The neighbour of a float16 number towards another, both given in f32, as f32.

    From 2**-14 on a float16 number is one of f32 whose last 13 bits are zero, below it the spacing is fixed.
    """
    f = format_of(x)
    least = 2.0**-24
    a = ex.absolute(x)
    grows = ex.eq(x < y, x > 0.0)
    bits = f.bits(a)
    step = 1 << 13
    up = ex.select(a < 2.0**-14, a + least, f.from_bits(bits + step))
    down = ex.select(a <= 2.0**-14, a - least, f.from_bits(bits - step))
    largest = f.number(65504.0)
    up = ex.select(a >= largest, f.inf, up)
    down = ex.select(is_inf(x), largest, down)
    moved = libm.copysign(ex.select(grows, up, down), x)
    result = ex.select(ex.eq(x, 0.0), libm.copysign(f.number(least), y), moved)
    return _nan_of(x, y, ex.select(ex.eq(x, y), y, result))


def _modular_product(a: Expr, b: Expr, modulus: Expr, digits: int) -> Expr:
    """``a * b`` modulo an unsigned integer; all have at most ``digits`` digits."""
    chunk = a.type.bits - digits - 1
    count = -(-digits // chunk)
    total: Expr | None = None
    for i in reversed(range(count)):
        part = a * ((b >> (i * chunk)) & ((1 << chunk) - 1))
        if total is not None:
            part = part + (total << chunk)
        total = ex.remainder(part, modulus)
    assert total is not None
    return total


def _fmod(f: Format, x: Expr, y: Expr) -> Expr:
    """``abs(x)`` modulo ``abs(y)``, exactly, for a finite ``x`` and finite ``y`` that is not zero.

    The numbers are integers times powers of two; the power of the quotient is taken modulo the divisor.
    """

    def integer_and_exponent(value: Expr) -> tuple[Expr, Expr]:
        bits = f.ubits(value) & (f.sign_bit - 1)
        exponent = bits >> f.mantissa
        hidden = 1 << f.mantissa
        normal = ex.ne(exponent, 0)
        digits = bits & (hidden - 1)
        return (
            ex.select(normal, digits | hidden, digits),
            ex.select(normal, exponent, ex.const(1, f.unsigned)),
        )

    p = f.precision
    first, x_exponent = integer_and_exponent(x)
    second, y_exponent = integer_and_exponent(y)
    larger = x_exponent >= y_exponent
    shift = ex.select(larger, x_exponent - y_exponent, ex.const(0, f.unsigned))

    free = f.type.bits - p
    near = ex.remainder(first << ex.cast(shift & (f.type.bits - 1), U32), second)
    # 2**shift: as much of it as one word holds, and the rest by squaring.
    squarings = (2 * f.bias + p).bit_length() - (f.type.bits.bit_length() - 1)
    one = ex.const(1, f.unsigned)
    start = ex.cast((shift >> squarings) & (f.type.bits - 1), U32)
    power = ex.remainder(one << start, second)
    for i in reversed(range(squarings)):
        power = _modular_product(power, power, second, p)
        twice = power << 1
        reduced = ex.select(twice >= second, twice - second, twice)
        power = ex.select(ex.ne((shift >> i) & 1, 0), reduced, power)
    far = _modular_product(power, ex.remainder(first, second), second, p)
    rest = ex.rarely(shift > free, far, near)

    exponent = ex.bitcast(y_exponent, f.signed) - (f.bias + f.mantissa)
    value = f.scaled(ex.cast(rest, f.type), exponent)
    return ex.select(larger, value, ex.absolute(x))


def _remainder(x: Expr, y: Expr) -> Expr:
    """As Python's ``%``: with the sign of the divisor."""
    f = format_of(x)
    # An infinite divisor leaves the dividend.
    rest = ex.select(is_inf(y), ex.absolute(x), _fmod(f, x, y))
    other_side = ex.ne(f.bits(x) < 0, f.bits(y) < 0)
    moved = ex.select(other_side, ex.absolute(y) - rest, rest)
    # By the bits: a number that is none does not become zero, where small ones are taken for it.
    is_zero = ex.eq(f.ubits(rest) & (f.sign_bit - 1), 0)
    rest = libm.copysign(ex.select(is_zero, f.number(0.0), moved), y)
    defined = is_finite(x) & ~ex.eq(y, 0.0)
    return _nan_of(x, y, ex.select(defined, rest, f.nan))


def _floor_divide(x: Expr, y: Expr) -> Expr:
    """The quotient rounded down; with zeros and infinities it is that of division."""
    f = format_of(x)
    quotient = x / y
    whole = ex.floor(quotient)
    # A quotient next to a whole number may have been rounded to its other side: what is left tells.
    power = 4 * f.bias // 5
    scale = ex.select(ex.absolute(x) > 1.0, f.number(2.0**-4), f.number(2.0**power))
    divisor = y * scale
    product = two_product(whole, divisor)
    rest = (x * scale - product.hi) - product.lo
    negative = f.bits(y) < 0
    too_large = ex.select(negative, rest > 0.0, rest < 0.0)
    # Only where division is not exactly rounded, as GPUs may have it in f32.
    too_small = ex.select(negative, rest <= divisor, rest >= divisor)
    exact = ex.absolute(whole) < 2.0**f.precision
    change = ex.select(
        too_large, f.number(-1.0), ex.select(too_small, f.number(1.0), f.number(0.0))
    )
    whole = ex.select(exact & (too_large | too_small), whole + change, whole)
    # Smaller dividends: zero or minus one, whatever became of the quotient.
    below = ex.select(ex.ne(f.bits(x) < 0, negative), f.number(-1.0), f.number(0.0))
    smaller = (ex.absolute(x) < ex.absolute(y)) & is_finite(y) & ~ex.eq(x, 0.0)
    plain = is_inf(y) | ex.eq(x, 0.0)
    result = ex.select(smaller, below, ex.select(plain, quotient, whole))
    return _nan_of(x, y, result)


def _maximum(x: Expr, y: Expr) -> Expr:
    return _nan_of(x, y, ex.select(x < y, y, x))


def _minimum(x: Expr, y: Expr) -> Expr:
    return _nan_of(x, y, ex.select(y < x, y, x))


def _itself(x: Expr) -> Expr:
    return x


#: Rows for f32 and f64; f16 is computed in f32.
FLOAT: Final[dict[str, Row]] = {
    **{
        name: getattr(libm, name)
        for name in (
            *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "copysign", "cos"),
            *("cosh", "exp", "expm1", "hypot", "log", "log10", "log1p", "log2", "logaddexp"),
            *("pow", "sin", "sinh", "tan", "tanh"),
        )
    },
    "abs": ex.absolute,
    "add": lambda x, y: x + y,
    "ceil": ex.ceil,
    "clip": lambda x, low, high: _minimum(_maximum(x, low), high),
    "conj": _itself,
    "divide": ex.rounded_quotient,
    "equal": ex.eq,
    "floor": ex.floor,
    "floor_divide": _floor_divide,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "imag": lambda x: ex.const(0.0, x.type),
    "isfinite": is_finite,
    "isinf": is_inf,
    "isnan": is_nan,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "maximum": _maximum,
    "minimum": _minimum,
    "multiply": lambda x, y: x * y,
    "negative": lambda x: -x,
    "nextafter": _nextafter,
    "not_equal": ex.ne,
    "positive": _itself,
    "real": _itself,
    "reciprocal": lambda x: ex.rounded_quotient(1.0, x),
    "remainder": _remainder,
    "round": ex.rint,
    "sign": _sign,
    "signbit": _signbit,
    "sqrt": ex.rounded_root,
    "square": lambda x: x * x,
    "subtract": lambda x, y: x - y,
    "trunc": ex.trunc,
    "where": ex.select,
}
