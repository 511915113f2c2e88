"""NumPy's override protocols: its functions, called on tensors, give tensors.

A ufunc or function that has a counterpart in the tensor's namespace runs as that. Any other one runs in NumPy where
the tensor is in host memory anyway. Elsewhere it is refused unless implicit copies are allowed: data never moves to the
host unasked.
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from numr.config import config
from numr.errors import DTypeError, HostCopyError
from numr.tensor.dispatch import call

if TYPE_CHECKING:
    from numr.runtime.client import RuntimeClient

#: NumPy's names of ufuncs where they differ from the standard's.
UFUNCS: Final[dict[str, str]] = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "true_divide": "divide",
}

#: NumPy's names of functions where they differ from the standard's.
FUNCTIONS: Final[dict[str, str]] = {
    "amax": "max",
    "amin": "min",
    "concatenate": "concat",
}

#: Functions whose arguments mean the same in NumPy and in the standard, so that the namespace's own runs.
SHARED: Final = frozenset(
    [
        "all",
        "amax",
        "amin",
        "any",
        "argmax",
        "argmin",
        "argsort",
        "astype",
        "broadcast_arrays",
        "broadcast_to",
        "concatenate",
        "count_nonzero",
        "cumulative_prod",
        "cumulative_sum",
        "diag",
        "diff",
        "einsum",
        "empty_like",
        "expand_dims",
        "flip",
        "gradient",
        "interp",
        "isin",
        "matmul",
        "matrix_transpose",
        "max",
        "mean",
        "median",
        "min",
        "moveaxis",
        "nanmax",
        "nanmean",
        "nanmedian",
        "nanmin",
        "nanprod",
        "nanquantile",
        "nanstd",
        "nansum",
        "nanvar",
        "nonzero",
        "ones_like",
        "pad",
        "permute_dims",
        "prod",
        "quantile",
        "ravel",
        "repeat",
        "roll",
        "sort",
        "squeeze",
        "stack",
        "std",
        "sum",
        "swapaxes",
        "take_along_axis",
        "tensordot",
        "tile",
        "transpose",
        "trapezoid",
        "tril",
        "triu",
        "unstack",
        "var",
        "vecdot",
        "where",
        "zeros_like",
    ]
)

#: Functions that look at shapes and dtypes alone.
DESCRIPTIONS: Final = frozenset(
    ["can_cast", "common_type", "iscomplexobj", "isrealobj", "ndim", "result_type", "shape", "size"]
)


def array_ufunc(
    client: RuntimeClient[Any], ufunc: Any, method: str, inputs: Any, kwargs: Any
) -> Any:
    """``__array_ufunc__`` of the tensors of a client."""
    out = kwargs.pop("out", None)
    if any(_unusable(value) for value in inputs):
        return NotImplemented
    name = UFUNCS.get(ufunc.__name__, ufunc.__name__)
    function = getattr(_namespace(client), name, None)
    if method == "__call__" and not kwargs and function is not None and ufunc.nout == 1:
        result = function(*(_as_operand(client, value) for value in inputs))
    else:
        _require_host(client, f"numpy.{ufunc.__name__}.{method}")
        result = _wrapped(client, getattr(ufunc, method)(*_unwrapped(inputs), **_unwrapped(kwargs)))
    if out is None:
        return result
    (target,) = out
    if isinstance(target, np.ndarray):
        np.copyto(target, _unwrapped(result), casting="same_kind")
    else:
        target[...] = result
    return target


def array_function(client: RuntimeClient[Any], func: Any, args: Any, kwargs: Any) -> Any:
    """``__array_function__`` of the tensors of a client."""
    name = func.__name__
    if name in DESCRIPTIONS and func.__module__ == "numpy":
        return func(*_described(args), **_described(kwargs))
    if func is np.where and not kwargs:
        name, args = _numpy_where(args)
    if name in SHARED and func.__module__ == "numpy":
        function = getattr(_namespace(client), FUNCTIONS.get(name, name), None)
        if (
            function is not None
            and not _has_host_arrays((args, kwargs))
            and _takes(function, args, kwargs)
        ):
            return function(*args, **kwargs)
    _require_host(client, f"{func.__module__}.{func.__name__}")
    dtype = kwargs.get("dtype")
    if dtype is not None and np.dtype(dtype) not in client.dtypes:
        raise DTypeError(
            f"{func.__module__}.{func.__name__}: tensors have no dtype {np.dtype(dtype)}. Copy with to_numpy() "
            "first for an array of NumPy's."
        )
    return _wrapped(client, func(*_unwrapped(args), **_unwrapped(kwargs)))


def _require_host(client: RuntimeClient[Any], function: str) -> None:
    """Raise unless NumPy may have the elements of tensors."""
    if not client.host_memory and not config.allow_host_copies:
        raise HostCopyError(
            f"{function}: not available for tensors on {client.device}, and for NumPy they would be copied to the "
            "host implicitly. Use the tensor's own namespace, call to_numpy() first, or allow such copies with "
            "numr.config.allow_host_copies = True or NUMR_ALLOW_HOST_COPIES=1."
        )


def _numpy_where(args: Any) -> tuple[str, Any]:
    """What ``numpy.where`` means: any condition counts as true where it is not zero, and alone gives indices."""
    if len(args) == 1:
        return "nonzero", args
    condition, *values = args
    if _is_tensor(condition) and condition.dtype != np.bool_:
        condition = condition != 0
    return "where", (condition, *values)


def _namespace(client: RuntimeClient[Any]) -> Any:
    return importlib.import_module(client.runtime.namespace)


def _takes(function: Any, args: Any, kwargs: Any) -> bool:
    """Whether the namespace's function has all arguments of a call: NumPy's know more, such as ``where=``."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _is_tensor(value: object) -> bool:
    return hasattr(value, "_client") and hasattr(value, "_data")


def _unusable(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "OSUVmM"


def _as_operand(client: RuntimeClient[Any], value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if not client.host_memory:
        raise TypeError(
            f"a NumPy array of shape {value.shape} and a tensor on {client.device} do not mix. "
            "Move the array with asarray(array, device=...) first, or the tensor with to_numpy()."
        )
    return _wrapped(client, value)


def _has_host_arrays(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_has_host_arrays(member) for member in value)
    if isinstance(value, dict):
        return any(_has_host_arrays(member) for member in value.values())
    return isinstance(value, np.ndarray)


def _unwrapped(value: Any) -> Any:
    """Tensors, in containers too, as the host arrays that they are."""
    if isinstance(value, list | tuple):
        return _rebuilt(value, [_unwrapped(member) for member in value])
    if isinstance(value, dict):
        return {key: _unwrapped(member) for key, member in value.items()}
    return value.to_numpy() if _is_tensor(value) else value


def _described(value: Any) -> Any:
    """Tensors, in containers too, as host arrays of their shapes and dtypes, which have one element in memory."""
    if isinstance(value, list | tuple):
        return _rebuilt(value, [_described(member) for member in value])
    if isinstance(value, dict):
        return {key: _described(member) for key, member in value.items()}
    return np.broadcast_to(np.zeros((), value.dtype), value.shape) if _is_tensor(value) else value


def _wrapped(client: RuntimeClient[Any], value: Any) -> Any:
    """Host arrays, in containers too, as tensors; arrays of other dtypes (strings, dates) stay."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype in client.dtypes:
        from numr.tensor.core import wrap

        return wrap(call(client, "from_host", np.asarray(value), copy=False), client)
    if isinstance(value, list | tuple):
        return _rebuilt(value, [_wrapped(client, member) for member in value])
    return value


def _rebuilt(container: Any, members: list[Any]) -> Any:
    """A list, tuple or named tuple like another one, of other members."""
    cls = type(container)
    return cls(*members) if hasattr(cls, "_fields") else cls(members)
