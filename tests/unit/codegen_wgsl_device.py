"""Run generated WGSL on the first adapter and compare it with the evaluator, bit for bit; prints one JSON object.

A program of its own, because a shader that a driver dislikes may end the process.

    python -m tests.unit.codegen_wgsl_device NAME...
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from numr import dtypes as dt
from numr.codegen import libm
from numr.codegen.elementwise import Complex, convert, expression, operand, scalar_of
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
    Scalar,
    by_fma,
    cast,
    ceil,
    eq,
    floor,
    is_plain_fma,
    rint,
    select,
    sqrt,
    trunc,
    var,
)
from numr.codegen.reference import DTYPES, evaluate
from numr.codegen.wgsl import code, prelude
from numr.codegen.wgsl_rounding import rounding
from numr.ir.ops import OPS
from tests.parity import samples
from tests.unit.codegen_support import sweep

Array = np.ndarray[Any, Any]

FEATURES = {"f16": "shader-f16", "f64": "shader-f64", "i64": "shader-int64", "u64": "shader-int64"}

_ROUNDING = ("abs", "ceil", "floor", "trunc", "round", "sign", "negative", "sqrt", "square")
_PREDICATES = ("isfinite", "isinf", "isnan", "signbit", "reciprocal")
_ARITHMETIC = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "copysign")
_COMPARISON = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_REAL = {
    "basic": (*_ROUNDING, *_PREDICATES, *_ARITHMETIC, "nextafter", *_COMPARISON, "where"),
    "exponential": ("exp", "expm1", "sinh", "cosh", "tanh"),
    "logarithmic": ("log", "log2", "log10", "log1p", "asinh", "acosh", "atanh"),
    "trigonometric": ("sin", "cos", "tan"),
    "inverse": ("asin", "acos", "atan", "atan2", "hypot"),
    "powers": ("pow", "logaddexp"),
    "division": ("remainder", "floor_divide"),
}
_INTEGER = (
    *("abs", "negative", "sign", "square", "add", "subtract", "multiply", "floor_divide"),
    *("remainder", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor", "where"),
    *("bitwise_invert", "bitwise_left_shift", "bitwise_right_shift", *_COMPARISON),
)
_HALF = (*_ROUNDING, *_PREDICATES, *_ARITHMETIC, "nextafter", *_COMPARISON, "exp", "log", "sin")
_COMPLEX = {
    "arithmetic": ("multiply", "divide", "sqrt", "sign", "abs", "equal"),
    "functions": ("exp", "log", "sinh", "tanh"),
    "inverses": ("acos", "asinh", "atanh"),
    "rest": ("expm1", "log1p", "pow"),
}

Cases = list[tuple[str, Expr]]
Inputs = dict[str, Array]


def _rows(dtype: np.dtype[Any], names: tuple[str, ...]) -> Cases:
    """The results of operations, components one by one."""
    cases: Cases = []
    for name in names:
        op = OPS[name]
        operands = [operand(letter, dtype) for letter in "xy"[: min(op.arity, 2)]]
        if op.arity == 3:
            x, y = operands
            condition = expression(OPS["less"], dtype, x, y)
            operands = [condition, y, x]
        result = expression(op, dtype, *operands)
        if isinstance(result, Complex):
            cases += [(f"{name}.re", result.re), (f"{name}.im", result.im)]
        else:
            cases.append((name, result))
    return cases


def _reals(type: Scalar) -> Inputs:
    rng = np.random.default_rng(21)
    x, y = sweep(type, 22, 500), sweep(type, 23, 500)
    rng.shuffle(y)
    third = x.size // 3
    with np.errstate(all="ignore"):
        y[:third] = x[:third] * rng.uniform(-3, 3, third).astype(x.dtype)
    y[third : third + 40] = x[third : third + 40]
    y[third + 40 : 2 * third] = rng.uniform(-40, 40, third - 40).astype(x.dtype)
    return {"x": x, "y": y}


def _halves() -> Inputs:
    x = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    y = np.random.default_rng(27).permutation(x)
    return {"x": x, "y": y}


def _integers(dtype: np.dtype[Any]) -> Inputs:
    x, y = samples.operands(dtype, 2, 24)
    counts = np.arange(-3 if dtype.kind == "i" else 0, 70).astype(dtype)
    x = np.concatenate([x, np.resize(x, counts.size)])
    y = np.concatenate([y, counts])
    held = DTYPES[scalar_of(dtype).name]
    return {"x": x.astype(held), "y": y.astype(held)}


def _complexes(dtype: np.dtype[Any]) -> Inputs:
    x, y = samples.operands(dtype, 2, 25)
    parts = [x.real, x.imag, y.real, y.imag]
    return dict(zip(("x_re", "x_im", "y_re", "y_im"), (p.copy() for p in parts), strict=True))


def _conversions(type: Scalar) -> Cases:
    """To every other type and back to bits of the same width, where the device has the type."""
    source = DTYPES[type.name]
    cases: Cases = []
    x = var("x", type)
    for target in (
        dt.float32,
        dt.int32,
        dt.uint32,
        dt.int8,
        dt.uint16,
        dt.bool_,
        dt.float64,
        dt.int64,
        dt.uint64,
    ):
        result = convert(x, source, target)
        assert isinstance(result, Expr)
        back = convert(result, target, source)
        assert isinstance(back, Expr)
        cases.append((str(target), back))
    return cases


def _barrier_cases(type: Scalar) -> Cases:
    """What compilers simplify."""
    x, y = var("x", type), var("y", type)
    return [
        ("(x + y) - x", (x + y) - x),
        ("x - x", x - x),
        ("x / x", x / x),
        ("x * 0", x * 0.0),
        ("x + 0", x + 0.0),
        ("0 - x", 0.0 - x),
        ("-(x - y)", -(x - y)),
        ("(x + 1) - 1", (x + 1.0) - 1.0),
        ("x * y + x * x", x * y + x * x),
        ("(x * 3) * (1/3)", (x * 3.0) * (1 / 3)),
        ("x < y ? x : y", select(x < y, x, y)),
        ("x * y - x", x * y - x),
        ("(c ? 1 : 0) * y", select(x < y, x * 0.0 + 1.0, x * 0.0) * y),
    ]


def _rounding_cases(type: Scalar) -> tuple[Scalar, Cases, Inputs]:
    """Numbers of all sizes with and without a fraction; drivers have got large ones wrong."""
    rng = np.random.default_rng(26)
    x = 2.0 ** rng.uniform(-5, 60 if type is F64 else 30, 2000) * rng.choice([-1, 1], 2000)
    x = np.concatenate([x, np.round(x) + 0.5]).astype(DTYPES[type.name])
    value = var("x", type)
    functions = {"floor": floor, "ceil": ceil, "trunc": trunc, "rint": rint}
    cases = [(name, function(value)) for name, function in functions.items()]
    cases.append(("trunc(x) == x", eq(trunc(value), value)))
    return type, cases, {"x": x}


def _widened_cases(type: Scalar, wide: Scalar) -> Cases:
    """Comparisons of integers that were narrower with constants; a driver has got them wrong."""
    value = cast(var("x", type), wide)
    cases: Cases = []
    for bound in (0, 1, 63, 2**31, 2**40, *((-1, -(2**40)) if wide is I64 else ())):
        cases += [(f"< {bound}", value < bound), (f"> {bound}", value > bound)]
        cases += [(f"<= {bound}", value <= bound), (f"== {bound}", eq(value, bound))]
    return cases


def groups() -> dict[str, Callable[[], tuple[Scalar, Cases, Inputs]]]:
    """What one kernel computes, by name: the type of its buffers, expressions and inputs."""
    found: dict[str, Callable[[], tuple[Scalar, Cases, Inputs]]] = {}
    for type, dtype in ((F32, dt.float32), (F64, dt.float64)):
        for name, names in _REAL.items():
            found[f"{type}-{name}"] = lambda t=type, d=dtype, n=names: (t, _rows(d, n), _reals(t))
        found[f"{type}-rounding"] = lambda t=type: _rounding_cases(t)
        found[f"{type}-barrier"] = lambda t=type: (t, _barrier_cases(t), _reals(t))
        found[f"{type}-conversions"] = lambda t=type: (t, _conversions(t), _reals(t))
    found["f16-all"] = lambda: (F16, _rows(dt.float16, _HALF), _halves())
    x = var("x", F32)
    found["f32-exp2"] = lambda: (F32, [("exp2", libm.exp2(x))], _reals(F32))
    for dtype in (dt.int32, dt.uint32, dt.int64, dt.uint64, dt.int8, dt.uint16):
        type = scalar_of(dtype)
        found[f"{dtype}-basic"] = lambda t=type, d=dtype: (t, _rows(d, _INTEGER), _integers(d))
        found[f"{dtype}-pow"] = lambda t=type, d=dtype: (t, _rows(d, ("pow",)), _integers(d))
    for type, dtype in ((I32, dt.int32), (U32, dt.uint32), (I64, dt.int64), (U64, dt.uint64)):
        found[f"{type}-conversions"] = lambda t=type, d=dtype: (t, _conversions(t), _integers(d))
    for type, dtype in ((I32, dt.int32), (U32, dt.uint32)):
        for wide in (I64, U64):
            found[f"{type}-as-{wide}"] = lambda t=type, w=wide, d=dtype: (
                t,
                _widened_cases(t, w),
                _integers(d),
            )
    for name, names in _COMPLEX.items():
        for type, dtype in ((F32, dt.complex64), (F64, dt.complex128)):
            found[f"{dtype}-{name}"] = lambda t=type, d=dtype, n=names: (
                t,
                _rows(d, n),
                _complexes(d),
            )
    return found


def kernel(type: Scalar, cases: Cases, names: list[str], *, exact: bool) -> str:
    """A shader that reads one element of each input and writes all results, one after the other.

    ``exact`` says that the device rounds quotients and roots correctly.
    """
    roots = [cast(root, type) if root.type is BOOL else root for _, root in cases]
    printed = code(roots, {name: f"v_{name}" for name in names})
    bindings = "".join(
        f"@group(0) @binding({i + 2}) var<storage, read_write> b_{name}: array<{type}>;\n"
        for i, name in enumerate(names)
    )
    loads = "".join(f"    let v_{name} = b_{name}[i];\n" for name in names)
    stores = "".join(
        f"    results[{k}u * pc.x + i] = {result};\n" for k, result in enumerate(printed.results)
    )
    return (
        f"{'enable f16;' if 'f16' in printed.types else ''}\n"
        f"@group(0) @binding(0) var<uniform> pc: vec4<u32>;\n"
        f"@group(0) @binding(1) var<storage, read_write> results: array<{type}>;\n"
        f"{bindings}{prelude(printed.types, 'pc.y')}"
        f"{rounding(printed.statements + stores, exact=exact)}"
        f"@compute @workgroup_size(64)\n"
        f"fn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n"
        f"    let i = id.x;\n    if i >= pc.x {{ return; }}\n"
        f"{loads}{printed.statements}{stores}}}\n"
    )


def run(device: Any, type: Scalar, cases: Cases, inputs: Inputs) -> Array:
    """The results of a kernel, one row for each case."""
    import wgpu

    dtype = DTYPES[type.name]
    count = next(iter(inputs.values())).size
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    uniform = device.create_buffer_with_data(
        data=np.asarray([count, 0, 0, 0], np.uint32), usage=wgpu.BufferUsage.UNIFORM
    )
    results = device.create_buffer(size=len(cases) * count * dtype.itemsize, usage=usage)
    buffers = [uniform, results]
    buffers += [
        device.create_buffer_with_data(data=np.ascontiguousarray(x), usage=usage)
        for x in inputs.values()
    ]
    is_cpu = device.adapter.info["adapter_type"] == "CPU"
    text = kernel(type, cases, list(inputs), exact=is_cpu)
    module = device.create_shader_module(code=text)
    entries = [
        {
            "binding": i,
            "visibility": wgpu.ShaderStage.COMPUTE,
            "buffer": {"type": "storage" if i else "uniform"},
        }
        for i in range(len(buffers))
    ]
    layout = device.create_bind_group_layout(entries=entries)
    pipeline = device.create_compute_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
        compute={"module": module, "entry_point": "main"},
    )
    group = device.create_bind_group(
        layout=layout,
        entries=[
            {"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}}
            for i, b in enumerate(buffers)
        ],
    )
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group)
    compute_pass.dispatch_workgroups(-(-count // 64))
    compute_pass.end()
    device.queue.submit([encoder.finish()])
    got = np.frombuffer(device.queue.read_buffer(results), dtype)
    return got.reshape(len(cases), count)


def differences(
    type: Scalar, cases: Cases, inputs: Inputs, got: Array, *, exact: bool = True
) -> dict[str, str]:
    """For each case that differs from the evaluator's result: how many elements do, and one of them.

    ``exact`` asks for the same bits. Else basic operations in f32 may be a little off and its subnormal numbers may be
    zero, and f16 may lose the sign of NaN. All results are those of an operation that multiplies and adds with one
    rounding, or all those of one with two.
    """
    roots = [cast(root, type) if root.type is BOOL else root for _, root in cases]
    ways = [
        [np.broadcast_to(x, got[0].shape) for x in evaluate(way, inputs)]
        for way in (roots, by_fma(roots, is_plain_fma))
    ]
    agreement = [sum(map(_agreement, got, expected)) for expected in ways]
    expected = ways[int(np.argmax(agreement))]
    found = {}
    for i, (name, _) in enumerate(cases):
        same = _same_bits(got[i], expected[i])
        if not exact and type is F16:
            same |= np.any([np.isnan(x) for x in inputs.values()], axis=0) & (
                np.abs(got[i]) == np.abs(expected[i]) if name == "copysign" else name == "signbit"
            )
        elif not exact and type is F64:
            limit = np.finfo(np.float32).smallest_normal
            same |= (name == "float32") & (got[i] == 0) & (np.abs(expected[i]) < limit)
        elif not exact and type is F32:
            partner = i + (1 if name.endswith(".re") else -1 if name.endswith(".im") else 0)
            same |= _close(got[i], expected[i], expected[partner]) | _beyond_care(inputs)
        if not same.all():
            k = int(np.flatnonzero(~same)[0])
            values = [x[k].item() for x in inputs.values()]
            found[name] = (
                f"{int((~same).sum())} of {same.size}, at {values}: {got[i][k]!r}, not {expected[i][k]!r}"
            )
    return found


def _agreement(got: Array, expected: Array) -> int:
    return int(_same_bits(got, expected).sum())


def _same_bits(got: Array, expected: Array) -> Array:
    word = f"u{got.dtype.itemsize}"
    same = got.view(word) == np.ascontiguousarray(expected).view(word)
    if got.dtype.kind == "f":
        same |= np.isnan(got) & np.isnan(expected)
    return np.asarray(same)


def _close(got: Array, expected: Array, partner: Array) -> Array:
    """Within a few units of the result, or of the modulus for a component; everything subnormal is alike."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        size = np.hypot(expected.astype(np.float64), partner.astype(np.float64))
        error = np.abs(got.astype(np.float64) - expected)
        close = error <= 6 * float(info.eps) * size + float(info.smallest_normal)
    return np.asarray(close & np.isfinite(expected))


def _beyond_care(inputs: Inputs) -> Array:
    """Where an operand is so small or large that intermediate results may be subnormal."""
    columns = []
    for x in inputs.values():
        size = np.abs(x)
        columns.append(np.isfinite(x) & (size != 0) & ((size < 2.0**-60) | (size > 2.0**60)))
    return np.asarray(np.any(columns, axis=0))


def is_exact(device: Any) -> bool:
    """Whether the device's basic operations on f32 are those of IEEE 754, subnormal numbers included."""
    x, y = var("x", F32), var("y", F32)
    cases = [("x + y", x + y), ("x * y", x * y), ("x / y", x / y), ("sqrt(x)", sqrt(x))]
    inputs = _reals(F32)
    return not differences(F32, cases, inputs, run(device, F32, cases, inputs))


def lacks(root: Expr, features: list[str]) -> set[str]:
    """The features that an expression needs and the device has not."""
    types = code([root]).types
    return {FEATURES[name] for name in types if name in FEATURES} - set(features)


def main(names: list[str]) -> None:
    # Before the device exists: run small work on the queue's own thread.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    try:
        import wgpu

        adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    except (ImportError, RuntimeError) as error:
        print(json.dumps({"skip": f"no WebGPU adapter: {error}"}))
        return
    refused = set(filter(None, os.environ.get("NUMR_WGPU_DISABLE", "").split(",")))
    wanted = sorted(set(FEATURES.values()) & set(adapter.features) - refused)
    device = adapter.request_device_sync(required_features=wanted)
    exact = is_exact(device)
    report: dict[str, Any] = {"adapter": adapter.info["device"], "exact": exact, "groups": {}}
    available = groups()
    for name in names or available:
        start = time.perf_counter()
        type, cases, inputs = available[name]()
        # What the adapter has no types for; of the conversions the others remain.
        lacking = {case: lacks(root, wanted) for case, root in cases}
        cases = [(case, root) for case, root in cases if not lacking[case]]
        missing = set().union(*lacking.values())
        if not cases:
            entry: dict[str, Any] = {"skip": f"the adapter lacks {', '.join(sorted(missing))}"}
        else:
            got = run(device, type, cases, inputs)
            wrong = differences(type, cases, inputs, got, exact=exact)
            entry = {"differences": wrong, "cases": len(cases)}
        entry["seconds"] = round(time.perf_counter() - start, 2)
        report["groups"][name] = entry
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
