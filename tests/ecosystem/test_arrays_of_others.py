"""torch, JAX and CuPy: memory goes both ways by DLPack, and operators do not mix."""

from __future__ import annotations

import operator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numr

DTYPES = ("bool", "int8", "int32", "uint8", "float16", "float32", "float64", "complex64")
MIXED = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.matmul),
    *(operator.lt, operator.eq, operator.ne),
]


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


@pytest.fixture
def torch() -> ModuleType:
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture
def jax() -> ModuleType:
    module = pytest.importorskip("jax", reason="jax is not installed")
    module.config.update("jax_enable_x64", True)
    return module


@pytest.fixture
def cupy() -> ModuleType:
    if "cuda" not in numr.available():
        pytest.skip(str(numr.unavailable()["cuda"]))
    return pytest.importorskip("cupy")


def host_of(dtype: str) -> np.ndarray:
    return np.arange(12).reshape(3, 4).astype(dtype)


# ----------------------------------------------------------------------- torch
@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_shares_host_memory(torch: ModuleType, dtype: str) -> None:
    host = host_of(dtype)
    x = numr.cpu.asarray(host)[:, 1:]
    for take in (torch.from_dlpack, torch.utils.dlpack.from_dlpack, torch.asarray, torch.as_tensor):
        there = take(x)
        np.testing.assert_array_equal(there.numpy(), host[:, 1:], strict=True)
        assert there.data_ptr() == x.to_numpy().ctypes.data
    there = torch.from_dlpack(x, copy=True)
    assert there.data_ptr() != x.to_numpy().ctypes.data
    for back in (numr.cpu.from_dlpack(torch.from_dlpack(x)), numr.cpu.asarray(torch.asarray(x))):
        np.testing.assert_array_equal(back.to_numpy(), host[:, 1:], strict=True)
        assert np.shares_memory(back.to_numpy(), x.to_numpy())


def test_tensors_of_torch_come_to_every_device(xp: ModuleType, torch: ModuleType) -> None:
    there = torch.arange(12, dtype=torch.float32).reshape(3, 4)[::2]
    for make in (xp.from_dlpack, xp.asarray):
        x = make(there)
        assert x.device == xp.zeros(1).device
        np.testing.assert_array_equal(x.to_numpy(), there.numpy(), strict=True)
    assert xp.asarray([there[0, 0], there[1, 1]]).tolist() == [0.0, 9.0]


def test_what_torch_cannot_export_says_why(xp: ModuleType, torch: ModuleType) -> None:
    for there, words in (
        (torch.ones(2, requires_grad=True), "gradient"),
        (torch.ones(2, dtype=torch.complex64).conj(), "conjugate"),
        (torch.ones(2, dtype=torch.bfloat16), r"torch.Tensor.*bfloat16"),
    ):
        with pytest.raises(BufferError, match=words):
            xp.from_dlpack(there)


@pytest.mark.parametrize("apply", MIXED, ids=lambda f: f.__name__)
def test_operators_with_torch_are_refused(xp: ModuleType, torch: ModuleType, apply: Any) -> None:
    x, there = xp.ones((2, 2), dtype=xp.float32), torch.ones(2, 2)
    for left, right in ((x, there), (there, x)):
        with pytest.raises(TypeError):
            apply(left, right)


def test_torch_says_what_to_do_with_memory_that_it_cannot_use(torch: ModuleType) -> None:
    if "wgpu" not in numr.available():
        pytest.skip(str(numr.unavailable()["wgpu"]))
    x = numr.namespace("wgpu").asarray([1.0, 2.0])
    for take in (torch.from_dlpack, torch.asarray):
        with pytest.raises(BufferError, match=r"to_numpy\(\)"):
            take(x)
    assert torch.from_dlpack(x.to_numpy()).tolist() == [1.0, 2.0]


# ------------------------------------------------------------------------- JAX
@pytest.mark.parametrize("dtype", DTYPES)
def test_jax_both_ways(jax: ModuleType, dtype: str) -> None:
    host = host_of(dtype)
    x = numr.cpu.asarray(host)
    for take in (jax.numpy.from_dlpack, jax.numpy.asarray):
        np.testing.assert_array_equal(np.asarray(take(x)), host, strict=True)
    there = jax.numpy.asarray(host) if dtype != "bool" else jax.numpy.asarray(host) & True
    for back in (numr.cpu.from_dlpack(there), numr.cpu.asarray(there)):
        np.testing.assert_array_equal(back.to_numpy(), host, strict=True)
    with pytest.raises(numr.errors.ReadOnlyError):  # arrays of JAX never change
        numr.cpu.from_dlpack(there)[0, 0] = True
    changed = numr.cpu.from_dlpack(there, copy=True)
    changed[0, 1] = False
    np.testing.assert_array_equal(np.asarray(there), host)


def test_arrays_of_jax_come_to_every_device(xp: ModuleType, jax: ModuleType) -> None:
    there = jax.numpy.arange(12, dtype="float32").reshape(3, 4)
    for make in (xp.from_dlpack, xp.asarray):
        x = make(there)
        assert x.device == xp.zeros(1).device
        np.testing.assert_array_equal(x.to_numpy(), np.asarray(there), strict=True)


@pytest.mark.parametrize("apply", MIXED, ids=lambda f: f.__name__)
def test_operators_with_jax_are_refused(xp: ModuleType, jax: ModuleType, apply: Any) -> None:
    x, there = xp.ones((2, 2), dtype=xp.float32), jax.numpy.ones((2, 2), dtype="float32")
    for left, right in ((x, there), (there, x)):
        with pytest.raises(TypeError):
            apply(left, right)
    with pytest.raises(TypeError):
        jax.numpy.sin(x)


# ------------------------------------------------------------------------ CuPy
@pytest.mark.parametrize("dtype", DTYPES)
def test_cupy_shares_device_memory(cupy: ModuleType, dtype: str) -> None:
    xp = numr.namespace("cuda")
    host = host_of(dtype)
    x = xp.asarray(host)[:, 1:]
    for take in (cupy.from_dlpack, cupy.asarray):
        there = take(x)
        np.testing.assert_array_equal(there.get(), host[:, 1:], strict=True)
        there[0, 0] = 0
        assert not x[0, 0]
    for make in (xp.from_dlpack, xp.asarray):
        back = make(there)
        there[1, 1] = 0
        assert not back[1, 1]


def test_cupy_on_a_stream_of_its_own(cupy: ModuleType) -> None:
    xp = numr.namespace("cuda")
    x = xp.arange(1_000_000, dtype=xp.float32) + 1.0
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        there = cupy.from_dlpack(x) * 2
        back = xp.from_dlpack(there)
    assert float(xp.max(back)) == 2_000_000.0
    stream.synchronize()


def test_operators_with_cupy_are_refused(cupy: ModuleType) -> None:
    xp = numr.namespace("cuda")
    x, there = xp.ones((2, 2)), cupy.ones((2, 2))
    for apply in MIXED:
        with pytest.raises(TypeError):
            apply(x, there)
