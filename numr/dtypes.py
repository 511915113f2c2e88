"""Data types: the standard's categories, the promotion table, ``finfo`` and ``iinfo``.

numr's dtypes *are* :class:`numpy.dtype` instances, because half of the ecosystem asks for their ``kind``,
``itemsize`` or ``type``. Categories are named with the standard's words, which appear verbatim in errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from numr.errors import DTypeError

DType: TypeAlias = "np.dtype[Any]"
Scalar: TypeAlias = bool | int | float | complex
#: What an operand contributes to promotion: its dtype, or the Python type of a scalar.
Kind: TypeAlias = "DType | type"

bool_: Final[DType] = np.dtype("bool")
int8: Final[DType] = np.dtype("int8")
int16: Final[DType] = np.dtype("int16")
int32: Final[DType] = np.dtype("int32")
int64: Final[DType] = np.dtype("int64")
uint8: Final[DType] = np.dtype("uint8")
uint16: Final[DType] = np.dtype("uint16")
uint32: Final[DType] = np.dtype("uint32")
uint64: Final[DType] = np.dtype("uint64")
float16: Final[DType] = np.dtype("float16")
float32: Final[DType] = np.dtype("float32")
float64: Final[DType] = np.dtype("float64")
complex64: Final[DType] = np.dtype("complex64")
complex128: Final[DType] = np.dtype("complex128")

#: The dtypes of the standard, in its order. ``float16`` is numr's extra and is listed by no category query.
STANDARD_DTYPES: Final = (
    *(bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float32, float64, complex64, complex128),
)
ALL_DTYPES: Final = (*STANDARD_DTYPES, float16)

#: The dtypes of 32 bits that may stand for those of 64.
NARROW: Final[dict[DType, DType]] = {
    float64: float32,
    complex128: complex64,
    int64: int32,
    uint64: uint32,
}

#: Letters of ``dtype.kind`` in each category, keyed by the standard's words.
CATEGORIES: Final[dict[str, str]] = {
    "any": "biufc",
    "numeric": "iufc",
    "real-valued": "biuf",
    "real numeric": "iuf",
    "boolean": "b",
    "integer": "iu",
    "integer or boolean": "biu",
    "floating-point": "fc",
    "real-valued floating-point": "f",
    "complex floating-point": "c",
}

#: The kinds that ``isdtype`` and ``__array_namespace_info__().dtypes`` take.
ISDTYPE_KINDS: Final[dict[str, str]] = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


class DefaultDTypes(NamedTuple):
    """The dtypes that a device gives where none was asked for."""

    real: DType
    complex: DType
    integral: DType
    indexing: DType

    def of_scalar(self, scalar_type: type) -> DType:
        """The default dtype of a Python scalar's type."""
        if issubclass(scalar_type, bool):
            return bool_
        if issubclass(scalar_type, int):
            return self.integral
        return self.real if issubclass(scalar_type, float) else self.complex


#: Dtypes by themselves, by NumPy's scalar types and by Python's.
_KNOWN: Final[dict[Any, DType]] = {
    **{dtype: dtype for dtype in ALL_DTYPES},
    **{dtype.type: dtype for dtype in ALL_DTYPES},
    bool: bool_,
    int: int64,
    float: float64,
    complex: complex128,
}


def as_dtype(dtype: Any, function: str) -> DType:
    """Turn a dtype, a Python type, a NumPy scalar type or a name into one of numr's dtypes.

    Raises
    ------
    DTypeError
        If it names no dtype that numr has (strings, objects, dates, structured and extended types).
    """
    try:
        return _KNOWN[dtype]
    except (KeyError, TypeError):
        pass  # another spelling, or none: NumPy tells
    if isinstance(dtype, np.dtype):
        result = dtype
    else:
        try:
            if dtype is None:
                raise TypeError("None stands for float64 in NumPy only")
            result = np.dtype(dtype)
        except TypeError as error:
            raise DTypeError(
                f"{function}: {dtype!r} is not a data type. Use numr.float32 and its like, "
                "a Python type (bool, int, float, complex) or a name such as 'float32'."
            ) from error
    if not result.isnative:
        result = result.newbyteorder("=")
    if result not in _ALL_SET:
        raise DTypeError(
            f"{function}: numr has no dtype {str(result)!r}. It has "
            f"{', '.join(str(d) for d in ALL_DTYPES)}."
        )
    return result


_ALL_SET: Final = frozenset(ALL_DTYPES)

# Why some pairs are absent from the table of integer pairs: uint64 with a signed integer has no integer
# dtype that holds both; NumPy answers float64, which silently loses integers above 2**53.
_MIXED_INTEGERS: Final[dict[tuple[int, int], DType]] = {
    # (bytes of the signed one, bytes of the unsigned one)
    (1, 1): int16,
    (1, 2): int32,
    (1, 4): int64,
    (2, 1): int16,
    (2, 2): int32,
    (2, 4): int64,
    (4, 1): int32,
    (4, 2): int32,
    (4, 4): int64,
    (8, 1): int64,
    (8, 2): int64,
    (8, 4): int64,
}


@cache
def promote(first: DType, second: DType) -> DType:
    """The dtype that two array operands promote to.

    Follows the standard's tables. Beyond them: a boolean promotes to the other dtype, and an integer with
    a floating-point dtype gives the floating-point dtype whatever their widths, so that no float64 appears
    where the caller uses float32.

    Raises
    ------
    DTypeError
        For uint64 with a signed integer.

    Examples
    --------
    >>> promote(int8, uint8), promote(int64, float32), promote(float64, complex64)
    (dtype('int16'), dtype('float32'), dtype('complex128'))
    """
    if first == second:
        return first
    one, two = first.kind, second.kind
    if one == "b":
        return second
    if two == "b":
        return first
    if one == two:
        return first if first.itemsize > second.itemsize else second
    if one in "iu" and two in "iu":
        signed, unsigned = (first, second) if one == "i" else (second, first)
        try:
            return _MIXED_INTEGERS[signed.itemsize, unsigned.itemsize]
        except KeyError:
            raise DTypeError(
                f"{first} and {second} do not promote: no integer dtype holds both. "
                "Cast one of them with astype() first."
            ) from None
    if one in "iu":
        return second
    if two in "iu":
        return first
    real, cplx = (first, second) if one == "f" else (second, first)
    return complex128 if real == float64 else cplx


def promote_scalar(dtype: DType, scalar_type: type, defaults: DefaultDTypes) -> DType:
    """The dtype that an array of ``dtype`` and a Python scalar promote to.

    A scalar never widens the array: it changes the dtype only where its kind demands it, and then to the
    device's default dtype (or to the complex dtype of the array's own precision).
    """
    kind = dtype.kind
    if issubclass(scalar_type, bool):
        return dtype
    if issubclass(scalar_type, int):
        return defaults.integral if kind == "b" else dtype
    if issubclass(scalar_type, float):
        return defaults.real if kind in "biu" else dtype
    if kind in "biu":
        return defaults.complex
    return dtype if kind == "c" else complex_of(dtype)


@cache
def promote_kinds(kinds: tuple[Kind, ...], defaults: DefaultDTypes) -> DType:
    """The dtype that any mix of arrays (their dtypes) and Python scalars (their types) promotes to."""
    dtypes = [kind for kind in kinds if isinstance(kind, np.dtype)]
    scalars = [kind for kind in kinds if not isinstance(kind, np.dtype)]
    if not dtypes:
        dtypes = [defaults.of_scalar(scalars[0])]
    if len(dtypes) > 1 and any(issubclass(scalar_type, _INEXACT) for scalar_type in scalars):
        # The scalar decides, so that (uint64, int8, 1.0) does not ask for an integer dtype that holds both.
        dtypes = [dtype for dtype in dtypes if dtype.kind in "fc"] or dtypes[:1]
    if len(dtypes) > 2:
        # Floating-point dtypes first, so that (uint64, int8, float32) does not fail on its first pair.
        dtypes.sort(key=lambda dtype: dtype.kind in "biu")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote(result, dtype)
    for scalar_type in scalars:
        result = promote_scalar(result, scalar_type, defaults)
    return result


def complex_of(dtype: DType) -> DType:
    """The complex dtype whose components hold ``dtype``'s values: complex128 for float64, else complex64."""
    return dtype if dtype.kind == "c" else complex128 if dtype == float64 else complex64


def real_of(dtype: DType) -> DType:
    """The dtype of a complex dtype's components; any other dtype itself."""
    if dtype.kind != "c":
        return dtype
    return float32 if dtype == complex64 else float64


def category_of(dtype: DType) -> str:
    """The standard's word for a dtype's kind, for error messages."""
    return {
        "b": "boolean",
        "i": "signed integer",
        "u": "unsigned integer",
        "f": "real-valued floating-point",
        "c": "complex floating-point",
    }[dtype.kind]


_SCALAR_TYPES: Final = frozenset({bool, int, float, complex})
_INEXACT: Final = (float, complex)


def scalar_type_of(value: object) -> type | None:
    """The Python scalar type that a value counts as in promotion, None when it is no number.

    NumPy scalars count as Python scalars of their kind: ``x * numpy.float64(2)`` keeps ``x``'s dtype.
    """
    if value.__class__ in _SCALAR_TYPES:
        return value.__class__
    if isinstance(value, bool | np.bool_):
        return bool
    if isinstance(value, int | np.integer):
        return int
    if isinstance(value, float | np.floating):
        return float
    if isinstance(value, complex | np.complexfloating):
        return complex
    return None


def isdtype(dtype: DType, kind: Any) -> bool:
    """Whether ``dtype`` is ``kind``: a dtype, one of the standard's kind names, or a tuple of either.

    Raises
    ------
    ValueError
        If a string is none of the standard's kinds.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, member) for member in kind)
    if isinstance(kind, str):
        try:
            return dtype.kind in ISDTYPE_KINDS[kind]
        except KeyError:
            raise ValueError(
                f"isdtype: {kind!r} is not a kind; the kinds are {', '.join(ISDTYPE_KINDS)}."
            ) from None
    return bool(dtype == as_dtype(kind, "isdtype"))


@dataclass(frozen=True)
class FInfo:
    """Limits of a floating-point dtype, as Python numbers; a complex dtype gives its components'."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    @property
    def tiny(self) -> float:
        """NumPy's older name of ``smallest_normal``."""
        return self.smallest_normal

    @property
    def resolution(self) -> float:
        """Decimal resolution of the dtype, as in NumPy."""
        return float(np.finfo(self.dtype).resolution)


@dataclass(frozen=True)
class IInfo:
    """Limits of an integer dtype, as Python integers."""

    bits: int
    max: int
    min: int
    dtype: DType


@cache
def finfo_of(dtype: DType) -> FInfo:
    """Limits of a real or complex floating-point dtype."""
    if dtype.kind not in "fc":
        raise DTypeError(
            f"finfo: {dtype} is a {category_of(dtype)} dtype; only floating-point dtypes have a finfo."
            + (" Use iinfo." if dtype.kind in "iu" else "")
        )
    info = np.finfo(dtype)
    return FInfo(
        bits=info.bits,
        eps=float(info.eps),
        max=float(info.max),
        min=float(info.min),
        smallest_normal=float(info.smallest_normal),
        dtype=real_of(dtype),
    )


@cache
def iinfo_of(dtype: DType) -> IInfo:
    """Limits of an integer dtype."""
    if dtype.kind not in "iu":
        raise DTypeError(
            f"iinfo: {dtype} is a {category_of(dtype)} dtype; only integer dtypes have an iinfo."
            + (" Use finfo." if dtype.kind in "fc" else "")
        )
    info = np.iinfo(dtype)
    return IInfo(bits=info.bits, max=int(info.max), min=int(info.min), dtype=dtype)


def can_cast_dtypes(source: DType, target: DType) -> bool:
    """Whether promotion of the two gives ``target``: the standard's meaning of a permitted cast.

    Only same-kind pairs of the standard's promotion tables count, and booleans only cast to booleans,
    so that every value survives.
    """
    if source == target:
        return True
    same_family = (source.kind in "iu" and target.kind in "iu") or (
        source.kind in "fc" and target.kind in "fc"
    )
    if not same_family:
        return False
    try:
        return promote(source, target) == target
    except DTypeError:
        return False
