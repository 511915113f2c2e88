"""Compiled kernels on disk, so that another process need not compile them again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Counters", "KernelFiles", "cache_folder"]

_DIGEST = hashlib.sha256().digest_size


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


def cache_folder(kind: str) -> Path:
    """Where compiled kernels of a kind are kept: in ``NUMR_CACHE_DIR``, or a folder in the user's cache."""
    chosen = os.environ.get("NUMR_CACHE_DIR")
    if chosen:
        return Path(chosen) / kind
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home()) / "numr" / "cache" / kind
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "numr" / kind


class KernelFiles:
    """A folder of compiled kernels, by what they were compiled from and for.

    Parameters
    ----------
    folder : Path
        Made when the first kernel is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _file(self, key: str) -> Path:
        return self.folder / hashlib.sha256(key.encode()).hexdigest()

    def read(self, key: str) -> bytes | None:
        """The kernel of a key; None if there is none, or its file is damaged."""
        try:
            data = self._file(key).read_bytes()
        except OSError:
            return None
        digest, binary = data[:_DIGEST], data[_DIGEST:]
        return binary if hashlib.sha256(binary).digest() == digest else None

    def write(self, key: str, binary: bytes) -> None:
        """Keep a kernel. Where the folder cannot be written, the next process compiles it again."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                file.write(hashlib.sha256(binary).digest() + binary)
            # Other processes see the whole file or none.
            Path(file.name).replace(self._file(key))
