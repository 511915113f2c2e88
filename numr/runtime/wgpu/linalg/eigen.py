"""Eigenvalues and eigenvectors of Hermitian matrices by Jacobi rotations from both sides.

A small matrix is diagonalised by one team. A large one is cut into blocks, which meet in pairs: in each round a team
rotates the columns of every pair once against each other, and products apply what that comes to, to all rows and
columns of the matrix.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Final

from numr import dtypes as dt
from numr.dtypes import DType
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.linalg.arithmetic import STATUS
from numr.runtime.wgpu.linalg.blocks import PANEL, unit
from numr.runtime.wgpu.linalg.matrices import (
    ELEMENT,
    STEPS,
    Block,
    Kernel,
    Team,
    Work,
    element_kernel,
    place,
    power_of_two,
    steps,
    team_kernel,
)
from numr.runtime.wgpu.linalg.products import MOVED, Moves, multiply
from numr.runtime.wgpu.linalg.rotations import MEETING, MOST_SWEEPS, TURN, UNCHECKED, converged
from numr.runtime.wgpu.linalg.scaling import (
    PEAKS,
    SHIFT,
    U32,
    moved_columns,
    peaks_of,
    ranks_of,
)

__all__ = ["diagonalise", "padded"]

_MESSAGE: Final = "Eigenvalues did not converge"


def padded(order: int) -> int:
    """The order to which matrices are padded, with rows and columns that have nothing to do with the others."""
    length, pairs = _blocks(order)
    return 2 * length * pairs


def _blocks(order: int) -> tuple[int, int]:
    """Length of the blocks that a matrix is cut into, and number of pairs of them; one pair is the matrix itself."""
    pairs = -(-order // PANEL)
    return -(-order // (2 * pairs)), pairs


def diagonalise(work: Work, array: DeviceArray, *, vectors: bool) -> tuple[DeviceArray, ...]:
    """Ascending eigenvalues of matrices whose lower triangles are read, and eigenvectors as columns if wanted.

    They are NaN where a matrix is not finite.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the iteration does not converge.
    """
    order = array.shape[-1]
    peaks = peaks_of(work, array, lower=True)
    length, pairs = _blocks(order)
    size = padded(order)
    matrix = work.empty(size, size)
    values = (size, size, *Block.of(array).steps, order)
    work.each(_prepare(work.dtype), (array, matrix, peaks), size * size, values)
    if pairs == 1:
        turns = _alone(work, matrix, vectors)
    else:
        turns = _in_blocks(work, matrix, order, length, pairs, vectors)
    found = work.empty(size, dtype=work.real)
    work.each(_diagonal(work.dtype), (matrix, found), size, (size,))
    ranks, _ = ranks_of(work, found, descending=False)
    result = work.empty(order, dtype=work.real)
    work.each(_values(work.dtype), (found, ranks, peaks, result), size, (size, order))
    if not vectors:
        return (result,)
    columns = work.empty(order, order)
    moved_columns(work, Block.of(columns), Block.of(turns), order, size, ranks, order)
    work.each(_lost(work.dtype), (columns, peaks), order * order, (order * order,))
    return result, columns


def _alone(work: Work, matrix: DeviceArray, vectors: bool) -> DeviceArray:
    """Diagonalise small matrices; the result is what their columns were turned by."""
    order = matrix.shape[-1]
    turns = work.empty(order, order) if vectors else work.empty(1, 1)
    team = work.team(order, order, power_of_two(order // 2))
    each = _steps(team, order, vectors)
    sweep = 0
    while True:
        # As many sweeps as an invocation may take steps; it stops when nothing is left to do.
        count = min(max(STEPS // each, 1), MOST_SWEEPS - sweep)
        values = (order, 1, *Block.of(matrix).steps, 0, count, sweep, vectors, 0, not sweep)
        arrays = (matrix, matrix, turns, work.status)
        work.teams(_rotated(work.dtype, team.width), team, arrays, values)
        sweep += count
        if converged(work, sweep - 1, _MESSAGE):
            return turns


def _in_blocks(
    work: Work, matrix: DeviceArray, order: int, length: int, pairs: int, vectors: bool
) -> DeviceArray:
    """Diagonalise large matrices, which are changed in place."""
    whole_size, size = matrix.shape[-1], 2 * length
    team = work.team(size, size, power_of_two(length))
    kernel = _rotated(work.dtype, team.width)
    rotated, turns = work.empty(pairs, size, size), work.empty(pairs, size, size)
    half = work.empty(whole_size, whole_size)
    found = work.empty(order, whole_size) if vectors else work.empty(1, 1)
    other = work.empty(order, whole_size) if vectors else found
    if vectors:
        unit(work, Block.of(found), order, whole_size)
    whole, rows = Block.of(matrix), Block.of(half)
    turn = Block(turns, 0, size, 1, pairs * size * size, size * size)
    down, across = Moves(length, pairs, "rows"), Moves(length, pairs, "columns")
    for sweep in itertools.count():
        for _ in range(2 * pairs - 1):
            step = size * (whole_size + 1)
            values = (size, pairs, *whole.steps, step, 1, sweep, 1, 1, 1)
            work.teams(kernel, team, (matrix, rotated, turns, work.status), values, pairs)
            # J^H A, and of that times J.
            multiply(
                work,
                rows,
                turn.adjoint,
                whole._replace(part=size * whole_size),
                (size, whole_size, size),
                parts=pairs,
                moves=down,
            )
            multiply(
                work,
                whole,
                rows._replace(part=size),
                turn,
                (whole_size, size, size),
                parts=pairs,
                moves=across,
            )
            # Where a pair meets itself, zeros are exact.
            settled = (size, whole_size, length, pairs)
            work.each(_settle(work.dtype), (rotated, matrix), pairs * size * size, settled)
            if vectors:
                multiply(
                    work,
                    Block.of(other),
                    Block.of(found)._replace(part=size),
                    turn,
                    (order, size, size),
                    parts=pairs,
                    moves=across,
                )
                found, other = other, found
        if sweep >= UNCHECKED and converged(work, sweep, _MESSAGE):
            break
    return found


def _steps(team: Team, order: int, vectors: bool) -> int:
    """Loop iterations of an invocation in a sweep."""
    blocks = (order // 2 // team.down + 1) * (order // 2 // team.across + 2)
    columns = (order // team.down + 1) * (order // 2 // team.across + 2) if vectors else 0
    return order * (blocks + columns + 1)


# ----------------------------------------------------------------------------- kernels
@cache
def _prepare(dtype: DType) -> Kernel:
    # An index that was added has a diagonal element above all eigenvalues, and nothing beside it.
    body = f"""\
{ELEMENT}    var value = number(select(ZERO, power(BIAS - BIAS / 8), row == column));
    if (row < params.order && column < params.order) {{
        let low = max(row, column);
        let high = min(row, column);
        value = scaled_element(a[{place("a", "low", "high")}], shift(peaks[matrix]));
        if (row < column) {{ value = conj(value); }}
        if (row == column) {{ value = number(real(value)); }}
    }}
    result[i] = value;
"""
    names = ("rows", "columns", *steps("a"), "order")
    buffers = (texts.source("a", dtype), texts.target("result", dtype), PEAKS)
    return element_kernel(dtype, names, buffers, body, SHIFT)


@cache
def _rotated(dtype: DType, width: int) -> Kernel:
    functions = (
        MEETING
        + TURN
        + f"var<workgroup> turns: array<Turn, {width}>;\nvar<workgroup> busy: atomic<u32>;\n"
        + """\
fn entry(at: u32, row: u32, column: u32) -> E {
    if (row >= column) { return a[at + row * params.a_row + column]; }
    return conj(a[at + column * params.a_row + row]);
}
"""
    )
    body = """\
    let size = params.order;
    let pairs = size / 2u;
    let at = member * size * size;
    let from_at = params.a_start + member / params.parts * params.a_matrix
        + member % params.parts * params.a_part;
    for (var i = lane_row; i < size; i += down) {
        for (var j = lane_column; j < size; j += params.across) {
            let place_of = at + i * size + j;
            if (live && params.copies != 0u) { w[place_of] = entry(from_at, i, j); }
            if (live && params.begins != 0u && params.vectors != 0u) {
                v[place_of] = number(select(ZERO, ONE, i == j));
            }
        }
    }
    storageBarrier();
    let tolerance = (TWO + TWO) * EPSILON * power(SCALE);
    for (var sweep = 0u; sweep < params.sweeps; sweep++) {
        if (place == 0u) { atomicStore(&busy, 0u); }
        workgroupBarrier();
        for (var round = 0u; round < size - 1u; round++) {
            if (lane < pairs) {
                let pair = met(round, lane, size);
                let b = conj(w[at + pair.q * size + pair.p]);
                let g = modulus(b);
                var by = Turn();
                if (!is_negligible(g)) {
                    by = turn(real(w[at + pair.p * (size + 1u)]), real(w[at + pair.q * (size + 1u)]), b, g);
                }
                turns[place] = by;
                if (g > tolerance && live) {
                    atomicStore(&busy, 1u);
                    atomicMax(&status[SWEEPS + params.sweep + sweep], 1u);
                }
            }
            workgroupBarrier();
            let first = place - lane;
            for (var k = lane_row; k < pairs; k += down) {
                let rows = met(round, k, size);
                let left = turns[first + k];
                for (var l = lane_column; l < pairs; l += params.across) {
                    let columns = met(round, l, size);
                    let right = turns[first + l];
                    let pp = at + rows.p * size + columns.p;
                    let pq = at + rows.p * size + columns.q;
                    let qp = at + rows.q * size + columns.p;
                    let qq = at + rows.q * size + columns.q;
                    if (!live) { continue; }
                    if (k == l) {
                        w[pp] = number(real(w[pp]) - left.shift);
                        w[qq] = number(real(w[qq]) + left.shift);
                        w[pq] = E();
                        w[qp] = E();
                        continue;
                    }
                    // Columns first, then rows, which are turned by the conjugates.
                    let a_pp = turned_p(w[pp], w[pq], right);
                    let a_pq = turned_q(w[pp], w[pq], right);
                    let a_qp = turned_p(w[qp], w[qq], right);
                    let a_qq = turned_q(w[qp], w[qq], right);
                    let over = Turn(conj(left.s), conj(left.t), ZERO);
                    w[pp] = turned_p(a_pp, a_qp, over);
                    w[qp] = turned_q(a_pp, a_qp, over);
                    w[pq] = turned_p(a_pq, a_qq, over);
                    w[qq] = turned_q(a_pq, a_qq, over);
                }
            }
            if (params.vectors != 0u && live) {
                for (var i = lane_row; i < size; i += down) {
                    for (var l = lane_column; l < pairs; l += params.across) {
                        let columns = met(round, l, size);
                        let p = v[at + i * size + columns.p];
                        let q = v[at + i * size + columns.q];
                        v[at + i * size + columns.p] = turned_p(p, q, turns[first + l]);
                        v[at + i * size + columns.q] = turned_q(p, q, turns[first + l]);
                    }
                }
            }
            storageBarrier();
        }
        workgroupBarrier();
        let again = atomicLoad(&busy);
        workgroupBarrier();
        if (again == 0u) { break; }
    }
"""
    names = (
        "order",
        "parts",
        *steps("a"),
        "a_part",
        "sweeps",
        "sweep",
        "vectors",
        "copies",
        "begins",
    )
    buffers = (
        texts.target("a", dtype),
        texts.target("w", dtype),
        texts.target("v", dtype),
        STATUS,
    )
    return team_kernel(dtype, width, names, buffers, functions, body)


@cache
def _settle(dtype: DType) -> Kernel:
    body = """\
    let square = params.size * params.size;
    let row = i % square / params.size;
    let column = i % params.size;
    let pair = i / square % params.pairs;
    let at = i / square / params.pairs * params.padded * params.padded;
    y[at + moved_to(pair, row) * params.padded + moved_to(pair, column)] = x[i];
"""
    names = ("size", "padded", "length", "pairs")
    buffers = (texts.source("x", dtype), texts.target("y", dtype))
    return element_kernel(dtype, names, buffers, body, MOVED)


@cache
def _diagonal(dtype: DType) -> Kernel:
    body = "    result[i] = real(a[i * params.order + i % params.order]);\n"
    real = dt.real_of(dtype)
    buffers = (texts.source("a", dtype), texts.target("result", real))
    return element_kernel(dtype, ("order",), buffers, body)


@cache
def _values(dtype: DType) -> Kernel:
    body = """\
    let matrix = i / params.padded;
    let peak = peaks[matrix];
    var value = scaled(found[i], -shift(peak));
    var rank = ranks[i];
    if (peak == NONFINITE) {
        value = not_a_number();
        rank = i % params.padded;
    }
    if (rank < params.order) { result[matrix * params.order + rank] = value; }
"""
    real = dt.real_of(dtype)
    buffers = (
        texts.source("found", real),
        texts.source("ranks", U32),
        PEAKS,
        texts.target("result", real),
    )
    return element_kernel(dtype, ("padded", "order"), buffers, body, SHIFT)


@cache
def _lost(dtype: DType) -> Kernel:
    body = "    if (peaks[i / params.size] == NONFINITE) { a[i] = number(not_a_number()); }\n"
    return element_kernel(dtype, ("size",), (texts.target("a", dtype), PEAKS), body)
