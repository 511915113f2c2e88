"""array-api-extra's tests, which take the libraries from an enumeration."""

from __future__ import annotations

import enum
from typing import Any

import array_api_extra._lib._backends as backends
import pytest
from array_api_extra.testing import _testing

import numr
from tests.ecosystem.plugins import target

NAMESPACE = target.namespace().__name__
#: The test of writing floats into integers knows by name which libraries refuse, as numr does.
REFUSAL = "test_incompatible_dtype"

_Known = backends.Backend
_running: list[str] = []


def _like(self: Any, *others: Any) -> bool:
    if self.value == NAMESPACE and _running == [REFUSAL]:
        return Backend.ARRAY_API_STRICT in others
    return bool(_Known.like(self, *others))


Backend: Any = enum.Enum(  # type: ignore[misc]
    "Backend",
    {**{member.name: member.value for member in _Known}, "NUMR": NAMESPACE},
    module=backends.__name__,
)
Backend.modname = _Known.__dict__["modname"]
Backend.pytest_param = _Known.__dict__["pytest_param"]
Backend.like = _like
backends.Backend = Backend


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Keep only the tests of numr."""
    kept, dropped = [], []
    for item in items:
        callspec = getattr(item, "callspec", None)
        library = callspec.params.get("library") if callspec else None
        (kept if getattr(library, "value", None) == NAMESPACE else dropped).append(item)
    config.hook.pytest_deselected(items=dropped)
    items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Any:
    """Remember which test's own code runs, without its fixtures."""
    _running[:] = [getattr(item, "originalname", item.name)]
    try:
        return (yield)
    finally:
        _running.clear()


if not target.in_host_memory():
    # Its comparisons take NumPy arrays, which they make by this function.
    _as_numpy_array = _testing._as_numpy_array
    _testing._as_numpy_array = lambda array, *, xp: (
        array.to_numpy() if isinstance(array, numr.Tensor) else _as_numpy_array(array, xp=xp)
    )
