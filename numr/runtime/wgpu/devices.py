"""Adapters as devices: which there are, what they can do, and why there are none.

An adapter is what WebGPU calls a way to use one piece of hardware: hardware and an interface such as Vulkan.
Each becomes a device, ``wgpu:0`` for the most powerful one. Two variables of the environment change that, and
are read when adapters are first looked for:

``NUMR_WGPU_ADAPTER``
    The number of an adapter, or part of its name, interface or kind, such as ``llvmpipe`` or ``OpenGL``. Only
    those that match are devices then, numbered from 0. OpenGL adapters are used only when named so, because
    they have no 64-bit types.
``NUMR_WGPU_DISABLE``
    Names of features, separated by commas, that are not used even where an adapter has them.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from numr import dtypes as dt
from numr.dtypes import DefaultDTypes, DType
from numr.errors import RuntimeUnavailable
from numr.runtime.device import Device

__all__ = [
    "DEFAULTS",
    "USED_FEATURES",
    "Adapter",
    "WgpuDevice",
    "adapters",
    "dtypes_of",
    "feature_of",
    "why",
]

#: Features that are asked for where an adapter has them. The others serve drawing, are experimental, or, as
#: ``mappable-primary-buffers``, slow discrete GPUs down by their presence.
USED_FEATURES = frozenset(
    {
        "immediates",
        "shader-f16",
        "shader-f64",
        "shader-float32-atomic",
        "shader-int64",
        "shader-int64-atomic-all-ops",
        "shader-int64-atomic-min-max",
        "subgroup",
        "subgroup-barrier",
        "timestamp-query",
        "timestamp-query-inside-encoders",
        "timestamp-query-inside-passes",
    }
)

#: Interfaces in the order of preference where several reach the same hardware: Vulkan has the most types.
_INTERFACES = ("Vulkan", "Metal", "D3D12")
_KINDS = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU")

_NVIDIA = 0x10DE

_INSTALL = "Run: pip install 'numr[wgpu]'"
_REINSTALL = "Run: pip install --force-reinstall 'wgpu>=0.32,<0.33'"


@dataclass(frozen=True)
class Adapter:
    """One way to use one piece of hardware.

    Attributes
    ----------
    gpu : wgpu.GPUAdapter
        The adapter itself.
    name, interface, kind : str
        Product, such as ``"llvmpipe"``; ``"Vulkan"``, ``"Metal"``, ``"D3D12"`` or ``"OpenGL"``;
        ``"DiscreteGPU"``, ``"IntegratedGPU"``, ``"CPU"`` or ``"Unknown"``.
    features : frozenset of str
        Features that numr uses of it.
    limits : dict of str to int
        What it can do at most, by WebGPU's names.
    """

    gpu: Any
    name: str
    interface: str
    kind: str
    hardware: tuple[int, int]
    features: frozenset[str]
    limits: dict[str, int]

    @property
    def is_cpu(self) -> bool:
        """Whether the adapter computes on the host's processor."""
        return self.kind == "CPU"

    @property
    def in_order(self) -> bool:
        """Whether workgroups that have begun go on, so that one may wait for those that began before it.

        WebGPU does not promise it. It is so on NVIDIA's hardware.
        """
        return not self.is_cpu and self.hardware[0] == _NVIDIA

    def __str__(self) -> str:
        return f"{self.name} ({self.interface}, {self.kind})"


class WgpuDevice(Device):
    """A WebGPU adapter, by its number.

    Examples
    --------
    >>> str(WgpuDevice(1))
    'wgpu:1'
    """

    __slots__ = ()

    runtime: ClassVar[str] = "wgpu"

    @property
    def name(self) -> str:
        """Product and interface, as the adapter gives them."""
        found = _found()
        if isinstance(found, tuple) and self.id < len(found):
            return str(found[self.id])
        return f"wgpu device {self.id}"


#: The default dtypes, on every adapter: those that all of them have, so that a program means the same on each.
#: GPUs compute in 32 bits many times as fast as in 64, and no binding has more elements than int32 counts.
DEFAULTS: Final = DefaultDTypes(dt.float32, dt.complex64, dt.int32, dt.int32)


def dtypes_of(features: frozenset[str]) -> tuple[DType, ...]:
    """The dtypes that a device with these features computes with.

    WGSL has 32-bit types everywhere; bool and the 8 and 16-bit integers are packed into 32-bit words. The bits of
    64-bit floats are worked on as 64-bit integers.

    Examples
    --------
    >>> [str(d) for d in dtypes_of(frozenset()) if d.itemsize == 8]
    ['complex64']
    """
    missing: set[DType] = set()
    if "shader-f16" not in features:
        missing |= {dt.float16}
    if not {"shader-f64", "shader-int64"} <= features:
        missing |= {dt.float64, dt.complex128}
    if "shader-int64" not in features:
        missing |= {dt.int64, dt.uint64}
    return tuple(dtype for dtype in dt.ALL_DTYPES if dtype not in missing)


def feature_of(dtype: DType) -> str:
    """The feature that a dtype needs, as errors name it; empty where none is needed."""
    if dtype == dt.float16:
        return "the feature shader-f16"
    if dtype in (dt.float64, dt.complex128):
        return "the features shader-f64 and shader-int64"
    return "the feature shader-int64" if dtype in (dt.int64, dt.uint64) else ""


def adapters() -> tuple[Adapter, ...]:
    """All adapters that are devices, by their numbers.

    Raises
    ------
    RuntimeUnavailable
        If there is none.
    """
    found = _found()
    if isinstance(found, RuntimeUnavailable):
        raise found
    return found


def why() -> RuntimeUnavailable | None:
    """Why there are no devices; None where there are some."""
    found = _found()
    return found if isinstance(found, RuntimeUnavailable) else None


def forget() -> tuple[Adapter, ...]:
    """Look for adapters anew at the next question; returns those known before."""
    global _cached
    before, _cached = _cached, None
    return before if isinstance(before, tuple) else ()


def are_started() -> bool:
    """Whether drivers run in this process, or are left in it by a fork."""
    return _started


def forget_in_child() -> tuple[Adapter, ...]:
    """Do what :func:`forget` does in the child of a fork, where drivers of hardware do not answer any more.

    They have threads, and files that they share with the parent, so that even connecting anew may wait for ever:
    NVIDIA's does. Adapters in software are found again.
    """
    global _cached  # noqa: PLW0603  (as above)
    before = forget()
    if _hardware:
        _cached = _unavailable(
            f"this process was forked from one that had started the driver of {_hardware}, which does not survive a "
            "fork",
            "Start workers with multiprocessing.get_context('spawn'), or fork before the first use of WebGPU",
        )
    return before


_cached: tuple[Adapter, ...] | RuntimeUnavailable | None = None
#: Whether this process, or one that it was forked from, has started drivers; and an adapter in hardware among theirs.
_started = False
_hardware = ""
#: Held while adapters are looked for and devices are opened.
lock = threading.RLock()


def _found() -> tuple[Adapter, ...] | RuntimeUnavailable:
    global _cached  # noqa: PLW0603  (the one answer of the process)
    if _cached is None:
        with lock:
            if _cached is None:
                _cached = _look()
    return _cached


@contextmanager
def _some_runtime_folder() -> Iterator[None]:
    """A folder for sockets, where the user has none: drivers look for a screen there and complain on stderr."""
    name = "XDG_RUNTIME_DIR"
    if name in os.environ or not sys.platform.startswith("linux"):
        yield
        return
    os.environ[name] = tempfile.gettempdir()
    try:
        yield
    finally:
        del os.environ[name]


def _look() -> tuple[Adapter, ...] | RuntimeUnavailable:
    global _started, _hardware  # noqa: PLW0603  (what the process has done)
    try:
        import wgpu
    except ModuleNotFoundError as error:
        return _unavailable(f"the package {error.name} is not installed", _INSTALL)
    except (ImportError, OSError, RuntimeError) as error:
        return _unavailable(f"the package wgpu cannot be imported: {_line(error)}", _REINSTALL)
    _started = True
    try:
        with _some_runtime_folder():
            everything = wgpu.gpu.enumerate_adapters_sync()
    except (ImportError, OSError, RuntimeError) as error:  # the library is loaded on its first use
        return _unavailable(f"the library of wgpu does not work: {_line(error)}", _REINSTALL)
    disabled = _names("NUMR_WGPU_DISABLE")
    unknown = disabled - USED_FEATURES.union(*(adapter.features for adapter in everything))
    if unknown:
        return _unavailable(
            f"NUMR_WGPU_DISABLE names {', '.join(sorted(unknown))}, which is no feature",
            f"Features are {', '.join(sorted(USED_FEATURES))}",
        )
    found = sorted(
        (_describe(adapter, disabled) for adapter in everything),
        key=lambda adapter: _rank(_KINDS, adapter.kind),
    )
    # Its driver is started, whether the adapter is chosen or not.
    _hardware = next((str(adapter) for adapter in found if not adapter.is_cpu), _hardware)
    usable = _usable(found)
    wanted = os.environ.get("NUMR_WGPU_ADAPTER", "").strip()
    if wanted:
        chosen = _choose(wanted, usable, found)
        if not chosen:
            return _unavailable(
                f"NUMR_WGPU_ADAPTER is {wanted!r}, which no adapter matches",
                f"There are {', '.join(str(adapter) for adapter in found) or 'none'}",
            )
        return chosen
    return usable or _no_adapter(found)


def _describe(gpu: Any, disabled: frozenset[str]) -> Adapter:
    info = gpu.info
    return Adapter(
        gpu,
        name=info["device"] or info["description"] or info["vendor"] or "unnamed adapter",
        interface=info["backend_type"],
        kind=info["adapter_type"],
        hardware=(info["vendor_id"], info["device_id"]),
        features=(frozenset(gpu.features) & USED_FEATURES) - disabled,
        limits=dict(gpu.limits),
    )


def _usable(found: list[Adapter]) -> tuple[Adapter, ...]:
    """Adapters without OpenGL's, and those of one interface alone for each hardware."""
    best: dict[tuple[int, int], int] = {}
    for adapter in found:
        rank = _rank(_INTERFACES, adapter.interface)
        best[adapter.hardware] = min(rank, best.get(adapter.hardware, rank))
    return tuple(
        adapter
        for adapter in found
        if adapter.interface in _INTERFACES
        and _INTERFACES.index(adapter.interface) == best[adapter.hardware]
    )


def _choose(wanted: str, usable: tuple[Adapter, ...], found: list[Adapter]) -> tuple[Adapter, ...]:
    if wanted.isdecimal():
        return usable[int(wanted) : int(wanted) + 1]
    matches = [adapter for adapter in found if wanted.lower() in str(adapter).lower()]
    return tuple(adapter for adapter in matches if adapter in usable) or tuple(matches)


def _no_adapter(found: list[Adapter]) -> RuntimeUnavailable:
    reason = "there is no Vulkan, Metal or Direct3D 12 adapter"
    if found:
        reason += f", only {', '.join(str(adapter) for adapter in found)}"
    files = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES")
    if files:
        reason += f"; Vulkan's loader is told to use the driver {files} alone"
    if not sys.platform.startswith("linux"):
        return _unavailable(reason, "Install the driver of the graphics card")
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        return _unavailable(
            f"{reason}, because Vulkan's loader libvulkan.so.1 is missing",
            "Run: apt-get install libvulkan1 mesa-vulkan-drivers (or your system's packages of "
            "these names)",
        )
    return _unavailable(
        reason,
        "Install the driver of the graphics card, or an adapter in software: "
        "apt-get install mesa-vulkan-drivers. What Vulkan sees is shown by: vulkaninfo --summary",
    )


def _unavailable(reason: str, remedy: str) -> RuntimeUnavailable:
    return RuntimeUnavailable("wgpu", reason, f"{remedy}.")


def _line(error: BaseException) -> str:
    """The error in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _names(variable: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, os.environ.get(variable, "").split(","))))


def _rank(order: tuple[str, ...], name: str) -> int:
    return order.index(name) if name in order else len(order)
