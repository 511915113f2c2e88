"""Index keys, as ``x[key]`` receives them, read against a shape.

A key becomes a tuple of parts, one per thing that it says. Parts cover the leading axes of the
array; axes that come after the last part are kept whole.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from numr.errors import HostCopyError, IndexingError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class IntPart:
    """Pick one place of an axis and drop the axis; ``0 <= index < length``."""

    index: int


@dataclass(frozen=True, slots=True)
class SlicePart:
    """Keep `length` places of an axis: `start`, ``start + step``, ...

    A slice without places starts at 0, and one of at most one place has the step 1, so that no view
    points outside its array.
    """

    start: int
    step: int
    length: int


@dataclass(frozen=True, slots=True)
class NewAxisPart:
    """Insert an axis of length 1."""


@dataclass(frozen=True, slots=True)
class KeepPart:
    """Keep `count` axes whole: what an ellipsis stands for, possibly no axis at all."""

    count: int


@dataclass(frozen=True, slots=True, eq=False)
class ArrayPart:
    """Pick places of one axis by an integer array.

    Its values are not checked here: they are read only when the key is carried out.

    Attributes
    ----------
    array : object
        The array, as the caller knows it.
    shape : tuple of int
        Its shape.
    axis : int
        The axis of the indexed array that it stands for.
    """

    array: Any
    shape: tuple[int, ...]
    axis: int

    @property
    def ndim(self) -> int:
        """How many axes the part stands for: one."""
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class MaskPart:
    """Pick places of adjacent axes by a boolean array of the same shape as these axes.

    A mask without axes (``True`` and ``False`` too) stands for no axis: it is an index of length 1
    or 0.

    Attributes
    ----------
    mask : object
        The boolean array, as the caller knows it, or a Python bool.
    shape : tuple of int
        Its shape.
    axis : int
        The first axis of the indexed array that it stands for.
    """

    mask: Any
    shape: tuple[int, ...]
    axis: int

    @property
    def ndim(self) -> int:
        """How many axes the part stands for."""
        return len(self.shape)


BasicPart: TypeAlias = IntPart | SlicePart | NewAxisPart | KeepPart
AdvancedPart: TypeAlias = ArrayPart | MaskPart
Part: TypeAlias = BasicPart | AdvancedPart

ArrayKind: TypeAlias = Literal["integer", "boolean"]


@dataclass(frozen=True, slots=True)
class _Array:
    """An index array whose axis is not known yet."""

    kind: ArrayKind
    array: Any
    shape: tuple[int, ...]


_NEW_AXIS = NewAxisPart()


def parse_key(
    key: object,
    shape: tuple[int, ...],
    function: str,
    is_array: Callable[[object], ArrayKind | None],
    as_array: Callable[[Sequence[Any]], Any] | None = None,
) -> tuple[Part, ...]:
    """Read an index key against the shape of the array that it indexes.

    Parameters
    ----------
    key : object
        An integer (any object with ``__index__``), slice, Ellipsis, None, Python bool, integer or
        boolean array, list that stands for such an array, or a tuple of these (in which a tuple
        stands for an array, too).
    shape : tuple of int
        Shape of the indexed array.
    function : str
        Name of the caller, for the error message.
    is_array : callable
        Says of an object whether it is an integer or a boolean array; None for anything else.
        Arrays need an attribute ``shape``. A 0-d integer array for which None is returned is read
        through its ``__index__``, which gives a view; one that is called an array is gathered, and
        its value is not read here.
    as_array : callable, optional
        Turns a (nested) list into an array; an empty one should become an integer array. Without it
        lists are refused.

    Returns
    -------
    tuple of Part
        The parts in order. Axes after the last part are kept whole.

    Raises
    ------
    IndexingError
        If an integer is out of range, a slice has step 0, the key names too many axes, a mask has
        another shape than the axes it stands for, or an object cannot be an index.

    Examples
    --------
    >>> parse_key((-1, ..., slice(1, None)), (2, 3, 4), "getitem", lambda obj: None)
    (IntPart(index=1), KeepPart(count=1), SlicePart(start=1, step=1, length=3))
    """
    if type(key) is int and shape:
        length = shape[0]
        if 0 <= key < length:
            return (IntPart(key),)
        return (_int_part(key, 0, shape, function),)
    if type(key) is slice and shape:
        return (_slice_part(key, 0, shape, function),)

    items, used = _classify(key, function, is_array, as_array)
    if used > len(shape):
        raise IndexingError(
            f"{function}: too many indices: the key names {used} axes, the array has "
            f"{len(shape)} (shape {shape})."
        )
    parts: list[Part] = []
    axis = 0
    for item in items:
        if type(item) is int:
            parts.append(_int_part(item, axis, shape, function))
            axis += 1
        elif type(item) is slice:
            parts.append(_slice_part(item, axis, shape, function))
            axis += 1
        elif item is None:
            parts.append(_NEW_AXIS)
        elif type(item) is _Array:
            if item.kind == "integer":
                parts.append(ArrayPart(item.array, item.shape, axis))
                axis += 1
            else:
                parts.append(_mask_part(item, axis, shape, function))
                axis += len(item.shape)
        else:
            parts.append(KeepPart(len(shape) - used))
            axis += len(shape) - used
    return tuple(parts)


def _classify(
    key: object,
    function: str,
    is_array: Callable[[object], ArrayKind | None],
    as_array: Callable[[Sequence[Any]], Any] | None,
) -> tuple[list[Any], int]:
    """Turn a key into ints, slices, None, Ellipsis and `_Array`; count the axes that it names."""
    items: list[Any] = []
    used = 0
    ellipses = 0
    for item in key if isinstance(key, tuple) else (key,):
        if item is None:
            items.append(None)
            continue
        if item is Ellipsis:
            items.append(item)
            ellipses += 1
            continue
        known = item
        if type(item) is not int and type(item) is not slice:
            known = _resolve(item, function, is_array, as_array)
        items.append(known)
        used += len(known.shape) if type(known) is _Array and known.kind == "boolean" else 1
    if ellipses > 1:
        raise IndexingError(
            f"{function}: the key has {ellipses} ellipses; only one can be resolved."
        )
    return items, used


def _resolve(
    item: object,
    function: str,
    is_array: Callable[[object], ArrayKind | None],
    as_array: Callable[[Sequence[Any]], Any] | None,
) -> int | _Array:
    if isinstance(item, bool):
        return _Array("boolean", item, ())
    array: Any = item
    if isinstance(item, (list, tuple)) and as_array is not None:
        array = as_array(item)
    kind = is_array(array)
    if kind is not None:
        return _Array(kind, array, tuple(array.shape))
    cause = None
    if hasattr(type(array), "__index__"):
        try:
            return operator.index(array)
        except HostCopyError:
            raise
        except TypeError as error:  # arrays have __index__ whatever their dtype and shape
            cause = error
    dtype = getattr(array, "dtype", None)
    what = f"{type(item).__name__}" + (f" of dtype {dtype}" if dtype is not None else "")
    raise IndexingError(
        f"{function}: an object of type {what} is not an index; use integers, slices, Ellipsis, "
        "None, and integer or boolean tensors."
    ) from cause


def _int_part(index: int, axis: int, shape: tuple[int, ...], function: str) -> IntPart:
    length = shape[axis]
    if -length <= index < length:
        return IntPart(index + length if index < 0 else index)
    valid = f"valid are {-length} to {length - 1}" if length else "the axis is empty"
    raise IndexingError(
        f"{function}: index {index} is out of range for axis {axis} of length {length} "
        f"(shape {shape}): {valid}."
    )


def _slice_part(key: slice, axis: int, shape: tuple[int, ...], function: str) -> SlicePart:
    try:
        start, stop, step = key.indices(shape[axis])
    except (TypeError, ValueError) as error:
        reason = _slice_fault(key)
        if reason is None:
            raise
        raise IndexingError(
            f"{function}: {key} on axis {axis} is not a slice: {reason}."
        ) from error
    length = len(range(start, stop, step))
    if length > 1:
        return SlicePart(start, step, length)
    return SlicePart(start if length else 0, 1, length)


def _slice_fault(key: slice) -> str | None:
    """Say what is wrong with a slice, None where one of its bounds raised an error of its own."""
    for bound in (key.start, key.stop, key.step):
        if bound is not None and not hasattr(type(bound), "__index__"):
            return f"its bounds must be integers or None, not {bound!r} ({type(bound).__name__})"
    if key.step is not None and operator.index(key.step) == 0:
        return "its step must not be 0"
    return None


def _mask_part(item: _Array, axis: int, shape: tuple[int, ...], function: str) -> MaskPart:
    selected = shape[axis : axis + len(item.shape)]
    # The standard lets a length of the mask be 0 where the axis is longer: such a mask picks nothing.
    if any(length not in (n, 0) for length, n in zip(item.shape, selected, strict=True)):
        raise IndexingError(
            f"{function}: a boolean index of shape {item.shape} does not fit the axes of shape "
            f"{selected} that it stands for (from axis {axis} of shape {shape}); their lengths must be "
            "equal, or 0 in the index."
        )
    return MaskPart(item.array, item.shape, axis)
