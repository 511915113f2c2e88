"""What numr takes beyond the standard because code written for NumPy does it."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import numr
from numr import errors


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


def test_arithmetic_of_booleans_is_logical(xp: ModuleType) -> None:
    x = np.asarray([True, True, False, False])
    y = np.asarray([True, False, True, False])
    a, b = xp.asarray(x), xp.asarray(y)
    for got, expected in (
        (a + b, x + y),
        (a * b, x * y),
        (a + True, x + True),
        (False * a, False * x),
    ):
        assert got.dtype == bool
        assert got.tolist() == expected.tolist()
    a += b
    assert a.tolist() == (x | y).tolist()
    a *= b
    assert a.tolist() == y.tolist()
    with pytest.raises(errors.DTypeError, match="subtract"):
        a - b
    assert (b + xp.asarray([1, 2, 3, 4], dtype=xp.int8)).tolist() == [2, 2, 4, 4]


@pytest.mark.parametrize(
    ("narrow", "wide"), [("int8", "int32"), ("uint8", "uint16"), ("float16", "float32")]
)
def test_in_place_a_wider_dtype_of_the_same_kind_is_converted(
    xp: ModuleType, narrow: str, wide: str
) -> None:
    if np.dtype(narrow) not in xp.asarray(0)._client.dtypes:
        pytest.skip(f"the device has no {narrow}")
    host = np.asarray([1, 2, 3], dtype=narrow)
    x = xp.asarray(host, copy=True)
    same = x
    other = np.asarray([5, 7, 11], dtype=wide)
    x += xp.asarray(other)
    host += other
    assert x is same
    assert x.dtype == narrow
    assert x.tolist() == host.tolist()
    x *= xp.asarray(other[:1])
    host *= other[:1]
    assert x.tolist() == host.tolist()


def test_in_place_another_kind_is_refused(xp: ModuleType) -> None:
    x = xp.asarray([1, 2], dtype=xp.int32)
    for other in (xp.asarray([0.5, 0.5], dtype=xp.float32), 0.5):
        with pytest.raises(errors.DTypeError, match="in place"):
            x += other
    u = xp.asarray([1, 2], dtype=xp.uint8)
    with pytest.raises(errors.DTypeError, match="in place"):
        u += xp.asarray([-1, -1], dtype=xp.int32)
    assert x.tolist() == u.tolist() == [1, 2]


def test_one_element_is_true_or_false_whatever_its_axes(xp: ModuleType) -> None:
    assert bool(xp.asarray([[1]])) is True
    assert bool(xp.asarray([0.0], dtype=xp.float32)) is False
    for shape in ((0,), (2,), (1, 2)):
        with pytest.raises(TypeError, match=r"bool: .*elements"):
            bool(xp.zeros(shape, dtype=xp.float32))


def test_broadcasting_to_the_same_shape_leaves_memory_writable(xp: ModuleType) -> None:
    x = xp.zeros((2, 3), dtype=xp.float32)
    y, _ = xp.broadcast_arrays(x, xp.ones(3, dtype=xp.float32))
    y[0, 0] = 1.0
    assert x[0, 0] == 1.0


def test_a_floating_point_scalar_decides_between_integers(xp: ModuleType) -> None:
    real = xp.__array_namespace_info__().default_dtypes()["real floating"]
    assert xp.result_type(xp.uint32, xp.int8, 1.0) == xp.result_type(xp.int8, 1.0)
    if "uint64" in xp.__array_namespace_info__().dtypes():
        one = xp.asarray(1, dtype=xp.uint64)
        assert xp.result_type(one, xp.int8, 1.0) == real
        assert xp.result_type(one, xp.float32, xp.int8, 1.0) == xp.float32
        with pytest.raises(errors.DTypeError):
            xp.result_type(one, xp.int8, 1)


def test_where_of_numpy_takes_any_condition(xp: ModuleType) -> None:
    condition = np.asarray([[0, 2], [-1, 0]], dtype=np.int32)
    x = xp.asarray(condition)
    got = np.where(x, 1.0, xp.zeros((2, 2), dtype=xp.float32))
    assert isinstance(got, numr.Tensor)
    assert got.tolist() == np.where(condition, 1.0, 0.0).tolist()
    assert [i.tolist() for i in np.where(x)] == [i.tolist() for i in np.where(condition)]


def test_functions_of_numpy_that_describe_a_tensor_read_nothing(xp: ModuleType) -> None:
    x = xp.zeros((2, 3), dtype=xp.complex64)
    y = xp.zeros((), dtype=xp.float32)
    assert np.ndim(x) == 2
    assert np.shape(x) == (2, 3)
    assert np.size(x) == 6
    assert np.size(x, 1) == 3
    assert np.iscomplexobj(x)
    assert np.isrealobj(y)
    assert np.result_type(x, y, np.float32) == np.complex64
    assert np.can_cast(y.dtype, x.dtype)
    assert np.common_type(y, x) is np.complex64


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("base", [10.0, 2])
def test_logspace(xp: ModuleType, base: float, endpoint: bool) -> None:
    got = xp.logspace(-3, 2, 11, base=base, endpoint=endpoint)
    assert got.dtype == xp.__array_namespace_info__().default_dtypes()["real floating"]
    expected = np.logspace(-3, 2, 11, base=base, endpoint=endpoint)
    np.testing.assert_allclose(got.to_numpy(), expected, rtol=16 * np.finfo(got.dtype).eps)
    whole = xp.logspace(0, 5, 6, base=2, dtype=xp.int32)
    assert whole.dtype == xp.int32
    assert whole.tolist() == [1, 2, 4, 8, 16, 32]
    assert xp.logspace(0, 1).shape == (50,)
    assert xp.logspace(0, 1, 0).shape == (0,)
    for bad in ({"num": -1}, {"base": -2}):
        with pytest.raises(ValueError, match=r"logspace: .*must not be negative"):
            xp.logspace(0, 1, **bad)


def test_captured_graphs_do_the_same(xp: ModuleType) -> None:
    @numr.jit
    def function(x: numr.Tensor, y: numr.Tensor, mask: numr.Tensor) -> tuple[numr.Tensor, ...]:
        total = x + 0
        total += y
        return total, mask + mask[::-1], mask * True

    x = xp.asarray([1, 2, 3], dtype=xp.int8)
    y = xp.asarray([5, 6, 7], dtype=xp.int32)
    mask = xp.asarray([True, False, False])
    for _ in range(2):
        total, either, both = function(x, y, mask)
        assert total.dtype == xp.int8
        assert total.tolist() == [6, 8, 10]
        assert either.tolist() == [True, False, True]
        assert both.tolist() == [True, False, False]
