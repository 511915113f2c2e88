"""Cholesky factors: blocks on the diagonal by teams, the rest by products and triangular systems."""

from __future__ import annotations

from functools import cache

from numr.dtypes import DType
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.linalg.arithmetic import STATUS
from numr.runtime.wgpu.linalg.blocks import PANEL, solve_triangular
from numr.runtime.wgpu.linalg.matrices import Block, Kernel, Work, element_kernel, team_kernel
from numr.runtime.wgpu.linalg.products import multiply

__all__ = ["factorise"]


def factorise(work: Work, array: DeviceArray) -> None:
    """Replace Hermitian matrices by their lower factors; the first word of the status says if one has none."""
    order = array.shape[-1]
    matrix = Block.of(array)
    work.each(_lower(work.dtype), (array,), order * order, (order,))
    for start in range(0, order, PANEL):
        size = min(PANEL, order - start)
        end = start + size
        block = matrix.at(start, start)
        team = work.team(size, size)
        kernel = _block(work.dtype, team.width)
        work.teams(kernel, team, (array, work.status), (size, block.start, order, block.matrix))
        below = order - end
        panel = matrix.at(end, start)
        # From A = X L^H for the panel A follows conj(L) X^T = A^T.
        solve_triangular(
            work, block.conjugated, panel.transposed, size, below, upper=False, unit=False
        )
        rest = matrix.at(end, end)
        multiply(work, rest, panel, panel.adjoint, (below, below, size), subtract=True, lower=True)
    if order > PANEL:
        # The products leave something above the diagonal.
        work.each(_lower(work.dtype), (array,), order * order, (order,))


@cache
def _lower(dtype: DType) -> Kernel:
    body = """\
    let within = i % (params.order * params.order);
    let row = within / params.order;
    if (within - row * params.order > row) { a[i] = E(); }
"""
    return element_kernel(dtype, ("order",), (texts.target("a", dtype),), body)


@cache
def _block(dtype: DType, width: int) -> Kernel:
    body = """\
    let at = params.start + member * params.matrix;
    for (var k = 0u; k < params.order; k++) {
        let pivot_at = at + k * (params.line + 1u);
        let pivot = real(a[pivot_at]);
        // Also true for NaN.
        if (bits(pivot) - Bits(1u) >= INFINITE && live) { atomicMax(&status[FAILED], 1u); }
        let root = sqrt(pivot);
        for (var i = k + 1u + lane; i < params.order; i += params.team) {
            let place = at + i * params.line + k;
            if (live) { a[place] = a[place] / root; }
        }
        storageBarrier();
        // No other lane reads the pivot any more.
        if (live && lane == 0u) { a[pivot_at] = number(root); }
        for (var i = k + 1u + lane_row; i < params.order; i += down) {
            let line = at + i * params.line;
            let factor = a[line + k];
            for (var j = k + 1u + lane_column; j <= i; j += params.across) {
                let other = conj(a[at + j * params.line + k]);
                if (live) { a[line + j] = minus(a[line + j], factor, other); }
            }
        }
        storageBarrier();
    }
"""
    names = ("order", "start", "line", "matrix")
    return team_kernel(dtype, width, names, (texts.target("a", dtype), STATUS), "", body)
