"""Reading and writing parts of tensors: ``x[key]`` and ``x[key] = value``.

A key is split into a view, which is layout arithmetic, and what remains: index arrays, which gather or scatter
over the view's leading axes, and masks, which compress.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numr import dtypes as dt
from numr.errors import DeviceMismatch, DTypeError, IndexingError, ShapeError
from numr.ir.ops import MAXIMUM, MINIMUM, SELECT
from numr.layout import (
    ArrayPart,
    IndexPlan,
    MaskPart,
    NewAxisPart,
    SlicePart,
    broadcast_index_shapes,
    broadcast_shapes,
    parse_key,
    split_key,
)
from numr.layout.keys import ArrayKind, KeepPart
from numr.runtime.registry import client_of
from numr.tensor.dispatch import call, call_at, loop_for, read, require_writable
from numr.tensor.parts import TensorPart

if TYPE_CHECKING:
    from numr.runtime.client import RuntimeClient
    from numr.tensor.core import Tensor


class IndexingMixin(TensorPart):
    """``__getitem__`` and ``__setitem__``, by the rules of the standard and of NumPy's index arrays."""

    __slots__ = ()

    def __getitem__(self, key: Any, /) -> Tensor:
        client, array = self._client, self._data
        if key.__class__ is self.__class__ and key._client is client:
            data = _read_at(client, array, key)
        else:
            data = client.index(array, key)
            if data is None:
                data = _read(client, array, key)
        return self._like(data)

    def __setitem__(self, key: Any, value: Any, /) -> None:
        client, target = self._client, self._data
        require_writable("setitem", client, target)
        source = _value(client, target.dtype, value)
        view = client.index(target, key)
        if view is not None:
            call(client, "assign", view, _fit(client, source, view.shape))
        else:
            _write(client, target, key, source)


def _read_at(client: RuntimeClient[Any], array: Any, key: TensorPart) -> Any:
    """What one mask of the array's own shape, or one index array of its first axis, picks: the common keys."""
    index = key._data
    if index.dtype == dt.bool_ and index.shape == array.shape and index.ndim:
        return call(client, "compress", array, index)
    if index.dtype == client.defaults.indexing and array.ndim:
        return call_at("getitem", client, "gather", array, (index,))
    return _read(client, array, key)


def _read(client: RuntimeClient[Any], array: Any, key: Any) -> Any:
    plan = _plan(client, array, key, "getitem")
    view = call(client, "slice", array, plan.basic)
    if plan.is_basic:
        return view
    moved = call(client, "permute", view, plan.gather_order(view.ndim))
    mask = _only_mask(plan, moved.shape)
    if mask is not None:
        picked = call(client, "compress", moved, _on_device(client, mask.mask, "getitem"))
        index_ndim = 1
    else:
        indices, index_shape = _index_arrays(client, plan, "getitem")
        picked = _gather(client, moved, indices, index_shape)
        index_ndim = len(index_shape)
    order = plan.result_order(index_ndim, picked.ndim - index_ndim)
    return call(client, "permute", picked, order)


def _write(client: RuntimeClient[Any], array: Any, key: Any, source: Any) -> None:
    plan = _plan(client, array, key, "setitem")
    view = call(client, "slice", array, plan.basic)
    if plan.is_basic:
        call(client, "assign", view, _fit(client, source, view.shape))
        return
    moved = call(client, "permute", view, plan.gather_order(view.ndim))
    mask = _only_mask(plan, moved.shape)
    if mask is not None and source.ndim == 0:
        # A choice per element needs no count of the mask's true elements, so no wait for the device.
        condition = _on_device(client, mask.mask, "setitem")
        tail = (NewAxisPart(),) * (moved.ndim - condition.ndim)
        condition = call(client, "slice", condition, (KeepPart(condition.ndim), *tail))
        select = loop_for(client, SELECT, (dt.bool_, source.dtype, moved.dtype))
        call(client, "assign", moved, select(condition, source, moved))
        return
    indices, index_shape = _index_arrays(client, plan, "setitem")
    shape = plan.result_shape(view.shape, index_shape)
    values = call(client, "broadcast", _fit(client, source, shape), shape)
    kept = len(shape) - len(index_shape)
    values = call(client, "permute", values, plan.value_order(len(index_shape), kept))
    if indices:
        call_at("setitem", client, "scatter", moved, indices, values)
    elif index_shape == (1,):
        # Only masks without axes, all true: the whole view is written.
        call(client, "assign", moved, call(client, "slice", values, _first_of_axis))


_first_of_axis = parse_key(0, (1,), "setitem", lambda _: None)


def _plan(client: RuntimeClient[Any], array: Any, key: Any, function: str) -> IndexPlan:
    def as_array(sequence: Sequence[Any]) -> Any:
        host = np.asarray(sequence)
        if host.size == 0:
            host = host.astype(client.defaults.indexing)
        return _from_host(client, host, function)

    return split_key(parse_key(key, array.shape, function, _array_kind, as_array))


def _array_kind(part: object) -> ArrayKind | None:
    """Whether a part of a key is an index array: a tensor, a native array, or a host array."""
    dtype = getattr(part, "dtype", None)
    if isinstance(dtype, np.dtype) and not isinstance(part, np.generic):
        if dtype.kind == "b":
            return "boolean"
        if dtype.kind in "iu":
            return "integer"
    return None


def _only_mask(plan: IndexPlan, shape: tuple[int, ...]) -> MaskPart | None:
    """The key's mask, if it is the key's only index array and covers leading axes of ``shape``."""
    part = plan.advanced[0][1]
    if len(plan.advanced) == 1 and isinstance(part, MaskPart) and part.ndim:
        # A mask with a length of 0 over a longer axis is legal, and picks nothing.
        return part if part.shape == shape[: part.ndim] else None
    return None


def _on_device(client: RuntimeClient[Any], array: Any, function: str) -> Any:
    """A part of a key as a native array of the client."""
    owner = getattr(array, "_client", None)
    if owner is client:
        return array._data
    if owner is not None:
        raise DeviceMismatch(
            f"{function}: the tensor is on {client.device} and an index on {owner.device}. "
            "Move the index with to_device() first."
        )
    return _from_host(client, array, function) if isinstance(array, np.ndarray) else array


def _from_host(client: RuntimeClient[Any], host: np.ndarray[Any, Any], function: str) -> Any:
    """A mask or an index array of the host on the device, whose dtypes may be narrower."""
    indexing = client.defaults.indexing
    if host.dtype.kind in "iu" and host.dtype != indexing:
        limits = dt.iinfo_of(indexing)
        if host.size and (host.min() < limits.min or host.max() > limits.max):
            raise IndexingError(
                f"{function}: an index array holds numbers from {host.min()} to {host.max()}, beyond the end of "
                "every axis."
            )
        host = host.astype(indexing)
    return call(client, "from_host", host, copy=True)


def _as_index(client: RuntimeClient[Any], index: Any) -> Any:
    """An index array in the device's own dtype of indices; what does not fit stays out of range."""
    indexing = client.defaults.indexing
    if index.dtype == indexing:
        return index
    limits = dt.iinfo_of(indexing)
    own = dt.iinfo_of(index.dtype)
    if own.max > limits.max:
        index = loop_for(client, MINIMUM, (index.dtype, int))(index, limits.max)
    if own.min < limits.min:
        index = loop_for(client, MAXIMUM, (index.dtype, int))(index, limits.min)
    return call(client, "cast", index, indexing)


def _index_arrays(
    client: RuntimeClient[Any], plan: IndexPlan, function: str
) -> tuple[list[Any], tuple[int, ...]]:
    """The plan's index arrays, broadcast to their common shape, one for each axis that is gathered."""
    arrays: list[Any] = []
    shapes: list[tuple[int, ...]] = []
    for _, part in plan.advanced:
        if isinstance(part, ArrayPart):
            index = _as_index(client, _on_device(client, part.array, function))
            arrays.append(index)
            shapes.append(index.shape)
        elif part.ndim:
            found = call(client, "nonzero", _on_device(client, part.mask, function))
            arrays.extend(found)
            shapes.append(found[0].shape)
        else:
            mask = part.mask
            if not isinstance(mask, bool):
                mask = read(function, client, _on_device(client, mask, function)).item()
            shapes.append((1,) if mask else (0,))
    index_shape = broadcast_index_shapes(tuple(shapes), function)
    return [call(client, "broadcast", index, index_shape) for index in arrays], index_shape


def _gather(
    client: RuntimeClient[Any], moved: Any, indices: list[Any], index_shape: tuple[int, ...]
) -> Any:
    if indices:
        return call_at("getitem", client, "gather", moved, indices)
    # Only masks without axes: a copy under one new axis of length 1 or 0.
    grown = call(client, "slice", moved, (NewAxisPart(),))
    cut = call(client, "slice", grown, (SlicePart(0, 1, index_shape[0]),))
    return call(client, "copy", cut)


def _value(client: RuntimeClient[Any], dtype: dt.DType, value: Any) -> Any:
    """The right side of an assignment as a native array that casts to ``dtype`` within its kind."""
    scalar_type = dt.scalar_type_of(value)
    if scalar_type is not None:
        if dt.promote_scalar(dtype, scalar_type, client.defaults) != dtype:
            raise DTypeError(
                f"setitem: a Python {scalar_type.__name__} does not fit a tensor of dtype {dtype}. "
                "Convert the value, or astype() the tensor first."
            )
        return call(client, "full", (), scalar_type(value), dtype)
    owner = getattr(value, "_client", None)
    if owner is client:
        source = value._data
    elif owner is not None:
        raise DeviceMismatch(
            f"setitem: the tensor is on {client.device} and the value on {owner.device}. "
            "Move the value with to_device() first."
        )
    elif isinstance(value, np.ndarray | list | tuple):
        host = np.asarray(value)
        host = host.astype(dt.as_dtype(host.dtype, "setitem"), copy=False)
        _require_same_kind(host.dtype, dtype)
        if host.dtype not in client.dtypes:
            cpu = client_of("cpu")  # the device cannot convert what it has not
            host = cpu.cast(cpu.from_host(host, copy=False), dtype)
        source = call(client, "from_host", host, copy=True)
    else:
        raise TypeError(
            f"setitem: a value of type {type(value).__name__} cannot be assigned; expected a tensor, "
            "a Python scalar, a NumPy array or a sequence of numbers."
        )
    _require_same_kind(source.dtype, dtype)
    return source


def _require_same_kind(source: dt.DType, target: dt.DType) -> None:
    if not np.can_cast(source, target, "same_kind"):
        raise DTypeError(
            f"setitem: values of dtype {source} do not fit a tensor of dtype {target}: the cast "
            "would change their kind. Convert them with astype() first."
        )


def _fit(client: RuntimeClient[Any], source: Any, shape: tuple[int, ...]) -> Any:
    """``source`` without leading axes of length 1 that ``shape`` does not have, if it broadcasts to it."""
    if not source.ndim:
        return source
    extra = source.ndim - len(shape)
    fitted = source
    if extra > 0 and all(n == 1 for n in source.shape[:extra]):
        fitted = call(client, "slice", source, _first_of_axis * extra)
    if fitted.shape != shape and (
        fitted.ndim > len(shape)
        or broadcast_shapes(fitted.shape, shape, function="setitem") != shape
    ):
        raise ShapeError(
            f"setitem: a value of shape {source.shape} could not be broadcast to the selected part of "
            f"shape {shape}."
        )
    return fitted
