"""numr: one Tensor over a family of runtimes, each an array namespace of the Python array API standard.

``numr.cpu`` is a drop-in array namespace; other runtimes have one each. Importing numr loads no GPU library and
touches no driver: a runtime is loaded when its namespace is first used.

Examples
--------
>>> import numr.cpu as xp
>>> x = xp.linspace(0, 1, 3)
>>> xp.sum(x * x)
Tensor(1.25, dtype=float64, device=cpu)
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

# The names of dtypes are NumPy's scalar types, for the reason that numr.array_api.data_types gives.
from numpy import (
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

from numr import errors
from numr.config import config

if TYPE_CHECKING:
    import numpy as np

    from numr.interop.files import load, save
    from numr.interop.safetensors import load_safetensors, save_safetensors
    from numr.runtime.device import Device
    from numr.runtime.registry import available, unavailable
    from numr.tensor.capture import capture, jit
    from numr.tensor.core import Tensor

__version__ = "0.1.0"

__all__ = [
    "Tensor",
    "__version__",
    "asnumpy",
    "available",
    "capture",
    "complex64",
    "complex128",
    "config",
    "errors",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "int8",
    "int16",
    "int32",
    "int64",
    "jit",
    "load",
    "load_safetensors",
    "namespace",
    "save",
    "save_safetensors",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unavailable",
]


def namespace(name: str) -> ModuleType:
    """The array namespace of a runtime.

    Parameters
    ----------
    name : str
        Name of the runtime, such as ``"cpu"``.

    Returns
    -------
    module
        ``numr.cpu`` and its like.

    Raises
    ------
    RuntimeUnavailable
        If the runtime cannot be used on this machine, with what is missing.
    ValueError
        If there is no runtime of that name.

    Examples
    --------
    >>> import numr
    >>> numr.namespace("cpu").__name__
    'numr.cpu'
    """
    from numr.runtime.registry import runtime

    return importlib.import_module(runtime(name).namespace)


def from_numpy(
    array: np.ndarray[Any, Any], /, *, device: Device | str = "cpu", copy: bool | None = None
) -> Tensor:
    """A tensor of a NumPy array's elements.

    Parameters
    ----------
    array : numpy.ndarray
        Of one of numr's dtypes.
    device : Device or str
        Where the tensor goes, of any runtime.
    copy : bool, optional
        On the CPU the tensor shares the array's memory unless True; elsewhere the data is copied.

    Returns
    -------
    Tensor
        Of the array's shape and dtype; read-only where it shares the memory of a read-only array.

    Raises
    ------
    CopyError
        If ``copy=False`` and only a copy gives the result.
    DTypeError
        If numr or the device does not have the dtype.

    Examples
    --------
    >>> import numpy as np
    >>> import numr
    >>> numr.from_numpy(np.arange(3.0))
    Tensor([0., 1., 2.], dtype=float64, device=cpu)
    """
    from numr.runtime.registry import client_of

    client = client_of(device)
    module = importlib.import_module(client.runtime.namespace)
    tensor: Tensor = module.asarray(array, device=client.device, copy=copy)
    return tensor


def asnumpy(x: Tensor, /) -> np.ndarray[Any, Any]:
    """The elements of a tensor as a NumPy array, see :meth:`Tensor.to_numpy`.

    Examples
    --------
    >>> import numr
    >>> numr.asnumpy(numr.cpu.asarray([1, 2]))
    array([1, 2])
    """
    return x.to_numpy()


#: What is loaded on first use, since ``import numr`` alone should cost little more than ``import numpy``.
_LAZY = {
    "capture": "numr.tensor.capture",
    "jit": "numr.tensor.capture",
    "load": "numr.interop.files",
    "load_safetensors": "numr.interop.safetensors",
    "save": "numr.interop.files",
    "save_safetensors": "numr.interop.safetensors",
    "Tensor": "numr.tensor.core",
    "available": "numr.runtime.registry",
    "unavailable": "numr.runtime.registry",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
        return value
    if name in ("cpu", "cuda", "wgpu"):
        return namespace(name)
    raise AttributeError(f"module 'numr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
