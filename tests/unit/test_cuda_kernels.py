"""Kernels of the CUDA runtime, run by the host's compiler: the same drivers and texts as on a GPU."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from numr.errors import IndexingError
from numr.ir import ops
from numr.ir.ops import Reduction
from numr.runtime import client_of
from numr.runtime.cuda import indexing, products, reductions, scan_texts, scans
from numr.runtime.cuda.elementwise import Elementwise, of_operation
from numr.runtime.cuda.folding import Fold
from numr.runtime.cuda.selecting import Selection
from tests.unit.cuda_on_host import COMPILER, HostArray, HostContext, on_host

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")

Array = np.ndarray[Any, Any]
INT64 = np.dtype(np.int64)


@pytest.fixture(scope="module")
def context() -> HostContext:
    found = HostContext()
    found.defaults = client_of("cpu").defaults  # type: ignore[attr-defined]
    return found


def integers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    """Small whole numbers, of which sums are exact in every order."""
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(dtype)


def is_zero(context: HostContext) -> bool:
    """Whether kernels have left their counters as they found them."""
    return not HostContext._pointer(context, 0) or not any(
        np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint8 * 4096).from_address(context.tickets))
    )


# ---------------------------------------------------------------- reductions
SHAPES = [
    (50_001,),
    (50_000,),
    (3, 9_001),
    (5, 8_000),
    (1_500, 36),
    (1_500, 35),
    (700, 6),
    (9, 40, 12),
]


def reduced(context: HostContext, fold: Fold, x: HostArray, axes: tuple[int, ...]) -> Array:
    shape = tuple(n for axis, n in enumerate(x.shape) if axis not in axes)
    out = context.empty(shape, fold.result)
    reductions.reduce_into(context, fold, x, axes, out)  # type: ignore[arg-type]
    assert is_zero(context)
    return out.array


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_and_positions_over_any_axes(context: HostContext, shape: tuple[int, ...]) -> None:
    host = integers(shape, np.float32)
    sums = Fold(Reduction.SUM, host.dtype, host.dtype)
    places = Fold(Reduction.MAX, host.dtype, INT64, position=True)
    axes = range(len(shape))
    for x in (on_host(host), on_host(host, 1), HostArray(on_host(host).array.T[::-1].T)):
        for chosen in (c for n in axes for c in itertools.combinations(axes, n + 1)):
            assert (reduced(context, sums, x, chosen) == x.array.sum(chosen)).all()
        for axis in axes:
            assert (reduced(context, places, x, (axis,)) == x.array.argmax(axis)).all()


def test_zeros_nan_and_ties(context: HostContext) -> None:
    dtype = np.dtype(np.float32)
    x = on_host(np.full((3, 5_000), -0.0, dtype))
    sums = reduced(context, Fold(Reduction.SUM, dtype, dtype), x, (1,))
    assert np.signbit(sums).all()
    host = np.zeros((4, 5_000), dtype)
    host[1, [70, 4_000]] = np.nan
    host[2, [77, 3_000]] = 3.0
    host[3] = -np.inf
    places = Fold(Reduction.MAX, dtype, INT64, position=True)
    assert reduced(context, places, on_host(host), (1,)).tolist() == [0, 70, 77, 0]
    largest = reduced(context, Fold(Reduction.MAX, dtype, dtype), on_host(host), (1,))
    assert np.isnan(largest[1])
    assert largest[[0, 2, 3]].tolist() == [0.0, 3.0, -np.inf]


# --------------------------------------------------------------------- scans
def scanned(context: HostContext, x: HostArray, axis: int, result: Any) -> Array:
    fold = Fold(Reduction.SUM, x.dtype, np.dtype(result))
    out = context.empty(x.shape, fold.result)
    scans.scan_into(context, fold, x, axis, out)  # type: ignore[arg-type]
    return out.array


@pytest.fixture
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few tiles make several groups, and lines many enough for blocks of their own are linked."""
    monkeypatch.setattr(scans, "_GROUP", 3)
    monkeypatch.setattr(scans, "_GROUPS", 2)
    monkeypatch.setattr(scans, "_BUSY", 1 << 30)
    scans._plan.cache_clear()
    yield  # type: ignore[misc]
    scans._plan.cache_clear()


CASES = [
    ((60_003,), 0),
    ((2, 40_000), 1),
    ((3, 20), 1),
    ((900, 40), 0),
    ((4, 300, 5), 1),
    ((700, 1_024), 0),
]


@pytest.mark.parametrize(("shape", "axis"), CASES, ids=str)
def test_running_sums(context: HostContext, shape: tuple[int, ...], axis: int) -> None:
    for host in (integers(shape, np.float32), integers(shape, np.int8)):
        result = INT64 if host.dtype.kind == "i" else host.dtype
        for x in (on_host(host), on_host(host, 1)):
            assert (scanned(context, x, axis, result) == host.cumsum(axis, dtype=result)).all()


@pytest.mark.usefixtures("_small_groups")
@pytest.mark.parametrize(("shape", "axis"), CASES, ids=str)
def test_running_sums_of_linked_tiles(
    context: HostContext, shape: tuple[int, ...], axis: int
) -> None:
    for host in (integers(shape, np.float32), integers(shape, np.complex128)):
        got = scanned(context, on_host(host), axis, host.dtype)
        assert (got == host.cumsum(axis, dtype=host.dtype)).all()


def test_what_a_thread_holds_fills_its_vectors() -> None:
    for kind in scan_texts.HELD:
        for held, vector in itertools.product((4, 8, 16), (1, 2, 4)):
            items = scan_texts.items_of(kind, held, vector)
            assert items >= 1
            assert kind.endswith("columns") or items % min(vector, 16 // held) == 0


# ----------------------------------------------------------------- selection
@pytest.mark.parametrize(
    ("size", "share"), [(1, 0.0), (1, 1.0), (31, 0.5), (16_384, 0.5), (16_385, 1.0), (40_001, 0.02)]
)
def test_masks(context: HostContext, size: int, share: float) -> None:
    host = integers((size,), np.float32)
    mask = np.random.default_rng(1).random(size) < share
    selection = Selection(context, on_host(mask))  # type: ignore[arg-type]
    assert is_zero(context)
    assert selection.count == mask.sum()
    out = context.empty((selection.count,), host.dtype)
    selection.elements(HostArray(on_host(host).array[::-1]), out)
    assert (out.array == host[::-1][mask]).all()
    places = context.empty((selection.count,), INT64)
    selection.positions([places])
    assert (places.array == np.nonzero(mask)[0]).all()


def test_any_byte_but_zero_is_true(context: HostContext) -> None:
    raw = np.arange(512, dtype=np.int64).astype(np.uint8)
    selection = Selection(context, on_host(raw.view(np.bool_)))  # type: ignore[arg-type]
    assert selection.count == 510


# ------------------------------------------------------ gathering, scattering
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128])
def test_gathering_and_scattering_rows(context: HostContext, dtype: Any) -> None:
    host = integers((50, 3, 24), dtype)
    index = np.random.default_rng(2).permutation(50) - 25
    for x in (on_host(host), HostArray(on_host(host).array[:, ::-1]), on_host(host, 1)):
        out = context.empty(x.shape, x.dtype)
        indexing.gather_into(context, x, [on_host(index)], out)  # type: ignore[arg-type]
        assert (out.array == x.array[index]).all()
        target = on_host(host)
        indexing.scatter_from(context, target, [on_host(index)], out)  # type: ignore[arg-type]
        expected = host.copy()
        expected[index] = out.array
        assert (target.array == expected).all()


@pytest.mark.parametrize("checked_first", [False, True])
@pytest.mark.parametrize("limit", [0, 1 << 16], ids=["one by one", "whole rows"])
def test_gathering_along_rows(
    context: HostContext, monkeypatch: pytest.MonkeyPatch, checked_first: bool, limit: int
) -> None:
    monkeypatch.setattr(indexing, "_MUCH", 0 if checked_first else 1 << 60)
    monkeypatch.setattr(context, "shared_limit", limit)
    host = integers((40, 300), np.float32)
    x = HostArray(on_host(host).array.T)
    index = np.random.default_rng(2).integers(-300, 300, 5_000)
    assert indexing.prefers_across(x, [on_host(index)])
    out = context.empty((40, 5_000), x.dtype)
    before = context.launches
    indexing.gather_across(context, x, on_host(index), out)  # type: ignore[arg-type]
    assert context.launches - before == 1 + checked_first
    assert (out.array == host[:, index]).all()
    index[77] = 300
    with pytest.raises(IndexingError, match="index 300 is out of bounds for axis 0 with size 300"):
        indexing.gather_across(context, x, on_host(index), out)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(
    ("rows", "length", "picks"), [(70, 40, 33), (3, 1000, 700), (5, 203, 11_000), (41, 7, 64)]
)
def test_whole_rows(
    context: HostContext, dtype: Any, offset: int, rows: int, length: int, picks: int
) -> None:
    """Rows that are read together, alone, and by several blocks; a last stretch that is shorter."""
    host = integers((rows, length), dtype)
    index = np.random.default_rng(3).integers(-length, length, picks)
    x = on_host(host, offset)
    for source, expected in (
        (x, host),
        (HostArray(x.array[::2]), host[::2]),
        (HostArray(x.array.reshape(1, rows, length)[:, ::-1]), host[None, ::-1]),
    ):
        turned = HostArray(np.moveaxis(source.array, -1, 0))
        out = context.empty((*expected.shape[:-1], picks), x.dtype)
        indexing.gather_across(context, turned, on_host(index), out)  # type: ignore[arg-type]
        assert (out.array == expected[..., index]).all()


# ------------------------------------------------------------------- products
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, 1), (1, 1)),
        ((70, 33), (33, 65)),
        ((3, 1, 5, 18), (2, 18, 4)),
        ((2, 2, 1500), (1500, 3)),
    ],
)
def test_products_of_integers(context: HostContext, dtype: Any, first: Any, second: Any) -> None:
    random = np.random.default_rng(5)
    info = np.iinfo(dtype)
    left = random.integers(info.min, info.max, first, dtype, endpoint=True)
    right = random.integers(info.min, info.max, second, dtype, endpoint=True)
    expected = np.matmul(left, right)
    turned = on_host(np.swapaxes(left, -1, -2)).array, on_host(np.swapaxes(right, -1, -2)).array
    for x in (on_host(left), HostArray(np.swapaxes(turned[0], -1, -2))):
        for y in (on_host(right), HostArray(np.swapaxes(turned[1], -1, -2))):
            out = products.product(context, x, y)  # type: ignore[arg-type]
            assert out.shape[0] == -(-first[-1] // 512)
            assert (out.array.sum(axis=0, dtype=dtype) == expected).all()
    reversed_ = HostArray(on_host(left).array[..., ::-1])
    out = products.product(context, reversed_, on_host(right))  # type: ignore[arg-type]
    expected = np.matmul(left[..., ::-1], right)
    assert (out.array.sum(axis=0, dtype=dtype) == expected).all()


# --------------------------------------------------------------- elementwise
def add(context: HostContext, dtype: Any) -> Elementwise:
    return of_operation(context, ops.ADD, (np.dtype(dtype), np.dtype(dtype)))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128])
def test_operands_of_any_layout(context: HostContext, dtype: Any) -> None:
    operation = add(context, dtype)
    host = integers((66, 130), dtype)
    x, turned, odd = on_host(host), on_host(host.T.copy()), on_host(host, 1)
    views = [
        (x, x), (odd, x), (x, HostArray(turned.array.T)), (HostArray(x.array[:, ::-1]), odd),
        (x, HostArray(x.array[:1])), (x, HostArray(x.array[:, :1])), (HostArray(turned.array.T), odd),
        (HostArray(x.array[::2, ::3]), HostArray(turned.array.T[::2, ::3])),
        (HostArray(turned.array.T), HostArray(turned.array.T)),
    ]  # fmt: skip
    for _ in range(2):
        for one, two in views:
            assert (operation.loop(one, two).array == one.array + two.array).all()


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))), ids=str)
def test_copies_of_permuted_axes(context: HostContext, axes: tuple[int, ...]) -> None:
    copy = Elementwise(
        context, "copy", [(np.dtype(np.uint16), True)], np.dtype(np.uint16), lambda x: x
    )  # type: ignore[arg-type]
    host = integers((9, 72, 80), np.uint16)
    source = HostArray(on_host(host).array.transpose(axes))
    target = HostArray(on_host(np.zeros(host.shape, np.uint16)).array.transpose(axes[::-1]))
    out = context.empty(source.shape, source.dtype)
    copy.fill((source,), out)
    assert (out.array == host.transpose(axes)).all()
    if target.shape == source.shape:
        copy.fill((source,), target)
        assert (target.array == host.transpose(axes)).all()


def test_scalars_and_numbers_beyond_the_dtype(context: HostContext) -> None:
    x = on_host(integers((100,), np.float32))
    scaled = of_operation(context, ops.MULTIPLY, (x.dtype, float))  # type: ignore[arg-type]
    for _ in range(2):
        assert (scaled.loop(x, 0.5).array == x.array * np.float32(0.5)).all()
    assert np.isinf(scaled.loop(on_host(np.ones(3, np.float32)), 1e300).array).all()
    small = on_host(integers((100,), np.int8))
    moved = of_operation(context, ops.ADD, (small.dtype, int))  # type: ignore[arg-type]
    for _ in range(2):
        assert (moved.loop(small, -100).array == small.array + np.int8(-100)).all()
        with pytest.raises(OverflowError, match="300"):
            moved.loop(small, 300)
