"""Typed scalar expressions: what a kernel computes for one element.

An expression is immutable and exists once: building the same node twice gives the same object, so that common
subexpressions are shared by construction and identity is equality. Python's operators build nodes, except ``==``,
which stays identity (:func:`eq` and :func:`ne` build comparisons).

The meaning of a node is exact. Floating-point operations round once, to nearest even, as IEEE 754 says, and keep
subnormal numbers; integer arithmetic wraps. A printer has to keep that meaning whatever its compiler likes to
simplify. Where a node leaves a result open, its builder says so.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

__all__ = [
    "BOOL",
    "F16",
    "F32",
    "F64",
    "I32",
    "I64",
    "SCALARS",
    "U32",
    "U64",
    "Expr",
    "Number",
    "Scalar",
    "absolute",
    "as_expr",
    "bitcast",
    "by_fma",
    "cast",
    "ceil",
    "const",
    "const_bits",
    "constant_value",
    "eq",
    "floor",
    "fma",
    "is_plain_fma",
    "less_product",
    "ne",
    "product_plus",
    "quotient",
    "rarely",
    "remainder",
    "rint",
    "rounded_quotient",
    "rounded_root",
    "select",
    "sqrt",
    "topological",
    "trunc",
    "var",
    "with_fma",
]

Number: TypeAlias = bool | int | float


@dataclass(frozen=True)
class Scalar:
    """A type that kernels compute in.

    Parameters
    ----------
    name : str
        Such as ``"f32"``.
    kind : str
        ``"f"``, ``"i"``, ``"u"`` or ``"b"``, as ``dtype.kind``.
    bits : int
        Width; 1 for the boolean type.
    """

    name: str
    kind: str
    bits: int

    def __repr__(self) -> str:
        return self.name


F16: Final = Scalar("f16", "f", 16)
F32: Final = Scalar("f32", "f", 32)
F64: Final = Scalar("f64", "f", 64)
I32: Final = Scalar("i32", "i", 32)
U32: Final = Scalar("u32", "u", 32)
I64: Final = Scalar("i64", "i", 64)
U64: Final = Scalar("u64", "u", 64)
BOOL: Final = Scalar("bool", "b", 1)
SCALARS: Final = (F16, F32, F64, I32, U32, I64, U64, BOOL)

_FLOAT_CODES: Final = {16: "<e", 32: "<f", 64: "<d"}


class Expr:
    """A node: an operation on nodes, a variable or a constant. Built by the functions of this module only.

    Attributes
    ----------
    op : str
        ``"var"``, ``"const"`` or the operation.
    type : Scalar
        Type of the result.
    args : tuple of Expr
        Operands.
    value : str or int or None
        A variable's name, a constant's bit pattern.
    fused : Expr or None
        What devices with :func:`fma` compute instead, see :func:`with_fma`.
    """

    __slots__ = ("__weakref__", "args", "fused", "op", "type", "value")
    op: str
    type: Scalar
    args: tuple[Expr, ...]
    value: str | int | None
    fused: Expr | None

    def __repr__(self) -> str:
        if self.op == "var":
            return f"{self.value}: {self.type}"
        if self.op == "const":
            return f"{constant_value(self)!r}: {self.type}"
        return f"<{self.op} of {', '.join(str(a.type) for a in self.args)}: {self.type}>"

    def __add__(self, other: Expr | Number) -> Expr:
        return _arithmetic("add", self, other)

    def __radd__(self, other: Number) -> Expr:
        return _arithmetic("add", as_expr(other, self.type), self)

    def __sub__(self, other: Expr | Number) -> Expr:
        return _arithmetic("sub", self, other)

    def __rsub__(self, other: Number) -> Expr:
        return _arithmetic("sub", as_expr(other, self.type), self)

    def __mul__(self, other: Expr | Number) -> Expr:
        return _arithmetic("mul", self, other)

    def __rmul__(self, other: Number) -> Expr:
        return _arithmetic("mul", as_expr(other, self.type), self)

    def __truediv__(self, other: Expr | Number) -> Expr:
        _require(self.type.kind == "f", "division", self)
        return _arithmetic("div", self, other)

    def __rtruediv__(self, other: Number) -> Expr:
        return as_expr(other, self.type) / self

    def __neg__(self) -> Expr:
        _require(self.type.kind != "b", "negation", self)
        if self.op == "const" and self.type.kind == "f":
            assert isinstance(self.value, int)
            return const_bits(self.value ^ 1 << (self.type.bits - 1), self.type)
        return _make("neg", self.type, self)

    def __and__(self, other: Expr | Number) -> Expr:
        return _bitwise("and", self, other)

    def __or__(self, other: Expr | Number) -> Expr:
        return _bitwise("or", self, other)

    def __xor__(self, other: Expr | Number) -> Expr:
        return _bitwise("xor", self, other)

    def __invert__(self) -> Expr:
        _require(self.type.kind in "iub", "inversion", self)
        return _make("not", self.type, self)

    def __lshift__(self, count: Expr | int) -> Expr:
        return _shift("shl", self, count)

    def __rshift__(self, count: Expr | int) -> Expr:
        return _shift("shr", self, count)

    def __lt__(self, other: Expr | Number) -> Expr:
        return _compare("lt", self, other)

    def __le__(self, other: Expr | Number) -> Expr:
        return _compare("le", self, other)

    def __gt__(self, other: Expr | Number) -> Expr:
        return _compare("gt", self, other)

    def __ge__(self, other: Expr | Number) -> Expr:
        return _compare("ge", self, other)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value: use select() or rarely()")


#: The value of quotients and roots that are rounded once on every device.
ROUNDED: Final = "rounded"

_NODES: weakref.WeakValueDictionary[Any, Expr] = weakref.WeakValueDictionary()


def _make(
    op: str,
    type: Scalar,
    *args: Expr,
    value: str | int | None = None,
    fused: Expr | None = None,
) -> Expr:
    key = (op, type, args, value, fused)
    node = _NODES.get(key)
    if node is None:
        node = object.__new__(Expr)
        node.op, node.type, node.args, node.value, node.fused = op, type, args, value, fused
        node = _NODES.setdefault(key, node)
    return node


def _require(condition: bool, what: str, *operands: Expr) -> None:
    if not condition:
        types = ", ".join(str(operand.type) for operand in operands)
        raise TypeError(f"{what} is not defined for {types}")


def var(name: str, type: Scalar) -> Expr:
    """A value that the kernel is given: an operand's element or a scalar."""
    return _make("var", type, value=name)


def const_bits(bits: int, type: Scalar) -> Expr:
    """The constant with a bit pattern."""
    if not 0 <= bits < 1 << type.bits:
        raise ValueError(f"{bits:#x} has more than the {type.bits} bits of {type}")
    return _make("const", type, value=bits)


def const(value: Number, type: Scalar) -> Expr:
    """A constant; a float is rounded to the type, an integer is taken modulo its width."""
    if type.kind == "f":
        try:
            packed = struct.pack(_FLOAT_CODES[type.bits], value)
        except OverflowError:
            raise OverflowError(f"{value!r} is beyond the range of {type}") from None
        return const_bits(int.from_bytes(packed, "little"), type)
    if value != int(value):
        raise ValueError(f"{value!r} is no value of {type}")
    return const_bits(int(value) & ((1 << type.bits) - 1), type)


def constant_value(node: Expr) -> Number:
    """The value of a constant as a Python number."""
    bits = node.value
    assert isinstance(bits, int), f"{node.op} is no constant"
    if node.type.kind == "f":
        packed = bits.to_bytes(node.type.bits // 8, "little")
        number: float = struct.unpack(_FLOAT_CODES[node.type.bits], packed)[0]
        return number
    if node.type.kind == "b":
        return bool(bits)
    return (
        bits - (1 << node.type.bits)
        if node.type.kind == "i" and bits >> (node.type.bits - 1)
        else bits
    )


def as_expr(value: Expr | Number, type: Scalar) -> Expr:
    """A number as a constant of a type; an expression must have the type already."""
    if not isinstance(value, Expr):
        return const(value, type)
    if value.type is not type:
        raise TypeError(f"an operand is {value.type} where {type} is needed: cast it")
    return value


def _arithmetic(op: str, first: Expr, second: Expr | Number) -> Expr:
    other = as_expr(second, first.type)
    _require(first.type.kind != "b", op, first, other)
    return _make(op, first.type, first, other)


def _bitwise(op: str, first: Expr, second: Expr | Number) -> Expr:
    other = as_expr(second, first.type)
    _require(first.type.kind in "iub", op, first, other)
    return _make(op, first.type, first, other)


def _shift(op: str, first: Expr, count: Expr | int) -> Expr:
    _require(first.type.kind in "iu", op, first)
    return _make(op, first.type, first, as_expr(count, U32))


def _compare(op: str, first: Expr, second: Expr | Number) -> Expr:
    other = as_expr(second, first.type)
    _require(first.type.kind != "b" or op in ("eq", "ne"), op, first, other)
    return _make(op, BOOL, first, other)


def eq(first: Expr, second: Expr | Number) -> Expr:
    """Whether two values are equal; NaN equals nothing, -0 equals +0."""
    return _compare("eq", first, second)


def ne(first: Expr, second: Expr | Number) -> Expr:
    """Whether two values are not equal: the negation of :func:`eq`."""
    return _compare("ne", first, second)


def rounded_quotient(first: Expr | Number, second: Expr) -> Expr:
    """``first / second`` of floats, rounded once to nearest.

    On devices that do not divide so by themselves it costs more than ``/``, which has an error of up to 2.5 units in the
    last place there.
    """
    first = as_expr(first, second.type)
    _require(first.type.kind == "f", "rounded_quotient", first, second)
    return _make("div", first.type, first, second, value=ROUNDED)


def rounded_root(value: Expr) -> Expr:
    """The square root of a float, rounded once to nearest; see :func:`rounded_quotient`."""
    _require(value.type.kind == "f", "rounded_root", value)
    return _make("sqrt", value.type, value, value=ROUNDED)


def fma(first: Expr, second: Expr | Number, term: Expr | Number) -> Expr:
    """``first * second + term`` of f32 or f64, rounded once: an operation that not every device has."""
    _require(first.type.kind == "f" and first.type is not F16, "fma", first)
    return _make("fma", first.type, first, as_expr(second, first.type), as_expr(term, first.type))


def with_fma(fused: Expr, plain: Expr) -> Expr:
    """``fused`` on devices that have :func:`fma`, ``plain`` on others.

    What a device has it uses everywhere, so that an operation gives the same in each of its kernels.
    """
    _require(fused.type is plain.type and bool(plain.args), "with_fma", fused, plain)
    return _make(plain.op, plain.type, *plain.args, value=plain.value, fused=fused)


def product_plus(first: Expr, second: Expr | Number, term: Expr | Number) -> Expr:
    """``first * second + term``, by one operation where there is one."""
    return with_fma(fma(first, second, term), first * second + term)


def less_product(term: Expr | Number, first: Expr, second: Expr | Number) -> Expr:
    """``term - first * second``, by one operation where there is one."""
    return with_fma(fma(-first, second, term), term - first * second)


def is_plain_fma(node: Expr) -> bool:
    """Whether a node that is a sum of a product becomes that sum by :func:`fma`, which may then round twice as well."""
    fused = node.fused
    if fused is None or fused.op != "fma":
        return False
    first, second, term = fused.args
    if node.op == "add":
        product, other = node.args
    elif node.op == "sub" and first.op == "neg":
        other, product = node.args
        first = first.args[0]
    else:
        return False
    return (
        other is term
        and product.op == "mul"
        and product.args[0] is first
        and product.args[1] is second
    )


def by_fma(roots: Iterable[Expr], where: Callable[[Expr], bool] = lambda node: True) -> list[Expr]:
    """Expressions as devices with :func:`fma` compute them; ``where`` leaves nodes that have a fused form as they are."""
    roots = list(roots)
    made: dict[Expr, Expr] = {}
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if node in made:
            continue
        fused = node.fused if node.fused is not None and where(node) else None
        args = node.args if fused is None else (fused,)
        if not ready:
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(args))
        elif fused is not None:
            made[node] = made[fused]
        else:
            own = tuple([made[arg] for arg in args])
            made[node] = node if own == args else _make(node.op, node.type, *own, value=node.value)
    return [made[root] for root in roots]


def quotient(first: Expr, second: Expr | int) -> Expr:
    """Integer quotient rounded towards zero; by zero it is 0, and the least integer by -1 is itself."""
    other = as_expr(second, first.type)
    _require(first.type.kind in "iu", "quotient", first, other)
    return _make("quot", first.type, first, other)


def remainder(first: Expr, second: Expr | int) -> Expr:
    """Integer remainder of the quotient rounded towards zero, with the sign of ``first``; by zero it is 0."""
    other = as_expr(second, first.type)
    _require(first.type.kind in "iu", "remainder", first, other)
    return _make("rem", first.type, first, other)


def select(condition: Expr, true: Expr, false: Expr | Number) -> Expr:
    """``true`` where the condition holds, else ``false``; neither result depends on the other operand."""
    test, other = as_expr(condition, BOOL), as_expr(false, true.type)
    return true if true is other else _make("select", true.type, test, true, other)


def rarely(condition: Expr, rare: Expr, common: Expr) -> Expr:
    """:func:`select` with a hint: the condition seldom holds and ``rare`` is expensive, so a branch may pay."""
    return _make(
        "rarely", common.type, as_expr(condition, BOOL), as_expr(rare, common.type), common
    )


def cast(value: Expr, type: Scalar) -> Expr:
    """The value in another type.

    Between integers it wraps, to a floating-point type it is rounded to nearest even, booleans count as 0 and 1, and
    to the boolean type it is whether the value is not zero. A floating-point number is rounded towards zero to an
    integer; where the integer type does not hold that, or for NaN, the result is open.
    """
    return value if value.type is type else _make("cast", type, value)


def bitcast(value: Expr, type: Scalar) -> Expr:
    """The value whose bit pattern in another type of the same width is that of ``value``."""
    if value.type is type:
        return value
    _require(type.bits == value.type.bits and type.bits >= 32, f"bitcast to {type}", value)
    if value.op == "const":
        assert isinstance(value.value, int)
        return const_bits(value.value, type)
    return bitcast(value.args[0], type) if value.op == "bitcast" else _make("bitcast", type, value)


def _rounding(op: str, value: Expr) -> Expr:
    _require(value.type.kind == "f", op, value)
    return _make(op, value.type, value)


def floor(value: Expr) -> Expr:
    """Largest whole number that is not above; keeps the sign of zeros."""
    return _rounding("floor", value)


def ceil(value: Expr) -> Expr:
    """Least whole number that is not below; keeps the sign of zeros."""
    return _rounding("ceil", value)


def trunc(value: Expr) -> Expr:
    """The whole number next to the value towards zero; keeps the sign."""
    return _rounding("trunc", value)


def rint(value: Expr) -> Expr:
    """The nearest whole number, the even one of two; keeps the sign."""
    return _rounding("rint", value)


def sqrt(value: Expr) -> Expr:
    """Square root, correctly rounded; of -0 it is -0, of other negative numbers NaN."""
    return _rounding("sqrt", value)


def absolute(value: Expr) -> Expr:
    """Absolute value; that of the least signed integer is itself."""
    _require(value.type.kind in "fi", "abs", value)
    return _make("abs", value.type, value)


def topological(roots: Iterable[Expr]) -> Iterator[Expr]:
    """All nodes that ``roots`` are built from, each once and after its operands."""
    seen: set[Expr] = set()
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args))
