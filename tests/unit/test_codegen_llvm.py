"""LLVM IR of expressions, compiled for this processor, against their meaning: equal bit for bit."""

from __future__ import annotations

import ctypes
import doctest
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from numr import dtypes as dt
from numr.codegen import expr as ex
from numr.codegen import libm, llvm
from numr.codegen.elementwise import convert, operand
from numr.codegen.expr import BOOL, F16, F32, F64, I32, I64, SCALARS, U32, U64, Expr, Scalar
from numr.codegen.reference import DTYPES, evaluate
from numr.ir import ops
from numr.ir.ops import OPS
from numr.runtime.cpu.jit.host import Host, compiling_host
from tests.parity.support import anything
from tests.unit.codegen_support import operation, sweep

HOST = compiling_host()
pytestmark = pytest.mark.skipif(not isinstance(HOST, Host), reason=str(HOST))

Array = np.ndarray[Any, Any]
LANES = 16
SIZE = 4900
Case = tuple[list[Expr], list[Expr], dict[str, Array]]


def same(one: Array, other: Array) -> Array:
    """Where arrays are equal bit for bit; any NaN is like any other."""
    if one.dtype.kind != "f":
        return np.asarray(one == other)
    equal = (one == other) & (np.signbit(one) == np.signbit(other))
    return np.asarray(equal | (np.isnan(one) & np.isnan(other)))


def memory(type: Scalar) -> str:
    return "i8" if type is BOOL else llvm.element(type)


def function_text(
    name: str, variables: list[Expr], roots: list[Expr], vectors: int = 1
) -> tuple[str, tuple[str, ...]]:
    """A function that evaluates expressions over arrays of whole vectors, and what it declares."""
    loads, values = "", {}
    for i, variable in enumerate(variables):
        item = f"<{LANES} x {memory(variable.type)}>"
        loads += f"  %a{i} = getelementptr {memory(variable.type)}, ptr %in{i}, i64 %i\n"
        loads += f"  %v{i} = load {item}, ptr %a{i}, align 1\n"
        if variable.type is BOOL:
            loads += f"  %b{i} = icmp ne {item} %v{i}, zeroinitializer\n"
        values[str(variable.value)] = f"%{'b' if variable.type is BOOL else 'v'}{i}"
    code = llvm.code(roots, values, LANES, block="loop", vectors=vectors)
    stores = ""
    for i, (root, value) in enumerate(zip(roots, code.results, strict=True)):
        item = f"<{LANES} x {memory(root.type)}>"
        if root.type is BOOL:
            stores += f"  %w{i} = zext <{LANES} x i1> {value} to {item}\n"
            value = f"%w{i}"
        stores += f"  %o{i} = getelementptr {memory(root.type)}, ptr %out{i}, i64 %i\n"
        stores += f"  store {item} {value}, ptr %o{i}, align 1\n"
    parameters = [f"ptr %in{i}" for i in range(len(variables))]
    parameters += [f"ptr %out{i}" for i in range(len(roots))]
    text = (
        f"define void @{name}({', '.join(parameters)}, i64 %n) #0 {{\n  br label %loop\nloop:\n"
        f"  %i = phi i64 [ 0, %0 ], [ %j, %{code.block} ]\n{loads}{code.statements}{stores}"
        f"  %j = add i64 %i, {LANES}\n  %more = icmp slt i64 %j, %n\n"
        "  br i1 %more, label %loop, label %end\nend:\n  ret void\n}\n"
    )
    return text, code.declarations


class Library:
    """Compiled functions."""

    linked = 0

    def __init__(self, cases: dict[str, Case], host: Host | str = HOST, vectors: int = 1) -> None:
        assert isinstance(host, Host)
        texts, declarations = [], set()
        for name, (variables, roots, _) in cases.items():
            text, needed = function_text(name, variables, roots, vectors)
            texts.append(text)
            declarations.update(needed)
        self.text = "".join(texts) + "\n".join(sorted(declarations))
        self.text += f"\nattributes #0 = {{ {host.attributes} }}\n{llvm.METADATA}"
        machine = host.target_machine()
        module = host.binding.parse_assembly(self.text)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        module.verify()
        builder = host.binding.JITLibraryBuilder().add_object_img(machine.emit_object(module))
        for name in cases:
            builder.export_symbol(name)
        # Nothing of this process is offered: a call of a library would not be linked.
        self.linker = host.binding.create_lljit_compiler(host.target_machine(), use_jit_link=True)
        Library.linked += 1
        self.linked_code = builder.link(self.linker, f"test-{Library.linked}")

    def check(self, name: str, case: Case) -> None:
        variables, roots, values = case
        size = -(-SIZE // LANES) * LANES
        inputs = []
        for variable in variables:
            array = np.zeros(size, DTYPES[variable.type.name])
            array[:SIZE] = values[str(variable.value)]
            inputs.append(array)
        outputs = [np.empty(size, DTYPES[root.type.name]) for root in roots]
        prototype = ctypes.CFUNCTYPE(
            None, *[ctypes.c_void_p] * (len(variables) + len(roots)), ctypes.c_int64
        )
        function = prototype(self.linked_code[name])
        function(*(array.ctypes.data for array in (*inputs, *outputs)), size)
        for got, expected in zip(outputs, evaluate(roots, values), strict=True):
            exact = np.broadcast_to(expected, (SIZE,))
            wrong = np.flatnonzero(~same(got[:SIZE], exact))[:3]
            given = [tuple(values[str(v.value)][i] for v in variables) for i in wrong]
            assert not wrong.size, f"{name} of {given}: {got[wrong]}, not {exact[wrong]}"


def run(variables: list[Expr], roots: list[Expr], values: dict[str, Array]) -> Library:
    case = (variables, roots, values)
    library = Library({"f": case})
    library.check("f", case)
    return library


@pytest.mark.parametrize("dtype", [d for d in dt.ALL_DTYPES if d.kind != "c"], ids=str)
def test_every_operation_means_what_its_expression_means(dtype: np.dtype[Any]) -> None:
    fitting = [op for op in OPS.values() if dtype.kind in dt.CATEGORIES[op.domain]]
    cases = {f"f_{op.name}": operation(op, dtype, SIZE) for op in fitting}
    library = Library(cases)
    for name, case in cases.items():
        library.check(name, case)


def test_narrower_vectors_give_the_same() -> None:
    """What older processors of the kind at hand would compute."""
    assert isinstance(HOST, Host)
    if not HOST.features.startswith("+64bit") or HOST.bits == 128:
        pytest.skip("the processor is no x86 with wide vectors")
    older = replace(HOST, cpu="haswell", features="", bits=256)
    cases = {
        f"f_{op.name}_{dtype}": operation(op, dtype, SIZE)
        for dtype in (dt.float16, dt.float32, dt.float64, dt.int64, dt.uint64, dt.uint8)
        for op in (ops.ADD, ops.EXP, ops.SIN, ops.FLOOR_DIVIDE, ops.REMAINDER, ops.SIGN, ops.ROUND)
        if dtype.kind in dt.CATEGORIES[op.domain]
    }
    cases["f_casts"] = conversions(dt.float64)
    cases["f_casts_back"] = conversions(dt.uint64)
    library = Library(cases, older)
    for name, case in cases.items():
        library.check(name, case)


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "abs", "sqrt"])
def test_complex_numbers_are_pairs(name: str) -> None:
    case = operation(OPS[name], dt.complex64, SIZE)
    Library({"f": case}).check("f", case)


@pytest.mark.parametrize("type", [F32, F64], ids=str)
def test_the_math_library_over_all_exponents(type: Scalar) -> None:
    x = ex.var("x", type)
    names = ["exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "asinh", "acos", "exp2"]
    points = sweep(type, seed=3, count=300)
    values = {"x": np.resize(points, SIZE)}
    assert points.size <= SIZE
    cases = {f"f_{name}": ([x], [getattr(libm, name)(x)], values) for name in names}
    library = Library(cases)
    for name, case in cases.items():
        library.check(name, case)


def conversions(source: np.dtype[Any]) -> Case:
    """To all real dtypes."""
    x = operand("x", source)
    assert isinstance(x, Expr)
    roots = [convert(x, source, target) for target in dt.ALL_DTYPES if target.kind != "c"]
    values = {"x": anything(source, (SIZE,)).astype(DTYPES[x.type.name])}
    return [x], [r for r in roots if isinstance(r, Expr)], values


def test_conversions() -> None:
    cases = {f"f_{d}": conversions(d) for d in dt.ALL_DTYPES if d.kind != "c"}
    library = Library(cases)
    for name, case in cases.items():
        library.check(name, case)


def test_casts_between_all_types() -> None:
    """Of numbers that the target holds, where it is an integer."""
    small = np.random.default_rng(0).integers(0, 1000, SIZE)
    cases = {}
    for source in SCALARS:
        x = ex.var("x", source)
        roots = [ex.cast(x, type) for type in SCALARS if (source, type) != (F64, F16)]
        cases[f"f_{source}"] = ([x], roots, {"x": small.astype(DTYPES[source.name])})
    library = Library(cases)
    for name, case in cases.items():
        library.check(name, case)


def test_f64_is_not_rounded_twice_to_f16() -> None:
    with pytest.raises(TypeError, match="round to odd in f32 first"):
        llvm.code([ex.cast(ex.var("x", F64), F16)], {"x": "%x"}, LANES)


def test_arithmetic_of_f16_rounds_once() -> None:
    x, y = ex.var("x", F16), ex.var("y", F16)
    roots = [x + y, x - y, x * y, x / y, -x, ex.absolute(x), ex.sqrt(x), ex.rint(x), ex.floor(x)]
    roots += [x < y, x >= y, ex.eq(x, y), ex.ne(x, y), ex.select(x < y, x, y)]
    values = {"x": anything(dt.float16, (SIZE,)), "y": anything(dt.float16, (SIZE,), 1)}
    run([x, y], roots, values)


@pytest.mark.parametrize("type", [I32, U32, I64, U64], ids=str)
def test_integer_arithmetic_is_defined_everywhere(type: Scalar) -> None:
    x, y = ex.var("x", type), ex.var("y", type)
    roots = [x + y, x - y, x * y, ex.quotient(x, y), ex.remainder(x, y), -x, ~x]
    roots += [x << 3, x >> 3, x & y, x | y, x ^ y, x < y, x <= y, ex.eq(x, y), ex.ne(x, y)]
    if type.kind == "i":
        roots.append(ex.absolute(x))
    dtype = DTYPES[type.name]
    values = {"x": anything(dtype, (SIZE,)), "y": anything(dtype, (SIZE,), 1)}
    info = np.iinfo(dtype)
    values["x"][::3] = info.min
    values["x"][1::7] = info.max
    values["y"][::5] = 0
    values["y"][1::5] = dtype.type(-1) if type.kind == "i" else 1
    values["y"][2::5] = np.random.default_rng(0).integers(1, 50, values["y"][2::5].size)
    run([x, y], roots, values)


@pytest.mark.parametrize("type", [I32, U32, I64, U64], ids=str)
def test_shift_counts_are_taken_modulo_the_width(type: Scalar) -> None:
    x, n = ex.var("x", type), ex.var("n", U32)
    counts = np.random.default_rng(0).integers(0, 200, SIZE).astype(np.uint32)
    run([x, n], [x << n, x >> n], {"x": anything(DTYPES[type.name], (SIZE,)), "n": counts})


def test_constants_are_exact() -> None:
    rng = np.random.default_rng(0)
    x = ex.var("x", BOOL)
    constants = [
        ex.const_bits(int(bits), type)
        for type in (F16, F32, F64, I32, U32, I64, U64)
        for bits in rng.integers(0, 1 << 63, 20, np.uint64) >> np.uint64(63 - min(type.bits, 63))
    ]
    special = (0.0, -0.0, np.inf, -np.inf, np.nan)
    constants += [ex.const(value, type) for type in (F16, F32, F64) for value in special]
    constants += [ex.const(-(1 << (type.bits - 1)), type) for type in (I32, I64)]
    constants += [ex.const_bits((1 << type.bits) - 1, type) for type in (U32, U64, F16)]
    constants += [ex.const(True, BOOL), ex.const(False, BOOL)]
    roots = [ex.select(x, constant, ex.const_bits(0, constant.type)) for constant in constants]
    run([x], roots, {"x": np.arange(SIZE) % 3 == 0})


def test_a_branch_is_taken_for_the_elements_that_need_it() -> None:
    x = ex.var("x", F32)
    rare = ex.sqrt(x * x + 1.0) * x
    inner = ex.rarely(x > 1000.0, x / 3.0, rare)
    first, second = ex.rarely(x > 1.0, inner, x + 1.0), ex.rarely(x > 1.0, rare - x, x)
    values = {"x": np.zeros(SIZE, np.float32)}
    values["x"][:200] = anything(dt.float32, (200,))
    library = run([x], [first * second, first - second, rare], values)
    assert library.text.count("br i1 %t") == 2


def test_shift_counts_that_are_known_are_taken_modulo_the_width() -> None:
    for type in (I32, U64):
        x = ex.var("x", type)
        counts = [ex.const(count, U32) for count in (0, 1, 31, 32, 63, 64, 100)]
        roots = [shift for n in counts for shift in (x << n, x >> n)]
        run([x], roots, {"x": anything(DTYPES[type.name], (SIZE,))})


@pytest.mark.parametrize("vectors", [2, 4])
def test_long_rare_arms_are_functions_of_one_vector(vectors: int) -> None:
    x, y, odd = ex.var("x", F32), ex.var("y", F32), ex.var("odd", BOOL)
    angles = np.linspace(-400.0, 1e9, SIZE).astype(np.float32)
    angles[:200] = anything(dt.float32, (200,))
    values = {"x": angles, "y": np.zeros(SIZE, np.float32), "odd": np.arange(SIZE) % 2 == 1}
    values["y"][17] = np.float32(1e20)
    # Arms of several types, one of which takes a boolean and has branches in it.
    root = y
    for _ in range(70):
        root = ex.rarely(root > 1e30, root * 0.5, ex.select(odd, root, x) * root + 1.0)
    large = y > 1e9
    arms = [
        ex.rarely(large, root, y),
        ex.rarely(large, root > x, odd),
        ex.rarely(large, ex.cast(root, I32), ex.cast(x > 0.0, I32)),
    ]
    case = ([x, y, odd], [libm.sin(x) + libm.sin(y), libm.cos(x), *arms], values)
    library = Library({"all": case}, vectors=vectors)
    library.check("all", case)
    # Sine and cosine of what is large are reduced by the same function, of which there is one.
    names = re.findall(r"^define internal .* @(\w+)\(", library.text, re.MULTILINE)
    assert sorted(names) == ["rare0", "rare1"]
    calls = {name: library.text.count(f" @{name}(") - 1 for name in names}
    assert sorted(calls.values()) == [vectors, 2 * vectors]


def test_short_rare_arms_are_no_functions() -> None:
    x = ex.var("x", F32)
    short = llvm.code([ex.rarely(x > 1.0, x / 3.0, x)], {"x": "%x"}, LANES, vectors=2)
    whole = llvm.code([libm.sin(x)], {"x": "%x"}, LANES)
    assert not any("define" in line for line in (*short.declarations, *whole.declarations))


def test_values_that_need_no_element_are_computed_early() -> None:
    x, s = ex.var("x", F64), ex.var("s", F64)
    outer = ex.sqrt(s) * 2.0
    printer = llvm.Printer([x * outer + s, x > s * s], LANES)
    printer.variables.update(x="%x", s="%s")
    early = printer.only_with([s])
    assert set(early) == {outer, s * s}
    printer.compute(early)
    assert "%x" not in printer.taken()


def test_texts_are_the_same_in_every_process() -> None:
    x = ex.var("x", F64)
    one, other = (llvm.code([libm.tan(x)], {"x": "%x"}, LANES).statements for _ in range(2))
    assert one == other


def test_examples() -> None:
    assert not doctest.testmod(llvm).failed
