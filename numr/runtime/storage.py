"""``Storage`` and ``DeviceArray``: memory with an owner, and an array for runtimes that have none.

When memory may be released is a delicate question in Python. The finalizers of objects in a garbage cycle run
one after the other, in any order; were memory released by one of them, the next could still read
it, or bring its tensor back to life. So what releases the memory is kept where the garbage collector does
not look, inside a NumPy array. To the collector it is in use for as long as that array exists, so it dies by
its reference count alone: after all finalizers of a cycle, when nothing can reach the memory any more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

if TYPE_CHECKING:
    from numr.dtypes import DType
    from numr.layout import Layout
    from numr.runtime.base import Runtime
    from numr.runtime.device import Device

__all__ = ["DeviceArray", "Storage"]

_OBJECT = np.dtype(object)


class _Claim:
    """An allocation that is given back when the claim dies."""

    __slots__ = ("handle", "release", "size")

    def __init__(self, handle: int, size: int, release: Callable[[int, int], None]) -> None:
        self.handle = handle
        self.size = size
        self.release = release

    # Bound as a default, since globals may be gone when the interpreter exits.
    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        # At exit the operating system and the driver take everything back, and may have done so already.
        if not exiting():
            self.release(self.handle, self.size)

    def __reduce__(self) -> NoReturn:
        raise TypeError(_NO_COPY)


# A copy of the fields would give the same memory back twice.
_NO_COPY = "Storage: device memory cannot be pickled or copied; copy the tensor instead."


class Storage:
    """One block of device memory, given back to its runtime when its last reference dies.

    Parameters
    ----------
    handle : int
        Handle of an active allocation, which the storage takes over: nobody else deallocates it.
    size : int
        Bytes that it was allocated with.
    device : Device
        Where it is.
    runtime : type[Runtime]
        The runtime of the device.
    readonly : bool, optional
        Whether the memory must not be written.
    release : callable, optional
        What gives it back, by handle and size: the runtime's ``deallocate`` where nothing quicker is known.

    Attributes
    ----------
    owner : object
        What keeps the memory valid, for as long as the storage or anybody else refers to it.
    is_foreign : bool
        Whether the memory belongs to someone else, see :meth:`foreign`.
    """

    __slots__ = (
        "__weakref__",
        "device",
        "handle",
        "is_foreign",
        "owner",
        "readonly",
        "runtime",
        "size",
    )

    def __init__(
        self,
        handle: int,
        size: int,
        device: Device,
        runtime: type[Runtime],
        *,
        readonly: bool = False,
        release: Callable[[int, int], None] | None = None,
    ) -> None:
        if release is None:

            def release(handle: int, size: int) -> None:
                runtime.deallocate(handle, size, device)

        owner: np.ndarray[Any, Any] = np.ndarray((), _OBJECT)
        owner[()] = _Claim(handle, size, release)
        self.owner: object = owner
        self.is_foreign = False
        self.handle = handle
        self.size = size
        self.device = device
        self.runtime = runtime
        self.readonly = readonly

    @classmethod
    def allocate(cls, size: int, device: Device, runtime: type[Runtime]) -> Storage:
        """Storage of newly allocated memory, whose content is arbitrary.

        Raises
        ------
        OutOfMemoryError
            If the memory does not fit.
        AllocatorFrozen
            If the device's allocator is frozen.
        """
        return cls(runtime.allocate(size, device), size, device, runtime)

    @classmethod
    def owned(
        cls, handle: int, size: int, device: Device, runtime: type[Runtime], owner: object
    ) -> Storage:
        """Storage of newly allocated memory that ``owner`` gives back when it dies, and which nobody else has."""
        self = cls.__new__(cls)
        self.owner = owner
        self.is_foreign = False
        self.handle = handle
        self.size = size
        self.device = device
        self.runtime = runtime
        self.readonly = False
        return self

    @classmethod
    def foreign(
        cls,
        handle: int,
        size: int,
        device: Device,
        runtime: type[Runtime],
        owner: object,
        *,
        readonly: bool = False,
    ) -> Storage:
        """Storage over memory that belongs to someone else: ``owner`` is kept alive, nothing is freed.

        Parameters
        ----------
        handle : int
            The memory, as the runtime's kernels take it.
        size : int
            Bytes that may be used.
        owner : object
            Its existence keeps the memory valid.
        readonly : bool, optional
            Whether the memory must not be written.
        """
        self = cls.__new__(cls)
        self.owner = owner
        self.is_foreign = True
        self.handle = handle
        self.size = size
        self.device = device
        self.runtime = runtime
        self.readonly = readonly
        return self

    @classmethod
    def start_of(cls, storage: Storage, size: int) -> Storage:
        """The first bytes of a storage, as one by themselves; what lies behind them is nobody's meanwhile."""
        self = cls.foreign(
            storage.handle,
            size,
            storage.device,
            storage.runtime,
            storage.owner,
            readonly=storage.readonly,
        )
        self.is_foreign = storage.is_foreign
        return self

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The memory as bytes, where the host can read it; an ndarray made from it keeps the storage alive."""
        if not self.runtime.host_memory:
            raise AttributeError(
                f"Storage: the host cannot read memory of {self.device}; use copy_from_device."
            )
        return {
            "shape": (self.size,),
            "typestr": "|u1",
            "data": (self.handle, self.readonly),
            "version": 3,
        }

    def __reduce__(self) -> NoReturn:
        raise TypeError(_NO_COPY)

    def __repr__(self) -> str:
        kind = "foreign, " if self.is_foreign else ""
        access = ", read-only" if self.readonly else ""
        return f"Storage({kind}{self.size} bytes at {self.handle:#x} on {self.device}{access})"


class DeviceArray:
    """The native array of runtimes that have no array of their own: a storage and a layout.

    It has no operations; clients read its parts. Several arrays may share a storage.

    Parameters
    ----------
    storage : Storage
        The memory.
    layout : Layout
        Where the elements lie in it, in elements of ``dtype`` from its start. The caller sees to it that they
        lie inside.
    dtype : DType
        Data type of the elements.
    """

    __slots__ = ("__weakref__", "dtype", "layout", "storage")

    def __init__(self, storage: Storage, layout: Layout, dtype: DType) -> None:
        self.storage = storage
        self.layout = layout
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Step of each axis, in elements."""
        return self.layout.strides

    @property
    def offset(self) -> int:
        """Element at which the array starts, from the start of the storage."""
        return self.layout.offset

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.layout.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.layout.size

    @property
    def itemsize(self) -> int:
        """Bytes in an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes in all elements."""
        return self.layout.size * self.dtype.itemsize

    @property
    def device(self) -> Device:
        """Where the array is."""
        return self.storage.device

    @property
    def readonly(self) -> bool:
        """Whether the array must not be written."""
        return self.storage.readonly

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={str(self.device)!r})"
