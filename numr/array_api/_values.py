"""Values given to creation functions, as host arrays, scalars and small tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numr import dtypes as dt
from numr.array_api._arguments import requested_dtype
from numr.dtypes import DType, Scalar
from numr.errors import DTypeError, ShapeError
from numr.ir import ops
from numr.runtime.client import RuntimeClient
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise


def holds_tensors(obj: Any) -> bool:
    return any(
        isinstance(member, Tensor) or (isinstance(member, list | tuple) and holds_tensors(member))
        for member in obj
    )


def ragged(shapes: set[tuple[int, ...]]) -> ShapeError:
    return ShapeError(
        f"asarray: the nested sequence is ragged: its members have the shapes "
        f"{', '.join(str(shape) for shape in sorted(shapes))}. All members of a level need one shape."
    )


def host_array(obj: Any, wanted: DType | None, client: RuntimeClient[Any]) -> np.ndarray[Any, Any]:
    """Python numbers, or nested sequences of them, as a host array of a dtype that the device has."""
    try:
        host = np.asarray(obj)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ShapeError(
            "asarray: the nested sequence is ragged: members of one level differ in length. "
            "All members of a level need one shape."
        ) from error
    if not host.size and not isinstance(obj, np.ndarray):
        host = host.astype(client.defaults.real)
    if wanted is not None and wanted.kind in "iu" and host.dtype.kind in "iufO":
        return _integers(obj, wanted)
    if _is_too_large(host, obj):
        raise OverflowError(
            "asarray: an integer is out of the range of int64. Ask for dtype=uint64 where that holds it, "
            "or use floats."
        )
    host_dtype = dt.as_dtype(host.dtype, "asarray")
    if wanted is None:
        defaults = client.defaults
        natural = {
            dt.int64: defaults.integral,
            dt.float64: defaults.real,
            dt.complex128: defaults.complex,
        }
        wanted = client.require_dtype(natural.get(host_dtype, host_dtype), "asarray")
        if wanted.kind in "iu" and host.size and wanted.itemsize < host.itemsize:
            _require_range(host, wanted)
    if host_dtype.kind == "c" and wanted.kind in "iuf":
        raise DTypeError(
            f"asarray: complex values do not fit the dtype {wanted}. Take their real parts first."
        )
    return host.astype(wanted, copy=False)


def _require_range(host: np.ndarray[Any, Any], dtype: DType) -> None:
    """Raise OverflowError unless a dtype holds all of some integers."""
    limits = dt.iinfo_of(dtype)
    low, high = int(host.min()), int(host.max())
    if low < limits.min or high > limits.max:
        raise OverflowError(
            f"asarray: integers from {low} to {high} are out of the range of {dtype}, the default dtype of the "
            "device. Ask for a wider one with dtype=."
        )


def _integers(obj: Any, wanted: DType) -> np.ndarray[Any, Any]:
    """Numbers as an integer dtype, exactly: by way of float64, NumPy's common dtype, large ones would not be."""
    try:
        return np.asarray(obj, dtype=wanted)
    except OverflowError as error:
        raise OverflowError(f"asarray: {error}. Ask for a wider dtype.") from None
    except TypeError:
        raise DTypeError(
            f"asarray: values of type {type(obj).__name__} do not become the dtype {wanted}; "
            "expected numbers."
        ) from None


def _is_too_large(host: np.ndarray[Any, Any], obj: Any) -> bool:
    """Whether Python integers beyond 64 bits made NumPy choose floats or objects."""
    if host.dtype == object:
        return bool(host.size) and all(isinstance(value, int) for value in host.flat)
    if host.dtype != np.float64 or not (np.abs(host) >= 2.0**63).any():
        return False
    return all(isinstance(value, int) for value in np.asarray(obj, dtype=object).flat)


def foreign_array(obj: Any) -> np.ndarray[Any, Any]:
    """The host array of an object of another library."""
    if isinstance(obj, np.ndarray):
        return obj
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array_interface__"):
        return np.from_dlpack(obj)
    if hasattr(obj, "__array__") or hasattr(obj, "__array_interface__"):
        return np.asarray(obj)
    try:
        return np.asarray(memoryview(obj))
    except TypeError:
        pass
    if isinstance(obj, Sequence) and not isinstance(obj, str):
        return np.asarray(list(obj))
    raise TypeError(
        f"asarray: got {type(obj).__module__}.{type(obj).__qualname__}. Unsupported type: expected a number, "
        "a sequence, a tensor, or an object with the buffer protocol, __dlpack__ or __array__."
    )


def scalar_value(function: str, value: Any) -> Scalar:
    kind = dt.scalar_type_of(value)
    if kind is None:
        if isinstance(value, Tensor) and value.ndim == 0:
            return value.item()  # type: ignore[no-any-return]
        raise TypeError(f"{function}: got {type(value).__name__}; expected a Python scalar.")
    result: Scalar = kind(value)
    return result


def real_number(function: str, value: Any) -> int | float:
    scalar = scalar_value(function, value)
    if isinstance(scalar, complex):
        raise TypeError(f"{function}: got the complex number {scalar}; expected a real one.")
    return scalar


def filled(
    client: RuntimeClient[Any], shape: tuple[int, ...], value: Scalar, dtype: Any, function: str
) -> Tensor:
    scalar = scalar_value(function, value)
    if dtype is None:
        target = client.defaults.of_scalar(type(scalar))
    else:
        target = requested_dtype(function, dtype, client)
        order = "buifc"
        fits = order.index(target.kind) >= order.index(client.defaults.of_scalar(type(scalar)).kind)
        if not fits and not (target.kind in "iu" and isinstance(scalar, int)):
            exact = not isinstance(scalar, complex) and math.isfinite(scalar)
            if not (exact and target.type(scalar) == scalar):
                raise DTypeError(
                    f"{function}: the value {value!r} does not fit the dtype {target}. "
                    "Choose a dtype that holds it."
                )
    if target.kind in "iu" and isinstance(scalar, int):
        limits = dt.iinfo_of(target)
        if not limits.min <= scalar <= limits.max:
            raise OverflowError(
                f"{function}: the value {value} is out of the range of {target}, {limits.min} to "
                f"{limits.max}. Choose a wider dtype."
            )
    return p.full(client, shape, scalar, target)


def diagonal_offsets(
    client: RuntimeClient[Any], rows: int, cols: int, k: int, relation: ops.Op
) -> Tensor:
    """Where ``column - row`` is in a relation to ``k``."""
    index = client.defaults.indexing
    k = max(-rows, min(k, cols))  # farther off there is no element, and nothing to overflow
    row = p.iota(client, rows, index)[:, None]
    col = p.iota(client, cols, index)[None, :]
    return elementwise(relation, elementwise(ops.SUBTRACT, col, row), k)
