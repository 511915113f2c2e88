"""CUDA C++ of expressions, run by the host's compiler, against their meaning: equal bit for bit."""

from __future__ import annotations

import ctypes
import doctest
from typing import Any

import numpy as np
import pytest

from numr import dtypes as dt
from numr.codegen import cuda
from numr.codegen import expr as ex
from numr.codegen.expr import F16, F32, F64, I32, I64, U32, U64, Expr
from numr.codegen.reference import DTYPES, evaluate
from numr.ir.ops import OPS
from tests.parity.support import anything
from tests.unit.codegen_support import operation
from tests.unit.cuda_on_host import COMPILER, compiled

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")

Array = np.ndarray[Any, Any]
SIZE = 4000


def same(one: Array, other: Array) -> bool:
    """Whether arrays are equal bit for bit; any NaN is like any other."""
    if one.dtype.kind != "f":
        return bool((one == other).all())
    equal = (one == other) & (np.signbit(one) == np.signbit(other))
    return bool((equal | (np.isnan(one) & np.isnan(other))).all())


def function_text(name: str, variables: list[Expr], roots: list[Expr]) -> str:
    """A C++ function that evaluates expressions over arrays."""
    code = cuda.code(roots, indent="        ")
    parameters = [f"const {cuda.type_name(v.type)}* in_{v.value}" for v in variables]
    parameters += [f"{cuda.type_name(root.type)}* out_{i}" for i, root in enumerate(roots)]
    loads = "".join(
        f"        const {cuda.type_name(v.type)} {v.value} = in_{v.value}[i];\n" for v in variables
    )
    stores = "".join(f"        out_{i}[i] = {text};\n" for i, text in enumerate(code.results))
    return (
        f'extern "C" void {name}({", ".join(parameters)}, long long n) {{\n'
        f"    for (long long i = 0; i < n; ++i) {{\n{loads}{code.statements}{stores}    }}\n}}\n"
    )


def held(array: Array, type: ex.Scalar) -> Array:
    """An array as a kernel holds its elements: float16 as float32."""
    return np.ascontiguousarray(array.astype(np.float32) if type is F16 else array)


def check(library: Any, name: str, variables: list[Expr], roots: list[Expr], values: Any) -> None:
    inputs = [held(values[str(v.value)], v.type) for v in variables]
    outputs = [
        np.empty(SIZE, np.float32 if root.type is F16 else DTYPES[root.type.name]) for root in roots
    ]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*inputs, *outputs)]
    getattr(library, name)(*pointers, ctypes.c_longlong(SIZE))
    for got, expected in zip(outputs, evaluate(roots, values, fma=True), strict=True):
        exact = np.broadcast_to(expected, (SIZE,))
        assert same(got.astype(exact.dtype), exact), name


@pytest.mark.parametrize("dtype", dt.ALL_DTYPES, ids=str)
def test_every_operation_means_what_its_expression_means(dtype: np.dtype[Any]) -> None:
    fitting = [op for op in OPS.values() if dtype.kind in dt.CATEGORIES[op.domain]]
    cases = {f"f_{op.name}": operation(op, dtype, SIZE) for op in fitting}
    library = compiled("".join(function_text(n, v, r) for n, (v, r, _) in cases.items()))
    for name, (variables, roots, values) in cases.items():
        check(library, name, variables, roots, values)


def test_constants_are_exact() -> None:
    rng = np.random.default_rng(0)
    roots = [
        ex.const_bits(int(bits), type)
        for type in (F32, F64, I32, U32, I64, U64)
        for bits in rng.integers(0, 1 << 62, 40, np.uint64) >> np.uint64(62 - min(type.bits, 62))
    ]
    roots += [ex.const(value, type) for type in (F32, F64) for value in (0.0, -0.0, np.inf, np.nan)]
    roots += [ex.const(-(1 << (type.bits - 1)), type) for type in (I32, I64)]
    roots += [ex.const(value, F16) for value in (np.inf, -np.inf, np.nan, -0.0, 65504.0)]
    library = compiled(function_text("f", [], roots))
    check(library, "f", [], roots, {})


@pytest.mark.parametrize("type", [I32, U32, I64, U64], ids=str)
def test_integer_arithmetic_is_defined_everywhere(type: ex.Scalar) -> None:
    x, y = ex.var("x", type), ex.var("y", type)
    roots = [x + y, x - y, x * y, ex.quotient(x, y), ex.remainder(x, y), -x, ~x]
    roots += [x << 3, x >> 3, x & y, x | y, x ^ y]
    if type.kind == "i":
        roots.append(ex.absolute(x))
    dtype = DTYPES[type.name]
    values = {"x": anything(dtype, (SIZE,)), "y": anything(dtype, (SIZE,), 1)}
    values["y"][::5] = 0
    values["y"][1::5] = dtype.type(-1) if type.kind == "i" else 1
    check(compiled(function_text("f", [x, y], roots)), "f", [x, y], roots, values)


def test_a_branch_computes_what_a_choice_does() -> None:
    x = ex.var("x", F32)
    rare = ex.sqrt(x * x + 1.0) * x
    root = ex.rarely(x > 1.0, rare, x + 1.0) * ex.rarely(x > 1.0, rare - x, x)
    text = function_text("f", [x], [root])
    assert "if (" in text
    values = {"x": anything(dt.float32, (SIZE,))}
    check(compiled(text), "f", [x], [root], values)


def test_examples() -> None:
    assert not doctest.testmod(cuda).failed
