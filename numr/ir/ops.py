"""The op table: every elementwise operation, once.

A row says what an operation is called, how many operands it takes, which dtypes it is defined for and what
dtype it gives. Eager functions, operators, tests (and, on runtimes that compile, kernels and fusion) all read
this table; nothing else lists operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from numr import dtypes as dt
from numr.dtypes import DefaultDTypes, DType, Kind
from numr.errors import DTypeError

__all__ = ["BINARY", "OPS", "SELECT", "UNARY", "Op", "Reduction", "Result", "Signature", "meant"]


class Result(Enum):
    """How the result's dtype follows from the dtype that the operands promote to."""

    SAME = "same"
    BOOL = "bool"
    REAL = "real"


class Signature(NamedTuple):
    """The dtype that an operation computes in, and the dtype of its result."""

    compute: DType
    result: DType


@dataclass(frozen=True, eq=False)
class Op:
    """One elementwise operation.

    Parameters
    ----------
    name : str
        The standard's name of the function.
    arity : int
        How many operands it takes.
    domain : str
        The dtypes that it takes, a key of :data:`numr.dtypes.CATEGORIES`. Where the domain is floating-point,
        integers and booleans are converted to the device's default floating-point dtype.
    result : Result
        How the result's dtype follows.
    """

    name: str
    arity: int
    domain: str
    result: Result = Result.SAME
    _signatures: dict[tuple[tuple[Kind, ...], DefaultDTypes], Signature] = field(
        default_factory=dict, repr=False
    )

    def signature(self, kinds: tuple[Kind, ...], defaults: DefaultDTypes) -> Signature:
        """The dtypes of a call, from the operands' dtypes and scalar types.

        Raises
        ------
        DTypeError
            If the operands do not promote, or the operation is not defined for their dtype.
        """
        key = (kinds, defaults)
        found = self._signatures.get(key)
        if found is None:
            found = self._signatures[key] = self._resolve(kinds, defaults)
        return found

    def _resolve(self, kinds: tuple[Kind, ...], defaults: DefaultDTypes) -> Signature:
        promoting = kinds
        if self is SELECT:
            if kinds[0] not in (dt.bool_, bool):
                raise DTypeError(
                    f"where: the condition has dtype {_spell(kinds[0])}; it must be boolean. "
                    "Compare it, or cast it with astype(condition, bool)."
                )
            promoting = kinds[1:]
        try:
            compute = dt.promote_kinds(promoting, defaults)
        except DTypeError as error:
            raise DTypeError(f"{self.name}: {error}") from None
        if compute.kind in "biu" and self.domain in _FLOATING:
            compute = defaults.real
        if compute.kind not in dt.CATEGORIES[self.domain]:
            raise DTypeError(
                f"{self.name}: got {', '.join(_spell(kind) for kind in kinds)}; only {self.domain} dtypes "
                f"are allowed, and {compute} is {dt.category_of(compute)}."
                + _WAY_OUT.get((compute.kind, self.domain), "")
            )
        if self.result is Result.BOOL:
            return Signature(compute, dt.bool_)
        if self.result is Result.REAL:
            return Signature(compute, dt.real_of(compute))
        return Signature(compute, compute)


_FLOATING: Final = frozenset({"floating-point", "real-valued floating-point"})
_WAY_OUT: Final = {
    ("b", "numeric"): " Use the logical functions, or astype() to an integer dtype first.",
    ("b", "integer"): " Use astype() to an integer dtype first.",
    ("c", "real-valued"): " Take abs(), real() or imag() first.",
    ("c", "real-valued floating-point"): " Take abs(), real() or imag() first.",
    ("f", "integer"): " Use astype() to an integer dtype first.",
    ("f", "integer or boolean"): " Use astype() to an integer dtype first.",
    ("i", "boolean"): " Compare with zero, or use astype(x, bool).",
    ("u", "boolean"): " Compare with zero, or use astype(x, bool).",
    ("f", "boolean"): " Compare with zero, or use astype(x, bool).",
}


def _spell(kind: Kind) -> str:
    return f"a Python {kind.__name__}" if isinstance(kind, type) else str(kind)


def _unary(name: str, domain: str, result: Result = Result.SAME) -> Op:
    return Op(name, 1, domain, result)


def _binary(name: str, domain: str, result: Result = Result.SAME) -> Op:
    return Op(name, 2, domain, result)


# Unary, in the order of the standard.
ABS = _unary("abs", "numeric", Result.REAL)
ACOS = _unary("acos", "floating-point")
ACOSH = _unary("acosh", "floating-point")
ASIN = _unary("asin", "floating-point")
ASINH = _unary("asinh", "floating-point")
ATAN = _unary("atan", "floating-point")
ATANH = _unary("atanh", "floating-point")
BITWISE_INVERT = _unary("bitwise_invert", "integer or boolean")
CEIL = _unary("ceil", "real-valued")
CONJ = _unary("conj", "numeric")
COS = _unary("cos", "floating-point")
COSH = _unary("cosh", "floating-point")
EXP = _unary("exp", "floating-point")
EXPM1 = _unary("expm1", "floating-point")
FLOOR = _unary("floor", "real-valued")
IMAG = _unary("imag", "numeric", Result.REAL)
ISFINITE = _unary("isfinite", "any", Result.BOOL)
ISINF = _unary("isinf", "any", Result.BOOL)
ISNAN = _unary("isnan", "any", Result.BOOL)
LOG = _unary("log", "floating-point")
LOG1P = _unary("log1p", "floating-point")
LOG2 = _unary("log2", "floating-point")
LOG10 = _unary("log10", "floating-point")
LOGICAL_NOT = _unary("logical_not", "boolean")
NEGATIVE = _unary("negative", "numeric")
POSITIVE = _unary("positive", "numeric")
REAL = _unary("real", "numeric", Result.REAL)
RECIPROCAL = _unary("reciprocal", "floating-point")
ROUND = _unary("round", "numeric")
SIGN = _unary("sign", "numeric")
SIGNBIT = _unary("signbit", "real-valued floating-point", Result.BOOL)
SIN = _unary("sin", "floating-point")
SINH = _unary("sinh", "floating-point")
SQRT = _unary("sqrt", "floating-point")
SQUARE = _unary("square", "numeric")
TAN = _unary("tan", "floating-point")
TANH = _unary("tanh", "floating-point")
TRUNC = _unary("trunc", "real-valued")

# Binary.
ADD = _binary("add", "numeric")
ATAN2 = _binary("atan2", "real-valued floating-point")
BITWISE_AND = _binary("bitwise_and", "integer or boolean")
BITWISE_LEFT_SHIFT = _binary("bitwise_left_shift", "integer")
BITWISE_OR = _binary("bitwise_or", "integer or boolean")
BITWISE_RIGHT_SHIFT = _binary("bitwise_right_shift", "integer")
BITWISE_XOR = _binary("bitwise_xor", "integer or boolean")
COPYSIGN = _binary("copysign", "real-valued floating-point")
DIVIDE = _binary("divide", "floating-point")
EQUAL = _binary("equal", "any", Result.BOOL)
FLOOR_DIVIDE = _binary("floor_divide", "real numeric")
GREATER = _binary("greater", "real-valued", Result.BOOL)
GREATER_EQUAL = _binary("greater_equal", "real-valued", Result.BOOL)
HYPOT = _binary("hypot", "real-valued floating-point")
LESS = _binary("less", "real-valued", Result.BOOL)
LESS_EQUAL = _binary("less_equal", "real-valued", Result.BOOL)
LOGADDEXP = _binary("logaddexp", "real-valued floating-point")
LOGICAL_AND = _binary("logical_and", "boolean")
LOGICAL_OR = _binary("logical_or", "boolean")
LOGICAL_XOR = _binary("logical_xor", "boolean")
MAXIMUM = _binary("maximum", "real-valued")
MINIMUM = _binary("minimum", "real-valued")
MULTIPLY = _binary("multiply", "numeric")
NEXTAFTER = _binary("nextafter", "real-valued floating-point")
NOT_EQUAL = _binary("not_equal", "any", Result.BOOL)
POW = _binary("pow", "numeric")
REMAINDER = _binary("remainder", "real numeric")
SUBTRACT = _binary("subtract", "numeric")

#: ``clip``: elements between a lower and an upper bound, of which the upper wins where they cross.
CLIP = Op("clip", 3, "real-valued")

#: ``where``: a boolean condition, then the two operands that promote together.
SELECT = Op("where", 3, "any")

#: What arithmetic of booleans alone is. The standard leaves it open; this is NumPy's answer.
_OF_BOOLEANS: Final = {ADD: BITWISE_OR, MULTIPLY: BITWISE_AND}
_BOOLEANS: Final = frozenset({dt.bool_, bool})


def meant(op: Op, kinds: tuple[Kind, ...]) -> Op:
    """The operation that is carried out for operands of the given kinds: another row for sums of booleans."""
    if op in _OF_BOOLEANS and _BOOLEANS.issuperset(kinds):
        return _OF_BOOLEANS[op]
    return op


OPS: Final[dict[str, Op]] = {op.name: op for op in list(globals().values()) if isinstance(op, Op)}
UNARY: Final = tuple(op for op in OPS.values() if op.arity == 1)
BINARY: Final = tuple(op for op in OPS.values() if op.arity == 2)


class Reduction(Enum):
    """The reductions that runtimes implement; all others are composed from them."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    ANY = "any"
    ALL = "all"

    # Members are equal by identity; Enum's own hash is a call of Python code.
    __hash__ = object.__hash__
