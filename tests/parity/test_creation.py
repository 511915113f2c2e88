"""Creation functions in every dtype on every runtime: values, dtypes, shapes and devices."""

from __future__ import annotations

import math
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mpf

from numr import dtypes as dt
from numr.errors import CopyError, DeviceMismatch, DTypeError, ShapeError
from tests.parity import support
from tests.parity.support import (
    Refusal,
    anything,
    assert_close,
    assert_kind,
    assert_refused,
    assert_same,
    default_dtype,
    for_dtypes,
    has,
    layouts,
    needs,
    raises,
    tensor,
)

pytestmark = pytest.mark.usefixtures("precise")

SHAPES: list[Any] = [(), (0,), (3,), (2, 3), (2, 0, 3), [2, 3], 4, 0]


def as_tuple(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


@for_dtypes(support.ALL)
def test_constant_tensors(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    needs(xp, dtype)
    device = xp.__array_namespace_info__().default_device()
    for shape in SHAPES:
        lengths = as_tuple(shape)
        assert_same(xp.zeros(shape, dtype=dtype), np.zeros(lengths, dtype))
        assert_same(xp.ones(shape, dtype=dtype), np.ones(lengths, dtype))
        assert_kind(xp.empty(shape, dtype=dtype), dtype, lengths)
        assert_same(xp.full(shape, True, dtype=dtype), np.ones(lengths, dtype))
        for place in (device, str(device), None):
            x = xp.zeros(shape, dtype=dtype, device=place)
            assert x.device == device
            assert x.is_contiguous
            like = tensor(xp, np.full(lengths, 1, dtype))
            assert_same(xp.zeros_like(like, device=place), np.zeros(lengths, dtype))
            assert_same(xp.ones_like(like, device=place), np.ones(lengths, dtype))
            assert_kind(xp.empty_like(like, device=place), dtype, lengths)
            assert_same(xp.full_like(like, False, device=place), np.zeros(lengths, dtype))
    view = tensor(xp, np.ones((4, 3), dtype)).T[::-1, ::2]
    for target in support.ALL:
        if has(xp, target):
            assert_same(xp.zeros_like(view, dtype=target), np.zeros((3, 2), target))
            assert_same(xp.ones_like(view, dtype=target), np.ones((3, 2), target))
            assert_same(xp.full_like(view, 1, dtype=target), np.ones((3, 2), target))
            assert_kind(xp.empty_like(view, dtype=target), target, (3, 2))
            assert_same(xp.zeros_like(view, dtype=target, shape=(4, 0)), np.zeros((4, 0), target))
            assert_same(xp.ones_like(view, dtype=target, shape=5), np.ones(5, target))
            assert_same(xp.full_like(view, 1, dtype=target, shape=()), np.ones((), target))
            assert_kind(xp.empty_like(view, dtype=target, shape=(1, 2, 3)), target, (1, 2, 3))
    for name in (str(dtype), dtype.type):
        assert xp.zeros(2, dtype=name).dtype == dtype


def test_default_dtypes(xp: ModuleType) -> None:
    kinds = ("real floating", "complex floating", "integral")
    real, cplx, integral = (default_dtype(xp, kind) for kind in kinds)
    for x in (
        xp.zeros(2),
        xp.ones(2),
        xp.empty(2),
        xp.eye(2),
        xp.linspace(0, 1, 3),
        xp.arange(1.0),
    ):
        assert x.dtype == real
    for value, dtype in [(True, dt.bool_), (2, integral), (2.5, real), (1j, cplx)]:
        assert_same(xp.full(2, value), np.full(2, value, dtype))
        assert_same(xp.asarray(value), np.asarray(value, dtype))
        assert_same(xp.asarray([value, value]), np.full(2, value, dtype))
        assert_same(
            xp.full_like(xp.ones((2, 1), dtype=dtype), value), np.full((2, 1), value, dtype)
        )
    assert xp.arange(3).dtype == integral
    assert xp.linspace(0, 1j, 3).dtype == cplx
    assert xp.asarray([]).dtype == real
    assert xp.asarray([True, 1]).dtype == integral
    assert xp.asarray([1, 2.5]).dtype == real
    assert xp.asarray([1.5, 1j]).dtype == cplx
    for name, dtype in [("bool", bool), ("int", int), ("float", float), ("complex", complex)]:
        expected = dt.as_dtype(dtype, name)
        if has(xp, expected):
            assert xp.zeros(1, dtype=dtype).dtype == expected


@for_dtypes(support.ALL)
def test_full(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    needs(xp, dtype)
    values: list[Any] = [True, False]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values += [0, 1, int(info.min), int(info.max), 2.0]
    elif dtype.kind in "fc":
        largest = float(np.finfo(dtype).max)
        values += [0, 3, 1.5, -0.0, math.inf, -math.inf, math.nan, largest]
    if dtype.kind == "c":
        values += [1 - 2j, complex(-0.0, math.nan)]
    for value in values:
        expected = np.empty((2, 3), dtype)
        expected[...] = value
        assert_same(xp.full((2, 3), value, dtype=dtype), expected, value)
        assert_same(xp.full_like(tensor(xp, np.ones((2, 3), dtype)), value), expected, value)
        point = tensor(xp, expected[0, 0])
        assert_same(xp.full((2, 3), point), expected, value)
        assert_same(xp.full_like(tensor(xp, expected), point), expected, value)
        assert_same(xp.full((), value, dtype=dtype), expected[0, 0], value)
    # More than one block of memory.
    assert_same(xp.full(300_000, values[-1], dtype=dtype), np.full(300_000, values[-1], dtype))
    wrong: list[Any] = {
        "b": [2, 0.5, 1j],
        "i": [1.5, 1j, math.nan],
        "u": [1.5, 1j, math.inf],
        "f": [1j],
    }.get(dtype.kind, [])
    for value in wrong:
        with raises(DTypeError, "full", f"{dtype}"):
            xp.full(2, value, dtype=dtype)
        with raises(DTypeError, "full_like", f"{dtype}"):
            xp.full_like(tensor(xp, np.ones(2, dtype)), value)


@for_dtypes(support.INTEGERS)
def test_integers_out_of_range(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    needs(xp, dtype)
    info = np.iinfo(dtype)
    for value in (int(info.max) + 1, int(info.min) - 1, 2**70):
        with raises(OverflowError, "full", f"{dtype}"):
            xp.full(2, value, dtype=dtype)
        with raises(OverflowError, "asarray"):
            xp.asarray([0, value], dtype=dtype)
        with raises(OverflowError, "asarray"):
            xp.asarray(value, dtype=dtype)


@for_dtypes(support.ALL)
def test_eye(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    needs(xp, dtype)
    for rows, cols in [(3, None), (3, 4), (4, 2), (0, None), (0, 3), (3, 0), (1, 1)]:
        for k in (-5, -1, 0, 1, 3):
            expected = np.eye(rows, cols, k, dtype)
            assert_same(xp.eye(rows, cols, k=k, dtype=dtype), expected, (rows, cols, k))


@for_dtypes(support.NUMERIC)
def test_arange(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    needs(xp, dtype)
    cases: list[tuple[Any, ...]] = [(0,), (5,), (2, 7), (2, 7, 3), (7, 2), (0, 10, 10), (0, 9, 2)]
    if dtype.kind != "u":
        cases += [(-3,), (-2, 3), (7, 2, -2), (3, -4, -1)]
    for case in cases:
        got = xp.arange(*case, dtype=dtype)
        expected = list(range(*case))
        assert_same(got, np.asarray(expected, dtype), case)
    if dtype.kind in "fc":
        for start, stop, step in [
            (0, 1, 0.1),
            (0.5, 4.0, 0.25),
            (1, -1, -0.3),
            (1e3, 1e3 + 2, 0.125),
            (0, 700, 1.1),
        ]:
            size = max(0, math.ceil((stop - start) / step))
            exact = [mpf(start) + i * mpf(step) for i in range(size)]
            got = xp.arange(start, stop, step, dtype=dtype)
            assert_kind(got, dtype, (size,))
            scale = [max(abs(v), abs(start)) for v in exact]
            assert_close(got, exact, "arange", dtype, scale=scale, note=(start, stop, step))
    else:
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        for start, stop, step in [
            (low, low + 3, 1),
            (high - 3, high, 1),
            (low, high, high // 2),
            (high, low, -(high // 2)),
        ]:
            got = xp.arange(start, stop, step, dtype=dtype)
            assert_same(got, np.asarray(list(range(start, stop, step)), dtype), (start, stop, step))
        assert_same(xp.arange(0.0, 4.0, dtype=dtype), np.arange(4, dtype=dtype))
        with raises(DTypeError, "arange", f"{dtype}"):
            xp.arange(0, 1, 0.5, dtype=dtype)
    with raises(ValueError, "arange", "step"):
        xp.arange(0, 1, 0, dtype=dtype)


def test_arange_sizes(xp: ModuleType) -> None:
    real = default_dtype(xp, "real floating")
    assert_same(xp.arange(0, 1, 0.25), np.asarray([0, 0.25, 0.5, 0.75], real))
    assert xp.arange(0, 0.3, 0.1).shape == (math.ceil(0.3 / 0.1),)
    assert xp.arange(2**40, 2**40 + 2, dtype=real).shape == (2,)
    assert_same(xp.arange(300_000, dtype=real), np.arange(300_000).astype(real))
    with raises(DTypeError, "arange", "bool"):
        xp.arange(3, dtype=xp.bool)
    with raises(TypeError, "arange"):
        xp.arange(1j)


@for_dtypes(support.FLOATS)
def test_linspace(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    needs(xp, dtype)
    ends: list[tuple[Any, Any]] = [(0, 1), (-1, 1), (1, -2.5), (3, 3), (0.1, 0.2), (1000, 1001.5)]
    if dtype.kind == "c":
        ends += [(0, 1j), (1 + 2j, -3j)]
    for start, stop in ends:
        for num in (0, 1, 2, 3, 5, 50):
            for endpoint in (True, False):
                steps = max(num - 1 if endpoint else num, 1)
                exact = [start + mpf(i) * (stop - mpf(1) * start) / steps for i in range(num)]
                got = xp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)
                host = assert_kind(got, dtype, (num,))
                largest = max(abs(start), abs(stop))
                scale = [largest] * num
                assert_close(got, exact, "linspace", dtype, scale=scale, note=(start, stop, num))
                if num:
                    assert host[0] == dtype.type(start)
                if num > 1 and endpoint:
                    assert host[-1] == dtype.type(stop)


@for_dtypes(support.REAL_FLOATS)
def test_linspace_near_the_ends_of_the_range(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    needs(xp, dtype)
    largest = float(np.finfo(dtype).max)
    for start, stop in [(-largest, largest), (largest, -largest), (largest / 2, largest)]:
        exact = [mpf(start) + mpf(i) * (mpf(stop) - mpf(start)) / 8 for i in range(9)]
        got = xp.linspace(start, stop, 9, dtype=dtype)
        assert_close(got, exact, "linspace", dtype, scale=[largest] * 9)
    # More values than the dtype counts.
    num = 70_001
    got = xp.linspace(0, 1, num, dtype=dtype)
    exact = [mpf(i) / (num - 1) for i in range(0, num, 1000)]
    assert_close(got[::1000], exact, "linspace", dtype, scale=[1] * len(exact))


@for_dtypes(support.INTEGERS)
def test_linspace_of_integers(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    needs(xp, dtype)
    ends = [(0, 10), (10, 0), (5, 5), (1, 8), (0, 100)]
    ends += [(-10, 10), (7, -8)] if dtype.kind == "i" else []
    for start, stop in ends:
        for num in (0, 1, 2, 4, 11, 13):
            for endpoint in (True, False):
                steps = max(num - 1 if endpoint else num, 1)
                # Each value is the exact one rounded down.
                exact = [
                    math.floor(start + Fraction(i * (stop - start), steps)) for i in range(num)
                ]
                got = xp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)
                assert_same(got, np.asarray(exact, dtype), (start, stop, num, endpoint))
    with raises(DTypeError, "linspace", f"{dtype}"):
        xp.linspace(0, 1.5, 3, dtype=dtype)


@for_dtypes(support.ALL)
def test_asarray(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    device = xp.__array_namespace_info__().default_device()
    array = anything(dtype, (2, 3), seed=1)
    for name, x in layouts(xp, array):
        assert xp.asarray(x) is x
        assert xp.asarray(x, dtype=dtype, device=device) is x
        assert xp.asarray(x, copy=False) is x
        copied = xp.asarray(x, copy=True)
        assert_same(copied, array, name)
        copied[...] = True
        assert_same(x, array, name)
    values = np.asarray([[1, 0, 1], [0, 0, 1]], dtype)
    for obj in (values.tolist(), tuple(map(tuple, values.tolist())), list(values), values):
        assert_same(xp.asarray(obj, dtype=dtype), values)
    assert_same(xp.asarray(values[::-1, ::2]), values[::-1, ::2])
    assert_same(xp.asarray(values.T), values.T)
    # A NumPy scalar counts as a Python scalar, so that one of 64 bits gets the device's default dtype.
    defaults = xp.__array_namespace_info__().default_dtypes()
    kind = {"int64": "integral", "float64": "real floating", "complex128": "complex floating"}
    assert_same(
        xp.asarray(values[0, 0]), values[0, 0].astype(defaults.get(kind.get(str(dtype)), dtype))
    )
    assert_same(xp.asarray(values.astype(dtype.newbyteorder(">"))), values)
    rows = [tensor(xp, row) for row in values]
    assert_same(xp.asarray(rows), values)
    assert_same(xp.asarray([rows[0], values[1].tolist()], dtype=dtype), values)
    for target in support.ALL:
        if has(xp, target) and not (dtype.kind == "c" and target.kind != "c"):
            assert_same(xp.asarray(values, dtype=target), values.astype(target))
            if dtype.kind != "c" and not (dtype.kind == "f" and target.kind in "iub"):
                assert_same(xp.asarray(values.tolist(), dtype=target), values.astype(target))
            if target != dtype:
                with raises(CopyError, "asarray", "copy=False"):
                    xp.asarray(rows[0], dtype=target, copy=False)
    with raises(CopyError, "asarray", "copy=False"):
        xp.asarray(values.tolist(), copy=False)


def test_asarray_of_large_integers(xp: ModuleType) -> None:
    if not has(xp, dt.uint64):
        pytest.skip("no uint64")
    values = [0, 2**63, 2**64 - 1, 2**53 + 1]
    expected = np.asarray(values, np.uint64)
    assert_same(xp.asarray(values, dtype=xp.uint64), expected)
    assert_same(xp.asarray([[v] for v in values], dtype=xp.uint64), expected[:, None])
    assert_same(xp.asarray(2**63, dtype=xp.uint64), expected[1])
    # No dtype holds all of these, and none is to lose digits silently.
    for mixed in ([-1, 2**63], [2**53 + 1, -1, 2**64 - 1]):
        with raises(OverflowError, "asarray"):
            xp.asarray(mixed)


@for_dtypes(support.ALL)
def test_from_dlpack(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, (3, 4), seed=2)
    for name, x in layouts(xp, array):
        got = xp.from_dlpack(x)
        assert_same(got, array, name)
        copied = xp.from_dlpack(x, copy=True)
        copied[...] = True
        assert_same(x, array, name)
    got = xp.from_dlpack(x, device=xp.__array_namespace_info__().default_device())
    assert_same(got, array)
    with raises(AttributeError, "from_dlpack", "list"):
        xp.from_dlpack([1, 2])


def test_bad_arguments(xp: ModuleType) -> None:
    widest, far = (xp.int64, 2**62) if has(xp, dt.int64) else (xp.int32, 2**30)
    line = xp.ones(3, dtype=xp.float32)
    cases: list[Refusal] = []
    for function in ("zeros", "ones", "empty"):
        call = getattr(xp, function)
        cases += [
            (ShapeError, function, "-1", lambda call=call: call((2, -1))),
            (TypeError, function, "1.5", lambda call=call: call(1.5)),
            (TypeError, function, "2.5", lambda call=call: call((2, 2.5))),
            (ShapeError, function, "too large", lambda call=call: call((2**40, 2**40))),
            (DTypeError, function, "object", lambda call=call: call(2, dtype=object)),
            (DTypeError, function, "", lambda call=call: call(2, dtype="nonsense")),
        ]
    for function in ("zeros_like", "ones_like", "empty_like"):
        call = getattr(xp, function)
        cases += [
            (TypeError, function, "list", lambda call=call: call([1, 2])),
            (
                DTypeError,
                function,
                "datetime64",
                lambda call=call: call(line, dtype="datetime64[s]"),
            ),
        ]
    cases += [
        (ShapeError, "full", "-1", lambda: xp.full((2, -1), 0)),
        (TypeError, "full", "str", lambda: xp.full(2, "1")),
        (TypeError, "full_like", "list", lambda: xp.full_like([1], 0)),
        (ShapeError, "eye", "-1", lambda: xp.eye(-1)),
        (ValueError, "linspace", "-1", lambda: xp.linspace(0, 1, -1)),
        (DTypeError, "linspace", "bool", lambda: xp.linspace(0, 1, 3, dtype=xp.bool)),
        (DTypeError, "linspace", "float32", lambda: xp.linspace(0, 1j, 3, dtype=xp.float32)),
        (TypeError, "linspace", "str", lambda: xp.linspace("0", 1, 3)),
        (DTypeError, "linspace", "overflow", lambda: xp.linspace(0, far, 5, dtype=widest)),
        (TypeError, "full", "list", lambda: xp.full(2, [1])),
        (TypeError, "arange", "str", lambda: xp.arange("3")),
        (DTypeError, "asarray", "", lambda: xp.asarray(["a"])),
        (ShapeError, "asarray", "ragged", lambda: xp.asarray([[1], [1, 2]])),
        (ShapeError, "asarray", "ragged", lambda: xp.asarray([line, line[:2]])),
        (DTypeError, "asarray", "float32", lambda: xp.asarray([1j], dtype=xp.float32)),
        (TypeError, "asarray", "object", lambda: xp.asarray(object())),
    ]
    assert_refused(cases)
    for call in (xp.zeros, xp.ones, xp.empty, xp.arange, xp.eye, xp.asarray):
        with pytest.raises(DeviceMismatch, match="nowhere"):
            call(2, device="nowhere")
