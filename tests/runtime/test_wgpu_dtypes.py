"""Dtypes on WebGPU adapters without 64-bit types: what is refused, what is narrowed on request, and the defaults."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numr
import numr.array_api as xp
from numr import dtypes as dt
from numr.array_api.creation_functions import CreationFunctions
from numr.array_api.inspection import NamespaceInfo
from numr.errors import PrecisionWarning, UnsupportedDType
from numr.runtime import client_of
from numr.runtime.wgpu import devices
from numr.tensor.core import Tensor, wrap
from tests.runtime.wgpu_support import require_adapter, variant

pytestmark = pytest.mark.wgpu
require_adapter()

WIDE = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}


@pytest.fixture(scope="module")
def narrow():
    """Creation functions of a runtime on an adapter without 64-bit types."""
    return CreationFunctions(variant(without={"shader-f64", "shader-int64"}))


@pytest.fixture
def downcast():
    with numr.config.override(float64="downcast"):
        yield


CALLS = {
    "zeros": lambda make, dtype: make.zeros(3, dtype=dtype),
    "full": lambda make, dtype: make.full((2,), 1, dtype=dtype),
    "arange": lambda make, dtype: make.arange(4, dtype=dtype),
    "linspace": lambda make, dtype: make.linspace(0, 4, 5, dtype=dtype),
    "eye": lambda make, dtype: make.eye(2, dtype=dtype),
    "empty": lambda make, dtype: make.empty((2,), dtype=dtype),
    "asarray": lambda make, dtype: make.asarray([1, 2], dtype=dtype),
    "asarray of an array": lambda make, dtype: make.asarray(np.ones(2, dtype)),
    "asarray of a tensor": lambda make, dtype: make.asarray(make.ones(2), dtype=dtype),
    "astype": lambda make, dtype: xp.astype(make.ones(2), dtype),
    "ones_like": lambda make, dtype: xp.ones_like(make.ones(2), dtype=dtype),
    "from_dlpack": lambda make, dtype: make.from_dlpack(np.ones(2, dtype)),
    "to_device": lambda make, dtype: to_device(client_of("cpu"), make, dtype),
}


def to_device(cpu, make, dtype):
    """What ``to_device`` does for a target that no registry knows."""
    target = make._client(None)
    x = wrap(cpu.from_host(np.ones(2, dtype), copy=True), cpu)
    original = numr.tensor.core.client_of
    numr.tensor.core.client_of = lambda device: target
    try:
        return x.to_device("wgpu:0")
    finally:
        numr.tensor.core.client_of = original


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", WIDE)
def test_a_dtype_that_the_adapter_has_not_is_refused(narrow, name, dtype):
    with pytest.raises(UnsupportedDType) as error:
        CALLS[name](narrow, np.dtype(dtype))
    message = str(error.value)
    assert f"the device wgpu:0 ({devices.adapters()[0]}) has no {dtype}" in message
    assert devices.feature_of(np.dtype(dtype)) in message
    assert WIDE[dtype] in message
    assert "numr.config.float64 = 'downcast'" in message


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.usefixtures("downcast")
def test_it_is_narrowed_on_request(narrow, name, dtype):
    with pytest.warns(PrecisionWarning, match=f"no {dtype}.*{WIDE[dtype]} is taken") as record:
        result = CALLS[name](narrow, np.dtype(dtype))
    assert result.dtype == WIDE[dtype]
    assert record[0].filename == __file__
    if name != "empty":
        expected = {"arange": [0, 1, 2, 3], "linspace": [0, 1, 2, 3, 4], "zeros": [0, 0, 0]}
        expected |= {"eye": [[1, 0], [0, 1]], "asarray": [1, 2]}
        assert result.tolist() == expected.get(name, [1, 1])


def test_views_of_memory_are_never_narrowed(narrow, downcast):
    with pytest.raises(UnsupportedDType, match=r"view: .*float64"):
        narrow.ones(4).view(numr.float64)


def test_operands_that_promote_to_what_the_adapter_has_not(narrow):
    x, y = narrow.asarray([-1, 2], dtype=xp.int32), narrow.asarray([1, 2], dtype=xp.uint32)
    for call in (
        lambda: x + y,
        lambda: xp.result_type(x, y),
        lambda: xp.concat([x, y]),
        lambda: x.__iadd__(y),
    ):
        with pytest.raises(UnsupportedDType, match=r"int64.*shader-int64"):
            call()
        with numr.config.override(float64="downcast"), pytest.warns(PrecisionWarning):
            result = call()
        assert (result.dtype if isinstance(result, Tensor) else result) == "int32"
    # Prepared under the setting, and refused without it all the same.
    with pytest.raises(UnsupportedDType, match=r"add: .*int64.*shader-int64"):
        x + y


def test_wide_host_arrays_are_converted_where_the_dtype_is_named(narrow):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = narrow.asarray(np.array([0.1, 1e300, -2.5]), dtype=xp.float32)
        with np.errstate(over="ignore"):
            assert x.to_numpy().tolist() == np.float32([0.1, 1e300, -2.5]).tolist()
        y = narrow.asarray(np.array([2.5, -7.9, 1e9]), dtype=xp.int32)
        assert y.tolist() == [2, -7, 10**9]
        z = narrow.zeros(3)
        z[1:] = np.array([0.1, 0.2])
        z[0] = 7.5
        assert z.to_numpy().tolist() == np.float32([7.5, 0.1, 0.2]).tolist()
        z[[0, 2]] = [1.5, 2.5]
        assert z[np.array([2, 0])].tolist() == [2.5, 1.5]


def test_defaults_are_the_same_on_every_adapter(narrow):
    for make in (narrow, CreationFunctions(variant())):
        assert make.asarray(1.5).dtype == xp.float32
        assert make.asarray([1, 2]).dtype == xp.int32
        assert make.asarray(1j).dtype == xp.complex64
        assert make.zeros(2).dtype == xp.float32
        assert make.arange(3).dtype == xp.int32
        assert make.linspace(0, 1, 3).dtype == xp.float32
        assert (make.asarray([1, 2]) / 2).dtype == xp.float32
        assert xp.astype(make.asarray([1]), xp.int8).dtype == xp.int8
        info = NamespaceInfo(make._runtime)
        assert info.default_dtypes() == {
            "real floating": np.dtype("float32"),
            "complex floating": np.dtype("complex64"),
            "integral": np.dtype("int32"),
            "indexing": np.dtype("int32"),
        }
    lacking = {str(d) for d in dt.STANDARD_DTYPES} - set(NamespaceInfo(narrow._runtime).dtypes())
    assert lacking == set(WIDE)


def test_integers_beyond_the_default_dtype_are_not_cut_off(narrow):
    for value in (2**31, -(2**31) - 1):
        with pytest.raises(OverflowError, match=r"asarray: .*out of the range of int32.*wider"):
            narrow.asarray([0, value])
        with pytest.raises(OverflowError):
            narrow.asarray(value)
    assert narrow.asarray([2**31 - 1, -(2**31)]).tolist() == [2**31 - 1, -(2**31)]


def test_indices_of_wider_dtypes_stay_out_of_range(narrow):
    for make in (narrow, CreationFunctions(variant())):
        x = make.arange(5)
        for index in (np.array([2**32]), np.array([-(2**32)]), np.array([2**63], np.uint64)):
            with pytest.raises(IndexError, match="getitem"):
                x[index]
    if dt.int64 in make._client(None).dtypes:
        for index in ([2**32], [-(2**32) + 1]):
            with pytest.raises(IndexError, match="getitem"):
                x[make.asarray(index, dtype=xp.int64)]
        assert x[make.asarray([-1, 2], dtype=xp.int64)].tolist() == [4, 2]
        assert x[make.asarray([1], dtype=xp.uint64)].tolist() == [1]
