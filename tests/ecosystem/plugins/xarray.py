"""xarray's tests of array-API namespaces, which import array_api_strict: numr's namespace takes its name."""

from __future__ import annotations

import sys
from types import ModuleType

import numr
from tests.ecosystem.plugins import target

_arrays = ModuleType("array_api_strict._array_object")
_arrays.Array = numr.Tensor  # type: ignore[attr-defined]
sys.modules["array_api_strict"] = target.namespace()
sys.modules["array_api_strict._array_object"] = _arrays

# The tests assert that data are tensors and then compare them as ``np.asarray(data)``.
numr.config.allow_host_copies = True
