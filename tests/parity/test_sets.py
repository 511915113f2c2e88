"""Set functions in every dtype on every runtime, against definitions written out in Python."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from numr import dtypes as dt
from numr.errors import DTypeError
from tests.parity import support
from tests.parity.support import (
    Array,
    anything,
    assert_same,
    for_dtypes,
    has,
    layouts,
    raises,
    tensor,
)


def part_key(value: float) -> tuple[bool, float]:
    return (True, 0) if math.isnan(value) else (False, value)


def order_key(value: Any) -> Any:
    """NaN last; complex numbers by their real, then by their imaginary parts."""
    if isinstance(value, complex):
        return part_key(value.real), part_key(value.imag)
    return part_key(value) if isinstance(value, float) else value


def groups(elements: list[Any]) -> list[list[int]]:
    """Positions of equal elements, in the order of the elements; what is NaN equals nothing."""
    found: list[list[int]] = []
    for i in sorted(range(len(elements)), key=lambda i: order_key(elements[i])):
        if found and elements[found[-1][0]] == elements[i]:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def repetitive(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return rng.choice(anything(dtype, (7,), seed), shape)


CASES = [("some", (3, 4, 5)), ("line", (9,)), ("one", ()), ("none", (0, 2)), ("single", (1,))]


@pytest.mark.parametrize(("case", "shape"), CASES)
@for_dtypes(support.ALL)
def test_unique(xp: ModuleType, dtype: np.dtype[Any], case: str, shape: tuple[int, ...]) -> None:
    index = support.default_dtype(xp, "indexing")
    array = repetitive(dtype, shape, seed=1)
    elements = array.reshape(-1).tolist()
    found = groups(elements)
    firsts = np.asarray([members[0] for members in found], index)
    values = array.reshape(-1)[firsts]
    counts = np.asarray([len(members) for members in found], index)
    inverse = np.empty(array.size, index)
    for number, members in enumerate(found):
        inverse[members] = number
    inverse = inverse.reshape(shape)
    for name, x in layouts(xp, array):
        everything = xp.unique_all(x)
        assert type(everything)._fields == ("values", "indices", "inverse_indices", "counts")
        for got, expected in zip(everything, (values, firsts, inverse, counts), strict=True):
            assert_same(got, expected, (case, name))
        with_counts = xp.unique_counts(x)
        assert type(with_counts)._fields == ("values", "counts")
        assert_same(with_counts.values, values, name)
        assert_same(with_counts.counts, counts, name)
        with_inverse = xp.unique_inverse(x)
        assert type(with_inverse)._fields == ("values", "inverse_indices")
        assert_same(with_inverse.values, values, name)
        assert_same(with_inverse.inverse_indices, inverse, name)
        assert_same(xp.unique_values(x), values, name)


@for_dtypes(support.FLOATS)
def test_unique_special_values(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    x = tensor(xp, np.asarray([math.nan, -0.0, 1, math.nan, 0.0, math.inf, 0.0, -math.inf], dtype))
    values, indices, inverse, counts = xp.unique_all(x)
    # The zero that occurs first stands for both; every NaN stands for itself.
    expected = np.asarray([-math.inf, -0.0, 1, math.inf, math.nan, math.nan], dtype)
    assert_same(values, expected)
    assert indices.tolist() == [7, 1, 2, 5, 0, 3]
    assert inverse.tolist() == [4, 1, 2, 5, 1, 3, 1, 0]
    assert counts.tolist() == [1, 3, 1, 1, 1, 1]
    assert_same(xp.unique_values(x), expected)
    # Among many zeros too, which vector sorts may mix up.
    signs = np.where(np.arange(200) % 3, 0.0, -0.0).astype(dtype)
    assert_same(xp.unique_values(tensor(xp, signs)), signs[:1])
    assert_same(xp.unique_values(tensor(xp, signs[1:])), signs[1:2])
    if dtype.kind == "c":
        z = tensor(
            xp,
            np.asarray(
                [complex(math.nan, 1), complex(1, math.nan), complex(math.nan, 1), 1], dtype
            ),
        )
        assert xp.unique_counts(z).counts.tolist() == [1, 1, 1, 1]


@for_dtypes(support.ALL)
def test_isin(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = repetitive(dtype, (3, 4, 5), seed=2)
    for count in (0, 1, 3, 30):
        known = repetitive(dtype, (count,), seed=2)[: max(count // 2, 1)]
        if dtype.kind != "b":
            known = np.concatenate([known, anything(dtype, (count // 3,), seed=3)])
        listed = known.tolist()
        expected = np.asarray(
            [any(a == b for b in listed) for a in array.reshape(-1).tolist()]
        ).reshape(array.shape)
        for name, x in layouts(xp, array):
            assert_same(xp.isin(x, tensor(xp, known)), expected, (name, count))
            got = xp.isin(x, tensor(xp, known)[::-1], invert=True)
            assert_same(got, ~expected, (name, count))
    point = tensor(xp, array[0, 0, 0])
    assert_same(xp.isin(point, point), np.bool_(array[0, 0, 0] == array[0, 0, 0]))
    empty = tensor(xp, np.ones((0, 2), dtype))
    assert_same(xp.isin(empty, point), np.ones((0, 2), bool))
    assert_same(xp.isin(point, empty), np.bool_(False))
    assert_same(xp.isin(point, empty, invert=True), np.bool_(True))


@for_dtypes(support.ALL)
def test_isin_with_scalars(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    x = tensor(xp, np.asarray([[1, 0], [1, 1]], dtype))
    scalars: list[Any] = [True, False] if dtype.kind == "b" else [0, 1]
    scalars += [1.5, 1.0] if dtype.kind in "fc" else []
    scalars += [1j, 1 + 0j] if dtype.kind == "c" else []
    for scalar in scalars:
        assert_same(xp.isin(x, scalar), x.to_numpy() == scalar)
        assert_same(xp.isin(x, scalar, invert=True), x.to_numpy() != scalar)
        assert_same(xp.isin(scalar, x), np.bool_(scalar in x.to_numpy()))
        assert_same(xp.isin(scalar, x, invert=True), np.bool_(scalar not in x.to_numpy()))
    if dtype.kind in "iu":
        # Compared by value, whether or not the dtype holds the scalar.
        for scalar in (-1, 2**40 + 1, 2**64):
            assert_same(xp.isin(x, scalar), np.zeros((2, 2), bool))
            assert_same(xp.isin(scalar, x), np.bool_(False))


def test_isin_promotes(xp: ModuleType) -> None:
    x = xp.asarray([1, 2, 3], dtype=xp.int8)
    assert xp.isin(x, xp.asarray([2.0, 3.5], dtype=xp.float32)).tolist() == [False, True, False]
    assert xp.isin(x, xp.asarray([3, 300], dtype=xp.uint16)).tolist() == [False, False, True]
    if has(xp, dt.uint64):
        with raises(DTypeError, "isin", "uint64"):
            xp.isin(x, tensor(xp, [1], np.uint64))
    with raises(TypeError, "isin"):
        xp.isin(1, 2)
    with raises(TypeError, "isin"):
        xp.isin(x, "1")
