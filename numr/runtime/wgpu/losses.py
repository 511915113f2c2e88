"""What wgpu's errors mean: that there is no memory, or that a device stopped working."""

from __future__ import annotations

import re

from numr.errors import DeviceLostError

__all__ = ["is_memory_error", "lost", "translated"]


def is_memory_error(error: BaseException) -> bool:
    """Whether wgpu says by this error that there is no memory.

    It raises a validation error then, not the error that is named for it.
    """
    import wgpu

    text = str(error).lower()
    return isinstance(error, wgpu.GPUOutOfMemoryError) or (
        isinstance(error, wgpu.GPUError)
        and ("not enough memory" in text or "out of memory" in text)
    )


def translated(error: BaseException, device: object) -> BaseException:
    """The error to raise for one of wgpu's: ``DeviceLostError`` if that is what it says, else itself."""
    if isinstance(error, DeviceLostError) or re.search(r"device\b.*\blost", str(error), re.I):
        return lost(device, "")
    return error


def lost(device: object, detail: str) -> DeviceLostError:
    """The error for a device that stopped working."""
    return DeviceLostError(
        f"{device} was lost{detail}: its driver reset it, the hardware went away, or somebody destroyed it. "
        f"What was in its memory is gone. WgpuRuntime.reopen({str(device)!r}) makes it usable again."
    )
