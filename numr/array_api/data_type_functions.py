"""Data type functions of the standard."""

from __future__ import annotations

from typing import Any, Final

from numr import dtypes as dt
from numr.array_api._arguments import Tensor, tensor
from numr.dtypes import DefaultDTypes, DType, FInfo, IInfo, Kind, Scalar
from numr.errors import DTypeError
from numr.runtime.device import Device
from numr.runtime.registry import client_of
from numr.tensor import primitives as p
from numr.tensor.core import mixed_devices

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

# What Python scalars beside dtypes promote to where no tensor, and so no device, says otherwise.
_DEFAULTS: Final = DefaultDTypes(dt.float64, dt.complex128, dt.int64, dt.int64)


def astype(
    x: Tensor, dtype: DType, /, *, copy: bool = True, device: Device | str | None = None
) -> Tensor:
    """A tensor with its elements converted to another dtype.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape.
    dtype : dtype
        The dtype to convert to. Non-zero values, NaN among them, become True in ``bool``.
    copy : bool, optional
        Whether a tensor that has the dtype already is copied; with False it is returned itself.
    device : Device or str, optional
        The device of the result; by default that of ``x``.

    Returns
    -------
    Tensor
        A tensor of ``x``'s shape and the dtype asked for.

    Raises
    ------
    DTypeError
        If ``x`` is complex and ``dtype`` is neither complex nor ``bool``, because it is not said which
        component is meant, or if the device of the result does not have the dtype.
    DeviceMismatch, RuntimeUnavailable
        If there is no such device, or no such runtime.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.astype(xp.asarray([1.5, -2.5]), xp.int64).tolist()
    [1, -2]
    """
    x = tensor("astype", x)
    target = dt.as_dtype(dtype, "astype")
    if x.dtype.kind == "c" and target.kind not in "bc":
        raise DTypeError(
            f"astype: {x.dtype} does not convert to {target}, which holds one component only. "
            "Take real(x), imag(x) or abs(x) first."
        )
    if device is not None and client_of(device) is not x._client:
        # Either device may lack the other's dtype: the conversion runs where both are present.
        if target in x._client.dtypes:
            return p.cast(x, target).to_device(device)
        x = x.to_device(device)
        copy = False
    target = x._client.require_dtype(target, "astype")
    if x.dtype == target:
        return p.copy(x) if copy else x
    return p.cast(x, target)


def can_cast(from_: Tensor | DType, to: DType, /) -> bool:
    """Whether promotion alone leads from one dtype to another.

    Parameters
    ----------
    from_ : Tensor or dtype
        The dtype to convert from. A tensor asks about its device as well.
    to : dtype
        The dtype to convert to.

    Returns
    -------
    bool
        True if some pair of ``from_`` with a dtype of its kind promotes to ``to``. For a tensor, False if
        its device does not have ``to``.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    target = dt.as_dtype(to, "can_cast")
    if isinstance(from_, Tensor):
        return target in from_._client.dtypes and dt.can_cast_dtypes(from_.dtype, target)
    return dt.can_cast_dtypes(dt.as_dtype(from_, "can_cast"), target)


def finfo(type: Tensor | DType, /) -> FInfo:
    """Limits of a floating-point dtype.

    Parameters
    ----------
    type : Tensor or dtype
        A floating-point dtype, or a tensor that has one. A complex dtype stands for its components'.

    Returns
    -------
    FInfo
        ``bits`` as an int, ``eps``, ``max``, ``min`` and ``smallest_normal`` as floats, and ``dtype``.

    Raises
    ------
    DTypeError
        If the dtype is not floating-point.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.finfo(xp.float32).bits, xp.finfo(xp.complex128).eps
    (32, 2.220446049250313e-16)
    """
    return dt.finfo_of(_dtype_of("finfo", type))


def iinfo(type: Tensor | DType, /) -> IInfo:
    """Limits of an integer dtype.

    Parameters
    ----------
    type : Tensor or dtype
        An integer dtype, or a tensor that has one.

    Returns
    -------
    IInfo
        ``bits``, ``max`` and ``min`` as ints, and ``dtype``.

    Raises
    ------
    DTypeError
        If the dtype is not an integer dtype.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.iinfo(xp.int8).min, xp.iinfo(xp.int8).max
    (-128, 127)
    """
    return dt.iinfo_of(_dtype_of("iinfo", type))


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Whether a dtype is of a kind.

    Parameters
    ----------
    dtype : dtype
        The dtype in question.
    kind : dtype, str or tuple of these
        A dtype, one of the names "bool", "signed integer", "unsigned integer", "integral",
        "real floating", "complex floating" and "numeric", or several of these, of which one must hold.

    Returns
    -------
    bool
        Whether it is.

    Raises
    ------
    ValueError
        If a name is none of these.

    Notes
    -----
    ``float16`` is "real floating" and "numeric".

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.isdtype(xp.uint8, "integral"), xp.isdtype(xp.uint8, ("bool", xp.float32))
    (True, False)
    """
    return dt.isdtype(dt.as_dtype(dtype, "isdtype"), kind)


def result_type(*arrays_and_dtypes: Tensor | Scalar | DType) -> DType:
    """The dtype that an operation on the arguments would compute in.

    Parameters
    ----------
    *arrays_and_dtypes : Tensor, dtype, bool, int, float or complex
        What is to be promoted; at least one tensor or dtype. The tensors are on one device.

    Returns
    -------
    dtype
        The dtype that the arguments promote to.

    Raises
    ------
    ValueError
        If there is no tensor or dtype among the arguments.
    DTypeError
        If the dtypes do not promote, or the tensors' device does not have the result.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Beyond the standard, an integer dtype with a floating-point one gives the floating-point dtype, and a
    Python scalar of another kind than the dtypes gives the device's default dtype of that kind; without
    a tensor these are float64, complex128 and int64.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.result_type(xp.int8, xp.uint8), xp.result_type(xp.float32, 1.0)
    (dtype('int16'), dtype('float32'))
    """
    tensors = [x for x in arrays_and_dtypes if isinstance(x, Tensor)]
    if any(x._client is not tensors[0]._client for x in tensors):
        raise mixed_devices("result_type", tuple(tensors))
    kinds = tuple(_kind(x) for x in arrays_and_dtypes)
    if all(isinstance(kind, type) for kind in kinds):
        raise ValueError(
            "result_type: got only Python scalars, which take their dtype from what they are combined with. "
            "Give at least one tensor or dtype."
        )
    defaults = tensors[0]._client.defaults if tensors else _DEFAULTS
    try:
        result = dt.promote_kinds(kinds, defaults)
    except DTypeError as error:
        raise DTypeError(f"result_type: {error}") from None
    return tensors[0]._client.require_dtype(result, "result_type") if tensors else result


def _kind(argument: Any) -> Kind:
    if isinstance(argument, Tensor):
        return argument.dtype
    return dt.scalar_type_of(argument) or dt.as_dtype(argument, "result_type")


def _dtype_of(function: str, argument: Tensor | DType) -> DType:
    return argument.dtype if isinstance(argument, Tensor) else dt.as_dtype(argument, function)
