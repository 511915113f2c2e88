"""Large operations in blocks, over a few threads.

NumPy releases the GIL inside its loops, so that blocks of one operation run in parallel. Blocks are of fixed size:
a result never depends on how many threads computed it.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from numr.config import config


def blocks(length: int, width: int, size: int) -> list[slice]:
    """Slices of an axis of ``length`` places that hold about ``size`` elements, ``width`` in each place."""
    step = max(1, size // max(1, width))
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def run_blocks(body: Callable[[slice], None], parts: list[slice]) -> None:
    """Call ``body`` once for each part, from several threads where there are several parts.

    The first exception that a call raises is raised here after all threads have stopped.
    """
    helpers = min(config.num_threads, len(parts)) - 1
    if helpers < 1:
        for part in parts:
            body(part)
        return
    # Handing parts out one by one keeps all threads busy to the end, whatever else the machine does.
    remaining = iter(parts)
    take = threading.Lock()

    def work() -> None:
        while True:
            with take:
                part = next(remaining, None)
            if part is None:
                return
            body(part)

    futures = _workers.submit(work, helpers)
    try:
        work()
    except BaseException:
        with take:
            remaining = _exhausted()
        for future in futures:
            future.exception()
        raise
    for future in futures:
        future.result()


def _exhausted() -> Iterator[slice]:
    return iter(())


class _Workers:
    """The threads, made on first use and again when more are asked for or the process was forked."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start over, as a forked child must: threads do not survive a fork."""
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._size = 0

    def submit(self, work: Callable[[], None], count: int) -> list[Future[None]]:
        """Run ``work`` in ``count`` threads."""
        with self._lock:
            if self._pool is None or self._size < count:
                if self._pool is not None:
                    self._pool.shutdown(wait=False)
                self._pool = ThreadPoolExecutor(count, thread_name_prefix="numr-cpu")
                self._size = count
            # Each thread works in a copy of the caller's context, where NumPy keeps its errstate.
            return [self._pool.submit(contextvars.copy_context().run, work) for _ in range(count)]


_workers = _Workers()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.forget)
