"""The numbers that kernels of linear algebra compute with: types, constants and functions of each dtype.

Kernels are written once for all dtypes, in terms of two types: ``E`` for elements and ``R`` for real numbers.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from numr import dtypes as dt
from numr.dtypes import DType
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.pipelines import StorageBuffer

__all__ = ["FAILED", "NOT_FINITE", "STATUS", "SWEEPS", "ZEROS", "arithmetic"]

#: The words in which kernels tell what they met; they only ever grow.
STATUS: Final = StorageBuffer("status", "read_write", "array<atomic<u32>>")
#: Which word is 1 after a failure, where a matrix is not finite, where a singular value is zero; and the first of those
#: that say whether something was rotated in a sweep.
FAILED: Final = 0
NOT_FINITE: Final = 1
ZEROS: Final = 2
SWEEPS: Final = 3

_WORDS: Final = {"FAILED": FAILED, "NOT_FINITE": NOT_FINITE, "ZEROS": ZEROS, "SWEEPS": SWEEPS}

#: What differs between formats. ``scale`` is the exponent that the largest component of a scaled matrix has, and numbers
#: below ``2**-square`` are no sums of squares that anything can be divided by.
_FORMATS: Final[dict[str, dict[str, object]]] = {
    "f32": {
        "suffix": "f",
        "bits": "u32",
        "mantissa": 23,
        "mask": 255,
        "bias": 127,
        "magnitude": "0x7fffffffu",
        "infinite": "0x7f800000u",
        "nan": "0x7fc00000u",
        "barrier": "L",
        "scale": 40,
        "square": 120,
    },
    "f64": {
        "suffix": "lf",
        "bits": "u64",
        "mantissa": 52,
        "mask": 2047,
        "bias": 1023,
        "magnitude": "0x7ffffffffffffffflu",
        "infinite": "0x7ff0000000000000lu",
        "nan": "0x7ff8000000000000lu",
        "barrier": "LD",
        "scale": 300,
        "square": 900,
    },
}

_REAL: Final = """\
alias R = {real};
alias Bits = {bits};
const ZERO: R = 0.0{suffix};
const ONE: R = 1.0{suffix};
const TWO: R = 2.0{suffix};
const EPSILON: R = 0x1p-{mantissa}{suffix};
const BIAS = {bias};
const FAILED = {FAILED}u;
const NOT_FINITE = {NOT_FINITE}u;
const ZEROS = {ZEROS}u;
const SWEEPS = {SWEEPS}u;
const NONFINITE = {mask}u;
const SCALE = {scale};
const NEGLIGIBLE_SQUARE: R = 0x1p-{square}{suffix};
const INFINITE: Bits = {infinite};
fn bits(x: R) -> Bits {{ return bitcast<{bits}>(x); }}
fn magnitude_bits(x: R) -> Bits {{ return bits(x) & {magnitude}; }}
fn exponent(x: R) -> u32 {{ return u32(bits(x) >> {mantissa}u) & {mask}u; }}
fn is_negligible(x: R) -> bool {{ return exponent(x) < u32(BIAS - {square} / 2); }}
fn not_a_number() -> R {{
    var pattern = {nan};
    return bitcast<{real}>(pattern);
}}
fn opaque(x: R) -> R {{ return {barrier}(x); }}
fn power(k: i32) -> R {{
    return bitcast<{real}>(Bits(u32(clamp(k, 1 - BIAS, BIAS) + BIAS)) << {mantissa}u);
}}
fn scaled(x: R, k: i32) -> R {{
    let half = k >> 1u;
    return opaque(x * power(half)) * power(k - half);
}}
"""

_OF_REAL: Final = """\
alias E = R;
fn number(x: R) -> E { return x; }
fn real(x: E) -> R { return x; }
fn conj(x: E) -> E { return x; }
fn mul(x: E, y: E) -> E { return x * y; }
fn square(x: E) -> R { return x * x; }
fn modulus(x: E) -> R { return abs(x); }
fn size(x: E) -> R { return abs(x); }
fn quotient(x: E, y: E) -> E { return x / y; }
fn direction(x: E, r: R) -> E { return select(ONE, -ONE, x < ZERO); }
fn scaled_element(x: E, k: i32) -> E { return scaled(x, k); }
fn largest_exponent(x: E) -> u32 { return exponent(x); }
"""

_OF_COMPLEX: Final = """\
alias E = vec2<R>;
fn number(x: R) -> E { return E(x, ZERO); }
fn real(x: E) -> R { return x.x; }
fn conj(x: E) -> E { return E(x.x, -x.y); }
fn mul(x: E, y: E) -> E { return E(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x); }
fn square(x: E) -> R { return x.x * x.x + x.y * x.y; }
fn modulus(x: E) -> R { return sqrt(square(x)); }
fn size(x: E) -> R { return abs(x.x) + abs(x.y); }
fn largest_exponent(x: E) -> u32 { return max(exponent(x.x), exponent(x.y)); }
fn scaled_element(x: E, k: i32) -> E { return E(scaled(x.x, k), scaled(x.y, k)); }
fn quotient(x: E, y: E) -> E {
    // Both are scaled so that the divisor is next to one.
    let k = BIAS - i32(largest_exponent(y));
    let divisor = scaled_element(y, k);
    return mul(scaled_element(x, k), conj(divisor)) / square(divisor);
}
fn direction(x: E, r: R) -> E {
    if (exponent(r) == 0u) { return number(ONE); }
    return x / r;
}
"""

_PRODUCTS: Final = {
    "real": "fn plus(t: E, x: E, y: E) -> E { return t + x * y; }\n",
    "real fma": "fn plus(t: E, x: E, y: E) -> E { return fma(x, y, t); }\n",
    "complex": "fn plus(t: E, x: E, y: E) -> E { return t + mul(x, y); }\n",
    # One instruction for two on every GPU, which not every compiler makes of them.
    "complex fma": (
        "fn plus(t: E, x: E, y: E) -> E {\n"
        "    return E(fma(-x.y, y.y, fma(x.x, y.x, t.x)), fma(x.y, y.x, fma(x.x, y.y, t.y)));\n"
        "}\n"
    ),
}


@cache
def arithmetic(dtype: DType) -> str:
    """Types, constants and functions of a dtype's elements, in a kernel with :class:`Parameters`.

    ``plus(t, x, y)`` is ``t + x y`` and ``minus`` ``t - x y``; ``size`` bounds the modulus as a sum of absolute values;
    ``direction(x, r)`` is ``x`` over its modulus ``r``, and 1 for 0. ``scaled(x, k)`` is ``x`` times ``2**k``.
    In a matrix that was scaled, so that its largest component has the exponent ``SCALE``, no sum of squares overflows,
    and numbers are negligible whose square, ``NEGLIGIBLE_SQUARE`` or less, might underflow.
    Comparisons that NaN must pass in one way are of bits: compilers turn those of numbers round.
    """
    real = dt.real_of(dtype)
    scalar = texts.scalar_type(real)
    kind = "complex" if dtype.kind == "c" else "real"
    types = frozenset({scalar, "u64"} if scalar == "f64" else {scalar})
    return (
        texts.prelude(types)
        + _REAL.format(real=scalar, **_FORMATS[scalar], **_WORDS)
        + (_OF_COMPLEX if kind == "complex" else _OF_REAL)
        + _PRODUCTS[f"{kind} fma" if scalar == "f32" else kind]
        + "fn minus(t: E, x: E, y: E) -> E { return plus(t, -x, y); }\n"
    )
