"""Special functions by SciPy's names, as formulas that any runtime computes in one kernel (the longest in float32 alone).

They are what :mod:`numr.wgpu` has for ``scipy.special`` to find (``SCIPY_ARRAY_API=1``). On the CPU SciPy's own serve, on
CUDA CuPy's. For what is not here (incomplete beta functions, other Bessel functions) a tensor has to be copied to
the host.
"""

from __future__ import annotations

from numr.array_api.special.bessel_functions import i0, i0e, i1, i1e
from numr.array_api.special.error_functions import (
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfinv,
    log_ndtr,
    ndtr,
    ndtri,
)
from numr.array_api.special.gamma_functions import digamma, gammaln, psi
from numr.array_api.special.incomplete_gamma import chdtr, chdtrc, gammainc, gammaincc
from numr.array_api.special.information_functions import (
    entr,
    expit,
    kl_div,
    log_expit,
    logit,
    rel_entr,
    xlog1py,
    xlogy,
)

__all__ = [
    "chdtr",
    "chdtrc",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "expit",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_expit",
    "log_ndtr",
    "logit",
    "ndtr",
    "ndtri",
    "psi",
    "rel_entr",
    "xlog1py",
    "xlogy",
]
