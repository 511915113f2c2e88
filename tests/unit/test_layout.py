"""Layout and its views, against NumPy arrays whose elements are their own offsets."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.lib.stride_tricks import as_strided

from numr.errors import AxisError, ShapeError
from numr.layout import (
    ArrayPart,
    KeepPart,
    Layout,
    collapse_together,
    contiguous_strides,
    parse_key,
)

MAX_SIZE = 400
thorough = settings(max_examples=200, deadline=None)


def strides_of(array):
    return tuple(stride // array.itemsize for stride in array.strides)


def offsets(layout):
    return np.fromiter(layout.element_offsets(), dtype=np.int64, count=layout.size)


def agree(layout, array):
    """Check a layout against the NumPy view that was made in the same way from an arange."""
    assert layout.shape == array.shape
    assert layout.ndim == array.ndim
    assert layout.size == array.size
    np.testing.assert_array_equal(offsets(layout), array.ravel())
    if array.size:
        relevant = [axis for axis in range(array.ndim) if array.shape[axis] > 1]
        theirs = strides_of(array)
        assert [layout.strides[a] for a in relevant] == [theirs[a] for a in relevant]
    assert layout.is_contiguous == array.flags.c_contiguous
    return True


@st.composite
def shapes_of_size(draw, size):
    """A shape with this number of elements."""
    if size == 0:
        shape = draw(hnp.array_shapes(min_side=0, max_side=3))
        return shape if 0 in shape else (*shape, 0)
    shape = []
    while size > 1:
        n = draw(st.sampled_from([d for d in range(2, size + 1) if size % d == 0]))
        shape.append(n)
        size //= n
    for _ in range(draw(st.integers(0, 2))):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    return tuple(shape)


def axis_sets(ndim, **kwargs):
    return st.lists(st.integers(0, ndim - 1), unique=True, **kwargs) if ndim else st.just([])


@st.composite
def one_view(draw, layout, array):
    """Make the same view of a layout and of an array."""
    ndim = array.ndim
    kind = draw(
        st.sampled_from(
            ["permute", "flip", "slice", "slice", "reshape", "expand", "squeeze", "broadcast"]
            + ["diagonal"] * (ndim >= 2)
        )
    )
    if kind == "permute":
        axes = draw(st.permutations(range(ndim)))
        signed = [axis - ndim if draw(st.booleans()) else axis for axis in axes]
        return layout.permute(signed), array.transpose(axes)
    if kind == "flip":
        axes = draw(st.none() | axis_sets(ndim).map(tuple))
        return layout.flip(axes), np.flip(array, axes)
    if kind == "slice":
        key = draw(hnp.basic_indices(array.shape, allow_newaxis=True, max_dims=6))
        parts = parse_key(key, layout.shape, "getitem", lambda obj: None)
        # Indexing by integers alone gives a scalar; an ellipsis keeps it an array.
        full = key if isinstance(key, tuple) else (key,)
        return layout.slice(parts), array[full if Ellipsis in full else (*full, ...)]
    if kind == "reshape":
        shape = draw(shapes_of_size(array.size))
        view = layout.reshape(shape)
        if view is None:
            return layout, array
        return view, np.reshape(array, shape, copy=False)
    if kind == "expand":
        count = draw(st.integers(1, 2))
        axes = tuple(draw(axis_sets(ndim + count, min_size=count, max_size=count)))
        return layout.expand_dims(axes), np.expand_dims(array, axes)
    if kind == "squeeze":
        ones = [axis for axis in range(ndim) if array.shape[axis] == 1]
        axes = tuple(axis for axis in ones if draw(st.booleans()))
        return layout.squeeze(axes), np.squeeze(array, axes)
    if kind == "broadcast":
        factor = draw(st.integers(0, 3))
        shape = tuple(factor if n == 1 and draw(st.booleans()) else n for n in array.shape)
        shape = (factor,) * draw(st.integers(0, 1)) + shape
        if math.prod(shape) > MAX_SIZE:
            return layout, array
        return layout.broadcast_to(shape), np.broadcast_to(array, shape)
    first, second = draw(axis_sets(ndim, min_size=2, max_size=2))
    k = draw(st.integers(-4, 4))
    return layout.diagonal(k, first, second), np.diagonal(array, k, first, second)


@st.composite
def views(draw, shape=None, max_steps=5):
    """A layout and the equal NumPy view, reached by several random steps from a contiguous array."""
    if shape is None:
        shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    offset = draw(st.integers(0, 3))
    layout = Layout.contiguous(shape, offset)
    array = (np.arange(math.prod(shape), dtype=np.int64) + offset).reshape(shape)
    for _ in range(draw(st.integers(0, max_steps))):
        layout, array = draw(one_view(layout, array))
        if layout.ndim > 8:
            break
    return layout, array


@thorough
@given(views())
def test_views_follow_numpy(case):
    assert agree(*case)


@thorough
@given(views(), st.data())
def test_reshape_copies_exactly_where_numpy_does(case, data):
    layout, array = case
    shape = data.draw(shapes_of_size(array.size))
    view = layout.reshape(shape)
    try:
        expected = np.reshape(array, shape, copy=False)
    except ValueError:
        assert view is None
    else:
        assert view is not None
        assert view.shape == shape
        np.testing.assert_array_equal(offsets(view), expected.ravel())


@thorough
@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_reshape_across_a_gap(rows, columns, data):
    array = np.arange(rows * (columns + 1)).reshape(rows, columns + 1)[:, :columns]
    shape = data.draw(shapes_of_size(array.size))
    view = Layout((rows, columns), (columns + 1, 1)).reshape(shape)
    try:
        expected = np.reshape(array, shape, copy=False)
    except ValueError:
        assert view is None
    else:
        assert view is not None
        assert agree(view, expected)


def test_reshape_where_new_axes_straddle_old_ones():
    assert Layout((4, 9), (10, 1)).reshape((2, 3, 3, 2)) is None
    assert Layout((4, 9), (10, 1)).reshape((2, 2, 3, 3)) == Layout((2, 2, 3, 3), (20, 10, 3, 1))


@thorough
@given(views())
def test_span_holds_every_element(case):
    layout, array = case
    low, high = layout.span()
    if array.size:
        assert (low, high) == (array.min(), array.max() + 1)
    else:
        assert low == high


@thorough
@given(views())
def test_views_never_leave_their_storage(case):
    layout, _ = case
    low, high = layout.span()
    assert low >= 0
    if layout.size == 0:
        assert low == high


@thorough
@given(views())
def test_internal_overlap_is_exact_for_views(case):
    layout, array = case
    assert layout.has_internal_overlap == (np.unique(array).size < array.size)


@thorough
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-6, 6)), max_size=4), st.integers(0, 50))
def test_foreign_strides(axes, offset):
    """Strides that no view of a contiguous array has: nothing is missed, addressing is as in NumPy."""
    layout = Layout(tuple(n for n, _ in axes), tuple(s for _, s in axes), offset + 100)
    base = np.arange(300)
    array = as_strided(
        base[layout.offset :], layout.shape, [s * base.itemsize for s in layout.strides]
    )
    touched = offsets(layout)
    np.testing.assert_array_equal(touched, array.ravel())
    if np.unique(touched).size < touched.size:
        assert layout.has_internal_overlap
    if 0 not in layout.shape:
        assert layout.span() == (touched.min(), touched.max() + 1)
    np.testing.assert_array_equal(offsets(layout.collapse()), touched)


@thorough
@given(st.data())
def test_may_overlap_follows_numpy_bounds(data):
    base = np.arange(24)

    def draw():
        key = data.draw(hnp.basic_indices((24,), allow_newaxis=False, allow_ellipsis=False))
        full = key if isinstance(key, tuple) else (key,)
        parts = parse_key(full, (24,), "getitem", lambda obj: None)
        return Layout.contiguous((24,)).slice(parts), base[(*full, ...)]

    (layout, array), (other, other_array) = draw(), draw()
    assert layout.may_overlap(other) == np.may_share_memory(array, other_array)
    assert layout.may_overlap(other) == other.may_overlap(layout)


@thorough
@given(views())
def test_collapse_keeps_the_elements_in_order(case):
    layout, array = case
    collapsed = layout.collapse()
    np.testing.assert_array_equal(offsets(collapsed), array.ravel())
    assert 1 not in collapsed.shape
    assert collapsed.ndim <= max(layout.ndim, layout.size == 0)
    assert collapsed.collapse() == collapsed
    pairs = zip(collapsed.strides, collapsed.strides[1:], collapsed.shape[1:], strict=False)
    assert all(outer != inner * n for outer, inner, n in pairs)
    if layout.is_contiguous:
        assert collapsed.ndim <= 1


@thorough
@given(
    hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_dims=4, max_side=3), st.data()
)
def test_collapse_together_keeps_elements_paired(case, data):
    shape = case.result_shape
    layouts = [data.draw(views(s, max_steps=0))[0].broadcast_to(shape) for s in case.input_shapes]
    order = data.draw(st.permutations(range(len(shape))))
    layouts = [layout.permute(order) for layout in layouts]
    collapsed = collapse_together(layouts)
    assert len({layout.shape for layout in collapsed}) == 1
    for before, after in zip(layouts, collapsed, strict=True):
        np.testing.assert_array_equal(offsets(after), offsets(before))
    for a, b in itertools.pairwise(range(collapsed[0].ndim)):
        # No two neighbours can still be merged in every layout.
        assert any(x.strides[a] != x.strides[b] * x.shape[b] for x in collapsed)


def test_collapse_together_merges_no_more_than_all_allow():
    plain = Layout.contiguous((2, 3, 4))
    row = Layout.contiguous((4,)).broadcast_to((2, 3, 4))
    assert collapse_together((plain, row)) == (
        Layout((6, 4), (4, 1)),
        Layout((6, 4), (0, 1)),
    )
    assert collapse_together((plain, plain)) == (Layout((24,), (1,)),) * 2
    one = Layout.contiguous((1, 1), 3)
    assert collapse_together((one, one)) == (Layout((), (), 3),) * 2
    none = Layout.contiguous((2, 0), 3)
    assert collapse_together((none, none)) == (Layout((0,), (1,), 3),) * 2
    assert collapse_together(()) == ()


def test_collapse_together_needs_one_shape():
    with pytest.raises(ShapeError, match=r"one shape, not \(2,\), \(3,\)"):
        collapse_together((Layout.contiguous((2,)), Layout.contiguous((3,))))


@pytest.mark.parametrize(
    ("layout", "collapsed"),
    [
        (Layout.contiguous(()), Layout((), ())),
        (Layout.contiguous((1, 1), 5), Layout((), (), 5)),
        (Layout.contiguous((2, 3), 5), Layout((6,), (1,), 5)),
        (Layout.contiguous((2, 0, 3), 5), Layout((0,), (1,), 5)),
        (Layout((2, 3), (0, 0)), Layout((6,), (0,))),
        (Layout.contiguous((2, 3)).flip(), Layout((6,), (-1,), 5)),
        (Layout((3, 2), (1, 3)), Layout((3, 2), (1, 3))),
        (Layout((2, 1, 3), (6, 77, 2)), Layout((6,), (2,))),
    ],
)
def test_collapse_cases(layout, collapsed):
    assert layout.collapse() == collapsed


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((), ()), ((3,), (1,)), ((2, 3, 4), (12, 4, 1)), ((2, 0, 3), (3, 3, 1)), ((1, 5), (5, 1))],
)
def test_contiguous_strides(shape, strides):
    assert contiguous_strides(shape) == strides
    assert Layout.contiguous(shape, 7) == Layout(shape, strides, 7)
    assert Layout.contiguous(shape).is_contiguous


@pytest.mark.parametrize(
    ("layout", "contiguous"),
    [
        (Layout((1, 3), (77, 1)), True),
        (Layout((3, 1), (1, -5)), True),
        (Layout((0, 3), (5, 7)), True),
        (Layout((3, 0), (5, 7)), True),
        (Layout((3,), (2,)), False),
        (Layout((3,), (-1,)), False),
        (Layout((2, 3), (1, 2)), False),
        (Layout((3,), (0,)), False),
    ],
)
def test_contiguity_ignores_what_cannot_matter(layout, contiguous):
    assert layout.is_contiguous is contiguous


def test_layout_is_a_value():
    layout = Layout((2, 3), (3, 1), 4)
    assert hash(layout) == hash(Layout((2, 3), (3, 1), 4))
    assert {layout: 1}[Layout((2, 3), (3, 1), 4)] == 1
    assert pickle.loads(pickle.dumps(layout)) == layout
    with pytest.raises(AttributeError):
        layout.offset = 3
    assert not hasattr(layout, "__dict__")


def test_empty_views_stay_inside():
    # NumPy's rules would put these offsets in front of or behind the storage.
    empty = Layout.contiguous((0,))
    parts = parse_key(slice(None, None, -1), (0,), "getitem", lambda obj: None)
    assert empty.slice(parts).offset == 0
    assert empty.flip().offset == 0
    five = Layout.contiguous((5,))
    assert five.slice(parse_key(slice(5, 5), (5,), "getitem", lambda obj: None)).offset == 0
    assert Layout.contiguous((2, 2)).diagonal(5) == Layout((0,), (3,), 0)


def test_default_diagonal_is_of_the_last_two_axes():
    array = np.arange(24).reshape(2, 3, 4)
    assert agree(Layout.contiguous((2, 3, 4)).diagonal(), array.diagonal(0, -2, -1))
    assert agree(Layout.contiguous((2, 3, 4)).diagonal(-1), array.diagonal(-1, -2, -1))


def test_slice_keeps_axes_after_the_last_part():
    assert Layout.contiguous((2, 3, 4)).slice(()) == Layout.contiguous((2, 3, 4))
    assert Layout.contiguous((2, 3, 4)).slice((KeepPart(1),)) == Layout.contiguous((2, 3, 4))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.permute((0,)), AxisError, r"permute_dims: axes \(0,\) .* shape \(2, 3\)"),
        (lambda x: x.permute((0, 0)), AxisError, r"permute_dims: axes \(0, 0\) .* twice"),
        (lambda x: x.permute((0, 2)), AxisError, r"permute_dims: axis 2 is out of range"),
        (lambda x: x.flip(2), AxisError, r"flip: axis 2 is out of range for 2 dimensions"),
        (lambda x: x.squeeze(0), ShapeError, r"squeeze: axis 0 of shape \(2, 3\) has length 2"),
        (lambda x: x.squeeze(5), AxisError, r"squeeze: axis 5 is out of range"),
        (lambda x: x.expand_dims(3), AxisError, r"expand_dims: axis 3 .* -3 to 2"),
        (lambda x: x.expand_dims((0, -4)), AxisError, r"expand_dims: axes \(0, -4\) .* twice"),
        (lambda x: x.reshape((5,)), ShapeError, r"reshape: shape \(2, 3\) has 6 .* has 5"),
        (lambda x: x.diagonal(0, 1, -1), AxisError, r"diagonal: axis1 and axis2 are both axis 1"),
        (lambda x: x.diagonal(0, 0, 2, function="trace"), AxisError, r"trace: axis 2 is out of"),
        (lambda x: x.broadcast_to((3,)), ShapeError, r"broadcast_to: .* \(3,\), which has fewer"),
        (
            lambda x: x.broadcast_to((4, 2, 5), function="setitem"),
            ShapeError,
            r"setitem: shape \(2, 3\) could not be broadcast to \(4, 2, 5\): axis 2 .* 5 where 3",
        ),
        (lambda x: x.broadcast_to((2, 1)), ShapeError, r"axis 1 .* 1 where 3 is needed"),
        (lambda x: Layout((2,), ()), ShapeError, r"Layout: shape \(2,\) and strides \(\)"),
        (lambda x: x.slice((ArrayPart([0], (1,), 0),)), TypeError, r"slice: ArrayPart is not"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(Layout.contiguous((2, 3)))
