"""Compute the coefficients of numr/array_api/special/tables.py and write the file.

Each function is expanded in Chebyshev polynomials on an interval, with many more digits than are kept. A runtime takes as
many terms as its dtype needs. Run as ``python tools/special_tables.py``; it needs mpmath.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpmath import mp

TARGET = Path(__file__).resolve().parent.parent / "numr/array_api/special/tables.py"
#: Terms that are computed, and the size, beside the largest coefficient, below which they are dropped.
TERMS = 48
SMALLEST = mp.mpf(2) ** -56

Function = Callable[[Any], Any]


def chebyshev(function: Function, low: Any, high: Any) -> list[Any]:
    """Coefficients of a function of the interval's variable, scaled to -1 ... 1."""
    nodes = [mp.cos(mp.pi * (2 * k + 1) / (2 * TERMS)) for k in range(TERMS)]
    values = [function((high - low) * u / 2 + (high + low) / 2) for u in nodes]
    result = []
    for n in range(TERMS):
        terms = (
            value * mp.cos(mp.pi * n * (2 * k + 1) / (2 * TERMS)) for k, value in enumerate(values)
        )
        result.append(mp.fsum(terms) * (1 if n == 0 else 2) / TERMS)
    largest = max(map(abs, result))
    while abs(result[-1]) < SMALLEST * largest:
        result.pop()
    return result


def erf_over_x(t: Any) -> Any:
    """``erf(x) / x`` where ``x**2 = t``."""
    root = mp.sqrt(t)
    return mp.erf(root) / root


def scaled_erfc(u: Any) -> Any:
    """``(1 + 2 x) exp(x**2) erfc(x)`` where ``u = (x - 2) / (x + 2)``."""
    if u == 1:
        return 2 / mp.sqrt(mp.pi)
    x = 2 * (1 + u) / (1 - u)
    if x > 200:
        series = mp.fsum((-1) ** n * mp.fac2(2 * n - 1) / (2 * x * x) ** n for n in range(12))
        return (1 + 2 * x) * series / (x * mp.sqrt(mp.pi))
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def inverse_of_tail(s: Any) -> Any:
    """``erfinv(y) / y`` where ``s**2 = -log(1 - y**2)``."""
    w = s * s
    if w == 0:
        return mp.sqrt(mp.pi) / 2
    y = mp.sqrt(-mp.expm1(-w))
    tail = mp.exp(-w) / (1 + y)  # 1 - y
    start = mp.sqrt(mp.log(1 / tail)) if w > 1 else y
    x = mp.findroot(lambda x: mp.log(mp.erfc(x)) - mp.log(tail), start)
    return x / y


def log_gamma_over(zero: int) -> Function:
    """``log(gamma(zero + t)) / t``, for a whole number where the logarithm is zero."""
    return lambda t: mp.loggamma(zero + t) / t if t else mp.digamma(zero)


def excess(m: Any) -> Any:
    """``(m - log(1 + m)) / m**2``."""
    return (m - mp.log1p(m)) / m**2 if m else mp.mpf(1) / 2


#: Powers of ``1 / a`` and of ``eta`` in Temme's expansion of the incomplete gamma functions.
TEMME = (12, 24)


def temme() -> list[list[Any]]:
    """Coefficients of Temme's expansion, by powers of ``1 / a`` and in each by powers of ``eta`` (DLMF 8.12)."""
    rows, columns = TEMME
    last = columns + 2 * rows + 2
    alpha = [mp.mpf(0), mp.mpf(1)]
    for n in range(2, last + 1):
        total = mp.fsum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))
        alpha.append((alpha[n - 1] - total) / (n + 1))
    # Stirling's series of the gamma function: of exp(sum of B(2j) / (2j (2j - 1)) z**(2j - 1)), by powers of z.
    exponent = [mp.mpf(0)] * (rows + 1)
    for n in range(1, rows + 1, 2):
        exponent[n] = mp.bernoulli(n + 1) / ((n + 1) * n)
    stirling = [mp.mpf(1)]
    for n in range(1, rows):
        terms = (k * exponent[k] * stirling[n - k] for k in range(1, n + 1))
        stirling.append(mp.fsum(terms) / n)
    first = [-mp.mpf(1) / 3] + [(n + 2) * alpha[n + 2] for n in range(1, last - 2)]
    found = [first]
    for k in range(1, rows):
        above = found[-1]
        found.append(
            [
                (-1) ** k * stirling[k] * first[n] + (n + 2) * above[n + 2]
                for n in range(len(above) - 2)
            ]
        )
    return [row[:columns] for row in found]


TABLES: dict[str, tuple[str, Function, Any, Any]] = {
    "ERF": ("erf(x) / x by x**2, from 0 to 1", erf_over_x, 0, 1),
    "ERFCX": ("(1 + 2 x) erfcx(x) by (x - 2) / (x + 2), from -1 to 1", scaled_erfc, -1, 1),
    "ERFINV_CENTRE": (
        "erfinv(y) / y by w = -log(1 - y**2), from 0 to 5",
        lambda w: inverse_of_tail(mp.sqrt(w)),
        0,
        5,
    ),
    "ERFINV_MIDDLE": ("the same by sqrt(w), from 2 to 6", inverse_of_tail, 2, 6),
    "ERFINV_TAIL": ("the same by sqrt(w), from 6 to 28", inverse_of_tail, 6, 28),
    "LOG_GAMMA_1": ("log(gamma(1 + t)) / t, from -1/2 to 1/2", log_gamma_over(1), -0.5, 0.5),
    "LOG_GAMMA_2": ("log(gamma(2 + t)) / t, from -1/2 to 1/2", log_gamma_over(2), -0.5, 0.5),
    "LOG_GAMMA_MIDDLE": ("log(gamma(x)), from 2.5 to 8", mp.loggamma, 2.5, 8),
    "LOG_EXCESS": ("(m - log(1 + m)) / m**2, from -0.5 to 0.6", excess, -0.5, 0.6),
    "I0_NEAR": ("exp(-x) i0(x), from 0 to 8", lambda x: mp.exp(-x) * mp.besseli(0, x), 0, 8),
    "I1_NEAR": (
        "exp(-x) i1(x) / x, from 0 to 8",
        lambda x: mp.exp(-x) * mp.besseli(1, x) / x,
        0,
        8,
    ),
    "I0_FAR": (
        "exp(-x) sqrt(x) i0(x) by 1 / x, from 0 to 1/8",
        lambda z: mp.exp(-1 / z) * mp.sqrt(1 / z) * mp.besseli(0, 1 / z),
        0,
        0.125,
    ),
    "I1_FAR": (
        "exp(-x) sqrt(x) i1(x) by 1 / x, from 0 to 1/8",
        lambda z: mp.exp(-1 / z) * mp.sqrt(1 / z) * mp.besseli(1, 1 / z),
        0,
        0.125,
    ),
}

HEADER = '''\
"""Chebyshev coefficients, written by ``tools/special_tables.py``; the comments say of what and on which interval."""

from __future__ import annotations

from typing import Final
'''


def main() -> None:
    """Write the tables."""
    with mp.workdps(60):
        parts = [HEADER]
        for name, (text, function, low, high) in TABLES.items():
            numbers = chebyshev(function, mp.mpf(low), mp.mpf(high))
            body = "".join(f"    {float(number)!r},\n" for number in numbers)
            parts.append(f"\n#: {text[0].upper()}{text[1:]}.\n{name}: Final = (\n{body})\n")
        body = "".join(
            "    (\n" + "".join(f"        {float(number)!r},\n" for number in row) + "    ),\n"
            for row in temme()
        )
        comment = "Temme's expansion: a row for each power of 1 / a, in it the powers of eta"
        parts.append(f"\n#: {comment}.\nTEMME: Final = (\n{body})\n")
    TARGET.write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
