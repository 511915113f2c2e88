"""Keeping the garbage collector from a thread that must not be interrupted."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_garbage_collection"]

_gc_lock = threading.RLock()
_gc_depth = 0
_gc_was_enabled = False


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector, and with it most finalizers, from running in this thread."""
    global _gc_depth, _gc_was_enabled  # noqa: PLW0603  (the collector is one for the process)
    with _gc_lock:
        if _gc_depth == 0:
            _gc_was_enabled = gc.isenabled()
            gc.disable()
        _gc_depth += 1
    try:
        yield
    finally:
        with _gc_lock:
            _gc_depth -= 1
            if _gc_depth == 0 and _gc_was_enabled:
                gc.enable()
