"""Kernels of fused computations, run by the host's compiler, against their operations one by one: equal bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numr import dtypes as dt
from numr.ir import ops
from numr.ir.fused import Computation, Source, Step
from numr.ir.ops import Reduction, Signature
from numr.runtime.cuda import texts
from numr.runtime.cuda.folding import Fold
from numr.runtime.cuda.fused import Fused, texts_of
from numr.runtime.cuda.fused_reductions import FusedReduction
from numr.runtime.cuda.reductions import reduce_into, reduced_shape
from tests.unit.cuda_on_host import COMPILER, HostArray, HostContext, on_host

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")

Array = np.ndarray[Any, Any]

F32, F64, I32, BOOL = dt.float32, dt.float64, dt.int32, dt.bool_

#: ``x * s + y`` as float32, ``x > y``, and the sum as float64.
MIXED = Computation(
    (Source(F32, True), Source(I32, True), Source(F32, False)),
    (
        Step(ops.MULTIPLY, Signature(F32, F32), (0, 2)),
        Step(ops.ADD, Signature(F32, F32), (3, 1)),
        Step(ops.GREATER, Signature(F32, BOOL), (0, 1)),
        Step(None, Signature(F32, F64), (4,)),
    ),
    (4, 5, 6),
)
#: The first of these results alone.
SINGLE = Computation(MIXED.sources, MIXED.steps[:2], (4,))
#: Complex numbers, and a real number made of them.
COMPLEX = Computation(
    (Source(dt.complex64, True), Source(dt.complex64, False)),
    (
        Step(ops.MULTIPLY, Signature(dt.complex64, dt.complex64), (0, 1)),
        Step(ops.REAL, Signature(dt.complex64, F32), (2,)),
    ),
    (2, 3),
)


@pytest.fixture(scope="module")
def context():
    return HostContext()


def numbers(*shape: int, dtype: Any = F32, seed: int = 0) -> Array:
    values = np.random.default_rng(seed).normal(scale=100, size=shape)
    return values.astype(dtype)


def mixed(x: Array, y: Array) -> list[Array]:
    """What ``MIXED`` means for 1.7, by NumPy."""
    total = x * np.float32(1.7) + y.astype(F32)
    return [total, x > y.astype(F32), total.astype(F64)]


def new(*shape: int, start: int = 0) -> list[HostArray]:
    """Results for ``MIXED``, which start some elements into their memory."""
    return [on_host(np.zeros(shape, t), start) for t in (F32, BOOL, F64)]


def check_mixed(context, x: HostArray, y: HostArray, results: list[HostArray]) -> str:
    """Compute ``MIXED``; the kind of the kernel that did."""
    kernels = Fused(MIXED)
    kernels(context, [x, y, 1.7], results)
    for got, expected in zip(results, mixed(x.array, y.array), strict=True):
        assert np.array_equal(got.array, np.broadcast_to(expected, got.shape))
    (variant,) = kernels._kernels
    return "".join(map(str, variant))


def view(array: Array, part: Any) -> HostArray:
    """A view of a copy in aligned memory."""
    return HostArray(on_host(array).array[part])


# ------------------------------------------------------------------- elementwise
@pytest.mark.parametrize("size", [1, 7, 256, 1024, 5000])
def test_several_results_in_vectors(context, size):
    x, y = on_host(numbers(size)), on_host(numbers(size, dtype=I32, seed=1))
    assert check_mixed(context, x, y, new(size)) == "rowsTrueccccc0False"


def test_unaligned_memory(context):
    x, y = on_host(numbers(1000), 1), on_host(numbers(1000, dtype=I32, seed=1), 1)
    assert check_mixed(context, x, y, new(1000, start=1)) == "rowsFalseccccc0False"


def test_broadcast_and_strided_operands(context):
    x, y = on_host(numbers(30, 1)), on_host(numbers(40, dtype=I32, seed=1))
    assert "0" in check_mixed(context, x, y, new(30, 40))
    whole = on_host(numbers(30, 40, dtype=I32))
    check_mixed(context, view(numbers(30, 80), np.s_[:, ::2]), whole, new(30, 40))
    one = on_host(numbers(1, 1, dtype=I32))
    check_mixed(context, view(numbers(30, 40), np.s_[::-1, ::-1]), one, new(30, 40))
    x, y = on_host(numbers(3, 1, 5, 1)), on_host(numbers(4, 1, 6, dtype=I32))
    check_mixed(context, x, y, new(3, 4, 5, 6))


def test_results_in_views(context):
    results = [HostArray(r.array[::2, 1::3]) for r in new(20, 31)]
    x, y = on_host(numbers(10, 10)), on_host(numbers(10, 10, dtype=I32))
    check_mixed(context, x, y, results)


def test_one_result_in_tiles(context):
    x, y = HostArray(on_host(numbers(70, 40)).array.T), on_host(numbers(40, 70, dtype=I32))
    out = on_host(np.zeros((40, 70), F32))
    kernels = Fused(SINGLE)
    kernels(context, [x, y, 1.7], [out])
    assert np.array_equal(out.array, mixed(x.array, y.array)[0])
    assert [variant[0] for variant in kernels._kernels] == ["tiles"]


@pytest.mark.parametrize(("dtype", "count"), [(F32, 3), (F32, 7), (F64, 6), (F32, 13)])
def test_tiles_of_many_operands_fit_into_shared_memory(context, dtype, count):
    both = Signature(dtype, dtype)
    # The last operand lies as the result does.
    sources = (Source(dtype, True),) * (count + 1)
    steps = [Step(ops.ADD, both, (0, 1))]
    steps += [Step(ops.ADD, both, (count + i, i + 1)) for i in range(1, count)]
    kernels = Fused(Computation(sources, tuple(steps), (2 * count,)))
    arrays = [numbers(80, 70, dtype=dtype, seed=i) for i in range(count)]
    operands = [HostArray(on_host(a).array.T) for a in arrays]
    last = numbers(70, 80, dtype=dtype, seed=99)
    out = on_host(np.zeros((70, 80), dtype))
    kernels(context, [*operands, on_host(last)], [out])
    expected = arrays[0].T
    for a in (*(a.T for a in arrays[1:]), last):
        expected = expected + a
    assert np.array_equal(out.array, expected)
    ((kind, tiled, side, *_),) = kernels._kernels
    assert (kind, len(tiled)) == ("tiles", count)
    assert count * dtype.itemsize * side * (side + 1) <= 48 << 10


def test_a_result_may_be_an_operand(context):
    x, y = numbers(500), on_host(numbers(500, dtype=I32, seed=1))
    results = new(500)
    results[0].array[...] = x
    Fused(MIXED)(context, [results[0], y, 1.7], results)
    for got, expected in zip(results, mixed(x, y.array), strict=True):
        assert np.array_equal(got.array, expected)


def test_complex_numbers_and_scalars(context):
    x = (numbers(300) + 1j * numbers(300, seed=1)).astype(np.complex64)
    results = [on_host(np.zeros(300, np.complex64)), on_host(np.zeros(300, F32))]
    Fused(COMPLEX)(context, [on_host(x), 2 - 3j], results)
    s = np.complex64(2 - 3j)
    real = x.real * s.real - x.imag * s.imag
    imag = x.real * s.imag + x.imag * s.real
    assert np.array_equal(results[0].array.real, real)
    assert np.array_equal(results[0].array.imag, imag)
    assert np.array_equal(results[1].array, real)


def test_nothing_to_compute(context):
    before = context.launches
    Fused(MIXED)(context, [on_host(numbers(0)), on_host(numbers(0, dtype=I32)), 1.7], new(0))
    assert context.launches == before


def test_long_computations_hold_fewer_elements():
    x = Source(F64, True)
    both = Signature(F64, F64)
    short = texts_of(Computation((x,), (Step(ops.SQUARE, both, (0,)),), (1,)))
    steps = tuple(Step(ops.SIN, both, (i,)) for i in range(41))
    long = texts_of(Computation((x,), steps, (41,)))
    assert long.vector * long.unroll < short.vector * short.unroll
    assert short.vector * F64.itemsize == texts.VECTOR


# --------------------------------------------------------------------- reductions
#: Shapes and axes for each kind of kernel: few vectors, a warp, a block, several blocks, and columns.
PLACES = {
    "few": ((37, 24), (1,)),
    "few, odd": ((37, 23), (1,)),
    "warps": ((5, 700), (1,)),
    "blocks": ((2, 5000), (1,)),
    "all": ((70, 400), (0, 1)),
    "columns": ((90, 48), (0,)),
    "columns, odd": ((90, 47), (0,)),
    "middle": ((6, 40, 20), (1,)),
    "outer": ((6, 5, 32), (0, 2)),
}


@pytest.mark.parametrize("kind", [Reduction.SUM, Reduction.MAX])
@pytest.mark.parametrize("place", PLACES)
def test_reductions_add_as_those_of_an_array(context, place, kind):
    shape, axes = PLACES[place]
    reduction = FusedReduction(SINGLE, Fold(kind, F32, F32))
    plain = Fold(kind, F32, F32)
    flat = on_host(numbers(*shape))
    operands = [
        (flat, on_host(numbers(*shape, dtype=I32, seed=1))),
        (flat, on_host(numbers(*shape[:-1], 1, dtype=I32, seed=1))),
        (flat, on_host(numbers(shape[-1], dtype=I32, seed=1))),
        (HostArray(flat.array[..., ::-1]), on_host(numbers(1, dtype=I32))),
        (HostArray(on_host(numbers(*shape[::-1])).array.T), on_host(numbers(1, dtype=I32))),
    ]
    for x, y in operands:
        computed = on_host(np.zeros(shape, F32))
        Fused(SINGLE)(context, [x, y, 1.7], [computed])
        expected, got = (on_host(np.zeros(reduced_shape(shape, axes, False), F32)) for _ in "eg")
        reduce_into(context, plain, computed, axes, expected)
        assert reduction.into(context, [x, y, 1.7], shape, axes, got)
        assert np.array_equal(got.array, expected.array)
        assert expected.array.any()


def test_reductions_of_other_dtypes(context):
    """Whether all ``x > y``, with vectors of sixteen results from operands of four bytes."""
    computation = Computation(
        MIXED.sources[:2], (Step(ops.GREATER, Signature(F32, BOOL), (0, 1)),), (2,)
    )
    reduction = FusedReduction(computation, Fold(Reduction.ANY, BOOL, BOOL))
    x, y = numbers(64, 96), numbers(64, 96, dtype=I32, seed=1)
    x[::3] = -1000
    out = on_host(np.zeros(64, BOOL))
    assert reduction.into(context, [on_host(x), on_host(y)], (64, 96), (1,), out)
    assert np.array_equal(out.array, (x > y.astype(F32)).any(axis=1))
    assert not out.array.all()
