"""Fused computations on the CPU, as compiled kernels and as NumPy's functions in blocks: what the operations give."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import numr
from numr import dtypes as dt
from numr.codegen.calls import taken
from numr.codegen.elementwise import expression, operand
from numr.codegen.reference import evaluate
from numr.config import config
from numr.errors import DTypeError, ShapeError
from numr.ir import ops
from numr.ir.fused import Computation, Source, Step
from numr.ir.ops import OPS, Signature
from numr.runtime import client_of
from numr.runtime.cpu import fused as fused_module
from numr.runtime.cpu.fused import BLOCK_BYTES, BlockLoop
from numr.runtime.cpu.jit import host as host_module
from numr.runtime.cpu.jit.compiler import Compiler
from numr.runtime.cpu.jit.host import compiling_host, host
from numr.runtime.cpu.jit.loops import KernelLoop
from numr.runtime.cpu.stages import DIFFERENT, SLOW, compiles, stages_of
from tests.parity.support import anything

CLIENT = client_of("cpu")
F64 = Signature(dt.float64, dt.float64)
needs_compiler = pytest.mark.skipif(host() is None, reason=str(compiling_host()))

#: Elements of a block of float64.
BLOCK = BLOCK_BYTES // 8

#: Computed by numr's expressions in kernels and by NumPy otherwise.
TRANSCENDENTAL = {
    *(ops.ACOS, ops.ACOSH, ops.ASIN, ops.ASINH, ops.ATAN, ops.ATAN2, ops.ATANH, ops.COS, ops.COSH),
    *(ops.EXP, ops.EXPM1, ops.HYPOT, ops.LOG, ops.LOG1P, ops.LOG2, ops.LOG10, ops.LOGADDEXP),
    *(ops.POW, ops.SIN, ops.SINH, ops.TAN, ops.TANH),
}
#: Of two zeros NumPy gives the one or the other, depending on where they are.
ZEROS_OPEN = {ops.MAXIMUM, ops.MINIMUM, ops.CLIP}


@pytest.fixture(params=["kernels", "blocks"])
def way(request):
    """How computations are done."""
    if request.param == "kernels" and host() is None:
        pytest.skip(str(compiling_host()))
    with config.override(jit=request.param == "kernels"):
        yield request.param


def special(dtype):
    """All ends and turning points of a dtype."""
    if dtype.kind == "b":
        return np.asarray([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        bits = info.bits
        values = {0, 1, 2, 3, 7, bits - 1, bits, info.max, info.max - 1, info.max // 2, info.min}
        values |= {-1, -2, -7, info.min + 1} if dtype.kind == "i" else set()
        return np.asarray(sorted(values), dtype)
    info = np.finfo(dtype)
    ends = [info.max, info.max / 2, info.tiny, info.tiny * 3, info.smallest_subnormal, info.eps]
    values = np.asarray([0, 0.5, 1, 1.5, 2, 2.5, 3, 10, 1 + info.eps, np.inf, np.nan, *ends], dtype)
    return np.concatenate([values, -values])


def random_bits(dtype, size, seed):
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, size).astype(bool)
    return rng.integers(0, 256, size * dtype.itemsize, np.uint8).view(dtype)


def samples(dtypes):
    """Operands of each dtype: all pairs of special values, random bits, and numbers of moderate size."""
    if any(dtype.kind == "c" for dtype in dtypes):
        return [anything(dtype, (6000,), i) for i, dtype in enumerate(dtypes)]
    grids = np.meshgrid(*map(special, dtypes), indexing="ij")
    return [
        np.concatenate([grid.ravel(), random_bits(d, 3000, i), anything(d, (3000,), i)])
        for i, (grid, d) in enumerate(zip(grids, dtypes, strict=True))
    ]


def same(one, other, *, zeros=True):
    """Where arrays are equal to the bit; NaN is like any other, and zeros of both signs are on request."""
    if one.dtype.kind == "c":
        return same(one.real, other.real) & same(one.imag, other.imag)
    if one.dtype.kind != "f":
        return one == other
    signs = np.signbit(one) == np.signbit(other)
    if not zeros:
        signs |= one == 0
    return (one == other) & signs | np.isnan(one) & np.isnan(other)


def call_of(op, dtypes, compute):
    """The computation that is one operation, on arrays."""
    result = op.signature(tuple(dtypes), CLIENT.defaults).result
    sources = tuple(Source(dtype, is_array=True) for dtype in dtypes)
    step = Step(op, Signature(compute, result), tuple(range(len(dtypes))))
    return Computation(sources, (step,), (len(dtypes),))


def run(computation, operands, shape=None):
    """The results of a computation, in new arrays."""
    if shape is None:
        shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
    results = [np.empty(shape, dtype) for dtype in computation.result_dtypes]
    CLIENT.fused(computation)(operands, results)
    return results


def chain(dtype, c_is_array=True):
    """``exp(-(a-b)**2/(2*c))*sqrt(c)+sin(a)``; the last source is the number 2."""
    sources = (
        Source(dtype, is_array=True),
        Source(dtype, is_array=True),
        Source(dtype, is_array=c_is_array),
        Source(dtype, is_array=False),
    )
    steps = [
        (ops.SUBTRACT, 0, 1),
        (ops.SQUARE, 4),
        (ops.NEGATIVE, 5),
        (ops.MULTIPLY, 3, 2),
        (ops.DIVIDE, 6, 7),
        (ops.EXP, 8),
        (ops.SQRT, 2),
        (ops.MULTIPLY, 9, 10),
        (ops.SIN, 0),
        (ops.ADD, 11, 12),
    ]
    signature = Signature(dtype, dtype)
    return Computation(
        sources, tuple(Step(op, signature, tuple(numbers)) for op, *numbers in steps), (13,)
    )


def chain_of(a, b, c):
    return np.exp(-((a - b) ** 2) / (2 * c)) * np.sqrt(c) + np.sin(a)


def arithmetic(dtype=dt.float64):
    """``(a - b) * c`` and ``(a - b) < c``, without transcendental functions."""
    signature = Signature(dtype, dtype)
    return Computation(
        tuple(Source(dtype, is_array=True) for _ in range(3)),
        (
            Step(ops.SUBTRACT, signature, (0, 1)),
            Step(ops.MULTIPLY, signature, (3, 2)),
            Step(ops.LESS, Signature(dtype, dt.bool_), (3, 2)),
        ),
        (4, 5),
    )


# ---------------------------------------------------------------- what is computed
@pytest.mark.parametrize("dtype", dt.ALL_DTYPES, ids=str)
def test_every_operation_gives_what_it_gives_by_itself(way, dtype):
    fitting = [op for op in OPS.values() if dtype.kind in dt.CATEGORIES[op.domain]]
    assert fitting
    for op in fitting:
        dtypes = [dt.bool_ if op is ops.SELECT and i == 0 else dtype for i in range(op.arity)]
        operands = samples(dtypes)
        with np.errstate(all="ignore"):
            (got,) = run(call_of(op, dtypes, dtype), operands)
            expected = CLIENT.elementwise_loop(op, tuple(dtypes))(*operands)
        if op in TRANSCENDENTAL and way == "kernels" and dtype.kind == "f":
            names = [operand(f"v{i}", d) for i, d in enumerate(dtypes)]
            values = {f"v{i}": x for i, x in enumerate(operands)}
            expected = evaluate([expression(op, dtype, *names)], values)[0]
        wrong = np.flatnonzero(~same(got, expected, zeros=op not in ZEROS_OPEN))[:3]
        given = [tuple(x[i] for x in operands) for i in wrong]
        assert not wrong.size, f"{op.name} of {given}: {got[wrong]}, not {expected[wrong]}"


def test_conversions_give_what_they_give_by_themselves(way):
    for source in dt.ALL_DTYPES:
        operands = samples([source])
        for target in dt.ALL_DTYPES:
            step = Step(None, Signature(source, target), (0,))
            (got,) = run(Computation((Source(source, True),), (step,), (1,)), operands)
            expected = CLIENT.cast(operands[0], target)
            assert same(got, expected).all(), (source, target)


def test_conversions_in_kernels_equal_their_expressions():
    values = {"v0": samples([dt.int16])[0].astype(np.int32)}
    root = taken(operand("v0", dt.int16), dt.int16, dt.float32)
    assert (evaluate([root], values)[0] == samples([dt.int16])[0]).all()


@needs_compiler
def test_what_kernels_leave_out_is_needed():
    """Each entry of the table differs somewhere; else it should not be there."""
    for op, dtypes in DIFFERENT.items():
        for dtype in dtypes - {dt.float16}:
            rng = np.random.default_rng(0)
            large = 2.0 ** (np.finfo(dtype).nmant + rng.uniform(1, 5, 100_000))
            operands = [large.astype(dtype), rng.uniform(1, 30, 100_000).astype(dtype)]
            names = [operand(f"v{i}", dtype) for i in range(2)]
            values = {f"v{i}": x for i, x in enumerate(operands)}
            by_expression = evaluate([expression(op, dtype, *names)], values)[0]
            by_itself = CLIENT.elementwise_loop(op, (dtype, dtype))(*operands)
            assert not same(by_expression, by_itself).all()


@needs_compiler
def test_what_is_slow_in_kernels_is_the_same_there():
    for op, dtypes in SLOW.items():
        for dtype in dtypes:
            operands = samples([dtype] * op.arity)
            names = [operand(f"v{i}", dtype) for i in range(op.arity)]
            values = {f"v{i}": x for i, x in enumerate(operands)}
            by_expression = evaluate([expression(op, dtype, *names)], values)[0]
            with np.errstate(all="ignore"):
                by_itself = CLIENT.elementwise_loop(op, (dtype,) * op.arity)(*operands)
            assert same(by_expression, by_itself).all()


@needs_compiler
def test_long_computations_are_several_kernels():
    """Compiling one of all steps would take seconds."""
    steps = tuple(Step(ops.SIN, F64, (number,)) for number in range(40))
    computation = Computation((Source(dt.float64, is_array=True),), steps, (40, 20))
    stages = stages_of(computation, compiled=True).stages
    assert all(len(stage.computation.steps) <= 3 for stage in stages)
    assert len(stages) == 14
    x = np.linspace(0.1, 3, 50_000)
    last, middle = run(computation, [x])
    expected = x
    for number in range(1, 41):
        expected = np.sin(expected)
        if number == 20:
            assert np.abs(middle - expected).max() < 1e-14
    assert np.abs(last - expected).max() < 1e-14
    short = tuple(Step(ops.ADD, F64, (number, 0)) for number in range(100))
    computation = Computation((Source(dt.float64, is_array=True),), short, (100,))
    assert stages_of(computation, compiled=True).kernel is not None


def test_arguments_are_converted_to_what_is_computed_in(way):
    a = np.arange(1000, dtype=np.int8)
    b = np.linspace(0, 1, 1000, dtype=np.float32)
    computation = Computation(
        (Source(dt.int8, True), Source(dt.float32, True), Source(dt.bool_, True)),
        (
            Step(ops.ADD, F64, (0, 1)),
            Step(ops.SELECT, F64, (2, 3, 0)),
            Step(None, Signature(dt.float64, dt.float16), (4,)),
        ),
        (3, 4, 5),
    )
    mask = a > 5
    total, chosen, half = run(computation, [a, b, mask])
    assert (total == a.astype(float) + b).all()
    assert (chosen == np.where(mask, a.astype(float) + b, a)).all()
    assert same(half, chosen.astype(np.float16)).all()


@pytest.mark.parametrize("dtype", [dt.float16, dt.float32, dt.float64], ids=str)
def test_a_chain(way, dtype):
    rng = np.random.default_rng(0)
    for size in [*range(1, 70), 1000, 3 * BLOCK + 5]:
        a, b, c = (rng.uniform(0.1, 2, size).astype(dtype) for _ in range(3))
        (got,) = run(chain(dtype), [a, b, c, 2.0])
        expected = chain_of(a, b, c)
        assert np.abs(got - expected).max() <= 8 * np.finfo(dtype).eps
        # Wherever an element stands, its result is the same.
        (again,) = run(chain(dtype), [a[::-1].copy(), b[::-1].copy(), c[::-1].copy(), 2.0])
        if way == "kernels":
            assert (again[::-1] == got).all()


def test_scalars_are_given_when_a_computation_runs(way):
    a, b = np.linspace(0, 1, 500), np.linspace(1, 2, 500)
    computation = chain(dt.float64, c_is_array=False)
    for c in (0.5, 3, 7.25):
        (got,) = run(computation, [a, b, c, 2.0])
        assert np.abs(got - chain_of(a, b, float(c))).max() < 1e-14


@pytest.mark.parametrize("dtype", dt.ALL_DTYPES, ids=str)
def test_scalars_of_every_dtype(way, dtype):
    step = Step(ops.SELECT, Signature(dtype, dtype), (0, 1, 2))
    sources = (Source(dt.bool_, True), Source(dtype, False), Source(dtype, True))
    array = anything(dtype, (100,))
    mask = np.arange(100) % 3 == 0
    scalars = {"b": [True], "i": [-3, 100], "u": [200], "f": [-0.0, np.inf, 1.5], "c": [1 - 2j]}
    for value in scalars[dtype.kind]:
        (got,) = run(Computation(sources, (step,), (3,)), [mask, value, array])
        assert same(got, np.where(mask, dtype.type(value), array)).all()


def test_scalars_may_be_of_another_dtype_than_what_is_computed_in(way):
    """As those that whole arrays were filled with."""
    array = np.linspace(0, 1, 50) * (1 + 1j)
    both = Signature(dt.complex128, dt.complex128)
    sources = (Source(dt.complex128, True), Source(dt.float32, False))
    step = Step(ops.MULTIPLY, both, (0, 1))
    (got,) = run(Computation(sources, (step,), (2,)), [array, 0.1])
    assert same(got, array * np.float32(0.1).astype(complex)).all()


def test_a_constant_fills_an_array(way):
    for dtype, value in ((dt.float32, 0.1), (dt.int8, -5), (dt.bool_, True), (dt.complex64, 1j)):
        step = Step(None, Signature(dtype, dtype), (0,))
        computation = Computation((Source(dtype, is_array=False),), (step,), (1,))
        (got,) = run(computation, [value], shape=(7, 5))
        assert (got == dtype.type(value)).all()


def test_kernels_and_numpy_take_turns(way):
    """Complex numbers, conversions to integers and quotients that are rounded down, between other steps."""
    rng = np.random.default_rng(0)
    z = (rng.normal(size=40_000) + 1j * rng.normal(size=40_000)).astype(np.complex128)
    x = rng.normal(size=40_000) * 10
    cplx, real = Signature(dt.complex128, dt.complex128), Signature(dt.complex128, dt.float64)
    to_int = Signature(dt.float64, dt.int32)
    computation = Computation(
        (Source(dt.complex128, True), Source(dt.float64, True), Source(dt.float64, False)),
        (
            Step(ops.MULTIPLY, F64, (1, 2)),  # 3
            Step(ops.MULTIPLY, cplx, (0, 3)),
            Step(ops.ABS, real, (4,)),
            Step(ops.ADD, F64, (5, 3)),
            Step(ops.FLOOR_DIVIDE, F64, (6, 1)),  # 7
            Step(ops.SUBTRACT, F64, (7, 5)),
            Step(None, to_int, (8,)),
            Step(ops.SQUARE, Signature(dt.int32, dt.int32), (9,)),  # 10
            Step(ops.SQRT, F64, (5,)),
        ),
        (4, 10, 7, 11),
    )
    got = run(computation, [z, x, 3.0])
    tripled = x * 3.0
    product = z * tripled
    size = np.abs(product)
    quotient = (size + tripled) // x
    whole = (quotient - size).astype(np.int32)
    for one, other in zip(got, (product, whole * whole, quotient, np.sqrt(size)), strict=True):
        assert same(one, other).all()
    if way == "kernels":
        kinds = [s.computation is not None for s in stages_of(computation, compiled=True).stages]
        assert kinds.count(True) == 4
        assert all(
            compiles(step, tuple(map(computation.dtype, step.arguments)))
            == (number in (3, 6, 8, 10, 11))
            for number, step in enumerate(computation.steps, 3)
        )


def test_a_value_may_be_several_results(way):
    step = Step(ops.NEGATIVE, F64, (0,))
    computation = Computation((Source(dt.float64, True),), (step,), (1, 1))
    one, other = run(computation, [np.arange(10.0)])
    assert (one == -np.arange(10.0)).all()
    assert (other == one).all()


# --------------------------------------------------------------------- memory
def layouts(array):
    """The same values in arrays that lie differently in memory."""
    yield "contiguous", array.copy()
    if not array.ndim:
        return
    yield "Fortran", np.asfortranarray(array)
    yield (
        "reversed",
        array[(slice(None, None, -1),) * array.ndim].copy()[(slice(None, None, -1),) * array.ndim],
    )
    spread = np.zeros([2 * n + 1 for n in array.shape], array.dtype)
    spread[(slice(1, None, 2),) * array.ndim] = array
    yield "strided", spread[(slice(1, None, 2),) * array.ndim]
    packed = np.zeros(array.shape, [("pad", "u1"), ("value", array.dtype)])
    packed["value"] = array
    yield "unaligned", packed["value"]
    locked = array.copy()
    locked.flags.writeable = False
    yield "read-only", locked


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (37,), (5, 41), (3, 1, 17), (2, 3, 4, 5)])
def test_any_layout(way, shape):
    rng = np.random.default_rng(0)
    plain = [rng.normal(size=shape) for _ in range(3)]
    expected = ((plain[0] - plain[1]) * plain[2], plain[0] - plain[1] < plain[2])
    for _, a in layouts(np.asarray(plain[0])):
        for name, b in layouts(np.asarray(plain[1])):
            got = run(arithmetic(), [a, b, np.asarray(plain[2])])
            assert all((x == y).all() for x, y in zip(got, expected, strict=True)), name
    for name, first in layouts(np.zeros(shape)):
        if name == "read-only":
            continue
        results = [first, np.zeros(shape, bool)[(slice(None, None, -1),) * len(shape) or ...]]
        CLIENT.fused(arithmetic())([np.asarray(x) for x in plain], results)
        assert all((x == y).all() for x, y in zip(results, expected, strict=True)), name


@pytest.mark.parametrize(
    "shapes",
    [
        ((7, 50), (50,), (7, 1)),
        ((1, 50), (7, 1), ()),
        ((40, 1, 3), (5, 1), (1, 5, 3)),
        ((2000, 3), (3,), (2000, 1)),
        ((3, 2000), (2000,), (3, 1)),
        ((1,), (100,), (1,)),
        ((130, 90), (1, 1), (90,)),
    ],
)
def test_operands_are_broadcast(way, shapes):
    rng = np.random.default_rng(0)
    a, b, c = (np.asarray(rng.normal(size=shape)) for shape in shapes)
    product, less = run(arithmetic(), [a, b, c])
    assert (product == (a - b) * c).all()
    assert (less == (a - b < c)).all()


def test_transposed_operands_in_tiles(way):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(300, 700)).T
    b = rng.normal(size=(700, 300))
    c = rng.normal(size=(300, 1400))[:, ::2].T
    for order in "CF":
        results = [np.empty((700, 300), order=order), np.empty((700, 300), bool, order=order)]
        CLIENT.fused(arithmetic())([a, b, c], results)
        assert (results[0] == (a - b) * c).all()
        assert (results[1] == (a - b < c)).all()


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3, 4)])
def test_nothing_to_compute(way, shape):
    a = np.empty(shape)
    product, less = run(arithmetic(), [a, a, a])
    assert product.shape == less.shape == shape


@pytest.mark.parametrize("size", [5, 2 * BLOCK + 100])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_result_may_take_the_place_of_an_operand(way, size, place):
    rng = np.random.default_rng(0)
    operands = [rng.normal(size=size) for _ in range(3)]
    a, b, c = (x.copy() for x in operands)
    results = [operands[place], np.empty(size, bool)]
    CLIENT.fused(arithmetic())(operands, results)
    assert (results[0] == (a - b) * c).all()
    assert (results[1] == (a - b < c)).all()


def test_results_in_place_where_operands_are_read_later(way):
    """The first result is known long before the last stage reads its operand."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=BLOCK + 77), rng.normal(size=BLOCK + 77)
    computation = Computation(
        (Source(dt.float64, True), Source(dt.float64, True)),
        (
            Step(ops.ADD, F64, (0, 1)),
            Step(ops.FLOOR_DIVIDE, F64, (2, 1)),
            Step(ops.MULTIPLY, F64, (3, 0)),
        ),
        (2, 4),
    )
    total = a + b
    product = total // b * a
    CLIENT.fused(computation)([a, b], [a, b])
    assert (a == total).all()
    assert (b == product).all()


def test_strided_arrays_in_place(way):
    base = np.random.default_rng(0).normal(size=(60, 80))
    before = base.copy()
    view = base[::-2, 3:50:3]
    step = Step(ops.SQUARE, F64, (0,))
    CLIENT.fused(Computation((Source(dt.float64, True),), (step,), (1,)))([view], [view])
    assert (view == before[::-2, 3:50:3] ** 2).all()
    untouched = np.ones(base.shape, bool)
    untouched[::-2, 3:50:3] = False
    assert (base[untouched] == before[untouched]).all()


def test_nothing_is_written_beside_results(way):
    for size in (1, 7, 16, 33, 100):
        memory = np.full(size + 64, 7.0)
        flags = np.full(size + 64, 7, np.uint8)
        a = np.arange(float(size))
        results = [memory[32 : 32 + size], flags[32 : 32 + size].view(bool)]
        CLIENT.fused(arithmetic())([a, a, a], results)
        for guarded in (memory, flags):
            assert (guarded[:32] == 7).all()
            assert (guarded[32 + size :] == 7).all()


# ---------------------------------------------------------------------- errors
def test_arrays_of_other_dtypes_are_refused():
    loop = CLIENT.fused(arithmetic())
    a = np.zeros(4)
    with pytest.raises(DTypeError, match="float32"):
        loop([a, a, a.astype(np.float32)], [np.zeros(4), np.zeros(4, bool)])


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((4,), (1,)), ((2, 4), (4,))])
def test_shapes_that_do_not_fit_are_refused(way, shapes):
    operand_shape, result_shape = shapes
    a = np.zeros(operand_shape)
    with pytest.raises(ShapeError, match="broadcast"):
        CLIENT.fused(arithmetic())(
            [a, a, a], [np.zeros(result_shape), np.zeros(result_shape, bool)]
        )


def test_results_of_several_shapes_are_refused(way):
    a = np.zeros(4)
    with pytest.raises(ShapeError, match="results"):
        CLIENT.fused(arithmetic())([a, a, a], [np.zeros((1, 4)), np.zeros(4, bool)])


# --------------------------------------------------------------------- threads
def test_the_number_of_threads_changes_nothing(way):
    rng = np.random.default_rng(0)
    a, b, c = (rng.uniform(0.1, 1, 300_007) for _ in range(3))
    got = []
    for threads in (1, 2, 5):
        with config.override(num_threads=threads):
            got.append(run(chain(dt.float64), [a, b, c, 2.0])[0])
    assert (got[0] == got[1]).all()
    assert (got[0] == got[2]).all()


def test_large_results_go_past_the_caches(way):
    """Where they lie at multiples of a cache line, and where they do not."""
    size = 2_200_003
    a = np.arange(float(size))
    for start in (0, 1):
        memory = CLIENT.empty((2 * size + 64,), dt.float64)
        results = [memory[start : start + size], memory[size + 8 + start :][:size]]
        computation = Computation(
            (Source(dt.float64, True),),
            (Step(ops.NEGATIVE, F64, (0,)), Step(ops.SQUARE, F64, (0,))),
            (1, 2),
        )
        CLIENT.fused(computation)([a], results)
        assert (results[0] == -a).all()
        assert (results[1] == a * a).all()


def test_threads_share_a_loop(way):
    rng = np.random.default_rng(0)
    loop = CLIENT.fused(chain(dt.float32))
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for size in (100, 1001, 20_000):
            a, b, c = (rng.uniform(0.1, 1, size).astype(np.float32) for _ in range(3))
            result = np.empty(size, np.float32)
            loop([a, b, c, 2.0], [result])
            if np.abs(result - chain_of(a, b, c)).max() > 1e-5:
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(rng.integers(1000),)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_it_works_in_a_forked_process(way):
    if not hasattr(os, "fork"):
        pytest.skip("the system does not fork")
    code = (
        "import os, numpy as np\n"
        "from tests.runtime.test_cpu_fused import arithmetic, run\n"
        "a = np.arange(100000.0)\n"
        "run(arithmetic(), [a, a, a])\n"
        "pid = os.fork()\n"
        "product, less = run(arithmetic(), [a, 2 * a, a[:1]])\n"
        "ok = (product == -a * 0).all() and not less[0] and less[1:].all()\n"
        "if not pid: os._exit(0 if ok else 1)\n"
        "assert ok and os.waitpid(pid, 0)[1] == 0\n"
    )
    environment = {**os.environ, "NUMR_JIT": "1" if way == "kernels" else "0"}
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


# ------------------------------------------------------------------- compiling
@needs_compiler
def test_pure_computations_are_one_kernel():
    with config.override(jit=True):
        assert isinstance(CLIENT.fused(chain(dt.float64)), KernelLoop)
        assert CLIENT.fused(chain(dt.float64)) is CLIENT.fused(chain(dt.float64))
    with config.override(jit=False):
        assert isinstance(CLIENT.fused(chain(dt.float64)), BlockLoop)


def test_every_operation_fuses():
    assert all(CLIENT.fuses(op, dtype) for op in OPS.values() for dtype in dt.ALL_DTYPES)
    assert CLIENT.fuses(None, dt.int8)


@needs_compiler
def test_a_kernel_is_compiled_once_for_each_way_of_walking():
    compiler = fused_module.compiler()
    loop = KernelLoop(arithmetic(dt.float32), compiler)
    counters = compiler.counters

    def made():
        return counters.compiled + counters.loaded + counters.reused

    a = np.ones(50, np.float32)
    loop([a, a, a], [np.empty(50, np.float32), np.empty(50, bool)])
    before = made()
    for size in (1, 3, 1000):
        a = np.ones((size, 4), np.float32)
        loop([a, a, a], [np.empty((size, 4), np.float32), np.empty((size, 4), bool)])
    assert made() == before
    loop(
        [a[:, 1:], a[:, 1:], a[:, :1]], [np.empty((1000, 3), np.float32), np.empty((1000, 3), bool)]
    )
    assert made() == before + 1


@needs_compiler
def test_functions_in_memory_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMR_CACHE_DIR", str(tmp_path))
    compiler = Compiler(host(), kept=2)
    dtypes = (dt.float32, dt.float64, dt.int32, dt.int64)
    loops = []
    for dtype in dtypes:
        loop = KernelLoop(arithmetic(dtype), compiler)
        a = np.arange(10).astype(dtype)
        loop([a, a, a], [np.empty(10, dtype), np.empty(10, bool)])
        loops.append((loop, a))
    assert len(compiler._kernels) == 2
    assert compiler.counters.compiled == 4
    # Those that were dropped go on working where they are held.
    loop, a = loops[0]
    product = np.empty(10, np.float32)
    loop([a, a[::-1].copy(), a], [product, np.empty(10, bool)])
    assert (product == (a - a[::-1]) * a).all()


PROGRAM = (
    "import numpy as np\n"
    "from tests.runtime.test_cpu_fused import CLIENT, chain, chain_of, dt, fused_module, run\n"
    "a = np.linspace(0.1, 1, 1000)\n"
    "(got,) = run(chain(dt.float64), [a, a[::-1].copy(), a, 2.0])\n"
    "assert np.abs(got - chain_of(a, a[::-1], a)).max() < 1e-14\n"
    "compiler = fused_module.compiler()\n"
    "print(compiler and (compiler.counters.compiled, compiler.counters.loaded))\n"
)


def in_another_process(**environment):
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


@needs_compiler
def test_another_process_compiles_nothing(tmp_path):
    folder = {"NUMR_CACHE_DIR": str(tmp_path), "NUMR_JIT": "1"}
    assert in_another_process(**folder) == "(1, 0)"
    assert in_another_process(**folder) == "(0, 1)"
    (file,) = (tmp_path / "cpu").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert in_another_process(**folder) == "(1, 0)"
    file.write_bytes(b"")
    assert in_another_process(**folder) == "(1, 0)"
    assert in_another_process(**folder) == "(0, 1)"


@needs_compiler
def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path):
    file = tmp_path / "file"
    file.touch()
    assert in_another_process(NUMR_CACHE_DIR=str(file / "below"), NUMR_JIT="1") == "(1, 0)"


def test_the_compiler_can_be_switched_off():
    assert in_another_process(NUMR_JIT="0") == "None"


def test_without_llvmlite_numpy_computes(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    compiling_host.cache_clear()
    fused_module._compiler.cache_clear()
    try:
        assert "pip install" in compiling_host()
        assert fused_module.compiler() is None
        with config.override(jit=True):
            assert isinstance(CLIENT.fused(chain(dt.float64)), BlockLoop)
            a = np.linspace(0.1, 1, 100)
            (got,) = run(chain(dt.float64), [a, a, a, 2.0])
        assert (got == chain_of(a, a, a)).all()
    finally:
        compiling_host.cache_clear()
        fused_module._compiler.cache_clear()


@needs_compiler
def test_an_old_llvmlite_and_a_processor_without_vectors_are_named(monkeypatch):
    import llvmlite

    find = compiling_host.__wrapped__
    monkeypatch.setattr(llvmlite, "__version__", "0.43.0")
    assert "0.43.0 is older than 0.45" in find()
    monkeypatch.undo()
    monkeypatch.setattr(host_module, "_X86", {})
    monkeypatch.setattr("llvmlite.binding.get_process_triple", lambda: "x86_64-unknown-linux-gnu")
    assert "lacks the vector instructions" in find()


def test_scratch_memory_is_kept_for_each_thread():
    with config.override(jit=False, num_threads=1):
        loop = CLIENT.fused(chain(dt.float64))
        a = np.linspace(0.1, 1, 5 * BLOCK)
        result = np.empty(5 * BLOCK)
        loop([a, a, a, 2.0], [result])
        memory = fused_module._scratch.memory
        loop([a, a, a, 2.0], [result])
        assert fused_module._scratch.memory is memory
        # A few blocks, whatever the size of the operands.
        assert memory.nbytes <= 8 * BLOCK * 5


def test_numr_is_imported_without_the_compiler():
    code = (
        "import sys, numr.cpu as xp\nxp.ones(3) + 1\n"
        "assert 'llvmlite' not in sys.modules and 'numr.codegen' not in sys.modules\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert numr.config.jit in (True, False)
