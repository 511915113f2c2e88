"""The libraries that numr is measured beside, and numr itself, each with what a benchmark needs of it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import numr
from numr.runtime import client_of, runtime


@dataclass(frozen=True, slots=True)
class Library:
    """An array library that can be timed."""

    name: str
    #: Its array namespace.
    xp: Any
    #: Makes one of its arrays, in memory of its own, of a NumPy array.
    convert: Callable[[np.ndarray[Any, Any]], Any]
    #: Waits until the work of earlier calls is done.
    wait: Callable[[], object]


def _done() -> None:
    """Work on the host is done when a call returns."""


def numr_on(name: str) -> Library:
    """Give numr on the default device of one of its runtimes.

    Raises
    ------
    numr.errors.RuntimeUnavailable
        If the runtime cannot be used, with the reason.
    """
    xp = numr.namespace(name)
    device = runtime(name).default_device()
    client = client_of(device)

    def convert(array: np.ndarray[Any, Any]) -> Any:
        return numr.from_numpy(array, device=device, copy=True)

    return Library(xp.__name__, xp, convert, client.synchronize)


def numpy() -> Library:
    """Give NumPy."""
    return Library("numpy", np, np.copy, _done)


def _torch() -> Library:
    torch = importlib.import_module("torch")
    return Library("torch", torch, lambda array: torch.from_numpy(array.copy()), _done)


def _array_api_strict() -> Library:
    strict = importlib.import_module("array_api_strict")
    return Library("array_api_strict", strict, lambda array: strict.asarray(array.copy()), _done)


def _jax() -> Library:
    jax = importlib.import_module("jax")
    jnp = importlib.import_module("jax.numpy")
    # Without it JAX would compute in float32 where the others compute in float64.
    jax.config.update("jax_enable_x64", True)
    barrier = jax.jit(lambda x: x + 1)
    one = jnp.zeros(())
    cpu = jax.devices("cpu")[0]

    def wait() -> None:
        # Work on one device is done in order.
        barrier(one).block_until_ready()

    return Library("jax", jnp, lambda array: jax.device_put(array, cpu), wait)


def _torch_on_cuda() -> Library:
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        raise ImportError("torch has no CUDA device", name="torch.cuda")
    # By default products of float32 matrices may be rounded to TF32 by some versions.
    torch.backends.cuda.matmul.allow_tf32 = False
    return Library(
        "torch", torch, lambda array: torch.from_numpy(array).cuda(), torch.cuda.synchronize
    )


def _cupy() -> Library:
    cupy = importlib.import_module("cupy")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise ImportError(f"cupy has no CUDA device: {error}", name="cupy.cuda") from error
    if not count:
        raise ImportError("cupy has no CUDA device", name="cupy.cuda")
    return Library("cupy", cupy, cupy.asarray, cupy.cuda.Device().synchronize)


def _numexpr() -> Library:
    return Library("numexpr", importlib.import_module("numexpr"), np.copy, _done)


def _jax_on_cuda() -> Library:
    # It would reserve three quarters of the GPU's memory, which others compute in as well.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = importlib.import_module("jax")
    if jax.default_backend() != "gpu":
        raise ImportError("jax has no CUDA device", name="jax.cuda")
    library = _jax()
    return Library("jax", library.xp, jax.device_put, library.wait)


#: Libraries that may be installed. NumPy always is.
OPTIONAL: Final[dict[str, Callable[[], Library]]] = {
    "torch": _torch,
    "array_api_strict": _array_api_strict,
    "jax": _jax,
    "numexpr": _numexpr,
}


#: Those that compute on NVIDIA's GPUs.
ON_CUDA: Final[dict[str, Callable[[], Library]]] = {
    "cupy": _cupy,
    "torch": _torch_on_cuda,
    "jax": _jax_on_cuda,
}


def load(
    names: tuple[str, ...], makers: Mapping[str, Callable[[], Library]] = OPTIONAL
) -> tuple[list[Library], dict[str, str]]:
    """Load optional peers.

    Parameters
    ----------
    names : tuple of str
        Keys of ``makers``.
    makers : mapping of str to callable
        What makes each library, by its name.

    Returns
    -------
    list of Library
        Those that can be used.
    dict of str to str
        The others, each with the reason.
    """
    present: list[Library] = []
    absent: dict[str, str] = {}
    for name in names:
        try:
            present.append(makers[name]())
        except ImportError as error:
            absent[name] = why_absent(name, error)
    return present, absent


def why_absent(name: str, error: ImportError) -> str:
    """Say why a library is missing: not installed, or installed and broken."""
    if isinstance(error, ModuleNotFoundError) and error.name == name:
        return f"{name} is not installed"
    return f"{name} cannot be imported: {error}"
