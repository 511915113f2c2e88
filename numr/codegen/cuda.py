"""Expressions as CUDA C++.

The compiler keeps IEEE arithmetic as it is written, once contraction and the flushing of subnormal numbers are
switched off (:data:`OPTIONS`); so only what C++ leaves undefined needs care: signed overflow, quotients by zero, shifts.
A float16 number is held as a float, which has room for it, and rounded where one is made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from numr.codegen.expr import Expr, Scalar, by_fma, const_bits, constant_value
from numr.codegen.libm.formats import FORMATS
from numr.codegen.schedule import BracedSchedule

__all__ = ["OPTIONS", "PRELUDE", "Code", "code", "constant", "type_name"]

#: What the compiler is told so that arithmetic means what expressions say.
OPTIONS: Final = (
    "-std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
)

#: Functions that the text of expressions calls. The instructions are written out, so that no header is needed.
PRELUDE: Final = r"""
__device__ __forceinline__ float numr_from_half(unsigned short bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    // The instruction drops the sign of NaN.
    if ((bits & 0x7fff) > 0x7c00)
        asm("mov.b32 %0, %1;" : "=f"(value) : "r"(0x7fc00000u | (unsigned)(bits & 0x8000) << 16));
    return value;
}
__device__ __forceinline__ unsigned short numr_to_half(float value) {
    unsigned short bits;
    unsigned word;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    asm("mov.b32 %0, %1;" : "=r"(word) : "f"(value));
    if ((word & 0x7fffffffu) > 0x7f800000u) bits = (unsigned short)(0x7e00u | (word >> 16 & 0x8000u));
    return bits;
}
__device__ __forceinline__ float numr_half(float value) {
    return numr_from_half(numr_to_half(value));
}
"""

_TYPES: Final = {
    "f16": "float",
    "f32": "float",
    "f64": "double",
    "i32": "int",
    "u32": "unsigned int",
    "i64": "long long",
    "u64": "unsigned long long",
    "bool": "bool",
}
_UNSIGNED: Final = {"i32": "unsigned int", "i64": "unsigned long long"}
_SUFFIXES: Final = {"i32": "", "u32": "u", "i64": "ll", "u64": "ull"}
_INFIX: Final = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "and": "&",
    "or": "|",
    "xor": "^",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
_CALLS: Final = {
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "rint",
    "sqrt": "sqrt",
    "abs": "fabs",
}
_BITCASTS: Final = {
    ("f32", "i32"): "__float_as_int({})",
    ("f32", "u32"): "__float_as_uint({})",
    ("i32", "f32"): "__int_as_float({})",
    ("u32", "f32"): "__uint_as_float({})",
    ("f64", "i64"): "__double_as_longlong({})",
    ("f64", "u64"): "((unsigned long long)__double_as_longlong({}))",
    ("i64", "f64"): "__longlong_as_double({})",
    ("u64", "f64"): "__longlong_as_double((long long)({}))",
}


class Code(NamedTuple):
    """The text that computes expressions.

    Parameters
    ----------
    statements : str
        Declarations, one a line, to be put into a function before the results are used.
    results : tuple of str
        C++ expressions of the results.
    size : int
        How many operations there are.
    """

    statements: str
    results: tuple[str, ...]
    size: int


def type_name(type: Scalar) -> str:
    """The C++ name of a type."""
    return _TYPES[type.name]


def constant(node: Expr) -> str:
    """A constant as C++."""
    type, value = node.type.name, constant_value(node)
    if type == "bool":
        return "true" if value else "false"
    if node.type.kind == "f":
        number = float(value)
        if not math.isfinite(number):
            if type == "f64":
                return f"__longlong_as_double({node.value:#x}ll)"
            bits = node.value if type == "f32" else _HALF_BITS[math.isnan(number), number < 0]
            return f"__uint_as_float({bits:#x}u)"
        text = number.hex() + ("" if type == "f64" else "f")
        return f"({text})" if text.startswith("-") else text
    suffix = _SUFFIXES[type]
    if node.type.kind == "i" and value == -(1 << (node.type.bits - 1)):
        # The positive number of that size does not exist.
        return f"(-{-(value + 1)}{suffix} - 1)"
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"


#: Infinities and NaN of float16, as the floats that hold them.
_HALF_BITS: Final = {
    (False, False): 0x7F800000,
    (False, True): 0xFF800000,
    (True, False): 0x7FC00000,
}


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
        C++ expressions of the variables; by default a variable is its own name. They are written wherever the
        variable occurs, so names or parenthesised text.
    indent : str
        What each statement starts with.
    prefix : str
        What the names of intermediate results start with.

    Examples
    --------
    >>> from numr.codegen.expr import F32, var
    >>> x = var("x", F32)
    >>> code([x * x + 0.5]).results
    ('((x * x) + 0x1.0000000000000p-1f)',)
    """
    roots = by_fma(roots)
    printer = _Printer(roots, variables or {}, prefix)
    printer.emit(roots, indent)
    statements = "".join(f"{line}\n" for line in printer.lines)
    return Code(statements, tuple(printer.text[root] for root in roots), len(printer.order))


class _Printer(BracedSchedule):
    def __init__(self, roots: Sequence[Expr], variables: Mapping[str, str], prefix: str) -> None:
        super().__init__(roots, prefix)
        self.variables = variables
        self._chosen = {
            arm
            for node in self.order
            if node.op == "select"
            for arm in node.args[1:]
            if arm.op not in ("var", "const")
        }

    def statement(self, node: Expr, indent: str) -> None:
        super().statement(node, indent)
        text = self.text[node]
        if node in self._chosen and not text.isidentifier():
            # Within a choice it would be computed in a branch, which threads of a warp take one after the other.
            name = self._name()
            self.lines.append(indent + self.declare(node, name, text, mutable=False))
            self.text[node] = name

    def declare(self, node: Expr, name: str, text: str, *, mutable: bool) -> str:
        return f"{'' if mutable else 'const '}{type_name(node.type)} {name} = {text};"

    def open_branch(self, condition: str) -> str:
        return f"if ({condition}) {{"

    def print(self, node: Expr) -> str:
        op, type = node.op, node.type
        if op == "var":
            name = str(node.value)
            return self.variables.get(name, name)
        if op == "const":
            return constant(node)
        texts = [self.text[arg] for arg in node.args]
        found = _magnitude(node)
        if found is not None:
            # One comparison of floats instead of two operations on their bits; false for NaN.
            number, bits = found
            size = f"{_CALLS['abs']}{'' if number.type.name == 'f64' else 'f'}({self.text[number]})"
            bound = constant(const_bits(bits, number.type))
            return f"({size} < {bound})" if op == "lt" else f"(!({size} <= {bound}))"
        if op == "cast":
            return _cast(texts[0], node.args[0].type, type)
        if op == "bitcast":
            source = node.args[0].type
            template = _BITCASTS.get((source.name, type.name))
            return template.format(texts[0]) if template else f"(({type_name(type)})({texts[0]}))"
        if op == "fma":
            return f"{'fma' if type.name == 'f64' else 'fmaf'}({', '.join(texts)})"
        if op in ("select", "rarely"):
            return f"({texts[0]} ? {texts[1]} : {texts[2]})"
        if op == "not":
            return f"({'!' if type.kind == 'b' else '~'}{texts[0]})"
        if type.kind == "f":
            return _floating(op, type, texts)
        if op in ("quot", "rem"):
            return _quotient(op, type, texts)
        if op in ("shl", "shr"):
            return _shifted(op, type, texts)
        if type.kind == "i" and op in ("add", "sub", "mul", "neg", "abs"):
            return _wrapping(op, type, texts)
        if op == "neg":
            return f"(0{_SUFFIXES[type.name]} - {texts[0]})"
        text = f"({texts[0]} {_INFIX[op]} {texts[1]})"
        # Operations on booleans give integers.
        return f"((bool){text})" if type.kind == "b" and op in ("and", "or", "xor") else text


def _magnitude(node: Expr) -> tuple[Expr, int] | None:
    """The number whose bits without the sign a node compares with others, and those, unless they are NaN's."""
    if node.op not in ("gt", "lt") or node.args[1].op != "const":
        return None
    masked, bound = node.args
    if masked.op != "and" or masked.args[0].op != "bitcast" or masked.args[1].op != "const":
        return None
    number = masked.args[0].args[0]
    if number.type not in FORMATS:
        return None
    form = FORMATS[number.type]
    bits = bound.value
    assert isinstance(bits, int)
    if masked.args[1].value != form.sign_bit - 1 or bits > form.inf_bits:
        return None
    return number, bits


def _floating(op: str, type: Scalar, texts: list[str]) -> str:
    if op in _CALLS:
        text = f"{_CALLS[op]}{'' if type.name == 'f64' else 'f'}({texts[0]})"
    elif op == "neg":
        text = f"(-{texts[0]})"
    else:
        text = f"({texts[0]} {_INFIX[op]} {texts[1]})"
    exact = op in ("neg", "abs")
    return text if type.name != "f16" or exact else f"numr_half({text})"


def _wrapping(op: str, type: Scalar, texts: list[str]) -> str:
    """Signed arithmetic, done with unsigned numbers since overflow is undefined otherwise."""
    name, unsigned = type_name(type), _UNSIGNED[type.name]
    if op in ("neg", "abs"):
        negated = f"(({name})(0 - ({unsigned}){texts[0]}))"
        return negated if op == "neg" else f"({texts[0]} < 0 ? {negated} : {texts[0]})"
    return f"(({name})(({unsigned}){texts[0]} {_INFIX[op]} ({unsigned}){texts[1]}))"


def _quotient(op: str, type: Scalar, texts: list[str]) -> str:
    first, second = texts
    zero = f"0{_SUFFIXES[type.name]}"
    if type.kind == "u":
        return f"({second} == 0 ? {zero} : {first} {'/' if op == 'quot' else '%'} {second})"
    if op == "rem":
        # By -1 it would overflow for the least integer.
        return f"({second} == 0 || {second} == -1 ? {zero} : {first} % {second})"
    negated = _wrapping("neg", type, [first])
    return f"({second} == 0 ? {zero} : {second} == -1 ? {negated} : {first} / {second})"


def _shifted(op: str, type: Scalar, texts: list[str]) -> str:
    value, count = texts[0], f"({texts[1]} & {type.bits - 1}u)"
    if op == "shr":
        return f"({value} >> {count})"
    if type.kind == "u":
        return f"({value} << {count})"
    return f"(({type_name(type)})(({_UNSIGNED[type.name]}){value} << {count}))"


def _cast(text: str, source: Scalar, target: Scalar) -> str:
    if target.kind == "b":
        return f"({text} != 0)"
    if target.name == "f16":
        # Integers beyond the 24 bits of a float are beyond the range of float16 too.
        return f"numr_half((float)({text}))"
    if source.name == "f16" and target.name == "f32":
        return text
    return f"(({type_name(target)})({text}))"
