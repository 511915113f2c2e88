"""What a queue records: kernels to run, and bytes to copy."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = ["Binding", "Copy", "Dispatch", "Repeated"]

#: Buffer, byte offset and size: what a kernel sees of a buffer.
Binding = tuple[Any, int, int]


class Dispatch:
    """A kernel to run.

    Attributes
    ----------
    kernel : Kernel
        What to run.
    bindings : list of tuple
        GPUBuffer, byte offset and size of each binding.
    params : bytes
        The kernel's parameters.
    groups : tuple of int
        Numbers of workgroups.
    """

    __slots__ = ("bindings", "groups", "kernel", "params")

    #: Whether it is recorded again and again, so that what was made for it is kept.
    repeats: ClassVar[bool] = False

    def __init__(
        self,
        kernel: Any,
        bindings: list[Binding],
        params: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        self.kernel = kernel
        self.bindings = bindings
        self.params = params
        self.groups = groups


class Repeated(Dispatch):
    """A kernel to run again and again.

    Attributes
    ----------
    group : object
        The bind group, once there is one.
    """

    __slots__ = ("group",)

    repeats = True

    def __init__(
        self,
        kernel: Any,
        bindings: list[Binding],
        params: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        super().__init__(kernel, bindings, params, groups)
        self.group: Any = None


class Copy:
    """Bytes to copy between two buffers; offsets and size are multiples of 4."""

    __slots__ = ("size", "source", "source_offset", "target", "target_offset")

    def __init__(
        self, source: Any, source_offset: int, target: Any, target_offset: int, size: int
    ) -> None:
        self.source = source
        self.source_offset = source_offset
        self.target = target
        self.target_offset = target_offset
        self.size = size
