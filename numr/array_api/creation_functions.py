"""Creation functions of the standard.

Those here make tensors from nothing and need a runtime: they are methods of :class:`CreationFunctions`, which each
namespace binds to its own. Those that follow another tensor are in ``following_functions``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numr import dtypes as dt
from numr.array_api._arguments import requested_dtype
from numr.array_api._binding import RuntimeFunctions
from numr.array_api._values import (
    diagonal_offsets,
    filled,
    foreign_array,
    holds_tensors,
    host_array,
    ragged,
    real_number,
    scalar_value,
)
from numr.array_api.manipulation_functions import stack
from numr.dtypes import DType, Scalar
from numr.errors import CopyError, DTypeError
from numr.ir import ops
from numr.layout import normalize_shape
from numr.runtime.client import RuntimeClient
from numr.runtime.device import Device
from numr.runtime.registry import client_of
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise, wrap
from numr.tensor.dispatch import call

__all__ = ["CreationFunctions"]

Shape = int | tuple[int, ...]


class CreationFunctions(RuntimeFunctions):
    """The creation functions of one namespace.

    Each takes ``device=``, a device of the namespace's runtime or its string, and ``dtype=``; where they are None,
    the runtime's default device and the device's default dtype are meant.
    """

    def asarray(
        self,
        obj: Any,
        /,
        *,
        dtype: Any = None,
        device: Device | str | None = None,
        copy: bool | None = None,
    ) -> Tensor:
        """Turn numbers, sequences, tensors or other libraries' arrays into a tensor.

        Parameters
        ----------
        obj : Tensor, bool, int, float, complex, sequence, or array
            A sequence may be nested and may hold tensors. An array is anything with the buffer protocol, DLPack or
            NumPy's conversions.
        dtype : dtype, optional
            Follows from ``obj`` where None: Python numbers give the device's default dtypes.
        device : Device or str, optional
            Where None, a tensor stays where it is.
        copy : bool, optional
            True for a copy always, False to forbid one, None for one only where needed.

        Returns
        -------
        Tensor
            Of ``obj``'s shape.

        Raises
        ------
        CopyError
            If ``copy=False`` and only a copy gives the result.
        ShapeError
            If nested sequences are ragged.
        DTypeError
            If ``obj`` holds anything but numbers.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.asarray([[1, 2], [3, 4]])
        Tensor([[1, 2],
                [3, 4]], dtype=int64, device=cpu)
        """
        if isinstance(obj, Tensor):
            return self._from_tensor(obj, dtype, device, copy)
        client = self._client(device)
        wanted = None if dtype is None else requested_dtype("asarray", dtype, client)
        if dt.scalar_type_of(obj) is not None or isinstance(obj, list | tuple | range):
            if copy is False:
                raise CopyError(
                    f"asarray: copy=False, but a {type(obj).__name__} has no memory to share. "
                    "Leave copy out."
                )
            if isinstance(obj, list | tuple) and holds_tensors(obj):
                stacked = self._stacked(obj, client, wanted)
                return stacked if wanted is None else p.cast(stacked, wanted)
            return wrap(call(client, "take_host", host_array(obj, wanted, client)), client)
        host = foreign_array(obj)
        own = dt.as_dtype(host.dtype, "asarray")
        target = wanted or client.require_dtype(own, "asarray")
        if copy is False and (not client.host_memory or target != host.dtype):
            raise CopyError(
                f"asarray: copy=False, but an array of dtype {host.dtype} becomes {target} on "
                f"{client.device} only by a copy."
            )
        if own not in client.dtypes:
            cpu = client_of("cpu")  # the device cannot convert what it has not
            host = cpu.cast(cpu.from_host(host, copy=False), target)
        if target != host.dtype:
            return p.cast(wrap(call(client, "from_host", host, copy=False), client), target)
        return wrap(call(client, "from_host", host, copy=bool(copy)), client)

    def _from_tensor(
        self, x: Tensor, dtype: Any, device: Device | str | None, copy: bool | None
    ) -> Tensor:
        client = x._client if device is None else self._client(device)
        target = x.dtype if dtype is None else requested_dtype("asarray", dtype, client)
        if copy is False and (client is not x._client or target != x.dtype):
            raise CopyError(
                f"asarray: copy=False, but a tensor of dtype {x.dtype} on {x.device} becomes {target} on "
                f"{client.device} only by a copy."
            )
        result = x if client is x._client else x.to_device(client.device)
        result = p.cast(result, target)
        return p.copy(result) if copy and result is x else result

    def _stacked(
        self, obj: Sequence[Any], client: RuntimeClient[Any], wanted: DType | None
    ) -> Tensor:
        """A nested sequence that holds tensors, put together on the device."""
        members = [
            self._stacked(member, client, wanted)
            if isinstance(member, list | tuple)
            else self.asarray(member, dtype=wanted, device=client.device)
            for member in obj
        ]
        shapes = {member.shape for member in members}
        if len(shapes) > 1:
            raise ragged(shapes)
        return stack(members, axis=0)

    def from_dlpack(
        self, x: object, /, *, device: Device | str | None = None, copy: bool | None = None
    ) -> Tensor:
        """Take over an array of another library by DLPack.

        Parameters
        ----------
        x : object
            Anything with ``__dlpack__`` and ``__dlpack_device__``.
        device : Device or str, optional
            Where None, the runtime's device that holds the data.
        copy : bool, optional
            True for a copy always, False to forbid one, None for one only where needed.

        Returns
        -------
        Tensor
            Shares memory with ``x`` unless copied; read-only where ``x`` is.

        Raises
        ------
        BufferError
            If the data cannot be exported, or not without a copy under ``copy=False``.
        AttributeError
            If ``x`` does not speak DLPack.

        Examples
        --------
        >>> import numpy as np
        >>> import numr.cpu as xp
        >>> xp.from_dlpack(np.arange(3.0))
        Tensor([0., 1., 2.], dtype=float64, device=cpu)
        """
        if not hasattr(x, "__dlpack__"):
            raise AttributeError(
                f"from_dlpack: {type(x).__name__} has no __dlpack__ method. Use asarray()."
            )
        if isinstance(x, Tensor):
            if device is not None and self._client(device) is not x._client and copy is False:
                raise CopyError(
                    f"from_dlpack: copy=False, but the tensor is on {x.device} and not on {device}."
                )
            return self._from_tensor(x, None, device, copy)
        client = self._client(device)
        data = call(client, "from_dlpack", x, copy)
        client.require_dtype(dt.as_dtype(data.dtype, "from_dlpack"), "from_dlpack")
        return wrap(data, client)

    def empty(
        self, shape: Shape, *, dtype: Any = None, device: Device | str | None = None
    ) -> Tensor:
        """A tensor whose elements are arbitrary.

        Parameters
        ----------
        shape : int or tuple of int
            Length of each axis.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.empty((2, 3)).shape
        (2, 3)
        """
        client = self._client(device)
        return p.empty(client, normalize_shape(shape, "empty"), self._real(dtype, client, "empty"))

    def zeros(
        self, shape: Shape, *, dtype: Any = None, device: Device | str | None = None
    ) -> Tensor:
        """A tensor of zeros.

        Parameters
        ----------
        shape : int or tuple of int
            Length of each axis.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.zeros(2)
        Tensor([0., 0.], dtype=float64, device=cpu)
        """
        client = self._client(device)
        dtype = self._real(dtype, client, "zeros")
        return p.full(client, normalize_shape(shape, "zeros"), 0, dtype)

    def ones(
        self, shape: Shape, *, dtype: Any = None, device: Device | str | None = None
    ) -> Tensor:
        """A tensor of ones.

        Parameters
        ----------
        shape : int or tuple of int
            Length of each axis.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.ones(2, dtype=xp.int8)
        Tensor([1, 1], dtype=int8, device=cpu)
        """
        client = self._client(device)
        dtype = self._real(dtype, client, "ones")
        return p.full(client, normalize_shape(shape, "ones"), 1, dtype)

    def full(
        self,
        shape: Shape,
        fill_value: Scalar | Tensor,
        *,
        dtype: Any = None,
        device: Device | str | None = None,
    ) -> Tensor:
        """A tensor of one value.

        Parameters
        ----------
        shape : int or tuple of int
            Length of each axis.
        fill_value : bool, int, float, complex or Tensor without axes
            The value, whose type gives the dtype where none is asked for.

        Raises
        ------
        DTypeError
            If ``dtype`` is of a kind that does not hold the value.
        OverflowError
            If an integer is out of the dtype's range.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.full((2, 2), 7)
        Tensor([[7, 7],
                [7, 7]], dtype=int64, device=cpu)
        """
        client = self._client(device)
        lengths = normalize_shape(shape, "full")
        if isinstance(fill_value, Tensor):
            target = fill_value.dtype if dtype is None else requested_dtype("full", dtype, client)
            value = p.cast(fill_value.to_device(client.device), target)
            return p.copy(p.broadcast(value, lengths))
        return filled(client, lengths, fill_value, dtype, "full")

    def arange(
        self,
        start: float,
        /,
        stop: float | None = None,
        step: float = 1,
        *,
        dtype: Any = None,
        device: Device | str | None = None,
    ) -> Tensor:
        """Evenly spaced values in the half-open interval from ``start`` to ``stop``.

        Parameters
        ----------
        start : int or float
            The first value; with no ``stop``, the end of an interval that starts at 0.
        stop : int or float, optional
            End of the interval, not included.
        step : int or float
            Distance of neighbours, not 0.

        Returns
        -------
        Tensor
            One axis of ``ceil((stop - start) / step)`` values ``start + i * step``, each rounded once.

        Raises
        ------
        ValueError
            If ``step`` is 0.
        DTypeError
            If an integer dtype is asked for with bounds that are not whole numbers.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.arange(2, 9, 3)
        Tensor([2, 5, 8], dtype=int64, device=cpu)
        """
        client = self._client(device)
        if stop is None:
            start, stop = 0, start
        bounds = tuple(real_number("arange", value) for value in (start, stop, step))
        if dtype is None:
            whole = all(isinstance(value, int) for value in bounds)
            target = client.defaults.integral if whole else client.defaults.real
        else:
            target = requested_dtype("arange", dtype, client)
        if target.kind == "b":
            raise DTypeError("arange: a boolean range is not defined; choose a numeric dtype.")
        if target.kind in "iu":
            if any(value != int(value) for value in bounds):
                raise DTypeError(
                    f"arange: start={start}, stop={stop}, step={step} are not whole numbers, but dtype is "
                    f"{target}. Ask for a floating-point dtype and round."
                )
            bounds = tuple(int(value) for value in bounds)
        first, last, by = bounds
        if by == 0:
            raise ValueError("arange: step is 0; it must not be.")
        # In integers exactly; in floats as the standard writes it.
        size = -((first - last) // by) if target.kind in "iu" else math.ceil((last - first) / by)
        return p.iota(client, max(0, int(size)), target, first, by)

    def linspace(
        self,
        start: complex,
        stop: complex,
        /,
        num: int,
        *,
        dtype: Any = None,
        device: Device | str | None = None,
        endpoint: bool = True,
    ) -> Tensor:
        """``num`` evenly spaced values from ``start`` to ``stop``.

        Parameters
        ----------
        start, stop : int, float or complex
            The ends.
        num : int
            How many values.
        endpoint : bool
            Whether ``stop`` is the last value, exactly.

        Raises
        ------
        ValueError
            If ``num`` is negative.
        DTypeError
            If an integer dtype is asked for with ends that are not whole numbers.

        Notes
        -----
        With an integer dtype each value is the exact one rounded down.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.linspace(0, 1, 5)
        Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float64, device=cpu)
        """
        client = self._client(device)
        first, last = scalar_value("linspace", start), scalar_value("linspace", stop)
        if num < 0:
            raise ValueError(f"linspace: num is {num}; it must not be negative.")
        is_complex = isinstance(first, complex) or isinstance(last, complex)
        if dtype is None:
            target = client.defaults.complex if is_complex else client.defaults.real
        else:
            target = requested_dtype("linspace", dtype, client)
        steps = num - 1 if endpoint else num
        if target.kind in "iu":
            return _integer_linspace(client, first, last, num, steps, target)
        if target.kind == "b" or (is_complex and target.kind != "c"):
            raise DTypeError(
                f"linspace: values from {start} to {stop} do not fit the dtype {target}."
            )
        if num == 0:
            return p.empty(client, (0,), target)
        div = max(steps, 1)
        step = (last - first) / div
        if not np.isfinite(step) and np.isfinite(first) and np.isfinite(last):
            # The interval is longer than the largest number: two halves are not.
            step = last / div - first / div
            half = num // 2
            result = p.concat(
                [
                    p.iota(client, half, target, first, step),
                    p.iota(client, num - half, target, first + half * step, step),
                ],
                axis=0,
            )
        else:
            result = p.iota(client, num, target, first, step)
        if endpoint and num > 1:
            result[-1] = last
        return result

    def eye(
        self,
        n_rows: int,
        n_cols: int | None = None,
        /,
        *,
        k: int = 0,
        dtype: Any = None,
        device: Device | str | None = None,
    ) -> Tensor:
        """A matrix with ones on a diagonal and zeros elsewhere.

        Parameters
        ----------
        n_rows, n_cols : int
            Shape; square where ``n_cols`` is None.
        k : int
            The diagonal: above the main one where positive, below where negative.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.eye(2, 3, k=1)
        Tensor([[0., 1., 0.],
                [0., 0., 1.]], dtype=float64, device=cpu)
        """
        client = self._client(device)
        target = self._real(dtype, client, "eye")
        rows, cols = normalize_shape((n_rows, n_rows if n_cols is None else n_cols), "eye")
        return p.cast(diagonal_offsets(client, rows, cols, k, ops.EQUAL), target)

    def _real(self, dtype: Any, client: RuntimeClient[Any], function: str) -> DType:
        if dtype is None:
            return client.defaults.real
        return requested_dtype(function, dtype, client)


def _integer_linspace(
    client: RuntimeClient[Any], first: Any, last: Any, num: int, steps: int, target: DType
) -> Tensor:
    if isinstance(first, complex) or first != int(first) or last != int(last):
        raise DTypeError(
            f"linspace: values from {first} to {last} do not fit the dtype {target}. "
            "Ask for a floating-point dtype and round."
        )
    first, delta, div = int(first), int(last) - int(first), max(steps, 1)
    widest = dt.int64 if dt.int64 in client.dtypes else dt.int32
    if abs(delta) * max(num, 1) > dt.iinfo_of(widest).max:
        raise DTypeError(
            f"linspace: {num} values from {first} to {int(last)} overflow in {widest}, the widest integers of "
            f"{client.device}. Ask for a floating-point dtype."
        )
    wide = elementwise(ops.FLOOR_DIVIDE, p.iota(client, num, widest, 0, delta), div)
    return elementwise(ops.ADD, p.cast(wide, target), p.full(client, (), first, target))
