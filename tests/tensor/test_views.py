"""Storage and layout of tensors: what a view shares, and what a layout rebuilds."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import numr
from numr.errors import IndexingError
from numr.layout import Layout
from tests.tensor.strategies import arrays


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


@given(host=arrays())
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_an_array_is_its_storage_and_its_layout(xp: ModuleType, host: np.ndarray) -> None:
    if host.dtype not in xp.__array_namespace_info__().dtypes().values():
        return
    x = xp.asarray(host)
    layout = x.layout
    assert layout.shape == x.shape == host.shape
    assert layout.size == x.size
    rebuilt = x._like(x._client.wrap(x.storage, layout, x.dtype))
    np.testing.assert_array_equal(rebuilt.to_numpy(), host)


def test_views_share_one_storage(xp: ModuleType) -> None:
    x = xp.zeros((300, 400))
    handle = x.storage.handle
    for view in (
        x[1:],
        x.mT,
        xp.flip(x, axis=0),
        xp.reshape(x, (-1,)),
        xp.broadcast_to(x, (2, 300, 400)),
    ):
        assert view.storage.handle == handle
    assert x[3].layout.offset == 1200
    assert xp.flip(x, axis=1).strides == (400, -1)
    assert xp.broadcast_to(x[0], (5, 400)).strides == (0, 1)
    assert (x + 1).storage.handle != handle
    assert x.is_contiguous
    assert not x.mT.is_contiguous
    assert x.mT.contiguous().layout == Layout.contiguous((400, 300))
    assert x.contiguous().storage.handle == handle


def test_a_view_keeps_the_memory_and_its_end_gives_it_back(xp: ModuleType) -> None:
    allocator = xp.zeros(1)._client.allocator
    before = allocator.stats().active_bytes
    x = xp.zeros((1000, 1000))
    size = x.nbytes
    view = x[10, :10]
    del x
    assert allocator.stats().active_bytes == before + size
    del view
    assert allocator.stats().active_bytes == before


def test_real_and_imaginary_parts_and_bit_views() -> None:
    import numr.cpu as xp

    z = xp.asarray([1 + 2j, 3 + 4j])
    assert z.real.tolist() == [1.0, 3.0]
    assert z.imag.tolist() == [2.0, 4.0]
    bits = xp.asarray([1.0, -0.0]).view(xp.uint64)
    assert bits.tolist() == [0x3FF0000000000000, 0x8000000000000000]
    assert z.view(xp.float64).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_bytes_off_whole_elements_have_no_layout() -> None:
    import numr.cpu as xp

    record = np.zeros(3, dtype=[("flag", "u1"), ("value", "<f8")])
    with pytest.raises(IndexingError, match=r"layout: .*whole elements.*contiguous"):
        xp.asarray(record["value"]).layout  # noqa: B018
