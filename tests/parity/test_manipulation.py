"""Functions that move elements without computing: the same elements as NumPy's, in every dtype, from every layout."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from numr import dtypes as dt
from numr.errors import (
    AxisError,
    CopyError,
    DTypeError,
    IndexingError,
    ShapeError,
    UnsupportedDType,
)
from tests.parity import support
from tests.parity.support import (
    Array,
    Refusal,
    anything,
    assert_refused,
    assert_same,
    for_dtypes,
    has,
    layouts,
    raises,
    tensor,
)

SHAPE = (2, 3, 4)


def shares_memory(x: Any, y: Any) -> bool:
    """Whether a change of one tensor shows in the other."""
    before = y.to_numpy().tobytes()
    kept = xp_of(x).asarray(x, copy=True)
    x[...] = xp_of(x).logical_not(x) if x.dtype.kind == "b" else xp_of(x).ones_like(x) * 77
    changed = y.to_numpy().tobytes() != before
    x[...] = kept
    return changed


def has_view(array: Array, x: Any, shape: tuple[int, ...]) -> bool:
    """Whether a tensor's elements lie so that another shape needs no copy, by NumPy's judgement."""
    size = array.itemsize
    first = sum(-s * (n - 1) for s, n in zip(x.strides, x.shape, strict=True) if s < 0)
    low = np.zeros(
        1 + first + sum(abs(s) * (n - 1) for s, n in zip(x.strides, x.shape, strict=True)),
        array.dtype,
    )
    view = np.lib.stride_tricks.as_strided(
        low[first:], x.shape, tuple(s * size for s in x.strides), writeable=False
    )
    try:
        view.reshape(shape, copy=False)
    except ValueError:
        return False
    return True


def xp_of(x: Any) -> Any:
    return x.__array_namespace__()


@for_dtypes(support.ALL)
def test_views(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, SHAPE)
    for name, x in layouts(xp, array):
        for axes in itertools.permutations(range(3)):
            assert_same(xp.permute_dims(x, axes), array.transpose(axes), (name, axes))
        assert_same(xp.permute_dims(x, (-1, 0, -2)), array.transpose(2, 0, 1))
        assert_same(xp.matrix_transpose(x), array.swapaxes(1, 2), name)
        for axis in (None, 0, -1, (0, 2), (-1, 1, 0), ()):
            assert_same(xp.flip(x, axis=axis), np.flip(array, axis), (name, axis))
        for source, destination in [
            (0, -1),
            (-1, 0),
            (1, 1),
            ((0, 2), (2, 1)),
            ((2, 0), (0, 1)),
            ((), ()),
        ]:
            expected = np.moveaxis(array, source, destination)
            assert_same(xp.moveaxis(x, source, destination), expected, (name, source))
        for axis in (0, 3, -1, -4, (0, 1), (-1, 0, 2), ()):
            assert_same(xp.expand_dims(x, axis=axis), np.expand_dims(array, axis), (name, axis))
        wide = xp.expand_dims(x, axis=(0, -1))
        for axis in (0, -1, (0, 4), (-1, -5), ()):
            assert_same(
                xp.squeeze(wide, axis),
                np.squeeze(array[None, ..., None], axis) if axis != () else array[None, ..., None],
            )
        for shape in (SHAPE, (5, 2, 3, 4), (1, 1, 2, 3, 4), (0, 2, 3, 4)):
            assert_same(xp.broadcast_to(x, shape), np.broadcast_to(array, shape), (name, shape))
        for axis in (0, 1, -1):
            parts = xp.unstack(x, axis=axis)
            assert type(parts) is tuple
            for part, expected in zip(parts, np.unstack(array, axis=axis), strict=True):
                assert_same(part, expected, (name, axis))
    x = tensor(xp, array)
    for view in (
        xp.permute_dims(x, (2, 0, 1)),
        xp.matrix_transpose(x),
        xp.flip(x),
        xp.moveaxis(x, 0, 1),
        xp.expand_dims(x, axis=0),
        xp.squeeze(x[:1], 0),
        xp.broadcast_to(x, (2, *SHAPE)),
        xp.broadcast_arrays(x, x)[1],
        xp.unstack(x)[0],
        xp.reshape(x, (6, 4), copy=False),
        xp.reshape(x, (6, 4)),
    ):
        assert shares_memory(x, view)


@for_dtypes(support.ALL)
def test_reshape(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, SHAPE, seed=1)
    for name, x in layouts(xp, array):
        for shape in (
            (24,),
            (4, 6),
            (-1,),
            (2, -1, 2),
            (3, 2, 4),
            (1, 24, 1),
            (2, 3, 4),
            (2, 2, 2, 3),
        ):
            expected = array.reshape(shape)
            for copy in (None, True):
                assert_same(xp.reshape(x, shape, copy=copy), expected, (name, shape))
            if has_view(array, x, shape):
                assert_same(xp.reshape(x, shape, copy=False), expected, (name, shape))
            else:
                with raises(CopyError, "reshape", "copy=False"):
                    xp.reshape(x, shape, copy=False)
        assert not shares_memory(x, xp.reshape(x, (6, 4), copy=True))
    x = tensor(xp, array)
    with raises(CopyError, "reshape", "copy=False"):
        xp.reshape(xp.permute_dims(x, (2, 1, 0)), (24,), copy=False)
    one = tensor(xp, array[0, 0, :1])
    assert_same(xp.reshape(one, ()), array[0, 0, 0])
    assert_same(xp.reshape(xp.reshape(one, ()), (1, 1)), array[0, 0, :1].reshape(1, 1))
    empty = tensor(xp, np.ones((0, 3), dtype))
    for shape in ((0,), (3, 0), (2, 0, 5), (-1, 3)):
        assert_same(xp.reshape(empty, shape), np.ones((0, 3), dtype).reshape(shape))


@for_dtypes(support.ALL)
def test_concat_and_stack(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    arrays = [anything(dtype, SHAPE, seed=i) for i in range(3)]
    for named in zip(*(layouts(xp, array) for array in arrays), strict=True):
        name, xs = named[0][0], [x for _, x in named]
        for axis in (0, 1, -1, None):
            assert_same(xp.concat(xs, axis=axis), np.concatenate(arrays, axis), (name, axis))
        assert_same(xp.concat(tuple(xs)), np.concatenate(arrays))
        for axis in (0, 1, -1, 3, -4):
            assert_same(xp.stack(xs, axis=axis), np.stack(arrays, axis), (name, axis))
    x = tensor(xp, arrays[0])
    different = [x[:, :0], x[:, 1:], x[:, :1]]
    expected = np.concatenate([arrays[0][:, 1:], arrays[0][:, :1]], 1)
    assert_same(xp.concat(different, axis=1), expected)
    assert_same(xp.concat([x]), arrays[0])
    assert not shares_memory(x, xp.concat([x]))
    assert not shares_memory(x, xp.stack([x]))
    empty = tensor(xp, np.ones((0, 2), dtype))
    assert_same(xp.concat([empty, empty]), np.ones((0, 2), dtype))
    assert_same(xp.stack([empty, empty], axis=1), np.ones((0, 2, 2), dtype))
    points = [tensor(xp, array[0, 0, 0]) for array in arrays]
    assert_same(xp.stack(points), np.stack([array[0, 0, 0] for array in arrays]))
    assert_same(xp.concat(points, axis=None), np.stack([array[0, 0, 0] for array in arrays]))


@for_dtypes(support.ALL)
def test_joined_dtypes_promote(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    x = tensor(xp, np.ones(2, dtype))
    for other in support.ALL:
        if not has(xp, other):
            continue
        y = tensor(xp, np.zeros(1, other))
        if {dtype.kind, other.kind} == {"i", "u"} and 8 in {
            d.itemsize for d in (dtype, other) if d.kind == "u"
        }:
            with raises(DTypeError, "concat", "uint64"):
                xp.concat([x, y])
            continue
        target = dt.promote(dtype, other)
        if not has(xp, target):
            with raises(UnsupportedDType, "concat", str(target)):
                xp.concat([x, y])
            continue
        assert_same(xp.concat([x, y]), np.asarray([1, 1, 0], target))
        assert_same(xp.stack([x[0], y[0]]), np.asarray([1, 0], target))


@for_dtypes(support.ALL)
def test_repeat(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, SHAPE, seed=2)
    for name, x in layouts(xp, array):
        for repeats in (0, 1, 3):
            for axis in (None, 0, 1, -1):
                expected = np.repeat(array, repeats, axis)
                assert_same(xp.repeat(x, repeats, axis=axis), expected, (name, repeats, axis))
        for axis, n in [(0, 2), (1, 3), (-1, 4), (None, 24)]:
            counts = np.arange(n) % 3
            expected = np.repeat(array, counts, axis)
            for count_dtype in (dt.int8, dt.uint8, dt.int32):
                got = xp.repeat(x, tensor(xp, counts, count_dtype), axis=axis)
                assert_same(got, expected, (name, axis))
            one = tensor(xp, [2], dt.int32)
            assert_same(xp.repeat(x, one, axis=axis), np.repeat(array, 2, axis), (name, axis))
            assert_same(xp.repeat(x, one[0], axis=axis), np.repeat(array, 2, axis), (name, axis))
    x = tensor(xp, array)
    assert_same(xp.repeat(tensor(xp, array[0, 0, 0]), 2), np.repeat(array[0, 0, 0], 2))
    empty = tensor(xp, np.ones(0, dtype))
    assert_same(xp.repeat(empty, 3), np.ones(0, dtype))
    assert_same(xp.repeat(empty, tensor(xp, np.ones(0, np.int32))), np.ones(0, dtype))
    assert not shares_memory(x, xp.repeat(x, 1, axis=0))


@for_dtypes(support.ALL)
def test_roll(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, SHAPE, seed=3)
    for name, x in layouts(xp, array):
        for shift in (0, 1, -1, 5, -30, 24):
            for axis in (None, 0, 1, -1, (0, 1), (-1,)):
                expected = np.roll(array, shift, axis)
                assert_same(xp.roll(x, shift, axis=axis), expected, (name, shift, axis))
        for shift, axis in [((1, -2), (0, 2)), ((3, 0, -1), (2, 1, 0)), ((1, 1), (0, 0)), ((), ())]:
            expected = np.roll(array, shift, axis)
            assert_same(xp.roll(x, shift, axis=axis), expected, (name, shift, axis))
    x = tensor(xp, array)
    assert not shares_memory(x, xp.roll(x, 0))
    assert not shares_memory(x, xp.roll(x, 4, axis=2))
    assert_same(xp.roll(tensor(xp, array[0, 0, 0]), 3), array[0, 0, 0])
    assert_same(xp.roll(tensor(xp, np.ones((2, 0), dtype)), 3, axis=1), np.ones((2, 0), dtype))


@for_dtypes(support.ALL)
def test_tile(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, SHAPE, seed=4)
    for name, x in layouts(xp, array):
        for counts in ((1, 1, 1), (2,), (3, 1), (2, 1, 3), (2, 1, 2, 1), (0, 2, 1), ()):
            assert_same(xp.tile(x, counts), np.tile(array, counts), (name, counts))
    x = tensor(xp, array)
    assert not shares_memory(x, xp.tile(x, (1, 1, 1)))
    assert_same(xp.tile(tensor(xp, array[0, 0, 0]), (2, 3)), np.tile(array[0, 0, 0], (2, 3)))
    assert_same(xp.tile(tensor(xp, np.ones((2, 0), dtype)), (2, 2)), np.ones((4, 0), dtype))


@for_dtypes(support.ALL)
def test_broadcast_arrays(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    column, row = anything(dtype, (3, 1)), np.asarray([1, 0, 1, 1], np.int32)
    got = xp.broadcast_arrays(tensor(xp, column), tensor(xp, row))
    assert type(got) is tuple
    for result, expected in zip(got, np.broadcast_arrays(column, row), strict=True):
        assert_same(result, expected)
    (alone,) = xp.broadcast_arrays(tensor(xp, column))
    assert_same(alone, column)
    got = xp.broadcast_arrays(tensor(xp, np.ones((0, 1), dtype)), tensor(xp, row))
    assert [x.shape for x in got] == [(0, 4), (0, 4)]


def test_broadcast_shapes(xp: ModuleType) -> None:
    shapes: list[tuple[int, ...]] = [(), (1,), (4,), (3, 1), (3, 4), (2, 1, 1), (0,), (5, 1, 0)]
    for one, two in itertools.product(shapes, shapes):
        try:
            expected = np.broadcast_shapes(one, two)
        except ValueError:
            with pytest.raises(ShapeError, match=r"^broadcast_shapes: "):
                xp.broadcast_shapes(one, two)
        else:
            assert xp.broadcast_shapes(one, two) == expected
    assert xp.broadcast_shapes() == ()
    assert xp.broadcast_shapes((3, 1), (1, 4), (2, 1, 1)) == (2, 3, 4)


@pytest.mark.parametrize("index_dtype", [dt.int8, dt.uint8, dt.int32, dt.uint64, dt.int64], ids=str)
@for_dtypes(support.ALL)
def test_take(xp: ModuleType, dtype: np.dtype[Any], index_dtype: np.dtype[Any]) -> None:
    array = anything(dtype, SHAPE, seed=5)
    support.needs(xp, index_dtype)
    signed = index_dtype.kind == "i"
    for name, x in layouts(xp, array):
        for axis in (0, 1, 2, -1):
            n = SHAPE[axis]
            for indices in ([0], [n - 1, 0, 0], [], [-1, -n] if signed else [0]):
                index = np.asarray(indices, index_dtype)
                got = xp.take(x, tensor(xp, index), axis=axis)
                assert_same(got, np.take(array, index.astype(int), axis), (name, axis, indices))
    index = np.asarray([[1, 0], [1, 1], [0, 0]], index_dtype)
    got = xp.take(tensor(xp, array), tensor(xp, index), axis=1)
    assert_same(got, np.take(array, index.astype(int), 1))
    line = tensor(xp, array[0, 0])
    assert_same(xp.take(line, tensor(xp, [3, 1], index_dtype)), array[0, 0][[3, 1]])
    assert_same(xp.take(line, tensor(xp, 2, index_dtype)), array[0, 0, 2])


@for_dtypes(support.ALL)
def test_take_along_axis(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, SHAPE, seed=6)
    rng = np.random.default_rng(7)
    for axis in (0, 1, 2, -1):
        n = SHAPE[axis]
        for length in (0, 1, 5):
            shape = list(SHAPE)
            shape[axis] = length
            for full in (True, False):
                index = rng.integers(
                    -n, n, shape if full else [1 if i != axis % 3 else length for i in range(3)]
                )
                expected = np.take_along_axis(array, index, axis)
                for name, x in layouts(xp, array):
                    got = xp.take_along_axis(x, tensor(xp, index, np.int32), axis=axis)
                    assert_same(got, expected, (name, axis, length))
    # The other axes of x broadcast as well.
    index = np.asarray([[0, 3], [1, 2], [-1, -4]])
    got = xp.take_along_axis(tensor(xp, array[0, :1]), tensor(xp, index))
    assert_same(got, np.take_along_axis(array[0, :1], index, -1))


@for_dtypes(support.ALL)
def test_where_large_and_small(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array, other = anything(dtype, SHAPE, seed=8), anything(dtype, (3, 1), seed=9)
    mask = np.random.default_rng(0).random(SHAPE) < 0.5
    for (name, x), (_, m) in zip(layouts(xp, array), layouts(xp, mask), strict=True):
        assert_same(xp.where(m, x, tensor(xp, other)), np.where(mask, array, other), name)


@for_dtypes(support.ALL)
def test_triangles_and_grids(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, SHAPE, seed=10)
    for name, x in layouts(xp, array):
        for k in (-4, -1, 0, 1, 2, 9):
            assert_same(
                xp.tril(x, k=k), np.where(np.tri(3, 4, k, bool), array, dtype.type(0)), (name, k)
            )
            assert_same(
                xp.triu(x, k=k),
                np.where(np.tri(3, 4, k - 1, bool), dtype.type(0), array),
                (name, k),
            )
    for shape in ((0, 2), (2, 0), (3, 0, 0)):
        empty = np.ones(shape, dtype)
        assert_same(xp.tril(tensor(xp, empty)), empty)
        assert_same(xp.triu(tensor(xp, empty), k=1), empty)
    vectors = [anything(dtype, (n,), seed=n) for n in (3, 1, 4)]
    xs = [tensor(xp, vector)[::-1] for vector in vectors]
    vectors = [vector[::-1] for vector in vectors]
    for count in range(4):
        for indexing in ("xy", "ij"):
            got = xp.meshgrid(*xs[:count], indexing=indexing)
            assert type(got) is tuple
            expected = np.meshgrid(*vectors[:count], indexing=indexing)
            for result, correct in zip(got, expected, strict=True):
                assert_same(result, correct)
    point, empty = tensor(xp, np.ones((), dtype)), tensor(xp, np.ones(0, dtype))
    assert [x.shape for x in xp.meshgrid(point, xs[0])] == [(3, 1)] * 2
    assert [x.shape for x in xp.meshgrid(empty, xs[0])] == [(3, 0)] * 2


def test_bad_shapes_and_axes(xp: ModuleType) -> None:
    x = xp.zeros((2, 3, 4), dtype=xp.float32)
    line = xp.zeros(3, dtype=xp.float32)
    index = xp.zeros(2, dtype=xp.int32)
    cases: list[Refusal] = [
        (ShapeError, "broadcast_to", r"\(2, 3, 4\).*\(3, 4\)", lambda: xp.broadcast_to(x, (3, 4))),
        (ShapeError, "broadcast_to", r"\(2, 3, 4\)", lambda: xp.broadcast_to(x, (2, 3, 5))),
        (ShapeError, "broadcast_to", "negative", lambda: xp.broadcast_to(line, (-1, 3))),
        (
            ShapeError,
            "broadcast_arrays",
            r"\(2, 3, 4\).*\(3,\)",
            lambda: xp.broadcast_arrays(x, line),
        ),
        (AxisError, "expand_dims", "axis 4", lambda: xp.expand_dims(x, axis=4)),
        (AxisError, "expand_dims", "axis -5", lambda: xp.expand_dims(x, axis=-5)),
        (AxisError, "expand_dims", "twice", lambda: xp.expand_dims(x, axis=(0, 0))),
        (AxisError, "flip", "axis 3", lambda: xp.flip(x, axis=3)),
        (AxisError, "moveaxis", "axis 3", lambda: xp.moveaxis(x, 3, 0)),
        (AxisError, "moveaxis", "axis -4", lambda: xp.moveaxis(x, 0, -4)),
        (AxisError, "moveaxis", "as many", lambda: xp.moveaxis(x, (0, 1), (0,))),
        (AxisError, "moveaxis", "twice", lambda: xp.moveaxis(x, (0, 0), (0, 1))),
        (AxisError, "permute_dims", r"\(0, 1\)", lambda: xp.permute_dims(x, (0, 1))),
        (AxisError, "permute_dims", "twice", lambda: xp.permute_dims(x, (0, 1, 1))),
        (AxisError, "permute_dims", "axis 3", lambda: xp.permute_dims(x, (0, 1, 3))),
        (ShapeError, "reshape", "24", lambda: xp.reshape(x, (5, -1))),
        (ShapeError, "reshape", "24", lambda: xp.reshape(x, (4, 4))),
        (ShapeError, "reshape", "several", lambda: xp.reshape(x, (-1, -1))),
        (ShapeError, "squeeze", "length 3", lambda: xp.squeeze(x, 1)),
        (AxisError, "squeeze", "axis 3", lambda: xp.squeeze(x, 3)),
        (AxisError, "unstack", "axis 3", lambda: xp.unstack(x, axis=3)),
        (AxisError, "unstack", "axis 0", lambda: xp.unstack(x[0, 0, 0])),
        (ShapeError, "concat", r"\(2, 3, 4\).*\(3,\)", lambda: xp.concat([x, line])),
        (ShapeError, "concat", "axis 1", lambda: xp.concat([x, x[:1]], axis=1)),
        (AxisError, "concat", "axis 3", lambda: xp.concat([x, x], axis=3)),
        (AxisError, "concat", "axis 0", lambda: xp.concat([x[0, 0, 0]])),
        (ShapeError, "concat", "no tensors", lambda: xp.concat([])),
        (ShapeError, "stack", "no tensors", lambda: xp.stack(())),
        (ShapeError, "stack", r"\(2, 3, 4\).*\(3,\)", lambda: xp.stack([x, line])),
        (AxisError, "stack", "axis 4", lambda: xp.stack([x, x], axis=4)),
        (TypeError, "concat", "Tensor", lambda: xp.concat(x)),
        (TypeError, "stack", "list", lambda: xp.stack([x, [1]])),
        (ValueError, "repeat", "-1", lambda: xp.repeat(x, -1)),
        (TypeError, "repeat", "1.5", lambda: xp.repeat(x, 1.5)),
        (AxisError, "repeat", "axis 3", lambda: xp.repeat(x, 2, axis=3)),
        (ShapeError, "repeat", r"\(2,\).*\(4,\)", lambda: xp.repeat(x, index, axis=2)),
        (DTypeError, "repeat", "float32", lambda: xp.repeat(line, line)),
        (ValueError, "repeat", "-1", lambda: xp.repeat(x, index - 1, axis=0)),
        (ValueError, "repeat", "-1", lambda: xp.repeat(x, index[0] - 1, axis=0)),
        (AxisError, "roll", "axis 3", lambda: xp.roll(x, 1, axis=3)),
        (ValueError, "roll", r"\(1, 2\)", lambda: xp.roll(x, (1, 2), axis=0)),
        (ValueError, "roll", r"\(1, 2\)", lambda: xp.roll(x, (1, 2))),
        (ValueError, "tile", "-1", lambda: xp.tile(x, (1, -1))),
        (TypeError, "tile", "1.5", lambda: xp.tile(x, (1.5,))),
        (ShapeError, "take", r"\(2, 3, 4\)", lambda: xp.take(x, index)),
        (AxisError, "take", "axis 3", lambda: xp.take(x, index, axis=3)),
        (DTypeError, "take", "float32", lambda: xp.take(line, line)),
        (DTypeError, "take", "bool", lambda: xp.take(line, xp.asarray([True]))),
        (ShapeError, "take_along_axis", r"\(2,\)", lambda: xp.take_along_axis(x, index)),
        (DTypeError, "take_along_axis", "float32", lambda: xp.take_along_axis(line, line)),
        (AxisError, "take_along_axis", "axis 1", lambda: xp.take_along_axis(line, index, axis=1)),
        (ShapeError, "tril", r"\(3,\)", lambda: xp.tril(line)),
        (ShapeError, "triu", r"\(3,\)", lambda: xp.triu(line)),
        (ShapeError, "meshgrid", r"\(2, 3, 4\)", lambda: xp.meshgrid(line, x)),
        (ValueError, "meshgrid", "'zz'", lambda: xp.meshgrid(line, indexing="zz")),
        (ShapeError, "matrix_transpose", r"\(3,\)", lambda: xp.matrix_transpose(line)),
    ]
    assert_refused(cases)
    with pytest.raises(ShapeError, match=r"^take_along_axis: .*\(3, .\).*\(2, .\)"):
        xp.take_along_axis(x[0], xp.zeros((2, 4), dtype=xp.int32), axis=1)


def test_indices_out_of_range(xp: ModuleType) -> None:
    x = xp.zeros((2, 3), dtype=xp.float32)
    for bad in (3, -4, 1000):
        index = xp.asarray([0, bad], dtype=xp.int32)
        with raises(IndexingError, "take", "3"):
            xp.take(x, index, axis=1)
        with raises(IndexingError, "take_along_axis", "3"):
            xp.take_along_axis(x, index[None, :], axis=1)
    with raises(IndexingError, "take"):
        xp.take(x[:0], xp.asarray([0], dtype=xp.int32), axis=0)
