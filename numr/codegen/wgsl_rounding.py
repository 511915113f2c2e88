"""Quotients and square roots of f32 in WGSL: rounded as IEEE 754 says, or nearly so.

WebGPU allows a device errors of a few units in the last place, and none of the results is sure for divisors above
2**126; processors make use of both. What is right but for these units is enough inside the functions of
:mod:`numr.codegen.libm`. Quotients and roots themselves are corrected. The correction is made
in integers: what is left when the approximate result is multiplied back is small, so that 32 bits of the products hold
all of it. No float takes part but the approximation, so that neither simplifying compilers nor devices without
subnormal numbers change the result.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["rounding"]

_CALLED: Final = re.compile(r"\b(?:about|divided|rooted)\(")

#: Of devices whose operators round correctly.
_OWN: Final = """\
fn about(x: f32, y: f32) -> f32 { return x / y; }
fn divided(x: f32, y: f32) -> f32 { return x / y; }
fn rooted(x: f32) -> f32 { return sqrt(x); }
"""

# A finite number is a significand of 24 bits, the first of them set, times a power of two; `a` and `b` are significands,
# `e` and `h` exponents. In units of the last place of the result `q` is an integer next to it, and `rest` tells how far
# away it is. There are no loops and few branches: many of these stand in one kernel.
_CORRECTED: Final = """\
fn about(x: f32, y: f32) -> f32 {
    // Large divisors are made smaller by their exponent, which compilers do not see through.
    let v = bitcast<u32>(y);
    let large = (v & 0x7fffffffu) - 0x74000000u < 0xb800000u;
    let divisor = bitcast<f32>(v - select(0u, 0xc000000u, large));
    return x / divisor * select(1.0f, 0x1p-24f, large);
}
fn divided(x: f32, y: f32) -> f32 {
    let sign = (bitcast<u32>(x) ^ bitcast<u32>(y)) & 0x80000000u;
    let u = bitcast<u32>(x) & 0x7fffffffu;
    let v = bitcast<u32>(y) & 0x7fffffffu;
    let u_shift = select(0u, countLeadingZeros(u) - 8u, u < 0x800000u);
    let v_shift = select(0u, countLeadingZeros(v) - 8u, v < 0x800000u);
    let a = ((u << u_shift) & 0x7fffffu) | 0x800000u;
    let b = ((v << v_shift) & 0x7fffffu) | 0x800000u;
    let less = a < b;
    let u_exponent = select(i32(u >> 23u), 1 - i32(u_shift), u_shift != 0u);
    let v_exponent = select(i32(v >> 23u), 1 - i32(v_shift), v_shift != 0u);
    let e = u_exponent - v_exponent + select(127, 126, less);
    let near = bitcast<f32>(a | 0x3f000000u) / bitcast<f32>(b | 0x3f000000u);
    var q = i32(near * select(8388608.0f, 16777216.0f, less));
    var rest = i32((a << select(23u, 24u, less)) - u32(q) * b);
    let units = i32(f32(rest) / f32(b));
    rest -= units * i32(b);
    let unit = select(0, 1, 2 * rest > i32(b)) - select(0, 1, 2 * rest < -i32(b));
    rest -= unit * i32(b);
    q += units + unit;
    var size = min((u32(e - 1) << 23u) + u32(q), 0x7f800000u);
    if (e < 1) {
        // Below the normal numbers bits are dropped; two more tell on which side of q the quotient is.
        let longer = u32((q << 2u) + select(0, 1, rest > 0) - select(0, 1, rest < 0));
        let dropped = u32(min(1 - e, 25)) + 2u;
        let half = 1u << (dropped - 1u);
        let lost = longer & (2u * half - 1u);
        let kept = longer >> dropped;
        let up = lost > half || (lost == half && (kept & 1u) == 1u);
        size = kept + select(0u, 1u, up);
    }
    size = select(size, 0u, u == 0u || v == 0x7f800000u);
    size = select(size, 0x7f800000u, u == 0x7f800000u || v == 0u);
    let undefined = u > 0x7f800000u || v > 0x7f800000u || (u == v && (u == 0u || u == 0x7f800000u));
    return bitcast<f32>(sign | select(size, 0x7fc00000u, undefined));
}
fn rooted(x: f32) -> f32 {
    let u = bitcast<u32>(x);
    let shift = select(0u, countLeadingZeros(u) - 8u, u < 0x800000u);
    let a = (u << shift) & 0x7fffffu;
    let e = select(i32(u >> 23u), 1 - i32(shift), shift != 0u);
    // An even exponent, and a significand between 1 and 4.
    let odd = (e & 1) == 0;
    let h = (e + select(127, 126, odd)) >> 1u;
    let near = sqrt(bitcast<f32>(a | select(0x3f800000u, 0x40000000u, odd)));
    var q = i32(near * 8388608.0f);
    var rest = i32(((a | 0x800000u) << select(23u, 24u, odd)) - u32(q) * u32(q));
    let units = i32(f32(rest) / f32(2 * q));
    rest -= units * (2 * q + units);
    q += units;
    q += select(0, 1, rest > q) - select(0, 1, rest <= -q);
    let size = (u32(h - 1) << 23u) + u32(q);
    let kept = (u & 0x7fffffffu) == 0u || u == 0x7f800000u;
    return bitcast<f32>(select(select(size, 0x7fc00000u, u > 0x7f800000u), u, kept));
}
"""


def rounding(text: str, *, exact: bool) -> str:
    """The functions ``about``, ``divided`` and ``rooted`` for a module, which the text of expressions calls.

    Parameters
    ----------
    text : str
        The module; nothing is added where it calls none.
    exact : bool
        Whether the device's own quotients and roots are correctly rounded.
    """
    if not _CALLED.search(text):
        return ""
    return _OWN if exact else _CORRECTED
