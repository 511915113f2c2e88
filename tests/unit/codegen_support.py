"""Operands and errors for the tests of generated expressions."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpmath import mp, mpf

from numr import dtypes as dt
from numr.codegen import reference
from numr.codegen.elementwise import expression, operand
from numr.codegen.expr import F32, F64, Expr, Scalar
from numr.ir import ops
from numr.ir.ops import Op
from tests.parity.support import anything

Array = np.ndarray[Any, Any]

DTYPES = {F32: np.dtype("float32"), F64: np.dtype("float64")}
WORDS = {F32: np.dtype("uint32"), F64: np.dtype("uint64")}

#: Whether long double has the digits to judge float64 results.
WIDE = np.finfo(np.longdouble).eps < 2.0**-62


def sweep(type: Scalar, seed: int, count: int = 1500, points: tuple[float, ...] = ()) -> Array:
    """Numbers of a type: over all exponents with subnormals, of moderate size, near multiples of a quarter turn and
    of one, and the neighbours of the given points.
    """
    rng = np.random.default_rng(seed)
    dtype, word = DTYPES[type], WORDS[type]
    anything = rng.integers(0, 1 << type.bits, 2 * count, word).view(dtype)
    quarters = (rng.integers(-400, 400, count) * (np.pi / 2)).astype(dtype).view(word)
    quarters = (quarters + rng.integers(0, 4, count).astype(word)).view(dtype)
    near = (1 + rng.normal(0, 1, count) * 10.0 ** rng.uniform(-8, 0, count)).astype(dtype)
    decades = (10.0 ** rng.uniform(-10, 10, count)).astype(dtype)
    limit = 110.0 if type is F32 else 760.0
    uniform = [rng.uniform(-end, end, count).astype(dtype) for end in (1, 12, limit)]
    around = [neighbours(point, type) for point in (0.0, 1.0, *points)]
    info = np.finfo(dtype)
    ends = np.asarray([info.max, info.smallest_normal, np.inf, np.nan], dtype)
    values = [anything, quarters, near, decades, *uniform, *around, ends]
    joined = np.concatenate(values)
    return np.concatenate([joined, -joined])


def neighbours(point: float, type: Scalar, reach: int = 6) -> Array:
    """The numbers next to a point of zero or more."""
    dtype, word = DTYPES[type], WORDS[type]
    bits = int(np.asarray([point], dtype).view(word)[0])
    return np.arange(max(bits - reach, 0), bits + reach + 1).astype(word).view(dtype)


def ulp_errors(got: Array, exact: Array, scale: Array | float = 0.0) -> Array:
    """Errors in units in the last place of ``got``'s dtype, given results of more digits.

    A unit is the spacing at the exact result, or at ``scale`` where that is larger. Infinity counts as the number after
    the largest one; where one of the two is NaN, the error is infinite.
    """
    info = np.finfo(got.dtype)
    wide = exact.dtype.type
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(exact), scale)
        usable = np.isfinite(size) & (size > 0)
        exponent = np.frexp(np.where(usable, size, wide(info.smallest_subnormal)))[1] - 1
        exponent = np.clip(exponent, info.minexp, info.maxexp - 1)
        unit = np.ldexp(wide(1), exponent - info.nmant)
        beyond = wide(2) ** (info.maxexp - 1) * 2 if wide is not got.dtype.type else wide(info.max)
        low, high = -beyond, beyond
        error = np.abs(np.clip(got.astype(wide), low, high) - np.clip(exact, low, high)) / unit
    error[np.isnan(got) & np.isnan(exact)] = 0
    error[np.isnan(got) != np.isnan(exact)] = np.inf
    return np.asarray(error, np.float64)


def hardest_angles(type: Scalar) -> Array:
    """For a sample of exponents, the number closest to a multiple of a quarter turn.

    ``m * 2**e`` is close to a multiple where ``m`` is the denominator of a convergent of ``2**e / (pi/2)``.
    """
    precision, top, step = (24, 104, 1) if type is F32 else (53, 971, 12)
    found = []
    with mp.workprec(1400):
        for exponent in range(2 - precision, top + 1, step):
            rest = mpf(2) ** (exponent + 1) / mp.pi
            before, denominator = 1, 0
            while True:
                whole = int(mp.floor(rest))
                following = whole * denominator + before
                if following >= 1 << precision:
                    break
                before, denominator = denominator, following
                rest = 1 / (rest - whole)
            found.append(mp.ldexp(denominator, exponent))
    return np.asarray([float(x) for x in found], DTYPES[type])


def operation(
    op: Op, dtype: np.dtype[Any], size: int
) -> tuple[list[Expr], list[Expr], dict[str, Array]]:
    """The variables, results and values of an operation."""
    dtypes = [dtype] * op.arity
    if op is ops.SELECT:
        dtypes[0] = dt.bool_
    operands = [operand(name, each) for name, each in zip("xyz", dtypes, strict=False)]
    value = expression(op, dtype, *operands)
    variables: list[Expr] = []
    values: dict[str, Array] = {}
    for seed, (each, x) in enumerate(zip(dtypes, operands, strict=True)):
        array = anything(each, (size,), seed)
        if isinstance(x, Expr):
            variables.append(x)
            values[str(x.value)] = array.astype(reference.DTYPES[x.type.name])
        else:
            variables += [x.re, x.im]
            values[str(x.re.value)] = array.real.copy()
            values[str(x.im.value)] = array.imag.copy()
    return variables, [value] if isinstance(value, Expr) else list(value), values
