"""Write numr/codegen/libm/tables.py: minimax polynomials and split constants, from their definitions.

Each polynomial is the best one of its degree in the sense of the largest relative error (Remez' exchange in
multiple precision, coefficients rounded to the target type at the end). The degree is the least whose error, times
what the polynomial contributes to its function, is far below half a unit in the last place.

    python tools/libm_tables.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpmath import lu_solve, matrix, mp, mpf

mp.prec = 400
TARGET = Path(__file__).parents[1] / "numr" / "codegen" / "libm" / "tables.py"
#: Significand bits of the two types.
PRECISION = {"f32": 24, "f64": 53}

Function = Callable[[Any], Any]


def horner(coefficients: list[Any], z: Any) -> Any:
    """The polynomial with these coefficients, lowest power first."""
    value = mpf(0)
    for coefficient in reversed(coefficients):
        value = value * z + coefficient
    return value


def series(function: Function, center: Function, terms: int = 60) -> Function:
    """``function`` away from zero, where it cancels, and its Taylor polynomial near zero."""
    coefficients = [center(n) for n in range(terms)]

    def value(z: Any) -> Any:
        if abs(z) > mpf(2) ** -6:
            return function(z)
        return horner(coefficients, z)

    return value


def _odd_root(function: Function, subtract: Function, power: int) -> Function:
    """``(function(x) - subtract(x)) / x**power`` as a function of ``z = x*x``."""

    def value(z: Any) -> Any:
        x = mp.sqrt(z)
        return (function(x) - subtract(x)) / x**power

    return value


def _central_binomial(n: int) -> Any:
    # Coefficients of asin: x**(2n+1) * (2n)! / (4**n * n!**2 * (2n+1)).
    return mp.factorial(2 * n) / (mpf(4) ** n * mp.factorial(n) ** 2 * (2 * n + 1))


#: Name: the function of z, its interval, and the largest share that the polynomial has in the result.
POLYNOMIALS: dict[str, tuple[Function, tuple[Any, Any], Any]] = {
    # For exp: (exp(r) - 1 - r) / r**2
    "EXP": (
        series(lambda r: (mp.exp(r) - 1 - r) / r**2, lambda n: 1 / mp.factorial(n + 2)),
        (-mp.log(2) * 0.502, mp.log(2) * 0.502),
        mpf(0.09),
    ),
    # (sin(r) - r) / r**3, z = r*r
    "SIN": (
        series(
            _odd_root(mp.sin, lambda x: x, 3), lambda n: (-1) ** (n + 1) / mp.factorial(2 * n + 3)
        ),
        (mpf(0), (mp.pi / 4 * 1.002) ** 2),
        mpf(0.11),
    ),
    # (cos(r) - 1 + r**2/2) / r**4, z = r*r
    "COS": (
        series(
            _odd_root(mp.cos, lambda x: 1 - x * x / 2, 4),
            lambda n: (-1) ** n / mp.factorial(2 * n + 4),
        ),
        (mpf(0), (mp.pi / 4 * 1.002) ** 2),
        mpf(0.03),
    ),
    # (log((1 + s)/(1 - s)) - 2*s) / s**3, z = s*s, |s| <= 3 - 2*sqrt(2)
    "LOG": (
        series(
            _odd_root(lambda s: 2 * mp.atanh(s), lambda s: 2 * s, 3), lambda n: mpf(2) / (2 * n + 3)
        ),
        (mpf(0), (3 - 2 * mp.sqrt(2)) ** 2 * 1.01),
        mpf(0.01),
    ),
    # What remains of it beyond 2/3, for logarithms of double length.
    "LOG_TAIL": (
        series(
            _odd_root(lambda s: 2 * mp.atanh(s), lambda s: 2 * s + mpf(2) / 3 * s**3, 5),
            lambda n: mpf(2) / (2 * n + 5),
        ),
        (mpf(0), (3 - 2 * mp.sqrt(2)) ** 2 * 1.01),
        # Ten digits more than the type has.
        mpf(0.0002) * 2**10,
    ),
    # (atan(t) - t) / t**3, z = t*t, |t| <= sqrt(2) - 1
    "ATAN": (
        series(_odd_root(mp.atan, lambda t: t, 3), lambda n: mpf(-1) ** (n + 1) / (2 * n + 3)),
        (mpf(0), (mp.sqrt(2) - 1) ** 2 * 1.01),
        mpf(0.06),
    ),
    # What remains of it beyond -t**3/3 + t**5/5, for angles of double length.
    "ATAN_TAIL": (
        series(
            _odd_root(mp.atan, lambda t: t - t**3 / 3 + t**5 / 5, 7),
            lambda n: mpf(-1) ** (n + 1) / (2 * n + 7),
        ),
        (mpf(0), (mp.sqrt(2) - 1) ** 2 * 1.01),
        mpf(0.0008) * 2**11,
    ),
    # (asin(s) - s) / s**3, z = s*s, |s| <= 1/2
    "ASIN": (
        series(_odd_root(mp.asin, lambda s: s, 3), lambda n: _central_binomial(n + 1)),
        (mpf(0), mpf(0.2505)),
        mpf(0.05),
    ),
    # (sinh(x) - x) / x**3, z = x*x, |x| <= 1
    "SINH": (
        series(_odd_root(mp.sinh, lambda x: x, 3), lambda n: 1 / mp.factorial(2 * n + 3)),
        (mpf(0), mpf(1.01)),
        mpf(0.15),
    ),
}


def remez(function: Function, low: Any, high: Any, degree: int) -> tuple[list[Any], Any]:
    """The polynomial of least relative error, lowest coefficient first, and that error."""
    count = degree + 2
    nodes = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (count - 1)) for i in range(count)
    ]
    grid = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (24 * count))
        for i in range(24 * count + 1)
    ]
    values = [function(z) for z in grid]
    coefficients: list[Any] = []
    largest = mpf(0)
    for _ in range(6):
        system = matrix(count, count)
        right = matrix(count, 1)
        for i, z in enumerate(nodes):
            right[i] = function(z)
            for j in range(degree + 1):
                system[i, j] = z**j
            system[i, degree + 1] = (-1) ** i * right[i]
        solution = lu_solve(system, right)
        coefficients = [solution[j] for j in range(degree + 1)]
        errors = [
            1 - horner(coefficients, z) / value for z, value in zip(grid, values, strict=True)
        ]
        # The largest error between each two changes of its sign.
        peaks: list[int] = [0]
        for i in range(1, len(grid)):
            if errors[i] * errors[peaks[-1]] < 0:
                peaks.append(i)
            elif abs(errors[i]) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        largest = max(map(abs, errors))
        if len(peaks) != count:
            break
        nodes = [grid[i] for i in peaks]
    return coefficients, largest


def rounded(value: Any, bits: int) -> Any:
    """``value`` to a number of significand bits, to nearest."""
    with mp.workprec(bits):
        return +mpf(value)


def truncated(value: Any, bits: int) -> Any:
    """``value`` to a number of significand bits, towards zero."""
    exponent = mp.frexp(value)[1] - bits
    return mp.floor(value * mpf(2) ** -exponent) * mpf(2) ** exponent


def parts(value: Any, bits: int, count: int, last: int) -> list[Any]:
    """``value`` as a sum of ``count`` numbers of ``bits`` bits and one of ``last`` bits."""
    result = []
    for _ in range(count):
        result.append(truncated(value, bits))
        value -= result[-1]
    return [*result, rounded(value, last)]


def polynomial(name: str, precision: int) -> tuple[Any, ...]:
    """The coefficients of a table row for a significand of ``precision`` bits."""
    function, (low, high), share = POLYNOMIALS[name]
    for degree in range(2, 30):
        coefficients, error = remez(function, low, high, degree)
        if error * share < mpf(2) ** -(precision + 5):
            return tuple(rounded(c, precision) for c in coefficients)
    raise ArithmeticError(f"{name}: no polynomial of degree 30 suffices")


def constants(precision: int) -> dict[str, tuple[Any, ...]]:
    """Constants as sums of numbers, the largest first."""
    exponent_bits = 9 if precision == 24 else 11
    # Multiples of the quadrant up to 2**7 or 2**20 are exact.
    quadrant = precision - (7 if precision == 24 else 20)
    double = {
        "LOG2E": 1 / mp.log(2),
        "LOG10E": 1 / mp.log(10),
        "PI": mp.pi,
        "HALF_PI": mp.pi / 2,
        "QUARTER_PI": mp.pi / 4,
        "THREE_QUARTERS_PI": 3 * mp.pi / 4,
        "TWO_THIRDS": mpf(2) / 3,
        "THIRD": mpf(1) / 3,
        "FIFTH": mpf(1) / 5,
        "LN2_PAIR": mp.log(2),
    }
    result = {name: parts(value, precision, 1, precision) for name, value in double.items()}
    # The nearest number first, where it is used by itself.
    for name, value in double.items():
        nearest = rounded(value, precision)
        result[name] = [nearest, rounded(value - nearest, precision)]
    result["LN2"] = parts(mp.log(2), precision - exponent_bits, 1, precision)
    result["LOG10_2"] = parts(mp.log10(2), precision - exponent_bits, 1, precision)
    result["QUADRANT"] = parts(mp.pi / 2, quadrant, 3, precision)
    # With one rounding for a product and a sum the first part may have all bits, and the second is exact as above.
    upper = rounded(mp.pi / 2, precision)
    middle = truncated(mp.pi / 2 - upper, quadrant)
    result["QUADRANT_FMA"] = [upper, middle, rounded(mp.pi / 2 - upper - middle, precision)]
    result["INVERSE_QUADRANT"] = [rounded(2 / mp.pi, precision)]
    return {name: tuple(values) for name, values in sorted(result.items())}


def words(bits: int, count: int, lead: int) -> list[int]:
    """The binary digits of 2/pi after ``lead`` zero bits, in words of ``bits`` bits, the first ones first."""
    with mp.workprec(bits * count + 64):
        integer = int(mp.floor(2 / mp.pi * mpf(2) ** (bits * count - lead)))
    return [(integer >> bits * (count - 1 - i)) & ((1 << bits) - 1) for i in range(count)]


def literal(value: Any) -> str:
    """A number as hexadecimal digits."""
    return float(value).hex()


def table(name: str, rows: dict[str, tuple[str, ...]]) -> str:
    """The text of one table."""
    lines = [f"{name}: Final[dict[str, tuple[float, ...]]] = {{"]
    for type, values in rows.items():
        lines += [f'    "{type}": (', *(f'        float.fromhex("{v}"),' for v in values), "    ),"]
    return "\n".join([*lines, "}", ""])


HEADER = '''"""Coefficients and constants of the functions. Written by tools/libm_tables.py; do not edit.

Polynomials have the lowest coefficient first; constants are sums of numbers, the largest first. What each one
approximates is said in the tool.
"""

from __future__ import annotations

from typing import Final

'''


def main() -> None:
    """Compute and write everything."""
    text = [HEADER]
    for name in POLYNOMIALS:
        rows = {t: tuple(map(literal, polynomial(name, p))) for t, p in PRECISION.items()}
        text.append(table(name, rows))
    by_type = {t: constants(p) for t, p in PRECISION.items()}
    text += [
        table(name, {t: tuple(map(literal, values[name])) for t, values in by_type.items()})
        for name in by_type["f32"]
    ]
    text.append("#: Binary digits of 2/pi after as many zero digits as a word has, in words.\n")
    text.append("TWO_OVER_PI: Final[dict[str, tuple[int, ...]]] = {\n")
    for type, (bits, count) in {"f32": (32, 8), "f64": (64, 20)}.items():
        digits = ", ".join(f"{w:#x}" for w in words(bits, count, bits))
        text.append(f'    "{type}": ({digits}),\n')
    text.append("}\n")
    TARGET.write_text("".join(text).replace("}\n", "}\n\n").rstrip() + "\n")


if __name__ == "__main__":
    main()
