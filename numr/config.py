"""Settings that change what numr refuses.

Settings are process-wide. Each has an environment variable that gives its first value; :meth:`Config.override`
changes some for the length of a ``with`` block.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, Final

__all__ = ["ENVIRONMENT", "Config", "config"]

#: Environment variables that numr reads, with what they do.
ENVIRONMENT: Final[dict[str, str]] = {
    "NUMR_ALLOW_HOST_COPIES": "1 lets NumPy and others copy device tensors to the host implicitly",
    "NUMR_ALLOW_HOST_OPERATIONS": "0 refuses the few operations that a device leaves to the host (default: 1)",
    "NUMR_CPU_CACHE_BYTES": "freed memory that the CPU runtime keeps for the next arrays (default: an eighth of the "
    "machine's, 1 GiB at least)",
    "NUMR_FLOAT64": "'raise' (default) or 'downcast': what float64 means on a device without it",
    "NUMR_JIT": "0 computes fused work on the CPU with NumPy in blocks, even where llvmlite is there (default: 1)",
    "NUMR_NUM_THREADS": "threads for large operations of the CPU runtime (default: the CPUs of the process)",
    "NUMR_WGPU_ADAPTER": "which WebGPU adapter: its number or a part of its name",
    "NUMR_WGPU_DISABLE": "features of WebGPU adapters not to use, such as shader-f64,shader-int64",
    "NUMR_CACHE_DIR": "folder of compiled kernels (default: numr's own in the user's cache folder)",
    "NUMR_ARRAY_API_TESTS": "folder of the official conformance suite, for `python -m conformance`",
}


def _flag(name: str, default: bool = False) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    if value in ("0", "false", "no"):
        return False
    if value in ("1", "true", "yes"):
        return True
    raise ValueError(f"{name}={value!r} is neither 1 nor 0; {ENVIRONMENT[name]}.")


def _float64() -> str:
    return os.environ.get("NUMR_FLOAT64", "raise").strip().lower()


def _threads() -> int:
    value = os.environ.get("NUMR_NUM_THREADS", "")
    if value:
        return int(value)
    # The CPUs that this process may run on, which containers and schedulers restrict.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class Config:
    """The settings.

    Attributes
    ----------
    allow_host_copies : bool
        Whether a tensor on a GPU may be copied to the host implicitly, by ``numpy.asarray`` and what uses it.
    allow_host_operations : bool
        Whether a device may leave an operation to the host that it has no kernel for. Which do is documented;
        ``client.host_operations`` counts them.
    float64 : {"raise", "downcast"}
        What asking for float64 does on a device that has none: raise, or take float32 with a warning.
    jit : bool
        Whether the CPU runtime compiles fused work with llvmlite where that is installed. Where it is not, or this
        is false, NumPy computes it in blocks.
    num_threads : int
        How many threads the CPU runtime splits large operations over.

    Examples
    --------
    >>> import numr
    >>> with numr.config.override(num_threads=1):
    ...     numr.config.num_threads
    1
    """

    allow_host_copies: bool = field(default_factory=lambda: _flag("NUMR_ALLOW_HOST_COPIES"))
    allow_host_operations: bool = field(
        default_factory=lambda: _flag("NUMR_ALLOW_HOST_OPERATIONS", default=True)
    )
    float64: str = field(default_factory=_float64)
    jit: bool = field(default_factory=lambda: _flag("NUMR_JIT", default=True))
    num_threads: int = field(default_factory=_threads)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in {f.name for f in fields(self)}:
            raise AttributeError(
                f"config: there is no setting {name!r}; the settings are "
                f"{', '.join(f.name for f in fields(self))}."
            )
        if name == "float64" and value not in ("raise", "downcast"):
            raise ValueError(f"config.float64: {value!r} is neither 'raise' nor 'downcast'.")
        if name == "num_threads" and not (isinstance(value, int) and value >= 1):
            raise ValueError(f"config.num_threads: {value!r} is not a positive integer.")
        object.__setattr__(self, name, value)

    @contextmanager
    def override(self, **settings: Any) -> Iterator[Config]:
        """Change settings for the length of a ``with`` block."""
        before = {name: getattr(self, name) for name in settings}
        try:
            for name, value in settings.items():
                setattr(self, name, value)
            yield self
        finally:
            for name, value in before.items():
                setattr(self, name, value)


config: Final = Config()
