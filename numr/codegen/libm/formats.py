"""What the functions share: the layout of a floating-point type, numbers of double length, bit tests.

Nothing here relies on comparisons of NaN, on infinities as constants or on conversions that may trap, since
compilers for GPUs are free with all three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce, wraps
from typing import Final, NamedTuple

from numr.codegen import expr as ex
from numr.codegen.expr import F16, F32, F64, I32, I64, U32, U64, Expr, Scalar

__all__ = [
    "FORMATS",
    "Format",
    "Pair",
    "constant_pair",
    "copysign",
    "fast_two_sum",
    "float_function",
    "format_of",
    "is_finite",
    "is_inf",
    "is_nan",
    "join",
    "less_exact_product",
    "over",
    "plus",
    "polynomial",
    "root",
    "times",
    "two_product",
    "two_sum",
]


@dataclass(frozen=True)
class Format:
    """Layout of a binary floating-point type.

    Parameters
    ----------
    type : Scalar
        The type itself.
    signed, unsigned : Scalar
        Integers of its width.
    precision : int
        Significand bits, the hidden one included.
    bias : int
        Of the exponent.
    """

    type: Scalar
    signed: Scalar
    unsigned: Scalar
    precision: int
    bias: int

    @property
    def mantissa(self) -> int:
        """Stored bits of the significand."""
        return self.precision - 1

    @property
    def sign_bit(self) -> int:
        """Mask of the sign."""
        return 1 << (self.type.bits - 1)

    @property
    def inf_bits(self) -> int:
        """Bit pattern of infinity, which is also the mask of the exponent."""
        return self.sign_bit - (1 << self.mantissa)

    @property
    def inf(self) -> Expr:
        """Infinity."""
        return ex.const_bits(self.inf_bits, self.type)

    @property
    def nan(self) -> Expr:
        """A quiet NaN."""
        return ex.const_bits(self.inf_bits | 1 << (self.mantissa - 1), self.type)

    @property
    def smallest_normal(self) -> float:
        """The least number of full precision."""
        return 2.0 ** (1 - self.bias)

    def number(self, value: float) -> Expr:
        """A constant of the type."""
        return ex.const(value, self.type)

    def constants(self, table: dict[str, tuple[float, ...]]) -> list[Expr]:
        """The parts of a constant or the coefficients of a polynomial."""
        return [self.number(value) for value in table[self.type.name]]

    def bits(self, x: Expr) -> Expr:
        """Bit pattern as a signed integer."""
        return ex.bitcast(x, self.signed)

    def ubits(self, x: Expr) -> Expr:
        """Bit pattern as an unsigned integer."""
        return ex.bitcast(x, self.unsigned)

    def from_bits(self, bits: Expr) -> Expr:
        """The number with a bit pattern."""
        return ex.bitcast(bits, self.type)

    def power_of_two(self, exponent: Expr) -> Expr:
        """``2**exponent`` for a signed integer within the range of normal numbers; outside it is meaningless."""
        return self.from_bits((exponent + self.bias) << self.mantissa)

    def scaled(self, x: Expr, exponent: Expr) -> Expr:
        """``x * 2**exponent``, rounded once, for ``x`` near one and any exponent between over- and underflow.

        Two factors, because the power itself may be out of range where the product is not.
        """
        half = exponent >> 1
        return x * self.power_of_two(half) * self.power_of_two(exponent - half)

    def to_nearest(self, x: Expr, factor: Expr | None = None) -> tuple[Expr, Expr]:
        """The nearest whole number as a float and as a signed integer, for ``abs(x)`` up to 2**(mantissa - 2).

        With a factor it is next to the product; where that is half way between two, either may come out.

        A conversion of NaN could trap or poison what it meets; adding a large number and looking at the bits cannot.
        """
        magic = self.number(1.5 * 2.0**self.mantissa)
        shifted = x + magic if factor is None else ex.product_plus(x, factor, magic)
        return shifted - magic, self.bits(shifted) - self.bits(magic)

    def small_whole(self, k: Expr) -> Expr:
        """A signed integer of the type's width as a float, for at most 2**(mantissa - 2).

        Most processors convert vectors of 32-bit integers only.
        """
        if self.type is F32:
            return ex.cast(k, F32)
        magic = self.number(1.5 * 2.0**self.mantissa)
        return self.from_bits(self.bits(magic) + k) - magic

    def clamped(self, x: Expr, low: float, high: float) -> Expr:
        """``x`` between two bounds. NaN may come out as one of them."""
        return ex.select(x > high, self.number(high), ex.select(x < low, self.number(low), x))


FORMATS: Final = {
    F32: Format(F32, I32, U32, 24, 127),
    F64: Format(F64, I64, U64, 53, 1023),
}


def format_of(x: Expr) -> Format:
    """The format of an expression of type f32 or f64.

    Raises
    ------
    TypeError
        For any other type.
    """
    try:
        return FORMATS[x.type]
    except KeyError:
        raise TypeError(f"{x.type} has no functions of its own: cast it to f32 or f64") from None


def float_function(function: Callable[..., Expr]) -> Callable[..., Expr]:
    """Let a function of f32 and f64 take f16 as well, through f32."""

    @wraps(function)
    def through_f32(*operands: Expr) -> Expr:
        if operands[0].type is F16:
            return ex.cast(function(*(ex.cast(x, F32) for x in operands)), F16)
        return function(*operands)

    return through_f32


def is_nan(x: Expr) -> Expr:
    """Whether a number is NaN, by its bits."""
    if x.type is F16:
        x = ex.cast(x, F32)
    f = format_of(x)
    return (f.ubits(x) & (f.sign_bit - 1)) > f.inf_bits


def is_inf(x: Expr) -> Expr:
    """Whether a number is one of the infinities."""
    if x.type is F16:
        x = ex.cast(x, F32)
    f = format_of(x)
    return ex.eq(f.ubits(x) & (f.sign_bit - 1), f.inf_bits)


def is_finite(x: Expr) -> Expr:
    """Whether a number is neither infinite nor NaN."""
    if x.type is F16:
        x = ex.cast(x, F32)
    f = format_of(x)
    return (f.ubits(x) & (f.sign_bit - 1)) < f.inf_bits


def copysign(magnitude: Expr, sign: Expr) -> Expr:
    """``magnitude`` with the sign bit of ``sign``."""
    f = format_of(magnitude)
    kept = f.ubits(magnitude) & (f.sign_bit - 1)
    return f.from_bits(kept | (f.ubits(sign) & f.sign_bit))


def polynomial(x: Expr, coefficients: Sequence[Expr]) -> Expr:
    """A polynomial by Horner's rule; the lowest coefficient comes first."""
    result = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        result = ex.product_plus(result, x, coefficient)
    return result


class Pair(NamedTuple):
    """The unevaluated sum of two floats: a number of about twice the precision."""

    hi: Expr
    lo: Expr

    def __neg__(self) -> Pair:
        return Pair(-self.hi, -self.lo)


def fast_two_sum(a: Expr, b: Expr) -> Pair:
    """``a + b`` exactly, where ``a`` is zero or not smaller than ``b`` in magnitude."""
    total = a + b
    return Pair(total, b - (total - a))


def two_sum(a: Expr, b: Expr) -> Pair:
    """``a + b`` exactly."""
    total = a + b
    other = total - a
    return Pair(total, (a - (total - other)) + (b - other))


def less_exact_product(a: Expr, x: Expr, y: Expr) -> Pair:
    """``a - x * y``; exactly where the product is exact."""
    total = ex.less_product(a, x, y)
    other = total - a
    return Pair(total, (a - (total - other)) - ex.product_plus(x, y, other))


def _halves(x: Expr) -> tuple[Expr, Expr]:
    # The upper half keeps so few bits that the product of two halves is exact.
    f = format_of(x)
    dropped = (f.precision + 1) // 2
    if x.op == "const":
        assert isinstance(x.value, int)
        kept = ex.const_bits(x.value >> dropped << dropped, f.type)
        return kept, f.number(ex.constant_value(x) - ex.constant_value(kept))
    mask = (1 << f.type.bits) - (1 << dropped)
    upper = f.from_bits(f.ubits(x) & mask)
    return upper, x - upper


def two_product(a: Expr, b: Expr) -> Pair:
    """``a * b`` as a pair: exactly, or but for the last bit of the lower part; no fused multiplication needed."""
    product = a * b
    return Pair(product, ex.with_fma(ex.fma(a, b, -product), _product_rest(a, b, product)))


def _product_rest(a: Expr, b: Expr, product: Expr) -> Expr:
    a1, a2 = _halves(a)
    b1, b2 = (a1, a2) if a is b else _halves(b)
    if a is b:
        cross = a1 * a2
        return ((a1 * a1 - product) + (cross + cross)) + a2 * a2
    return (((a1 * b1 - product) + a1 * b2) + a2 * b1) + a2 * b2


def _is_zero(x: Expr) -> bool:
    return x.op == "const" and x.value == 0


def plus(*terms: Expr) -> Expr:
    """The sum of terms from left to right, without those that are zero constants."""
    counted = [term for term in terms if not _is_zero(term)] or [terms[0]]
    return reduce(lambda total, term: total + term, counted[1:], counted[0])


def _product(a: Expr, b: Expr) -> Expr:
    return a if _is_zero(a) else b if _is_zero(b) else a * b


def join(a: Pair, b: Pair) -> Pair:
    """The sum of two pairs, the first being zero or the larger one."""
    total = fast_two_sum(a.hi, b.hi)
    low = plus(a.lo, b.lo)
    return fast_two_sum(total.hi, total.lo + low)


def times(a: Pair, b: Pair) -> Pair:
    """The product of two pairs."""
    product = two_product(a.hi, b.hi)
    return fast_two_sum(product.hi, product.lo + plus(_product(a.hi, b.lo), _product(a.lo, b.hi)))


def over(a: Pair, b: Pair) -> Pair:
    """The quotient of two pairs."""
    quotient = a.hi / b.hi
    product = two_product(quotient, b.hi)
    rest = ((a.hi - product.hi) - product.lo) + plus(-_product(quotient, b.lo), a.lo)
    return fast_two_sum(quotient, rest / b.hi)


def root(a: Pair) -> Pair:
    """The square root of a pair that is not zero."""
    value = ex.sqrt(a.hi)
    square = two_product(value, value)
    rest = plus((a.hi - square.hi) - square.lo, a.lo)
    return Pair(value, rest / (value + value))


def constant_pair(f: Format, table: dict[str, tuple[float, ...]]) -> Pair:
    """A constant of double length."""
    return Pair(*f.constants(table))
