"""How the functions that need a runtime are bound to one."""

from __future__ import annotations

import importlib
from typing import Any

from numr.runtime.base import Runtime
from numr.runtime.client import RuntimeClient
from numr.runtime.device import Device


class RuntimeFunctions:
    """Functions of one runtime's namespace, as methods that the namespace re-exports.

    Parameters
    ----------
    runtime : type of Runtime
        The runtime of the namespace.
    """

    def __init__(self, runtime: type[Runtime]) -> None:
        self._runtime = runtime

    def _client(self, device: Device | str | None) -> RuntimeClient[Any]:
        runtime = self._runtime
        if device is None:
            return runtime.default_client(runtime.default_device())
        return runtime.default_client(runtime.device(device))

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickled namespace function names its runtime; whoever loads it binds its own.
        return _bound, (type(self), self._runtime.__module__, self._runtime.__qualname__)


def _bound(cls: type[RuntimeFunctions], module: str, name: str) -> RuntimeFunctions:
    return cls(getattr(importlib.import_module(module), name))
