"""Fourier transforms in every dtype on every runtime, against sums of exact terms, and against NumPy where they are long."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from numr import dtypes as dt
from numr.errors import AxisError, DTypeError, ShapeError
from tests.parity import bounds, support
from tests.parity.support import (
    Array,
    Refusal,
    anything,
    assert_close,
    assert_kind,
    assert_refused,
    assert_same,
    default_dtype,
    floating_dtype,
    for_dtypes,
    has,
    layouts,
    numbers,
    raises,
    tensor,
)

pytestmark = pytest.mark.usefixtures("precise")

NORMS = ["backward", "ortho", "forward"]
#: Fraction bits of the integers that references are computed in.
BITS = 120
FORWARD, BACKWARD = -1, 1

_roots: dict[tuple[int, int], tuple[Array, Array]] = {}


def roots(n: int, sign: int) -> tuple[Array, Array]:
    """The matrix of a transform over ``n`` points, its real and imaginary parts as integers."""
    if (n, sign) not in _roots:
        unit = 1 << BITS
        angles = [2 * mp.pi * k / n for k in range(n)]
        cosines = [int(mp.nint(mp.cos(a) * unit)) for a in angles]
        sines = [int(mp.nint(sign * mp.sin(a) * unit)) for a in angles]
        turns = [[j * k % n for k in range(n)] for j in range(n)]
        _roots[n, sign] = tuple(  # type: ignore[assignment]
            np.asarray([[values[t] for t in row] for row in turns], object)
            for values in (cosines, sines)
        )
    return _roots[n, sign]


class Fixed:
    """Complex numbers as Python integers, ``2**-BITS`` each: sums and products of them cost no accuracy that shows."""

    def __init__(self, real: Array, imag: Array) -> None:
        self.real, self.imag = real, imag

    @classmethod
    def of(cls, array: Array) -> Fixed:
        def scaled(part: Array) -> Array:
            result = np.empty(part.size, object)
            result[:] = [int(math.ldexp(v, 60)) << (BITS - 60) for v in part.ravel().tolist()]
            return result.reshape(part.shape)

        return cls(scaled(array.real), scaled(array.imag))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.real.shape

    def map(self, function: Any) -> Fixed:
        return Fixed(function(self.real), function(self.imag))

    def fitted(self, axis: int, n: int) -> Fixed:
        """Cut or padded with zeros at the end of an axis."""

        axis %= len(self.shape)

        def fit(part: Array) -> Array:
            cut = np.take(part, range(min(n, part.shape[axis])), axis)
            missing = [n - cut.shape[axis] if i == axis else m for i, m in enumerate(cut.shape)]
            zeros = np.empty(missing, object)
            zeros[...] = 0
            return np.concatenate([cut, zeros], axis)

        return self.map(fit)

    def transformed(self, axis: int, sign: int) -> Fixed:
        real, imag = roots(self.shape[axis], sign)
        a, b = np.moveaxis(self.real, axis, -1), np.moveaxis(self.imag, axis, -1)
        parts = a @ real - b @ imag, a @ imag + b @ real
        return Fixed(*(np.moveaxis(part >> BITS, -1, axis) for part in parts))

    def mirrored(self, axis: int, n: int) -> Fixed:
        """The whole of a Hermitian spectrum from its first half; the imaginary parts that it cannot have are dropped."""
        half = self.fitted(axis, n // 2 + 1)
        positions = [k if k <= n // 2 else n - k for k in range(n)]
        sign = np.asarray([(k <= n // 2) - (k > n // 2) for k in range(n)], object)
        sign[0] = 0
        if n % 2 == 0:
            sign[n // 2] = 0
        column = (n,) + (1,) * (self.real.ndim - 1 - axis % self.real.ndim)
        whole = half.map(lambda part: np.take(part, positions, axis))
        return Fixed(whole.real, whole.imag * sign.reshape(column))

    def scaled(self, norm: str, points: int, inverse: bool) -> Fixed:
        if norm == "ortho":
            factor = int(mp.nint((1 << BITS) / mp.sqrt(points)))
        elif (norm == "backward") == inverse:
            factor = int(mp.nint(mpf(1 << BITS) / points))
        else:
            return self
        return self.map(lambda part: part * factor >> BITS)

    def conjugate(self) -> Fixed:
        return Fixed(self.real, -self.imag)

    def floats(self) -> Array:
        """In the widest precision of the host."""
        unit = np.longdouble(2.0) ** -BITS

        def part(values: Array) -> Array:
            # Integers longer than a float's digits go over in two pieces.
            high = values >> 80
            low = values - (high << 80)
            return (high.astype(float) * np.longdouble(2.0) ** 80 + low.astype(float)) * unit

        return part(self.real) + 1j * part(self.imag)


def assert_transform(got: Any, exact: Array, dtype: np.dtype[Any], points: int, note: Any) -> None:
    """The norm of the difference over all elements, relative to the norm of the exact result."""
    difference = length(got.to_numpy() - exact)
    allowed = bounds.allowed("fft", dtype, points) * length(exact)
    assert difference <= allowed, f"{note}: {difference / allowed:.3g} times the bound"


def length(x: Array) -> float:
    return math.sqrt(np.sum(np.abs(x) ** 2))


def exact_transform(function: str, array: Array, n: int, axis: int) -> Fixed:
    """What a function computes before it normalises."""
    x = Fixed.of(array)
    whole = x.mirrored(axis, n) if function in ("irfft", "hfft") else x.fitted(axis, n)
    result = whole.transformed(axis, BACKWARD if inverts(function) else FORWARD)
    if function in ("rfft", "ihfft"):
        result = result.map(lambda part: np.take(part, range(n // 2 + 1), axis))
    return result


def inverts(function: str) -> bool:
    return function.startswith("i")


COMPLEX_INPUT = ["fft", "ifft", "irfft", "hfft"]
REAL_INPUT = ["rfft", "ihfft"]


def result_dtype(function: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    cplx = dt.complex_of(dtype)
    return dt.real_of(cplx) if function in ("irfft", "hfft", "irfftn") else cplx


@pytest.mark.parametrize("function", COMPLEX_INPUT + REAL_INPUT)
@for_dtypes(support.FLOATS)
def test_transform(xp: ModuleType, dtype: np.dtype[Any], function: str) -> None:
    call = getattr(xp.fft, function)
    if function in REAL_INPUT and dtype.kind == "c":
        with raises(DTypeError, function, f"{dtype}"):
            call(tensor(xp, np.ones(4, dtype)))
        return
    result = result_dtype(function, dtype)
    for shape, axis in [
        ((8,), -1),
        ((1,), 0),
        ((2,), -1),
        ((3, 5), -1),
        ((6, 2), 0),
        ((2, 7, 2), 1),
    ]:
        array = numbers(dtype, shape, seed=1)
        m = shape[axis]
        default = 2 * (m - 1) if function in ("irfft", "hfft") else m
        for n in dict.fromkeys((None, 1, m - 1, m, m + 1, 2 * m)):
            points = default if n is None else n
            if points < 1:
                with raises(ShapeError, function, rf"{points} points"):
                    call(tensor(xp, array), n=n, axis=axis)
                continue
            unscaled = exact_transform(function, array, points, axis)
            for norm in NORMS:
                exact = unscaled.scaled(norm, points, inverts(function)).floats()
                if result.kind == "f":
                    exact = exact.real
                for name, x in layouts(xp, array):
                    got = call(x, n=n, axis=axis, norm=norm)
                    note = (function, name, shape, n, norm)
                    assert_kind(got, result, exact.shape, note)
                    assert_transform(got, exact, result, points, note)
                    if norm != "backward":
                        break


#: Lengths and axes of transforms over several axes.
OVER_AXES: list[tuple[tuple[int, ...] | None, tuple[int, ...] | None]] = [
    (None, None),
    (None, (0, 1)),
    (None, (-1, 0)),
    (None, (2,)),
    ((4, 6), (0, 2)),
    ((2, 3), (1, 0)),
    ((5, -1), (1, 2)),
    ((-1, 8), (2, 1)),
    ((1, 1, 1), None),
    ((2, 3, 4), None),
    ((7, 2), None),
]


@pytest.mark.parametrize("function", ["fftn", "ifftn", "rfftn", "irfftn"])
@for_dtypes(support.FLOATS)
def test_transform_over_axes(xp: ModuleType, dtype: np.dtype[Any], function: str) -> None:
    call = getattr(xp.fft, function)
    if function == "rfftn" and dtype.kind == "c":
        with raises(DTypeError, function, f"{dtype}"):
            call(tensor(xp, np.ones((4, 4), dtype)))
        return
    result = result_dtype(function, dtype)
    array = numbers(dtype, (3, 4, 5), seed=2)
    for s, axes in OVER_AXES:
        unscaled, points = exact_transform_over_axes(function, array, s, axes)
        for norm in NORMS:
            exact = unscaled.scaled(norm, points, inverts(function)).floats()
            if result.kind == "f":
                exact = exact.real
            for name, x in layouts(xp, array):
                got = call(x, s=s, axes=axes, norm=norm)
                note = (function, name, s, axes, norm)
                assert_kind(got, result, exact.shape, note)
                assert_transform(got, exact, result, max(points, 8), note)
                if norm != "backward":
                    break


def exact_transform_over_axes(function: str, array: Array, s: Any, axes: Any) -> tuple[Fixed, int]:
    """What a function computes before it normalises, and over how many points."""
    if axes is None:
        axes = range(array.ndim) if s is None else range(array.ndim - len(s), array.ndim)
    axes = [axis % array.ndim for axis in axes]
    # Where a length is left open all elements are used, also by the half-length axis.
    lengths = [array.shape[a] for a in axes]
    if function == "irfftn":
        lengths[-1] = 2 * (lengths[-1] - 1)
    if s is not None:
        lengths = [own if n == -1 else n for own, n in zip(lengths, s, strict=True)]
    x = Fixed.of(array)
    for position, (axis, n) in enumerate(zip(axes, lengths, strict=True)):
        is_half = function == "irfftn" and position == len(axes) - 1
        x = x.mirrored(axis, n) if is_half else x.fitted(axis, n)
        x = x.transformed(axis, BACKWARD if inverts(function) else FORWARD)
    if function == "rfftn":
        half = range(lengths[-1] // 2 + 1)
        x = x.map(lambda part: np.take(part, half, axes[-1]))
    return x, math.prod(lengths)


@pytest.mark.parametrize("n", [1000, 1009, 4096])
@for_dtypes(support.FLOATS)
def test_long_transforms(xp: ModuleType, dtype: np.dtype[Any], n: int) -> None:
    array = numbers(dtype, (3, n), seed=3)
    x, host = tensor(xp, array), array.astype(np.complex128)
    result = dt.complex_of(dtype)
    assert_transform(xp.fft.fft(x), np.fft.fft(host), result, n, "fft")
    assert_transform(
        xp.fft.ifft(x, norm="ortho"), np.fft.ifft(host, norm="ortho"), result, n, "ifft"
    )
    assert_transform(xp.fft.fft(x, n=n + 1), np.fft.fft(host, n + 1), result, n, "fft")
    half = xp.fft.irfft(x, n=n)
    assert_transform(half, np.fft.irfft(host, n), result, n, "irfft")
    assert_transform(xp.fft.hfft(x, n=n), np.fft.hfft(host, n), result, n, "hfft")
    grid = xp.reshape(x, (3, -1, 4 if n % 4 == 0 else 1))
    expected = np.fft.fftn(host.reshape(grid.shape), axes=(0, 1, 2))
    assert_transform(xp.fft.fftn(grid), expected, result, n, "fftn")
    if dtype.kind == "f":
        assert_transform(xp.fft.rfft(x), np.fft.rfft(array.astype(float)), result, n, "rfft")
        assert_transform(xp.fft.ihfft(x), np.fft.ihfft(array.astype(float)), result, n, "ihfft")
        back = xp.fft.irfft(xp.fft.rfft(x), n=n)
        assert_transform(back, array.astype(float), result, n * n, "there and back")
    back = xp.fft.ifft(xp.fft.fft(x))
    assert_transform(back, host, result, n * n, "there and back")


@for_dtypes(support.ALL)
def test_empty_batches_and_other_dtypes(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    computed = floating_dtype(xp, dtype)
    cplx = dt.complex_of(computed)
    real = dt.real_of(cplx)
    if not has(xp, cplx):
        pytest.skip(f"no {cplx}")
    x = tensor(xp, np.ones((0, 4), dtype))
    for function in ("fft", "ifft"):
        assert_same(getattr(xp.fft, function)(x), np.ones((0, 4), cplx))
        assert_same(getattr(xp.fft, function + "n")(x, axes=(1,)), np.ones((0, 4), cplx))
    for function in ("irfft", "hfft"):
        assert_same(getattr(xp.fft, function)(x), np.ones((0, 6), real))
    if dtype.kind != "c":
        for function in ("rfft", "ihfft"):
            assert_same(getattr(xp.fft, function)(x), np.ones((0, 3), cplx))
    ones = tensor(xp, np.ones(4, dtype))
    assert_same(xp.fft.fft(ones), np.asarray([4, 0, 0, 0], cplx))
    nothing = tensor(xp, np.ones((3, 0), dtype))
    for function in ("fft", "ifft", "fftn", "ifftn"):
        with raises(ShapeError, function, "0 points"):
            getattr(xp.fft, function)(nothing)
    # Without an axis to transform, the values themselves.
    unchanged = xp.fft.fftn(ones, axes=())
    assert_same(unchanged, np.ones(4, cplx))
    unchanged[...] = False
    assert_same(ones, np.ones(4, dtype))


@for_dtypes(support.COMPLEX)
def test_imaginary_parts_that_cannot_be_are_ignored(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    spectrum = numbers(dtype, (5,), seed=4)
    real = spectrum.copy()
    real[[0, -1]] = real[[0, -1]].real
    for function in (xp.fft.irfft, xp.fft.hfft):
        got, expected = function(tensor(xp, spectrum)), function(tensor(xp, real))
        np.testing.assert_array_equal(got.to_numpy(), expected.to_numpy())


@for_dtypes(support.FLOATS)
def test_special_values_spread(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    for value in (math.nan, math.inf):
        x = tensor(xp, np.asarray([1, value, 2, 3], dtype))
        assert not np.isfinite(xp.fft.fft(x).to_numpy()).any()
        rows = xp.stack([x, tensor(xp, np.ones(4, dtype))])
        assert np.isfinite(xp.fft.ifft(rows).to_numpy()[1]).all()


@for_dtypes(support.REAL_FLOATS)
def test_frequencies(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    support.needs(xp, dtype)
    for n in (1, 2, 3, 4, 5, 8, 101):
        for d in (1.0, 2, 0.1, -0.5, 1e-3):
            step = mpf(n) * mpf(d)
            whole = [mpf(k - n if k >= (n + 1) // 2 else k) / step for k in range(n)]
            half = [mpf(k) / step for k in range(n // 2 + 1)]
            got = xp.fft.fftfreq(n, d=d, dtype=dtype)
            assert_kind(got, dtype, (n,))
            assert_close(got, whole, "fftfreq", dtype, note=(n, d))
            got = xp.fft.rfftfreq(n, d=d, dtype=dtype)
            assert_kind(got, dtype, (n // 2 + 1,))
            assert_close(got, half, "fftfreq", dtype, note=(n, d))
    assert xp.fft.fftfreq(3).dtype == default_dtype(xp, "real floating")
    device = xp.__array_namespace_info__().default_device()
    assert xp.fft.rfftfreq(3, device=device).device == device


@for_dtypes(support.ALL)
def test_shifts(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, (3, 4, 5), seed=5)
    for name, x in layouts(xp, array):
        for axes in (None, 0, -1, (0, 2), (1,), ()):
            got = xp.fft.fftshift(x, axes=axes)
            assert_same(got, np.fft.fftshift(array, axes), (name, axes))
            assert_same(xp.fft.ifftshift(x, axes=axes), np.fft.ifftshift(array, axes), (name, axes))
            assert_same(xp.fft.ifftshift(got, axes=axes), array, (name, axes))
    for shape in ((), (0,), (1, 1), (2, 0)):
        same = np.ones(shape, dtype)
        x = tensor(xp, same)
        for function in (xp.fft.fftshift, xp.fft.ifftshift):
            got = function(x)
            assert_same(got, same)
            got[...] = False
            assert_same(x, same)


def test_bad_arguments(xp: ModuleType) -> None:
    x = xp.ones((2, 3), dtype=xp.float32)
    z = xp.astype(x, xp.complex64)
    cases: list[Refusal] = []
    for function in COMPLEX_INPUT + REAL_INPUT:
        call = getattr(xp.fft, function)
        cases += [
            (AxisError, function, "axis 2", lambda call=call: call(x, axis=2)),
            (AxisError, function, "axis -1", lambda call=call: call(x[0, 0])),
            (ValueError, function, "'none'", lambda call=call: call(x, norm="none")),
            (ShapeError, function, "0 points", lambda call=call: call(x, n=0)),
            (ShapeError, function, "-1 points", lambda call=call: call(x, n=-1)),
        ]
    for function in ("fftn", "ifftn", "rfftn", "irfftn"):
        call = getattr(xp.fft, function)
        cases += [
            (AxisError, function, "axis 2", lambda call=call: call(x, axes=(2,))),
            (AxisError, function, "twice", lambda call=call: call(x, axes=(0, 0))),
            (ValueError, function, "'none'", lambda call=call: call(x, norm="none")),
            (ShapeError, function, "lengths", lambda call=call: call(x, s=(2,), axes=(0, 1))),
            (ShapeError, function, "0 points", lambda call=call: call(x, s=(2, 0))),
        ]
    for function in ("rfftn", "irfftn"):
        call = getattr(xp.fft, function)
        cases.append((AxisError, function, "no axis", lambda call=call: call(x, axes=())))
    for function in ("fftfreq", "rfftfreq"):
        call = getattr(xp.fft, function)
        cases += [
            (ValueError, function, "0", lambda call=call: call(0)),
            (ValueError, function, "d is 0", lambda call=call: call(4, d=0.0)),
            (DTypeError, function, "int32", lambda call=call: call(4, dtype=xp.int32)),
            (DTypeError, function, "complex64", lambda call=call: call(4, dtype=xp.complex64)),
        ]
    for function in ("fftshift", "ifftshift"):
        call = getattr(xp.fft, function)
        cases.append((AxisError, function, "axis 2", lambda call=call: call(z, axes=2)))
    assert_refused(cases)
