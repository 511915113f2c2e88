"""Functions on random layouts: the same results as NumPy's on the same array."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numr import dtypes as dt
from tests.parity.support import (
    Array,
    accumulating_dtype,
    assert_kind,
    assert_same,
    default_dtype,
    has,
    tensor,
)
from tests.tensor.strategies import arrays

#: The examples are small, and the fixture only names a namespace.
randomly = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)

SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)
REAL = tuple(dtype for dtype in dt.STANDARD_DTYPES if dtype.kind in "biuf")


def laid_out(xp: ModuleType, view: Array) -> Any:
    """A tensor with the strides of a host array, where the runtime can take them over; the same elements in any case."""
    if not has(xp, view.dtype):
        return None
    base = view if view.base is None else view.base
    if xp.zeros(1)._client.host_memory:
        return xp.asarray(view, copy=False)
    # Elsewhere the storage travels as it is, and the view is made there.
    root = tensor(xp, np.ravel(base, order="K"))
    client = root._client
    size = view.itemsize
    offset = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // size
    layout = root.layout.__class__(view.shape, tuple(s // size for s in view.strides), offset)
    result: Any = root._like(client.wrap(client.storage(root._data), layout, root.dtype))
    return result


@randomly
@given(view=arrays(), data=st.data())
def test_elementwise(xp: ModuleType, view: Array, data: st.DataObject) -> None:
    x = laid_out(xp, view)
    if x is None:
        return
    assert_same(x, view)
    assert_same(xp.equal(x, x), view == view)
    other = data.draw(arrays(st.just(view.shape[-1:]) if view.ndim else st.just(()), (view.dtype,)))
    y = laid_out(xp, other)
    if view.dtype.kind != "b":
        assert_same(x + y, view + other)
        assert_same(y - x, other - view)
        assert_same(xp.multiply(x, 2), view * view.dtype.type(2))
    assert_same(xp.where(xp.equal(x, y), x, y), np.where(view == other, view, other))
    assert_same(xp.astype(x, xp.bool), view.astype(bool))


@randomly
@given(view=arrays(SHAPES), data=st.data())
def test_reductions(xp: ModuleType, view: Array, data: st.DataObject) -> None:
    x = laid_out(xp, view)
    if x is None:
        return
    axes = data.draw(st.none() | st.lists(st.integers(-view.ndim, view.ndim - 1)).map(tuple))
    if axes is not None and len({axis % view.ndim for axis in axes}) < len(axes):
        axes = axes[:1]
    keepdims = data.draw(st.booleans())
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    result = accumulating_dtype(xp, view.dtype)
    # Whole numbers of moderate size, whose sums are exact.
    assert_same(xp.sum(x, **options), np.sum(view, dtype=result, **options))
    assert_same(xp.any(x, **options), np.asarray(np.any(view, **options)))
    assert_same(xp.all(x, **options), np.asarray(np.all(view, **options)))
    reduced = range(view.ndim) if axes is None else axes
    if view.dtype.kind != "c" and all(view.shape[axis] for axis in reduced):
        assert_same(xp.max(x, **options), np.asarray(np.max(view, **options)))
        assert_same(xp.min(x, **options), np.asarray(np.min(view, **options)))
    axis = data.draw(st.integers(-view.ndim, view.ndim - 1))
    got = xp.cumulative_sum(x, axis=axis)
    assert_same(got, np.cumsum(view, axis, dtype=result))


@randomly
@given(view=arrays(SHAPES), data=st.data())
def test_moving(xp: ModuleType, view: Array, data: st.DataObject) -> None:
    x = laid_out(xp, view)
    if x is None:
        return
    axis = data.draw(st.integers(-view.ndim, view.ndim - 1))
    shift = data.draw(st.integers(-6, 6))
    assert_same(xp.roll(x, shift, axis=axis), np.roll(view, shift, axis))
    assert_same(xp.roll(x, shift), np.roll(view, shift))
    assert_same(xp.flip(x, axis=axis), np.flip(view, axis))
    assert_same(xp.concat([x, x], axis=axis), np.concatenate([view, view], axis))
    assert_same(xp.stack([x, x], axis=axis), np.stack([view, view], axis))
    repeats = data.draw(st.integers(0, 3))
    assert_same(xp.repeat(x, repeats, axis=axis), np.repeat(view, repeats, axis))
    order = tuple(data.draw(st.permutations(range(view.ndim))))
    assert_same(xp.permute_dims(x, order), view.transpose(order))
    n = view.shape[axis]
    if n:
        index = np.asarray(data.draw(st.lists(st.integers(-n, n - 1), max_size=5)), np.int64)
        assert_same(xp.take(x, tensor(xp, index), axis=axis), np.take(view, index, axis))


@randomly
@given(view=arrays(SHAPES), data=st.data())
def test_reshape(xp: ModuleType, view: Array, data: st.DataObject) -> None:
    x = laid_out(xp, view)
    if x is None:
        return
    # Joins and splits of axes: some of them views, some copies.
    shape = list(view.shape)
    for _ in range(data.draw(st.integers(1, 3))):
        if len(shape) > 1 and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(shape) - 2))
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        else:
            at = data.draw(st.integers(0, len(shape) - 1))
            divisors = [d for d in range(1, shape[at] + 1) if shape[at] % d == 0] or [1]
            first = data.draw(st.sampled_from(divisors))
            shape[at : at + 1] = [first, shape[at] // first]
    expected = view.reshape(shape)
    assert_same(xp.reshape(x, tuple(shape)), expected)
    assert_same(xp.reshape(x, tuple(shape), copy=True), expected)
    back = xp.reshape(xp.reshape(x, tuple(shape)), view.shape)
    assert_same(back, view)


@randomly
@given(view=arrays(SHAPES, REAL), data=st.data())
def test_sorting(xp: ModuleType, view: Array, data: st.DataObject) -> None:
    x = laid_out(xp, view)
    if x is None:
        return
    axis = data.draw(st.integers(-view.ndim, view.ndim - 1))
    index = default_dtype(xp, "indexing")
    order = np.argsort(view, axis, stable=True).astype(index)
    assert_same(xp.argsort(x, axis=axis), order)
    assert_same(xp.sort(x, axis=axis), np.take_along_axis(view, order, axis))
    assert_same(xp.take_along_axis(x, xp.argsort(x, axis=axis), axis=axis), np.sort(view, axis))
    for got, expected in zip(xp.nonzero(x), np.nonzero(view), strict=True):
        assert_same(got, expected.astype(index))
    if view.shape[axis]:
        assert_same(xp.argmax(x, axis=axis), np.argmax(view, axis).astype(index))
    values = xp.unique_values(x)
    assert_same(values, np.unique(view))


@randomly
@given(view=arrays(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))))
def test_products(xp: ModuleType, view: Array) -> None:
    x = laid_out(xp, view)
    if x is None or view.dtype.kind == "b":
        return
    # Products of small whole numbers are exact; beyond that integers wrap.
    expected = np.matmul(view, view.swapaxes(1, 2))
    assert_same(xp.matmul(x, x.mT), expected)
    host = assert_kind(xp.vecdot(x, x), view.dtype, view.shape[:-1])
    np.testing.assert_array_equal(host, np.vecdot(view, view))
    assert_same(
        xp.linalg.trace(x), np.trace(view, 0, -2, -1, dtype=accumulating_dtype(xp, view.dtype))
    )


def test_strides_are_those_of_the_view(xp: ModuleType) -> None:
    view = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[::-1, :, ::2]
    x = laid_out(xp, view)
    if x is None:
        pytest.skip("no float64")
    assert_same(x, view)
    assert x.strides == tuple(s // 8 for s in view.strides)
