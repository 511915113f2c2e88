"""``stream``: numr's work on a stream of the caller's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from numr.runtime.cuda import driver
from numr.runtime.cuda.runtime import CudaRuntime
from numr.runtime.device import Device

__all__ = ["stream"]


@contextlib.contextmanager
def stream(external: Any, *, device: Device | str = "cuda") -> Iterator[Any]:
    """Queue numr's work of a device on another stream for the length of a ``with`` block.

    The stream waits for what numr has queued before, and what numr queues after the block waits for the stream, so that
    tensors may be used inside and outside alike. The choice holds for the device, in all threads: no other thread may
    be in the middle of a call when the block begins or ends.

    Parameters
    ----------
    external : object
        A stream of CuPy's or PyTorch's, any object with ``__cuda_stream__``, or a stream's handle as an int.
    device : Device or str
        The device that the stream belongs to.

    Yields
    ------
    object
        The stream as one of CuPy's.

    Raises
    ------
    TypeError
        If ``external`` is no stream.
    """
    context = CudaRuntime.context(CudaRuntime.device(device))
    handle = _Handle(external)
    with context.current():
        own = driver.library().cuda.Stream.from_external(handle)
    with context.on_stream(own):
        yield own


class _Handle:
    """A stream by its handle, as the CUDA stream protocol has it; keeps the caller's object."""

    def __init__(self, external: Any) -> None:
        self._external = external
        self._handle = _handle(external)

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self._handle)


def _handle(external: Any) -> int:
    protocol = getattr(external, "__cuda_stream__", None)
    if protocol is not None:
        return int(protocol()[1])
    for name in ("ptr", "cuda_stream"):  # CuPy's and PyTorch's
        handle = getattr(external, name, None)
        if isinstance(handle, int):
            return handle
    if isinstance(external, int) and not isinstance(external, bool):
        return external
    raise TypeError(
        f"stream: a {type(external).__name__} is no stream. Pass one of CuPy's or PyTorch's, an object with "
        "__cuda_stream__, or a handle as an int."
    )
