"""Exchange of tensors with other libraries: DLPack, the buffer protocol, NumPy's conversions, pickle and copy."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from numr.config import config
from numr.errors import CopyError, HostCopyError
from numr.tensor import numpy_protocol
from numr.tensor.dispatch import call, read, refuse_while_captured
from numr.tensor.parts import TensorPart

if TYPE_CHECKING:
    from numr.tensor.core import Tensor


class InteropMixin(TensorPart):
    """What other libraries call on a tensor."""

    __slots__ = ()

    # NumPy scalars on the left of an operator leave it to the tensor.
    __array_priority__ = 1000

    # ------------------------------------------------------------------ DLPack
    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of the tensor, versioned where the consumer takes that.

        Parameters
        ----------
        stream : int, optional
            The consumer's stream, on runtimes that have streams.
        max_version : tuple of int, optional
            The newest DLPack version that the consumer reads.
        dl_device : tuple of int, optional
            The device that the consumer wants the data on.
        copy : bool, optional
            True for a copy, False to forbid one, None for one only where needed.

        Raises
        ------
        BufferError
            If the data cannot be exported that way.
        """
        refuse_while_captured("__dlpack__", self._client, self._data)
        return self._client.to_dlpack(self._data, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[Any, int]:
        """DLPack's numbers of the tensor's device: kind and id."""
        return self._client.dlpack_device()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The interface of CuPy, Numba and others, version 3, for tensors in CUDA memory."""
        refuse_while_captured("__cuda_array_interface__", self._client, self._data)
        interface = self._client.cuda_array_interface(self._data)
        if interface is None:
            raise AttributeError(
                f"__cuda_array_interface__: the tensor is on {self.device}, not in CUDA memory."
            )
        return interface

    # ------------------------------------------------------------------- host
    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a NumPy array: the tensor's own memory on the CPU, a copy elsewhere.

        Returns
        -------
        numpy.ndarray
            Of the tensor's shape and dtype.

        Examples
        --------
        >>> import numr
        >>> numr.cpu.asarray([1, 2]).to_numpy()
        array([1, 2])
        """
        return read("to_numpy", self._client, self._data)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Same as :meth:`to_numpy`."""
        return self.to_numpy()

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        """NumPy's conversion; refused where it would copy from a device unasked.

        Raises
        ------
        HostCopyError
            If the tensor is not in host memory and implicit copies are not allowed.
        CopyError
            If ``copy=False`` and only a copy has the dtype, or the memory is not the host's.
        """
        on_host = self._client.host_memory
        if not on_host and not config.allow_host_copies:
            raise HostCopyError(
                f"__array__: a tensor of shape {self.shape} on {self.device} would be copied to the host "
                "implicitly. Call to_numpy(), or allow it with numr.config.allow_host_copies = True or "
                "NUMR_ALLOW_HOST_COPIES=1."
            )
        host = self.to_numpy()
        if copy is False and (not on_host or (dtype is not None and dtype != host.dtype)):
            raise CopyError(
                f"__array__: copy=False, but a tensor of dtype {self.dtype} on {self.device} becomes a "
                f"host array of dtype {dtype or self.dtype} only by a copy."
            )
        if dtype is not None and dtype != host.dtype:
            return host.astype(dtype)
        return host.copy() if copy and on_host else host

    def __buffer__(self, flags: int, /) -> memoryview:
        """The buffer protocol (Python 3.12 and later), over host memory."""
        if not self._client.host_memory:
            raise BufferError(
                f"buffer: the tensor is on {self.device}, not in host memory. Call to_numpy() first."
            )
        refuse_while_captured("buffer", self._client, self._data)
        return memoryview(self._data)

    def __bytes__(self) -> bytes:
        """The elements in C order, as those of a NumPy array; the buffer protocol gives them without a copy."""
        return read("bytes", self._client, self._data).tobytes()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's functions of elements, as numr's: ``numpy.sin(x)`` stays a tensor."""
        return numpy_protocol.array_ufunc(self._client, ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's other functions, as numr's: ``numpy.concatenate([x, y])`` stays a tensor."""
        return numpy_protocol.array_function(self._client, func, args, kwargs)

    # ---------------------------------------------------------- pickle and copy
    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # The host array pickles itself; under protocol 5 its memory travels out of band.
        client = self._client
        host = read("pickle", client, self._data)
        if not (host.flags.c_contiguous or host.flags.f_contiguous):
            # NumPy would write such a view into the stream.
            host = host.copy()
        return _unpickle, (client.runtime.name(), str(client.device), host)

    def __copy__(self) -> Tensor:
        return self._like(call(self._client, "copy", self._data))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copied = self._like(call(self._client, "copy", self._data))
        memo[id(self)] = copied
        return copied

    def __dask_tokenize__(self) -> tuple[str, ...]:
        """What dask names chunks by: equal for equal tensors on one device, in every process."""
        host = np.ascontiguousarray(read("tokenize", self._client, self._data))
        digest = hashlib.blake2b(host.reshape(-1).view(np.uint8).data, digest_size=16).hexdigest()
        return "numr.Tensor", str(self.device), str(self.dtype), str(self.shape), digest


def _unpickle(runtime: str, device: str, host: np.ndarray[Any, Any]) -> Tensor:
    from numr.runtime.registry import runtime as runtime_by_name
    from numr.tensor.core import wrap

    cls = runtime_by_name(runtime)
    client = cls.default_client(cls.device(device))
    return wrap(call(client, "from_host", host, copy=not host.flags.writeable), client)
