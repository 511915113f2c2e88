"""Reductions of fused computations on the CPU: to the bit what reducing an array of the results gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from numr import dtypes as dt
from numr.config import config
from numr.ir import ops
from numr.ir.fused import Computation, Source, Step
from numr.ir.ops import Reduction, Signature
from numr.runtime import client_of
from numr.runtime.cpu import computed as computed_module
from numr.runtime.cpu.computed import Computed, _boxes
from numr.runtime.cpu.jit.host import compiling_host, host
from numr.runtime.cpu.reductions import REDUCTION_BYTES
from tests.parity.support import anything

CLIENT = client_of("cpu")

#: Below and above every size at which the way of reducing changes, with short, long and single axes in all places.
SHAPES = [
    (5,),
    (70_001,),
    (300_000,),
    (1_300_000,),
    (3, 450_000),
    (400_000, 3),
    (1000, 1300),
    (40, 200, 170),
    (3, 4, 120_000),
    (2, 1300, 500),
    (700, 1, 200),
    (1, 700, 200),
    (12, 12, 9000),
    (20, 30, 20, 30, 4),
]


@pytest.fixture(params=["kernels", "blocks"])
def way(request):
    """How computations are done."""
    if request.param == "kernels" and host() is None:
        pytest.skip(str(compiling_host()))
    with config.override(jit=request.param == "kernels"):
        yield request.param


def product_less(dtype):
    """``a * b - b``."""
    signature = Signature(dtype, dtype)
    return Computation(
        (Source(dtype, True), Source(dtype, True)),
        (Step(ops.MULTIPLY, signature, (0, 1)), Step(ops.SUBTRACT, signature, (2, 1))),
        (3,),
    )


def check(computation, operands, shape, kind, axes, keepdims, dtype):
    """Compare with the reduction of an array of all results."""
    whole = CLIENT.empty(shape, computation.result_dtypes[0])
    CLIENT.fused(computation)(operands, [whole])
    expected = CLIENT.reduce(kind, whole, axes, keepdims, dtype)
    got = CLIENT.reduce_fused(computation, operands, shape, kind, axes, keepdims, dtype)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    equal = got.view(f"u{got.itemsize}") == expected.view(f"u{got.itemsize}")
    if got.dtype.kind == "f":
        equal |= np.isnan(got) & np.isnan(expected)
    assert equal.all(), (shape, kind, axes, keepdims)
    return got


def some_axes(shape, seed):
    rng = np.random.default_rng(seed)
    every = [
        axes
        for count in range(1, len(shape) + 1)
        for axes in itertools.combinations(range(len(shape)), count)
    ]
    chosen = rng.permutation(len(every))[:3]
    return [every[i] for i in chosen]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_are_the_same_to_the_bit(way, shape):
    rng = np.random.default_rng(0)
    partly = tuple(n if i % 2 else 1 for i, n in enumerate(shape))
    for dtype, b_shape in ((dt.float64, shape), (dt.float32, shape), (dt.float64, partly)):
        a = rng.normal(size=shape).astype(dtype)
        b = np.asarray(rng.normal(size=b_shape), dtype)
        for axes in some_axes(shape, seed=dtype.itemsize):
            got = check(product_less(dtype), [a, b], shape, Reduction.SUM, axes, False, dtype)
            terms = a * b - b
            near = np.sum(terms, axis=axes, dtype=np.float64)
            scale = np.sum(np.abs(terms), axis=axes, dtype=np.float64)
            assert (np.abs(got - near) <= 2000 * np.finfo(dtype).eps * scale).all()


@pytest.mark.parametrize("kind", list(Reduction), ids=lambda kind: kind.value)
@pytest.mark.parametrize("dtype", [dt.float64, dt.float16, dt.int32, dt.uint8, dt.bool_], ids=str)
def test_every_reduction(way, kind, dtype):
    if dtype == dt.bool_ and kind not in (Reduction.ANY, Reduction.ALL):
        pytest.skip("booleans are converted before they are added or compared")
    if dtype == dt.bool_:
        step = Step(ops.LOGICAL_NOT, Signature(dtype, dtype), (0,))
    else:
        step = Step(ops.NEGATIVE, Signature(dtype, dtype), (0,))
    computation = Computation((Source(dtype, True),), (step,), (1,))
    result = dtype
    if kind in (Reduction.ANY, Reduction.ALL):
        result = dt.bool_
    elif dtype.kind in "iu" and kind in (Reduction.SUM, Reduction.PROD):
        result = dt.int64 if dtype.kind == "i" else dt.uint64
    for shape in ((9, 70), (1200, 900), (70_000, 3), (1_100_000,)):
        array = anything(dtype, shape)
        for keepdims, axes in enumerate({(len(shape) - 1,), (0,), tuple(range(len(shape)))}):
            with np.errstate(all="ignore"):
                check(computation, [array], shape, kind, axes, bool(keepdims % 2), result)


def test_a_computation_that_changes_the_dtype(way):
    compare = Step(ops.GREATER, Signature(dt.float32, dt.bool_), (0, 1))
    computation = Computation(
        (Source(dt.float32, True), Source(dt.float32, False)), (compare,), (2,)
    )
    array = np.random.default_rng(0).normal(size=(900, 1300)).astype(np.float32)
    for kind, expected in ((Reduction.ANY, array > 3.5), (Reduction.ALL, array > -3.5)):
        value = 3.5 if kind is Reduction.ANY else -3.5
        for axes in ((0,), (1,), (0, 1)):
            got = CLIENT.reduce_fused(
                computation, [array, value], array.shape, kind, axes, False, dt.bool_
            )
            assert (got == getattr(np, kind.value)(expected, axis=axes)).all()


def test_operands_of_any_layout(way):
    rng = np.random.default_rng(0)
    shape = (1200, 1000)
    a, b = rng.normal(size=shape), rng.normal(size=shape)
    plain = CLIENT.reduce_fused(
        product_less(dt.float64), [a, b], shape, Reduction.SUM, (0, 1), False, dt.float64
    )
    for other in (np.asfortranarray(a), a[::-1, ::-1].copy()[::-1, ::-1]):
        for axes in ((0,), (1,), (0, 1)):
            got = check(
                product_less(dt.float64), [other, b], shape, Reduction.SUM, axes, True, dt.float64
            )
            if len(axes) == 2:
                assert got[0, 0] == plain


def test_no_axes_and_nothing_to_reduce(way):
    a = np.arange(12.0).reshape(3, 4)
    check(product_less(dt.float64), [a, a], (3, 4), Reduction.SUM, (), False, dt.float64)
    single = np.asarray(2.0)
    got = check(product_less(dt.float64), [single, single], (), Reduction.SUM, (), True, dt.float64)
    assert got == 2.0
    empty = np.empty((0, 3))
    for axes in ((0,), (1,), (0, 1)):
        check(
            product_less(dt.float64), [empty, empty], (0, 3), Reduction.SUM, axes, False, dt.float64
        )


def test_the_number_of_threads_changes_nothing(way):
    a = np.random.default_rng(0).normal(size=1_500_000)
    got = []
    for threads in (1, 2, 5):
        with config.override(num_threads=threads):
            got.append(
                CLIENT.reduce_fused(
                    product_less(dt.float64),
                    [a, a],
                    a.shape,
                    Reduction.SUM,
                    (0,),
                    False,
                    dt.float64,
                )
            )
    assert got[0] == got[1] == got[2]


def test_no_array_holds_all_elements(way, monkeypatch):
    asked = []
    empty = CLIENT.empty
    monkeypatch.setattr(
        CLIENT, "empty", lambda shape, dtype: asked.append(shape) or empty(shape, dtype)
    )
    a = np.ones((2000, 1000))
    for axes in ((0,), (1,), (0, 1)):
        got = CLIENT.reduce_fused(
            product_less(dt.float64), [a, a], a.shape, Reduction.SUM, axes, False, dt.float64
        )
        assert (got == 0).all()
    assert all(np.prod(shape) <= 2000 for shape in asked)
    assert computed_module._scratch.memory.nbytes <= 2 * REDUCTION_BYTES


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (1, 5, 1), (4, 1, 2, 3)])
def test_boxes_make_up_a_run_of_elements(shape):
    numbers = np.arange(np.prod(shape)).reshape(shape)
    for start in range(numbers.size):
        for stop in range(start + 1, numbers.size + 1):
            pieces = [numbers[box].ravel() for box in _boxes(shape, start, stop)]
            assert (np.concatenate(pieces) == np.arange(start, stop)).all()
            assert len(pieces) <= 2 * len(shape)


def test_blocks_have_the_gaps_of_the_whole_array():
    """NumPy goes through an array by its strides, so the order of additions depends on them."""
    a = np.arange(3.0 * 40 * 5).reshape(3, 40, 5)
    computation = product_less(dt.float64)
    elements = Computed(CLIENT, computation, [a, a], a.shape)
    block = elements.block((slice(None), slice(8, 24)))
    assert (block == (a * a - a)[:, 8:24]).all()
    assert not block.flags.c_contiguous
    assert elements.block((slice(None), slice(0, 40))).flags.c_contiguous
