"""Coefficients and constants of the functions. Written by tools/libm_tables.py; do not edit.

Polynomials have the lowest coefficient first; constants are sums of numbers, the largest first. What each one
approximates is said in the tool.
"""

from __future__ import annotations

from typing import Final

EXP: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.0000000000000p-1"),
        float.fromhex("0x1.5555560000000p-3"),
        float.fromhex("0x1.5554e80000000p-5"),
        float.fromhex("0x1.11114c0000000p-7"),
        float.fromhex("0x1.6d45360000000p-10"),
        float.fromhex("0x1.a073800000000p-13"),
    ),
    "f64": (
        float.fromhex("0x1.0000000000000p-1"),
        float.fromhex("0x1.5555555555557p-3"),
        float.fromhex("0x1.555555555554ep-5"),
        float.fromhex("0x1.1111111110068p-7"),
        float.fromhex("0x1.6c16c16c1a27cp-10"),
        float.fromhex("0x1.a01a01ac28288p-13"),
        float.fromhex("0x1.a01a018fe55fcp-16"),
        float.fromhex("0x1.71de01640505bp-19"),
        float.fromhex("0x1.27e5116eaab50p-22"),
        float.fromhex("0x1.af4f984839892p-26"),
        float.fromhex("0x1.1f19f087877bbp-29"),
    ),
}

SIN: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("-0x1.5555560000000p-3"),
        float.fromhex("0x1.11110e0000000p-7"),
        float.fromhex("-0x1.a013940000000p-13"),
        float.fromhex("0x1.6db80c0000000p-19"),
    ),
    "f64": (
        float.fromhex("-0x1.5555555555555p-3"),
        float.fromhex("0x1.1111111111110p-7"),
        float.fromhex("-0x1.a01a01a019906p-13"),
        float.fromhex("0x1.71de3a545abe2p-19"),
        float.fromhex("-0x1.ae645408eb282p-26"),
        float.fromhex("0x1.6121776de0016p-33"),
        float.fromhex("-0x1.ab136f33443b5p-41"),
    ),
}

COS: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.5555540000000p-5"),
        float.fromhex("-0x1.6c12c80000000p-10"),
        float.fromhex("0x1.9bd2d20000000p-16"),
    ),
    "f64": (
        float.fromhex("0x1.5555555555555p-5"),
        float.fromhex("-0x1.6c16c16c16954p-10"),
        float.fromhex("0x1.a01a019f4a806p-16"),
        float.fromhex("-0x1.27e4fa1295a1dp-22"),
        float.fromhex("0x1.1eeb638e07985p-29"),
        float.fromhex("-0x1.9079db60d1711p-37"),
    ),
}

LOG: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.5555560000000p-1"),
        float.fromhex("0x1.9999ee0000000p-2"),
        float.fromhex("0x1.245b180000000p-2"),
        float.fromhex("0x1.de0dd40000000p-3"),
    ),
    "f64": (
        float.fromhex("0x1.5555555555555p-1"),
        float.fromhex("0x1.9999999999a44p-2"),
        float.fromhex("0x1.2492492474ff7p-2"),
        float.fromhex("0x1.c71c72048240ap-3"),
        float.fromhex("0x1.745cf7b5c2a96p-3"),
        float.fromhex("0x1.3b1c7be880d07p-3"),
        float.fromhex("0x1.0fb742c8b50b8p-3"),
        float.fromhex("0x1.0c4fa6ee679f4p-3"),
    ),
}

LOG_TAIL: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.99999a0000000p-2"),
        float.fromhex("0x1.2492900000000p-2"),
        float.fromhex("0x1.c6bef80000000p-3"),
        float.fromhex("0x1.87ca380000000p-3"),
    ),
    "f64": (
        float.fromhex("0x1.999999999999ap-2"),
        float.fromhex("0x1.249249249252cp-2"),
        float.fromhex("0x1.c71c71c6e771fp-3"),
        float.fromhex("0x1.745d177d61fd7p-3"),
        float.fromhex("0x1.3b1394a980a71p-3"),
        float.fromhex("0x1.1119067605a3bp-3"),
        float.fromhex("0x1.df6fc877239dep-4"),
        float.fromhex("0x1.e0b5848af1c29p-4"),
    ),
}

ATAN: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("-0x1.5555560000000p-2"),
        float.fromhex("0x1.99997a0000000p-3"),
        float.fromhex("-0x1.2489e00000000p-3"),
        float.fromhex("0x1.c573500000000p-4"),
        float.fromhex("-0x1.6103e40000000p-4"),
        float.fromhex("0x1.9c36fe0000000p-5"),
    ),
    "f64": (
        float.fromhex("-0x1.5555555555555p-2"),
        float.fromhex("0x1.999999999994dp-3"),
        float.fromhex("-0x1.249249248d218p-3"),
        float.fromhex("0x1.c71c71c2bc958p-4"),
        float.fromhex("-0x1.745d164fc5a97p-4"),
        float.fromhex("0x1.3b13913c28b0bp-4"),
        float.fromhex("-0x1.110e6acd8d373p-4"),
        float.fromhex("0x1.e1976f884037ep-5"),
        float.fromhex("-0x1.ac670917e4726p-5"),
        float.fromhex("0x1.748463080a01dp-5"),
        float.fromhex("-0x1.1a4d1c58b77f7p-5"),
        float.fromhex("0x1.08d3588dc676ep-6"),
    ),
}

ATAN_TAIL: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("-0x1.24924a0000000p-3"),
        float.fromhex("0x1.c71c700000000p-4"),
        float.fromhex("-0x1.745c340000000p-4"),
        float.fromhex("0x1.3af4520000000p-4"),
        float.fromhex("-0x1.0efc040000000p-4"),
        float.fromhex("0x1.bcb2b20000000p-5"),
        float.fromhex("-0x1.01082a0000000p-5"),
    ),
    "f64": (
        float.fromhex("-0x1.2492492492492p-3"),
        float.fromhex("0x1.c71c71c71c717p-4"),
        float.fromhex("-0x1.745d1745d0fd5p-4"),
        float.fromhex("0x1.3b13b13ad84d3p-4"),
        float.fromhex("-0x1.11111101a4395p-4"),
        float.fromhex("0x1.e1e1dd1a15ceap-5"),
        float.fromhex("-0x1.af27f1a7f30e6p-5"),
        float.fromhex("0x1.86102ca0ac486p-5"),
        float.fromhex("-0x1.63cb3296c7d0fp-5"),
        float.fromhex("0x1.448c54414721bp-5"),
        float.fromhex("-0x1.1d9f64ed4cbeep-5"),
        float.fromhex("0x1.ad22a0f599b54p-6"),
        float.fromhex("-0x1.8640c102cb39fp-7"),
    ),
}

ASIN: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.5555540000000p-3"),
        float.fromhex("0x1.33343e0000000p-4"),
        float.fromhex("0x1.6d58200000000p-5"),
        float.fromhex("0x1.fde1e40000000p-6"),
        float.fromhex("0x1.1767ea0000000p-6"),
        float.fromhex("0x1.154c180000000p-5"),
    ),
    "f64": (
        float.fromhex("0x1.5555555555555p-3"),
        float.fromhex("0x1.3333333333390p-4"),
        float.fromhex("0x1.6db6db6dab344p-5"),
        float.fromhex("0x1.f1c71c7af8102p-6"),
        float.fromhex("0x1.6e8ba1059293bp-6"),
        float.fromhex("0x1.1c4f002ffb055p-6"),
        float.fromhex("0x1.c9903716e3662p-7"),
        float.fromhex("0x1.7b0804b749058p-7"),
        float.fromhex("0x1.3b1cb0697445ep-7"),
        float.fromhex("0x1.325f9907f4c33p-7"),
        float.fromhex("0x1.801d6e7845487p-9"),
        float.fromhex("0x1.44f2c917b107cp-6"),
        float.fromhex("-0x1.41bc7fe20ac77p-6"),
        float.fromhex("0x1.e93a7eb047410p-6"),
    ),
}

SINH: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.5555560000000p-3"),
        float.fromhex("0x1.11111e0000000p-7"),
        float.fromhex("0x1.a008c60000000p-13"),
        float.fromhex("0x1.78b3b80000000p-19"),
    ),
    "f64": (
        float.fromhex("0x1.5555555555555p-3"),
        float.fromhex("0x1.11111111110fdp-7"),
        float.fromhex("0x1.a01a01a01f164p-13"),
        float.fromhex("0x1.71de3a4dda404p-19"),
        float.fromhex("0x1.ae64613b6f748p-26"),
        float.fromhex("0x1.611c9301a8724p-33"),
        float.fromhex("0x1.b41e14ae992e5p-41"),
    ),
}

FIFTH: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.99999a0000000p-3"),
        float.fromhex("-0x1.99999a0000000p-29"),
    ),
    "f64": (
        float.fromhex("0x1.999999999999ap-3"),
        float.fromhex("-0x1.999999999999ap-57"),
    ),
}

HALF_PI: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.921fb60000000p+0"),
        float.fromhex("-0x1.777a5c0000000p-25"),
    ),
    "f64": (
        float.fromhex("0x1.921fb54442d18p+0"),
        float.fromhex("0x1.1a62633145c07p-54"),
    ),
}

INVERSE_QUADRANT: Final[dict[str, tuple[float, ...]]] = {
    "f32": (float.fromhex("0x1.45f3060000000p-1"),),
    "f64": (float.fromhex("0x1.45f306dc9c883p-1"),),
}

LN2: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.62e4000000000p-1"),
        float.fromhex("0x1.7f7d1c0000000p-20"),
    ),
    "f64": (
        float.fromhex("0x1.62e42fefa3800p-1"),
        float.fromhex("0x1.ef35793c76730p-45"),
    ),
}

LN2_PAIR: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.62e4300000000p-1"),
        float.fromhex("-0x1.05c6100000000p-29"),
    ),
    "f64": (
        float.fromhex("0x1.62e42fefa39efp-1"),
        float.fromhex("0x1.abc9e3b39803fp-56"),
    ),
}

LOG10E: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.bcb7b20000000p-2"),
        float.fromhex("-0x1.5b235e0000000p-27"),
    ),
    "f64": (
        float.fromhex("0x1.bcb7b1526e50ep-2"),
        float.fromhex("0x1.95355baaafad3p-57"),
    ),
}

LOG10_2: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.3440000000000p-2"),
        float.fromhex("0x1.3509f80000000p-18"),
    ),
    "f64": (
        float.fromhex("0x1.34413509f7800p-2"),
        float.fromhex("0x1.fef311f12b358p-46"),
    ),
}

LOG2E: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.7154760000000p+0"),
        float.fromhex("0x1.4ae0c00000000p-26"),
    ),
    "f64": (
        float.fromhex("0x1.71547652b82fep+0"),
        float.fromhex("0x1.777d0ffda0d24p-56"),
    ),
}

PI: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.921fb60000000p+1"),
        float.fromhex("-0x1.777a5c0000000p-24"),
    ),
    "f64": (
        float.fromhex("0x1.921fb54442d18p+1"),
        float.fromhex("0x1.1a62633145c07p-53"),
    ),
}

QUADRANT: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.921f000000000p+0"),
        float.fromhex("0x1.6a88000000000p-17"),
        float.fromhex("0x1.0b46000000000p-34"),
        float.fromhex("0x1.1a62640000000p-54"),
    ),
    "f64": (
        float.fromhex("0x1.921fb54400000p+0"),
        float.fromhex("0x1.0b4611a600000p-34"),
        float.fromhex("0x1.3198a2e000000p-69"),
        float.fromhex("0x1.b839a252049c1p-104"),
    ),
}

QUADRANT_FMA: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.921fb60000000p+0"),
        float.fromhex("-0x1.777b000000000p-25"),
        float.fromhex("0x1.4611a60000000p-42"),
    ),
    "f64": (
        float.fromhex("0x1.921fb54442d18p+0"),
        float.fromhex("0x1.1a62633100000p-54"),
        float.fromhex("0x1.1701b839a2520p-88"),
    ),
}

QUARTER_PI: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.921fb60000000p-1"),
        float.fromhex("-0x1.777a5c0000000p-26"),
    ),
    "f64": (
        float.fromhex("0x1.921fb54442d18p-1"),
        float.fromhex("0x1.1a62633145c07p-55"),
    ),
}

THIRD: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.5555560000000p-2"),
        float.fromhex("-0x1.5555560000000p-27"),
    ),
    "f64": (
        float.fromhex("0x1.5555555555555p-2"),
        float.fromhex("0x1.5555555555555p-56"),
    ),
}

THREE_QUARTERS_PI: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.2d97c80000000p+1"),
        float.fromhex("-0x1.99bc5c0000000p-28"),
    ),
    "f64": (
        float.fromhex("0x1.2d97c7f3321d2p+1"),
        float.fromhex("0x1.a79394c9e8a0ap-54"),
    ),
}

TWO_THIRDS: Final[dict[str, tuple[float, ...]]] = {
    "f32": (
        float.fromhex("0x1.5555560000000p-1"),
        float.fromhex("-0x1.5555560000000p-26"),
    ),
    "f64": (
        float.fromhex("0x1.5555555555555p-1"),
        float.fromhex("0x1.5555555555555p-55"),
    ),
}

#: Binary digits of 2/pi after as many zero digits as a word has, in words.
TWO_OVER_PI: Final[dict[str, tuple[int, ...]]] = {
    "f32": (
        0x0,
        0xA2F9836E,
        0x4E441529,
        0xFC2757D1,
        0xF534DDC0,
        0xDB629599,
        0x3C439041,
        0xFE5163AB,
    ),
    "f64": (
        0x0,
        0xA2F9836E4E441529,
        0xFC2757D1F534DDC0,
        0xDB6295993C439041,
        0xFE5163ABDEBBC561,
        0xB7246E3A424DD2E0,
        0x6492EEA09D1921C,
        0xFE1DEB1CB129A73E,
        0xE88235F52EBB4484,
        0xE99C7026B45F7E41,
        0x3991D639835339F4,
        0x9C845F8BBDF9283B,
        0x1FF897FFDE05980F,
        0xEF2F118B5A0A6D1F,
        0x6D367ECF27CB09B7,
        0x4F463F669E5FEA2D,
        0x7527BAC7EBE5F17B,
        0x3D0739F78A5292EA,
        0x6BFB5FB11F8D5D08,
        0x56033046FC7B6BAB,
    ),
}
