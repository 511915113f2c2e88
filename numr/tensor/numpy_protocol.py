"""NumPy's override protocols: its functions, called on tensors, give tensors.

A ufunc or function that has a counterpart in the tensor's namespace runs as that. Any other one runs in NumPy where
the tensor is in host memory anyway. Elsewhere it is refused unless implicit copies are allowed: data never moves to the
host unasked.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from numr.config import config
from numr.errors import DTypeError, HostCopyError
from numr.tensor.dispatch import call
from numr.tensor.numpy_arguments import translated

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
    "asanyarray": "asarray",
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
        "clip",
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
        "full_like",
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
        "take",
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

#: Functions that are methods of tensors, with NumPy's arguments.
METHODS: Final = frozenset(["cumprod", "cumsum", "dot"])

#: Functions that make an array, where ``like=`` names a tensor.
CREATED: Final = frozenset(
    ["arange", "asanyarray", "asarray", "empty", "eye", "full", "linspace", "ones", "zeros"]
)

#: Of ``numpy.linalg``, for floating-point tensors; those of one symmetric or real matrix take the lower half alone.
LINALG: Final = frozenset(
    [
        *(
            "cholesky",
            "det",
            "eigh",
            "eigvalsh",
            "inv",
            "matrix_norm",
            "matrix_power",
            "matrix_rank",
        ),
        *("outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "vector_norm"),
    ]
)

#: Of ``numpy.fft``, for floating-point tensors.
FFT: Final = frozenset(
    [
        *("fft", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft"),
        *("irfft", "irfftn", "rfft", "rfftn"),
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
    result = None
    if method == "__call__" and function is not None and ufunc.nout == 1:
        if not kwargs:
            result = function(*(_as_operand(client, value) for value in inputs))
        elif kwargs.keys() == {"dtype"}:
            result = _computed_in(client, function, kwargs["dtype"], inputs)
    if result is None:
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


def _computed_in(client: RuntimeClient[Any], function: Any, dtype: Any, inputs: Any) -> Any:
    """A function of operands that are converted first; None where the result has another dtype than they."""
    target = np.dtype(dtype)
    if target not in client.dtypes or target.kind not in "fc":
        return None
    operands = [_as_operand(client, value) for value in inputs]
    converted = [x.astype(target, copy=False) if _is_tensor(x) else x for x in operands]
    result = function(*converted)
    return result if result.dtype == target else None


def array_function(client: RuntimeClient[Any], func: Any, args: Any, kwargs: Any) -> Any:
    """``__array_function__`` of the tensors of a client."""
    name = func.__name__
    if name in DESCRIPTIONS and func.__module__ == "numpy":
        return func(*_described(args), **_described(kwargs))
    if func is np.where and not kwargs:
        name, args = _numpy_where(args)
    if func is np.vstack and not kwargs and all(x.ndim >= 2 for x in args[0]):
        func, name = np.concatenate, "concatenate"  # along the first axis
    if func is np.take:
        args = _numpy_take(client, args)
    if func is np.einsum:
        kwargs = _numpy_einsum(args, kwargs)
    function = _counterpart(client, func, name, (args, kwargs))
    if function is not None and (name in CREATED or not _has_host_arrays((args, kwargs))):
        said = translated(func, function, args, kwargs)
        if said is not None:
            positional, named = said
            if name in CREATED:
                # Called with like=, which NumPy leaves out of the arguments.
                named["device"] = client.device
            return function(*positional, **named)
    _require_host(client, f"{func.__module__}.{func.__name__}")
    dtype = kwargs.get("dtype")
    if dtype is not None and np.dtype(dtype) not in client.dtypes:
        raise DTypeError(
            f"{func.__module__}.{func.__name__}: tensors have no dtype {np.dtype(dtype)}. Copy with to_numpy() "
            "first for an array of NumPy's."
        )
    result = func(*_unwrapped(args), **_unwrapped(kwargs))
    target = kwargs.get("out")
    return _wrapped(client, result) if target is None else target


def _counterpart(client: RuntimeClient[Any], func: Any, name: str, arguments: Any) -> Any:
    """The function of the namespace that does the same for such arguments; None where there is none."""
    namespace, module = _namespace(client), func.__module__
    if module == "numpy" and name in METHODS:
        from numr.tensor.core import Tensor

        return getattr(Tensor, name)
    if module == "numpy":
        shared = name in SHARED or name in CREATED
        return getattr(namespace, FUNCTIONS.get(name, name), None) if shared else None
    # The standard's factorisations and transforms are for floating-point numbers, where NumPy converts integers.
    if not _all_floating(arguments):
        return None
    if func is np.linalg.qr and not {"r", "raw"}.isdisjoint(_texts(arguments)):
        return None  # modes that the standard has not
    if module == "numpy.linalg" and name in LINALG:
        return getattr(namespace.linalg, name)
    if module == "numpy.fft" and name in FFT:
        return getattr(namespace.fft, name)
    return None


def _texts(arguments: Any) -> set[str]:
    args, kwargs = arguments
    return {value for value in (*args, *kwargs.values()) if isinstance(value, str)}


def _all_floating(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_all_floating(member) for member in value)
    if isinstance(value, dict):
        return all(_all_floating(member) for member in value.values())
    return not _is_tensor(value) or value.dtype.kind in "fc"


def _numpy_einsum(args: Any, kwargs: Any) -> Any:
    """The keyword arguments of ``numpy.einsum`` that matter: not how it is done, nor the dtype that operands have."""
    own = all(x.dtype == kwargs.get("dtype") for x in args if _is_tensor(x))
    dropped = {"casting", "optimize", "order", *(["dtype"] if own else [])}
    return {name: value for name, value in kwargs.items() if name not in dropped}


def _numpy_take(client: RuntimeClient[Any], args: Any) -> Any:
    """``numpy.take`` with indices from the host, which go to the device as those in brackets do."""
    if len(args) > 1 and _is_tensor(args[0]) and isinstance(args[1], list | tuple | np.ndarray):
        indices = np.asarray(args[1])
        if indices.dtype.kind in "iu":
            return (args[0], _wrapped(client, indices), *args[2:])
    return args


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
