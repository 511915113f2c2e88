"""``Tensor``: a storage and a layout on one device, with the operators of the standard."""

from __future__ import annotations

import importlib
from types import GenericAlias, ModuleType
from typing import Any, ClassVar

from numr import dtypes as dt
from numr.dtypes import DType, Kind
from numr.errors import BackendLimitation, DeviceMismatch, DTypeError, ShapeError
from numr.ir import ops
from numr.ir.ops import Op
from numr.layout import Layout, broadcast_shapes
from numr.runtime.client import RuntimeClient
from numr.runtime.device import Device
from numr.runtime.registry import client_of
from numr.runtime.storage import Storage
from numr.tensor.conversion import ConversionMixin
from numr.tensor.dispatch import call, loop_for, refuse_while_captured, require_writable
from numr.tensor.indexing import IndexingMixin
from numr.tensor.interop import InteropMixin
from numr.tensor.methods import MethodsMixin
from numr.tensor.printing import PrintingMixin


class Tensor(ConversionMixin, IndexingMixin, InteropMixin, MethodsMixin, PrintingMixin):
    """An n-dimensional array of one dtype on one device.

    Tensors come from the functions of a namespace (``numr.cpu.asarray``, ``zeros``, ...), from
    :func:`numr.from_numpy`, or from operations on other tensors; the class is not called directly. A tensor is a
    storage, shared by all views of it, plus a layout that says where its elements lie.

    Raises
    ------
    TypeError
        When called.

    Examples
    --------
    >>> import numr
    >>> x = numr.cpu.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape, x.dtype, str(x.device)
    ((2, 2), dtype('float64'), 'cpu')
    >>> x + 1
    Tensor([[2., 3.],
            [4., 5.]], dtype=float64, device=cpu)
    """

    __slots__ = ("__weakref__", "_client", "_data")
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)
    # Comparison gives tensors, so equal tensors cannot be found by hash.
    __hash__: ClassVar[None]  # type: ignore[assignment]

    _client: RuntimeClient[Any]
    _data: Any

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError(
            "Tensor: tensors are made by a namespace, not by the class. Use numr.cpu.asarray(obj), "
            "numr.from_numpy(array) or a creation function such as numr.cpu.zeros(shape)."
        )

    # -------------------------------------------------------------- attributes
    @property
    def dtype(self) -> DType:
        """Data type of the elements."""
        dtype: DType = self._data.dtype
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        shape: tuple[int, ...] = self._data.shape
        return shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        ndim: int = self._data.ndim
        return ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        size: int = self._data.size
        return size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; a view may occupy less."""
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> Device:
        """The device that the elements lie on."""
        return self._client.device

    @property
    def storage(self) -> Storage:
        """The storage that the tensor shares with its views."""
        return self._client.storage(self._data)

    @property
    def layout(self) -> Layout:
        """Where the elements lie in the storage, in elements."""
        return self._client.layout(self._data)

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance between neighbours along each axis, in elements."""
        return self.layout.strides

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        return self.layout.is_contiguous

    @property
    def T(self) -> Tensor:  # noqa: N802  (the standard's name)
        """The transpose of a matrix.

        Raises
        ------
        ShapeError
            If the tensor does not have two axes.
        """
        if self.ndim != 2:
            raise ShapeError(
                f"T: the tensor has shape {self.shape}; only two axes can be transposed this way. "
                "Use mT for stacks of matrices or permute_dims."
            )
        return self._like(call(self._client, "permute", self._data, (1, 0)))

    @property
    def mT(self) -> Tensor:  # noqa: N802  (the standard's name)
        """The transpose of a matrix or of each matrix in a stack.

        Raises
        ------
        ShapeError
            If the tensor has fewer than two axes.
        """
        ndim = self.ndim
        if ndim < 2:
            raise ShapeError(
                f"mT: the tensor has shape {self.shape}; at least two axes are needed."
            )
        axes = (*range(ndim - 2), ndim - 1, ndim - 2)
        return self._like(call(self._client, "permute", self._data, axes))

    def _like(self, data: Any) -> Tensor:
        """A tensor of another native array on the same device."""
        return wrap(data, self._client)

    # ------------------------------------------------------ namespace, devices
    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """The array-API namespace of the tensor's runtime, a module.

        Parameters
        ----------
        api_version : str, optional
            A version of the standard, ``"2021.12"`` to ``"2025.12"``; later versions include the earlier ones.

        Raises
        ------
        ValueError
            If the version is none of these.
        """
        if api_version is not None and api_version not in API_VERSIONS:
            raise ValueError(
                f"__array_namespace__: the version {api_version!r} is not supported; "
                f"numr has {', '.join(API_VERSIONS)}."
            )
        return importlib.import_module(self._client.runtime.namespace)

    def to_device(self, device: Device | str, /, *, stream: object = None) -> Tensor:
        """The tensor on another device, of any runtime; itself when it is there already.

        Parameters
        ----------
        device : Device or str
            A device, or its string such as ``"cuda:0"``.
        stream : object, optional
            Only runtimes with streams take one.

        Raises
        ------
        DeviceMismatch
            If there is no such device.
        BackendLimitation
            If a stream is given where there are none.
        """
        target = client_of(device)
        if stream is not None and self._client.compute_stream_handle() is None:
            raise BackendLimitation(
                self._client.runtime.name(),
                "to_device(stream=...)",
                "it has no streams; leave stream out.",
            )
        if target is self._client:
            return self
        data = self._data
        dtype = target.require_dtype(data.dtype, "to_device")
        if dtype != data.dtype:
            data = call(self._client, "cast", data, dtype)
        refuse_while_captured("to_device", self._client, data)
        return wrap(call(target, "from_other", self._client, data), target)

    # --------------------------------------------------------------- operators
    def __abs__(self) -> Tensor:
        return unary(ops.ABS, self)

    def __neg__(self) -> Tensor:
        return unary(ops.NEGATIVE, self)

    def __pos__(self) -> Tensor:
        return unary(ops.POSITIVE, self)

    def __invert__(self) -> Tensor:
        return unary(ops.BITWISE_INVERT, self)

    def __add__(self, other: Any, /) -> Tensor:
        return binary(ops.ADD, self, other)

    def __radd__(self, other: Any, /) -> Tensor:
        return binary(ops.ADD, other, self)

    def __iadd__(self, other: Any, /) -> Tensor:
        return inplace(ops.ADD, self, other)

    def __sub__(self, other: Any, /) -> Tensor:
        return binary(ops.SUBTRACT, self, other)

    def __rsub__(self, other: Any, /) -> Tensor:
        return binary(ops.SUBTRACT, other, self)

    def __isub__(self, other: Any, /) -> Tensor:
        return inplace(ops.SUBTRACT, self, other)

    def __mul__(self, other: Any, /) -> Tensor:
        return binary(ops.MULTIPLY, self, other)

    def __rmul__(self, other: Any, /) -> Tensor:
        return binary(ops.MULTIPLY, other, self)

    def __imul__(self, other: Any, /) -> Tensor:
        return inplace(ops.MULTIPLY, self, other)

    def __truediv__(self, other: Any, /) -> Tensor:
        return binary(ops.DIVIDE, self, other)

    def __rtruediv__(self, other: Any, /) -> Tensor:
        return binary(ops.DIVIDE, other, self)

    def __itruediv__(self, other: Any, /) -> Tensor:
        return inplace(ops.DIVIDE, self, other)

    def __floordiv__(self, other: Any, /) -> Tensor:
        return binary(ops.FLOOR_DIVIDE, self, other)

    def __rfloordiv__(self, other: Any, /) -> Tensor:
        return binary(ops.FLOOR_DIVIDE, other, self)

    def __ifloordiv__(self, other: Any, /) -> Tensor:
        return inplace(ops.FLOOR_DIVIDE, self, other)

    def __mod__(self, other: Any, /) -> Tensor:
        return binary(ops.REMAINDER, self, other)

    def __rmod__(self, other: Any, /) -> Tensor:
        return binary(ops.REMAINDER, other, self)

    def __imod__(self, other: Any, /) -> Tensor:
        return inplace(ops.REMAINDER, self, other)

    def __divmod__(self, other: Any, /) -> tuple[Tensor, Tensor]:
        return _divmod(self, other)

    def __rdivmod__(self, other: Any, /) -> tuple[Tensor, Tensor]:
        return _divmod(other, self)

    def __pow__(self, other: Any, /) -> Tensor:
        if is_square(self, other):
            return unary(ops.SQUARE, self)
        return binary(ops.POW, self, other)

    def __rpow__(self, other: Any, /) -> Tensor:
        return binary(ops.POW, other, self)

    def __ipow__(self, other: Any, /) -> Tensor:
        return inplace(ops.POW, self, other)

    def __and__(self, other: Any, /) -> Tensor:
        return binary(ops.BITWISE_AND, self, other)

    def __rand__(self, other: Any, /) -> Tensor:
        return binary(ops.BITWISE_AND, other, self)

    def __iand__(self, other: Any, /) -> Tensor:
        return inplace(ops.BITWISE_AND, self, other)

    def __or__(self, other: Any, /) -> Tensor:
        return binary(ops.BITWISE_OR, self, other)

    def __ror__(self, other: Any, /) -> Tensor:
        return binary(ops.BITWISE_OR, other, self)

    def __ior__(self, other: Any, /) -> Tensor:
        return inplace(ops.BITWISE_OR, self, other)

    def __xor__(self, other: Any, /) -> Tensor:
        return binary(ops.BITWISE_XOR, self, other)

    def __rxor__(self, other: Any, /) -> Tensor:
        return binary(ops.BITWISE_XOR, other, self)

    def __ixor__(self, other: Any, /) -> Tensor:
        return inplace(ops.BITWISE_XOR, self, other)

    def __lshift__(self, other: Any, /) -> Tensor:
        return binary(ops.BITWISE_LEFT_SHIFT, self, other)

    def __rlshift__(self, other: Any, /) -> Tensor:
        return binary(ops.BITWISE_LEFT_SHIFT, other, self)

    def __ilshift__(self, other: Any, /) -> Tensor:
        return inplace(ops.BITWISE_LEFT_SHIFT, self, other)

    def __rshift__(self, other: Any, /) -> Tensor:
        return binary(ops.BITWISE_RIGHT_SHIFT, self, other)

    def __rrshift__(self, other: Any, /) -> Tensor:
        return binary(ops.BITWISE_RIGHT_SHIFT, other, self)

    def __irshift__(self, other: Any, /) -> Tensor:
        return inplace(ops.BITWISE_RIGHT_SHIFT, self, other)

    def __eq__(self, other: Any, /) -> Tensor:  # type: ignore[override]
        return binary(ops.EQUAL, self, other)

    def __ne__(self, other: Any, /) -> Tensor:  # type: ignore[override]
        return binary(ops.NOT_EQUAL, self, other)

    def __lt__(self, other: Any, /) -> Tensor:
        return binary(ops.LESS, self, other)

    def __le__(self, other: Any, /) -> Tensor:
        return binary(ops.LESS_EQUAL, self, other)

    def __gt__(self, other: Any, /) -> Tensor:
        return binary(ops.GREATER, self, other)

    def __ge__(self, other: Any, /) -> Tensor:
        return binary(ops.GREATER_EQUAL, self, other)

    def __matmul__(self, other: Any, /) -> Tensor:
        return self._matmul(self, other)

    def __rmatmul__(self, other: Any, /) -> Tensor:
        return self._matmul(other, self)

    def __imatmul__(self, other: Any, /) -> Tensor:
        result = self._matmul(self, other)
        if result is NotImplemented:
            return result  # type: ignore[no-any-return]
        _require_fit("matmul", self, result.dtype, result.shape)
        call(self._client, "assign", self._data, result._data)
        return self

    def _matmul(self, left: Any, right: Any) -> Tensor:
        if not (isinstance(left, Tensor) and isinstance(right, Tensor)):
            return NotImplemented  # type: ignore[no-any-return]
        result: Tensor = self.__array_namespace__().matmul(left, right)
        return result


_new = Tensor.__new__

#: Versions of the standard that the namespaces serve.
API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def wrap(data: Any, client: RuntimeClient[Any]) -> Tensor:
    """The tensor of a native array on a client's device."""
    tensor: Tensor = _new(Tensor)
    tensor._data = data
    tensor._client = client
    return tensor


def unary(op: Op, x: Any) -> Tensor:
    """An operation of one operand."""
    if x.__class__ is Tensor:
        client = x._client
        data = x._data
        loop = client.loops.get((op, data.dtype))
        if loop is None:
            loop = loop_for(client, op, (data.dtype,))
        result: Tensor = _new(Tensor)
        result._data = loop(data)
        result._client = client
        return result
    return elementwise(op, x)


def binary(op: Op, x: Any, y: Any) -> Tensor:
    """An operator of two operands, of which one is a tensor; NotImplemented for foreign operands."""
    # Tensors on one device and plain scalars come first and pay for no generality: this is the path that
    # small-array code lives on.
    if x.__class__ is Tensor:
        client = x._client
        a = x._data
        one = a.dtype
        two = y.__class__
        if two is Tensor:
            if y._client is not client:
                raise mixed_devices(op.name, (x, y))
            b = y._data
            two = b.dtype
        elif two in _SCALARS:
            b = y
        elif _is_foreign(y):
            return _left_to(op, y)
        else:
            return elementwise(op, x, y)
    elif y.__class__ is Tensor and x.__class__ in _SCALARS:
        client = y._client
        a = x
        one = x.__class__
        b = y._data
        two = b.dtype
    elif _is_foreign(x) or _is_foreign(y):
        return _left_to(op, x if _is_foreign(x) else y)
    else:
        return elementwise(op, x, y)
    loop = client.loops.get((op, one, two))
    if loop is None:
        loop = loop_for(client, op, (one, two))
    result: Tensor = _new(Tensor)
    try:
        result._data = loop(a, b)
    except OverflowError as error:
        raise _scalar_overflow(op, (x, y), error) from None
    result._client = client
    return result


def is_square(x: Any, y: Any) -> bool:
    """Whether a power is the square of a tensor of the result's dtype: a product, quicker and rounded once."""
    return (
        y.__class__ in _SCALARS
        and y == 2
        and x.__class__ is Tensor
        and x._data.dtype.kind in _SQUARED.get(y.__class__, "")
    )


#: Kinds of dtypes that an exponent of a scalar type leaves as they are.
_SQUARED = {int: "iufc", float: "fc", complex: "c"}
_SCALARS = frozenset({bool, int, float, complex})


def _scalar_overflow(op: Op, operands: tuple[Any, ...], error: OverflowError) -> OverflowError:
    dtypes = ", ".join(str(x._data.dtype) for x in operands if x.__class__ is Tensor)
    return OverflowError(
        f"{op.name}: {error} (operands: {dtypes}). A Python scalar never widens a tensor; "
        "astype() the tensor first."
    )


def call2(op: Op, x: Any, y: Any) -> Tensor:
    """A function of two operands: as the operator, but foreign operands are an error."""
    result = binary(op, x, y)
    if result is NotImplemented:
        raise not_a_tensor(op.name, x if _is_foreign(x) else y)
    return result


def _is_foreign(operand: Any) -> bool:
    return operand.__class__ is not Tensor and dt.scalar_type_of(operand) is None


def _left_to(op: Op, foreign: Any) -> Tensor:
    """NotImplemented, so that a foreign operand has its turn.

    Python compares by identity where neither side knows the other. For arrays that is no answer: those of a library
    that does not know tensors, as it has no ``__array_ufunc__``, are refused.
    """
    compared = op is ops.EQUAL or op is ops.NOT_EQUAL
    if compared and hasattr(foreign, "__dlpack__") and not hasattr(foreign, "__array_ufunc__"):
        raise not_a_tensor(op.name, foreign)
    return NotImplemented  # type: ignore[no-any-return]


def elementwise(op: Op, *operands: Any) -> Tensor:
    """An operation of the op table on tensors of one device and Python scalars, broadcast together.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or none is a tensor.
    DTypeError
        If the dtypes do not promote or the operation is not defined for them.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.
    """
    client, kinds, arguments = _operands(op, operands)
    try:
        return wrap(loop_for(client, op, kinds)(*arguments), client)
    except OverflowError as error:
        raise _scalar_overflow(op, operands, error) from None


def _operands(
    op: Op, operands: tuple[Any, ...]
) -> tuple[RuntimeClient[Any], tuple[Kind, ...], tuple[Any, ...]]:
    """The client that operands share, their dtypes or scalar types, and they themselves unwrapped."""
    client: RuntimeClient[Any] | None = None
    kinds: list[Kind] = []
    arguments: list[Any] = []
    for operand in operands:
        if operand.__class__ is Tensor:
            if client is None:
                client = operand._client
            elif client is not operand._client:
                raise mixed_devices(op.name, operands)
            kinds.append(operand._data.dtype)
            arguments.append(operand._data)
        else:
            kind = dt.scalar_type_of(operand)
            if kind is None:
                raise not_a_tensor(op.name, operand)
            kinds.append(kind)
            arguments.append(kind(operand))
    if client is None:
        raise TypeError(
            f"{op.name}: got only Python scalars; at least one operand must be a tensor. "
            "Make one with asarray()."
        )
    return client, tuple(kinds), tuple(arguments)


def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Quotient rounded down and remainder; NotImplemented for foreign operands."""
    quotient = binary(ops.FLOOR_DIVIDE, x, y)
    if quotient is NotImplemented:
        return quotient  # type: ignore[no-any-return]
    return quotient, binary(ops.REMAINDER, x, y)


def inplace(op: Op, x: Tensor, y: Any) -> Tensor:
    """An in-place operator: the result is written into ``x``, whose dtype and shape stay."""
    if _is_foreign(y):
        return NotImplemented  # type: ignore[no-any-return]
    client, kinds, arguments = _operands(op, (x, y))
    op = ops.meant(op, kinds)
    shape = x.shape
    if y.__class__ is Tensor and y.shape != shape:
        shape = broadcast_shapes(shape, y.shape, function=op.name)
    dtype = client.signature(op, kinds).result
    _require_fit(op.name, x, dtype, shape)
    try:
        if dtype == x.dtype:
            call(client, "elementwise_into", op, kinds, arguments, x._data)
        else:
            call(client, "assign", x._data, loop_for(client, op, kinds)(*arguments))
    except OverflowError as error:
        raise _scalar_overflow(op, (x, y), error) from None
    return x


def _require_fit(function: str, target: Tensor, dtype: DType, shape: tuple[int, ...]) -> None:
    """Raise unless a result of the dtype and shape may be written into the target.

    A wider dtype of the target's own kind may: the caller asked for the narrower one by working in place.
    """
    if dtype.kind != target.dtype.kind:
        raise DTypeError(
            f"{function}: in place, the result has dtype {dtype} and does not fit the tensor's "
            f"{target.dtype}. Use the operator that makes a new tensor, or astype() first."
        )
    if shape != target.shape:
        raise ShapeError(
            f"{function}: in place, the result has shape {shape} and does not fit the tensor's "
            f"{target.shape}. Use the operator that makes a new tensor."
        )
    require_writable(function, target._client, target._data)


def not_a_tensor(function: str, value: object) -> TypeError:
    """The error for an argument that is no tensor."""
    cls = type(value)
    return TypeError(
        f"{function}: got {cls.__module__}.{cls.__qualname__}; expected a numr tensor"
        " or a Python scalar. Turn it into one with asarray()."
    )


def mixed_devices(function: str, operands: tuple[Any, ...]) -> DeviceMismatch:
    """The error for operands on different devices."""
    devices = ", ".join(str(x.device) for x in operands if isinstance(x, Tensor))
    return DeviceMismatch(
        f"{function}: the tensors are on different devices ({devices}). Move them to one with "
        "to_device() first."
    )
