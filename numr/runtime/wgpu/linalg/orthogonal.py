"""QR factors by Householder reflections.

A reflection is ``I - v v^H`` with a vector ``v`` whose squared norm is 2, or 0 where there is nothing to do. A panel of columns is factorised by teams, one
workgroup for each matrix. What the panel's reflections do to other columns is one step: their product is
``I - V T V^H``, where ``V`` has the vectors as columns and the inverse of ``T`` is the upper triangle of ``V^H V``
with ones on the diagonal. So ``T`` is never computed; a triangular system is solved instead.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from numr.dtypes import DType
from numr.errors import BackendLimitation
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.linalg.blocks import PANEL, solve_triangular, unit
from numr.runtime.wgpu.linalg.matrices import (
    STEPS,
    Block,
    Kernel,
    Work,
    fold,
    steps,
    team_kernel,
)
from numr.runtime.wgpu.linalg.products import multiply

__all__ = ["Reflections", "orthonormal", "triangularise"]


class Reflections(NamedTuple):
    """What :func:`triangularise` did.

    Attributes
    ----------
    vectors : DeviceArray
        A column for each reflection; above the diagonal only those of the first panel are written, as zeros.
    size : int
        Columns of a panel.
    grams : list of Block
        ``V^H V`` of the panels that were applied to other columns.
    """

    vectors: DeviceArray
    size: int
    grams: list[Block]

    def panel(self, start: int) -> tuple[Block, int, int]:
        """The vectors of the panel that starts at a column, from the diagonal on; their length, and their number."""
        rows, count = self.vectors.shape[-2:]
        width = min(self.size, count - start)
        return Block.of(self.vectors).at(start, start), rows - start, width


def triangularise(work: Work, array: DeviceArray) -> Reflections:
    """Replace matrices by their upper triangular factors, with zeros below the diagonal.

    Squares of the elements must not overflow; those that are tiny beside the largest may vanish.
    """
    rows, columns = array.shape[-2:]
    count = min(rows, columns)
    matrix = Block.of(array)
    size = _panel(work, rows, columns)
    whole = size == columns
    done = Reflections(work.empty(rows, count), size, [])
    for start in range(0, count, size):
        vectors, height, width = done.panel(start)
        across = columns if whole else width
        team = work.team(height, across)
        block = matrix.at(start, start)
        values = (height, across, width, *block.steps, *vectors.steps)
        kernel = _reflected(work.dtype, team.width)
        work.teams(kernel, team, (array, done.vectors), values)
        rest = columns - start - across
        if rest:
            gram = _gram(work, done, start)
            done.grams.append(gram)
            # From the left the factor's adjoint is applied.
            right = matrix.at(start, start + across)
            _reflect(work, done, start, gram.adjoint, right, rest, upper=False)
    return done


def orthonormal(work: Work, reflections: Reflections, columns: int) -> DeviceArray:
    """The first columns of the orthonormal factor, as many as there are reflections or more."""
    rows, count = reflections.vectors.shape[-2:]
    result = work.empty(rows, columns)
    if count <= reflections.size and columns <= PANEL and _fits(work, rows, columns, count):
        team = work.team(rows, columns)
        values = (rows, columns, count, *Block.of(result).steps, *reflections.panel(0)[0].steps)
        kernel = _formed(work.dtype, team.width)
        work.teams(kernel, team, (result, reflections.vectors), values)
        return result
    target = Block.of(result)
    unit(work, target, rows, columns)
    starts = range(0, count, reflections.size)
    for number, start in reversed(list(enumerate(starts))):
        grams = reflections.grams
        gram = grams[number] if number < len(grams) else _gram(work, reflections, start)
        corner = target.at(start, start)
        _reflect(work, reflections, start, gram, corner, columns - start, upper=True)
    return result


def _panel(work: Work, rows: int, columns: int) -> int:
    """How many columns one dispatch makes triangular; all of them where it can."""
    if columns <= PANEL and _fits(work, rows, columns, min(rows, columns)):
        return columns
    for size in (32, 16, 8, 4, 2, 1):
        if size < columns and _fits(work, rows, size, size):
            return size
    raise BackendLimitation(
        "wgpu",
        work.function,
        f"matrices of shape {(rows, columns)} have columns that are too long for one workgroup. Work in "
        "smaller pieces: factorise blocks of rows, and then their triangular factors together.",
    )


def _fits(work: Work, rows: int, columns: int, reflections: int) -> bool:
    """Whether a team may do as many reflections of so many columns."""
    team = work.team(rows, columns)
    along = 4 * (rows // team.size + 1) + 20
    across = -(-columns // team.across) * 2 * (rows // team.down + 5)
    return reflections * (along + across) <= STEPS


def _gram(work: Work, reflections: Reflections, start: int) -> Block:
    vectors, height, width = reflections.panel(start)
    result = Block.of(work.empty(width, width))
    multiply(work, result, vectors.adjoint, vectors, (width, width, height))
    return result


def _reflect(
    work: Work,
    reflections: Reflections,
    start: int,
    gram: Block,
    target: Block,
    columns: int,
    *,
    upper: bool,
) -> None:
    """Apply a panel's reflections to columns, in the order that the side of the gram matrix's triangle says."""
    vectors, height, width = reflections.panel(start)
    parts = Block.of(work.empty(width, columns))
    multiply(work, parts, vectors.adjoint, target, (width, columns, height))
    solve_triangular(work, gram, parts, width, columns, upper=upper, unit=True)
    multiply(work, target, vectors, parts, (height, columns, width), subtract=True)


_NAMES: Final = ("rows", "columns", "reflections", *steps("q"), *steps("v"))

_START: Final = """\
    let at = params.q_start + member * params.q_matrix;
    let v_at = params.v_start + member * params.v_matrix;
"""


def _apply(first: str) -> str:
    """Statements that apply reflection ``k`` to the columns from ``first`` on."""
    return f"""\
        for (var chunk = {first}; chunk < params.columns; chunk += params.across) {{
            let column = at + (chunk + lane_column) * params.q_column;
            let mine = chunk + lane_column < params.columns;
            var dot = E();
            if (mine) {{
                for (var i = k + lane_row; i < params.rows; i += down) {{
                    dot = plus(dot, conj(v[v_at + i * params.v_row + k]), q[column + i * params.q_row]);
                }}
            }}
            dot = total(dot, params.across);
            if (mine && live) {{
                for (var i = k + lane_row; i < params.rows; i += down) {{
                    let place = column + i * params.q_row;
                    q[place] = minus(q[place], v[v_at + i * params.v_row + k], dot);
                }}
            }}
        }}
        storageBarrier();
"""


@cache
def _reflected(dtype: DType, width: int) -> Kernel:
    body = (
        _START
        + """\
    for (var k = 0u; k < params.reflections; k++) {
        let column = at + k * params.q_column;
        let first = q[column + k * params.q_row];
        var squares = ZERO;
        for (var i = k + 1u + lane; i < params.rows; i += params.team) {
            squares += square(q[column + i * params.q_row]);
        }
        let below = total_square(squares, 1u);
        let length = modulus(first);
        let norm = sqrt(below + square(first));
        let toward = direction(first, length);
        // Without anything below the diagonal the column stays, and so do others: the vector is zero.
        let stays = is_negligible(sqrt(below));
        // The column becomes its norm in the direction of its first element. That element of the vector, which would
        // be the difference of two numbers that may be almost equal, is computed as a quotient.
        let scale = sqrt(below * (norm / (norm + length)));
        let difference = below / scale / (norm + length);
        squares = ZERO;
        for (var i = lane; i < params.rows; i += params.team) {
            let place = column + i * params.q_row;
            var entry = E();
            if (i > k && !stays) { entry = q[place] / scale; }
            if (i == k && !stays) { entry = -toward * difference; }
            squares += square(entry);
            if (live) { v[v_at + i * params.v_row + k] = entry; }
        }
        // The squared norm is 2 but for rounding errors, which would go twice into each product.
        let excess = total_square(squares, 1u) - TWO;
        if (live && !stays) {
            let correction = ONE - excess / (TWO + TWO);
            for (var i = lane; i < params.rows; i += params.team) {
                let place = v_at + i * params.v_row + k;
                v[place] = v[place] * correction;
            }
        }
        storageBarrier();
        // No other lane reads the column any more.
        if (live && !stays && lane == 0u) { q[column + k * params.q_row] = toward * norm; }
        for (var i = k + 1u + lane; i < params.rows; i += params.team) {
            if (live) { q[column + i * params.q_row] = E(); }
        }
"""
        + _apply("k + 1u")
        + "    }\n"
    )
    functions = fold("total_square", "R", width) + fold("total", "E", width)
    buffers = (texts.target("q", dtype), texts.target("v", dtype))
    return team_kernel(dtype, width, _NAMES, buffers, functions, body)


@cache
def _formed(dtype: DType, width: int) -> Kernel:
    body = (
        _START
        + """\
    if (live) {
        for (var i = lane_row; i < params.rows; i += down) {
            for (var j = lane_column; j < params.columns; j += params.across) {
                q[at + i * params.q_row + j * params.q_column] = number(select(ZERO, ONE, i == j));
            }
        }
    }
    storageBarrier();
    for (var step = 0u; step < params.reflections; step++) {
        let k = params.reflections - 1u - step;
"""
        + _apply("k")
        + "    }\n"
    )
    buffers = (texts.target("q", dtype), texts.source("v", dtype))
    return team_kernel(dtype, width, _NAMES, buffers, fold("total", "E", width), body)
