"""The way to CuPy and the driver: loaded on first use, and refused with a reason where there is none."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
from functools import cache
from typing import Any

from numr.errors import RuntimeUnavailable

__all__ = ["Process", "count", "library", "require", "unavailable"]

_INSTALL = (
    "Install it with: pip install 'numr[cuda]' (CUDA 13) or pip install 'numr[cuda12]' (CUDA 12)."
)

#: The driver's library, which NVIDIA's driver installs and nothing else.
_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"

#: Status codes of the CUDA runtime.
MEMORY_ALLOCATION = 2
INITIALIZATION_ERROR = 3


class Process:
    """What the driver knows of this process."""

    #: Whether the driver was initialised here, or in a process that this one was forked from.
    initialised = False
    #: Whether this process is a child of one that had initialised the driver.
    forked = False


def _after_fork_in_child() -> None:
    if Process.initialised:
        Process.forked = True


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork_in_child)


def unavailable() -> RuntimeUnavailable | None:
    """Why CUDA cannot be used in this process; None where it can."""
    if Process.forked:
        return _after_fork()
    found = _probe()
    return found if isinstance(found, RuntimeUnavailable) else None


def require() -> None:
    """Raise RuntimeUnavailable unless CUDA can be used in this process."""
    why = unavailable()
    if why is not None:
        raise why


def count() -> int:
    """How many devices there are.

    Raises
    ------
    RuntimeUnavailable
        If CUDA cannot be used in this process.
    """
    require()
    found = _probe()
    assert isinstance(found, int)
    return found


@cache
def library() -> Any:
    """CuPy."""
    return importlib.import_module("cupy")


def is_forked() -> bool:
    """Whether this process inherited a driver that does not work in it."""
    return Process.forked


def _after_fork() -> RuntimeUnavailable:
    return RuntimeUnavailable(
        "cuda",
        "this process was forked from one that had started CUDA, which does not survive a fork",
        "Start workers with multiprocessing.get_context('spawn'), or fork before the first use of CUDA.",
    )


@cache
def _probe() -> int | RuntimeUnavailable:
    """The number of devices, or what is missing."""
    if importlib.util.find_spec("cupy") is None:
        return RuntimeUnavailable("cuda", "CuPy is not installed", _INSTALL)
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return RuntimeUnavailable(
            "cuda",
            f"there is no NVIDIA driver ({_LIBRARY} was not found)",
            "Install NVIDIA's driver; in a container, start it with access to the GPUs.",
        )
    try:
        cupy = library()
    except (ImportError, OSError, RuntimeError) as error:
        return RuntimeUnavailable("cuda", f"CuPy cannot be imported: {error}", _INSTALL)
    Process.initialised = True
    try:
        found = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status == INITIALIZATION_ERROR:
            return _after_fork()
        return RuntimeUnavailable(
            "cuda",
            f"the driver reports: {error}",
            "Check with nvidia-smi that a GPU is there and that the driver fits CuPy's CUDA version.",
        )
    if not found:
        return RuntimeUnavailable(
            "cuda", "the driver sees no GPU", "Check CUDA_VISIBLE_DEVICES and nvidia-smi."
        )
    return found
