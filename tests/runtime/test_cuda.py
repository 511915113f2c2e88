"""What only CUDA has: streams, pipelined copies, memory shared with CuPy, and absence with a reason."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from numr.errors import (
    AllocatorFrozen,
    IndexingError,
    InvalidHandle,
    RuntimeUnavailable,
    ShapeError,
)
from numr.runtime.cuda import CudaDevice, CudaRuntime, driver

WHY = CudaRuntime.unavailable()
needs_gpu = pytest.mark.skipif(WHY is not None, reason=str(WHY))


@pytest.fixture
def xp():
    import numr.cuda

    return numr.cuda


@pytest.fixture
def cupy():
    return driver.library()


@pytest.fixture
def client():
    return CudaRuntime.default_client(CudaRuntime.default_device())


def run(code, **environment):
    """What a program prints, in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


# ------------------------------------------------------------------- absence
def test_without_cupy_the_reason_names_the_package(monkeypatch):
    monkeypatch.setattr(driver.importlib.util, "find_spec", lambda name: None)
    why = driver._probe.__wrapped__()
    assert isinstance(why, RuntimeUnavailable)
    assert "CuPy" in why.reason
    assert "pip install 'numr[cuda]'" in why.remedy


def test_without_a_driver_the_reason_names_its_library(monkeypatch):
    monkeypatch.setattr(driver.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(driver, "_LIBRARY", "no-such-library.so.1")
    why = driver._probe.__wrapped__()
    assert isinstance(why, RuntimeUnavailable)
    assert "no-such-library.so.1" in why.reason
    assert why.remedy


def test_a_child_of_a_fork_is_told_what_to_do(monkeypatch):
    monkeypatch.setattr(driver.Process, "forked", True)
    why = CudaRuntime.unavailable()
    assert isinstance(why, RuntimeUnavailable)
    assert "fork" in why.reason
    assert "spawn" in why.remedy
    with pytest.raises(RuntimeUnavailable, match="fork"):
        CudaRuntime.devices()


def test_import_loads_neither_cupy_nor_the_driver():
    run(
        """
        import sys
        import numr.cuda, numr.runtime.cuda
        assert "cupy" not in sys.modules
        assert not numr.runtime.cuda.driver.Process.initialised
        """
    )


def test_device_strings():
    assert str(CudaDevice(0)) == "cuda:0"
    assert str(CudaDevice(3)) == "cuda:3"


@needs_gpu
def test_a_forked_process_raises_a_clear_error():
    printed = run(
        """
        import os, sys
        import numr
        x = numr.cuda.ones(3)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            caught = 0
            for use in (lambda: x + 1, lambda: numr.cuda.ones(3), lambda: numr.cuda.sum(x)):
                try:
                    use()
                except numr.errors.RuntimeUnavailable as error:
                    caught += "fork" in str(error)
            os._exit(caught)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float(numr.cuda.sum(x)))
        """
    )
    assert printed.split() == ["3", "3.0"]


# -------------------------------------------------------------------- values
@needs_gpu
def test_negative_zeros_survive(xp):
    made = [
        xp.full((3,), -0.0),
        xp.asarray([-0.0] * 3),
        xp.zeros(3) * -1.0,
        xp.full((3,), 5.0) * -0.0,
        -xp.zeros(3),
    ]
    target = xp.ones(3)
    target[:] = -0.0
    made.append(target)
    for x in made:
        assert np.signbit(x.to_numpy()).all()
    assert np.isneginf((1.0 / xp.full((3,), -0.0)).to_numpy()).all()


@needs_gpu
def test_subnormal_numbers_survive(xp):
    tiny = np.float32(1e-45)
    x = xp.asarray(np.full(4, tiny))
    assert (x.to_numpy() == tiny).all()
    assert ((x + x).to_numpy() == 2 * tiny).all()
    assert ((x * 2.0).to_numpy() == 2 * tiny).all()


@needs_gpu
def test_arrays_beyond_two_to_the_31(xp):
    size = 2**31 + 5
    x = xp.zeros(size, dtype=xp.int8)
    x[size - 1] = 3
    x[7] = 1
    assert int(xp.argmax(x)) == size - 1
    assert int(xp.sum(x)) == 4
    y = x + x
    assert int(y[size - 1]) == 6
    assert int(xp.max(y[::2])) == 6
    del x, y
    wide = xp.ones((2, size // 2 + 3), dtype=xp.int8)
    assert int(xp.sum(wide, axis=1)[1]) == size // 2 + 3
    assert int(xp.sum(xp.permute_dims(wide, (1, 0))[::3, :])) == 2 * -(-wide.shape[1] // 3)


@needs_gpu
def test_sorting_by_value_puts_nan_last_whatever_its_sign(xp):
    values = np.array([2.0, np.nan, -0.0, -np.inf, np.copysign(np.nan, -1), 0.0, -3.0])
    for dtype in (np.float32, np.float64, np.float16):
        host = values.astype(dtype)
        x = xp.asarray(host)
        for descending in (False, True):
            order = xp.argsort(x, descending=descending).to_numpy()
            got = xp.sort(x, descending=descending).to_numpy()
            assert np.isnan(got[-2:]).all()
            assert not np.isnan(got[:-2]).any()
            assert (got[:-2] == host[order][:-2]).all()
            keys = -got[:-2] if descending else got[:-2]
            assert (np.diff(keys) >= 0).all()
            # Equal elements keep their order: -0.0 came before 0.0.
            assert list(order[:-2]).index(2) < list(order[:-2]).index(5)


@needs_gpu
def test_the_last_of_many_writes_wins(xp):
    places = np.random.default_rng(1).integers(0, 50, 100_000)
    x = xp.zeros(50, dtype=xp.int64)
    x[xp.asarray(places)] = xp.arange(100_000)
    expected = np.zeros(50, np.int64)
    expected[places] = np.arange(100_000)
    assert (x.to_numpy() == expected).all()


@needs_gpu
def test_an_index_out_of_range_raises_and_writes_nothing(xp):
    x = xp.arange(5)
    bad = xp.asarray([0, 7])
    with pytest.raises(IndexingError, match="7"):
        x[bad]
    with pytest.raises(IndexingError, match="7"):
        x[bad] = 9
    assert x.to_numpy().tolist() == [0, 1, 2, 3, 4]


@needs_gpu
@pytest.mark.parametrize("stack", [(), (3,)])
def test_failed_factorisations_raise(xp, stack):
    singular = xp.zeros((*stack, 4, 4))
    for call in (
        lambda: xp.linalg.inv(singular),
        lambda: xp.linalg.solve(singular, xp.ones((*stack, 4, 2))),
        lambda: xp.linalg.cholesky(singular - 1.0),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            call()
    assert (xp.linalg.det(singular).to_numpy() == 0).all()
    sign, logarithm = xp.linalg.slogdet(singular)
    assert (sign.to_numpy() == 0).all()
    assert np.isneginf(logarithm.to_numpy()).all()


@needs_gpu
@pytest.mark.parametrize("shape", [(1000003,), (3, 70001), (5000, 40), (40, 5000), (7, 300, 5)])
def test_running_sums_along_every_axis(xp, shape):
    host = np.random.default_rng(0).integers(-9, 9, shape)
    for axis in range(len(shape)):
        got = xp.cumulative_sum(xp.asarray(host), axis=axis).to_numpy()
        assert (got == np.cumsum(host, axis=axis)).all()


@needs_gpu
@pytest.mark.parametrize("shape", [(1000003,), (3, 70001), (5000, 40), (40, 5000), (7, 300, 5)])
def test_reductions_over_every_axis(xp, shape):
    host = np.random.default_rng(0).integers(-99, 99, shape)
    x = xp.asarray(host)
    assert int(xp.sum(x)) == host.sum()
    for axis in range(len(shape)):
        assert (xp.sum(x, axis=axis).to_numpy() == host.sum(axis)).all()
        assert (xp.max(x, axis=axis).to_numpy() == host.max(axis)).all()
        assert (xp.argmin(x, axis=axis).to_numpy() == host.argmin(axis)).all()
        assert (xp.any(x > 97, axis=axis).to_numpy() == (host > 97).any(axis)).all()


# ------------------------------------------------------------------- streams
@needs_gpu
def test_work_on_a_stream_of_the_callers_is_in_order(xp, cupy, client):
    stream = cupy.cuda.Stream(non_blocking=True)
    before = client.compute_stream_handle()
    for round_ in range(20):
        x = xp.full((1 << 20,), float(round_))
        with xp.stream(stream):
            assert client.compute_stream_handle() == stream.ptr
            y = x + 1.0
            del x
            z = xp.full((1 << 20,), -1.0)
        assert client.compute_stream_handle() == before
        assert float(xp.max(y)) == float(xp.min(y)) == round_ + 1.0
        assert float(xp.max(z)) == -1.0


@needs_gpu
def test_a_stream_has_to_be_one(xp):
    with pytest.raises(TypeError, match="stream"), xp.stream("default"):
        pass


@needs_gpu
def test_cupys_own_stream_and_allocator_stay_as_they_were(xp, cupy):
    stream = cupy.cuda.Stream(non_blocking=True)
    allocator = cupy.cuda.get_allocator()
    with stream:
        product = xp.ones((8, 8)) @ xp.ones((8, 8))
        assert cupy.cuda.get_current_stream() is stream
    assert cupy.cuda.get_allocator() == allocator
    assert float(product[0, 0]) == 8.0


# ----------------------------------------------------------- pipelined copies
@needs_gpu
def test_a_pipelined_copy_does_not_wait_for_later_work(xp, cupy, client):
    device = client.device
    host = bytearray(1 << 20)
    handle = CudaRuntime.allocate(len(host), device)
    CudaRuntime.copy_to_device(bytes([7]) * len(host), handle, device)
    event = CudaRuntime.record_compute_event(device)
    assert event
    a = xp.ones((4096, 4096))
    for _ in range(30):
        a = a @ xp.ones((4096, 4096))
    later = client.context.new_event()
    CudaRuntime.copy_from_device_pipelined(handle, host, device, event)
    assert not later.done
    assert host == bytes([7]) * len(host)
    client.synchronize()
    assert later.done
    CudaRuntime.deallocate(handle, len(host), device)


@needs_gpu
def test_an_unknown_event_is_refused(client):
    handle = CudaRuntime.allocate(8, client.device)
    with pytest.raises(InvalidHandle, match="event"):
        CudaRuntime.copy_from_device_pipelined(handle, bytearray(8), client.device, 12345)
    CudaRuntime.deallocate(handle, 8, client.device)


# -------------------------------------------------------------------- memory
@needs_gpu
def test_figures_count_every_tensor_and_nothing_of_cupys(xp, cupy, client):
    gc.collect()
    allocator = client.allocator
    before = allocator.stats()
    x = xp.zeros((1000, 1000))
    assert allocator.stats().active_bytes - before.active_bytes == 8_000_000
    view = x[:10]
    del x
    assert allocator.stats().active_bytes - before.active_bytes == 8_000_000
    own = cupy.zeros(10**6)
    assert allocator.stats().active_bytes - before.active_bytes == 8_000_000
    del view, own
    assert allocator.stats().active_bytes == before.active_bytes


@needs_gpu
def test_what_cupy_allocates_inside_a_call_is_numrs(xp, client):
    a = xp.ones((256, 256))
    total = client.allocator.stats().total_allocations
    product = a @ a
    assert client.allocator.stats().total_allocations > total
    client.allocator.freeze()
    try:
        for call in (lambda: a @ a, lambda: a + a, lambda: xp.sort(a), lambda: xp.sum(a)):
            with pytest.raises(AllocatorFrozen):
                call()
    finally:
        client.allocator.unfreeze()
    assert float(product[0, 0]) == 256.0


@needs_gpu
def test_memory_of_a_garbage_cycle_comes_back(xp, client):
    class Node:
        pass

    gc.collect()
    before = client.allocator.stats().active_bytes
    for _ in range(10):
        node = Node()
        node.self = node
        node.tensor = xp.ones(1000) + 1.0
        del node
    gc.collect()
    assert client.allocator.stats().active_bytes == before


# ------------------------------------------------------------------- kernels
@needs_gpu
def test_a_second_process_compiles_nothing(tmp_path):
    code = """
        import numr, numr.cuda as xp
        x = xp.arange(10.0) + 1.0
        y = xp.sum(xp.sin(x))
        counters = x._client.context.compiler.counters
        print(counters.compiled, counters.loaded)
    """
    first = run(code, NUMR_CACHE_DIR=str(tmp_path)).split()
    second = run(code, NUMR_CACHE_DIR=str(tmp_path)).split()
    assert int(first[0]) > 0
    assert first[1] == "0"
    assert second == ["0", first[0]]


@needs_gpu
def test_a_damaged_file_of_the_cache_is_compiled_again(tmp_path):
    code = """
        import numr.cuda as xp
        x = xp.ones(3) + 1.0
        assert x.to_numpy().tolist() == [2.0] * 3
        print(x._client.context.compiler.counters.compiled)
    """
    first = run(code, NUMR_CACHE_DIR=str(tmp_path))
    for file in (tmp_path / "cuda").iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    assert run(code, NUMR_CACHE_DIR=str(tmp_path)) == first


# ------------------------------------------------------------------ exchange
@needs_gpu
def test_dlpack_with_cupy_shares_memory(xp, cupy):
    x = xp.arange(12.0)
    y = cupy.from_dlpack(x)
    assert y.data.ptr == x.storage.handle
    back = xp.from_dlpack(y[::2])
    back[0] = 5.0
    assert float(x[0]) == 5.0
    assert back.shape == (6,)


@needs_gpu
def test_dlpack_refuses_what_it_cannot_do(xp):
    x = xp.arange(3)
    for arguments in (
        {"stream": 0},
        {"stream": -2},
        {"stream": "1"},
        {"dl_device": (2, 99)},
        {"dl_device": (1, 0), "copy": False},
    ):
        with pytest.raises(BufferError):
            x.__dlpack__(**arguments)
    host = np.from_dlpack(x, device="cpu")
    assert host.tolist() == [0, 1, 2]
    with pytest.raises(BufferError):
        xp.from_dlpack(np.arange(3.0), copy=False)
    assert xp.from_dlpack(np.arange(3.0)).to_numpy().tolist() == [0.0, 1.0, 2.0]


@needs_gpu
def test_dlpack_with_torch(xp):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no CUDA here")
    t = torch.from_dlpack(xp.arange(5, dtype=xp.float32))
    assert t.device.type == "cuda"
    t += 1
    assert xp.from_dlpack(t).to_numpy().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


@needs_gpu
def test_dlpack_with_jax(xp):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("jax has no GPU here")
    x = xp.arange(5, dtype=xp.float32)
    assert jax.numpy.from_dlpack(x).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert xp.from_dlpack(jax.numpy.ones(3)).to_numpy().tolist() == [1.0] * 3


@needs_gpu
def test_a_view_that_the_device_cannot_read_is_refused(xp):
    x = xp.arange(9, dtype=xp.int8)
    with pytest.raises(ShapeError, match="1 bytes beyond a multiple of 4"):
        x[1:].view(xp.int32)
    assert xp.asarray(x[1:], copy=True).view(xp.int32).shape == (2,)
    assert x[:8].view(xp.int32).shape == (2,)


@needs_gpu
def test_the_cuda_array_interface(xp, cupy, client):
    x = xp.arange(6.0)
    interface = client.cuda_array_interface(x._data)
    assert interface["version"] == 3
    assert interface["stream"] != 0
    assert interface["data"] == (x.storage.handle, False)
    assert interface["shape"] == (6,)
