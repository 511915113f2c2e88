"""Exchange with other libraries: DLPack, always by way of host memory.

DLPack has numbers for the memory of graphics interfaces, but a buffer of WebGPU has no address that another library
could use. So tensors go out to consumers that take host memory, and come in from producers that can give it.
"""

from __future__ import annotations

from typing import Any, Final

from numr.runtime.buffers import array_from_dlpack
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.families import Families

__all__ = ["CPU", "WEBGPU", "Exchange"]

#: DLPack's kinds of devices.
CPU: Final = 1
WEBGPU: Final = 15
#: By interface, where DLPack has a kind of device for it that the standard names as well.
_KINDS: Final = {"Vulkan": 7, "Metal": 8}


class Exchange(Families):
    """The exchange families."""

    def to_dlpack(
        self,
        array: DeviceArray,
        stream: Any,
        max_version: tuple[int, int] | None,
        dl_device: tuple[int, int] | None,
        copy: bool | None,
    ) -> Any:
        target = None if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
        if target != (CPU, 0):
            wanted = "none was asked for" if target is None else f"dl_device={target} was"
            raise BufferError(
                f"__dlpack__: memory of {self.device} has no address that another library could use, so it is "
                f"exported as a copy in host memory alone, and {wanted}. Pass dl_device=(1, 0), as "
                "numpy.from_dlpack(x, device='cpu') does, or call to_numpy()."
            )
        if copy is False:
            raise BufferError(
                f"__dlpack__: dl_device={target} asks for host memory, and copy=False forbids the copy that "
                f"brings a tensor from {self.device} there. Leave copy out."
            )
        if stream is not None:
            raise BufferError(
                f"__dlpack__: stream={stream!r}, but host memory has no streams; leave stream out."
            )
        return self.to_host(array).__dlpack__(max_version=max_version, copy=True)

    def from_dlpack(self, producer: Any, copy: bool | None) -> DeviceArray:
        kind, number = (int(x) for x in producer.__dlpack_device__())
        if copy is False:
            raise BufferError(
                f"from_dlpack: the data is on DLPack's device ({kind}, {number}), and copy=False forbids the copy "
                f"that brings it to {self.device}. Leave copy out."
            )
        return self.from_host(array_from_dlpack(producer), copy=True)

    def dlpack_device(self) -> tuple[int, int]:
        return (_KINDS.get(self.allocator.adapter.interface, WEBGPU), self.device.id)
