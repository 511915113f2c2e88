"""einops on tensors, by its own functions and by those that it has for array-API namespaces."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numr

einops = pytest.importorskip("einops")
pytest.importorskip("numr.interop.einops")

from einops import array_api  # noqa: E402

MODULES = pytest.mark.parametrize("module", [einops, array_api], ids=["einops", "array_api"])


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


def sample() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).random((2, 3, 4, 5), dtype=np.float32)


def check(xp: ModuleType, got: Any, expected: np.ndarray[Any, Any], *, exact: bool = True) -> None:
    assert isinstance(got, numr.Tensor)
    assert got.device == xp.__array_namespace_info__().default_device()
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.to_numpy(), expected, rtol=0 if exact else 1e-5)


@MODULES
@pytest.mark.parametrize(
    "pattern", ["b c h w -> b h w c", "b c h w -> (b h) (w c)", "b c ... -> c (b ...)"]
)
def test_rearrange(xp: ModuleType, module: Any, pattern: str) -> None:
    host = sample()
    check(xp, module.rearrange(xp.asarray(host), pattern), einops.rearrange(host, pattern))


@MODULES
def test_rearrange_splits_axes_and_takes_lists(xp: ModuleType, module: Any) -> None:
    host = sample()
    pattern = "b c (h two) w -> two b (h c) w"
    check(
        xp,
        module.rearrange(xp.asarray(host), pattern, two=2),
        einops.rearrange(host, pattern, two=2),
    )
    rows = [xp.asarray(row) for row in host]
    check(xp, module.rearrange(rows, "b c h w -> c b h w"), np.swapaxes(host, 0, 1))


@MODULES
@pytest.mark.parametrize("reduction", ["min", "max", "sum", "mean", "prod"])
def test_reduce(xp: ModuleType, module: Any, reduction: str) -> None:
    host = sample()
    pattern = "b c (h h2) w -> b c h"
    got = module.reduce(xp.asarray(host), pattern, reduction, h2=2)
    expected = einops.reduce(host, pattern, reduction, h2=2)
    check(xp, got, expected, exact=reduction in ("min", "max"))


@MODULES
def test_repeat(xp: ModuleType, module: Any) -> None:
    host = sample()
    pattern = "b c h w -> b (c k) h w k2"
    got = module.repeat(xp.asarray(host), pattern, k=3, k2=2)
    check(xp, got, einops.repeat(host, pattern, k=3, k2=2))


@MODULES
def test_pack_and_unpack(xp: ModuleType, module: Any) -> None:
    hosts = [sample()[0], sample()[0, :, 0], sample()[0, ..., :2]]
    packed, shapes = module.pack([xp.asarray(host) for host in hosts], "c *")
    expected, expected_shapes = einops.pack(hosts, "c *")
    check(xp, packed, expected)
    assert [tuple(shape) for shape in shapes] == [tuple(shape) for shape in expected_shapes]
    for got, host in zip(module.unpack(packed, shapes, "c *"), hosts, strict=True):
        check(xp, got, host)


def test_einsum_and_asnumpy(xp: ModuleType) -> None:
    host = sample()
    x = xp.asarray(host)
    got = einops.einsum(x, x, "b c h w, b c h v -> b w v")
    check(xp, got, np.einsum("bchw,bchv->bwv", host, host), exact=False)
    assert isinstance(einops.asnumpy(x), np.ndarray)
    assert einops.parse_shape(x, "b c _ w") == {"b": 2, "c": 3, "w": 5}


def test_errors_are_those_of_einops(xp: ModuleType) -> None:
    with pytest.raises(einops.EinopsError, match="rearrange"):
        einops.rearrange(xp.zeros((2, 3), dtype=xp.float32), "a b c -> a")
