"""Kernels on blocks of matrices in place: products, triangular systems, copies.

Factorisations of large matrices are made of these and of kernels that factorise narrow parts.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from numr.dtypes import DType
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.linalg.arithmetic import arithmetic
from numr.runtime.wgpu.linalg.matrices import (
    ELEMENT,
    Block,
    Kernel,
    Team,
    Work,
    element_kernel,
    place,
    steps,
    team_kernel,
)
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.texts import Parameters

__all__ = ["MOVED", "PANEL", "Moves", "copied", "multiply", "solve_triangular", "unit"]

#: Order of the triangular blocks that one workgroup solves for.
PANEL: Final = 64

#: How much of the inner axis of a product is taken at once, and what is done with the sums.
_INNER: Final = 1 << 14
_WRITE: Final = 0
_ADD: Final = 1
_SUBTRACT: Final = 2

#: Workgroups that keep a GPU busy.
_BUSY: Final = 128


# --------------------------------------------------------------------------- products
class Moves(NamedTuple):
    """Where the rows or columns of a product go when blocks of a matrix meet each other in pairs.

    After a round each block moves to where it meets the next one; after as many rounds as there are other blocks it has
    met all of them.

    Attributes
    ----------
    length, pairs : int
        Length of a block, and number of pairs.
    axis : str
        ``"rows"`` or ``"columns"``.
    """

    length: int
    pairs: int
    axis: str


#: WGSL of where an index of a pair goes, in a kernel whose parameters have ``length`` and ``pairs``.
MOVED: Final = """\
fn moved(block: u32) -> u32 {
    if (block == 0u || params.pairs < 2u) { return block; }
    if (block == 1u) { return 2u; }
    if ((block & 1u) == 1u) { return block - 2u; }
    return select(block + 2u, block + 1u, block == 2u * params.pairs - 2u);
}
fn moved_to(pair: u32, i: u32) -> u32 {
    let half = i / params.length;
    return moved(2u * pair + half) * params.length + i - half * params.length;
}
"""


_PRODUCT: Final = (
    *("first", "parts", "rows", "columns", "inner_first", "inner", "how", "lower"),
    *("length", "pairs"),
    *(f"{side}_{step}" for side in "xyc" for step in ("start", "row", "column", "matrix", "part")),
    *("x_conj", "y_conj", "moved_rows", "moved_columns"),
)


def multiply(
    work: Work,
    result: Block,
    left: Block,
    right: Block,
    shape: tuple[int, int, int],
    *,
    subtract: bool = False,
    lower: bool = False,
    parts: int = 1,
    moves: Moves | None = None,
) -> None:
    """Matrix products, written over or subtracted from ``result``.

    Parameters
    ----------
    work : Work
        The call.
    result, left, right : Block
        The three matrices of each product; they may be parts of one array that do not overlap.
    shape : tuple of int
        Rows and columns of the result, and length of the inner axis.
    subtract : bool
        Whether the products are subtracted from what is there.
    lower : bool
        Whether only what is not above the diagonal is wanted.
    parts : int
        Products for each matrix of the stack.
    moves : Moves, optional
        The rows or columns of the result are those of all parts, and go to where blocks move.
    """
    rows, columns, inner = shape
    if not rows or not columns:
        return
    batch = work.count * parts
    micro = _micro(work, rows, columns, batch)
    tile = 16 * micro
    kernel = _product(work.dtype, micro)
    length, pairs, axis = moves or Moves(1, 1, "")
    steps = [number for block in (left, right, result) for number in (*block.steps, block.part)]
    most = work.context.max_groups
    for first in range(0, batch, most):
        # Of a long inner axis so much at a time as an invocation may take.
        for inner_first in range(0, inner, _INNER):
            how = _SUBTRACT if subtract else _ADD if inner_first else _WRITE
            values = (
                *(first, parts, rows, columns, inner_first, min(inner_first + _INNER, inner)),
                *(how, lower, length, pairs, *steps, left.conjugate, right.conjugate),
                *(axis == "rows", axis == "columns"),
            )
            groups = (-(-columns // tile), -(-rows // tile), min(most, batch - first))
            work.run(kernel, (left.array, right.array, result.array), values, groups)


def _micro(work: Work, rows: int, columns: int, batch: int) -> int:
    """Rows and columns of the result that an invocation computes: many, unless too few workgroups would work."""
    for micro in (4, 2):
        tiles = -(-rows // (16 * micro)) * -(-columns // (16 * micro)) * batch
        fits = min(rows, columns) > 8 * micro
        if fits and (work.context.is_cpu or tiles >= _BUSY):
            return micro
    return 1


@cache
def _product(dtype: DType, micro: int) -> Kernel:
    tile = 16 * micro
    depth = 16 if dtype.itemsize <= 8 else 8
    each = tile * depth // 256
    places = [(i, j) for i in range(micro) for j in range(micro)]

    def read(side: str, extent: str, fast: str) -> str:
        """Statements that read a tile of a factor, neighbours in memory by neighbouring invocations."""
        other = "row" if side == "x" else "column"
        lines = []
        for step in range(max(each, 1)):
            lines += [
                f"    {{ let e = index + {256 * step}u;",
                f"    let inner_fast = params.{side}_{fast} == 1u;",
                f"    let a = select(e % {tile}u, e / {depth}u, inner_fast);",
                f"    let k = select(e / {tile}u, e % {depth}u, inner_fast);",
                "    var value = E();",
                f"    if (a + {side}_first < params.{extent} && k + inner < params.inner) {{",
                f"        let line = {side}_at + (a + {side}_first) * params.{side}_{other};",
                f"        value = {side}[line + (k + inner) * params.{side}_{fast}];",
                "    }",
                f"    if (params.{side}_conj != 0u) {{ value = conj(value); }}",
                f"    {side}_tile[k * {tile}u + a] = value; }}",
            ]
        if not each:
            # The tile has fewer elements than the workgroup invocations.
            lines = [f"    if (index < {tile * depth}u)", *lines]
        return "".join(f"    {line}\n" for line in lines)

    body = [
        MOVED,
        f"var<workgroup> x_tile: array<E, {tile * depth}>;",
        f"var<workgroup> y_tile: array<E, {tile * depth}>;",
        "@compute @workgroup_size(256)",
        "fn main(@builtin(local_invocation_index) index: u32, @builtin(workgroup_id) group: vec3<u32>) {",
        f"    let x_first = group.y * {tile}u;",
        f"    let y_first = group.x * {tile}u;",
        f"    if (params.lower != 0u && y_first > x_first + {tile - 1}u) {{ return; }}",
        "    let matrix = (group.z + params.first) / params.parts;",
        "    let part = (group.z + params.first) % params.parts;",
        "    let x_at = params.x_start + matrix * params.x_matrix + part * params.x_part;",
        "    let y_at = params.y_start + matrix * params.y_matrix + part * params.y_part;",
        "    let own_row = index / 16u;",
        "    let own_column = index % 16u;",
        *(f"    var t{i}_{j} = E();" for i, j in places),
        f"    for (var inner = params.inner_first; inner < params.inner; inner += {depth}u) {{",
        read("x", "rows", "column"),
        read("y", "columns", "row"),
        "        workgroupBarrier();",
        f"        for (var k = 0u; k < {depth * tile}u; k += {tile}u) {{",
        *(f"            let a{i} = x_tile[k + own_row + {16 * i}u];" for i in range(micro)),
        *(f"            let b{j} = y_tile[k + own_column + {16 * j}u];" for j in range(micro)),
        *(f"            t{i}_{j} = plus(t{i}_{j}, a{i}, b{j});" for i, j in places),
        "        }",
        "        workgroupBarrier();",
        "    }",
        *(
            f"    write(matrix, part, x_first + own_row + {16 * i}u,"
            f" y_first + own_column + {16 * j}u, t{i}_{j});"
            for i, j in places
        ),
        "}",
        "fn write(matrix: u32, part: u32, i: u32, j: u32, sum: E) {",
        "    if (i >= params.rows || j >= params.columns) { return; }",
        "    var row = i;",
        "    var column = j;",
        "    if (params.moved_rows != 0u) { row = moved_to(part, i); }",
        "    if (params.moved_columns != 0u) { column = moved_to(part, j); }",
        "    let at = params.c_start + matrix * params.c_matrix + part * params.c_part",
        "        + row * params.c_row + column * params.c_column;",
        f"    if (params.how == {_WRITE}u) {{ c[at] = sum; }}",
        f"    if (params.how == {_ADD}u) {{ c[at] = c[at] + sum; }}",
        f"    if (params.how == {_SUBTRACT}u) {{ c[at] = c[at] - sum; }}",
        "}\n",
    ]
    parameters = Parameters(*_PRODUCT)
    text = parameters.text + arithmetic(dtype) + "\n".join(body)
    # They may lie in one buffer, which then needs one kind of access.
    buffers = (texts.target("x", dtype), texts.target("y", dtype), texts.target("c", dtype))
    return Kernel(KernelText(text, buffers, parameters.size), parameters)


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
    team = Team.of(order, min(columns, 16))
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
