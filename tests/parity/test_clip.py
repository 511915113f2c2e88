"""``clip`` and its bounds."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numr
from numr import dtypes as dt
from numr.errors import DTypeError, ShapeError, UnsupportedDType
from tests.parity import samples

_REAL = [dtype for dtype in dt.ALL_DTYPES if dtype.kind in "biuf"]
_INTEGERS = [dtype for dtype in dt.ALL_DTYPES if dtype.kind in "iu"]
_FLOATS = [dt.float16, dt.float32, dt.float64]


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


def tensor(xp: ModuleType, values: Any, dtype: Any) -> Any:
    device = xp.__array_namespace_info__().default_device()
    try:
        return numr.from_numpy(np.array(values, dtype), device=device)
    except UnsupportedDType as error:
        pytest.skip(str(error))


def clipped(x: Any, low: Any, high: Any) -> Any:
    """The definition, for numbers without NaN."""
    bounded = x if low is None else max(x, low)
    return bounded if high is None else min(bounded, high)


@pytest.mark.parametrize("dtype", _REAL, ids=str)
def test_bounds(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    values = samples.operands(dtype, 1, seed=5)[0]
    x = tensor(xp, values, dtype)
    ordered = np.sort(values)
    low, high = ordered[len(ordered) // 4], ordered[-len(ordered) // 4]
    for lower, upper in [(None, None), (low, None), (None, high), (low, high)]:
        python = [None if bound is None else bound.item() for bound in (lower, upper)]
        expected = [clipped(v, *python) for v in values.tolist()]
        as_tensors = [
            None if bound is None else tensor(xp, bound, dtype) for bound in (lower, upper)
        ]
        for bounds in (python, as_tensors):
            result = xp.clip(x, *bounds)
            assert result.dtype == dtype
            assert result.tolist() == expected
            assert xp.clip(x, min=bounds[0], max=bounds[1]).tolist() == expected
    assert x.tolist() == values.tolist()


def test_result_is_fresh(xp: ModuleType) -> None:
    x = tensor(xp, [1.0, 2.0], dt.float32)
    result = xp.clip(x)
    result[0] = 7.0
    assert x.tolist() == [1.0, 2.0]


def test_lower_bound_above_upper_bound(xp: ModuleType) -> None:
    assert xp.clip(tensor(xp, [1, 5, 9], dt.int32), 7, 3).tolist() == [3, 3, 3]


@pytest.mark.parametrize("dtype", _INTEGERS, ids=str)
def test_bounds_outside_an_integer_dtype(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    info = np.iinfo(dtype)
    ends = [info.min, 0, info.max]
    x = tensor(xp, ends, dtype)
    for far in (2**70, 10**40):
        for result, expected in [
            (xp.clip(x, -far, far), ends),
            (xp.clip(x, far, None), [info.max] * 3),
            (xp.clip(x, None, -far), [info.min] * 3),
            (xp.clip(x, info.min - 1, info.max + 1), ends),
        ]:
            assert result.dtype == dtype
            assert result.tolist() == expected


@pytest.mark.parametrize("dtype", _FLOATS, ids=str)
def test_bounds_outside_a_float_dtype(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    largest = float(np.finfo(dtype).max)
    ends = [-math.inf, -largest, 0.0, largest, math.inf]
    x = tensor(xp, ends, dtype)
    for far in (10**400, math.inf):
        assert xp.clip(x, -far, far).tolist() == ends
        assert xp.clip(x, far, None).tolist() == [math.inf] * 5
    assert xp.clip(x, -1, 1).tolist() == [-1, -1, 0, 1, 1]
    assert xp.clip(x, -1, 1).dtype == dtype


@pytest.mark.parametrize("dtype", _FLOATS, ids=str)
def test_nan(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    x = tensor(xp, [1.0, math.nan], dtype)
    for low, high in [(math.nan, None), (None, math.nan), (math.nan, 1), (0, math.nan)]:
        assert all(map(math.isnan, xp.clip(x, low, high).tolist()))
        bounds = [None if b is None else tensor(xp, b, dtype) for b in (low, high)]
        assert all(map(math.isnan, xp.clip(x, *bounds).tolist()))
    assert math.isnan(xp.clip(x, 0, 2)[1])
    partly = xp.clip(
        tensor(xp, [5.0, 5.0], dtype), None, tensor(xp, [math.nan, 3.0], dtype)
    ).tolist()
    assert math.isnan(partly[0])
    assert partly[1] == 3.0


def test_bounds_broadcast(xp: ModuleType) -> None:
    x = tensor(xp, [1, 5, 9], dt.int16)
    low, high = tensor(xp, [[2], [6]], dt.int16), tensor(xp, [8, 8, 7], dt.int16)
    assert xp.clip(x, low).tolist() == [[2, 5, 9], [6, 6, 9]]
    assert xp.clip(x, low, high).tolist() == [[2, 5, 7], [6, 6, 7]]
    assert xp.clip(x, 3, high).tolist() == [3, 5, 7]
    assert xp.clip(tensor(xp, np.empty((0, 3)), dt.int16), low[:1], high).shape == (0, 3)
    with pytest.raises(ShapeError, match=r"clip: .*\(3,\).*\(2,\)"):
        xp.clip(x, tensor(xp, [1, 2], dt.int16))


def test_bounds_of_a_narrower_dtype(xp: ModuleType) -> None:
    x = tensor(xp, [1, 500, 9], dt.int32)
    result = xp.clip(x, tensor(xp, 2, dt.int8), tensor(xp, 200, dt.uint8))
    assert result.dtype == dt.int32
    assert result.tolist() == [2, 200, 9]


@pytest.mark.parametrize(
    ("dtype", "bound"),
    [
        (dt.int32, 1.5),
        (dt.uint8, 1j),
        (dt.float32, 1j),
        (dt.bool_, 1),
        (dt.int8, dt.int16),
        (dt.int64, dt.float32),
        (dt.uint64, dt.int8),
        (dt.float32, dt.float64),
    ],
    ids=str,
)
def test_bounds_that_would_change_the_dtype(xp: ModuleType, dtype: Any, bound: Any) -> None:
    x = tensor(xp, [1, 0], dtype)
    value = tensor(xp, 1, bound) if isinstance(bound, np.dtype) else bound
    for arguments in ({"min": value}, {"max": value}):
        with pytest.raises(DTypeError, match=rf"clip: .*{dtype}"):
            xp.clip(x, **arguments)


def test_wrong_arguments(xp: ModuleType) -> None:
    x = tensor(xp, [1, 2], dt.int32)
    with pytest.raises(DTypeError, match="clip: got dtype complex64"):
        xp.clip(tensor(xp, [1j], dt.complex64), 0)
    for bad in ([1, 2], 3, np.ones(2)):
        with pytest.raises(TypeError, match="clip: got"):
            xp.clip(bad, 0, 1)
    for bad in ([1, 2], "1", np.ones(2, np.int32)):
        with pytest.raises(TypeError, match="clip: got"):
            xp.clip(x, bad)
        with pytest.raises(TypeError, match="clip: got"):
            xp.clip(x, 0, bad)
