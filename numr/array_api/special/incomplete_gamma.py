"""The regularised incomplete gamma functions and the distribution of chi-square.

Where ``a`` is large and ``x`` near it, Temme's uniform expansion holds; below, the series, and above, the continued
fraction, with as many terms as the regions need.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from numr.array_api.special import tables
from numr.array_api.special._formula import Formula, Value, chebyshev, select
from numr.array_api.special.error_functions import erfc_of
from numr.array_api.special.gamma_functions import log_gamma_of_one_more, stirling_of
from numr.ir import ops
from numr.tensor.core import Tensor

__all__ = ["chdtr", "chdtrc", "gammainc", "gammaincc"]

#: From here on Temme's expansion holds, for quotients ``x / a`` between the two.
_LARGE: Final = 20.0
_LOW, _HIGH = 0.5, 1.6
#: Terms of series, levels of the continued fraction, and rows and columns of Temme's table, for float32 and float64.
_TERMS: Final = {4: (30, 12, 28, 5, 11), 8: (58, 20, 100, 12, 24)}


def _series(a: Value, x: Value, terms: int) -> Value:
    """``1 + x / (a + 1) + x**2 / ((a + 1) (a + 2)) + ...``."""
    total = x.constant(1.0)
    for n in range(terms, 0, -1):
        total = 1.0 + total * (x / (a + float(n)))
    return total


def _fraction(a: Value, x: Value, levels: int) -> Value:
    """Legendre's continued fraction of ``Gamma(a, x) exp(x) / x**a``."""
    below = (x - a) + (2.0 * levels + 1.0)
    for n in range(levels, 0, -1):
        below = ((x - a) + (2.0 * n - 1.0)) - (float(n) * (float(n) - a)) / below
    return 1.0 / below


def _small(a: Value, x: Value, terms: int) -> tuple[Value, Value]:
    """``log(x**a / Gamma(a + 1))``, and ``a`` times the sum of ``(-x)**n / ((a + n) n!)`` from 1 up."""
    exponent = a * x.apply(ops.LOG) - log_gamma_of_one_more(a)
    power = x.constant(1.0)
    total = x.constant(0.0)
    for n in range(1, terms + 1):
        power = power * (x * (-1.0 / n))
        total = total + power / (a + float(n))
    return exponent, a * total


def _temme(a: Value, m: Value, upper: bool, rows: int, columns: int) -> Value:
    """One of the two functions where ``x = a (1 + m)``, by Temme's expansion."""
    half = m * m * chebyshev((m - 0.05) * (1.0 / 0.55), tables.LOG_EXCESS)  # eta**2 / 2
    eta = (half + half).apply(ops.SQRT).apply(ops.COPYSIGN, m)
    inverse = 1.0 / a
    total = a.constant(0.0)
    for row in tables.TEMME[rows - 1 :: -1]:
        x_row = eta * row[columns - 1] + row[columns - 2]
        for c in row[columns - 3 :: -1]:
            x_row = x_row * eta + c
        total = total * inverse + x_row
    rest = (-(a * half)).apply(ops.EXP) / (a * (2 * math.pi)).apply(ops.SQRT) * total
    z = eta * (a * 0.5).apply(ops.SQRT)
    return erfc_of(z) * 0.5 + rest if upper else erfc_of(-z) * 0.5 - rest


def _regularised(a: Value, x: Value, upper: bool) -> Value:
    terms, few, levels, rows, columns = _TERMS[np.dtype(a.dtype).itemsize]
    large = a >= _LARGE
    ratio = x / a
    near = large & (ratio >= _LOW) & (ratio <= _HIGH)
    by_series = select(large, ratio, x) < select(large, a.constant(_LOW), a + 1.0)

    # x**a exp(-x) / Gamma(a + 1)
    m = (x - a) / a
    far = (m - ratio.apply(ops.LOG)) * -a - stirling_of(a)
    far_factor = far.apply(ops.EXP) / (a * (2 * math.pi)).apply(ops.SQRT)
    exponent = (a * x.apply(ops.LOG) - x) - log_gamma_of_one_more(a)
    factor = select(large, far_factor, exponent.apply(ops.EXP))

    lower_series = factor * _series(a, x, terms)
    upper_fraction = (factor * a) * _fraction(a, x, levels)
    temme = _temme(select(near, a, _LARGE), select(near, m, 0.0), upper, rows, columns)
    if upper:
        log_power, rest = _small(a, select(x < 1.1, x, 1.0), few)
        small = -log_power.apply(ops.EXPM1) - log_power.apply(ops.EXP) * rest
        series = select(x < 1.1, small, 1.0 - lower_series)
        found = select(near, temme, select(by_series, series, upper_fraction))
    else:
        found = select(near, temme, select(by_series, lower_series, 1.0 - upper_fraction))

    none, everything = (1.0, 0.0) if upper else (0.0, 1.0)
    found = select((x == 0.0) | (a == math.inf), none, found)
    found = select((x == math.inf) | (a == 0.0), everything, found)
    undefined = (a < 0.0) | (x < 0.0) | ((a == 0.0) & (x == 0.0))
    undefined = undefined | ((a == math.inf) & (x == math.inf))
    undefined = undefined | a.apply(ops.ISNAN) | x.apply(ops.ISNAN)
    return select(undefined, math.nan, found)


def _chi(v: Value, x: Value, upper: bool) -> Value:
    return _regularised(v * 0.5, x * 0.5, upper)


_GAMMAINC: Final = Formula("gammainc", lambda a, x: _regularised(a, x, upper=False))
_GAMMAINCC: Final = Formula("gammaincc", lambda a, x: _regularised(a, x, upper=True))
_CHDTR: Final = Formula("chdtr", lambda v, x: _chi(v, x, upper=False))
_CHDTRC: Final = Formula("chdtrc", lambda v, x: _chi(v, x, upper=True))


def gammainc(a: Tensor | float, x: Tensor | float, /) -> Tensor:
    """The regularised lower incomplete gamma function.

    Parameters
    ----------
    a, x : Tensor or number
        Real-valued dtype, not negative; at least one tensor. Shapes broadcast.

    Returns
    -------
    Tensor
        Of the broadcast shape; NaN where an argument is negative.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.gammainc(0.5, xp.asarray([0.0, 0.5, 4.0]))
    Tensor([0.        , 0.68268949, 0.99532227], dtype=float64, device=cpu)
    """
    return _GAMMAINC(a, x)


def gammaincc(a: Tensor | float, x: Tensor | float, /) -> Tensor:
    """The regularised upper incomplete gamma function, ``1 - gammainc(a, x)`` without its cancellation.

    Parameters
    ----------
    a, x : Tensor or number
        Real-valued dtype, not negative; at least one tensor. Shapes broadcast.

    Returns
    -------
    Tensor
        Of the broadcast shape; NaN where an argument is negative.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.gammaincc(0.5, xp.asarray([0.0, 0.5, 40.0]))
    Tensor([1.00000000e+00, 3.17310508e-01,
        3.74409738e-19], dtype=float64, device=cpu)
    """
    return _GAMMAINCC(a, x)


def chdtr(v: Tensor | float, x: Tensor | float, /) -> Tensor:
    """The distribution function of chi-square with ``v`` degrees of freedom.

    Parameters
    ----------
    v, x : Tensor or number
        Real-valued dtype, not negative; at least one tensor. Shapes broadcast.

    Returns
    -------
    Tensor
        Of the broadcast shape; NaN where an argument is negative.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.chdtr(1.0, xp.asarray([0.0, 3.841458820694124]))
    Tensor([0.  , 0.95], dtype=float64, device=cpu)
    """
    return _CHDTR(v, x)


def chdtrc(v: Tensor | float, x: Tensor | float, /) -> Tensor:
    """What ``chdtr`` lacks to one: how probable larger values of chi-square are.

    Parameters
    ----------
    v, x : Tensor or number
        Real-valued dtype, not negative; at least one tensor. Shapes broadcast.

    Returns
    -------
    Tensor
        Of the broadcast shape; NaN where an argument is negative.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.chdtrc(1.0, xp.asarray([0.0, 3.841458820694124]))
    Tensor([1.  , 0.05], dtype=float64, device=cpu)
    """
    return _CHDTRC(v, x)
