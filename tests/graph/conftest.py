"""Namespaces that capture graphs, each with its own kernels and with computations composed of its operations."""

from __future__ import annotations

import numpy as np
import pytest

import numr
from numr.runtime import runtime
from numr.runtime.client import RuntimeClient

CAPTURING = [name for name in numr.available() if runtime(name).supports_graph_capture()]


@pytest.fixture(
    params=[(name, own) for name in CAPTURING for own in (True, False)],
    ids=lambda p: f"{p[0]}-{'own' if p[1] else 'composed'}",
)
def xp(request, monkeypatch):
    """A namespace; without kernels of its own for fused computations, everything that could be fused is."""
    name, own = request.param
    namespace = numr.namespace(name)
    if not own:
        rt = runtime(name)
        cls = type(rt.default_client(rt.default_device()))
        monkeypatch.setattr(cls, "fuses", lambda self, op, compute: True)
        monkeypatch.setattr(cls, "fusion_recomputes", True)
        monkeypatch.setattr(cls, "fusion_epilogues", True)
        monkeypatch.setattr(cls, "fuses_rows", lambda self, shape, axes, dtypes: True)
        for method in ("fused", "reduce_fused", "fused_rows"):
            monkeypatch.setattr(cls, method, getattr(RuntimeClient, method))
    return namespace


@pytest.fixture
def client(xp):
    return xp.zeros(1)._client


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def same(x, y):
    """Whether two tensors are equal to the bit, but for what a NaN holds."""
    a, b = x.to_numpy(), y.to_numpy()
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "fc":
        parts = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
        return all(
            bool(
                np.all((np.isnan(p) & np.isnan(q)) | ((p == q) & (np.signbit(p) == np.signbit(q))))
            )
            for p, q in parts
        )
    return bool(np.all(a == b))


def close(x, y):
    """Whether two tensors are equal but for rounding in transcendental functions."""
    a, b = x.to_numpy(), y.to_numpy()
    eps = np.finfo(a.dtype).eps if a.dtype.kind in "fc" else 0
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and np.allclose(a, b, 64 * eps, 64 * eps, equal_nan=True)
    )
