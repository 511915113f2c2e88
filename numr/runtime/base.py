"""``Runtime``: what a backend is, as operations of a class.

::

    Runtime            one backend, used as a class: no instances
    +- Device          names one compute unit
    +- Client          dispatches operations on a device (numr.runtime.client.RuntimeClient)
    +- Allocator       the memory of a device
    +- Graph           recorded work that can be launched again
    +- RawHandle       the backend's own objects, for custom kernels
    +- DType           what its arrays name their elements' type with

The operations here know integers and bytes alone: no tensor, no dtype. ``docs/write-a-runtime.md``
walks through a complete runtime.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from numr.errors import BackendLimitation, DeviceMismatch, RuntimeUnavailable
from numr.runtime.allocation import AllocationStats, Allocator
from numr.runtime.device import Device
from numr.runtime.graph import CapturedGraph, Graph, NoOpGraph

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from numr.runtime.client import RuntimeClient

__all__ = [
    "AllocationStats",
    "Allocator",
    "CapturedGraph",
    "Device",
    "Graph",
    "NoOpGraph",
    "Runtime",
]

# Inside the class these names mean its associated types.
AnyDevice: TypeAlias = Device
AnyAllocator: TypeAlias = Allocator
AnyGraph: TypeAlias = Graph


class Runtime(ABC):
    """One backend: its devices and what can be done with their memory.

    A runtime is a class; all its operations are class methods and it has no instances. A subclass sets
    the associated types and writes the abstract operations; ``numr.runtime.register`` makes it known.

    Contract
    --------
    - Handles are non-zero integers: addresses where the device has them, numbers of buffers elsewhere.
      Only a handle as it was allocated is portable; arithmetic on handles is up to the runtime.
    - Operations on one device take effect in the order of their calls.
    - ``device`` is one of :meth:`devices`; anything else raises ``DeviceMismatch``.
    - A handle that is not allocated on the device, or memory that ends before the range asked for, raises
      ``InvalidHandle`` and changes nothing.
    - All operations may be called from any thread.

    Attributes
    ----------
    Device, Client, Allocator, Graph : type
        The associated types.
    RawHandle : type
        What :meth:`raw_handle` returns; ``NoneType`` where there is nothing.
    DType : type
        What the runtime's arrays have as their dtype; ``numpy.dtype`` in numr's own runtimes.
    namespace : str
        The module that holds the runtime's array namespace, such as ``"numr.cpu"``.
    host_memory : bool
        Whether handles are addresses that the host can read and write.
    """

    Device: ClassVar[type[AnyDevice]]
    Client: ClassVar[type[RuntimeClient[Any]]]
    Allocator: ClassVar[type[AnyAllocator]]
    Graph: ClassVar[type[AnyGraph]] = NoOpGraph
    RawHandle: ClassVar[type] = type(None)
    DType: ClassVar[type] = np.dtype
    namespace: ClassVar[str]
    host_memory: ClassVar[bool] = False

    def __new__(cls, *_: object, **__: object) -> Self:
        """Refuse: a runtime is used as a class."""
        raise TypeError(
            f"{cls.__name__}: a runtime has no instances; call its operations on the class, "
            f"as in {cls.__name__}.default_device()."
        )

    # ------------------------------------------------------------- identity
    @classmethod
    @abstractmethod
    def name(cls) -> str:
        """Name of the runtime, as in its devices' strings."""

    @classmethod
    def unavailable(cls) -> RuntimeUnavailable | None:
        """Why the runtime cannot be used on this machine; None where it can.

        Contract
        --------
        Cheap, and never raises: it may look for a library or a driver but allocates nothing.
        """
        return None

    @classmethod
    @abstractmethod
    def devices(cls) -> tuple[AnyDevice, ...]:
        """All devices of this machine that the runtime can use."""

    @classmethod
    @abstractmethod
    def default_device(cls) -> AnyDevice:
        """The device that is used where none is named."""

    @classmethod
    def device(cls, spec: AnyDevice | str) -> AnyDevice:
        """Find a device.

        Parameters
        ----------
        spec : Device or str
            A device or its string. The runtime's name alone means the default device.

        Returns
        -------
        Device
            The device, which exists.

        Raises
        ------
        DeviceMismatch
            If the runtime has no such device.
        """
        name = cls.name()
        devices = cls.devices()
        for device in devices:
            if spec in (device, str(device), f"{name}:{device.id}"):
                return device
        if spec == name:
            return cls.default_device()
        existing = ", ".join(str(device) for device in devices) or "none"
        raise DeviceMismatch(
            f"device: the {name} runtime has no device {str(spec)!r}; it has {existing}."
        )

    @classmethod
    @abstractmethod
    def default_client(cls, device: AnyDevice) -> RuntimeClient[Any]:
        """The client of a device: the same object in every call."""

    @classmethod
    def allocator(cls, device: AnyDevice) -> AnyAllocator:
        """The allocator behind :meth:`allocate`: the one of the device's client."""
        return cls.default_client(device).allocator

    @classmethod
    def raw_handle(cls, client: RuntimeClient[Any]) -> Any:
        """The backend's own objects behind a client, for custom kernels; None where there are none."""
        return None

    # --------------------------------------------------------------- capture
    @classmethod
    def supports_graph_capture(cls) -> bool:
        """Whether :meth:`capture_graph_into` records work."""
        return False

    @classmethod
    def capture_graph_into(
        cls,
        client: RuntimeClient[Any],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        f: Callable[[RuntimeClient[Any]], object],
    ) -> CapturedGraph[Any]:
        """Record the work that ``f`` does, to launch it again later.

        Parameters
        ----------
        client : RuntimeClient
            Client of the device that all tensors are on.
        inputs, outputs : sequence of tensors
            What ``f`` reads and writes. The outputs exist before the call.
        f : callable
            Called once, with the client; it writes its results into the outputs, in place.

        Returns
        -------
        CapturedGraph
            The recorded work, with its tensors.

        Raises
        ------
        BackendLimitation
            If the runtime cannot record work; ``f`` has not been called then.
        CaptureError
            If something that ``f`` does cannot be recorded.

        Contract
        --------
        Memory that ``f`` allocates belongs to the graph and is given back with it, and at once if the
        call raises; afterwards the device is as usable as before.
        """
        raise BackendLimitation(
            cls.name(),
            "capture_graph_into",
            "it cannot record work. Run the function eagerly; supports_graph_capture() tells beforehand.",
        )

    # ---------------------------------------------------------------- memory
    @classmethod
    @abstractmethod
    def allocate(cls, size_bytes: int, device: AnyDevice) -> int:
        """Allocate device memory: ``allocator(device).allocate(size_bytes)``, whose contract it shares.

        Raises
        ------
        OutOfMemoryError
            If the memory does not fit.
        AllocatorFrozen
            If the device's allocator is frozen.
        """

    @classmethod
    @abstractmethod
    def deallocate(cls, ptr: int, size_bytes: int, device: AnyDevice) -> None:
        """Give device memory back, with the size that it was allocated with.

        Raises
        ------
        InvalidHandle
            If no active allocation has this handle and size.

        Contract
        --------
        Work that was dispatched before still sees the memory; it is reused only after that.
        """

    @classmethod
    @abstractmethod
    def copy_to_device(cls, src: Buffer, dst: int, device: AnyDevice) -> None:
        """Copy all bytes of a host buffer to the start of device memory.

        Parameters
        ----------
        src : bytes-like
            Any C-contiguous buffer.
        dst : int
            Handle of memory with at least that many bytes.

        Contract
        --------
        ``src`` may be changed as soon as the call returns.
        """

    @classmethod
    @abstractmethod
    def copy_from_device(cls, src: int, dst: Buffer, device: AnyDevice) -> None:
        """Fill a host buffer from the start of device memory.

        Parameters
        ----------
        src : int
            Handle of memory with at least as many bytes as ``dst``.
        dst : writable bytes-like
            Any writable C-contiguous buffer.

        Raises
        ------
        ReadOnlyError
            If ``dst`` cannot be written.

        Contract
        --------
        All work dispatched before has been done, and ``dst`` holds the bytes when the call returns.
        """

    @classmethod
    @abstractmethod
    def copy_within_device(cls, src: int, dst: int, size_bytes: int, device: AnyDevice) -> None:
        """Copy bytes between two places of a device's memory, which may overlap."""

    @classmethod
    @abstractmethod
    def copy_strided(
        cls,
        src_handle: int,
        src_byte_offset: int,
        dst_handle: int,
        shape: Sequence[int],
        strides: Sequence[int],
        elem_size: int,
        device: AnyDevice,
    ) -> None:
        """Gather a strided view into contiguous memory, in C order.

        Parameters
        ----------
        src_handle : int
            Memory that the view lies in.
        src_byte_offset : int
            Byte at which element (0, 0, ...) of the view starts; with negative strides the view extends
            to lower addresses from there.
        dst_handle : int
            Memory that the elements are written to, from its start.
        shape, strides : sequence of int
            The view. Strides are in elements; zero and negative ones are legal.
        elem_size : int
            Bytes in an element, any number from 1.

        Raises
        ------
        InvalidHandle
            If the view or the result does not lie inside its allocation.
        ValueError
            If shape, strides, offset or element size make no view.

        Contract
        --------
        Elements are moved as bytes and never interpreted. Source and destination do not overlap.
        """

    # ---------------------------------------------------------------- events
    @classmethod
    def record_compute_event(cls, device: AnyDevice) -> int:
        """Mark the work dispatched so far; 0 from runtimes that have no events."""
        return 0

    @classmethod
    def copy_from_device_pipelined(
        cls, src: int, dst: Buffer, device: AnyDevice, event: int
    ) -> None:
        """Do :meth:`copy_from_device` as soon as the work before ``event`` is done.

        Later work need not be waited for. A runtime without events waits for all work.
        """
        cls.copy_from_device(src, dst, device)
