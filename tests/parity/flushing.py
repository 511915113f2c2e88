"""Devices that take subnormal numbers of a dtype for zeros, as IEEE 754 does not allow and WebGPU does.

On such a device an operation may see a subnormal operand, or component of one, as it is or as a zero of its sign, may
give a zero for a result below the smallest normal number, and may hand on a subnormal operand where a zero is right.
Nothing else is right; and on all other devices, which
:func:`flushes` finds out by computing, only the exact result is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from mpmath import mp, mpc, mpf

import numr
from numr import dtypes as dt
from tests.parity import reference, ulp

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]


@cache
def flushes(xp: ModuleType, dtype: DType) -> bool:
    """Whether the default device of a namespace takes subnormal numbers of a floating-point dtype for zeros.

    It may do so with operands or with results. That it gives anything else than zeros or exact results is an error.
    """
    real = dt.real_of(dtype)
    device = xp.__array_namespace_info__().default_device()
    info = np.finfo(real)
    sizes = np.asarray([info.smallest_subnormal, info.smallest_normal / 2, info.smallest_normal])
    x = np.concatenate([sizes, -sizes]).astype(real)

    def computed(factor: float) -> Array:
        factors = np.full(x.shape, factor, real)
        result: Array = (
            numr.from_numpy(x.copy(), device=device) * numr.from_numpy(factors, device=device)
        ).to_numpy()
        return result

    found = False
    for factor in (1.0, 0.5, 2.0):
        exact = (x.astype(np.float64) * factor).astype(real)
        got = computed(factor)
        flushed = (got == 0) & (np.signbit(got) == np.signbit(x))
        assert ((got == exact) | flushed).all(), (factor, x, got)
        found |= bool((got != exact).any())
    return found


def without_subnormals(array: Array) -> Array:
    """An array with zeros of the same sign in the place of subnormal numbers, or components."""
    if array.dtype.kind not in "fc":
        return array
    real = dt.real_of(array.dtype)
    parts = np.array(array, order="C").reshape(-1).view(real)
    parts[np.abs(parts) < np.finfo(real).smallest_normal] *= 0
    return parts.view(array.dtype).reshape(array.shape)


def chosen(got: Array, exact: Array, other: Array) -> Array:
    """The elements, or components, of ``other`` where they are what was computed, else those of ``exact``."""
    if exact.dtype.kind == "c":
        real = dt.real_of(exact.dtype)
        parts = (np.ascontiguousarray(x).view(real) for x in (got, exact, other))
        return chosen(*parts).view(exact.dtype)
    same = got == other
    if exact.dtype.kind == "f":
        same &= np.signbit(got) == np.signbit(other)
    return np.where(same, other, exact)


def is_right(op: str, got: Any, row: tuple[Any, ...], compute: DType, result: DType) -> bool:
    """Whether a result is one of those that a device without subnormal numbers may give.

    Parameters
    ----------
    op : str
        Name of the operation.
    got : float, complex or bool
        What was computed.
    row : tuple
        The operands.
    compute, result : dtype
        What is computed in, and the dtype of the result.
    """
    readings = {got, _without_moved(got, row, compute)}
    return any(
        _agrees(op, reading, operands, exact, compute, result)
        for operands, exact in _outcomes(op, row, compute)
        for reading in readings
    )


def _parts(values: tuple[Any, ...]) -> list[Any]:
    return [part for x in values for part in ((x.real, x.imag) if isinstance(x, complex) else (x,))]


def _without_moved(got: Any, row: tuple[Any, ...], compute: DType) -> Any:
    """A result with zeros for subnormal operands that were handed on because they count as zeros."""
    if isinstance(got, bool):
        return got
    limit = float(np.finfo(compute).smallest_normal)
    moved = {abs(part) for part in _parts(row) if 0 < abs(part) < limit}
    parts = [part * 0.0 if abs(part) in moved else part for part in _parts((got,))]
    return complex(*parts) if isinstance(got, complex) else parts[0]


def _outcomes(op: str, row: tuple[Any, ...], compute: DType) -> Iterator[tuple[Any, Any]]:
    """Operands with and without their subnormal components, and the exact results."""
    limit = float(np.finfo(compute).smallest_normal)
    choices = [
        (part, part * 0.0) if isinstance(part, float) and 0 < abs(part) < limit else (part,)
        for part in _parts(row)
    ]
    for taken in itertools.product(*choices):
        rest = iter(taken)
        operands = tuple(
            complex(next(rest), next(rest)) if isinstance(x, complex) else next(rest) for x in row
        )
        yield operands, _exact(op, operands, compute)


def _exact(op: str, operands: tuple[Any, ...], compute: DType) -> Any:
    """The exact result, as a number of mpmath where it is finite.

    Of operands that may be zeros, which the exact references do not take, by NumPy in its widest type.
    """
    if op == "nextafter":
        return reference.of_floats(op, compute, *operands)
    if op == "divide" and compute.kind == "c" and operands[1] == 0:
        # As in C's Annex G.
        x, y = operands
        pole = np.copysign(np.inf, y.real)
        with np.errstate(invalid="ignore"):
            return complex(float(pole * x.real), float(pole * x.imag))
    if op == "reciprocal" and compute.kind == "c" and operands[0] == 0:
        return _exact("divide", (complex(1.0, 0.0), *operands), compute)
    wide = np.clongdouble if compute.kind == "c" else np.longdouble
    arrays = [np.asarray(x) if isinstance(x, bool) else np.asarray(x, wide) for x in operands]
    with np.errstate(all="ignore"):
        value = getattr(np, op)(*arrays)[()]
    if isinstance(value, np.bool_):
        return bool(value)
    if not np.isfinite(value):
        return complex(value) if compute.kind == "c" and np.iscomplexobj(value) else float(value)
    if np.iscomplexobj(value):
        return mpc(_to_mp(value.real), _to_mp(value.imag))
    return _to_mp(value)


def _to_mp(value: Any) -> mpf:
    significand, exponent = np.frexp(value)
    high = float(significand)
    with mp.workprec(160):
        return mp.ldexp(mpf(high) + mpf(float(significand - high)), int(exponent))


def _agrees(
    op: str,
    got: Any,
    operands: tuple[Any, ...],
    exact: Any,
    compute: DType,
    result: DType,
) -> bool:
    if isinstance(exact, bool):
        return got is exact
    if isinstance(exact, complex):
        return all(map(_same_part, (got.real, got.imag), (exact.real, exact.imag)))
    bound = ulp.allowed(op, compute, operands)
    info = np.finfo(dt.real_of(result))
    limit = float(info.smallest_normal) * (1 + 2 * bound * float(info.eps))
    return ulp.error(got, exact, result, ulp.scale(op, operands), zero_below=limit) <= bound


def _same_part(got: float, exact: float) -> bool:
    """Whether a component of a complex number that is not finite is what it should be."""
    if np.isfinite(exact):
        # Beside an infinite component no finite one counts.
        return bool(np.isfinite(got))
    return bool(np.isnan(got)) if np.isnan(exact) else got == exact
