"""What every runtime checks before bytes move: host buffers, arrays of other libraries, the range of a strided view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numr.errors import InvalidHandle, ReadOnlyError
from numr.layout import Layout

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Bytes", "array_from_dlpack", "readable_bytes", "strided_range", "writable_bytes"]

#: One-dimensional array of bytes.
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

#: DLPack's number for host memory.
_HOST = 1
_BYTE = np.dtype(np.uint8)


def array_from_dlpack(producer: Any, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """View what another library exports by DLPack, in host memory, as a NumPy array.

    Parameters
    ----------
    producer : object
        Anything with ``__dlpack__`` and ``__dlpack_device__``.
    copy : bool, optional
        What the producer is asked for: True for a copy, False to forbid one.

    Returns
    -------
    numpy.ndarray
        Over the producer's memory where that is the host's, over its copy elsewhere.

    Raises
    ------
    BufferError
        If the producer refuses, or its dtype has no counterpart in NumPy.
    """
    # Only a producer elsewhere is asked for host memory: older ones do not know how to be asked.
    elsewhere = int(producer.__dlpack_device__()[0]) != _HOST
    try:
        return np.from_dlpack(producer, device="cpu" if elsewhere else None, copy=copy)
    except RuntimeError as error:
        cls = type(producer)
        raise BufferError(
            f"from_dlpack: NumPy cannot read the data of {cls.__module__}.{cls.__qualname__} with dtype "
            f"{getattr(producer, 'dtype', 'unknown')}: {error} Convert it to a dtype of the array API first."
        ) from error


def readable_bytes(source: Buffer, function: str) -> Bytes:
    """View a host buffer as bytes.

    Parameters
    ----------
    source : bytes-like
        Anything with a C-contiguous buffer.
    function : str
        The name that errors begin with.

    Returns
    -------
    ndarray
        One-dimensional, of uint8, sharing the buffer's memory.

    Raises
    ------
    TypeError
        If the object has no buffer.
    ValueError
        If the buffer is not C-contiguous.

    Examples
    --------
    >>> readable_bytes(b"abc", "f")
    array([97, 98, 99], dtype=uint8)
    """
    if isinstance(source, np.ndarray):
        # Not by its buffer: some dtypes, such as datetime64, refuse to be exported with a format.
        if not source.flags.c_contiguous:
            raise ValueError(
                f"{function}: an array of shape {source.shape} with byte strides {source.strides} is "
                "not C-contiguous. Pass numpy.ascontiguousarray of it."
            )
        return source.reshape(-1).view(_BYTE)
    try:
        view = memoryview(source)
    except TypeError:
        raise TypeError(
            f"{function}: bytes, an array or another object with a buffer is needed, "
            f"not {type(source).__name__}."
        ) from None
    if not view.c_contiguous:
        raise ValueError(
            f"{function}: a buffer of shape {view.shape} with byte strides {view.strides} is not "
            "C-contiguous. Copy it first."
        )
    return np.frombuffer(view, dtype=_BYTE) if view.nbytes else np.empty(0, _BYTE)


def writable_bytes(target: Buffer, function: str) -> Bytes:
    """View a writable host buffer as bytes.

    The same as :func:`readable_bytes`, and the result may be written.

    Raises
    ------
    ReadOnlyError
        If the buffer is read-only.
    """
    result = readable_bytes(target, function)
    if not result.flags.writeable:
        raise ReadOnlyError(
            f"{function}: the {type(target).__name__} is read-only. Pass a bytearray or another "
            "writable buffer."
        )
    return result


def strided_range(
    shape: Sequence[int],
    strides: Sequence[int],
    byte_offset: int,
    elem_size: int,
    available: int,
    function: str,
) -> tuple[int, int]:
    """Range of bytes that a strided view of an allocation touches.

    Parameters
    ----------
    shape, strides : sequence of int
        The view, strides in elements.
    byte_offset : int
        Byte at which element (0, 0, ...) starts.
    elem_size : int
        Bytes in an element.
    available : int
        Bytes in the allocation.
    function : str
        The name that errors begin with.

    Returns
    -------
    tuple of int
        First byte, and one past the last; equal for a view without elements.

    Raises
    ------
    InvalidHandle
        If the view leaves the allocation.
    ValueError
        If the arguments make no view.

    Examples
    --------
    >>> strided_range((2, 3), (3, -1), byte_offset=8, elem_size=4, available=24, function="f")
    (0, 24)
    """
    if len(shape) != len(strides) or min(shape, default=0) < 0 or elem_size < 1 or byte_offset < 0:
        raise ValueError(
            f"{function}: shape {tuple(shape)}, strides {tuple(strides)}, byte offset {byte_offset} and "
            f"element size {elem_size} make no view: shape and strides need equal lengths, lengths and "
            "the offset start from 0, the element size from 1."
        )
    low, high = Layout(tuple(shape), tuple(strides)).span()
    first, end = byte_offset + low * elem_size, byte_offset + high * elem_size
    if first < 0 or end > available:
        raise InvalidHandle(
            f"{function}: shape {tuple(shape)} with strides {tuple(strides)} and elements of {elem_size} "
            f"bytes reads the bytes {first} to {end} of an allocation that has {available}."
        )
    return first, end
