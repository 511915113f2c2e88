"""What the parity tests share: values, layouts, exact numbers and checks of results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mpc, mpf

import numr
from numr import dtypes as dt
from numr.errors import UnsupportedDType
from tests.parity import bounds

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

#: float16 is beyond the standard: a device may lack it without saying so in its list.
INTEGERS = tuple(dtype for dtype in dt.ALL_DTYPES if dtype.kind in "iu")
REAL_FLOATS = (dt.float16, dt.float32, dt.float64)
COMPLEX = (dt.complex64, dt.complex128)
FLOATS = REAL_FLOATS + COMPLEX
#: What matrices are factorised in.
FACTORED = (dt.float32, dt.float64, dt.complex64, dt.complex128)
REAL = tuple(dtype for dtype in dt.ALL_DTYPES if dtype.kind in "biuf")
NUMERIC = tuple(dtype for dtype in dt.ALL_DTYPES if dtype.kind != "b")
ALL = dt.ALL_DTYPES


def for_dtypes(dtypes: tuple[DType, ...]) -> pytest.MarkDecorator:
    """Run a test for each dtype."""
    return pytest.mark.parametrize("dtype", dtypes, ids=str)


def tensor(xp: ModuleType, array: Any, dtype: Any = None) -> Any:
    """A tensor of a copy of a host array; skips the test where the device has no such dtype, and says so."""
    info = xp.__array_namespace_info__()
    host = np.array(array, dtype)
    try:
        return numr.from_numpy(host, device=info.default_device())
    except UnsupportedDType as error:
        assert str(host.dtype) not in info.dtypes()
        pytest.skip(str(error))


def has(xp: ModuleType, dtype: DType) -> bool:
    """Whether the default device computes with a dtype."""
    try:
        xp.zeros((), dtype=dtype)
    except UnsupportedDType:
        assert str(dtype) not in xp.__array_namespace_info__().dtypes()
        return False
    return True


def needs(xp: ModuleType, dtype: DType) -> None:
    """Skip the test where the device does not compute with a dtype."""
    if not has(xp, dtype):
        pytest.skip(f"the default device of {xp.__name__} has no {dtype}")


def default_dtype(xp: ModuleType, kind: str) -> DType:
    dtype: DType = xp.__array_namespace_info__().default_dtypes()[kind]
    return dtype


def floating_dtype(xp: ModuleType, dtype: DType) -> DType:
    """What a floating-point function computes in."""
    return default_dtype(xp, "real floating") if dtype.kind in "biu" else dtype


def accumulating_dtype(xp: ModuleType, dtype: DType) -> DType:
    """What sums and products are computed in by default, by the standard's words."""
    default = default_dtype(xp, "integral")
    if dtype.kind == "b":
        return default
    if dtype.kind in "iu" and dtype.itemsize < default.itemsize:
        return np.dtype(f"{dtype.kind}{default.itemsize}")
    return dtype


# ---------------------------------------------------------------------- values


def numbers(dtype: DType, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Values of moderate size, of both signs where the dtype has them."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -9, 10, shape, dtype)
    if dtype.kind == "f":
        return np.asarray(rng.normal(0, 2, shape), dtype)
    return np.asarray(rng.normal(0, 2, shape) + 1j * rng.normal(0, 2, shape), dtype)


def anything(dtype: DType, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Values of all sizes with the ends of the dtype's range, zeros of both signs, infinities and NaN among them."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape, dtype=np.int64))
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        special = np.asarray([info.min, info.max, 0, 1], dtype)
        values = rng.integers(info.min, info.max, size, dtype, endpoint=True)
    elif dtype.kind == "f":
        special = np.asarray([0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max], dtype)
        values = (rng.normal(size=size) * 10.0 ** rng.integers(-4, 4, size)).astype(dtype)
    else:
        parts = [anything(dt.real_of(dtype), shape, seed + i) for i in range(2)]
        values = np.empty(shape, dtype)
        values.real, values.imag = parts
        return values
    places = rng.random(size) < 0.3
    values[places] = rng.choice(special, int(places.sum()))
    return values.reshape(shape)


def layouts(xp: ModuleType, array: Array) -> Iterator[tuple[str, Any]]:
    """The same values as tensors that lie differently in memory."""
    yield "contiguous", tensor(xp, array)
    ndim = array.ndim
    if not ndim:
        return
    backwards = tuple(range(ndim))[::-1]
    yield "Fortran order", xp.permute_dims(tensor(xp, array.transpose(backwards).copy()), backwards)
    turned = (slice(None, None, -1),) * ndim
    yield "flipped", tensor(xp, array[turned].copy())[turned]
    steps = [1] * ndim
    steps[0], steps[-1] = 3, 2
    spread = array
    for axis, step in enumerate(steps):
        spread = np.repeat(spread, step, axis)
    yield "strided", tensor(xp, spread)[tuple(slice(None, None, step) for step in steps)]
    inner = (slice(1, -1),) * ndim
    yield "inside", tensor(xp, np.pad(array, 1))[inner]


# ---------------------------------------------------------------------- checks


def assert_kind(got: Any, dtype: DType, shape: tuple[int, ...], note: Any = "") -> Array:
    """A tensor of a dtype and shape; its elements on the host."""
    assert type(got) is numr.Tensor, note
    assert got.dtype == dtype, (got.dtype, dtype, note)
    assert got.shape == shape, (got.shape, shape, note)
    host: Array = got.to_numpy()
    return host


def assert_same(got: Any, expected: Any, note: Any = "") -> None:
    """The dtype, shape and elements of a host array, with the signs of zeros and the places of NaN."""
    expected = np.asarray(expected)
    host = assert_kind(got, expected.dtype, expected.shape, note)
    if host.tobytes() == expected.tobytes():
        return
    np.testing.assert_array_equal(host, expected, err_msg=str(note))
    if expected.dtype.kind in "fc":
        for part in ("real", "imag") if expected.dtype.kind == "c" else ("real",):
            a, b = getattr(host, part), getattr(expected, part)
            np.testing.assert_array_equal(
                np.signbit(a)[~np.isnan(a)], np.signbit(b)[~np.isnan(b)], err_msg=str(note)
            )


def exactly(array: Any) -> Array:
    """The elements as Python integers or numbers of mpmath, whose arithmetic loses nothing."""
    array = np.asarray(array)
    make = {"b": int, "i": int, "u": int, "f": mpf, "c": mpc}[array.dtype.kind]
    result = np.empty(array.size, object)
    result[:] = [make(value) for value in array.ravel().tolist()]
    return result.reshape(array.shape)


def wrapped(values: Array, dtype: DType) -> Array:
    """Python integers as a fixed-width dtype holds them."""
    info = np.iinfo(dtype)
    flat = [(int(v) - int(info.min)) % (1 << info.bits) + int(info.min) for v in np.ravel(values)]
    return np.asarray(flat, dtype).reshape(np.shape(values))


class Reference:
    """Exact results, prepared to be compared with computed ones.

    Parameters
    ----------
    exact : object array
        Finite numbers of mpmath, or integers.
    scale : object array, optional
        What errors are relative to: by default the exact results.
    """

    def __init__(self, exact: Any, scale: Any = None) -> None:
        exact = np.asarray(exact, object)
        self.shape = exact.shape
        self._scale = _floats(
            np.abs(exact) if scale is None else np.broadcast_to(scale, exact.shape)
        )
        self._parts = []
        for part in ("real", "imag"):
            values = np.asarray([getattr(value, part) for value in exact.ravel()], object)
            high = _floats(values)
            self._parts.append((high, _floats(values - high)))

    def check(
        self, got: Any, function: str, dtype: DType, *, terms: int = 1, note: Any = ""
    ) -> None:
        """Raise AssertionError unless all results are within the function's bound, see ``bounds``.

        ``dtype`` is the dtype of the computation, ``terms`` how many terms a result is made of.
        """
        assert got.shape == self.shape, (got.shape, self.shape, note)
        host = np.ravel(got.to_numpy()).astype(np.complex128)
        # Subtracting the high parts first is exact where the results are close.
        errors = [
            (part - high) - low
            for part, (high, low) in zip((host.real, host.imag), self._parts, strict=True)
        ]
        error = np.hypot(*errors)
        bound = bounds.allowed(function, dtype, terms) * self._scale
        bound += float(np.finfo(dt.real_of(dtype)).smallest_subnormal)
        wrong = np.flatnonzero(~(error <= bound))
        assert not wrong.size, (
            f"{function}({note}): {wrong.size} of {error.size} results are up to "
            f"{np.max(error[wrong] / bound[wrong]):.3g} times the bound away, for one {host[wrong[0]]} "
            f"from {[float(high[wrong[0]]) for high, _ in self._parts]}"
        )


def _floats(values: Any) -> Array:
    return np.asarray([float(value) for value in np.ravel(values)])


def assert_close(
    got: Any,
    exact: Any,
    function: str,
    dtype: DType,
    *,
    scale: Any = None,
    terms: int = 1,
    note: Any = "",
) -> None:
    """Compare one result, see :class:`Reference`."""
    Reference(exact, scale).check(got, function, dtype, terms=terms, note=note)


def raises(error: type[Exception], function: str, words: str = "") -> Any:
    """The exception that a function names itself in."""
    return pytest.raises(error, match=rf"^{function}: .*{words}")


#: What is to be raised, by which function, with which words, in which call.
Refusal = tuple[type[Exception], str, str, Callable[[], Any]]


def assert_refused(cases: list[Refusal]) -> None:
    """Every call raises its exception, with a message that begins with the function's name."""
    wrong = []
    for expected, function, words, call in cases:
        try:
            got: Any = call()
        except (TypeError, ValueError, IndexError, ArithmeticError, AttributeError) as error:
            got = error
        pattern = rf"^{function}: .*{words}"
        if not isinstance(got, expected) or not re.search(pattern, str(got)):
            wrong.append(f"{expected.__name__} {pattern!r}: got {got!r}")
    assert not wrong, "\n".join(wrong)


def axes_of(ndim: int) -> list[Any]:
    """What may be given as ``axis`` of a reduction, each kind of it at least once."""
    if ndim == 0:
        return [None, ()]
    if ndim == 1:
        return [None, 0, -1, (0,), ()]
    return [None, 0, ndim - 1, -ndim, (0, -1), (-1, 0), tuple(range(ndim)), ()]
