"""Expressions: nodes, types, constants; and the evaluator that gives them their meaning."""

from __future__ import annotations

import gc
import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from numr.codegen import expr as ex
from numr.codegen.expr import BOOL, F16, F32, F64, I32, I64, SCALARS, U32, U64, Scalar, var
from numr.codegen.reference import DTYPES, evaluate

FLOATS = (F16, F32, F64)
INTEGERS = (I32, U32, I64, U64)


def value_of(root: ex.Expr, **values: Any) -> Any:
    arrays = {name: np.asarray(v) for name, v in values.items()}
    return evaluate([root], arrays)[0].tolist()


def test_equal_nodes_are_one_object() -> None:
    x, y = var("x", F32), var("y", F32)
    assert (x + y) * 2.0 is (var("x", F32) + var("y", F32)) * 2.0
    assert x + y is not y + x
    assert var("x", F32) is not var("x", F64)
    assert ex.const(0.0, F32) is not ex.const(-0.0, F32)
    assert ex.const(1, I32) is not ex.const(1, U32)
    assert len({x, var("x", F32), y}) == 2


def test_nodes_are_freed_when_nothing_needs_them() -> None:
    gc.collect()
    before = len(ex._NODES)
    total = var("only here", F32)
    for _ in range(100):
        total = total * total + 1.0
    assert len(ex._NODES) >= before + 200
    del total
    gc.collect()
    assert len(ex._NODES) <= before


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_float_constants_keep_their_bits(type: Scalar) -> None:
    for number in (0.0, -0.0, 1.5, -(2.0**-14), math.inf, -math.inf):
        node = ex.const(number, type)
        back = ex.constant_value(node)
        assert back == number
        assert math.copysign(1, back) == math.copysign(1, number)
        assert value_of(node) == number
    assert math.isnan(ex.constant_value(ex.const(math.nan, type)))
    assert ex.const(0.1, type).value == int(
        np.asarray(0.1, DTYPES[type.name]).view(f"u{type.bits // 8}")
    )
    negated = -ex.const(0.0, type)
    assert math.copysign(1, ex.constant_value(negated)) == -1


def test_integer_constants_are_taken_modulo_their_width() -> None:
    assert ex.constant_value(ex.const(-1, U32)) == 2**32 - 1
    assert ex.constant_value(ex.const(2**31, I32)) == -(2**31)
    assert ex.constant_value(ex.const(-(2**63), I64)) == -(2**63)
    assert ex.constant_value(ex.const(True, BOOL)) is True
    with pytest.raises(ValueError, match=r"1\.5 is no value of i32"):
        ex.const(1.5, I32)
    with pytest.raises(OverflowError, match="beyond the range of f32"):
        ex.const(1e39, F32)
    with pytest.raises(ValueError, match="more than the 32 bits"):
        ex.const_bits(1 << 32, F32)


def test_types_are_checked() -> None:
    x, i, u, b = var("x", F32), var("i", I32), var("u", U32), var("b", BOOL)
    refused: list[Any] = [
        lambda: x + i,
        lambda: x & x,
        lambda: x << 1,
        lambda: i / i,
        lambda: b + b,
        lambda: -b,
        lambda: ~x,
        lambda: b < b,
        lambda: i << i,
        lambda: ex.quotient(x, x),
        lambda: ex.remainder(x, x),
        lambda: ex.select(x, x, x),
        lambda: ex.select(b, x, i),
        lambda: ex.rarely(i, x, x),
        lambda: ex.floor(i),
        lambda: ex.sqrt(u),
        lambda: ex.absolute(u),
        lambda: ex.bitcast(x, U64),
        lambda: ex.bitcast(var("h", F16), F16) + i,
        lambda: 1 + b,
    ]
    for build in refused:
        with pytest.raises(TypeError):
            build()
    with pytest.raises(TypeError, match="no truth value"):
        bool(x < 1.0)
    assert ex.select(b, x, x) is x
    assert ex.cast(x, F32) is x
    assert ex.bitcast(ex.bitcast(x, U32), F32) is x


def test_topological_order_is_complete_and_ends_with_the_roots() -> None:
    x = var("x", F64)
    deep = x
    for _ in range(5000):
        deep = deep * x + 1.0
    order = list(ex.topological([deep, x]))
    assert len(order) == len(set(order)) == 2 * 5000 + 2
    position = {node: i for i, node in enumerate(order)}
    assert all(position[arg] < position[node] for node in order for arg in node.args)
    assert value_of(deep, x=0.5) == pytest.approx(2.0)


def exact_sum(first: float, second: float, term: float) -> Fraction:
    return Fraction(first) * Fraction(second) + Fraction(term)


@pytest.mark.parametrize("type", [F32, F64], ids=str)
@pytest.mark.parametrize("cancels", [False, True])
def test_a_product_and_a_sum_are_rounded_once(type: Scalar, cancels: bool) -> None:
    dtype = DTYPES[type.name]
    rng = np.random.default_rng(4)
    exponents = 2.0 ** rng.integers(-60, 60, 3000)
    x, y = (rng.normal(size=3000) * exponents).astype(dtype), rng.normal(size=3000).astype(dtype)
    # Next to the product, or next to half a unit in its last place, where rounding twice would show.
    near = x * y * (-1 if cancels else 2.0 ** -rng.integers(20, 60, 3000))
    z = near.astype(dtype)
    names = [var(name, type) for name in "xyz"]
    (got,) = evaluate([ex.fma(*names)], {"x": x, "y": y, "z": z})
    assert got.dtype == dtype
    for value, *row in zip(got.tolist(), x.tolist(), y.tolist(), z.tolist(), strict=True):
        exact = exact_sum(*row)
        neighbours = (np.nextafter(dtype.type(value), dtype.type(end)) for end in (-np.inf, np.inf))
        error = abs(Fraction(value) - exact)
        assert all(error <= abs(Fraction(float(other)) - exact) for other in neighbours)


@pytest.mark.parametrize("type", [F32, F64], ids=str)
def test_special_values_of_a_product_and_a_sum(type: Scalar) -> None:
    dtype = DTYPES[type.name]
    big = float(np.finfo(dtype).max)
    tiny = float(np.finfo(dtype).smallest_subnormal)
    rows = [
        (big, 2.0, -big, big),
        (big, 2.0, -np.inf, -np.inf),
        (np.inf, 0.0, 1.0, np.nan),
        (-0.0, 1.0, -0.0, -0.0),
        (0.0, -1.0, 0.0, 0.0),
        (tiny, 0.5, 0.0, 0.0),
        (tiny, 0.5, tiny, 2 * tiny),
        (tiny, -0.5, 1.0, 1.0),
    ]
    columns = np.asarray(rows).T.astype(dtype)
    names = [var(name, type) for name in "xyz"]
    (got,) = evaluate([ex.fma(*names)], dict(zip("xyz", columns[:3], strict=True)))
    np.testing.assert_array_equal(got, columns[3])
    np.testing.assert_array_equal(np.signbit(got)[3:], np.signbit(columns[3])[3:])


def test_devices_with_fma_compute_what_was_given_for_them() -> None:
    x, y, z = (var(name, F32) for name in "xyz")
    total, rest = ex.product_plus(x, y, z), ex.less_product(z, x, y)
    assert (total.op, total.args) == ("add", (x * y, z))
    assert total is not x * y + z
    assert (rest.op, rest.args) == ("sub", (z, x * y))
    nested = ex.sqrt(ex.product_plus(total, y, 1.0)) - z
    made = ex.by_fma([total, rest, nested, x * y + z])
    assert made[:2] == [ex.fma(x, y, z), ex.fma(-x, y, z)]
    assert made[2] is ex.sqrt(ex.fma(ex.fma(x, y, z), y, 1.0)) - z
    assert made[3] is x * y + z
    values = {"x": np.float32(1 + 2**-12), "y": np.float32(1 + 2**-12), "z": np.float32(-1)}
    assert evaluate([total], values)[0] == np.float32(2**-11)
    assert evaluate([total], values, fma=True)[0] == np.float32(2**-11 + 2**-24)
    for build in (ex.fma, ex.product_plus):
        for type in (F16, I32):
            with pytest.raises(TypeError):
                build(*[var("h", type)] * 3)


@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_integer_arithmetic_wraps(type: Scalar) -> None:
    dtype = DTYPES[type.name]
    info = np.iinfo(dtype)
    x, y = var("x", type), var("y", type)
    numbers = [info.min, info.min + 1, 0, 1, 2, 7, info.max - 1, info.max]
    if info.min < 0:
        numbers += [-1, -7]
    a, b = (
        part.ravel() for part in np.meshgrid(np.asarray(numbers, dtype), np.asarray(numbers, dtype))
    )
    rows = list(zip(a.tolist(), b.tolist(), strict=True))

    def wrap(value: int) -> int:
        return (value - int(info.min)) % (1 << info.bits) + int(info.min)

    def quotient(p: int, q: int) -> int:
        return 0 if q == 0 else abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)

    meanings: list[tuple[ex.Expr, Any]] = [
        (x + y, operator.add),
        (x - y, operator.sub),
        (x * y, operator.mul),
        (-x, lambda p, _: -p),
        (x & y, operator.and_),
        (x | y, operator.or_),
        (x ^ y, operator.xor),
        (~x, lambda p, _: ~p),
        (x << 3, lambda p, _: p << 3),
        (x >> 3, lambda p, _: p >> 3),
        (ex.quotient(x, y), quotient),
        (ex.remainder(x, y), lambda p, q: p - q * quotient(p, q) if q else 0),
    ]
    for node, meaning in meanings:
        got = evaluate([node], {"x": a, "y": b})[0]
        assert got.dtype == dtype
        assert got.tolist() == [wrap(meaning(p, q)) for p, q in rows], node
    comparisons: list[tuple[ex.Expr, Any]] = [
        (x < y, operator.lt),
        (x <= y, operator.le),
        (x > y, operator.gt),
        (x >= y, operator.ge),
        (ex.eq(x, y), operator.eq),
        (ex.ne(x, y), operator.ne),
    ]
    for node, meaning in comparisons:
        got = evaluate([node], {"x": a, "y": b})[0]
        assert got.dtype == bool
        assert got.tolist() == [meaning(p, q) for p, q in rows]


def test_float_operations_round_once_in_their_type() -> None:
    x, y = var("x", F32), var("y", F32)
    a, b = np.float32(1 + 2.0**-23), np.float32(1e-45)
    assert value_of(x * x, x=a) == float(np.float32(float(a) ** 2))
    assert value_of((x + y) - x, x=a, y=np.float32(2.0**-25)) == 0
    assert value_of(x * 0.5, x=b) == 0
    assert value_of(x / y, x=np.float32(1), y=np.float32(0)) == math.inf
    assert math.isnan(value_of(x - x, x=np.float32(np.inf)))
    assert value_of(ex.rint(x), x=np.float32([0.5, 1.5, -2.5])) == [0, 2, -2]
    assert value_of(ex.trunc(x), x=np.float32([1.7, -1.7])) == [1, -1]
    assert value_of(ex.floor(x), x=np.float32([1.7, -1.7])) == [1, -2]
    assert value_of(ex.ceil(x), x=np.float32([1.2, -1.2])) == [2, -1]
    assert value_of(ex.sqrt(x), x=np.float32(2)) == float(np.sqrt(np.float32(2)))
    assert value_of(ex.ne(x, x), x=np.float32([np.nan, 1])) == [True, False]
    assert value_of(ex.select(x < y, x, y), x=np.float32(1), y=np.float32(2)) == 1
    assert value_of(ex.rarely(x < y, x, y), x=np.float32(3), y=np.float32(2)) == 2


def test_casts_and_bitcasts() -> None:
    i, u, x = var("i", I32), var("u", U32), var("x", F32)
    assert value_of(ex.cast(u, I64), u=np.uint32(2**32 - 1)) == 2**32 - 1
    assert value_of(ex.cast(i, U64), i=np.int32(-1)) == 2**64 - 1
    assert value_of(ex.cast(i, F32), i=np.int32(2**24 + 1)) == 2**24
    assert value_of(ex.cast(x, I32), x=np.float32(-1.9)) == -1
    assert value_of(ex.cast(x, BOOL), x=np.float32([0.0, -0.0, np.nan])) == [False, False, True]
    assert value_of(ex.cast(var("b", BOOL), F64), b=np.asarray(True)) == 1.0
    assert value_of(ex.bitcast(x, U32), x=np.float32(-0.0)) == 1 << 31
    assert value_of(ex.bitcast(u, F32), u=np.uint32(0x7F800000)) == math.inf


def test_the_evaluator_refuses_other_dtypes() -> None:
    with pytest.raises(TypeError, match="the variable x is f32, its array float64"):
        evaluate([var("x", F32)], {"x": np.float64(1)})


def test_representations() -> None:
    x = var("x", F32)
    assert [repr(type) for type in SCALARS][:3] == ["f16", "f32", "f64"]
    assert repr(x) == "x: f32"
    assert repr(ex.const(1.5, F32)) == "1.5: f32"
    assert repr(x < 1.0) == "<lt of f32, f32: bool>"
