"""Singular values and vectors by Jacobi rotations from one side.

The matrix, its columns in descending order of their norms, is made triangular first: ``A P = Q R``. Rotations of the
columns of ``R^H`` by ``V`` make these orthogonal, which takes few sweeps after that. Their norms are the singular
values, their directions the right singular vectors of ``A P``, and ``Q V`` has the left ones. Small singular values
of a matrix whose columns are of different sizes come out with small relative errors.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from numr import dtypes as dt
from numr.dtypes import DType
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.linalg.arithmetic import NOT_FINITE, STATUS, ZEROS
from numr.runtime.wgpu.linalg.blocks import PANEL, copied, unit
from numr.runtime.wgpu.linalg.matrices import (
    ELEMENT,
    STEPS,
    Block,
    Kernel,
    Team,
    Work,
    element_kernel,
    fold,
    power_of_two,
    team_kernel,
)
from numr.runtime.wgpu.linalg.orthogonal import orthonormal, triangularise
from numr.runtime.wgpu.linalg.rotations import (
    MEETING,
    MOST_SWEEPS,
    TURN,
    UNCHECKED,
    converged,
    next_even,
)
from numr.runtime.wgpu.linalg.scaling import (
    PEAKS,
    SHIFT,
    U32,
    moved_columns,
    peaks_of,
    ranks_of,
    scale,
    squares_of,
)
from numr.runtime.wgpu.pieces import narrowed

__all__ = ["Singular", "decompose"]

_MESSAGE: Final = "SVD did not converge"
#: Columns in a block of a large matrix; software adapters prefer fewer dispatches.
_BLOCK: Final = 8
_BLOCK_ON_CPU: Final = 16
#: The sweep from which columns that would still be rotated count as zero if they are rounding errors beside the largest:
#: what is left of linearly dependent ones need not become orthogonal.
_PATIENCE: Final = 8


class Singular(NamedTuple):
    """What :func:`decompose` found.

    Attributes
    ----------
    values : DeviceArray
        Singular values, descending.
    vectors : tuple of DeviceArray
        Left and right singular vectors as columns, where they are wanted.
    """

    values: DeviceArray
    vectors: tuple[DeviceArray, ...] = ()


def decompose(
    work: Work, array: DeviceArray, *, conjugate: bool, vectors: bool, full: bool
) -> Singular:
    """Decompose matrices with no fewer rows than columns, which are changed.

    Parameters
    ----------
    work : Work
        The call.
    array : DeviceArray
        The matrices.
    conjugate : bool
        Whether the conjugates of their elements are meant.
    vectors : bool
        Whether singular vectors are wanted.
    full : bool
        Whether the left ones are to be completed to a square matrix.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not finite, or the iteration does not converge.
    """
    rows, order = array.shape[-2:]
    given = Block.of(array)
    peaks = peaks_of(work, array)
    scale(work, given, given._replace(conjugate=conjugate), rows, order, peaks)
    places, largest = ranks_of(work, squares_of(work, given, rows, order), descending=True)
    ordered = work.empty(rows, order)
    moved_columns(work, Block.of(ordered), given, rows, order, places, order)
    reflections = triangularise(work, ordered)
    columns = work.empty(order, order)
    copied(work, Block.of(columns), Block.of(ordered).adjoint, order, order)
    turns = work.empty(order, order) if vectors else work.empty(1, 1)
    if vectors:
        unit(work, Block.of(turns), order, order)
    words = _orthogonalise(work, columns, turns, largest, vectors)
    if words[NOT_FINITE]:
        raise np.linalg.LinAlgError(_MESSAGE)
    squares = squares_of(work, Block.of(columns), order, order)
    ranks, _ = ranks_of(work, squares, descending=True)
    values = work.empty(order, dtype=work.real)
    work.each(_values(work.dtype), (squares, ranks, peaks, values), order, (order,))
    if not vectors:
        return Singular(values)
    right = work.empty(order, order)
    arrays = (columns, squares, places, ranks, right)
    work.each(_directions(work.dtype), arrays, order * order, (order, order))
    if words[ZEROS]:
        _complete(work, right, values)
    turned = work.empty(order, order)
    moved_columns(work, Block.of(turned), Block.of(turns), order, order, ranks, order)
    basis = orthonormal(work, reflections, rows if full else order)
    left = work.client.matmul(narrowed(basis, -1, 0, order), turned)
    if full and rows > order:
        copied(work, Block.of(basis), Block.of(left), rows, order)
        left = basis
    return Singular(values, (left, right))


def _complete(work: Work, vectors: DeviceArray, values: DeviceArray) -> None:
    """Replace the vectors of singular values that are zero, so that all are orthonormal."""
    order = vectors.shape[-1]
    copy = work.empty(order, order)
    copied(work, Block.of(copy), Block.of(vectors), order, order)
    # Each column of the factor is orthogonal to the vectors before it.
    basis = orthonormal(work, triangularise(work, copy), order)
    work.each(_filled(work.dtype), (basis, values, vectors), order * order, (order,))


def _orthogonalise(
    work: Work, columns: DeviceArray, turns: DeviceArray, largest: DeviceArray, vectors: bool
) -> list[int]:
    """Make columns orthogonal, and turn those of ``turns`` in the same way; returns the status.

    Columns that are negligible become zero, which the status tells.
    """
    order = columns.shape[-1]
    arrays = (columns, turns, largest, work.status)
    if order <= PANEL:
        players = next_even(order)
        team = _team(work, order, players // 2)
        kernel = _rotated(work.dtype, team.width)
        each = (players - 1) * _steps(order, team, vectors)
        sweep = 0
        while True:
            # As many sweeps as an invocation may take steps; it stops when nothing is left to do.
            count = min(max(STEPS // each, 1), MOST_SWEEPS - sweep)
            values = (order, players, players - 1, players // 2, 0, 0, 1, count, sweep, vectors)
            work.teams(kernel, team, arrays, values)
            sweep += count
            if words := converged(work, sweep - 1, _MESSAGE):
                return words
    size = _BLOCK_ON_CPU if work.context.is_cpu else _BLOCK
    blocks = next_even(-(-order // size))
    within, between = _team(work, order, size // 2), _team(work, order, size)
    for sweep in itertools.count():
        rest = (1, sweep, vectors)
        values = (order, size, size - 1, size // 2, 0, 0, blocks, *rest)
        work.teams(_rotated(work.dtype, within.width), within, arrays, values, blocks)
        for meeting in range(blocks - 1):
            values = (order, size, size, size, blocks, meeting, blocks // 2, *rest)
            kernel = _rotated(work.dtype, between.width)
            work.teams(kernel, between, arrays, values, blocks // 2)
        if sweep >= UNCHECKED and (words := converged(work, sweep, _MESSAGE)):
            return words
    raise AssertionError("counting has no end")


def _team(work: Work, order: int, pairs: int) -> Team:
    """A team with a place in its rows for each pair, which its columns work on."""
    across = power_of_two(pairs)
    return Team.of(work.team(order, 2 * pairs, across).size, across)


def _steps(order: int, team: Team, vectors: bool) -> int:
    """Loop iterations of an invocation in a round."""
    return (3 if vectors else 2) * (order // team.down + 1) + 10


# ----------------------------------------------------------------------------- kernels
@cache
def _rotated(dtype: DType, width: int) -> Kernel:
    functions = (
        MEETING
        + TURN
        + "struct Sums { p: R, q: R, both: E }\n"
        + fold("total", "Sums", width, "Sums(x.p + y.p, x.q + y.q, x.both + y.both)")
        + """\
var<workgroup> busy: atomic<u32>;
fn pair_of(round: u32, part: u32) -> Pair {
    if (params.blocks == 0u) {
        // All of a block against each other.
        let own = met(round, lane_column, params.players);
        return Pair(part * params.players + own.p, part * params.players + own.q);
    }
    // Each of a block against each of another one.
    let blocks = met(params.meeting, part, params.blocks);
    let other = (lane_column + round) % params.players;
    return Pair(blocks.p * params.players + lane_column, blocks.q * params.players + other);
}
"""
    )
    body = """\
    let order = params.order;
    let matrix = member / params.parts;
    let at = matrix * order * order;
    let rounding = (TWO * EPSILON) * (TWO * EPSILON) * largest[matrix];
    // What is left by rounding errors, of which small matrices have their share as well.
    let tolerance = EPSILON * (sqrt(R(order)) + TWO + ONE);
    for (var sweep = 0u; sweep < params.sweeps; sweep++) {
        if (place == 0u) { atomicStore(&busy, 0u); }
        workgroupBarrier();
        let late = params.sweep + sweep >= PATIENCE;
        for (var round = 0u; round < params.rounds; round++) {
            let pair = pair_of(round, member % params.parts);
            let has_p = lane_column < params.pairs && pair.p < order;
            let has_q = lane_column < params.pairs && pair.q < order;
            var sums = Sums();
            for (var i = lane_row; i < order; i += down) {
                var p = E();
                var q = E();
                if (has_p) { p = w[at + i * order + pair.p]; }
                if (has_q) { q = w[at + i * order + pair.q]; }
                sums.p += square(p);
                sums.q += square(q);
                sums.both = plus(sums.both, conj(p), q);
            }
            sums = total(sums, params.across);
            // The cosine of the angle between them; squares of the sum itself might overflow.
            let norms = sqrt(sums.p) * sqrt(sums.q);
            var cosine = ZERO;
            if (!is_negligible(sqrt(sums.p)) && !is_negligible(sqrt(sums.q))) {
                cosine = modulus(sums.both / norms);
            }
            let meet = has_p && has_q && cosine > tolerance;
            let least = max(NEGLIGIBLE_SQUARE, select(ZERO, rounding, late && meet));
            let no_p = has_p && sums.p < least;
            let no_q = has_q && sums.q < least;
            if (live && lane_row == 0u && (no_p || no_q)) { atomicMax(&status[ZEROS], 1u); }
            let turns = meet && !no_p && !no_q;
            if (turns && live && lane_row == 0u) {
                atomicStore(&busy, 1u);
                atomicMax(&status[SWEEPS + params.sweep + sweep], 1u);
            }
            if (live && (turns || no_p || no_q)) {
                let by = turn(sums.p, sums.q, sums.both, cosine * norms);
                for (var i = lane_row; i < order; i += down) {
                    let p_at = at + i * order + pair.p;
                    let q_at = at + i * order + pair.q;
                    if (turns) {
                        let p = w[p_at];
                        let q = w[q_at];
                        w[p_at] = turned_p(p, q, by);
                        w[q_at] = turned_q(p, q, by);
                        if (params.vectors != 0u) {
                            let v_p = v[p_at];
                            let v_q = v[q_at];
                            v[p_at] = turned_p(v_p, v_q, by);
                            v[q_at] = turned_q(v_p, v_q, by);
                        }
                    }
                    if (no_p) { w[p_at] = E(); }
                    if (no_q) { w[q_at] = E(); }
                }
            }
            storageBarrier();
        }
        workgroupBarrier();
        let again = atomicLoad(&busy);
        workgroupBarrier();
        if (again == 0u) { break; }
    }
""".replace("PATIENCE", f"{_PATIENCE}u")
    names = ("order", "players", "rounds", "pairs", "blocks", "meeting", "parts")
    buffers = (
        texts.target("w", dtype),
        texts.target("v", dtype),
        texts.source("largest", dt.real_of(dtype)),
        STATUS,
    )
    return team_kernel(
        dtype, width, (*names, "sweeps", "sweep", "vectors"), buffers, functions, body
    )


@cache
def _values(dtype: DType) -> Kernel:
    body = """\
    let matrix = i / params.order;
    let value = sqrt(squares[i]);
    result[matrix * params.order + ranks[i]] = scaled(value, -shift(peaks[matrix]));
"""
    real = dt.real_of(dtype)
    buffers = (
        texts.source("squares", real),
        texts.source("ranks", U32),
        PEAKS,
        texts.target("result", real),
    )
    return element_kernel(dtype, ("order",), buffers, body, SHIFT)


@cache
def _directions(dtype: DType) -> Kernel:
    body = f"""\
{ELEMENT}    let first = matrix * params.columns;
    let value = w[(first + places[first + row]) * params.columns + column];
    let norm = sqrt(squares[first + column]);
    var direction_of_column = E();
    if (magnitude_bits(norm) != Bits()) {{ direction_of_column = value / norm; }}
    result[(first + row) * params.columns + ranks[first + column]] = direction_of_column;
"""
    buffers = (
        texts.source("w", dtype),
        texts.source("squares", dt.real_of(dtype)),
        texts.source("places", U32),
        texts.source("ranks", U32),
        texts.target("result", dtype),
    )
    return element_kernel(dtype, ("rows", "columns"), buffers, body)


@cache
def _filled(dtype: DType) -> Kernel:
    body = """\
    let matrix = i / (params.order * params.order);
    if (values[matrix * params.order + i % params.order] == ZERO) { vectors[i] = basis[i]; }
"""
    buffers = (
        texts.source("basis", dtype),
        texts.source("values", dt.real_of(dtype)),
        texts.target("vectors", dtype),
    )
    return element_kernel(dtype, ("order",), buffers, body)
