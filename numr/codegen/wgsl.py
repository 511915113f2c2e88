"""Expressions as WGSL.

What the text looks like is decided by what shader compilers get wrong. Constants are bit patterns; ``!=`` on floats
would be false for NaN; some conversions between 32 and 64 bits extend the wrong way; integer quotients by zero are the
dividend; quotients and roots of f32 are not exactly rounded (see :mod:`numr.codegen.wgsl_rounding`).
And compilers simplify floating-point arithmetic as if it were that of real numbers (``(x + y) - x`` becomes ``y``), so
every intermediate number that arithmetic is done with passes through a function that it cannot see through: exclusive
or with a zero that is given at run time. That costs as much as the arithmetic, so sums are multiplied as they are, and a
product is added by ``fma`` where it may be rounded or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from numr.codegen.expr import ROUNDED, Expr, Scalar, by_fma, constant_value, is_plain_fma
from numr.codegen.schedule import BracedSchedule

__all__ = ["Code", "barrier", "code", "constant", "prelude", "type_name"]

_BARRIERS: Final = {"f32": "L", "f64": "LD"}
_SUFFIXES: Final = {"i32": "i", "u32": "u", "i64": "li", "u64": "lu"}
_INFIX: Final = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "rem": "%",
    "and": "&",
    "or": "|",
    "shl": "<<",
    "shr": ">>",
    "eq": "==",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
_COMPARISONS: Final = frozenset({"eq", "lt", "le", "gt", "ge"})
_CALLS: Final = {
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "round",
    "sqrt": "sqrt",
    "abs": "abs",
}

_REPLACED_F64: Final = {"trunc": "truncated", "rint": "rounded"}

_PRELUDE_F32: Final = """\
fn L(v: f32) -> f32 {{ return bitcast<f32>(bitcast<u32>(v) ^ {zero}); }}
"""

# A software driver gets comparisons of an i64 that was an i32 with constants wrong.
_PRELUDE_I64: Final = """\
fn LI(v: i64) -> i64 {{ return v ^ i64(u64({zero})); }}
"""

# A software driver's trunc and round of f64 leave numbers above 2**28 as they are, and lose the sign of zeros.
_PRELUDE_F64: Final = """\
fn LD(v: f64) -> f64 {{ return bitcast<f64>(bitcast<u64>(v) ^ u64({zero})); }}
fn signed(v: f64, s: f64) -> f64 {{
    return bitcast<f64>(bitcast<u64>(v) | (bitcast<u64>(s) & 0x8000000000000000lu));
}}
fn truncated(v: f64) -> f64 {{ return signed(floor(abs(v)), v); }}
fn rounded(v: f64) -> f64 {{
    let whole = bitcast<f64>(0x4330000000000000lu);
    let a = abs(v);
    return signed(select(a, LD(LD(LD(a) + whole) - whole), (a < whole)), v);
}}
"""


@dataclass(frozen=True)
class Code:
    """The text that computes expressions.

    Parameters
    ----------
    statements : str
        Declarations, one a line, to be put into a function before the results are used.
    results : tuple of str
        WGSL expressions of the results.
    types : frozenset of str
        Names of the types that occur, such as ``"f64"``: what the device has to support. With f64 that includes u64,
        in which its numbers pass the barrier.
    """

    statements: str
    results: tuple[str, ...]
    types: frozenset[str]


def type_name(type: Scalar) -> str:
    """The WGSL name of a type."""
    return type.name


def prelude(types: Iterable[str], zero: str) -> str:
    """The functions that the text of expressions calls, but for ``wgsl_rounding.rounding``.

    Parameters
    ----------
    types : iterable of str
        ``Code.types`` of everything in the module.
    zero : str
        A WGSL expression of type u32, valid in any function of the module, whose value is zero at run time but not
        known before: a field of a uniform or immediate.
    """
    types = set(types)
    text = ""
    if "f32" in types:
        text += _PRELUDE_F32.format(zero=zero)
    if "f64" in types:
        text += _PRELUDE_F64.format(zero=zero)
    if "i64" in types:
        text += _PRELUDE_I64.format(zero=zero)
    return text


def constant(node: Expr) -> str:
    """A constant as WGSL."""
    type, bits = node.type.name, node.value
    if type == "bool":
        return "true" if bits else "false"
    if type == "f16":
        # Bit patterns of 16 bits cannot be written, and no literal is infinite or NaN.
        if not math.isfinite(constant_value(node)):
            raise TypeError(f"{node!r} is no constant of WGSL: cast one of f32")
        return f"f16({constant_value(node)!r}f)"
    if type == "f32":
        return f"bitcast<f32>({bits:#x}u)"
    if type == "f64":
        return f"bitcast<f64>({bits:#x}lu)"
    value = constant_value(node)
    suffix = _SUFFIXES[type]
    if node.type.kind == "i" and value == -(1 << (node.type.bits - 1)):
        # The positive number of that size does not exist.
        return f"(-{-(value + 1)}{suffix} - 1{suffix})"
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"


def code(
    roots: Sequence[Expr],
    variables: Mapping[str, str] | None = None,
    indent: str = "    ",
    prefix: str = "t",
) -> Code:
    """Print expressions; what they share is computed once.

    Parameters
    ----------
    roots : sequence of Expr
        What to compute.
    variables : mapping of str to str, optional
        WGSL expressions of the variables; by default a variable is its own name. They are written wherever the
        variable occurs, so names or parenthesised text. One of f16 may have the type f32.
    indent : str
        What each statement starts with.
    prefix : str
        What the names of intermediate results start with.

    Raises
    ------
    TypeError
        For arithmetic in f16, whose numbers cannot be protected from simplification: compute in f32.

    Examples
    --------
    >>> from numr.codegen.expr import F32, var
    >>> x = var("x", F32)
    >>> print(code([x * x + x]).results[0])
    (L((x * x)) + x)
    """
    # Sums of products that may be rounded once or twice: WGSL has one operation for both.
    roots = by_fma(roots, is_plain_fma)
    printer = _Printer(roots, variables or {}, prefix)
    printer.emit(roots, indent)
    types = {node.type.name for node in printer.order}
    return Code(
        "".join(f"{line}\n" for line in printer.lines),
        tuple(printer.text[root] for root in roots),
        frozenset(types | {"u64"} if "f64" in types else types),
    )


def barrier(node: Expr, text: str) -> str:
    """The text of a result, such that compilers do not simplify arithmetic with it; one of f16 as it is."""
    known = _is_computed(node) and node.type.name in _BARRIERS
    return f"{_BARRIERS[node.type.name]}({text})" if known else text


def opaque(type: Scalar, text: str) -> str:
    """The text of a number of which compilers shall not know where it comes from; one of f16 as it is."""
    return f"{_BARRIERS[type.name]}({text})" if type.name in _BARRIERS else text


def _is_computed(node: Expr) -> bool:
    """Whether a compiler knows the floating-point operation that a number comes from."""
    if node.type.kind != "f" or node.op in ("var", "const", "bitcast"):
        return False
    # Of a boolean it makes a choice between constants.
    return node.op != "cast" or node.args[0].type.kind in "bf"


def _is_factor(node: Expr, user: Expr) -> bool:
    """Whether a sum is multiplied with a number that compilers do not know, or what is negated: nothing is simpler then."""
    if user.op == "fma":
        if user.args[2] is node:
            return False
        factors = user.args[:2]
    elif user.op == "mul":
        factors = user.args
    else:
        return False
    if node.type.name not in _BARRIERS:
        return False
    return node.op == "neg" or (
        node.op in ("add", "sub", "fma") and all(factor.op != "const" for factor in factors)
    )


def _is_arithmetic(node: Expr) -> bool:
    """Whether a node does with floating-point operands what compilers like to simplify."""
    return node.op not in ("select", "rarely", "bitcast", "cast")


class _Printer(BracedSchedule):
    """WGSL of nodes."""

    # Software drivers take more time for a branch than for as many operations.
    short = 16

    def __init__(self, roots: Sequence[Expr], variables: Mapping[str, str], prefix: str) -> None:
        super().__init__(roots, prefix)
        self.variables = variables
        #: Nodes whose names stand for numbers that have passed the barrier.
        self.opaque: set[Expr] = set()

    def declare(self, node: Expr, name: str, text: str, *, mutable: bool) -> str:
        """A constant or variable; the barrier is passed here once instead of wherever the name is used."""
        if mutable:
            return f"var {name} = {text};"
        users = self._users.get(node, ())
        if _is_computed(node) and any(
            _is_arithmetic(user) and not _is_factor(node, user) for user in users
        ):
            text = self._barrier(node, text)
            self.opaque.add(node)
        return f"let {name} = {text};"

    def open_branch(self, condition: str) -> str:
        """The line that a branch starts with."""
        return f"if {condition} {{"

    def _opaque(self, node: Expr) -> str:
        """An operand of arithmetic, such that nothing is known about where it comes from."""
        known = node.op == "const" and node.type.kind == "f" and constant_value(node) == 0
        if node not in self.opaque and (known or _is_computed(node)):
            return self._barrier(node, self.text[node])
        return self.text[node]

    def _compared(self, node: Expr) -> str:
        """An operand of a comparison."""
        if node.op == "const":
            return self.text[node]
        if node.op == "cast" and node.type.name == "i64" and node.args[0].type.name == "i32":
            return f"LI({self.text[node]})"
        return self._opaque(node)

    def _barrier(self, node: Expr, text: str) -> str:
        try:
            return f"{_BARRIERS[node.type.name]}({text})"
        except KeyError:
            raise TypeError(f"arithmetic in {node.type} is not printed: compute in f32") from None

    def print(self, node: Expr) -> str:
        """The text of a node."""
        op, args = node.op, node.args
        if op == "var":
            name = str(node.value)
            text = self.variables.get(name, name)
            # The variable itself may be of type f32.
            return f"f16({text})" if node.type.name == "f16" else text
        if op == "const":
            return constant(node)
        special = _SPECIAL.get(op)
        if special is not None:
            return special(self, node)
        if op in _COMPARISONS:
            operands = [self._compared(a) for a in args]
        else:
            operands = [
                self.text[arg] if _is_factor(arg, node) else self._opaque(arg) for arg in args
            ]
        if node.type.name == "f64" and op in _REPLACED_F64:
            return f"{_REPLACED_F64[op]}({operands[0]})"
        if node.type.name == "f32" and op == "sqrt" and node.value == ROUNDED:
            return f"rooted({operands[0]})"
        if op in _CALLS:
            return f"{_CALLS[op]}({operands[0]})"
        if op in ("sub", "div") and node.type.kind == "f" and self.is_same(*args):
            # Neither x - x nor x / x is a constant.
            operands[1] = self._barrier(args[1], operands[1])
        if node.type.name == "f32" and op == "div":
            function = "divided" if node.value == ROUNDED else "about"
            return f"{function}({operands[0]}, {operands[1]})"
        return f"({operands[0]} {_INFIX[op]} {operands[1]})"

    def _quotient(self, node: Expr) -> str:
        first, second = (self.text[arg] for arg in node.args)
        zero = f"0{_SUFFIXES[node.type.name]}"
        return f"select({first} / {second}, {zero}, ({second} == {zero}))"

    def _remainder(self, node: Expr) -> str:
        first, second = (self.text[arg] for arg in node.args)
        if node.type.kind == "u":
            return f"({first} % {second})"
        # Vulkan leaves the remainder of negative integers undefined, and NVIDIA's driver makes use of that.
        zero = f"0{_SUFFIXES[node.type.name]}"
        rest = f"({first} - ({first} / {second}) * {second})"
        return f"select({rest}, {zero}, ({second} == {zero}))"

    def _negation(self, node: Expr) -> str:
        if node.type.kind == "u":
            return f"(0{_SUFFIXES[node.type.name]} - {self.text[node.args[0]]})"
        return f"(-{self._opaque(node.args[0])})"

    def _fma(self, node: Expr) -> str:
        factors = [
            self.text[arg] if _is_factor(arg, node) else self._opaque(arg) for arg in node.args[:2]
        ]
        return f"fma({', '.join(factors)}, {self._opaque(node.args[2])})"

    def _inversion(self, node: Expr) -> str:
        return f"({'!' if node.type.kind == 'b' else '~'}{self.text[node.args[0]]})"

    def _unequal(self, node: Expr) -> str:
        if node.args[0].type.kind != "f":
            return f"({self.text[node.args[0]]} != {self.text[node.args[1]]})"
        return f"(!({self._opaque(node.args[0])} == {self._opaque(node.args[1])}))"

    def _exclusive_or(self, node: Expr) -> str:
        operator = "!=" if node.type.kind == "b" else "^"
        return f"({self.text[node.args[0]]} {operator} {self.text[node.args[1]]})"

    def _select(self, node: Expr) -> str:
        condition, true, false = node.args
        texts = [self.text[false], self.text[true]]
        if node.type.kind == "f":
            # Else it becomes a minimum or maximum, which drops NaN; and a choice between constants becomes
            # arithmetic with the condition, which changes the sign of zero.
            constants = true.op == false.op == "const"
            texts = [
                self._barrier(arm, text) if constants or arm in condition.args else text
                for arm, text in zip((false, true), texts, strict=True)
            ]
        return f"select({texts[0]}, {texts[1]}, {self.text[condition]})"

    def _bitcast(self, node: Expr) -> str:
        return f"bitcast<{node.type}>({self.text[node.args[0]]})"

    def _cast(self, node: Expr) -> str:
        value, source, target = self.text[node.args[0]], node.args[0].type, node.type
        if source.name == "f16" and node.args[0].op == "var":
            # Not by way of f16, which on some devices loses the sign of NaN.
            name = str(node.args[0].value)
            value = self.variables.get(name, name)
        if target.kind == "b":
            zero = "0.0" if source.kind == "f" else "0"
            suffix = {"f16": "h", "f32": "f", "f64": "lf"}.get(source.name)
            return f"(!({value} == {zero}{suffix or _SUFFIXES[source.name]}))"
        first = node.args[0].args[0] if node.args[0].op == "cast" else node.args[0]
        if target.kind == "f" and source.name == "i64" and first.type.name == "i32":
            # What compares such a number with constants finds it positive, by way of i64.
            value = self.text[first]
        if source.name == "u32" and target.name == "i64":
            return f"i64(u64({value}))"
        if source.name == "i32" and target.name == "u64":
            return f"u64(i64({value}))"
        return f"{target}({value})"


_SPECIAL: Final[dict[str, Callable[[_Printer, Expr], str]]] = {
    "bitcast": _Printer._bitcast,
    "cast": _Printer._cast,
    "fma": _Printer._fma,
    "ne": _Printer._unequal,
    "neg": _Printer._negation,
    "not": _Printer._inversion,
    "quot": _Printer._quotient,
    "rarely": _Printer._select,
    "rem": _Printer._remainder,
    "select": _Printer._select,
    "xor": _Printer._exclusive_or,
}
