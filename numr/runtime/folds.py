"""Reductions and scans as device runtimes have them: what is joined, in what dtype, and what nothing joins to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from numr import dtypes as dt
from numr.dtypes import DType
from numr.ir import ops
from numr.ir.ops import Op, Reduction

__all__ = ["EMPTY", "JOINS", "LOGICAL", "BaseFold"]

LOGICAL: Final = (Reduction.ANY, Reduction.ALL)
#: What a reduction of no elements gives; there is no maximum or minimum of these.
EMPTY: Final = {Reduction.SUM: 0, Reduction.PROD: 1, Reduction.ANY: 0, Reduction.ALL: 1}
#: The operation that joins two values.
JOINS: Final[dict[Reduction, Op]] = {
    Reduction.SUM: ops.ADD,
    Reduction.PROD: ops.MULTIPLY,
    Reduction.MAX: ops.MAXIMUM,
    Reduction.MIN: ops.MINIMUM,
    Reduction.ANY: ops.LOGICAL_OR,
    Reduction.ALL: ops.LOGICAL_AND,
}


@dataclass(frozen=True)
class BaseFold:
    """A reduction of elements of one dtype; runtimes add how it is printed.

    Parameters
    ----------
    kind : Reduction
        How values are joined.
    source : dtype
        Of the elements.
    result : dtype
        Of the result; for positions that of indices.
    position : bool
        Whether the position of the maximum or minimum is wanted instead of its value.
    """

    kind: Reduction
    source: DType
    result: DType
    position: bool = False

    @property
    def compute(self) -> DType:
        """The dtype that elements are converted to."""
        if self.position:
            return self.source
        if self.kind in LOGICAL:
            return dt.bool_
        # Sums of float16 are rounded once, at their end.
        return np.dtype(np.float32) if self.result == dt.float16 else self.result
