"""Kernels on blocks of matrices: triangular systems, copies, ones and zeros."""

from __future__ import annotations

from functools import cache
from typing import Final

from numr.dtypes import DType
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.linalg.matrices import (
    ELEMENT,
    Block,
    Kernel,
    Work,
    element_kernel,
    place,
    steps,
    team_kernel,
)

__all__ = ["PANEL", "copied", "solve_triangular", "unit"]

#: Order of the triangular blocks that one workgroup solves for.
PANEL: Final = 64


# -------------------------------------------------------------------- triangular systems
def solve_triangular(
    work: Work,
    triangle: Block,
    result: Block,
    order: int,
    columns: int,
    *,
    upper: bool,
    unit: bool,
) -> None:
    """Solve ``triangle @ x = result`` in place, for matrices of an order up to :data:`PANEL`.

    Parameters
    ----------
    work : Work
        The call.
    triangle : Block
        Triangular matrices; what is on their other side is not read.
    result : Block
        Right-hand sides, and then solutions.
    order, columns : int
        Rows of the triangles, and columns of the result.
    upper, unit : bool
        Whether the triangles are upper ones, and whether their diagonals are taken as ones.
    """
    if not order or not columns:
        return
    team = work.team(order, min(columns, 16))
    values = (
        *(order, columns, upper, unit, triangle.conjugate),
        *(*triangle.steps, *result.steps),
    )
    chunks = -(-columns // team.across)
    kernel = _substitution(work.dtype, team.width)
    work.teams(kernel, team, (triangle.array, result.array), (chunks, *values), chunks)


@cache
def _substitution(dtype: DType, width: int) -> Kernel:
    body = """\
    let matrix = member / params.chunks;
    let column = (member % params.chunks) * params.across + lane_column;
    let mine = live && column < params.columns;
    let t_at = params.t_start + matrix * params.t_matrix;
    let x_at = params.x_start + matrix * params.x_matrix + min(column, params.columns - 1u) * params.x_column;
    for (var step = 0u; step < params.order; step++) {
        let k = select(step, params.order - 1u - step, params.is_upper != 0u);
        var value = x[x_at + k * params.x_row];
        if (params.is_unit == 0u) {
            value = quotient(value, entry(t_at + k * (params.t_row + params.t_column)));
        }
        // Rows that are still to be solved for.
        let from_row = select(k + 1u, 0u, params.is_upper != 0u);
        let to_row = select(params.order, k, params.is_upper != 0u);
        for (var i = from_row + lane_row; i < to_row; i += down) {
            let at = x_at + i * params.x_row;
            let factor = entry(t_at + i * params.t_row + k * params.t_column);
            if (mine) { x[at] = minus(x[at], factor, value); }
        }
        storageBarrier();
        // No other lane reads this row any more.
        if (mine && lane_row == 0u) { x[x_at + k * params.x_row] = value; }
    }
"""
    functions = """\
fn entry(at: u32) -> E {
    let value = t[at];
    if (params.t_conj != 0u) { return conj(value); }
    return value;
}
"""
    names = (
        *("chunks", "order", "columns", "is_upper", "is_unit", "t_conj"),
        *steps("t"),
        *steps("x"),
    )
    buffers = (texts.target("t", dtype), texts.target("x", dtype))
    return team_kernel(dtype, width, names, buffers, functions, body)


# ----------------------------------------------------------------------------- copies
def copied(work: Work, target: Block, source: Block, rows: int, columns: int) -> None:
    """Copy blocks, conjugated if ``source`` says so, to where ``target`` is in another array."""
    if not rows or not columns:
        return
    values = (rows, columns, source.conjugate, *source.steps, *target.steps)
    work.each(_copy(work.dtype), (source.array, target.array), rows * columns, values)


@cache
def _copy(dtype: DType) -> Kernel:
    body = f"""\
{ELEMENT}    var value = x[{place("x")}];
    if (params.conjugate != 0u) {{ value = conj(value); }}
    y[{place("y")}] = value;
"""
    names = ("rows", "columns", "conjugate", *steps("x"), *steps("y"))
    buffers = (texts.source("x", dtype), texts.target("y", dtype))
    return element_kernel(dtype, names, buffers, body)


def unit(work: Work, target: Block, rows: int, columns: int) -> None:
    """Write ones on the diagonal and zeros elsewhere."""
    if rows and columns:
        work.each(
            _unit(work.dtype), (target.array,), rows * columns, (rows, columns, *target.steps)
        )


@cache
def _unit(dtype: DType) -> Kernel:
    body = f"{ELEMENT}    y[{place('y')}] = number(select(ZERO, ONE, row == column));\n"
    return element_kernel(
        dtype, ("rows", "columns", *steps("y")), (texts.target("y", dtype),), body
    )
