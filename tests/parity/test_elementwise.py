"""Every operation of the op table in every dtype on every runtime, against exact results."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mpc

import numr
from numr import dtypes as dt
from numr.errors import DTypeError, UnsupportedDType
from numr.ir.ops import ADD, BINARY, MULTIPLY, OPS, UNARY, Op
from tests.parity import (
    complex_special_values,
    flushing,
    reference,
    samples,
    special_values,
    ulp,
)

Array = np.ndarray[Any, Any]

_OPS = [pytest.param(op, id=name) for name, op in OPS.items()]
_DTYPES = [pytest.param(dtype, id=str(dtype)) for dtype in dt.ALL_DTYPES]
_REAL_DTYPES = [
    pytest.param(dtype, id=str(dtype)) for dtype in (dt.float16, dt.float32, dt.float64)
]
_COMPLEX_DTYPES = [pytest.param(dtype, id=str(dtype)) for dtype in (dt.complex64, dt.complex128)]

# The result's dtype by the standard's words, written down here independently of the op table.
_BOOLEAN_RESULT = {
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("isfinite", "isinf", "isnan", "signbit"),
}
_COMPONENT_RESULT = {"abs", "imag", "real"}
_FLOATING_DOMAIN = {
    *(
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "copysign",
        "cos",
        "cosh",
        "divide",
    ),
    *(
        "exp",
        "expm1",
        "hypot",
        "log",
        "log10",
        "log1p",
        "log2",
        "logaddexp",
        "nextafter",
        "reciprocal",
    ),
    *("signbit", "sin", "sinh", "sqrt", "tan", "tanh"),
}


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def tensor(xp: ModuleType, array: Array) -> Any:
    device = xp.__array_namespace_info__().default_device()
    try:
        return numr.from_numpy(np.array(array), device=device)
    except UnsupportedDType as error:
        pytest.skip(str(error))


def default_real(xp: ModuleType) -> np.dtype[Any]:
    dtype: np.dtype[Any] = xp.__array_namespace_info__().default_dtypes()["real floating"]
    return dtype


def in_domain(op: Op, dtype: np.dtype[Any]) -> bool:
    return dtype.kind in dt.CATEGORIES[op.domain] or (
        dtype.kind in "biu" and op.name in _FLOATING_DOMAIN
    )


def in_domain_cases(ops: Iterable[Op]) -> list[Any]:
    return [
        pytest.param(op, dtype, id=f"{op.name}-{dtype}")
        for op in ops
        for dtype in dt.ALL_DTYPES
        if in_domain(op, dtype)
    ]


def computed_in(op: Op, dtype: np.dtype[Any], xp: ModuleType) -> np.dtype[Any]:
    return default_real(xp) if dtype.kind in "biu" and op.name in _FLOATING_DOMAIN else dtype


def result_dtype(op: Op, compute: np.dtype[Any]) -> np.dtype[Any]:
    if op.name in _BOOLEAN_RESULT:
        return dt.bool_
    return dt.real_of(compute) if op.name in _COMPONENT_RESULT else compute


def seed_of(op: Op) -> int:
    return list(OPS).index(op.name)


def operands_of(op: Op, dtype: np.dtype[Any], compute: np.dtype[Any]) -> tuple[Array, ...]:
    if op.name == "where":
        x, y = samples.operands(dtype, 2, seed_of(op))
        return np.arange(x.size) % 3 == 0, x, y
    operands = samples.operands(dtype, op.arity, seed_of(op))
    keep = np.ones(operands[0].shape, bool)
    if compute.kind in "fc" and dtype.kind in "biu":
        for x in operands:
            keep &= x != 0  # zeros are in the tables of special values
    if op.name == "pow" and compute.kind == "c":
        # Beyond, every result over- or underflows, or its angle has no digit left.
        keep &= [
            ulp.pow_condition(*pair) < 1000
            for pair in zip(*(x.tolist() for x in operands), strict=True)
        ]
    return tuple(x[keep] for x in operands)


def exact_of(op: Op, compute: np.dtype[Any], operands: tuple[Any, ...]) -> Any:
    if op.name == "where":
        chosen = operands[1] if operands[0] else operands[2]
        return mpc(chosen) if compute.kind == "c" else chosen
    if compute.kind == "c":
        return reference.of_complex(op.name, *operands)
    if compute.kind == "f":
        return reference.of_floats(op.name, compute, *operands)
    if compute.kind == "b":
        return reference.BOOLEAN[op.name](*operands)
    return reference.of_integers(op.name, compute, *operands)


def error_of(
    op: Op, got: Any, exact: Any, result: np.dtype[Any], operands: tuple[Any, ...]
) -> float:
    if result.kind in "biu":
        return 0.0 if type(got) is type(exact) and got == exact else float("inf")
    return ulp.error(got, exact, result, ulp.scale(op.name, operands))


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("op", _OPS)
def test_operation(xp: ModuleType, op: Op, dtype: np.dtype[Any]) -> None:
    function = getattr(xp, op.name)
    if dtype.kind == "b" and op in (ADD, MULTIPLY):
        both = np.asarray([[False, False], [False, True], [True, False], [True, True]])
        got = function(*(tensor(xp, x) for x in both.T))
        assert got.dtype == bool
        assert got.to_numpy().tolist() == getattr(np, op.name)(*both.T).tolist()
        return
    if not in_domain(op, dtype):
        x = tensor(xp, np.ones(3, dtype))
        with pytest.raises(DTypeError, match=rf"{op.name}: .*{dtype}"):
            function(*[x] * op.arity)
        return

    compute = computed_in(op, dtype, xp)
    result = result_dtype(op, compute)
    arrays = operands_of(op, dtype, compute)
    got = function(*(tensor(xp, x) for x in arrays))
    assert type(got) is numr.Tensor
    assert got.dtype == result
    assert got.shape == arrays[0].shape
    assert got.device == xp.__array_namespace_info__().default_device()

    values = got.to_numpy().tolist()
    converted = [x if x.dtype == bool and op.name == "where" else x.astype(compute) for x in arrays]
    rows = list(zip(*(x.tolist() for x in converted), strict=True))
    exact = [exact_of(op, compute, row) for row in rows]
    flushes = compute.kind in "fc" and flushing.flushes(xp, compute)
    wrong = []
    for row, value, correct in zip(rows, values, exact, strict=True):
        error = error_of(op, value, correct, result, row)
        bound = ulp.allowed(op.name, compute, row) if result.kind in "fc" else 0.0
        if not error <= bound and not (
            flushes and flushing.is_right(op.name, value, row, compute, result)
        ):
            wrong.append((error, row, value, correct))
    assert not wrong, f"{len(wrong)} of {len(rows)}: {max(wrong, key=lambda entry: entry[0])}"

    # The same operands in another layout: vector loops may treat it differently, within the bounds.
    backwards = function(*(tensor(xp, x[::-1])[::-1] for x in arrays))
    assert backwards.shape == got.shape
    for row, value, other, correct in zip(
        rows, values, backwards.to_numpy().tolist(), exact, strict=True
    ):
        if other != value:
            bound = ulp.allowed(op.name, compute, row) if result.kind in "fc" else 0.0
            assert error_of(op, other, correct, result, row) <= bound or (
                flushes and flushing.is_right(op.name, other, row, compute, result)
            ), (row, other, correct)


@pytest.mark.parametrize(("op", "dtype"), in_domain_cases(OPS.values()))
def test_shapes(xp: ModuleType, op: Op, dtype: np.dtype[Any]) -> None:
    function = getattr(xp, op.name)
    result = result_dtype(op, computed_in(op, dtype, xp))
    ones = np.ones((2, 3, 4), dtype)
    arity = range(op.arity)
    for shape in [(), (0,), (1,), (2, 0, 3), (2, 3, 4)]:
        operands = [_condition(xp, op, i, tensor(xp, np.ones(shape, dtype))) for i in arity]
        got = function(*operands)
        assert got.shape == shape
        assert got.dtype == result
    expected = function(*(_condition(xp, op, i, tensor(xp, ones)) for i in arity)).to_numpy()
    transposed = [
        _condition(xp, op, i, xp.permute_dims(tensor(xp, ones.T), (2, 1, 0))) for i in arity
    ]
    np.testing.assert_array_equal(function(*transposed).to_numpy(), expected)
    if op.arity == 1:
        return
    # Every operand lacks another axis, or has it with length one.
    shapes = [(2, 3, 1), (4,), (1, 3, 4)]
    operands = [_condition(xp, op, i, tensor(xp, np.ones(shapes[i], dtype))) for i in arity]
    np.testing.assert_array_equal(function(*operands).to_numpy(), expected)
    bad = [_condition(xp, op, i, tensor(xp, np.ones((2 + i,), dtype))) for i in arity]
    with pytest.raises(numr.errors.ShapeError, match=r"\(2,\).*\(3,\)"):
        function(*bad)


def _condition(xp: ModuleType, op: Op, position: int, operand: Any) -> Any:
    return xp.astype(operand, xp.bool) if op.name == "where" and position == 0 else operand


@pytest.mark.parametrize(("op", "dtype"), in_domain_cases(BINARY))
def test_scalar_operands(xp: ModuleType, op: Op, dtype: np.dtype[Any]) -> None:
    function = getattr(xp, op.name)
    values = np.asarray([1, 0, 1, 1] if dtype.kind == "b" else [1, 2, 3, 7], dtype)
    x = tensor(xp, values)
    scalars = {
        "b": [True],
        "i": [2, True],
        "u": [2, True],
        "f": [2.5, 2, True],
        "c": [1 + 2j, 2.5, 2],
    }
    for scalar in scalars[dtype.kind]:
        full = tensor(xp, np.full(4, scalar, dtype))
        for got, expected in [
            (function(x, scalar), function(x, full)),
            (function(scalar, x), function(full, x)),
        ]:
            assert got.dtype == expected.dtype
            assert got.shape == (4,)
            np.testing.assert_array_equal(got.to_numpy(), expected.to_numpy())


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.arity < 3], ids=lambda op: op.name)
def test_operands_must_be_tensors(xp: ModuleType, op: Op) -> None:
    function = getattr(xp, op.name)
    x = tensor(xp, np.ones(3, bool if op.domain == "boolean" else int))
    foreign = [[1, 2, 3], None, "1", np.ones(3, int), object()]
    for bad in foreign:
        for operands in [(bad,)] if op in UNARY else [(x, bad), (bad, x), (bad, bad)]:
            with pytest.raises(TypeError, match=rf"{op.name}: got"):
                function(*operands)
    with pytest.raises(TypeError, match=rf"{op.name}: got only Python scalars"):
        function(*[1] * op.arity)
    with pytest.raises(TypeError):
        function(*[x] * (op.arity + 1))


@pytest.mark.parametrize("dtype", _REAL_DTYPES)
@pytest.mark.parametrize("op", [*special_values.UNARY, *special_values.BINARY])
def test_special_values(xp: ModuleType, op: str, dtype: np.dtype[Any]) -> None:
    cases = list(special_values.real_cases(op))
    columns = zip(*(case.operands for case in cases), strict=True)
    operands = [tensor(xp, np.asarray(column, dtype)) for column in columns]
    got = getattr(xp, op)(*operands).to_numpy().tolist()
    tolerance = 2 * float(np.finfo(dtype).eps)
    wrong = [
        (case.operands, value, case.result)
        for case, value in zip(cases, got, strict=True)
        if special_values.mismatch(value, case.result, tolerance)
    ]
    assert not wrong, f"(operands, got, expected): {wrong[:5]}"
    # A scalar exponent or divisor takes other loops than a tensor does.
    if op in special_values.BINARY:
        for case in cases[:: 1 + len(cases) // 150]:
            x, y = (tensor(xp, np.asarray([x], dtype)) for x in case.operands)
            for value in getattr(xp, op)(x, case.operands[1]), getattr(xp, op)(case.operands[0], y):
                assert not special_values.mismatch(value.item(), case.result, tolerance), (
                    case,
                    value,
                )


_IN_PLACE = {
    "add": operator.iadd,
    "subtract": operator.isub,
    "multiply": operator.imul,
    "divide": operator.itruediv,
    "floor_divide": operator.ifloordiv,
    "remainder": operator.imod,
    "pow": operator.ipow,
}


@pytest.mark.parametrize("dtype", _REAL_DTYPES)
@pytest.mark.parametrize("op", _IN_PLACE)
def test_special_values_in_place(xp: ModuleType, op: str, dtype: np.dtype[Any]) -> None:
    cases = list(special_values.real_cases(op))
    first, second = zip(*(case.operands for case in cases), strict=True)
    x, y = (tensor(xp, np.asarray(column, dtype)) for column in (first, second))
    expected = getattr(xp, op)(x, y).to_numpy()
    target = xp.asarray(x, copy=True)
    view = target[::-1]
    assert _IN_PLACE[op](target, y) is target
    assert target.dtype == dtype
    np.testing.assert_array_equal(target.to_numpy(), expected)
    np.testing.assert_array_equal(np.signbit(target.to_numpy()), np.signbit(expected))
    np.testing.assert_array_equal(view.to_numpy(), expected[::-1])


@pytest.mark.parametrize("dtype", _COMPLEX_DTYPES)
@pytest.mark.parametrize("op", complex_special_values.COMPLEX_UNARY)
def test_complex_special_values(xp: ModuleType, op: str, dtype: np.dtype[Any]) -> None:
    cases = list(complex_special_values.complex_cases(op))
    got = getattr(xp, op)(tensor(xp, pairs([case.operands for case in cases], dtype))).to_numpy()
    tolerance = 4 * float(np.finfo(dtype).eps)
    wrong = [
        (case.operands, value, case.result)
        for case, value in zip(cases, got.tolist(), strict=True)
        if any(map(special_values.mismatch, (value.real, value.imag), case.result, [tolerance] * 2))
    ]
    assert not wrong, f"(operand, got, expected): {wrong[:5]}"


def pairs(parts: list[Any], dtype: np.dtype[Any]) -> Array:
    """Complex numbers of (real, imaginary) pairs: arithmetic would lose the signs of zeros."""
    return np.asarray(parts, dt.real_of(dtype)).view(dtype)[:, 0]


#: Finite and special components that meet in all combinations in the rules for complex arithmetic.
_COMPONENTS = (0.0, -0.0, 1.5, -2.0, special_values.INF, -special_values.INF, special_values.NAN)


@pytest.mark.parametrize("dtype", _COMPLEX_DTYPES)
def test_complex_arithmetic_special_values(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    numbers = list(itertools.product(_COMPONENTS, repeat=2))
    z = pairs(numbers, dtype)
    x, y = tensor(xp, np.repeat(z, z.size)), tensor(xp, np.tile(z, z.size))
    a, b, c, d = (
        tensor(xp, part) for part in _components(np.repeat(z, z.size), np.tile(z, z.size))
    )
    textbook = {
        "add": (a + c, b + d),
        "subtract": (a - c, b - d),
        "multiply": (a * c - b * d, a * d + b * c),
        "equal": (a == c) & (b == d),
        "not_equal": (a != c) | (b != d),
    }
    for name, expected in textbook.items():
        got = getattr(xp, name)(x, y)
        parts = (xp.real(got), xp.imag(got)) if isinstance(expected, tuple) else (got,)
        for part, correct in zip(
            parts, expected if isinstance(expected, tuple) else (expected,), strict=True
        ):
            np.testing.assert_array_equal(part.to_numpy(), correct.to_numpy(), err_msg=name)
    zs = tensor(xp, z)
    np.testing.assert_array_equal(xp.square(zs).to_numpy(), (zs * zs).to_numpy())
    np.testing.assert_array_equal(xp.reciprocal(zs).to_numpy(), (1 / zs).to_numpy())


def _components(*arrays: Array) -> Iterator[Array]:
    for array in arrays:
        yield array.real
        yield array.imag


@pytest.mark.parametrize("dtype", _COMPLEX_DTYPES)
@pytest.mark.parametrize("op", ["divide", "reciprocal", "sign"])
def test_complex_quotients_at_the_ends_of_the_range(
    xp: ModuleType, op: str, dtype: np.dtype[Any]
) -> None:
    # Where the divisor's reciprocal, its modulus or the sum of two products is out of range, but the result is not.
    info = np.finfo(dtype)
    sizes = [info.smallest_subnormal, info.smallest_normal, 1.5, info.max / 2, info.max]
    z = pairs(list(itertools.product(sizes, [*sizes, -info.max])), dtype)
    operands = (np.repeat(z, z.size), np.tile(z, z.size)) if op == "divide" else (z,)
    got = getattr(xp, op)(*(tensor(xp, x) for x in operands)).to_numpy().tolist()
    for value, *row in zip(got, *(x.tolist() for x in operands), strict=True):
        exact = reference.of_complex(op, *row)
        assert ulp.error(value, exact, dtype) <= ulp.allowed(op, dtype, tuple(row)) or (
            flushing.flushes(xp, dtype) and flushing.is_right(op, value, tuple(row), dtype, dtype)
        ), (row, value, exact)


@pytest.mark.parametrize("dtype", _COMPLEX_DTYPES)
def test_complex_parts_special_values(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    inf, nan = special_values.INF, special_values.NAN
    numbers = list(itertools.product(_COMPONENTS, repeat=2))
    z = tensor(xp, pairs(numbers, dtype))
    finite = [np.isfinite(a) and np.isfinite(b) for a, b in numbers]
    infinite = [np.isinf(a) or np.isinf(b) for a, b in numbers]
    undefined = [np.isnan(a) or np.isnan(b) for a, b in numbers]
    assert xp.isfinite(z).tolist() == finite
    assert xp.isinf(z).tolist() == infinite
    assert xp.isnan(z).tolist() == undefined
    for (a, b), modulus, sign, rounded, conjugate in zip(
        numbers, *(f(z).tolist() for f in (xp.abs, xp.sign, xp.round, xp.conj)), strict=True
    ):
        expected = inf if np.isinf(a) or np.isinf(b) else float(np.hypot(a, b))
        assert not special_values.mismatch(modulus, expected, 1e-6)
        parts = {(conjugate.real, a), (conjugate.imag, -b)}
        # -2.0 and the others are whole; 1.5 lies between two whole numbers and 2 is even.
        parts |= {(rounded.real, 2.0 if a == 1.5 else a), (rounded.imag, 2.0 if b == 1.5 else b)}
        if np.isnan(a) or np.isnan(b):
            parts |= {(sign.real, nan), (sign.imag, nan)}
        elif a == 0 and b == 0:
            parts |= {(sign.real, 0.0), (sign.imag, 0.0)}
        else:
            # Division of the components by a real number.
            parts |= {
                (sign.real, float(np.divide(a, expected))),
                (sign.imag, float(np.divide(b, expected))),
            }
        for got, correct in parts:
            assert not special_values.mismatch(got, correct, 1e-6), (a, b, got, correct)
