"""The order of elements that sorting and searching share, as unsigned integers that compare like it.

An element is looked at as bits, in words of 32, and mapped to a *key* of as many words: the order of keys is the
order that is wanted. Everything that has no order of its own gets one key and so counts as equal, which keeps its
order in a stable sort: the two zeros, and all NaN, which come last in both directions. Floating-point
comparisons would not do, as some devices take subnormal numbers for zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from numr.dtypes import DType
from numr.runtime.wgpu.pipelines import StorageBuffer
from numr.runtime.wgpu.texts import moved_type

__all__ = ["Order", "element_bits"]

#: Bits of a floating-point number that lie in the word with its sign: without the sign, and of infinity.
_MAGNITUDE: Final = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FFFFFFF}
_INFINITY: Final = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF00000}
_ALL: Final = "0xffffffffu"


@dataclass(frozen=True)
class Order:
    """An order of a dtype's elements, and WGSL of it.

    Elements that share words in memory are taken out of them: here they are the low bits of a ``u32``.

    Parameters
    ----------
    dtype : dtype
        Of the elements.
    descending : bool
        Whether large elements come first.
    """

    dtype: DType
    descending: bool = False

    @property
    def words(self) -> int:
        """32-bit words in an element, and in a key."""
        return max(1, self.dtype.itemsize // 4)

    @property
    def bits(self) -> int:
        """Bits of a key that matter, the low ones."""
        return 1 if self.dtype.kind == "b" else 8 * self.dtype.itemsize

    @property
    def type(self) -> str:
        """The WGSL type of elements and of keys, whose last word is the highest."""
        return moved_type(4 * self.words)

    @property
    def largest(self) -> str:
        """The largest key; that of NaN if there is NaN."""
        return _ALL if self.words == 1 else f"{self.type}({', '.join([_ALL] * self.words)})"

    def buffer(self, name: str, *, writable: bool = False) -> StorageBuffer:
        """A buffer of elements, none of which share words."""
        return StorageBuffer(name, "read_write" if writable else "read", f"array<{self.type}>")

    @cached_property
    def text(self) -> str:
        """The functions ``sort_key``, of an element, and ``comes_before``, of two keys."""
        return self._key() + self._before()

    def _before(self) -> str:
        head = f"fn comes_before(a: {self.type}, b: {self.type}) -> bool {{\n"
        if self.words == 1:
            return f"{head}    return a < b;\n}}\n"
        # The highest word that differs decides.
        body = "".join(
            f"    if (a.{part} != b.{part}) {{ return a.{part} < b.{part}; }}\n"
            for part in "wzy"[-self.words + 1 :]
        )
        return f"{head}{body}    return a.x < b.x;\n}}\n"

    def _key(self) -> str:
        if self.dtype.kind == "c":
            return self._number_key(self.dtype.itemsize // 2, "part_key") + self._complex_key()
        if self.dtype.kind == "f":
            return self._number_key(self.dtype.itemsize, "sort_key")
        mask = (1 << self.bits) - 1
        flip = mask if self.descending else 0
        if self.dtype.kind == "i":
            flip ^= 1 << (self.bits - 1)
        return (
            f"fn sort_key(element: {self.type}) -> {self.type} {{\n"
            f"    return element ^ {_words(flip, self.words)};\n}}\n"
        )

    def _number_key(self, itemsize: int, name: str) -> str:
        """The key of a floating-point number: its bits, turned round if it is negative.

        Turned round once more for the descending order, no number has all bits set; that is the key of NaN.
        """
        words = max(1, itemsize // 4)
        type_ = moved_type(4 * words)
        magnitude, infinity = _MAGNITUDE[itemsize], _INFINITY[itemsize]
        bits = 8 * itemsize
        every = (1 << bits) - 1
        positive, negative = 1 << (bits - 1), every
        if self.descending:
            positive, negative = positive ^ every, negative ^ every
        if words == 1:
            top, rest = "element", ""
            is_nan = f"magnitude > {infinity}u"
            bare = "magnitude == 0u"
        else:
            top, rest = "element.y", ".y"
            is_nan = f"magnitude > {infinity}u || (magnitude == {infinity}u && element.x != 0u)"
            bare = "(magnitude | element.x) == 0u"
        return (
            f"fn {name}(element: {type_}) -> {type_} {{\n"
            f"    let magnitude = {top} & {magnitude}u;\n"
            f"    if ({is_nan}) {{ return {_words(every, words)}; }}\n"
            f"    let number = select(element, {_words(0, words)}, {bare});\n"
            f"    let is_negative = (number{rest} & {magnitude + 1}u) != 0u;\n"
            f"    return number ^ select({_words(positive, words)}, {_words(negative, words)}, is_negative);\n"
            "}\n"
        )

    def _complex_key(self) -> str:
        """By the real parts, then by the imaginary ones.

        Behind all numbers come those whose imaginary part alone is NaN, then those whose real part alone is,
        then those of which both are. The highest words that tell them apart are above those of any number.
        """
        if self.words == 2:
            re, im, top = "element.x", "element.y", ""
            high = "{}"
        else:
            re, im, top = "element.xy", "element.zw", ".y"
            high = f"vec2<u32>({_ALL}, {{}})"
        only_real, only_imaginary = high.format("0xfffffffeu"), high.format("0xfffffffdu")
        return (
            f"fn sort_key(element: {self.type}) -> {self.type} {{\n"
            f"    let re = part_key({re});\n"
            f"    let im = part_key({im});\n"
            f"    if (re{top} == {_ALL}) {{\n"
            f"        if (im{top} == {_ALL}) {{ return {self.largest}; }}\n"
            f"        return {self.type}(im, {only_real});\n"
            "    }\n"
            f"    if (im{top} == {_ALL}) {{ return {self.type}(re, {only_imaginary}); }}\n"
            f"    return {self.type}(im, re);\n"
            "}\n"
        )


def _words(value: int, words: int) -> str:
    """WGSL of a number in 32-bit words, the lowest first."""
    parts = [f"{value >> 32 * i & 0xFFFFFFFF}u" for i in range(words)]
    return parts[0] if words == 1 else f"{moved_type(4 * words)}({', '.join(parts)})"


def element_bits(itemsize: int, buffer: str, index: str) -> str:
    """WGSL of the bits of an element in memory, as an :class:`Order` takes them.

    Parameters
    ----------
    itemsize : int
        Bytes in an element of the buffer.
    buffer, index : str
        A buffer of :func:`moved_type`, and the element's index of type u32; a name or text in parentheses.
    """
    count = 4 // itemsize
    if count <= 1:
        return f"{buffer}[{index}]"
    shift, bits = count.bit_length() - 1, 32 // count
    return (
        f"extractBits({buffer}[{index} >> {shift}u], {bits}u * ({index} & {count - 1}u), {bits}u)"
    )
