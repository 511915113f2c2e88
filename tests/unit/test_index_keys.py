"""Index keys: parsing, planning, and an executor of plans that must do what NumPy does."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from numr.errors import HostCopyError, IndexingError
from numr.layout import (
    ArrayPart,
    IntPart,
    KeepPart,
    Layout,
    MaskPart,
    NewAxisPart,
    SlicePart,
    broadcast_index_shapes,
    parse_key,
    split_key,
)

thorough = settings(max_examples=600, deadline=None)


class Index:
    """An integer by its ``__index__`` alone."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def is_array(obj):
    if not isinstance(obj, (np.ndarray, np.bool_)):
        return None
    return {"b": "boolean", "i": "integer", "u": "integer"}.get(obj.dtype.kind)


def as_array(values):
    array = np.asarray(values)
    return array.astype(np.int64) if array.size == 0 else array


def parse(key, shape):
    return parse_key(key, shape, "getitem", is_array, as_array)


# A small runtime: it may take views by layout and gather along leading axes, nothing else.


def locate(key, shape):
    """Offsets of what a key selects, as (index axes, kept axes), with the plan and the index shape."""
    plan = split_key(parse(key, shape))
    layout = Layout.contiguous(shape).slice(plan.basic)
    view = np.array(list(layout.element_offsets()), dtype=np.int64).reshape(layout.shape)
    moved = view.transpose(plan.gather_order(view.ndim))
    arrays, shapes = [], []
    for _, part in plan.advanced:
        if isinstance(part, MaskPart) and part.ndim == 0:
            shapes.append((int(bool(part.mask)),))
        elif isinstance(part, MaskPart):
            arrays.extend(np.nonzero(part.mask))
            shapes.append(arrays[-1].shape)
        else:
            arrays.append(part.array)
            shapes.append(part.shape)
    index_shape = broadcast_index_shapes(tuple(shapes), "getitem")
    assert len(arrays) == len(plan.axes)
    if arrays:
        picked = moved[tuple(np.broadcast_to(array, index_shape) for array in arrays)]
    else:
        picked = np.broadcast_to(moved, index_shape + moved.shape)
    expected = plan.result_shape(view.shape, index_shape)
    return picked, plan, len(index_shape), expected


def get(x, key):
    picked, plan, index_ndim, shape = locate(key, x.shape)
    result = picked.transpose(plan.result_order(index_ndim, picked.ndim - index_ndim))
    assert result.shape == shape
    return x.ravel()[result]


def set_(x, key, value):
    picked, plan, index_ndim, shape = locate(key, x.shape)
    order = plan.value_order(index_ndim, picked.ndim - index_ndim)
    flat = x.ravel()
    flat[picked] = np.broadcast_to(value, shape).transpose(order)
    return flat.reshape(x.shape)


@st.composite
def index_arrays(draw, length, index_shape):
    """An integer array that broadcasts to `index_shape` and is in range of an axis."""
    dims = draw(st.integers(0, len(index_shape)))
    shape = tuple(
        n if draw(st.integers(0, 3)) else 1 for n in index_shape[len(index_shape) - dims :]
    )
    if length == 0:
        return np.zeros((0,), np.int64)
    dtype = draw(st.sampled_from([np.int64, np.int8, np.uint8]))
    low = 0 if dtype is np.uint8 else -length
    array = draw(hnp.arrays(dtype, shape, elements=st.integers(low, length - 1)))
    return array.tolist() if array.ndim and array.size and draw(st.booleans()) else array


@st.composite
def masks(draw, shape, index_shape):
    """A boolean array of a shape, mostly with as many true elements as the index arrays take."""
    size = math.prod(shape)
    wanted = draw(st.sampled_from([1, index_shape[-1] if index_shape else 1, size]))
    mask = np.zeros(size, bool)
    mask[draw(st.permutations(range(size)))[:wanted]] = True
    mask = mask.reshape(shape)
    return mask.tolist() if size and draw(st.booleans()) else mask


@st.composite
def runs(draw, lengths, index_shape):
    """Key items that stand for adjacent axes."""
    items = []
    axis = 0
    while True:
        extra = draw(st.integers(0, 11))
        if extra == 0:
            items.append(None)
        elif extra == 1:
            items.append(
                draw(st.sampled_from([True, False, np.True_, np.array(True), np.array(False)]))
            )
        if axis == len(lengths):
            return items
        length = lengths[axis]
        kind = draw(st.sampled_from(["int", "slice", "array", "array", "mask"]))
        if kind == "int" and length:
            index = draw(st.integers(-length, length - 1))
            items.append(draw(st.sampled_from([int, np.int64, Index, np.array]))(index))
        elif kind == "array":
            items.append(draw(index_arrays(length, index_shape)))
        elif kind == "mask":
            count = draw(st.integers(1, min(2, len(lengths) - axis)))
            items.append(draw(masks(lengths[axis : axis + count], index_shape)))
            axis += count - 1
        else:
            items.append(draw(st.slices(length) | st.just(slice(None))))
        axis += 1


@st.composite
def shapes_and_keys(draw):
    lengths = st.sampled_from([0, 1, 2, 2, 3, 3, 4])
    ndim = draw(st.sampled_from([0, 1, 2, 3, 3, 4, 4]))
    shape = tuple(draw(lengths) for _ in range(ndim))
    index_shape = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    if draw(st.integers(0, 9)) == 0:
        index_shape = (*index_shape, 0)
    front = draw(st.sampled_from([*range(ndim + 1), ndim]))
    items = draw(runs(shape[:front], index_shape))
    if draw(st.booleans()):
        start = draw(st.integers(front, len(shape)))
        items = [*items, ..., *draw(runs(shape[start:], index_shape))]
    if len(items) == 1 and not isinstance(items[0], list) and draw(st.booleans()):
        return shape, items[0]
    return shape, tuple(items)


@thorough
@given(shapes_and_keys())
def test_reading_follows_numpy(case):
    shape, key = case
    x = np.arange(math.prod(shape)).reshape(shape) * 10
    try:
        expected = x[key]
    except IndexError:
        with pytest.raises(IndexingError, match=r"^getitem: "):
            get(x, key)
    else:
        result = get(x, key)
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result, expected)


@thorough
@given(shapes_and_keys(), st.data())
def test_assignment_follows_numpy(case, data):
    shape, key = case
    x = np.arange(math.prod(shape)).reshape(shape)
    try:
        selected = x[key]
    except IndexError:
        with pytest.raises(IndexingError, match=r"^getitem: "):
            set_(x, key, 0)
        return
    # Where an element is selected twice, which of two values stays is not defined.
    value = np.array(-1)
    if np.unique(selected).size == selected.size:
        value = -1 - np.arange(selected.size).reshape(selected.shape)
        if value.ndim and data.draw(st.booleans()):
            axis = data.draw(st.integers(0, value.ndim - 1))
            value = value[(slice(None),) * axis + (slice(0, 1),)]
    expected = x.copy()
    expected[key] = value
    np.testing.assert_array_equal(set_(x.copy(), key, value), expected)


@thorough
@given(
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4).flatmap(
        lambda shape: st.tuples(
            st.just(shape),
            hnp.basic_indices(shape, allow_newaxis=True),
        )
    )
)
def test_basic_keys_are_views(case):
    shape, key = case
    x = np.arange(math.prod(shape)).reshape(shape)
    plan = split_key(parse(key, shape))
    assert plan.is_basic
    assert plan.axes == ()
    layout = Layout.contiguous(shape).slice(plan.basic)
    expected = x[key]
    assert layout.shape == np.shape(expected)
    assert list(layout.element_offsets()) == np.ravel(expected).tolist()


@given(st.integers(0, 6), st.slices(6) | st.builds(slice, *[st.none() | st.integers(-20, 20)] * 3))
def test_slices_clamp_as_in_python(length, key):
    if key.step == 0:
        with pytest.raises(IndexingError, match="step must not be 0"):
            parse(key, (length,))
        return
    (part,) = parse(key, (length,))
    places = range(length)[key]
    assert isinstance(part, SlicePart)
    assert [part.start + i * part.step for i in range(part.length)] == list(places)


A = np.array([0, 1])
B = np.array([[0], [1]])
M = np.ones((2, 3), bool)


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        (0, (IntPart(0),)),
        (-1, (IntPart(1),)),
        (np.int8(-1), (IntPart(1),)),
        (Index(1), (IntPart(1),)),
        ((), ()),
        (..., (KeepPart(3),)),
        (None, (NewAxisPart(),)),
        (slice(None), (SlicePart(0, 1, 2),)),
        (slice(Index(1), np.int64(9), Index(1)), (SlicePart(1, 1, 1),)),
        ((slice(None), slice(None, None, -1)), (SlicePart(0, 1, 2), SlicePart(2, -1, 3))),
        ((slice(None), slice(None, None, 7)), (SlicePart(0, 1, 2), SlicePart(0, 1, 1))),
        ((slice(None), slice(2, 1)), (SlicePart(0, 1, 2), SlicePart(0, 1, 0))),
        ((0, ..., 0), (IntPart(0), KeepPart(1), IntPart(0))),
        ((0, 1, ..., 0), (IntPart(0), IntPart(1), KeepPart(0), IntPart(0))),
        ((None, ..., None), (NewAxisPart(), KeepPart(3), NewAxisPart())),
    ],
)
def test_parsed_basic_keys(key, parts):
    assert parse(key, (2, 3, 4)) == parts


def test_parsed_arrays_know_their_axis():
    parts = parse((..., A, M), (5, 2, 2, 3))
    assert parts[0] == KeepPart(1)
    assert isinstance(parts[1], ArrayPart)
    assert (parts[1].array is A, parts[1].shape, parts[1].axis, parts[1].ndim) == (True, (2,), 1, 1)
    assert isinstance(parts[2], MaskPart)
    assert (parts[2].mask is M, parts[2].shape, parts[2].axis, parts[2].ndim) == (
        True,
        (2, 3),
        2,
        2,
    )


def test_lists_become_arrays():
    (part,) = parse([0, 1], (2, 3))
    assert isinstance(part, ArrayPart)
    assert part.shape == (2,)
    (part,) = parse(([True, False],), (2, 3))
    assert isinstance(part, MaskPart)
    (part,) = parse([], (2, 3))
    assert isinstance(part, ArrayPart)
    assert part.shape == (0,)
    (part,) = parse(((1, 0),), (2, 3))
    assert isinstance(part, ArrayPart)
    with pytest.raises(IndexingError, match=r"^getitem: an object of type list is not an index"):
        parse_key([0, 1], (2, 3), "getitem", is_array)


@pytest.mark.parametrize(
    ("key", "basic", "axes", "result_axis"),
    [
        ((A,), (KeepPart(1),), (0,), 0),
        ((slice(None), A), (SlicePart(0, 1, 2), KeepPart(1)), (1,), 1),
        # An integer beside an index array counts as adjacent, but is resolved by the view.
        ((slice(None), 0, A), (SlicePart(0, 1, 2), IntPart(0), KeepPart(1)), (1,), 1),
        ((0, slice(None), A), (IntPart(0), SlicePart(0, 1, 3), KeepPart(1)), (1,), 0),
        ((slice(None), A, 0), (SlicePart(0, 1, 2), KeepPart(1), IntPart(0)), (1,), 1),
        ((A, slice(None), B), (KeepPart(1), SlicePart(0, 1, 3), KeepPart(1)), (0, 2), 0),
        ((..., A, B), (KeepPart(1), KeepPart(1), KeepPart(1)), (1, 2), 1),
        # An ellipsis separates even where it stands for no axis.
        (
            (slice(None), A, ..., B),
            (SlicePart(0, 1, 2), *[KeepPart(n) for n in (1, 0, 1)]),
            (1, 2),
            0,
        ),
        ((None, A), (NewAxisPart(), KeepPart(1)), (1,), 1),
        (
            (slice(None), A, None, B),
            (SlicePart(0, 1, 2), KeepPart(1), NewAxisPart(), KeepPart(1)),
            (1, 3),
            0,
        ),
        ((M,), (KeepPart(2),), (0, 1), 0),
        ((M, A), (KeepPart(2), KeepPart(1)), (0, 1, 2), 0),
        ((True,), (), (), 0),
        ((slice(None), np.array(False)), (SlicePart(0, 1, 2),), (), 1),
        ((slice(None), 0, True), (SlicePart(0, 1, 2), IntPart(0)), (), 1),
        ((0, slice(None), True), (IntPart(0), SlicePart(0, 1, 3)), (), 0),
    ],
)
def test_plans(key, basic, axes, result_axis):
    plan = split_key(parse(key, (2, 3, 4)))
    assert not plan.is_basic
    assert plan.basic == basic
    assert plan.axes == axes
    assert plan.result_axis == result_axis


def test_plan_orders_are_permutations_and_inverse():
    plan = split_key(parse((slice(None), A, B), (2, 3, 4)))
    assert plan.gather_order(3) == (1, 2, 0)
    assert plan.result_order(2, 1) == (2, 0, 1)
    assert plan.value_order(2, 1) == (1, 2, 0)
    assert plan.result_shape((2, 3, 4), (2, 2)) == (2, 2, 2)


def test_zero_dimensional_integer_arrays_are_the_callers_choice():
    key = np.array(1)
    (gathered,) = parse(key, (2, 3))
    assert isinstance(gathered, ArrayPart)
    assert gathered.shape == ()
    assert parse_key(key, (2, 3), "getitem", lambda obj: None) == (IntPart(1),)


class Device:
    """An array on another device, which does not give its value away."""

    def __index__(self):
        raise HostCopyError("no")


class Broken:
    def __index__(self):
        raise RuntimeError("broken")


class Refusing:
    def __index__(self):
        raise TypeError("not today")


def test_errors_of_index_methods_are_not_replaced():
    with pytest.raises(HostCopyError):
        parse(Device(), (2,))
    for key in (Broken(), slice(Broken(), None), (0, slice(None, None, Broken()))):
        with pytest.raises(RuntimeError, match="broken"):
            parse(key, (2, 3))
    with pytest.raises(TypeError, match="not today"):
        parse(slice(Refusing(), None), (2,))
    with pytest.raises(IndexingError, match="Refusing is not an index") as caught:
        parse(Refusing(), (2,))
    assert str(caught.value.__cause__) == "not today"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (2, r"index 2 is out of range for axis 0 of length 2 \(shape \(2, 3, 0\)\): .*-2 to 1"),
        (-3, r"index -3 is out of range for axis 0 of length 2"),
        ((0, 3), r"index 3 is out of range for axis 1 of length 3"),
        ((..., 0), r"index 0 is out of range for axis 2 of length 0 .*empty"),
        (
            (0, 0, slice(None), 0),
            r"too many indices: the key names 4 axes, the array has 3 .*\(2, 3, 0",
        ),
        ((..., 0, 0, 0, 0), r"too many indices"),
        ((M, M), r"too many indices: the key names 4 axes"),
        ((..., ...), r"the key has 2 ellipses"),
        (slice(None, None, 0), r"slice\(None, None, 0\) on axis 0 .* step must not be 0"),
        ((0, slice(None, None, Index(0))), r"on axis 1 .* step must not be 0"),
        (slice(1.0, 2), r"bounds must be integers or None, not 1.0 \(float\)"),
        (slice("a"), r"bounds must be integers or None, not 'a' \(str\)"),
        (1.0, r"an object of type float is not an index; use integers"),
        ("a", r"an object of type str"),
        ((0, "a"), r"an object of type str"),
        (np.array([0.0]), r"an object of type ndarray of dtype float64"),
        ([0.5], r"an object of type list"),
        (np.ones((3,), bool), r"boolean index of shape \(3,\) .* shape \(2,\) .* axis 0"),
        (
            (0, np.ones((3, 2), bool)),
            r"shape \(3, 2\) .* shape \(3, 0\) .* axis 1 of shape \(2, 3, 0\)",
        ),
    ],
)
def test_errors(key, message):
    with pytest.raises(IndexingError, match=f"^getitem: .*{message}|^getitem: {message}"):
        parse(key, (2, 3, 0))


@pytest.mark.parametrize("key", [0, slice(None), A, [0]])
def test_arrays_without_axes_take_no_index(key):
    with pytest.raises(IndexingError, match=r"names 1 axes, the array has 0 \(shape \(\)\)"):
        parse(key, ())


def test_index_arrays_must_broadcast():
    with pytest.raises(IndexingError, match=r"^setitem: index arrays: shapes \(2,\) and \(3,\)"):
        broadcast_index_shapes(((2,), (3,)), "setitem")
    assert broadcast_index_shapes((), "setitem") == ()


def test_parts_of_arrays_compare_by_identity():
    # Comparing arrays elementwise would make equality of plans meaningless.
    part = ArrayPart(SimpleNamespace(shape=(2,)), (2,), 0)
    assert part == part
    assert part != ArrayPart(part.array, (2,), 0)
