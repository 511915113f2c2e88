"""Which runtimes there are, by name; each is imported on its first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from numr.errors import DeviceMismatch, RuntimeUnavailable
from numr.runtime.base import Device, Runtime

if TYPE_CHECKING:
    from numr.runtime.client import RuntimeClient

__all__ = [
    "available",
    "client_of",
    "device_of",
    "register",
    "runtime",
    "unavailable",
    "unregister",
]

#: numr's own runtimes: module and class.
BUILTIN: dict[str, tuple[str, str]] = {
    "cpu": ("numr.runtime.cpu", "CpuRuntime"),
    "cuda": ("numr.runtime.cuda", "CudaRuntime"),
    "wgpu": ("numr.runtime.wgpu", "WgpuRuntime"),
}

_registered: dict[str, type[Runtime]] = {}
_clients: dict[Device | str, RuntimeClient[Any]] = {}


def register(runtime_class: type[Runtime]) -> type[Runtime]:
    """Make a runtime known by its name; may be used as a decorator.

    Parameters
    ----------
    runtime_class : type[Runtime]
        A complete runtime.

    Returns
    -------
    type[Runtime]
        The same class.

    Raises
    ------
    TypeError
        If the class is no runtime, or lacks abstract operations or associated types.
    ValueError
        If another runtime has its name.
    """
    if not (isinstance(runtime_class, type) and issubclass(runtime_class, Runtime)):
        raise TypeError(
            f"register: a subclass of numr.runtime.Runtime is needed, not {runtime_class!r}."
        )
    missing = sorted(runtime_class.__abstractmethods__) + [
        name
        for name in ("Device", "Client", "Allocator", "Graph", "RawHandle", "DType", "namespace")
        if not hasattr(runtime_class, name)
    ]
    if missing:
        raise TypeError(
            f"register: {runtime_class.__name__} is not complete; it lacks {', '.join(missing)}."
        )
    name = runtime_class.name()
    if name in BUILTIN or _registered.get(name, runtime_class) is not runtime_class:
        raise ValueError(
            f"register: there is a runtime called {name!r} already. Return another name from "
            f"{runtime_class.__name__}.name()."
        )
    _registered[name] = runtime_class
    return runtime_class


def unregister(name: str) -> None:
    """Forget a runtime that was registered; tensors that it made stay valid.

    Raises
    ------
    RuntimeUnavailable
        If no runtime of that name was registered.
    """
    if name not in _registered:
        raise RuntimeUnavailable(
            name, "it was not registered", "Only such runtimes can be forgotten."
        )
    del _registered[name]
    _clients.clear()


def runtime(name: str) -> type[Runtime]:
    """Find a runtime that can be used.

    Parameters
    ----------
    name : str
        Its name.

    Returns
    -------
    type[Runtime]
        The runtime.

    Raises
    ------
    RuntimeUnavailable
        If there is none of that name, or it cannot be used on this machine.

    Examples
    --------
    >>> runtime("cpu").default_device()
    CpuDevice(0)
    """
    found = _find(name)
    if isinstance(found, RuntimeUnavailable):
        raise found
    return found


def available() -> tuple[str, ...]:
    """Names of the runtimes that can be used on this machine.

    Examples
    --------
    >>> "cpu" in available()
    True
    """
    return tuple(name for name in _names() if not isinstance(_find(name), RuntimeUnavailable))


def unavailable() -> dict[str, RuntimeUnavailable]:
    """Runtimes that cannot be used, each with the error that its use raises: reason and remedy."""
    found = {name: _find(name) for name in _names()}
    return {name: why for name, why in found.items() if isinstance(why, RuntimeUnavailable)}


def device_of(spec: Device | str) -> Device:
    """Find a device of any runtime.

    Parameters
    ----------
    spec : Device or str
        A device or its string. A runtime's name alone means that runtime's default device.

    Returns
    -------
    Device
        The device, which exists.

    Raises
    ------
    DeviceMismatch
        If the runtime has no such device.
    RuntimeUnavailable
        If there is no such runtime.

    Examples
    --------
    >>> device_of("cpu:0")
    CpuDevice(0)
    """
    if isinstance(spec, Device):
        return runtime(spec.runtime).device(spec)
    if isinstance(spec, str):
        return runtime(spec.partition(":")[0]).device(spec)
    raise DeviceMismatch(
        f"device: a Device or its string, such as 'cpu', is needed, not {spec!r} of type "
        f"{type(spec).__name__}."
    )


def client_of(spec: Device | str) -> RuntimeClient[Any]:
    """Find the client of a device of any runtime.

    Takes what :func:`device_of` takes and raises what it raises.
    """
    if isinstance(spec, (Device, str)):
        client = _clients.get(spec)
        if client is not None:
            return client
    device = device_of(spec)
    client = _clients[spec] = runtime(device.runtime).default_client(device)
    return client


def _names() -> tuple[str, ...]:
    return tuple(dict.fromkeys((*BUILTIN, *_registered)))


def _find(name: str) -> type[Runtime] | RuntimeUnavailable:
    found = _registered.get(name)
    if found is None and name in BUILTIN:
        module, attribute = BUILTIN[name]
        found = getattr(importlib.import_module(module), attribute)
    if found is not None:
        why = found.unavailable()
        return found if why is None else why
    return RuntimeUnavailable(
        name,
        "there is no runtime of this name",
        f"Known are {', '.join(_names())}; numr.runtime.register() adds others.",
    )
