"""The arguments of NumPy's functions as the functions of a namespace take them.

NumPy names its arguments otherwise, takes most of them by position and has some that the standard has not, which matter
only where they differ from their defaults.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, Final

import numpy as np

__all__ = ["translated"]

#: NumPy's names of arguments where they differ from the standard's.
RENAMED: Final[dict[str, str]] = {
    "a_max": "max",
    "a_min": "min",
    "b": "other",
    "ddof": "correction",
}
#: Arguments that say how something is done and not what: algorithms of sorting, layouts and subclasses of results.
IGNORED: Final = frozenset(["kind", "order", "subok"])


def translated(
    func: Callable[..., Any], function: Callable[..., Any], args: Any, kwargs: Any
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """How a call of NumPy's ``func`` is said to the namespace's ``function``.

    Returns
    -------
    tuple or None
        Positional and keyword arguments; None where the function does not have all that was given.
    """
    theirs, ours = _parameters(func), _parameters(function)
    if ours is None:
        return None
    if theirs is None or any(p.kind is Parameter.VAR_POSITIONAL for p in ours.values()):
        return (tuple(args), dict(kwargs)) if _fits(function, args, kwargs) else None
    try:
        given = dict(inspect.Signature(list(theirs.values())).bind(*args, **kwargs).arguments)
    except TypeError:
        return None
    positional: list[Any] = []
    for parameter, name in zip(ours.values(), theirs, strict=False):
        # The tensor itself comes first, whatever its name.
        by_position = parameter.kind is Parameter.POSITIONAL_ONLY or not positional
        if not by_position or name not in given:
            break
        positional.append(given.pop(name))
    named = {}
    for name, value in given.items():
        if _is_default(value, theirs[name]) or name in IGNORED:
            continue
        own = name if name in ours else RENAMED.get(name, name)
        if own not in ours or ours[own].kind is Parameter.POSITIONAL_ONLY:
            return None
        named[own] = value.item() if isinstance(value, np.generic) else value
    return tuple(positional), named


def _is_default(value: Any, parameter: Parameter) -> bool:
    default = parameter.default
    if value is default:
        return True
    return isinstance(value, bool | int | str) and type(value) is type(default) and value == default


def _fits(function: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


@functools.cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, Parameter] | None:
    """The parameters of a function, None where it does not tell."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
