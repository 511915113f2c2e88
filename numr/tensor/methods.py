"""The NumPy-style methods that dask, xarray, SciPy and habit call; each is the namespace's function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numr import dtypes as dt
from numr.tensor.dispatch import call
from numr.tensor.parts import TensorPart

if TYPE_CHECKING:
    from numr.tensor.core import Tensor


class MethodsMixin(TensorPart):
    """Methods beyond the standard."""

    __slots__ = ()

    # ------------------------------------------------------------ form and type
    def contiguous(self) -> Tensor:
        """The tensor in C order: itself if it is, else a copy."""
        if self._client.layout(self._data).is_contiguous:
            return self._like(self._data)
        return self._like(call(self._client, "copy", self._data))

    def copy(self) -> Tensor:
        """A new C-contiguous tensor with the same elements."""
        return self._like(call(self._client, "copy", self._data))

    def astype(self, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
        """The tensor converted to ``dtype``."""
        result: Tensor = self.__array_namespace__().astype(self, dtype, copy=copy, device=device)
        return result

    def view(self, dtype: Any, /) -> Tensor:
        """The same memory read as another dtype; the last axis grows or shrinks with the item size.

        Raises
        ------
        ShapeError
            If the last axis does not hold whole elements of the new dtype.
        """
        dtype = self._client.require_dtype(dt.as_dtype(dtype, "view"), "view", exact=True)
        return self._like(call(self._client, "bitcast", self._data, dtype))

    def reshape(self, *shape: Any, copy: bool | None = None) -> Tensor:
        """The tensor in another shape, given as integers or one tuple; one length may be -1."""
        lengths = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        result: Tensor = self.__array_namespace__().reshape(self, lengths, copy=copy)
        return result

    def ravel(self) -> Tensor:
        """The elements along one axis, a view where there is one."""
        return self.reshape(-1)

    def flatten(self) -> Tensor:
        """A copy of the elements along one axis."""
        return self.reshape(-1, copy=True)

    def transpose(self, *axes: Any) -> Tensor:
        """The axes in another order; reversed where none is given."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        ndim = self._data.ndim
        return self._call("permute_dims", tuple(order) if order else tuple(reversed(range(ndim))))

    def squeeze(self, axis: Any = None) -> Tensor:
        """Without axes of length 1: those given, or all."""
        if axis is None:
            axis = tuple(i for i, n in enumerate(self._data.shape) if n == 1)
        return self._call("squeeze", axis)

    @property
    def real(self) -> Tensor:
        """The real parts."""
        return self._call("real")

    @property
    def imag(self) -> Tensor:
        """The imaginary parts."""
        return self._call("imag")

    def conj(self) -> Tensor:
        """The complex conjugates."""
        return self._call("conj")

    # -------------------------------------------------------------- reductions
    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
        """Sum over axes."""
        return self._call("sum", axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
        """Product over axes."""
        return self._call("prod", axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
        """Mean over axes."""
        return self._call("mean", axis=axis, dtype=dtype, keepdims=keepdims)

    def var(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
        """Variance over axes, divided by ``n - ddof``."""
        return self._call("var", axis=axis, correction=ddof, keepdims=keepdims)

    def std(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
        """Standard deviation over axes, divided by ``n - ddof``."""
        return self._call("std", axis=axis, correction=ddof, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Maximum over axes."""
        return self._call("max", axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Minimum over axes."""
        return self._call("min", axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Whether any element over axes is true."""
        return self._call("any", axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Whether all elements over axes are true."""
        return self._call("all", axis=axis, keepdims=keepdims)

    def argmax(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Index of the first maximum."""
        return self._call("argmax", axis=axis, keepdims=keepdims)

    def argmin(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Index of the first minimum."""
        return self._call("argmin", axis=axis, keepdims=keepdims)

    def cumsum(self, axis: Any = None, dtype: Any = None) -> Tensor:
        """Running sum; over all elements along one axis where ``axis`` is None."""
        x = self.ravel() if axis is None else self
        return x._call("cumulative_sum", axis=0 if axis is None else axis, dtype=dtype)

    def cumprod(self, axis: Any = None, dtype: Any = None) -> Tensor:
        """Running product; over all elements along one axis where ``axis`` is None."""
        x = self.ravel() if axis is None else self
        return x._call("cumulative_prod", axis=0 if axis is None else axis, dtype=dtype)

    # ------------------------------------------------------------------- others
    def nonzero(self) -> tuple[Tensor, ...]:
        """Index tensors of the elements that are not zero."""
        result: tuple[Tensor, ...] = self.__array_namespace__().nonzero(self)
        return result

    def repeat(self, repeats: Any, axis: Any = None) -> Tensor:
        """Each element repeated along an axis."""
        return self._call("repeat", repeats, axis=axis)

    def take(self, indices: Any, axis: Any = None) -> Tensor:
        """Elements at indices along an axis."""
        return self._call("take", indices, axis=axis)

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """The elements limited to a range."""
        return self._call("clip", min, max)

    def dot(self, other: Tensor) -> Tensor:
        """Matrix product, or the product with a tensor without axes.

        Raises
        ------
        ShapeError
            If the inner lengths differ.
        """
        xp = self.__array_namespace__()
        if self._data.ndim == 0 or other.ndim == 0:
            result: Tensor = xp.multiply(self, other)
        elif other.ndim == 1:
            result = xp.tensordot(self, other, axes=((self._data.ndim - 1,), (0,)))
        else:
            axes = ((self._data.ndim - 1,), (other.ndim - 2,))
            result = xp.tensordot(self, other, axes=axes)
        return result

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Tensor:
        result: Tensor = getattr(self.__array_namespace__(), name)(self, *args, **kwargs)
        return result
