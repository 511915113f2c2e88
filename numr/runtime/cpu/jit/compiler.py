"""Functions of kernels from their text: compiled once, kept in memory and on disk."""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections import OrderedDict
from typing import Any, Final

from numr.runtime.cpu.jit.host import Host
from numr.runtime.cpu.jit.texts import NAME
from numr.runtime.kernel_files import Counters, KernelFiles, cache_folder

__all__ = ["KEPT", "Compiler", "Kernel"]

#: So many functions stay in memory after their last use.
KEPT: Final = 512

#: Parameters, then the first row and the end of rows, the first place in a row and the end.
_SIGNATURE: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)


class Kernel:
    """A compiled kernel, whose code is in memory as long as the object is.

    Attributes
    ----------
    run : callable
        Takes the words of parameters as bytes, and the rows and places to compute. Without the GIL.
    """

    __slots__ = ("_library", "run")

    def __init__(self, library: Any) -> None:
        self._library = library
        self.run = _SIGNATURE(library[NAME])


class Compiler:
    """Compiles kernels for a processor.

    Parameters
    ----------
    host : Host
        The processor.
    kept : int
        How many functions stay in memory.

    Attributes
    ----------
    counters : Counters
        Where kernels came from.
    """

    def __init__(self, host: Host, kept: int = KEPT) -> None:
        self.host = host
        self.counters = Counters()
        self._kept = kept
        self._kernels: OrderedDict[bytes, Kernel] = OrderedDict()
        self._lock = threading.Lock()
        self._files = KernelFiles(cache_folder("cpu"))
        self._key = (
            f"{host.version} {host.cpu} {host.features} {host.binding.get_process_triple()}\n"
        )
        self._machine = host.target_machine()
        # It keeps the code generator that it is given.
        self._linker = host.binding.create_lljit_compiler(host.target_machine(), use_jit_link=True)
        self._linked = 0
        if hasattr(os, "register_at_fork"):
            # Another thread may hold the lock when a process forks.
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._lock = threading.Lock()

    def kernel(self, text: str) -> Kernel:
        """The kernel of a text.

        Raises
        ------
        RuntimeError
            If LLVM does not take the text, or the code needs a function that is not in it: a defect of the text.
        """
        digest = hashlib.sha256(text.encode()).digest()
        with self._lock:
            found = self._kernels.get(digest)
            if found is not None:
                self._kernels.move_to_end(digest)
                self.counters.reused += 1
                return found
            found = self._kernels[digest] = self._load(text)
            if len(self._kernels) > self._kept:
                self._kernels.popitem(last=False)
            return found

    def _load(self, text: str) -> Kernel:
        key = self._key + text
        code = self._files.read(key)
        if code is None:
            code = self._compiled(text)
            self._files.write(key, code)
            self.counters.compiled += 1
        else:
            self.counters.loaded += 1
        self._linked += 1
        builder = self.host.binding.JITLibraryBuilder().add_object_img(code).export_symbol(NAME)
        # No symbols of this process are offered, so that a kernel which calls a library is refused.
        return Kernel(builder.link(self._linker, f"numr-{self._linked}"))

    def _compiled(self, text: str) -> bytes:
        binding = self.host.binding
        module = binding.parse_assembly(text)
        try:
            module.triple = self._machine.triple
            module.data_layout = str(self._machine.target_data)
            module.verify()
            code: bytes = self._machine.emit_object(module)
        finally:
            module.close()
        return code
