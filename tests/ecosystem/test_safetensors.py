"""The safetensors library and numr read each other's files."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import numr

safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")

HOSTS = {
    name: np.arange(6).reshape(2, 3).astype(dtype)
    for name, dtype in {
        "flags": "?",
        "bytes": "u1",
        "short": "i2",
        "int": "i4",
        "half": "f2",
        "single": "f4",
    }.items()
}


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


def test_the_library_reads_what_numr_writes(xp: ModuleType, tmp_path) -> None:
    file = tmp_path / "x.safetensors"
    numr.save_safetensors(file, {name: xp.asarray(host) for name, host in HOSTS.items()})
    found = safetensors.load_file(file)
    assert set(found) == set(HOSTS)
    for name, host in HOSTS.items():
        np.testing.assert_array_equal(found[name], host, strict=True)


def test_numr_reads_what_the_library_writes(xp: ModuleType, tmp_path) -> None:
    file = tmp_path / "x.safetensors"
    safetensors.save_file(HOSTS, file, metadata={"format": "np"})
    found = numr.load_safetensors(file, device=xp.zeros(1).device)
    assert set(found) == set(HOSTS)
    for name, host in HOSTS.items():
        np.testing.assert_array_equal(found[name].to_numpy(), host, strict=True)
