"""The LLVM instructions that compute the nodes of expressions, each for several elements at once."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

from numr.codegen.expr import Expr, Scalar, constant_value
from numr.codegen.schedule import Schedule

__all__ = ["Instructions", "element", "vector"]

_ELEMENTS: Final = {
    "f16": "i16",
    "f32": "float",
    "f64": "double",
    "i32": "i32",
    "u32": "i32",
    "i64": "i64",
    "u64": "i64",
    "bool": "i1",
}
#: How intrinsics' names spell element types.
_MANGLED: Final = {"float": "f32", "double": "f64"}

_FLOAT_ARITHMETIC: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER_ARITHMETIC: Final = {op: op for op in ("add", "sub", "mul", "and", "or", "xor")}
_FLOAT_COMPARISONS: Final = {
    "eq": "oeq",
    "ne": "une",
    "lt": "olt",
    "le": "ole",
    "gt": "ogt",
    "ge": "oge",
}
#: Intrinsics that become one instruction; the names that they have there.
_INTRINSICS: Final = {
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "rint",
    "sqrt": "sqrt",
    "abs": "fabs",
}


def element(type: Scalar) -> str:
    """The LLVM type of an element as it is computed with; f16 is held by its bits."""
    return _ELEMENTS[type.name]


def vector(type: Scalar, lanes: int) -> str:
    """The LLVM type of several elements."""
    return f"<{lanes} x {element(type)}>"


class Instructions(Schedule):
    """A schedule that writes one instruction a line; what a branch looks like is left open.

    Parameters
    ----------
    roots : sequence of Expr
        What to compute.
    lanes : int
        How many elements a value has.
    prefix : str
        What the names of intermediate results start with.

    Attributes
    ----------
    variables : dict of str to str
        Values of the variables, to be set before they are needed.
    """

    def __init__(self, roots: Sequence[Expr], lanes: int, prefix: str) -> None:
        super().__init__(roots, prefix)
        self.lanes = lanes
        self.variables: dict[str, str] = {}
        self._declarations: dict[str, None] = {}
        self._quotients: dict[tuple[Scalar, str, str], tuple[str, str, str]] = {}

    @property
    def declarations(self) -> tuple[str, ...]:
        """Lines that declare the intrinsics that have been called."""
        return tuple(self._declarations)

    def statement(self, node: Expr, indent: str) -> None:
        """The instructions that compute a node."""
        self.text[node] = self._print(node)

    def _type(self, type: Scalar) -> str:
        return vector(type, self.lanes)

    def _vector(self, item: str) -> str:
        return f"<{self.lanes} x {item}>"

    def _put(self, text: str) -> str:
        name = f"%{self._name()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def _call(self, name: str, mangled: str, result: str, arguments: list[tuple[str, str]]) -> str:
        """Call an intrinsic; arguments are element types and values."""
        types = ", ".join(self._vector(item) for item, _ in arguments)
        self._declarations[f"declare {result} @llvm.{name}.{mangled}({types})"] = None
        values = ", ".join(f"{self._vector(item)} {value}" for item, value in arguments)
        return self._put(f"call {result} @llvm.{name}.{mangled}({values})")

    def _convert(self, instruction: str, value: str, source: str, target: str) -> str:
        return self._put(f"{instruction} {self._vector(source)} {value} to {self._vector(target)}")

    def _select(self, condition: str, node: Expr, true: str, false: str) -> str:
        type = self._type(node.type)
        return self._put(f"select {self._vector('i1')} {condition}, {type} {true}, {type} {false}")

    def _print(self, node: Expr) -> str:
        op, type = node.op, node.type
        if op == "var":
            return self.variables[str(node.value)]
        if op == "const":
            return _constant(node)
        values = [self.text[arg] for arg in node.args]
        special = _SPECIAL.get(op)
        if special is not None:
            return special(self, node, values)
        source = node.args[0].type
        if source.kind != "f":
            return self._integer(node, values)
        if source.name == "f16":
            values = [self._widened(value) for value in values]
        item = "float" if source.name == "f16" else element(source)
        result = self._floating(op, item, values)
        return self._narrowed(result) if type.name == "f16" else result

    def _floating(self, op: str, item: str, values: list[str]) -> str:
        if op in _INTRINSICS:
            mangled = f"v{self.lanes}{_MANGLED[item]}"
            return self._call(_INTRINSICS[op], mangled, self._vector(item), [(item, values[0])])
        if op in _FLOAT_COMPARISONS:
            text = f"fcmp {_FLOAT_COMPARISONS[op]}"
        elif op == "neg":
            return self._put(f"fneg {self._vector(item)} {values[0]}")
        else:
            text = _FLOAT_ARITHMETIC[op]
        return self._put(f"{text} {self._vector(item)} {values[0]}, {values[1]}")

    def _integer(self, node: Expr, values: list[str]) -> str:
        op, source = node.op, node.args[0].type
        type = self._type(source)
        if op == "neg":
            return self._put(f"sub {type} zeroinitializer, {values[0]}")
        if op == "not":
            return self._put(f"xor {type} {values[0]}, {_splat(element(source), '-1')}")
        if op == "abs":
            mangled = f"v{self.lanes}{element(source)}"
            self._declarations[f"declare {type} @llvm.abs.{mangled}({type}, i1)"] = None
            return self._put(f"call {type} @llvm.abs.{mangled}({type} {values[0]}, i1 false)")
        if op in ("eq", "ne"):
            text = f"icmp {op}"
        elif op in _FLOAT_COMPARISONS:
            text = f"icmp {'s' if source.kind == 'i' else 'u'}{op}"
        else:
            text = _INTEGER_ARITHMETIC[op]
        return self._put(f"{text} {type} {values[0]}, {values[1]}")

    def _widened(self, bits: str) -> str:
        """Numbers of f16 in f32."""
        return self._convert(
            "fpext", self._convert("bitcast", bits, "i16", "half"), "half", "float"
        )

    def _narrowed(self, value: str) -> str:
        """Numbers of f32 rounded to f16."""
        return self._convert(
            "bitcast", self._convert("fptrunc", value, "float", "half"), "half", "i16"
        )

    # ---------------------------------------------------------- special nodes
    def _chosen(self, node: Expr, values: list[str]) -> str:
        return self._select(values[0], node, values[1], values[2])

    def _shifted(self, node: Expr, values: list[str]) -> str:
        type = node.type
        item = element(type)
        given = node.args[1]
        if given.op == "const":
            count = _splat(item, int(constant_value(given)) & (type.bits - 1))
        else:
            mask = _splat("i32", type.bits - 1)
            count = self._put(f"and {self._vector('i32')} {values[1]}, {mask}")
            if type.bits > 32:
                count = self._convert("zext", count, "i32", item)
        instruction = "shl" if node.op == "shl" else "ashr" if type.kind == "i" else "lshr"
        return self._put(f"{instruction} {self._vector(item)} {values[0]}, {count}")

    def _divided(self, node: Expr, values: list[str]) -> str:
        """A quotient or remainder; both of the same operands share one division."""
        type = node.type
        key = (type, values[0], values[1])
        text = self._type(type)
        if key not in self._quotients:
            self._quotients[key] = self._division(type, *values)
        quotient, divisor, by_zero = self._quotients[key]
        if node.op == "quot":
            return self._put(
                f"select {self._vector('i1')} {by_zero}, {text} zeroinitializer, {text} {quotient}"
            )
        product = self._put(f"mul {text} {quotient}, {divisor}")
        return self._put(f"sub {text} {values[0]}, {product}")

    def _division(self, type: Scalar, first: str, second: str) -> tuple[str, str, str]:
        """A quotient, the divisor, which is 1 where that given would not do, and where that given is zero."""
        item = element(type)
        text = self._vector(item)
        by_zero = self._put(f"icmp eq {text} {second}, zeroinitializer")
        unfit = by_zero
        if type.kind == "i":
            least = self._put(f"icmp eq {text} {first}, {_splat(item, -(1 << (type.bits - 1)))}")
            by_minus_one = self._put(f"icmp eq {text} {second}, {_splat(item, '-1')}")
            overflows = self._put(f"and {self._vector('i1')} {least}, {by_minus_one}")
            unfit = self._put(f"or {self._vector('i1')} {by_zero}, {overflows}")
        one = _splat(item, "1")
        divisor = self._put(f"select {self._vector('i1')} {unfit}, {text} {one}, {text} {second}")
        signed = "s" if type.kind == "i" else "u"
        if type.bits > 32:
            quotient = self._put(f"{signed}div {text} {first}, {divisor}")
            return quotient, divisor, by_zero
        # Processors divide vectors of floats only. With more than twice the digits, rounding down gives the quotient.
        wide = [
            self._convert(f"{signed}itofp", value, item, "double") for value in (first, divisor)
        ]
        ratio = self._put(f"fdiv {self._vector('double')} {wide[0]}, {wide[1]}")
        return self._convert(f"fpto{signed}i", ratio, "double", item), divisor, by_zero

    def _bitcast(self, node: Expr, values: list[str]) -> str:
        source, target = element(node.args[0].type), element(node.type)
        return (
            values[0] if source == target else self._convert("bitcast", values[0], source, target)
        )

    def _cast(self, node: Expr, values: list[str]) -> str:
        value, source, target = values[0], node.args[0].type, node.type
        if source.name == "f16":
            if target.name == "f32":
                return self._widened(value)
            return self._converted(self._widened(value), "f", 32, "float", target)
        return self._converted(value, source.kind, source.bits, element(source), target)

    def _converted(self, value: str, kind: str, bits: int, item: str, target: Scalar) -> str:
        to = element(target)
        if target.kind == "b":
            compare = "fcmp une" if kind == "f" else "icmp ne"
            return self._put(f"{compare} {self._vector(item)} {value}, zeroinitializer")
        if target.name == "f16":
            if bits == 64 and kind == "f":
                raise TypeError("f64 is not printed as f16: round to odd in f32 first")
            if kind != "f":
                # Integers beyond the 24 bits of f32 are beyond the range of f16 too.
                value = self._from_integer(value, kind, item, "float")
            return self._narrowed(value)
        if kind != "f":
            if target.kind == "f":
                return self._from_integer(value, kind, item, to)
            return self._resized(value, kind, bits, item, target)
        if target.kind == "f":
            if item == to:
                return value
            return self._convert("fpext" if bits < target.bits else "fptrunc", value, item, to)
        instruction = "fptosi" if target.kind == "i" else "fptoui"
        result = self._convert(instruction, value, item, to)
        # Whatever a number beyond the range gives, it has to be one value.
        return self._put(f"freeze {self._vector(to)} {result}")

    def _from_integer(self, value: str, kind: str, item: str, to: str) -> str:
        if kind == "b":
            one = _splat(to, _float_bits(1.0))
            return self._put(
                f"select {self._vector('i1')} {value}, {self._vector(to)} {one}, "
                f"{self._vector(to)} zeroinitializer"
            )
        return self._convert("sitofp" if kind == "i" else "uitofp", value, item, to)

    def _resized(self, value: str, kind: str, bits: int, item: str, target: Scalar) -> str:
        if bits == target.bits:
            return value
        if bits > target.bits:
            return self._convert("trunc", value, item, element(target))
        return self._convert("sext" if kind == "i" else "zext", value, item, element(target))

    def _sign_changed(self, node: Expr, values: list[str]) -> str:
        """A negation or absolute value, which of f16 is a matter of one bit."""
        if node.type.name != "f16":
            if node.type.kind == "f":
                return self._floating(node.op, element(node.type), values)
            return self._integer(node, values)
        instruction, mask = ("xor", -0x8000) if node.op == "neg" else ("and", 0x7FFF)
        return self._put(f"{instruction} {self._vector('i16')} {values[0]}, {_splat('i16', mask)}")


_SPECIAL: Final[dict[str, Callable[[Instructions, Expr, list[str]], str]]] = {
    "abs": Instructions._sign_changed,
    "bitcast": Instructions._bitcast,
    "cast": Instructions._cast,
    "neg": Instructions._sign_changed,
    "quot": Instructions._divided,
    "rem": Instructions._divided,
    "select": Instructions._chosen,
    "shl": Instructions._shifted,
    "shr": Instructions._shifted,
}


def _splat(item: str, value: object) -> str:
    return f"splat ({item} {value})"


def _float_bits(value: float) -> str:
    # Numbers of either width are written as the bits of a double.
    return f"0x{int.from_bytes(struct.pack('>d', value)):016X}"


def _constant(node: Expr) -> str:
    """A constant in all elements."""
    bits, item = node.value, element(node.type)
    assert isinstance(bits, int)
    if not bits:
        return "zeroinitializer"
    if node.type.name == "f64":
        return _splat(item, f"0x{bits:016X}")
    if node.type.name == "f32":
        return _splat(item, _float_bits(float(constant_value(node))))
    if node.type.kind == "b":
        return _splat(item, "true")
    if node.type.name == "f16":
        return _splat(item, bits)
    return _splat(item, constant_value(node))
