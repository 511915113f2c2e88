"""The functions of numr.codegen.libm, evaluated over NumPy: accuracy, special values and what they are made of."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from numr import dtypes as dt
from numr.codegen import libm
from numr.codegen import reference as meaning
from numr.codegen.expr import (
    F16,
    F32,
    F64,
    I32,
    U32,
    Expr,
    Scalar,
    by_fma,
    is_plain_fma,
    topological,
    var,
)
from numr.codegen.libm import tables
from tests.parity import reference, special_values, ulp
from tests.unit.codegen_support import (
    DTYPES,
    WIDE,
    hardest_angles,
    neighbours,
    sweep,
    ulp_errors,
)

Array = np.ndarray[Any, Any]

NUMPY = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "hypot": np.hypot,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "logaddexp": np.logaddexp,
    "pow": np.power,
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
}
BINARY = {"atan2", "hypot", "logaddexp", "pow"}
#: Where an expression changes from one formula to another, or a result from normal to subnormal or infinite.
SWITCHES = {
    "acos": (0.5,),
    "acosh": (2.0**16, 2.0**30, 1.5),
    "asin": (0.5, 2.0**-14, 2.0**-28),
    "asinh": (2.0**16, 2.0**30, 2.0**-14, 2.0**-28),
    "atan": (2**0.5 - 1, 2**0.5 + 1, 2.0**-14, 2.0**-28),
    "atanh": (2.0**-14, 2.0**-28),
    "cos": (190.0, 1.6e6, np.pi / 4),
    "cosh": (88.72284, 89.41598, 709.7827, 710.4758),
    "exp": (87.33655, 88.72284, 103.97208, 708.3964, 709.7827, 745.1332),
    "exp2": (126.0, 128.0, 149.0, 1022.0, 1024.0, 1074.0),
    "expm1": (0.34657359, 88.72284, 709.7827, 2.0**-25, 2.0**-54),
    "log": (0.7071067811865476, 1.4142135623730951),
    "log10": (0.7071067811865476, 10.0, 1000.0),
    "log1p": (0.4142135623730951, 2.0**-25, 2.0**-54, 2.0**52),
    "log2": (0.7071067811865476, 8.0),
    "sin": (190.0, 1.6e6, np.pi / 4, np.pi, 2.0**-14, 2.0**-28),
    "sinh": (89.41598, 710.4758),
    "tan": (190.0, 1.6e6, np.pi / 4, np.pi / 2),
    "tanh": (9.0, 10.0, 19.0, 20.0, 2.0**-13, 2.0**-27),
}
Evaluate = Callable[..., list[Array]]
TYPES = [pytest.param(F32, id="f32"), pytest.param(F64, id="f64")]


def bound(name: str, type: Scalar) -> float:
    """The bound of the table for all runtimes, and not more than what this library promises."""
    promised = 4.0 if name == "pow" else 2.0
    if name == "exp2":  # no function of the standard
        return promised
    return min(promised, float(ulp.allowed(name, DTYPES[type], ())))


def function_of(name: str, type: Scalar) -> Expr:
    operands = [var("x", type), var("y", type)][: 2 if name in BINARY else 1]
    result: Expr = getattr(libm, name)(*operands)
    assert result.type is type
    return result


def operands_of(name: str, type: Scalar) -> dict[str, Array]:
    x = sweep(type, 1, points=SWITCHES.get(name, ()))
    if name not in BINARY:
        return {"x": x}
    rng = np.random.default_rng(3)
    y = sweep(type, 2)
    rng.shuffle(y)
    # A third each: anything, numbers of like size, and exponents or differences of moderate size.
    third = x.size // 3
    with np.errstate(all="ignore"):
        y[:third] = x[:third] * rng.uniform(-3, 3, third).astype(x.dtype)
    y[third : 2 * third] = rng.uniform(-40, 40, third).astype(x.dtype)
    return {"x": x, "y": y}


@pytest.fixture(params=[False, True, None], ids=["plain", "fma", "some"])
def evaluate(request: pytest.FixtureRequest) -> Evaluate:
    """The meaning of expressions on devices without an operation for a product and a sum, and with it."""
    if request.param is None:
        # Where both roundings will do, as WGSL's operation may have either.
        return lambda roots, values: meaning.evaluate(by_fma(roots, is_plain_fma), values)
    return partial(meaning.evaluate, fma=request.param)


def test_every_function_is_tested() -> None:
    helpers = {"copysign", "is_finite", "is_inf", "is_nan", "sin_cos"}
    assert set(NUMPY) | helpers == set(libm.__all__)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", NUMPY)
def test_accuracy_over_a_wide_sweep(name: str, type: Scalar, evaluate: Evaluate) -> None:
    if type is F64 and not WIDE:
        pytest.skip("long double is no wider than float64 here; the sampled test remains")
    operands = operands_of(name, type)
    got = evaluate([function_of(name, type)], operands)[0]
    wide = np.float64 if type is F32 else np.longdouble
    with np.errstate(all="ignore"):
        exact = NUMPY[name](*(x.astype(wide) for x in operands.values()))
    scale: Any = 0.0
    if name == "logaddexp":
        scale = np.max([np.where(np.isfinite(x), np.abs(x), 0) for x in operands.values()], 0)
    errors = ulp_errors(got, exact, scale)
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound(name, type), (
        [x[worst] for x in operands.values()],
        got[worst],
        exact[worst],
    )
    # Zeros keep the sign that the exact function has, as far as NumPy follows the standard there.
    zeros = (got == 0) & (exact == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]))


@pytest.mark.parametrize("name", sorted(set(NUMPY) - {"exp2"}))
def test_float64_accuracy_against_multiple_precision(name: str, evaluate: Evaluate) -> None:
    operands = operands_of(name, F64)
    usable = np.ones(operands["x"].size, bool)
    for x in operands.values():
        usable &= np.isfinite(x) & (x != 0)
    chosen = np.random.default_rng(5).choice(np.flatnonzero(usable), 60)
    operands = {key: x[chosen] for key, x in operands.items()}
    got = evaluate([function_of(name, F64)], operands)[0]
    for value, *row in zip(got.tolist(), *(x.tolist() for x in operands.values()), strict=True):
        exact = reference.of_floats(name, dt.float64, *row)
        error = ulp.error(value, exact, dt.float64, ulp.scale(name, tuple(row)))
        assert error <= bound(name, F64), (row, value, exact)


def test_exp2_against_multiple_precision(evaluate: Evaluate) -> None:
    x = np.random.default_rng(6).uniform(-1080, 1030, 60)
    got = evaluate([function_of("exp2", F64)], {"x": x})[0]
    for value, row in zip(got.tolist(), x.tolist(), strict=True):
        exact = reference.converged(lambda y: mpf(2) ** y, mpf(row))
        assert ulp.error(value, exact, dt.float64) <= 2.0
    whole = np.arange(-1074.0, 1024.0)
    np.testing.assert_array_equal(
        evaluate([function_of("exp2", F64)], {"x": whole})[0], np.ldexp(1.0, whole.astype(int))
    )


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_closest_to_multiples_of_a_quarter_turn(
    name: str, type: Scalar, evaluate: Evaluate
) -> None:
    """Where the remainder of the reduction is smallest, found by continued fractions of pi/2 for each exponent."""
    x = hardest_angles(type)
    nearest = min(abs(reference.of_floats("cos", dt.float64, row)) for row in x.tolist())
    assert nearest < 2.0 ** (-28 if type is F32 else -58)
    got = evaluate([function_of(name, type)], {"x": x})[0]
    for value, row in zip(got.tolist(), x.tolist(), strict=True):
        exact = reference.of_floats(name, DTYPES[type], row)
        assert ulp.error(value, exact, DTYPES[type]) <= bound(name, type), (row, value, exact)


@pytest.mark.parametrize("type", [*TYPES, pytest.param(F16, id="f16")])
@pytest.mark.parametrize("name", sorted(set(NUMPY) - {"exp2"}))
def test_special_values(name: str, type: Scalar, evaluate: Evaluate) -> None:
    cases = list(special_values.real_cases(name))
    dtype = np.dtype("float16") if type is F16 else DTYPES[type]
    columns = zip(*(case.operands for case in cases), strict=True)
    operands = {key: np.asarray(column, dtype) for key, column in zip("xy", columns, strict=False)}
    got = evaluate([function_of(name, type)], operands)[0].tolist()
    tolerance = 2 * float(np.finfo(dtype).eps)
    wrong = [
        (case, value)
        for case, value in zip(cases, got, strict=True)
        if special_values.mismatch(value, case.result, tolerance)
    ]
    assert not wrong, wrong[:5]


@pytest.mark.parametrize("name", sorted(set(NUMPY) - BINARY))
def test_all_of_float16(name: str, evaluate: Evaluate) -> None:
    x = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    got = evaluate([function_of(name, F16)], {"x": x})[0]
    with np.errstate(all="ignore"):
        exact = NUMPY[name](x.astype(np.float64))
        assert ulp_errors(got, exact).max() <= 0.51
        nearest = exact.astype(np.float16)
    zeros = (nearest == 0) & (got == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(nearest[zeros]))


@pytest.mark.parametrize("name", NUMPY)
def test_f32_functions_need_32_bit_types_only(name: str) -> None:
    types = {node.type.name for node in topological([function_of(name, F32)])}
    assert types <= {"f32", "i32", "u32", "bool"}
    assert {node.type.name for node in topological([function_of(name, F64)])} <= {
        *("f64", "i64", "u64", "u32", "bool"),
    }


@pytest.mark.parametrize("name", NUMPY)
def test_functions_take_floats_only(name: str) -> None:
    parameters = inspect.signature(getattr(libm, name)).parameters
    assert len(parameters) == (2 if name in BINARY else 1)
    for type in (I32, U32):
        with pytest.raises(TypeError, match=str(type)):
            getattr(libm, name)(*[var("x", type)] * len(parameters))


@pytest.mark.parametrize("type", TYPES)
def test_known_results_are_exact(type: Scalar, evaluate: Evaluate) -> None:
    powers_of_ten = np.asarray([10.0**k for k in range(11)], DTYPES[type])
    got = evaluate([function_of("log10", type)], {"x": powers_of_ten})[0]
    np.testing.assert_array_equal(got, np.arange(11))
    powers_of_two = np.ldexp(DTYPES[type].type(1), np.arange(-126, 128))
    got = evaluate([function_of("log2", type)], {"x": powers_of_two})[0]
    np.testing.assert_array_equal(got, np.arange(-126, 128))
    bases = np.arange(1, 20).astype(DTYPES[type])
    for exponent in range(5):
        y = np.full_like(bases, exponent)
        got = evaluate([function_of("pow", type)], {"x": bases, "y": y})[0]
        np.testing.assert_array_equal(got, bases**exponent)
    triples = np.asarray([(3, 4, 5), (5, 12, 13), (8, 15, 17)], DTYPES[type]).T
    got = evaluate([function_of("hypot", type)], {"x": triples[0], "y": triples[1]})[0]
    np.testing.assert_array_equal(got, triples[2])


@pytest.mark.parametrize("type", TYPES)
def test_bit_tests(type: Scalar, evaluate: Evaluate) -> None:
    others = np.asarray([-np.inf, -np.nan, 1.0], DTYPES[type])
    x = np.concatenate([neighbours(np.inf, type), neighbours(0.0, type), others])
    value = var("x", type)
    roots = [libm.is_nan(value), libm.is_inf(value), libm.is_finite(value)]
    for got, expected in zip(
        evaluate(roots, {"x": x}), (np.isnan, np.isinf, np.isfinite), strict=True
    ):
        np.testing.assert_array_equal(got, expected(x))


@pytest.fixture(scope="module")
def tool() -> Any:
    path = Path(__file__).parents[2] / "tools" / "libm_tables.py"
    spec = importlib.util.spec_from_file_location("libm_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    precision = mp.prec
    spec.loader.exec_module(module)
    yield module
    mp.prec = precision


@pytest.mark.parametrize("type", TYPES)
def test_tables_are_what_the_tool_derives(tool: Any, type: Scalar) -> None:
    name, precision = type.name, tool.PRECISION[type.name]
    for constant, parts in tool.constants(precision).items():
        assert getattr(tables, constant)[name] == tuple(map(float, parts)), constant
    words = tables.TWO_OVER_PI[name]
    assert list(words) == tool.words(type.bits, len(words), type.bits)
    with mp.workprec(400):
        for polynomial, (function, (low, high), share) in tool.POLYNOMIALS.items():
            coefficients = [mpf(c) for c in getattr(tables, polynomial)[name]]
            points = [low + (high - low) * i / 60 for i in range(61)]
            exact = [function(z) for z in points]
            errors = [
                abs(tool.horner(coefficients, z) / value - 1)
                for z, value in zip(points, exact, strict=True)
            ]
            # The rounded coefficients cost up to a unit of theirs.
            limit = mpf(2) ** -(precision + 5) / share + mpf(2) ** (1 - precision)
            assert max(errors) < limit, polynomial
