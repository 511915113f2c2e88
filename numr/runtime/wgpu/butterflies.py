"""Fourier transforms of a few numbers in registers, as text.

Complex numbers are vectors of two. Sums are those of the usual fast algorithms: nothing cancels that would not
cancel in the definition, so compilers may contract and reorder them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import count
from typing import Final

import numpy as np

from numr.runtime.wgpu.transform_tables import turns

__all__ = ["Butterfly", "number"]


def number(value: float, scalar: str) -> str:
    """A number as a literal of f32 or f64."""
    return f"{float(np.float32(value))!r}f" if scalar == "f32" else f"{float(value)!r}lf"


#: Factors ``exp(-2j * pi * turn)`` that need no multiplication.
_EXACT: Final = {
    Fraction(0): "{0}",
    Fraction(1, 4): "{1}({0}.y, -{0}.x)",
    Fraction(1, 2): "-{0}",
    Fraction(3, 4): "{1}(-{0}.y, {0}.x)",
}


class Butterfly:
    """Writes the statements of transforms.

    Parameters
    ----------
    scalar : str
        ``"f32"`` or ``"f64"``.

    Attributes
    ----------
    lines : list of str
        The statements so far.
    """

    def __init__(self, scalar: str) -> None:
        self.scalar = scalar
        self.type = f"vec2<{scalar}>"
        self.lines: list[str] = []
        self._numbers = count()

    def transform(self, names: list[str]) -> list[str]:
        """Names of the transform of some variables, in order: ``sum(x[j] * exp(-2j * pi * j * k / n))``."""
        length = len(names)
        if length == 1:
            return names
        if length == 2:
            first, second = names
            return [self._let(f"{first} + {second}"), self._let(f"{first} - {second}")]
        small = 4 if length % 4 == 0 and length > 4 else _least_factor(length)
        if small == length:
            return self._of_prime(names)
        # Columns of length ``small``, a factor for each element, and rows.
        large = length // small
        columns = [self.transform(names[i::large]) for i in range(large)]
        result = [""] * length
        for k in range(small):
            row = [self._turned(columns[i][k], Fraction(i * k, length)) for i in range(large)]
            result[k::small] = self.transform(row)
        return result

    def _of_prime(self, names: list[str]) -> list[str]:
        """Of an odd prime number, whose factors come in conjugate pairs."""
        length, half = len(names), len(names) // 2
        pairs = [(names[i], names[length - i]) for i in range(1, half + 1)]
        sums = [self._let(f"{first} + {second}") for first, second in pairs]
        differences = [self._let(f"{first} - {second}") for first, second in pairs]
        result = [self._let(" + ".join([names[0], *sums]))] + [""] * (length - 1)
        for k in range(1, half + 1):
            factors = [self._factor(Fraction(i * k % length, length)) for i in range(1, half + 1)]
            even = [f"{cosine} * {name}" for (cosine, _), name in zip(factors, sums, strict=True)]
            odd = [f"{sine} * {name}" for (_, sine), name in zip(factors, differences, strict=True)]
            middle = self._let(" + ".join([names[0], *even]))
            side = self._let(" + ".join(odd))
            # The factors of a pair differ by the sign of what is imaginary.
            side = self._let(f"{self.type}(-{side}.y, {side}.x)")
            result[k] = self._let(f"{middle} + {side}")
            result[length - k] = self._let(f"{middle} - {side}")
        return result

    def _turned(self, name: str, turn: Fraction) -> str:
        """A number times ``exp(-2j * pi * turn)``."""
        exact = _EXACT.get(turn)
        if exact is not None:
            text = exact.format(name, self.type)
            return name if text == name else self._let(text)
        if turn.denominator == 8:
            scale = number(math.sqrt(0.5), self.scalar)
            # exp(-2j * pi / 8) is (1 - 1j) * scale, and so on by quarters.
            eighth = self._let(f"{scale} * {self.type}({name}.x + {name}.y, {name}.y - {name}.x)")
            return self._turned(eighth, turn - Fraction(1, 8))
        cosine, sine = self._factor(turn)
        return self._let(
            f"{self.type}({name}.x * {cosine} - {name}.y * {sine}, "
            f"{name}.y * {cosine} + {name}.x * {sine})"
        )

    def _factor(self, turn: Fraction) -> tuple[str, str]:
        """Real and imaginary part of ``exp(-2j * pi * turn)``, as literals."""
        value = turns(np.array([turn.numerator]), turn.denominator)[0]
        real, imaginary = number(value.real, self.scalar), number(value.imag, self.scalar)
        return f"({real})", f"({imaginary})"

    def _let(self, text: str) -> str:
        name = f"z{next(self._numbers)}"
        self.lines.append(f"let {name} = {text};")
        return name


def _least_factor(length: int) -> int:
    return next(factor for factor in range(2, length + 1) if length % factor == 0)
