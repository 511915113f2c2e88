"""Fused computations of the WebGPU runtime: what one kernel computes is what the operations compute by themselves."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from numr import dtypes as dt
from numr.errors import DTypeError
from numr.ir import ops
from numr.ir.fused import Computation, Source, Step
from numr.ir.ops import Reduction, Signature
from numr.layout import Layout
from numr.runtime.client import RuntimeClient
from numr.runtime.wgpu import WgpuClient
from tests.runtime.wgpu_support import kernels_of, require_adapter, variant

pytestmark = pytest.mark.wgpu
require_adapter()

F32 = dt.float32
BOTH = Signature(F32, F32)


@pytest.fixture(scope="module")
def client():
    rt = variant()
    return rt.Client(rt.default_device())


def numbers(dtype, shape, seed=0):
    """Numbers of both signs, infinities, NaN, zeros of both signs and numbers near the ends of the range."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        small = rng.integers(0 if dtype.kind == "u" else -9, 9, shape).astype(dtype)
        return np.where(rng.random(shape) < 0.5, small, values)
    if dtype.kind == "c":
        result = np.empty(shape, dtype)
        part = dt.real_of(dtype)
        result.real, result.imag = numbers(part, shape, seed), numbers(part, shape, seed + 1)
        return result
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3, shape)
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 0.5], shape)
    return np.where(rng.random(shape) < 0.2, special, values).astype(dtype)


def same_bits(got, expected):
    """Whether arrays are equal to the bit, but for what a NaN holds."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    if got.dtype.kind == "c":
        return same_bits(got.real, expected.real) and same_bits(got.imag, expected.imag)
    if got.dtype.kind != "f":
        return bool(np.array_equal(got, expected))
    nan = np.isnan(got) & np.isnan(expected)
    return bool(np.all(nan | ((got == expected) & (np.signbit(got) == np.signbit(expected)))))


def results_of(client, computation, operands, shape, loop):
    """Results of a computation, by its kernels or composed."""
    outs = [client.empty(shape, dtype) for dtype in computation.result_dtypes]
    loop(operands, outs)
    return [client.to_host(out) for out in outs]


def check(client, computation, operands, shape):
    got = results_of(client, computation, operands, shape, client.fused(computation))
    composed = RuntimeClient.fused(client, computation)
    expected = results_of(client, computation, operands, shape, composed)
    for x, y in zip(got, expected, strict=True):
        assert same_bits(x, y), (str(computation), x, y)
    return got


def upload(client, array):
    return client.from_host(np.ascontiguousarray(array), copy=True)


# ------------------------------------------------------------------ operations
ALL = list(dt.ALL_DTYPES)
#: Integers of 16 bits are computed with like those of 8 bits.
DTYPES = [dtype for dtype in dt.ALL_DTYPES if dtype not in (dt.int16, dt.uint16)]


@pytest.mark.parametrize("op", ops.OPS.values(), ids=lambda op: op.name)
def test_every_operation_between_others(client, op):
    """An operation of what was converted, whose result is compared and converted: nothing is simplified between."""
    for dtype in DTYPES:
        if not client.fuses(op, dtype):
            assert dtype.kind not in dt.CATEGORIES[op.domain]
            continue
        signature = Signature(dtype, _result(op, dtype))
        kinds = [dtype] * op.arity
        if op is ops.SELECT:
            kinds[0] = dt.bool_
        count = len(kinds)
        steps = [Step(None, Signature(kind, kind), (i,)) for i, kind in enumerate(kinds)]
        steps.append(Step(op, signature, tuple(range(count, 2 * count))))
        steps.append(Step(ops.EQUAL, Signature(signature.result, dt.bool_), (2 * count,) * 2))
        computation = Computation(
            tuple(Source(kind, is_array=True) for kind in kinds),
            tuple(steps),
            (2 * count, 2 * count + 1),
        )
        operands = [upload(client, numbers(kind, (97,), i)) for i, kind in enumerate(kinds)]
        check(client, computation, operands, (97,))


def _result(op, dtype):
    if op.result is ops.Result.BOOL:
        return dt.bool_
    return dt.real_of(dtype) if op.result is ops.Result.REAL else dtype


def steps_of(dtypes, *calls):
    """A computation on arrays whose results are all that it computes; each call names an operation or a dtype."""
    sources = tuple(Source(dtype, is_array=True) for dtype in dtypes)
    known, steps = list(dtypes), []
    for what, *arguments in calls:
        if isinstance(what, ops.Op):
            signature = what.signature(tuple(known[i] for i in arguments), WgpuClient.defaults)
        else:
            signature, what = Signature(known[arguments[0]], what), None
        steps.append(Step(what, signature, tuple(arguments)))
        known.append(signature.result)
    return Computation(sources, tuple(steps), tuple(range(len(dtypes), len(known))))


#: What compilers, or the expressions themselves, made something else of once operations followed each other.
SIMPLIFIED = {
    "signs of widened integers": (
        [dt.int32],
        (dt.int64, 0),
        (ops.LOG, 1),
        (dt.float64, 1),
        (ops.SIGN, 3),
    ),
    "what is equal by other names": ([dt.complex64], (ops.DIVIDE, 0, 0), (ops.MULTIPLY, 0, 0)),
    "differences of itself": ([F32], (ops.SUBTRACT, 0, 0), (ops.NEGATIVE, 0), (ops.ADD, 0, 2)),
    "parts that are zero": (
        [dt.int8, F32],
        (ops.IMAG, 0),
        (ops.FLOOR_DIVIDE, 1, 2),
        (dt.float16, 2),
    ),
    "real numbers as complex ones": (
        [dt.float16, dt.complex64],
        (dt.complex128, 0),
        (ops.DIVIDE, 2, 1),
        (ops.MULTIPLY, 2, 1),
    ),
    "answers that are known": (
        [dt.int16],
        (ops.ISNAN, 0),
        (F32, 1),
        (ops.NEGATIVE, 2),
        (ops.ADD, 2, 3),
    ),
    "half floats as booleans": ([dt.float16], (ops.ADD, 0, 0), (dt.bool_, 1), (dt.int8, 1)),
    "booleans as numbers": ([F32], (ops.LESS, 0, 0), (F32, 1), (ops.NEGATIVE, 2), (ops.ADD, 3, 2)),
}


@pytest.mark.parametrize("name", SIMPLIFIED)
def test_nothing_is_simplified(client, name):
    dtypes, *calls = SIMPLIFIED[name]
    operands = [upload(client, numbers(dtype, (200,), i)) for i, dtype in enumerate(dtypes)]
    check(client, steps_of(dtypes, *calls), operands, (200,))


@pytest.mark.parametrize("seed", range(30))
def test_random_computations(client, seed):
    rng = np.random.default_rng(seed)
    dtypes = [ALL[i] for i in rng.integers(len(ALL), size=int(rng.integers(1, 4)))]
    known, calls = list(dtypes), []
    while len(calls) < 7:
        what = list(ops.OPS.values())[rng.integers(len(ops.OPS))]
        if rng.random() < 0.25:
            what = ALL[rng.integers(len(ALL))]
        count = what.arity if isinstance(what, ops.Op) else 1
        arguments = [int(i) for i in rng.integers(max(0, len(known) - 5), len(known), count)]
        try:
            calls.append((what, *arguments))
            computation = steps_of(dtypes, *calls)
        except DTypeError:
            calls.pop()
            continue
        if isinstance(what, np.dtype) and known[arguments[0]].kind == "c" and what.kind not in "bc":
            calls.pop()
            continue
        known.append(computation.dtype(len(known)))
    operands = [upload(client, numbers(dtype, (99,), i)) for i, dtype in enumerate(dtypes)]
    check(client, steps_of(dtypes, *calls), operands, (99,))


# ---------------------------------------------------------------------- layouts
def several(results=None):
    """A computation of a float, an integer of bytes and a scalar, with results of six dtypes."""
    sources = (Source(F32, True), Source(dt.int8, True), Source(F32, False))
    steps = (
        Step(ops.MULTIPLY, BOTH, (0, 2)),  # 3
        Step(ops.ADD, BOTH, (3, 1)),  # 4
        Step(ops.LESS, Signature(F32, dt.bool_), (4, 2)),  # 5
        Step(ops.ADD, Signature(dt.int8, dt.int8), (1, 1)),  # 6
        Step(None, Signature(F32, dt.int16), (4,)),  # 7
        Step(None, Signature(F32, dt.complex64), (4,)),  # 8
        Step(ops.SELECT, BOTH, (5, 0, 3)),  # 9
    )
    return Computation(sources, steps, results or (3, 5, 6, 7, 8, 9))


def expected_of(x, b, s):
    with np.errstate(all="ignore"):
        product = x * np.float32(s)
        total = product + b.astype(np.float32)
        less = total < np.float32(s)
        return (
            product,
            less,
            b + b,
            np.trunc(total).astype(np.int16),
            total.astype(np.complex64),
            np.where(less, x, product),
        )


def view(client, host, shape, strides, offset):
    """A view of a copy of host memory, and the host's own."""
    array = upload(client, host)
    layout = Layout(shape, strides, offset)
    size = host.itemsize
    steps = tuple(step * size for step in strides)
    seen = np.lib.stride_tricks.as_strided(host[offset:], shape, steps)
    return client.wrap(array.storage, layout, host.dtype), seen


LAYOUTS = {
    "contiguous": ((12, 8), (8, 1), 0),
    "odd offset": ((12, 8), (8, 1), 3),
    "aligned offset": ((12, 8), (8, 1), 64),
    "transposed": ((12, 8), (1, 12), 0),
    "reversed": ((12, 8), (-8, -1), 95),
    "rows": ((12, 8), (0, 1), 4),
    "columns": ((12, 8), (1, 0), 5),
    "one element": ((12, 8), (0, 0), 7),
    "gaps": ((12, 8), (20, 2), 1),
    "wide gaps": ((12, 8), (20, 1), 8),
    "axis of one": ((8,), (1,), 2),
}


PAIRS = list(itertools.product(LAYOUTS, repeat=2))


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_layouts_of_operands(client, names):
    x = np.linspace(-2, 2, 400).astype(np.float32)
    b = np.arange(400).astype(np.int8)
    given = [view(client, host, *LAYOUTS[name]) for host, name in zip((x, b), names, strict=True)]
    operands = [*(array for array, _ in given), 0.75]
    shape = np.broadcast_shapes(*(seen.shape for _, seen in given))
    hosts = [np.broadcast_to(seen, shape) for _, seen in given]
    outs = [client.empty(shape, dtype) for dtype in several().result_dtypes]
    client.fused(several())(operands, outs)
    for out, expected in zip(outs, expected_of(*hosts, 0.75), strict=True):
        assert same_bits(client.to_host(out), expected)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 64, 1021, 70000])
def test_results_of_all_widths(client, size):
    rng = np.random.default_rng(size)
    x, b = rng.normal(size=size).astype(np.float32), rng.integers(-50, 50, size).astype(np.int8)
    expected = expected_of(x, b, -0.5)
    computation = several()
    for apart in (False, True):
        # Side by side, or by the kernel for any strides.
        given = upload(client, np.stack([x, x], 1)) if apart else upload(client, x)
        array = client.wrap(given.storage, Layout((size,), (2 if apart else 1,)), F32)
        got = results_of(
            client,
            computation,
            [array, upload(client, b), -0.5],
            (size,),
            client.fused(computation),
        )
        for x1, y in zip(got, expected, strict=True):
            assert same_bits(x1, y)


@pytest.mark.parametrize("which", ["every second", "inner", "reversed", "one of two"])
def test_results_in_views(client, which):
    x, b = np.linspace(-1, 1, 24).astype(np.float32), np.arange(24).astype(np.int8)
    expected = expected_of(x, b, 0.25)
    computation = several()
    layout = {
        "every second": Layout((24,), (2,), 0),
        "inner": Layout((24,), (1,), 5),
        "reversed": Layout((24,), (-1,), 30),
        "one of two": Layout((24,), (1,), 0),
    }[which]
    outs = []
    for k, dtype in enumerate(computation.result_dtypes):
        memory = upload(client, np.ones(60, dtype))
        whole = which == "one of two" and k % 2
        outs.append(
            client.empty((24,), dtype) if whole else client.wrap(memory.storage, layout, dtype)
        )
    client.fused(computation)([upload(client, x), upload(client, b), 0.25], outs)
    for out, y in zip(outs, expected, strict=True):
        assert same_bits(client.to_host(out), y)
        around = client.to_host(
            client.wrap(out.storage, Layout((out.storage.size // out.itemsize,), (1,)), out.dtype)
        )
        if len(around) == 60:
            touched = {layout.offset + i * layout.strides[0] for i in range(24)}
            assert all(around[i] == 1 for i in range(60) if i not in touched)


@pytest.mark.parametrize("strided", [False, True])
def test_in_place(client, strided):
    computation = several((3, 6))
    x, b = np.linspace(-1, 1, 20).astype(np.float32), np.arange(20).astype(np.int8)
    step = 2 if strided else 1
    a, c = upload(client, np.repeat(x, step)), upload(client, np.repeat(b, step))
    layout = Layout((20,), (step,))
    a, c = (client.wrap(y.storage, layout, y.dtype) for y in (a, c))
    client.fused(computation)([a, c, 3.0], [a, c])
    expected = expected_of(x, b, 3.0)
    assert same_bits(client.to_host(a), expected[0])
    assert same_bits(client.to_host(c), expected[2])


# ----------------------------------------------------------------------- kernels
def test_new_numbers_and_shapes_compile_nothing(client):
    loop = client.fused(several())
    pipelines = client.context.opened.pipelines

    def run(shape, s):
        rng = np.random.default_rng(0)
        x, b = rng.normal(size=shape).astype(np.float32), rng.integers(-9, 9, shape).astype(np.int8)
        got = results_of(client, several(), [upload(client, x), upload(client, b), s], shape, loop)
        wanted = expected_of(x, b, s)
        for k in (0, 1, 2, 4, 5):
            assert same_bits(got[k], wanted[k])

    run((3, 5), 0.5)
    before = pipelines.misses
    for n in range(1, 20):
        run((n, 7), 0.1 * n - 1)
        run((n, 2, n + 1), -0.0)
    run((4, 4), 1e30)
    assert pipelines.misses == before


def test_a_computation_has_one_loop(client):
    assert client.fused(several()) is client.fused(several())


def test_constants_alone(client):
    computation = Computation(
        (Source(dt.int8, False),), (Step(None, Signature(dt.int8, dt.int8), (0,)),), (1,)
    )
    out = client.empty((7,), dt.int8)
    client.fused(computation)([-3], [out])
    assert client.to_host(out).tolist() == [-3] * 7


def test_choices_of_floats_are_made_of_their_bits(client):
    from numr.codegen.elementwise import operand
    from numr.codegen.expr import U32
    from numr.runtime.wgpu.elementwise import express

    operands = [operand("c", dt.bool_), operand("x", F32), operand("y", F32)]
    chosen = express(ops.SELECT, F32, *operands)
    assert chosen.op == "bitcast"
    assert chosen.args[0].op == "select"
    assert chosen.args[0].type is U32
    tiny = np.float32([1e-45, -1e-40, 0.0])
    computation = several((9,))
    got = results_of(
        client,
        computation,
        [upload(client, tiny), upload(client, np.zeros(3, np.int8)), 1.0],
        (3,),
        client.fused(computation),
    )
    assert got[0].tobytes() == tiny.tobytes()


# ------------------------------------------------------------------------ limits
def sum_of(count):
    """The sum of arrays, one after the other."""
    steps = [Step(ops.ADD, BOTH, (0, 1))]
    steps += [Step(ops.ADD, BOTH, (count + i, i + 2)) for i in range(count - 2)]
    return Computation((Source(F32, True),) * count, tuple(steps), (2 * count - 2,))


def test_more_arrays_than_the_device_binds():
    rt = variant(limits={"max-storage-buffers-per-shader-stage": 5})
    client = rt.Client(rt.default_device())
    assert client.fusion_arrays == 5
    for count in (3, 4, 5, 9):
        hosts = [np.arange(10, dtype=np.float32) + i for i in range(count)]
        arrays = [upload(client, x) for x in hosts]
        out = client.empty((10,), F32)
        client.fused(sum_of(count))(arrays, [out])
        assert same_bits(client.to_host(out), sum(hosts[1:], start=hosts[0]))
        total = client.reduce_fused(sum_of(count), arrays, (10,), Reduction.SUM, (0,), False, F32)
        assert float(client.to_host(total)) == float(sum(hosts[1:], start=hosts[0]).sum())


def test_arrays_beyond_one_binding():
    rt = variant(limits={"max-storage-buffer-binding-size": 1 << 14})
    client = rt.Client(rt.default_device())
    rng = np.random.default_rng(0)
    size = 3 * (1 << 12) + 37
    x, b = rng.normal(size=size).astype(np.float32), rng.integers(-50, 50, size).astype(np.int8)
    computation = several()
    for host in (x, x[::-1]):
        array = upload(client, x)
        if host is not x:
            array = client.wrap(array.storage, Layout((size,), (-1,), size - 1), F32)
        got = results_of(
            client, computation, [array, upload(client, b), 2.0], (size,), client.fused(computation)
        )
        for y, expected in zip(got, expected_of(host, b, 2.0), strict=True):
            assert same_bits(y, expected)
    one = client.wrap(upload(client, x[:1]).storage, Layout((size,), (0,)), F32)
    got = results_of(
        client, computation, [one, upload(client, b), 2.0], (size,), client.fused(computation)
    )
    for y, expected in zip(got, expected_of(np.broadcast_to(x[0], size), b, 2.0), strict=True):
        assert same_bits(y, expected)


def test_without_types_of_64_bits():
    rt = variant(without={"shader-f64", "shader-int64"})
    client = rt.Client(rt.default_device())
    assert not client.fuses(ops.ADD, dt.float64)
    assert not client.fuses(ops.ADD, dt.int64)
    assert client.fuses(ops.ADD, F32)
    x, b = np.linspace(-1, 1, 30).astype(np.float32), np.arange(30).astype(np.int8)
    operands = [upload(client, x), upload(client, b), 0.5]
    got = results_of(client, several(), operands, (30,), client.fused(several()))
    for y, expected in zip(got, expected_of(x, b, 0.5), strict=True):
        assert same_bits(y, expected)
    total = client.reduce_fused(several((6,)), operands, (30,), Reduction.MAX, (0,), False, dt.int8)
    assert int(client.to_host(total)) == (b + b).max()


# -------------------------------------------------------------------- reductions
KINDS = ("cpu", "gpu")
#: By dtype what is computed of two operands of it before it is reduced.
PROLOGUES = {
    dt.float32: (ops.MULTIPLY, BOTH),
    dt.float64: (ops.SUBTRACT, Signature(dt.float64, dt.float64)),
    dt.int8: (ops.ADD, Signature(dt.int8, dt.int8)),
    dt.uint16: (ops.MULTIPLY, Signature(dt.uint16, dt.uint16)),
    dt.int64: (ops.ADD, Signature(dt.int64, dt.int64)),
    dt.complex64: (ops.MULTIPLY, Signature(dt.complex64, dt.complex64)),
    dt.bool_: (ops.LOGICAL_XOR, Signature(dt.bool_, dt.bool_)),
    dt.float16: (ops.MULTIPLY, Signature(dt.float16, dt.float16)),
}
REDUCTIONS = [
    (kind, dtype)
    for kind in Reduction
    for dtype in PROLOGUES
    if not (kind in (Reduction.MAX, Reduction.MIN) and dtype.kind == "c")
    and not (kind in (Reduction.SUM, Reduction.PROD) and dtype.kind == "b")
]


@pytest.fixture(scope="module", params=KINDS)
def kernels(request):
    return kernels_of(request.param)


def check_reduction(client, computation, operands, shape, kind, axes, keepdims, dtype):
    """By one kernel, what reducing an array gives; returns that."""
    assert client.computes(computation, operands, shape, _fold(computation, kind, dtype))
    arguments = (computation, operands, shape, kind, axes, keepdims, dtype)
    got = client.to_host(client.reduce_fused(*arguments))
    expected = client.to_host(RuntimeClient.reduce_fused(client, *arguments))
    assert same_bits(got, expected), (str(computation), shape, kind, axes, got, expected)
    again = client.to_host(client.reduce_fused(*arguments))
    assert same_bits(again, expected)
    return got


def _fold(computation, kind, dtype):
    from numr.runtime.wgpu.reductions import _fold_of

    return _fold_of(kind, computation.result_dtypes[0], dtype)


@pytest.mark.parametrize(("kind", "dtype"), REDUCTIONS, ids=lambda x: getattr(x, "value", str(x)))
def test_reductions_of_what_is_computed(kernels, kind, dtype):
    op, signature = PROLOGUES[dtype]
    computation = Computation(
        (Source(dtype, True), Source(dtype, True)), (Step(op, signature, (0, 1)),), (2,)
    )
    shapes = [((40, 36), (1,)), ((40, 36), (0,)), ((5, 7, 9), (0, 2)), ((3001,), (0,))]
    for shape, axes in shapes:
        x, y = numbers(dtype, shape, 1), numbers(dtype, shape[-1:], 2)
        operands = [upload(kernels, x), upload(kernels, y)]
        for keepdims in (False, True):
            check_reduction(kernels, computation, operands, shape, kind, axes, keepdims, dtype)


@pytest.mark.parametrize("names", PAIRS[::5], ids="-".join)
def test_reductions_of_any_layout(kernels, names):
    x = np.linspace(-2, 2, 400).astype(np.float32)
    given = [
        view(kernels, host, *LAYOUTS[name])
        for host, name in zip((x, x[::-1].copy()), names, strict=True)
    ]
    computation = Computation(
        (Source(F32, True), Source(F32, True), Source(F32, False)),
        (
            Step(ops.SUBTRACT, BOTH, (0, 1)),
            Step(ops.MULTIPLY, BOTH, (3, 3)),
            Step(ops.ADD, BOTH, (4, 2)),
        ),
        (5,),
    )
    shape = np.broadcast_shapes(*(seen.shape for _, seen in given))
    operands = [*(array for array, _ in given), 0.5]
    hosts = [np.broadcast_to(seen, shape).astype(np.float64) for _, seen in given]
    exact = np.float32((hosts[0] - hosts[1]).astype(np.float32)).astype(np.float64) ** 2 + 0.5
    for axes in [tuple(range(len(shape))), (0,), (len(shape) - 1,)]:
        got = check_reduction(
            kernels, computation, operands, shape, Reduction.SUM, axes, False, F32
        )
        np.testing.assert_allclose(got, exact.sum(axes), rtol=1e-5)


def test_long_lines_and_many_lines(kernels):
    computation = Computation((Source(F32, True),) * 2, (Step(ops.MULTIPLY, BOTH, (0, 1)),), (2,))
    for shape, axes in [
        ((300000,), (0,)),
        ((2, 150001), (1,)),
        ((70000, 3), (1,)),
        ((3, 70000), (0,)),
    ]:
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        array = upload(kernels, x)
        got = check_reduction(
            kernels, computation, [array, array], shape, Reduction.SUM, axes, False, F32
        )
        np.testing.assert_allclose(got, np.square(x, dtype=np.float64).sum(axes), rtol=1e-6)


def test_what_one_kernel_does_not_do_is_composed(kernels):
    long = [Step(ops.SIN, BOTH, (i + 2,)) for i in range(3)]
    computation = Computation(
        (Source(F32, True), Source(F32, False)), (Step(ops.ADD, BOTH, (0, 1)), *long), (5,)
    )
    x = np.linspace(0, 1, 50).astype(np.float32)
    arguments = ([upload(kernels, x), 0.5], (50,), Reduction.SUM, (0,), False, F32)
    got = kernels.to_host(kernels.reduce_fused(computation, *arguments))
    np.testing.assert_allclose(got, np.sin(np.sin(np.sin(x.astype(float) + 0.5))).sum(), rtol=1e-6)
    constant = Computation((Source(F32, False),), (Step(None, BOTH, (0,)),), (1,))
    total = kernels.reduce_fused(constant, [0.25], (6, 2), Reduction.SUM, (0,), True, F32)
    assert kernels.to_host(total).tolist() == [[1.5, 1.5]]


def test_numbers_that_are_equal_are_told_apart(kernels):
    computation = Computation(
        (Source(F32, True), Source(F32, False)), (Step(ops.MULTIPLY, BOTH, (0, 1)),), (2,)
    )
    x = upload(kernels, np.ones(5, np.float32))
    for value in (0.0, -0.0, 0.0):
        got = kernels.to_host(
            kernels.reduce_fused(computation, [x, value], (5,), Reduction.MAX, (0,), False, F32)
        )
        assert math.copysign(1, float(got)) == math.copysign(1, value)


def test_one_memory_for_two_operands(kernels):
    computation = Computation((Source(F32, True),) * 2, (Step(ops.MULTIPLY, BOTH, (0, 1)),), (2,))
    x, y = (np.arange(8, dtype=np.float32) + i for i in range(2))
    a, b = upload(kernels, x), upload(kernels, y)
    for operands, expected in [([a, a], x @ x), ([a, b], x @ y), ([b, a], x @ y), ([b, b], y @ y)]:
        got = kernels.reduce_fused(computation, operands, (8,), Reduction.SUM, (0,), False, F32)
        assert float(kernels.to_host(got)) == float(expected)
