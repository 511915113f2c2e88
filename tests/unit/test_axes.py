"""Axes, shapes and broadcasting, against NumPy and by their error messages."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from numr.errors import AxisError, ShapeError
from numr.layout import (
    MAX_SIZE,
    broadcast_shapes,
    infer_reshape,
    normalize_axes,
    normalize_axis,
    normalize_shape,
)


class Index:
    """An integer by its ``__index__`` alone."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


@given(st.integers(-6, 6), st.integers(0, 4))
def test_normalize_axis_follows_numpy(axis, ndim):
    try:
        expected = np.lib.array_utils.normalize_axis_index(axis, ndim)
    except np.exceptions.AxisError:
        with pytest.raises(AxisError, match=rf"^sum: axis {axis} .* {ndim} dimensions"):
            normalize_axis(axis, ndim, "sum")
    else:
        assert normalize_axis(axis, ndim, "sum") == expected
        assert normalize_axis(Index(axis), ndim, "sum") == expected
        assert normalize_axis(np.int8(axis), ndim, "sum") == expected


def test_normalize_axis_names_the_valid_range():
    with pytest.raises(AxisError, match=r"valid axes are -2 to 1"):
        normalize_axis(2, 2, "sum")
    with pytest.raises(AxisError, match="no axis"):
        normalize_axis(0, 0, "sum")


@pytest.mark.parametrize("axis", [True, 1.0, "0", np.True_, np.array([0, 1])])
def test_axes_must_be_integers(axis):
    with pytest.raises(TypeError):
        normalize_axis(axis, 2, "sum")
    with pytest.raises(TypeError):
        normalize_axes((axis,), 2, "sum")


def test_bool_axis_message_names_function_and_value():
    with pytest.raises(TypeError, match=r"^sum: an axis must be an integer, not True \(bool\)"):
        normalize_axes(True, 2, "sum")


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (None, (0, 1, 2)),
        (1, (1,)),
        (-1, (2,)),
        (Index(-1), (2,)),
        ((), ()),
        ((-1, 0), (2, 0)),
        ([2, 1], (2, 1)),
    ],
)
def test_normalize_axes_keeps_the_order_given(axis, expected):
    assert normalize_axes(axis, 3, "sum") == expected


def test_normalize_axes_refuses_repeats():
    with pytest.raises(AxisError, match=r"^sum: axes \(0, -3\) .* twice"):
        normalize_axes((0, -3), 3, "sum")
    assert issubclass(AxisError, IndexError)
    assert issubclass(AxisError, ValueError)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (3, (3,)),
        (0, (0,)),
        ((), ()),
        ([2, 3], (2, 3)),
        (Index(3), (3,)),
        ((Index(3), np.int64(2)), (3, 2)),
        (np.array([2, 3]), (2, 3)),
        (np.array(4), (4,)),
        (range(2, 4), (2, 3)),
        ((0, MAX_SIZE), (0, MAX_SIZE)),
        ((MAX_SIZE,), (MAX_SIZE,)),
    ],
)
def test_normalize_shape(shape, expected):
    result = normalize_shape(shape, "zeros")
    assert result == expected
    assert all(type(n) is int for n in result)


@pytest.mark.parametrize("shape", [(2, -1), -1])
def test_negative_lengths(shape):
    with pytest.raises(ShapeError, match=r"^zeros: shape \(.*-1,?\) has a negative length"):
        normalize_shape(shape, "zeros")


@pytest.mark.parametrize("shape", [(2**62, 2), (MAX_SIZE + 1,), (0, 2**62, 2), (2**32, 2**32)])
def test_too_large_shapes(shape):
    with pytest.raises(ShapeError, match=r"^zeros: .*2\*\*63 - 1"):
        normalize_shape(shape, "zeros")


@pytest.mark.parametrize("shape", [2.0, (2, 3.0), "ab", None, True, (True, 2), np.array([1.5])])
def test_shapes_must_be_integers(shape):
    with pytest.raises(TypeError, match=r"^zeros: "):
        normalize_shape(shape, "zeros")


@given(hnp.array_shapes(min_dims=0, min_side=0, max_side=4), st.data())
def test_infer_reshape_follows_numpy(shape, data):
    target = data.draw(
        st.lists(st.sampled_from([-1, 0, 1, 2, 3, 4, math.prod(shape)]), max_size=4).map(tuple)
    )
    try:
        expected = np.empty(shape).reshape(target).shape
    except ValueError:
        with pytest.raises(ShapeError, match=r"^reshape: "):
            infer_reshape(math.prod(shape), target, "reshape")
    else:
        assert infer_reshape(math.prod(shape), target, "reshape") == expected


@pytest.mark.parametrize(
    ("size", "shape", "message"),
    [
        (6, (4, -1), r"6 elements do not fit shape \(4, -1\)"),
        (6, (2, 2), r"6 elements do not fit shape \(2, 2\)"),
        (6, (-1, -1), r"only one length may be -1, shape \(-1, -1\)"),
        (6, (-2, 3), r"shape \(-2, 3\) has a negative length other than -1"),
        (0, (0, -1), r"-1 in shape \(0, -1\) cannot be found for 0 elements"),
        (0, (0, 2**62, 2), r"2\*\*63 - 1"),
    ],
)
def test_infer_reshape_errors(size, shape, message):
    with pytest.raises(ShapeError, match=f"^reshape: .*{message}|^reshape: {message}"):
        infer_reshape(size, shape, "reshape")


def test_infer_reshape_takes_an_integer():
    assert infer_reshape(6, -1, "reshape") == (6,)
    assert infer_reshape(6, Index(6), "reshape") == (6,)
    with pytest.raises(TypeError, match=r"^reshape: "):
        infer_reshape(6, (2.0, 3), "reshape")


@given(st.lists(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=2), max_size=4))
def test_broadcast_shapes_follows_numpy(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match=r"^add: shapes .* could not be broadcast") as caught:
            broadcast_shapes(*shapes, function="add")
        assert all(str(shape) in str(caught.value) for shape in shapes)
    else:
        assert broadcast_shapes(*shapes, function="add") == expected


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_dims=4))
def test_broadcastable_shapes_give_their_result(case):
    assert broadcast_shapes(*case.input_shapes) == case.result_shape


def test_broadcast_error_names_axis_and_rule():
    with pytest.raises(
        ShapeError,
        match=r"^add: shapes \(2, 3\), \(1,\) and \(5, 2, 4\) could not be broadcast: axis 2 of the result "
        r"meets lengths 3 and 4; .* equal or 1",
    ):
        broadcast_shapes((2, 3), (1,), (5, 2, 4), function="add")


def test_broadcast_result_must_not_be_too_large():
    with pytest.raises(ShapeError, match=r"2\*\*63 - 1"):
        broadcast_shapes((2**32, 1), (1, 2**32))
