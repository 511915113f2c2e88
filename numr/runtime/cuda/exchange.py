"""DLPack: arrays of and for other libraries."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

from numr.runtime.buffers import array_from_dlpack
from numr.runtime.cuda.runtime import CudaRuntime
from numr.runtime.storage import Storage

if TYPE_CHECKING:
    from numr.runtime.cuda.client import CudaClient

__all__ = ["CPU", "CUDA", "from_dlpack", "to_dlpack"]

#: DLPack's kinds of devices.
CPU: Final = 1
CUDA: Final = 2
MANAGED: Final = 13

_VERSIONED: Final = b"dltensor_versioned"
_READ_ONLY: Final = 1


class _Head(ctypes.Structure):
    """The beginning of ``DLManagedTensorVersioned``."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
    )


def _head_of(capsule: Any) -> _Head | None:
    """What a capsule says of itself; None if it is not versioned."""
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
    if not is_valid(capsule, _VERSIONED):
        return None
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
    pointer_of.restype = ctypes.c_void_p
    return _Head.from_address(pointer_of(capsule, _VERSIONED))


def to_dlpack(
    client: CudaClient,
    array: Any,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule of an array, ready on the consumer's stream."""
    own = client.dlpack_device()
    target = own if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    if target == (CPU, 0):
        if copy is False:
            raise BufferError(
                f"__dlpack__: dl_device={target} asks for host memory, and copy=False forbids the copy that "
                f"brings a tensor from {client.device} there. Leave copy out."
            )
        return client.to_host(array).__dlpack__(max_version=max_version, copy=True)
    if target != own:
        raise BufferError(
            f"__dlpack__: dl_device={target} is neither {client.device}, which is {own}, nor the host, which is "
            "(1, 0). Move the tensor with to_device() first."
        )
    if stream is not None and (type(stream) is not int or stream == 0 or stream < -1):
        raise BufferError(
            f"__dlpack__: stream={stream!r} is no stream of CUDA's: 1 is the default stream, 2 the default stream "
            "of each thread, -1 asks for no order, and other streams are given by their handle."
        )
    versioned = max_version is not None and max_version[0] >= 1
    read_only = not client.is_writable(array)
    if copy is True:
        array = client.copy(array)
    elif read_only and not versioned:
        raise BufferError(
            "__dlpack__: the tensor lies over read-only memory, which the consumer's version of DLPack cannot "
            "say. Pass max_version=(1, 0) or later, or copy=True."
        )
    with client.context.inside():
        capsule = array.__dlpack__(stream=stream, max_version=(1, 0) if versioned else None)
    if versioned:
        head = _head_of(capsule)
        assert head is not None, "CuPy gives versioned capsules where they are asked for"
        if copy is True:
            head.flags |= 2
        elif read_only:
            head.flags |= _READ_ONLY
    return capsule


def from_dlpack(client: CudaClient, producer: Any, copy: bool | None) -> Any:
    """The array that another library exports, on the client's device."""
    kind, number = (int(x) for x in producer.__dlpack_device__())
    own = client.context.number
    if kind not in (CUDA, MANAGED):
        if copy is False:
            raise BufferError(
                f"from_dlpack: the data is on DLPack's device ({kind}, {number}), and copy=False forbids the copy "
                f"that brings it to {client.device}. Leave copy out."
            )
        return client.from_host(array_from_dlpack(producer), copy=True)
    if kind == CUDA and number != own:
        if copy is False:
            raise BufferError(
                f"from_dlpack: the data is on cuda:{number}, and copy=False forbids the copy that brings it to "
                f"{client.device}. Leave copy out."
            )
        other = CudaRuntime.default_client(CudaRuntime.Device(number))
        return client.from_other(other, from_dlpack(other, producer, None))
    with client.context.inside():
        # The default stream is 0 to the driver and 1 to DLPack, for which 0 is ambiguous.
        stream = client.compute_stream_handle() or 1
        try:
            capsule = producer.__dlpack__(stream=stream, max_version=(1, 0), copy=copy)
        except TypeError:
            # Older producers know neither versions nor copy.
            if copy is False:
                raise
            capsule = producer.__dlpack__(stream=stream)
            array = client.xp.from_dlpack(capsule)
            return client.copy(array) if copy else array
        head = _head_of(capsule)
        read_only = head is not None and bool(head.flags & _READ_ONLY)
        array = client.xp.from_dlpack(capsule)
    if not read_only:
        return array
    storage = client.storage(array)
    locked = Storage.foreign(
        storage.handle, storage.size, client.device, CudaRuntime, array, readonly=True
    )
    return client.wrap(locked, client.layout(array), array.dtype)
