"""What the tests of reductions and scans on WebGPU share."""

from __future__ import annotations

import numpy as np

from numr.layout import Layout
from numr.runtime.wgpu import WgpuRuntime
from numr.runtime.wgpu.reductions import Reductions
from tests.runtime.toy_runtime import refuse
from tests.runtime.wgpu_support import require_adapter

require_adapter()

#: Kernels for software adapters, and for GPUs. Those for GPUs whose workgroups begin and go on in order are tested
#: with scans; a software adapter with one thread is like that.
FORMS = ("software", "gpu")


def client_of(runtime=WgpuRuntime, form="software"):
    """A client that runs the kernels of a kind of adapter, whatever the adapter is."""
    names = {name: refuse(name) for name in Reductions.__abstractmethods__}
    client = type("C", (Reductions,), {"runtime": runtime, **names})(runtime.default_device())
    client.context.is_cpu = form == "software"
    adapter = client.allocator.adapter
    client.context.in_order = form == "ordered" and (adapter.is_cpu or adapter.in_order)
    return client


CLIENTS = {form: client_of(form=form) for form in (*FORMS, "ordered")}
DTYPES = CLIENTS["software"].dtypes


def values(shape, dtype, seed=0):
    """Small numbers of every sign, whose products stay in range."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(-9 if dtype.kind == "i" else 0, 10, shape).astype(dtype)
    numbers = rng.choice([-1.25, -1.0, -0.75, 0.75, 1.0, 1.25], shape)
    if dtype.kind == "c":
        numbers = numbers + 1j * rng.choice([-0.5, 0.25, 0.5], shape)
    return numbers.astype(dtype)


def exact(dtype):
    """A dtype to compute a reference in."""
    return {"f": np.dtype("f8"), "c": np.dtype("c16")}.get(dtype.kind, dtype)


def assert_same(got, expected, dtype, context=None):
    assert got.dtype == dtype
    assert got.shape == expected.shape, context
    if dtype.kind in "fc" and dtype.itemsize // (1 + (dtype.kind == "c")) < 8:
        eps = float(np.finfo(dtype).eps)
        np.testing.assert_allclose(
            got, expected, rtol=4 * eps, atol=30 * eps, err_msg=context or ""
        )
    elif dtype.kind in "fc":
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-12, err_msg=context or "")
    else:
        np.testing.assert_array_equal(got, expected, err_msg=context or "")


def wide(dtype):
    """What sums and products of a dtype are asked in."""
    return np.dtype("int32") if dtype.kind == "b" else dtype


def views(client, dtype):
    """Arrays of any layout, with the same as NumPy has it."""
    base = values((6, 7, 8), dtype)
    whole = client.from_host(base, copy=True)
    yield base, whole
    yield (
        base[::-1, :, ::-2],
        client.wrap(whole.storage, Layout((6, 7, 4), (-56, 8, -2), 5 * 56 + 7), whole.dtype),
    )
    yield base.transpose(2, 0, 1), client.permute(whole, (2, 0, 1))
    yield (
        base[1:, 3, 1:],
        client.wrap(whole.storage, Layout((5, 7), (56, 1), 56 + 24 + 1), whole.dtype),
    )
    row = base[2, 3:4, :]
    yield (
        np.broadcast_to(row, (9, 5, 8)),
        client.wrap(whole.storage, Layout((9, 5, 8), (0, 0, 1), 2 * 56 + 24), whole.dtype),
    )
    yield (
        np.broadcast_to(base[2, 3, 4], (40, 3)),
        client.wrap(whole.storage, Layout((40, 3), (0, 0), 2 * 56 + 24 + 4), whole.dtype),
    )
    yield base[0, 0, 0], client.wrap(whole.storage, Layout((), ()), whole.dtype)


#: Shapes and axes: few and many results of short and long lines.
SHAPES = [
    *[((n,), 0) for n in (1, 3, 4, 5, 63, 513, 2047, 33333)],
    *[((3, 70001), 1), ((70001, 3), 0), ((1500, 4), 0), ((4, 1500), 1), ((2, 3000, 5), 1)],
    *[((700, 30), 1), ((30, 700), 0), ((3000, 2), 1), ((2, 3000), 0), ((64, 1024), 0)],
]
