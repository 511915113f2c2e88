"""WGSL of expressions: its text, and what a device computes from it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numr import dtypes as dt
from numr.codegen import expr as ex
from numr.codegen import libm, wgsl
from numr.codegen.elementwise import Complex, expression, operand
from numr.codegen.expr import (
    BOOL,
    F16,
    F32,
    F64,
    I32,
    I64,
    U32,
    U64,
    Expr,
    var,
)
from numr.codegen.libm.formats import two_product
from numr.codegen.wgsl import code, constant, prelude
from numr.ir import ops
from numr.ir.ops import OPS, Op
from tests.unit import codegen_wgsl_device as device

ROOT = Path(__file__).parents[2]
CASES = [
    pytest.param(op, dtype, id=f"{op.name}-{dtype}")
    for op in OPS.values()
    for dtype in dt.ALL_DTYPES
    if dtype.kind in dt.CATEGORIES[op.domain]
]

#: Builtins that drivers get wrong, or that end the process on some types.
FORBIDDEN = re.compile(
    r"\b(exp|exp2|log|log2|pow|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|ldexp|frexp|modf|"
    r"inverseSqrt|sign|min|max|clamp|saturate|mix|trunc64|countLeadingZeros|countTrailingZeros|firstLeadingBit|"
    r"firstTrailingBit|reverseBits)\("
)


def printed(*roots: Expr) -> str:
    result = code(roots)
    return result.statements + " ".join(result.results)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (ex.const(1.0, F32), "bitcast<f32>(0x3f800000u)"),
        (ex.const(-0.0, F32), "bitcast<f32>(0x80000000u)"),
        (ex.const(float("inf"), F64), "bitcast<f64>(0x7ff0000000000000lu)"),
        (ex.const(1.5, F16), "f16(1.5f)"),
        (ex.const(5, I32), "5i"),
        (ex.const(-5, I32), "(-5i)"),
        (ex.const(-(2**31), I32), "(-2147483647i - 1i)"),
        (ex.const(-(2**63), I64), "(-9223372036854775807li - 1li)"),
        (ex.const(2**63 - 1, I64), "9223372036854775807li"),
        (ex.const(2**32 - 1, U32), "4294967295u"),
        (ex.const(2**64 - 1, U64), "18446744073709551615lu"),
        (ex.const(True, BOOL), "true"),
        (ex.const(False, BOOL), "false"),
    ],
)
def test_constants(node: Expr, text: str) -> None:
    assert constant(node) == text


def test_intermediate_floats_pass_the_barrier() -> None:
    x, y = var("x", F32), var("y", F32)
    assert printed(x + y) == "(x + y)"
    assert printed((x + y) - x) == "(L((x + y)) - x)"
    assert printed(x - x) == "(x - L(x))"
    assert printed(x / x) == "about(x, L(x))"
    assert printed(ex.rounded_quotient(x, x)) == "divided(x, L(x))"
    assert printed(ex.rounded_root(x - y)) == "rooted(L((x - y)))"
    assert printed(x * 0.0) == "(x * L(bitcast<f32>(0x0u)))"
    assert printed(-(x - y)) == "(-L((x - y)))"
    assert printed(var("a", F64) * var("b", F64) * 2.0).startswith("(LD((a * b)) * ")
    # Bits and converted integers are opaque already, integers need no protection.
    assert "L(" not in printed(ex.bitcast(ex.bitcast(x, U32) & 7, F32) + x)
    assert "L(" not in printed(ex.cast(var("i", I32), F32) + x)
    assert printed((var("i", I32) + var("j", I32)) - var("i", I32)) == "((i + j) - i)"
    # A choice that looks like a minimum, and one between constants.
    assert printed(ex.select(x < y, x, y)) == "select(L(y), L(x), (x < y))"
    assert printed(ex.select(x < y, ex.const(1.0, F32), 0.0)).count("L(") == 2


def test_shared_nodes_are_computed_once() -> None:
    x = var("x", F32)
    square = x * x
    text = printed(square + square * 3.0, square)
    assert text.count("(x * x)") == 1
    assert "let t0 = L((x * x));" in text
    result = code([square], {"x": "source[i]"}, indent="  ", prefix="s")
    assert result.results == ("(source[i] * source[i])",)
    assert result.types == {"f32"}
    assert code([var("d", F64) * 2.0]).types == {"f64", "u64"}
    assert code([libm.sin(x)], prefix="s").statements.startswith("    let s0 = ")


def test_comparisons_that_nan_fails() -> None:
    x, y = var("x", F32), var("y", F32)
    assert printed(ex.ne(x, y)) == "(!(x == y))"
    assert printed(ex.ne(var("i", I32), var("j", I32))) == "(i != j)"
    assert printed(ex.cast(x, BOOL)) == "(!(x == 0.0f))"


def test_conversions_between_widths_extend_the_right_way() -> None:
    assert printed(ex.cast(var("u", U32), I64)) == "i64(u64(u))"
    assert printed(ex.cast(var("i", I32), U64)) == "u64(i64(i))"
    assert printed(ex.cast(var("i", I32), I64)) == "i64(i)"
    assert printed(ex.cast(var("u", U64), U32)) == "u32(u)"


def test_integer_forms() -> None:
    u, i, b, c = var("u", U32), var("i", I32), var("b", BOOL), var("c", BOOL)
    assert printed(-u) == "(0u - u)"
    assert printed(-i) == "(-i)"
    assert printed(ex.quotient(i, i)) == "select(i / i, 0i, (i == 0i))"
    assert printed(i << 3) == "(i << 3u)"
    assert printed(i >> u) == "(i >> u)"
    assert printed(~i) == "(~i)"
    assert printed(~b) == "(!b)"
    assert printed(b ^ c) == "(b != c)"


def test_rare_arms_are_branches_that_share_their_condition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wgsl._Printer, "short", 0)
    x = var("x", F32)
    rare = ex.sqrt(x) * 3.0
    condition = x > 100.0
    first = ex.rarely(condition, rare + 1.0, x)
    second = ex.rarely(condition, rare - 1.0, x * 2.0)
    text = code([first, second, first + second]).statements
    assert text.count("if ") == 1
    block = text[text.index("if ") : text.index("}")]
    assert "sqrt" in block
    assert "sqrt" not in text.replace(block, "")
    # What is used elsewhere is computed before, and branches that need each other are two.
    text = code([first, rare]).statements
    assert text.index("sqrt") < text.index("if ")
    nested = ex.rarely(condition, first + 5.0, x)
    text = code([nested]).statements
    assert text.count("if ") == 2
    assert code([libm.sin(x), libm.cos(x)]).statements.count("if ") == 1


def test_f16_arithmetic_is_refused() -> None:
    h = var("h", F16)
    with pytest.raises(TypeError, match="arithmetic in f16 is not printed"):
        code([(h + h) * h])
    assert printed(ex.cast(h, F32)) == "f32(h)"
    with pytest.raises(TypeError, match="inf: f16 is no constant of WGSL"):
        constant(ex.const(float("inf"), F16))


def test_prelude_names_the_zero() -> None:
    assert prelude({"i32"}, "pc.z") == ""
    assert prelude({"f32"}, "pc.z").count("pc.z") == 1
    assert "LD(" not in prelude({"f32"}, "pc.z")
    assert "u64(pc.z)" in prelude({"f64"}, "pc.z")
    assert "fn LI(" in prelude({"i64"}, "pc.z")


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_every_operation_avoids_what_drivers_get_wrong(op: Op, dtype: np.dtype[Any]) -> None:
    operands: list[Any] = [operand(name, dtype) for name in "xyz"[: op.arity]]
    if op is ops.SELECT:
        operands[0] = var("x", BOOL)
    result = expression(op, dtype, *operands)
    roots = list(result) if isinstance(result, Complex) else [result]
    text = printed(*roots)
    assert not FORBIDDEN.search(text), FORBIDDEN.search(text)
    for name in re.findall(r"\b([A-Za-z_]\w*)\(", text):
        assert name in {
            *(
                "L",
                "LD",
                "fma",
                "truncated",
                "rounded",
                "select",
                "abs",
                "floor",
                "ceil",
                "trunc",
                "round",
                "sqrt",
                "about",
                "divided",
                "rooted",
            ),
            *("f16", "f32", "f64", "i32", "u32", "i64", "u64"),
        }
    assert not re.search(r"(?<![\w.])-?\d+\.\d+(?![flh\d])", text), "a literal without a type"
    assert text.count("(") == text.count(")")
    # Every name is declared before it is used.
    declared: set[str] = set()
    for line in text.splitlines():
        used = set(re.findall(r"\bt\d+\b", line))
        new = set(re.findall(r"(?:let|var) (t\d+)", line))
        assert used - new <= declared
        declared |= new


def test_one_operation_multiplies_and_adds_only_where_it_may_round_twice() -> None:
    x, y, z = (var(name, F32) for name in "xyz")
    assert printed(ex.product_plus(x, y, z)) == "fma(x, y, z)"
    assert printed(ex.less_product(z, x, y)) == "fma((-x), y, z)"
    # What rounding takes off a product is more than such an operation promises.
    assert "fma(" not in printed(*two_product(x, y))


def test_sums_are_multiplied_as_they_are() -> None:
    x, y = var("x", F32), var("y", F32)
    assert printed((x + y) * x) == "((x + y) * x)"
    assert printed(ex.product_plus(x - y, x, y)) == "fma((x - y), x, y)"
    assert printed((x + y) * 3.0) == "(L((x + y)) * bitcast<f32>(0x40400000u))"
    assert printed(x * y + x) == "(L((x * y)) + x)"
    # A name stands for what passed the barrier where one of its uses needs that.
    total = x + y
    assert printed(total * x - total) == "    let t0 = L((x + y));\n(L((t0 * x)) - t0)"


@pytest.mark.parametrize(("arms", "branches"), [(4, 0), (40, 1)])
def test_a_branch_is_for_many_operations(arms: int, branches: int) -> None:
    x = var("x", F32)
    rare = x
    for i in range(arms):
        rare = rare * (x + float(i))
    assert printed(ex.rarely(x > 1.0, rare, x)).count("if ") == branches


# ---------------------------------------------------------------------- on a device


@pytest.mark.wgpu
def test_a_device_computes_what_the_evaluator_does() -> None:
    """One process for all kernels: a driver that ends it fails this test and no other."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.unit.codegen_wgsl_device"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=500,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    report: dict[str, Any] = json.loads(result.stdout.strip().splitlines()[-1])
    if "skip" in report:
        pytest.skip(report["skip"])
    assert set(report["groups"]) == set(device.groups())
    wrong = {name: group for name, group in report["groups"].items() if group.get("differences")}
    assert not wrong, wrong
    compared = {name for name, group in report["groups"].items() if group.get("cases")}
    # Without 64-bit types on the adapter the groups that need them are left out, and only those.
    assert compared >= {
        f"f32-{name}" for name in ("basic", "exponential", "trigonometric", "barrier")
    }
    left_out = set(report["groups"]) - compared
    assert all("the adapter lacks" in report["groups"][name]["skip"] for name in left_out)


def test_differences_are_found() -> None:
    x = var("x", F32)
    cases = [("double", x + x), ("zero", x * 0.0)]
    inputs = {"x": np.float32([1, -1, np.nan])}
    right = np.float32([[2, -2, np.nan], [0, -0.0, np.nan]])
    assert device.differences(F32, cases, inputs, right) == {}
    wrong = right.copy()
    wrong[1, 1] = 0.0
    assert list(device.differences(F32, cases, inputs, wrong)) == ["zero"]


def test_devices_that_round_otherwise_may_differ_by_a_little() -> None:
    x = var("x", F32)
    cases = [("half", x * 0.5), ("f.re", x + x), ("f.im", x * 1e-8)]
    inputs = {"x": np.float32([1, 1, 1e-30, 2.0**-59])}
    right = np.asarray([inputs["x"] * f for f in np.float32([0.5, 2, 1e-8])])
    near = right.copy()
    near[0, 0] += np.float32(2.0**-24)  # one unit
    near[2, 1] += np.float32(2.0**-24)  # of the modulus
    near[0, 2] = 1.0  # an operand that may lead to subnormal numbers
    assert set(device.differences(F32, cases, inputs, near)) == {"half", "f.im"}
    assert device.differences(F32, cases, inputs, near, exact=False) == {}
    far = right.copy()
    far[0, 1] *= np.float32(1 + 2.0**-18)
    far[2, 0] += np.float32(1e-5)
    assert set(device.differences(F32, cases, inputs, far, exact=False)) == {"half", "f.im"}
