"""Kernels from their text: compiled once for each text and kind of device, and kept on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from numr.codegen.cuda import OPTIONS
from numr.runtime.cuda import driver
from numr.runtime.kernel_files import Counters, KernelFiles, cache_folder

__all__ = ["Compiler", "Kernel"]

#: The driver's number for the most bytes that a kernel may be launched with beside what its text says.
_DYNAMIC_SHARED_SIZE: Final = 8


class Kernel:
    """A kernel on the device, and how the values of its arguments are laid out for a launch.

    Attributes
    ----------
    ptr : int
        The driver's handle.
    pack : callable
        Writes values into a buffer, each argument in a slot of 16 bytes; the last may be longer.
    has_tail : bool
        Whether there is such a longer argument.
    shared : int
        Bytes that the threads of a block share beside what the text says.
    """

    __slots__ = ("function", "has_tail", "pack", "ptr", "shared")

    def __init__(self, function: Any, layout: str, shared: int = 0) -> None:
        self.function = function  # keeps the module loaded
        self.ptr = int(function.ptr)
        self.shared = shared
        self.has_tail = layout.endswith("s")
        self.pack: Callable[..., None] = Struct(f"<{layout}").pack_into


class Compiler:
    """Compiles kernels for one device.

    Parameters
    ----------
    device : int
        Number of the device; it has to be the current one whenever a kernel is asked for.

    Attributes
    ----------
    counters : Counters
        Where this device's kernels came from.
    """

    def __init__(self, device: int) -> None:
        self.counters = Counters()
        self._device = device
        self._modules: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._key: str | None = None
        self._files = KernelFiles(cache_folder("cuda"))

    def kernel(self, source: str, arguments: int, tail: int = 0, shared: int = 0) -> Kernel:
        """A kernel of a text, whose arguments are integers and addresses, and at the end a struct of ``tail`` bytes."""
        return self.laid_out(source, "q8x" * arguments + (f"{tail}s" if tail else ""), shared)

    def laid_out(self, source: str, layout: str, shared: int = 0) -> Kernel:
        """A kernel of a text, with the layout of its arguments as ``struct`` has it."""
        with self._lock:
            module = self._modules.get(source)
            if module is None:
                module = self._modules[source] = self._load(source)
            else:
                self.counters.reused += 1
        kernel = Kernel(module.get_function("numr_kernel"), layout, shared)
        if shared:
            # For all kernels of the text, however much each of them takes.
            cuda = driver.library().cuda
            limit = cuda.Device(self._device).attributes["MaxSharedMemoryPerBlockOptin"]
            cuda.driver.funcSetAttribute(kernel.ptr, _DYNAMIC_SHARED_SIZE, limit)
        return kernel

    def _load(self, source: str) -> Any:
        key = self._key_of(source)
        binary = self._files.read(key)
        if binary is None:
            compiler = driver.library().cuda.compiler
            binary, _ = compiler.compile_using_nvrtc(source, OPTIONS, cache_in_memory=True)
            self.counters.compiled += 1
            self._files.write(key, binary)
        else:
            self.counters.loaded += 1
        module = driver.library().cuda.function.Module()
        module.load(binary)
        return module

    def _key_of(self, source: str) -> str:
        if self._key is None:
            cupy = driver.library()
            capability = cupy.cuda.Device(self._device).compute_capability
            version = cupy.cuda.nvrtc.getVersion()
            self._key = f"{capability} {version} {OPTIONS}\n"
        return self._key + source
