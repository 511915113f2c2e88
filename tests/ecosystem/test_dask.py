"""dask.array with tensors as chunks: each operation keeps them and agrees with NumPy."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numr
import numr.cpu as cpu
from numr.errors import HostCopyError

da = pytest.importorskip("dask.array", reason="dask is not installed")
from dask.tokenize import tokenize  # noqa: E402

import numr.interop.dask  # noqa: E402  (devices need it)

RNG = np.random.default_rng(21)
HOST = {
    "x": RNG.normal(size=(12, 10)),
    "y": RNG.normal(size=(12, 10)),
    "square": RNG.normal(size=(10, 10)) + 10 * np.eye(10),
    "tall": RNG.normal(size=(40, 5)),
    "whole": RNG.integers(0, 9, (12, 10)),
    "narrow": RNG.normal(size=(12, 10)).astype(np.float32),
}
CHUNKS = {"tall": (10, 5), "square": (5, 5)}


def lazy(name: str, xp: ModuleType = cpu) -> Any:
    """A dask array over a tensor, in single precision where the device has no other."""
    host = HOST[name]
    if host.dtype not in xp.zeros(1)._client.dtypes:
        host = host.astype(f"{host.dtype.kind}{host.dtype.itemsize // 2}")
    return da.from_array(xp.asarray(host), chunks=CHUNKS.get(name, (5, 4)), asarray=False)


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


#: Calls that read the same for dask and NumPy: the module (``da`` or ``np``) and operands by name.
OPERATIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "add a scalar": (lambda m, x: x + 1, ("x",)),
    "add": (lambda m, x, y: x + y, ("x", "y")),
    "broadcast": (lambda m, x: x - x.mean(axis=0), ("x",)),
    "compare": (lambda m, x, y: x > y, ("x", "y")),
    "negative": (lambda m, x: -x, ("x",)),
    "sin": (lambda m, x: m.sin(x), ("x",)),
    "exp and log1p": (lambda m, x: m.log1p(m.exp(x)), ("x",)),
    "where": (lambda m, x, y: m.where(x > 0, x, y), ("x", "y")),
    "clip": (lambda m, x: m.clip(x, -0.5, 0.5), ("x",)),
    "astype": (lambda m, x: x.astype("float32"), ("x",)),
    "sum": (lambda m, x: x.sum(), ("x",)),
    "sum along an axis": (lambda m, x: x.sum(axis=0), ("x",)),
    "sum of integers": (lambda m, x: x.sum(axis=1), ("whole",)),
    "prod": (lambda m, x: x.prod(axis=1), ("x",)),
    "mean": (lambda m, x: x.mean(axis=1), ("x",)),
    "mean in float32": (lambda m, x: x.mean(), ("narrow",)),
    "std": (lambda m, x: x.std(axis=0), ("x",)),
    "var": (lambda m, x: x.var(axis=1, ddof=1), ("x",)),
    "max": (lambda m, x: x.max(axis=0), ("x",)),
    "min": (lambda m, x: x.min(), ("x",)),
    "any and all": (lambda m, x: (x > 2).any(axis=0) | (x < 3).all(axis=0), ("x",)),
    "argmax": (lambda m, x: x.argmax(axis=1), ("x",)),
    "argmin": (lambda m, x: x.argmin(axis=0), ("x",)),
    "cumsum": (lambda m, x: x.cumsum(axis=0), ("x",)),
    "cumprod": (lambda m, x: x.cumprod(axis=1), ("x",)),
    "transpose": (lambda m, x: x.T, ("x",)),
    "transpose axes": (lambda m, x: m.transpose(x, (1, 0)), ("x",)),
    "reshape": (lambda m, x: x.reshape(120), ("x",)),
    "ravel": (lambda m, x: x.ravel(), ("x",)),
    "squeeze": (lambda m, x: m.squeeze(x[:, :1]), ("x",)),
    "slice": (lambda m, x: x[2:9, ::2], ("x",)),
    "index with a list": (lambda m, x: x[[0, 5, 7]], ("x",)),
    "mask": (lambda m, x: x[x[:, 0] > 0], ("x",)),
    "concatenate": (lambda m, x, y: m.concatenate([x, y], axis=1), ("x", "y")),
    "stack": (lambda m, x, y: m.stack([x, y]), ("x", "y")),
    "roll": (lambda m, x: m.roll(x, 3, axis=1), ("x",)),
    "flip": (lambda m, x: m.flip(x, axis=0), ("x",)),
    "matmul": (lambda m, x, y: x @ y.T, ("x", "y")),
    "dot": (lambda m, x, y: m.dot(x, y), ("x", "square")),
    "tensordot": (lambda m, x, y: m.tensordot(x, y, axes=((0,), (0,))), ("x", "y")),
    "einsum": (lambda m, x, y: m.einsum("ij,kj->ik", x, y), ("x", "y")),
    "diff": (lambda m, x: m.diff(x, axis=0), ("x",)),
    "nanmean": (lambda m, x: m.nanmean(m.where(x > 1, np.nan, x), axis=0), ("x",)),
    "nansum": (lambda m, x: m.nansum(m.where(x > 1, np.nan, x)), ("x",)),
    "take": (lambda m, x: m.take(x, [1, 3], axis=1), ("x",)),
    "isfinite": (lambda m, x: m.isfinite(x), ("x",)),
    "fft": (lambda m, x: m.fft.fft(x, axis=1), ("tall",)),
    "tril": (lambda m, x: m.tril(x), ("square",)),
    "norm": (lambda m, x: m.linalg.norm(x), ("x",)),
}


#: What dask does with masks that it makes on the host, which do not mix with tensors on devices.
WITH_HOST_MASKS = {"tril"}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_keep_tensors_and_agree_with_numpy(xp: ModuleType, name: str) -> None:
    call, operands = OPERATIONS[name]
    result = call(da, *(lazy(operand, xp) for operand in operands))
    if xp is not cpu and name in WITH_HOST_MASKS:
        with pytest.raises(HostCopyError):
            result.compute(scheduler="synchronous")
        return
    computed = result.compute(scheduler="synchronous")
    expected = call(np, *(HOST[operand] for operand in operands))
    assert isinstance(computed, numr.Tensor), type(computed)
    assert computed.device == xp.zeros(1).device
    assert computed.shape == np.shape(expected)
    if xp is cpu:
        assert computed.dtype == expected.dtype
    else:  # where indices and integers have 32 bits by default
        assert computed.dtype.kind == expected.dtype.kind
    wide = computed.dtype.itemsize > (8 if computed.dtype.kind == "c" else 4)
    tolerance = 1e-12 if wide else 2e-5
    np.testing.assert_allclose(computed.to_numpy(), expected, rtol=tolerance, atol=tolerance)


def test_factorisations_keep_tensors(xp: ModuleType) -> None:
    host = HOST["tall"]
    q, r = da.linalg.qr(lazy("tall", xp))
    u, s, vh = da.linalg.svd(lazy("tall", xp))
    parts = [part.compute(scheduler="synchronous") for part in (q, r, u, s, vh)]
    assert {type(part) for part in parts} == {numr.Tensor}
    assert {part.device for part in parts} == {xp.zeros(1).device}
    tolerance = 1e-12 if parts[0].dtype == np.float64 else 1e-4
    q, r, u, s, vh = (part.to_numpy() for part in parts)
    np.testing.assert_allclose(q @ r, host, atol=tolerance)
    np.testing.assert_allclose((u * s) @ vh, host, atol=tolerance)
    np.testing.assert_allclose(s, np.linalg.svd(host, compute_uv=False), rtol=tolerance)


def test_functions_of_blocks_get_tensors() -> None:
    seen = set()

    def double(block):
        seen.add(type(block))
        return block * 2

    # dask itself calls the function with an empty array of NumPy's where it is not told the result's type.
    doubled = da.map_blocks(double, lazy("x"), meta=cpu.empty((0, 0)))
    smooth = da.map_overlap(
        lambda b: b + cpu.roll(b, 1, axis=0),
        lazy("x"),
        depth=(1, 0),
        meta=cpu.empty((0, 0)),
        boundary="periodic",
    )
    np.testing.assert_array_equal(
        doubled.compute(scheduler="synchronous").to_numpy(), 2 * HOST["x"]
    )
    result = smooth.compute(scheduler="synchronous")
    assert isinstance(result, numr.Tensor)
    np.testing.assert_allclose(result.to_numpy(), HOST["x"] + np.roll(HOST["x"], 1, axis=0))
    assert seen == {numr.Tensor}


def test_the_meta_of_an_array_is_a_tensor() -> None:
    x = da.from_array(cpu.asarray(HOST["x"]), chunks=4)
    assert isinstance(x._meta, numr.Tensor)
    for derived in (x + 1, x.T, x.sum(axis=0), x.rechunk((12, 2)), da.sin(x)):
        assert isinstance(derived._meta, numr.Tensor)
        assert isinstance(derived.compute(scheduler="synchronous"), numr.Tensor)


def test_tokens_tell_tensors_apart() -> None:
    x = cpu.asarray(HOST["x"])
    same = cpu.asarray(HOST["x"].copy())
    assert tokenize(x) == tokenize(same) == tokenize(pickle.loads(pickle.dumps(x)))
    assert tokenize(x.T) == tokenize(x.T.copy())
    changed = x.copy()
    changed[3, 3] += 1
    others = [x, changed, x.T, cpu.astype(x, cpu.float32), x[1:], x.reshape(-1), x.view(cpu.int64)]
    assert len({tokenize(other) for other in others}) == len(others)


def test_chunks_travel_between_the_workers_of_a_cluster() -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")

    def where(block):
        import numr

        assert isinstance(block, numr.Tensor), type(block)
        return block - block.mean()

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        x = client.persist(da.map_blocks(where, lazy("tall"), meta=cpu.empty((0, 0))))
        # The product needs all pairs of chunks, so that some must move.
        product = (x @ x.T).compute()
        tensor = client.submit(cpu.sum, cpu.asarray(HOST["x"])).result()
    assert isinstance(product, numr.Tensor)
    assert float(tensor) == pytest.approx(HOST["x"].sum())
    blocks = HOST["tall"].reshape(4, 10, 5)
    centred = (blocks - blocks.mean(axis=(1, 2), keepdims=True)).reshape(40, 5)
    np.testing.assert_allclose(product.to_numpy(), centred @ centred.T, atol=1e-12)


def test_a_tensor_travels_in_buffers_of_its_own() -> None:
    from distributed.protocol import deserialize, serialize

    x = cpu.asarray(np.arange(100_000.0))
    for tensor in (x, x[::2], x[::-1], x.reshape(100, 1000).T):
        header, frames = serialize(tensor)
        assert sum(memoryview(frame).nbytes for frame in frames) >= tensor.nbytes
        assert len(pickle.dumps(header)) < 5000
        again = deserialize(header, frames)
        assert isinstance(again, numr.Tensor)
        np.testing.assert_array_equal(again.to_numpy(), tensor.to_numpy())
        again += 1.0
