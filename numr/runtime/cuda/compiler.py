"""Kernels from their text: compiled once for each text and kind of device, and kept on disk."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any

from numr.codegen.cuda import OPTIONS
from numr.runtime.cuda import driver

__all__ = ["Compiler", "Counters", "Kernel"]

_DIGEST = hashlib.sha256().digest_size


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
    """

    __slots__ = ("function", "has_tail", "pack", "ptr")

    def __init__(self, function: Any, layout: str) -> None:
        self.function = function  # keeps the module loaded
        self.ptr = int(function.ptr)
        self.has_tail = layout.endswith("s")
        self.pack: Callable[..., None] = Struct(f"<{layout}").pack_into


@dataclass
class Counters:
    """Where kernels came from.

    Attributes
    ----------
    compiled : int
        Texts that were compiled.
    loaded : int
        Texts that were found compiled on disk.
    reused : int
        How often a text was asked for that this process had already.
    """

    compiled: int = 0
    loaded: int = 0
    reused: int = 0


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``NUMR_CACHE_DIR``, or a folder in the user's cache."""
    chosen = os.environ.get("NUMR_CACHE_DIR")
    if chosen:
        return Path(chosen) / "cuda"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home()) / "numr" / "cache" / "cuda"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "numr" / "cuda"


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
        self._folder = cache_folder()

    def kernel(
        self, source: str, arguments: int, tail: int = 0, name: str = "numr_kernel"
    ) -> Kernel:
        """A kernel of a text, whose arguments are integers and addresses, and at the end a struct of ``tail`` bytes."""
        return self.laid_out(source, "q8x" * arguments + (f"{tail}s" if tail else ""), name)

    def laid_out(self, source: str, layout: str, name: str = "numr_kernel") -> Kernel:
        """A kernel of a text, with the layout of its arguments as ``struct`` has it."""
        with self._lock:
            module = self._modules.get(source)
            if module is None:
                module = self._modules[source] = self._load(source)
            else:
                self.counters.reused += 1
        return Kernel(module.get_function(name), layout)

    def _load(self, source: str) -> Any:
        binary = self._from_disk(source)
        if binary is None:
            compiler = driver.library().cuda.compiler
            binary, _ = compiler.compile_using_nvrtc(source, OPTIONS, cache_in_memory=True)
            self.counters.compiled += 1
            self._to_disk(source, binary)
        else:
            self.counters.loaded += 1
        module = driver.library().cuda.function.Module()
        module.load(binary)
        return module

    def _file(self, source: str) -> Path:
        if self._key is None:
            cupy = driver.library()
            capability = cupy.cuda.Device(self._device).compute_capability
            version = cupy.cuda.nvrtc.getVersion()
            self._key = f"{capability} {version} {OPTIONS}\n"
        return self._folder / hashlib.sha256((self._key + source).encode()).hexdigest()

    def _from_disk(self, source: str) -> bytes | None:
        try:
            data = self._file(source).read_bytes()
        except OSError:
            return None
        digest, binary = data[:_DIGEST], data[_DIGEST:]
        return binary if hashlib.sha256(binary).digest() == digest else None

    def _to_disk(self, source: str, binary: bytes) -> None:
        # Where the folder cannot be written, kernels are compiled again by the next process.
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as file:
                file.write(hashlib.sha256(binary).digest() + binary)
            # Other processes see the whole file or none.
            Path(file.name).replace(self._file(source))
