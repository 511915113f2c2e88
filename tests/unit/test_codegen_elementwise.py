"""Every row of the op table as an expression, in every dtype of its domain, against exact results."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from mpmath import mpc

from numr import dtypes as dt
from numr.codegen.elementwise import Complex, convert, expression, operand, scalar_of
from numr.codegen.expr import BOOL, F32, F64, I32, Expr, topological, var
from numr.codegen.reference import DTYPES, evaluate
from numr.errors import DTypeError
from numr.ir import ops
from numr.ir.ops import OPS, Op
from tests.parity import complex_special_values, reference, samples, special_values, ulp

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

CASES = [
    pytest.param(op, dtype, id=f"{op.name}-{dtype}")
    for op in OPS.values()
    for dtype in dt.ALL_DTYPES
    if dtype.kind in dt.CATEGORIES[op.domain]
]
REALS = [pytest.param(d, id=str(d)) for d in (dt.float16, dt.float32, dt.float64)]
COMPLEXES = [pytest.param(d, id=str(d)) for d in (dt.complex64, dt.complex128)]


def held(array: Array) -> Array:
    """An array as its elements are held in expressions: narrow integers in 32 bits."""
    return array.astype(DTYPES[scalar_of(array.dtype).name]) if array.dtype.kind in "iu" else array


def compute(op: Op, dtype: DType, *arrays: Array) -> Array:
    """The results of an operation, in the dtype that the op table promises."""
    values: dict[str, Array] = {}
    operands = []
    for name, array in zip("xyz", arrays, strict=False):
        operands.append(operand(name, array.dtype))
        if array.dtype.kind == "c":
            values |= {f"{name}_re": array.real.copy(), f"{name}_im": array.imag.copy()}
        else:
            values[name] = held(array)
    result = expression(op, dtype, *operands)
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    if isinstance(result, Complex):
        parts = evaluate(result, values)
        joined = np.empty(shape, dtype)
        joined.real, joined.imag = parts
        return joined
    promised = {"same": dtype, "bool": dt.bool_, "real": dt.real_of(dtype)}[op.result.value]
    assert result.type is scalar_of(promised)
    got = np.broadcast_to(evaluate([result], values)[0], shape)
    narrowed = got.astype(promised)
    # Narrow integers stay within their range.
    np.testing.assert_array_equal(narrowed, got)
    return narrowed


def bound(op: Op, dtype: DType, row: tuple[Any, ...]) -> float:
    """The bound of the table for all runtimes; of real functions not more than numr's own library promises."""
    if dtype.kind == "c":
        return 4.0 if op is ops.POW else ulp.allowed(op.name, dtype, row)
    return min(ulp.allowed(op.name, dtype, row), 4.0 if op is ops.POW else 2.0)


def exact_of(op: Op, dtype: DType, row: tuple[Any, ...]) -> Any:
    if op is ops.SELECT:
        chosen = row[1] if row[0] else row[2]
        return mpc(chosen) if dtype.kind == "c" else chosen
    if dtype.kind == "c":
        return reference.of_complex(op.name, *row)
    if dtype.kind == "f":
        return reference.of_floats(op.name, dtype, *row)
    if dtype.kind == "b":
        return reference.BOOLEAN[op.name](*row)
    return reference.of_integers(op.name, dtype, *row)


def operands_of(op: Op, dtype: DType) -> tuple[Array, ...]:
    seed = list(OPS).index(op.name)
    if op is ops.SELECT:
        x, y = samples.operands(dtype, 2, seed)
        return np.arange(x.size) % 3 == 0, x, y
    operands = samples.operands(dtype, op.arity, seed)
    if op.name in reference.TRANSCENDENTAL or dtype.kind == "c":
        # The references take milliseconds each.
        operands = tuple(x[seed % 5 :: 5] for x in operands)
    if op is ops.POW and dtype.kind == "c":
        # Beyond, every result over- or underflows, or its angle has no digit left.
        rows = zip(*(x.tolist() for x in operands), strict=True)
        keep = [ulp.pow_condition(*row) < 1000 for row in rows]
        return tuple(x[keep] for x in operands)
    return operands


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_operation(op: Op, dtype: DType) -> None:
    arrays = operands_of(op, dtype)
    got = compute(op, dtype, *arrays)
    wrong = []
    for value, *row in zip(got.tolist(), *(x.tolist() for x in arrays), strict=True):
        exact = exact_of(op, dtype, tuple(row))
        if got.dtype.kind in "biu":
            error, limit = float(value != exact), 0.0
        else:
            error = ulp.error(value, exact, got.dtype, ulp.scale(op.name, tuple(row)))
            limit = bound(op, dtype, tuple(row))
        if not error <= limit:
            wrong.append((error, row, value, exact))
    assert not wrong, f"{len(wrong)} of {got.size}: {max(wrong, key=lambda entry: entry[0])}"


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("name", [*special_values.UNARY, *special_values.BINARY])
def test_special_values(name: str, dtype: DType) -> None:
    cases = list(special_values.real_cases(name))
    columns = zip(*(case.operands for case in cases), strict=True)
    got = compute(OPS[name], dtype, *(np.asarray(column, dtype) for column in columns)).tolist()
    tolerance = 2 * float(np.finfo(dtype).eps)
    wrong = [
        (case.operands, value, case.result)
        for case, value in zip(cases, got, strict=True)
        if special_values.mismatch(value, case.result, tolerance)
    ]
    assert not wrong, f"{len(wrong)}: {wrong[:5]}"


def pairs(parts: list[Any], dtype: DType) -> Array:
    """Complex numbers of (real, imaginary) pairs: arithmetic would lose the signs of zeros."""
    return np.asarray(parts, dt.real_of(dtype)).view(dtype)[:, 0]


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", complex_special_values.COMPLEX_UNARY)
def test_complex_special_values(name: str, dtype: DType) -> None:
    cases = list(complex_special_values.complex_cases(name))
    got = compute(OPS[name], dtype, pairs([case.operands for case in cases], dtype)).tolist()
    tolerance = 4 * float(np.finfo(dtype).eps)
    wrong = [
        (case.operands, value, case.result)
        for case, value in zip(cases, got, strict=True)
        if any(map(special_values.mismatch, (value.real, value.imag), case.result, [tolerance] * 2))
    ]
    assert not wrong, f"{len(wrong)}: {wrong[:5]}"


COMPONENTS = (0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_arithmetic_is_the_textbook_s(dtype: DType) -> None:
    z = pairs(list(itertools.product(COMPONENTS, repeat=2)), dtype)
    x, y = np.repeat(z, z.size), np.tile(z, z.size)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    with np.errstate(all="ignore"):
        textbook = {
            "add": (a + c, b + d),
            "subtract": (a - c, b - d),
            "multiply": (a * c - b * d, a * d + b * c),
        }
    for name, (re, im) in textbook.items():
        got = compute(OPS[name], dtype, x, y)
        np.testing.assert_array_equal(got.real, re, err_msg=name)
        np.testing.assert_array_equal(got.imag, im, err_msg=name)
    equal = (a == c) & (b == d)
    np.testing.assert_array_equal(compute(ops.EQUAL, dtype, x, y), equal)
    np.testing.assert_array_equal(compute(ops.NOT_EQUAL, dtype, x, y), ~equal)
    np.testing.assert_array_equal(compute(ops.SQUARE, dtype, z), compute(ops.MULTIPLY, dtype, z, z))
    one = np.ones_like(z)
    np.testing.assert_array_equal(
        compute(ops.RECIPROCAL, dtype, z), compute(ops.DIVIDE, dtype, one, z)
    )


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_quotients_of_infinite_numbers_and_zero(dtype: DType) -> None:
    z = pairs(list(itertools.product(COMPONENTS, repeat=2)), dtype)
    x, y = np.repeat(z, z.size), np.tile(z, z.size)
    got = compute(ops.DIVIDE, dtype, x, y)
    infinite_x, infinite_y = np.isinf(x), np.isinf(y)
    finite_x, finite_y = np.isfinite(x), np.isfinite(y)
    assert np.isinf(got[infinite_x & finite_y]).all()
    assert (got[finite_x & infinite_y] == 0).all()
    assert np.isinf(got[finite_x & (x != 0) & (y == 0)]).all()
    assert np.isnan(got[(x == 0) & (y == 0)]).all()


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", ["divide", "reciprocal", "sign", "sqrt", "log", "atanh", "asinh"])
def test_complex_functions_at_the_ends_of_the_range(name: str, dtype: DType) -> None:
    info = np.finfo(dtype)
    sizes = [info.smallest_subnormal, info.smallest_normal, 1.0, 1.5, info.max / 2, info.max]
    z = pairs(list(itertools.product(sizes, [*sizes, -info.max])), dtype)
    op = OPS[name]
    operands = (np.repeat(z, z.size), np.tile(z, z.size)) if name == "divide" else (z,)
    operands = tuple(x[:: 7 if name == "divide" else 1] for x in operands)
    got = compute(op, dtype, *operands).tolist()
    for value, *row in zip(got, *(x.tolist() for x in operands), strict=True):
        exact = reference.of_complex(name, *row)
        assert ulp.error(value, exact, dtype) <= bound(op, dtype, tuple(row)), (row, value, exact)


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_parts_of_special_values(dtype: DType) -> None:
    numbers = list(itertools.product(COMPONENTS, repeat=2))
    z = pairs(numbers, dtype)
    np.testing.assert_array_equal(compute(ops.ISNAN, dtype, z), np.isnan(z))
    np.testing.assert_array_equal(compute(ops.ISINF, dtype, z), np.isinf(z))
    np.testing.assert_array_equal(compute(ops.ISFINITE, dtype, z), np.isfinite(z))
    with np.errstate(all="ignore"):
        modulus = np.abs(z)
        np.testing.assert_allclose(compute(ops.ABS, dtype, z), modulus, rtol=1e-6)
        quotient = np.stack([z.real / modulus, z.imag / modulus])
    undefined = np.isnan(z.real) | np.isnan(z.imag)
    quotient[:, undefined] = np.nan
    quotient[:, z == 0] = 0
    sign = compute(ops.SIGN, dtype, z)
    np.testing.assert_allclose([sign.real, sign.imag], quotient, rtol=1e-6)
    exponents = pairs([(0.0, 0.0), (2.0, 1.0), (-1.0, 0.0)], dtype)
    zero = pairs([(0.0, 0.0)], dtype)
    powers = compute(ops.POW, dtype, zero, exponents)
    assert powers[0] == 1
    assert powers[1] == 0
    assert np.isnan(powers[2])


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_remainders_of_all_ratios(dtype: DType) -> None:
    """Quotients with up to thousands of bits, against fractions."""
    rng = np.random.default_rng(11)
    bits = rng.integers(0, 1 << 8 * dtype.itemsize, (2, 3000), np.dtype(f"u{dtype.itemsize}"))
    x, y = bits.view(dtype)
    keep = np.isfinite(x) & np.isfinite(y) & (y != 0)
    x, y = x[keep], y[keep]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compute(ops.REMAINDER, dtype, x, y), np.remainder(x, y))
    # Quotients that are whole, or a rounding away from it.
    y = np.abs(rng.normal(size=4000)).astype(dtype) * dtype.type(2.0) ** rng.integers(-90, 90, 4000)
    y = y.astype(dtype)
    x = (y * rng.integers(-200, 200, 4000)).astype(dtype)
    x = np.where(rng.random(4000) < 0.5, np.nextafter(x, dtype.type(0)), x)
    floors = compute(ops.FLOOR_DIVIDE, dtype, x, y)
    for value, a, b in zip(floors.tolist(), x.tolist(), y.tolist(), strict=True):
        assert value == reference.of_floats("floor_divide", dtype, a, b), (a, b)


def test_nextafter_in_all_of_float16() -> None:
    x = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    for target in (np.inf, -np.inf, 0.0, -0.0, 1.0, np.nan):
        y = np.full_like(x, target)
        with np.errstate(all="ignore"):
            expected = np.where(x == y, y, np.nextafter(x, y))
        got = compute(ops.NEXTAFTER, dt.float16, x, y)
        np.testing.assert_array_equal(got, expected)
        defined = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got[defined]), np.signbit(expected[defined]))


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_expressions_of_32_bit_dtypes_use_32_bit_types(op: Op, dtype: DType) -> None:
    arity = [operand(name, dtype) for name in "xyz"[: op.arity]]
    if op is ops.SELECT:
        arity[0] = var("x", BOOL)
    result = expression(op, dtype, *arity)
    nodes = list(topological(result if isinstance(result, Complex) else [result]))
    types = {node.type.name for node in nodes}
    if scalar_of(dtype).bits <= 32:
        assert not types & {"f64", "i64", "u64"}
    if dtype != dt.float16:
        assert "f16" not in types
    # The same operands give the same expression, node for node.
    again = expression(op, dtype, *arity)
    assert again is result or (isinstance(result, Complex) and again == result)


def _castable() -> list[Any]:
    return [
        pytest.param(source, target, id=f"{source}-{target}")
        for source in dt.ALL_DTYPES
        for target in dt.ALL_DTYPES
        if source.kind != "c" or target.kind in "bc"
    ]


@pytest.mark.parametrize(("source", "target"), _castable())
def test_conversions(source: DType, target: DType) -> None:
    x = samples.operands(source, 1, 5)[0]
    if source.kind == "f":
        x = np.concatenate([x, np.asarray([0.0, -0.0, 300.7, -300.7, 65519.99, 2.0**-25], source)])
    values = {"x": held(x)} if source.kind != "c" else {"x_re": x.real, "x_im": x.imag}
    result = convert(operand("x", source), source, target)
    with np.errstate(all="ignore"):
        expected = x.astype(target)
        if source.kind == "f" and target.kind in "iu":
            info = np.iinfo(target)
            expected = np.asarray(
                [
                    min(max(int(v), info.min), info.max) if math.isfinite(v) else 0
                    for v in x.tolist()
                ],
                target,
            )
        elif source.kind == "f" and target == dt.complex64:
            expected = x.astype(np.float32).astype(target)
    if isinstance(result, Complex):
        re, im = np.broadcast_arrays(*evaluate(result, values))
        np.testing.assert_array_equal(re, expected.real)
        np.testing.assert_array_equal(im, expected.imag)
    else:
        assert result.type is scalar_of(target)
        np.testing.assert_array_equal(evaluate([result], values)[0], held(expected))


def test_conversions_of_infinity_and_nan() -> None:
    x = {"x": np.asarray([np.inf, -np.inf, np.nan], np.float32)}
    for target, expected in [
        (dt.int8, [127, -128, 0]),
        (dt.uint32, [2**32 - 1, 0, 0]),
        (dt.int64, [2**63 - 1, -(2**63), 0]),
        (dt.bool_, [True, True, True]),
    ]:
        result = convert(var("x", F32), dt.float32, target)
        assert isinstance(result, Expr)
        assert evaluate([result], x)[0].tolist() == expected


def test_conversion_to_float16_rounds_once() -> None:
    # One half of float16's last place above a number, and a little less: float32 cannot tell them apart.
    x = np.asarray([1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 3 * 2.0**-11 - 2.0**-40, 65519.999])
    result = convert(var("x", F64), dt.float64, dt.float16)
    assert isinstance(result, Expr)
    got = evaluate([result], {"x": x})[0].astype(float).tolist()
    assert got == [1.0, 1 + 2.0**-10, 1 + 2.0**-10, 65504.0]


def test_wrong_operands_are_refused() -> None:
    x = operand("x", dt.float32)
    with pytest.raises(DTypeError, match=r"less: complex64 .* only real-valued"):
        expression(ops.LESS, dt.complex64, operand("x", dt.complex64), operand("y", dt.complex64))
    with pytest.raises(TypeError, match="add: got 1 operands, takes 2"):
        expression(ops.ADD, dt.float32, x)
    with pytest.raises(TypeError, match="add: operand 1"):
        expression(ops.ADD, dt.float32, x, operand("y", dt.float64))
    with pytest.raises(TypeError, match="exp: operand 0"):
        expression(ops.EXP, dt.complex64, x)
    with pytest.raises(TypeError, match="where: operand 0"):
        expression(ops.SELECT, dt.int32, var("c", I32), var("x", I32), var("y", I32))
    with pytest.raises(DTypeError, match="astype: complex64 to int32"):
        convert(operand("x", dt.complex64), dt.complex64, dt.int32)


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize(
    "op",
    [op for op in OPS.values() if op.arity == 2 and "c" in dt.CATEGORIES[op.domain]],
    ids=lambda op: op.name,
)
def test_complex_operations_take_real_numbers(op, dtype):
    part = dt.real_of(dtype)
    rng = np.random.default_rng(0)
    z = (rng.normal(size=20) + 1j * rng.normal(size=20)).astype(dtype)
    x = rng.normal(size=20).astype(part)
    tolerance = 64 * np.finfo(dtype).eps
    for swapped in (False, True):
        given = {"z_re": z.real.copy(), "z_im": z.imag.copy(), "x": x}
        operands = [operand("z", dtype), convert(operand("x", part), part, dtype)]
        result = expression(op, dtype, *operands[:: -1 if swapped else 1])
        parts = [result] if isinstance(result, Expr) else list(result)
        got = [np.broadcast_to(y, x.shape) for y in evaluate(parts, given)]
        wanted = compute(op, dtype, *[z, x.astype(dtype)][:: -1 if swapped else 1])
        expected = [wanted] if isinstance(result, Expr) else [wanted.real, wanted.imag]
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, tolerance, tolerance)
