"""Tensors in files of NumPy's formats: ``.npy`` for one, ``.npz`` for several with names."""

from __future__ import annotations

import importlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from numr.errors import CopyError
from numr.runtime.device import Device
from numr.runtime.registry import client_of
from numr.tensor.core import Tensor

__all__ = ["load", "save"]

FilePath = str | os.PathLike[str]


def on_device(host: np.ndarray[Any, Any], device: Device | str, *, copy: bool | None) -> Tensor:
    """The tensor of a host array on a device of any runtime."""
    client = client_of(device)
    namespace = importlib.import_module(client.runtime.namespace)
    tensor: Tensor = namespace.asarray(host, device=client.device, copy=copy)
    return tensor


def require_mappable(function: str, device: Device | str) -> None:
    """Raise unless tensors on a device can lie over the memory of a file."""
    if not client_of(device).host_memory:
        raise CopyError(
            f"{function}: mmap=True, but tensors on {device} are in memory of their own. Leave mmap out."
        )


def save(file: FilePath, tensors: Tensor | Mapping[str, Tensor], /) -> None:
    """Write tensors to a file that NumPy can read as well.

    Parameters
    ----------
    file : path-like
        The file, which is replaced where it exists. Its name ends in ``.npy`` for one tensor, in ``.npz`` for
        several.
    tensors : Tensor or mapping of str to Tensor
        What is written, of any device.

    Raises
    ------
    TypeError
        If that is no tensor, or no mapping of names to tensors.
    ValueError
        If the name of the file says otherwise.

    Examples
    --------
    >>> import tempfile
    >>> import numr
    >>> x = numr.cpu.asarray([1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numr.save(f"{folder}/x.npz", {"x": x, "twice": 2 * x})
    ...     numr.load(f"{folder}/x.npz")["twice"]
    Tensor([2., 4.], dtype=float64, device=cpu)
    """
    path = Path(file)
    several = not isinstance(tensors, Tensor)
    if several:
        require_tensors("save", tensors)
    if path.suffix != (".npz" if several else ".npy"):
        raise ValueError(
            f"save: the file is called {path.name!r}; one tensor goes into an .npy file, a mapping of names to "
            "tensors into an .npz file."
        )
    if isinstance(tensors, Tensor):
        with path.open("wb") as stream:
            np.lib.format.write_array(stream, tensors.to_numpy(), allow_pickle=False)
        return
    # One tensor after the other, so that the host holds one copy at a time.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, tensor in tensors.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, tensor.to_numpy(), allow_pickle=False)


def load(
    file: FilePath, /, *, device: Device | str = "cpu", mmap: bool = False
) -> Tensor | dict[str, Tensor]:
    """Read the tensors of an ``.npy`` or ``.npz`` file, whoever wrote it.

    Parameters
    ----------
    file : path-like
        The file. Its contents say which of the two it is.
    device : Device or str
        Where the tensors go, of any runtime.
    mmap : bool
        Whether the tensor lies over the file, read-only, so that only what is used is read. For ``.npy`` files on
        the CPU.

    Returns
    -------
    Tensor or dict of str to Tensor
        One tensor of an ``.npy`` file, all tensors by name of an ``.npz`` file.

    Raises
    ------
    CopyError
        If ``mmap`` is asked for where only a copy gives the tensors.
    DTypeError
        If the device does not have a dtype of the file.
    ValueError
        If the file is neither, or holds pickled objects, which are never read.

    Examples
    --------
    >>> import tempfile
    >>> import numr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numr.save(f"{folder}/x.npy", numr.cpu.asarray([1, 2]))
    ...     numr.load(f"{folder}/x.npy")
    Tensor([1, 2], dtype=int64, device=cpu)
    """
    path = Path(file)
    if mmap:
        require_mappable("load", device)
        if zipfile.is_zipfile(path):
            raise CopyError(
                f"load: mmap=True, but {path.name!r} is an archive of several tensors. Leave mmap out, or save "
                "them one by one or by save_safetensors()."
            )
    stored = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    if isinstance(stored, np.ndarray):
        # Without mmap the array was made for this call, so that the tensor may have its memory.
        return on_device(stored.view(np.ndarray), device, copy=False if mmap else None)
    with stored:
        return {name: on_device(stored[name], device, copy=None) for name in stored.files}


def require_tensors(function: str, tensors: object) -> None:
    """Raise unless something is a mapping of names to tensors."""
    if isinstance(tensors, Mapping):
        for name, tensor in tensors.items():
            if not isinstance(name, str) or not isinstance(tensor, Tensor):
                raise TypeError(
                    f"{function}: got {type(tensor).__name__} by the name {name!r}; expected tensors by names that "
                    "are strings. Turn arrays into tensors with asarray()."
                )
    else:
        raise TypeError(
            f"{function}: got {type(tensors).__name__}; expected a tensor or a mapping of names to tensors. Turn "
            "arrays into tensors with asarray()."
        )
