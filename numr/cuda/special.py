"""Special functions on CUDA: those of ``cupyx.scipy.special``, by their names, on tensors.

With ``SCIPY_ARRAY_API=1`` SciPy finds them here: ``scipy.special`` and most of ``scipy.stats`` then stay on the GPU.

Examples
--------
>>> import numr.cuda as xp  # doctest: +SKIP
>>> xp.special.erf(xp.asarray([0.0, 1.0]))  # doctest: +SKIP
Tensor([0.        , 0.84270079], dtype=float64, device=cuda:0)
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from numr.array_api._arguments import floating
from numr.runtime.cuda import driver
from numr.tensor.core import Tensor, mixed_devices, not_a_tensor, wrap
from numr.tensor.dispatch import refuse_while_captured

#: Functions that CuPy has for floating-point numbers alone.
_OF_FLOATS: Final = frozenset({"i0e", "i1e", "stdtr"})


def chdtrc(v: Tensor | float, x: Tensor | float, /) -> Tensor:
    """What the distribution function of chi-square lacks to one; NaN where an argument is negative.

    CuPy's function of the name gives 1 where ``x`` is negative.

    Parameters
    ----------
    v, x : Tensor or number
        Degrees of freedom, and values; at least one tensor of CUDA.

    Returns
    -------
    Tensor
        Of the broadcast shape.
    """
    return __getattr__("gammaincc")(v * 0.5, x * 0.5)


def __getattr__(name: str) -> Callable[..., Tensor]:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        driver.library()
    except ImportError as error:
        # Whoever asks for a module's attributes expects this exception and no other.
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {error}") from error
    own = getattr(importlib.import_module("cupyx.scipy.special"), name, None)
    if not callable(own):
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}: CuPy has no such function"
        )
    function = globals()[name] = _on_tensors(name, own)
    return function


def _on_tensors(name: str, own: Callable[..., Any]) -> Callable[..., Tensor]:
    """A function of CuPy's that takes and gives tensors."""

    def function(*args: Any, **options: Any) -> Tensor:
        tensors = [x for x in args if isinstance(x, Tensor)]
        if not tensors:
            raise not_a_tensor(name, args[0] if args else None)
        client = tensors[0]._client
        if any(x._client is not client for x in tensors):
            raise mixed_devices(name, tuple(tensors))
        if client.runtime.name() != "cuda":
            raise TypeError(
                f"{name}: the tensor is on {client.device}; numr.cuda.special takes tensors of CUDA. "
                "Move it with to_device() first."
            )
        for x in tensors:
            refuse_while_captured(name, client, x._data)
        if name in _OF_FLOATS:
            args = tuple(floating(name, x) if isinstance(x, Tensor) else x for x in args)
        operands = [x._data if isinstance(x, Tensor) else x for x in args]
        with client.context.inside():  # type: ignore[attr-defined]
            return wrap(own(*operands, **options), client)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"``cupyx.scipy.special.{name}`` on tensors of CUDA, numbers beside them."
    return function
