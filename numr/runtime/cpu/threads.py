"""Large operations in blocks, over a few threads.

NumPy releases the GIL inside its loops, so that blocks of one operation run in parallel. How work is cut into blocks
never depends on the number of threads, and so neither does a result.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

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
    if helpers > 0:
        helpers = _workers.ready(helpers)
    if helpers < 1:
        for part in parts:
            body(part)
        return
    # Handing parts out one by one keeps all threads busy to the end, whatever else the machine does.
    remaining = deque(parts)

    def work() -> None:
        take = remaining.popleft
        try:
            while True:
                try:
                    part = take()
                except IndexError:
                    return
                body(part)
        except BaseException:
            remaining.clear()
            raise

    helping = _Helpers(work, helpers)
    try:
        work()
    finally:
        failures = helping.finish()
    if failures:
        raise failures[0]


class _Helpers:
    """Threads that do the same work as their caller, who comes to an end without those that were busy elsewhere."""

    def __init__(self, work: Callable[[], None], count: int) -> None:
        self._work = work
        self._waiting = deque(range(count))
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._count = count
        for _ in range(count):
            # Each thread works in a copy of the caller's context, where NumPy keeps its errstate.
            _workers.jobs.put(partial(self._help, contextvars.copy_context()))

    def _help(self, context: contextvars.Context) -> None:
        try:
            self._waiting.popleft()
        except IndexError:
            return
        failure: BaseException | None = None
        try:
            context.run(self._work)
        except BaseException as error:  # noqa: BLE001  (it is raised in the caller)
            failure = error
        self._done.put(failure)

    def finish(self) -> list[BaseException]:
        """Wait for the threads that have started; returns what they raised."""
        started = self._count
        try:
            while True:
                self._waiting.popleft()
                started -= 1
        except IndexError:
            results = [self._done.get() for _ in range(started)]
        return [failure for failure in results if failure is not None]


class _Workers:
    """The threads, made when they are first needed and again in a forked child.

    They wait for jobs in one queue, which costs a few microseconds where an executor with its futures costs tens.
    They are daemons: the interpreter exits without them.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start over, as a forked child must: threads do not survive a fork."""
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0

    def ready(self, count: int) -> int:
        """How many of ``count`` threads there are, after making those that are missing.

        A process that exits, or is at its limit of threads, gets no more; the caller then does their work.
        """
        if self._count < count:
            with self._lock:
                try:
                    while self._count < count:
                        name = f"numr-cpu-{self._count}"
                        threading.Thread(
                            target=_serve, args=(self.jobs,), name=name, daemon=True
                        ).start()
                        self._count += 1
                except RuntimeError:
                    return self._count
        return count


def _serve(jobs: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        jobs.get()()


_workers = _Workers()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.forget)
