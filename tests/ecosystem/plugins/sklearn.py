"""scikit-learn's array-API tests, which take their namespaces, devices and dtypes from three generators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.utils import _array_api

from tests.ecosystem.plugins import target

NAMESPACE = target.namespace().__name__


def _combinations(include_numpy_namespaces: bool = True) -> Iterator[tuple[Any, ...]]:
    for dtype in target.dtypes():
        yield NAMESPACE, None, dtype


def _namespaces(include_numpy_namespaces: bool = True) -> Iterator[str]:
    yield NAMESPACE


def _mixed() -> Iterator[tuple[Any, ...]]:
    pair = _array_api.NamespaceAndDevice
    yield pair(NAMESPACE, None), pair("numpy", None), f"{NAMESPACE} to numpy"
    yield pair("numpy", None), pair(NAMESPACE, None), f"numpy to {NAMESPACE}"


_array_api.yield_namespace_device_dtype_combinations = _combinations
_array_api.yield_namespaces = _namespaces
_array_api.yield_mixed_namespace_input_permutations = _mixed
