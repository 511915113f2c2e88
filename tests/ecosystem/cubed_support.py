"""What the tests of cubed share: cubed on a namespace of numr, and a check that its chunks are tensors."""

from __future__ import annotations

import os

import numpy as np
import pytest

#: The namespace of the chunks; the environment may name another one, such as numr.cuda.
BACKEND = os.environ.setdefault("CUBED_BACKEND_ARRAY_API_MODULE", "numr.cpu")

cubed = pytest.importorskip("cubed", reason="cubed is not installed")

from cubed.backend_array_api import namespace  # noqa: E402
from cubed.primitive import blockwise  # noqa: E402

import numr  # noqa: E402

if not BACKEND.startswith("numr."):
    pytest.skip(f"cubed's backend is {BACKEND}, not numr", allow_module_level=True)
assert namespace.__name__ == BACKEND
#: Whether the backend's default dtypes are narrower than NumPy's.
NARROW = namespace.__array_namespace_info__().default_dtypes()["real floating"] != np.float64


def fix_the_check_of_dask_workers() -> None:
    """Take away a check of cubed 0.27 that newer versions of distributed fail.

    An asynchronous client, which cubed opens for each computation, knows no workers yet when it is asked.
    """
    import cubed.runtime.executors.dask as executor

    executor.check_runtime_memory = lambda spec, client: None


class Chunks:
    """The classes of what tasks wrote, seen where cubed makes NumPy arrays of its chunks for Zarr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.classes: set[type] = set()
        original = blockwise.backend_array_to_numpy_array

        def spy(chunk):
            self.classes.add(type(chunk))
            return original(chunk)

        monkeypatch.setattr(blockwise, "backend_array_to_numpy_array", spy)

    def assert_tensors(self) -> None:
        assert self.classes == {numr.Tensor}


def to_numpy(array) -> np.ndarray:
    """The elements of a lazy array, which must come as a tensor."""
    tensor = array.compute(executor=cubed.runtime.create.create_executor("single-threaded"))
    assert isinstance(tensor, numr.Tensor), type(tensor)
    return tensor.to_numpy()


def assert_same(actual: np.ndarray, expected, rtol: float | None = None) -> None:
    """Equal shapes and dtypes, and elements within a few units of the last place.

    On devices whose default dtypes have 32 bits the kind alone is compared.
    """
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    if NARROW:
        assert actual.dtype.kind == expected.dtype.kind
    else:
        assert actual.dtype == expected.dtype
    itemsize = actual.dtype.itemsize // (2 if actual.dtype.kind == "c" else 1)
    if itemsize == 4:
        rtol = 2e-5 if NARROW else 2e-6
    elif rtol is None:
        rtol = 1e-12
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-6 if itemsize == 4 else 1e-14)
