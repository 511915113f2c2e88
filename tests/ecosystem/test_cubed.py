"""cubed with tensors as chunks: each array-API operation that it has agrees with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import numr
from tests.ecosystem.cubed_support import NARROW, Chunks, assert_same, cubed, to_numpy

xp = cubed.array_api

RNG = np.random.default_rng(11)
#: Operands by name. Chunks never divide the axes evenly, so that the last one of each is shorter.
HOST: dict[str, np.ndarray] = {
    "unit": RNG.uniform(0.1, 0.9, (7, 10)),  # within the domain of every function but acosh
    "signed": RNG.normal(size=(7, 10)),
    "other": RNG.normal(size=(7, 10)),
    "large": RNG.uniform(1.5, 4.0, (7, 10)),
    "narrow": RNG.normal(size=(7, 10)).astype(np.float32),
    "holes": np.where(RNG.uniform(size=(7, 10)) < 0.3, np.nan, RNG.normal(size=(7, 10))),
    "complex": RNG.normal(size=(7, 10)) + 1j * RNG.normal(size=(7, 10)),
    "integers": RNG.integers(-9, 9, (7, 10)),
    "shifts": RNG.integers(0, 6, (7, 10)),
    "nonzero": RNG.integers(1, 9, (7, 10)),
    "mask": RNG.uniform(size=(7, 10)) < 0.5,
    "other_mask": RNG.uniform(size=(7, 10)) < 0.5,
    "row": RNG.normal(size=(10,)),
    "sorted": np.sort(RNG.normal(size=(10,))),
    "tall": RNG.normal(size=(10, 6)),
    "stack": RNG.normal(size=(3, 7, 10)),
    "one": RNG.normal(size=(7, 1, 10)),
}
CHUNKS = {1: (4,), 2: (3, 4), 3: (2, 3, 4)}


@pytest.fixture(autouse=True)
def _spec(tmp_path):
    """Where intermediate arrays go; cubed makes some arrays that take no specification of their own."""
    with cubed.config.set({"spec.work_dir": str(tmp_path), "spec.allowed_mem": "200MB"}):
        yield


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> Chunks:
    return Chunks(monkeypatch)


@pytest.fixture
def lazy() -> Callable[[str], Any]:
    def make(name: str) -> Any:
        host = HOST[name]
        return xp.asarray(host, chunks=CHUNKS[host.ndim])

    return make


# ---------------------------------------------------------------- elementwise
UNARY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        [
            "acos",
            "asin",
            "atan",
            "atanh",
            "cos",
            "cosh",
            "exp",
            "expm1",
            "log",
            "log10",
            "log1p",
            "log2",
            "reciprocal",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
        ],
        ("unit",),
    ),
    **dict.fromkeys(["ceil", "floor", "round", "trunc", "sign", "signbit"], ("signed",)),
    **dict.fromkeys(["abs", "negative", "positive", "square"], ("signed", "integers", "complex")),
    **dict.fromkeys(["isfinite", "isinf", "isnan"], ("holes",)),
    **dict.fromkeys(["conj", "imag", "real"], ("complex",)),
    "acosh": ("large",),
    "asinh": ("signed",),
    "bitwise_invert": ("integers", "mask"),
    "logical_not": ("mask",),
}
BINARY: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(
        ["add", "divide", "multiply", "subtract"],
        (("signed", "other"), ("narrow", "signed"), ("signed", "row"), ("complex", "signed")),
    ),
    **dict.fromkeys(
        [
            "equal",
            "greater",
            "greater_equal",
            "less",
            "less_equal",
            "not_equal",
            "maximum",
            "minimum",
        ],
        (("integers", "shifts"), ("signed", "row")),
    ),
    **dict.fromkeys(
        ["atan2", "copysign", "hypot", "logaddexp", "nextafter"],
        (("signed", "other"), ("signed", "row")),
    ),
    **dict.fromkeys(["floor_divide", "remainder"], (("integers", "nonzero"), ("signed", "large"))),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], (("integers", "shifts"),)),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], (("integers", "shifts"),)),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], (("mask", "other_mask"),)),
    "pow": (("large", "signed"), ("integers", "shifts")),
}


@pytest.mark.parametrize(
    ("name", "operand"), [(name, operand) for name, some in UNARY.items() for operand in some]
)
def test_functions_of_one_operand(lazy, chunks: Chunks, name: str, operand: str) -> None:
    result = to_numpy(getattr(xp, name)(lazy(operand)))
    assert_same(result, getattr(np, name)(HOST[operand]))
    chunks.assert_tensors()


@pytest.mark.parametrize(
    ("name", "operands"), [(name, pair) for name, some in BINARY.items() for pair in some]
)
def test_functions_of_two_operands(lazy, chunks: Chunks, name: str, operands) -> None:
    result = to_numpy(getattr(xp, name)(*map(lazy, operands)))
    assert_same(result, getattr(np, name)(*(HOST[operand] for operand in operands)))
    chunks.assert_tensors()


# ---------------------------------------------------------------------- others
#: By name of cubed's function, calls that read the same for cubed and for NumPy: the module and its operands.
CALLS: dict[str, tuple[tuple[Callable[..., Any], tuple[str, ...]], ...]] = {
    "all": ((lambda m, x: m.all(x, axis=0), ("mask",)), (lambda m, x: m.all(x), ("mask",))),
    "any": ((lambda m, x: m.any(x, axis=1, keepdims=True), ("mask",)),),
    "argmax": ((lambda m, x: m.argmax(x, axis=0), ("signed",)),),
    "argmin": ((lambda m, x: m.argmin(x, axis=1, keepdims=True), ("signed",)),),
    "astype": ((lambda m, x: m.astype(x, m.float32), ("signed",)),),
    "broadcast_to": ((lambda m, x: m.broadcast_to(x, (7, 10)), ("row",)),),
    "clip": ((lambda m, x: m.clip(x, -0.5, 0.5), ("signed",)),),
    "concat": ((lambda m, x, y: m.concat((x, y), axis=1), ("signed", "other")),),
    "count_nonzero": ((lambda m, x: m.count_nonzero(x, axis=1), ("integers",)),),
    "cumulative_prod": ((lambda m, x: m.cumulative_prod(x, axis=1), ("signed",)),),
    "cumulative_sum": ((lambda m, x: m.cumulative_sum(x, axis=0), ("signed",)),),
    "diff": ((lambda m, x: m.diff(x, axis=1, n=2), ("signed",)),),
    "empty_like": ((lambda m, x: 0 * m.empty_like(x), ("integers",)),),
    "expand_dims": ((lambda m, x: m.expand_dims(x, axis=1), ("signed",)),),
    "flip": ((lambda m, x: m.flip(x), ("signed",)), (lambda m, x: m.flip(x, axis=1), ("signed",))),
    "full_like": ((lambda m, x: -m.full_like(x, 3.5), ("signed",)),),
    "isin": ((lambda m, x, y: m.isin(x, y), ("integers", "shifts")),),
    "matmul": (
        (lambda m, x, y: m.matmul(x, y), ("signed", "tall")),
        (lambda m, x, y: x @ y, ("stack", "tall")),
        (lambda m, x, y: x @ y, ("signed", "row")),
    ),
    "matrix_transpose": (
        (lambda m, x: m.matrix_transpose(x), ("stack",)),
        (lambda m, x: x.mT, ("stack",)),
        (lambda m, x: x.T, ("signed",)),
    ),
    "max": ((lambda m, x: m.max(x, axis=(0, 1)), ("signed",)),),
    "mean": (
        (lambda m, x: m.mean(x, axis=0), ("signed",)),
        (lambda m, x: m.mean(x, axis=(0, 1), keepdims=True), ("narrow",)),
    ),
    "min": ((lambda m, x: m.min(x, axis=1), ("integers",)),),
    "moveaxis": ((lambda m, x: m.moveaxis(x, 0, -1), ("stack",)),),
    "ones_like": ((lambda m, x: -m.ones_like(x), ("narrow",)),),
    "permute_dims": ((lambda m, x: m.permute_dims(x, (2, 0, 1)), ("stack",)),),
    "prod": ((lambda m, x: m.prod(x, axis=1), ("signed",)),),
    "repeat": ((lambda m, x: m.repeat(x, 3, axis=1), ("signed",)),),
    "reshape": (
        (lambda m, x: m.reshape(x, (70,)), ("signed",)),
        (lambda m, x: m.reshape(x, (21, 10)), ("stack",)),
    ),
    "roll": (
        (lambda m, x: m.roll(x, 3, axis=1), ("signed",)),
        (lambda m, x: m.roll(x, 4), ("signed",)),
    ),
    "searchsorted": ((lambda m, x, y: m.searchsorted(x, y), ("sorted", "row")),),
    "squeeze": ((lambda m, x: m.squeeze(x, axis=1), ("one",)),),
    "stack": ((lambda m, x, y: m.stack((x, y), axis=1), ("signed", "other")),),
    "std": ((lambda m, x: m.std(x, axis=0), ("signed",)),),
    "sum": (
        (lambda m, x: m.sum(x), ("signed",)),
        (lambda m, x: m.sum(x, axis=0, keepdims=True), ("integers",)),
        (lambda m, x: m.sum(x, axis=1), ("complex",)),
    ),
    "take": ((lambda m, x: m.take(x, m.asarray([1, 5, 9]), axis=1), ("signed",)),),
    "tensordot": (
        (lambda m, x, y: m.tensordot(x, y, axes=1), ("signed", "tall")),
        (lambda m, x, y: m.tensordot(x, y, axes=((0, 1), (0, 1))), ("signed", "other")),
    ),
    "tile": ((lambda m, x: m.tile(x, (2, 1)), ("signed",)),),
    "tril": ((lambda m, x: m.tril(x, k=1), ("signed",)),),
    "triu": ((lambda m, x: m.triu(x, k=-1), ("signed",)),),
    "var": ((lambda m, x: m.var(x, axis=(0, 1)), ("signed",)),),
    "vecdot": ((lambda m, x, y: m.vecdot(x, y), ("signed", "other")),),
    "where": ((lambda m, c, x, y: m.where(c, x, y), ("mask", "signed", "other")),),
    "zeros_like": ((lambda m, x: ~m.zeros_like(x), ("mask",)),),
}


@pytest.mark.parametrize(
    ("name", "number"), [(name, i) for name, some in CALLS.items() for i in range(len(some))]
)
def test_other_functions(lazy, chunks: Chunks, name: str, number: int) -> None:
    call, operands = CALLS[name][number]
    result = to_numpy(call(xp, *map(lazy, operands)))
    assert_same(result, call(np, *(HOST[operand] for operand in operands)))
    chunks.assert_tensors()


#: The same without operands.
CREATED: dict[str, Callable[..., Any]] = {
    "arange": lambda m, **options: m.arange(3, 40, 3, **options),
    "eye": lambda m, **options: m.eye(7, 10, k=2, **options),
    "full": lambda m, **options: m.full((7, 10), 2.5, **options),
    "linspace": lambda m, **options: m.linspace(0, 1, 11, **options),
    "ones": lambda m, **options: m.ones((7, 10), **options),
    "zeros": lambda m, **options: m.zeros((7, 10), **options),
    "empty": lambda m, **options: 0 * m.empty((7, 10), dtype=m.int32, **options),
}


@pytest.mark.parametrize("name", CREATED)
def test_creation(chunks: Chunks, name: str) -> None:
    made = CREATED[name](xp, chunks=4)
    result = to_numpy(xp.positive(made))
    assert_same(result, CREATED[name](np))
    chunks.assert_tensors()


def test_functions_with_several_results(lazy, chunks: Chunks) -> None:
    for found, expected in (
        (xp.unstack(lazy("stack")), np.unstack(HOST["stack"])),
        (
            xp.broadcast_arrays(lazy("signed"), lazy("row")),
            np.broadcast_arrays(HOST["signed"], HOST["row"]),
        ),
        (xp.meshgrid(lazy("row"), lazy("sorted")), np.meshgrid(HOST["row"], HOST["sorted"])),
    ):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(to_numpy(xp.positive(one)), other)
    chunks.assert_tensors()


def test_indexing(lazy, chunks: Chunks) -> None:
    x, host = lazy("signed"), HOST["signed"]
    for key in (
        (2,),
        (slice(1, 6, 2),),
        (slice(2, 5), 3),
        (..., slice(3, 9)),
        (None, slice(1, 4)),
        ([0, 3, 5],),
        (slice(None), [9, 0, 4]),
    ):
        assert_same(to_numpy(xp.positive(x[key])), host[key])
    assert_same(to_numpy(x[xp.asarray([1, 2])]), host[[1, 2]])
    chunks.assert_tensors()


def test_operators_with_scalars_and_without(lazy) -> None:
    x, host = lazy("signed"), HOST["signed"]
    n, whole = lazy("integers"), HOST["integers"]
    assert_same(to_numpy(2 * x - 1 / (x + 3.5) + (-x) ** 2), 2 * host - 1 / (host + 3.5) + host**2)
    assert_same(to_numpy(((n & 6) | 1) ^ (n << 1)), ((whole & 6) | 1) ^ (whole << 1))
    assert_same(to_numpy((x > 0) == (x >= 0)), (host > 0) == (host >= 0))
    assert float(xp.sum(x)) == pytest.approx(host.sum())
    assert int(xp.max(n)) == whole.max()
    assert bool(xp.all(x == x))


def test_factorisations_of_tall_matrices(chunks: Chunks) -> None:
    host = RNG.normal(size=(40, 6))
    x = xp.asarray(host, chunks=(10, 6))
    q, r = (to_numpy(part) for part in xp.linalg.qr(x))
    np.testing.assert_allclose(q @ r, host, atol=1e-12)
    np.testing.assert_allclose(q.T @ q, np.eye(6), atol=1e-12)
    u, s, vh = (to_numpy(part) for part in xp.linalg.svd(x, full_matrices=False))
    np.testing.assert_allclose((u * s) @ vh, host, atol=1e-12)
    expected = np.linalg.svd(host, compute_uv=False)
    np.testing.assert_allclose(s, expected, rtol=1e-12)
    np.testing.assert_allclose(to_numpy(xp.linalg.svdvals(x)), expected, rtol=1e-12)
    outer = xp.linalg.outer(x[:, 0], x[:, 1])
    np.testing.assert_allclose(to_numpy(outer), np.outer(host[:, 0], host[:, 1]), rtol=1e-12)
    chunks.assert_tensors()


def test_beyond_the_standard(lazy, chunks: Chunks) -> None:
    holes, host = lazy("holes"), HOST["holes"]
    assert_same(to_numpy(cubed.nansum(holes, axis=1)), np.nansum(host, axis=1))
    assert_same(to_numpy(cubed.nanmean(holes, axis=0)), np.nanmean(host, axis=0))
    padded = cubed.pad(lazy("signed"), ((1, 0), (0, 0)), mode="symmetric")
    assert_same(to_numpy(padded), np.pad(HOST["signed"], ((1, 0), (0, 0)), mode="symmetric"))
    moved = cubed.rechunk(lazy("signed"), (7, 2))
    assert moved.chunks == ((7,), (2,) * 5)
    assert_same(to_numpy(xp.positive(moved)), HOST["signed"])
    chunks.assert_tensors()


def test_functions_of_blocks_get_tensors(lazy) -> None:
    seen = []

    def double(block):
        seen.append(type(block))
        return block * 2

    assert_same(
        to_numpy(cubed.map_blocks(double, lazy("signed"), dtype=np.float64)), 2 * HOST["signed"]
    )
    assert set(seen) == {numr.Tensor}

    def centre(block):
        return block - block.mean(axis=-1, keepdims=True)

    x = cubed.rechunk(lazy("signed"), (3, 10))
    centred = cubed.apply_gufunc(centre, "(i)->(i)", x, output_dtypes=np.float64)
    host = HOST["signed"]
    assert_same(to_numpy(centred), host - host.mean(axis=-1, keepdims=True), rtol=1e-10)


def test_random_arrays_are_tensors_and_the_same_again(chunks: Chunks) -> None:
    import random

    results = []
    for _ in range(2):
        random.seed(3)
        results.append(to_numpy(cubed.random.random((20, 10), chunks=(7, 4))))
    np.testing.assert_array_equal(*results)
    assert 0 <= results[0].min() < results[0].max() < 1
    chunks.assert_tensors()


def test_no_operation_of_cubed_is_left_out() -> None:
    several = {"unstack", "broadcast_arrays", "meshgrid", "asarray"}
    without_arrays = {"broadcast_shapes", "can_cast", "finfo", "iinfo", "isdtype", "result_type"}
    functions = {
        name for name in cubed.array_api.__all__ if isinstance(getattr(xp, name), FunctionType)
    }
    covered = {*UNARY, *BINARY, *CALLS, *CREATED, *several, *without_arrays}
    assert functions - {"__array_namespace_info__"} == covered


def test_functions_without_arrays() -> None:
    assert xp.result_type(xp.float32, xp.float64) == np.float64
    assert xp.can_cast(xp.int32, xp.int64)
    assert xp.isdtype(np.dtype("int8"), "signed integer")
    assert xp.finfo(xp.float32).eps == np.finfo(np.float32).eps
    assert xp.iinfo(xp.int16).max == 32767
    assert tuple(xp.broadcast_shapes((3, 1), (4,))) == (3, 4)
    assert (xp.__array_namespace_info__().default_dtypes()["real floating"] != np.float64) is NARROW


def test_overlapping_blocks(chunks: Chunks) -> None:
    host = np.arange(36.0).reshape(6, 6)

    def smooth(block):
        return block[:-2, :] + block[1:-1, :] + block[2:, :]

    x = xp.asarray(host, chunks=(3, 3))
    result = cubed.map_overlap(
        smooth, x, dtype=x.dtype, chunks=x.chunks, depth={0: 1, 1: 0}, boundary=0.0, trim=False
    )
    padded = np.pad(host, ((1, 1), (0, 0)))
    assert_same(to_numpy(result), padded[:-2] + padded[1:-1] + padded[2:])
    chunks.assert_tensors()
