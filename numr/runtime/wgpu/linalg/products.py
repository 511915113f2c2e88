"""Matrix products that change blocks of matrices in place.

Beside what matrix products in general do, they take conjugates, subtract, and put rows or columns where they are needed
next. Factorisations of large matrices are made of these and of kernels that factorise narrow parts.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from numr.dtypes import DType
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.linalg.arithmetic import arithmetic
from numr.runtime.wgpu.linalg.matrices import Block, Kernel, Work
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.texts import Parameters

__all__ = ["MOVED", "Moves", "multiply"]

#: How much of the inner axis of a product is taken at once, and what is done with the sums.
_INNER: Final = 1 << 14
_WRITE: Final = 0
_ADD: Final = 1
_SUBTRACT: Final = 2

#: Workgroups that keep a GPU busy.
_BUSY: Final = 128
#: Rows and columns of the result that an invocation on a software adapter has, and invocations in its workgroup.
_REGISTERS: Final = 4
_SMALL: Final = 64


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
    *("row", "first", "batch", "parts", "rows", "columns", "inner_first", "inner", "how", "lower"),
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
    length, pairs, axis = moves or Moves(1, 1, "")
    steps = [number for block in (left, right, result) for number in (*block.steps, block.part)]
    batch = work.count * parts
    # Of a long inner axis so much at a time as an invocation may take.
    for start in range(0, inner, _INNER):
        how = _SUBTRACT if subtract else _ADD if start else _WRITE
        values = (
            *(batch, parts, rows, columns, start, min(start + _INNER, inner), how, lower),
            *(length, pairs, *steps, left.conjugate, right.conjugate),
            *(axis == "rows", axis == "columns"),
        )
        arrays = (left.array, right.array, result.array)
        if work.context.is_cpu:
            _by_registers(work, arrays, values)
        else:
            _by_tiles(work, arrays, values)


def _by_registers(work: Work, arrays: tuple[DeviceArray, ...], values: tuple[int, ...]) -> None:
    """Run the kernel for software adapters, for which sharing memory does not pay."""
    batch, _, rows, columns = values[:4]
    blocks = -(-rows // _REGISTERS) * -(-columns // _REGISTERS)
    groups, row = work.context.grid(blocks * batch, _SMALL)
    work.run(_registers(work.dtype), arrays, (row, 0, *values), groups)


def _by_tiles(work: Work, arrays: tuple[DeviceArray, ...], values: tuple[int, ...]) -> None:
    """Run the kernel for GPUs."""
    batch, _, rows, columns = values[:4]
    micro = _micro(rows, columns, batch)
    tile = 16 * micro
    most = work.context.max_groups
    for first in range(0, batch, most):
        groups = (-(-columns // tile), -(-rows // tile), min(most, batch - first))
        work.run(_tiles(work.dtype, micro), arrays, (0, first, *values), groups)


def _micro(rows: int, columns: int, batch: int) -> int:
    """Rows and columns of the result that an invocation computes: many, unless too few workgroups would work."""
    for micro in (4, 2):
        tiles = -(-rows // (16 * micro)) * -(-columns // (16 * micro)) * batch
        if min(rows, columns) > 8 * micro and tiles >= _BUSY:
            return micro
    return 1


@cache
def _tiles(dtype: DType, micro: int) -> Kernel:
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
        f"var<workgroup> x_tile: array<E, {tile * depth}>;",
        f"var<workgroup> y_tile: array<E, {tile * depth}>;",
        "@compute @workgroup_size(256)",
        "fn main(@builtin(local_invocation_index) index: u32, @builtin(workgroup_id) group: vec3<u32>) {",
        f"    let x_first = group.y * {tile}u;",
        f"    let y_first = group.x * {tile}u;",
        f"    if (params.lower != 0u && y_first > x_first + {tile - 1}u) {{ return; }}",
        "    let matrix = (group.z + params.first) / params.parts;",
        "    let part = (group.z + params.first) % params.parts;",
        _STARTS,
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
        "}\n",
    ]
    return _kernel(dtype, "\n".join(body))


@cache
def _registers(dtype: DType) -> Kernel:
    """Each invocation computes a few rows and columns; its neighbours have the next columns."""
    size = range(_REGISTERS)
    places = [(i, j) for i in size for j in size]

    def read(name: str, side: str, number: int, extent: str, step: str, inner: str) -> list[str]:
        place = f"min(first_{extent} + {number}u, params.{extent} - 1u) * params.{side}_{step}"
        return [
            f"        var {name}{number} = {side}[{side}_at + {place} + k * params.{side}_{inner}];",
            f"        if (params.{side}_conj != 0u) {{ {name}{number} = conj({name}{number}); }}",
        ]

    body = [
        texts.invocation(_SMALL),
        f"    let across = (params.columns + {_REGISTERS - 1}u) / {_REGISTERS}u;",
        f"    let down = (params.rows + {_REGISTERS - 1}u) / {_REGISTERS}u;",
        "    let number = i / across / down;",
        "    if (number >= params.batch) { return; }",
        f"    let first_columns = i % across * {_REGISTERS}u;",
        f"    let first_rows = i / across % down * {_REGISTERS}u;",
        f"    if (params.lower != 0u && first_columns > first_rows + {_REGISTERS - 1}u) {{ return; }}",
        "    let matrix = number / params.parts;",
        "    let part = number % params.parts;",
        _STARTS,
        *(f"    var t{i}_{j} = E();" for i, j in places),
        "    for (var k = params.inner_first; k < params.inner; k++) {",
        *(line for i in size for line in read("a", "x", i, "rows", "row", "column")),
        *(line for j in size for line in read("b", "y", j, "columns", "column", "row")),
        *(f"        t{i}_{j} = plus(t{i}_{j}, a{i}, b{j});" for i, j in places),
        "    }",
        *(
            f"    write(matrix, part, first_rows + {i}u, first_columns + {j}u, t{i}_{j});"
            for i, j in places
        ),
        "}\n",
    ]
    return _kernel(dtype, "\n".join(body))


_STARTS: Final = """\
    let x_at = params.x_start + matrix * params.x_matrix + part * params.x_part;
    let y_at = params.y_start + matrix * params.y_matrix + part * params.y_part;
"""

_WRITING: Final = f"""\
fn write(matrix: u32, part: u32, i: u32, j: u32, sum: E) {{
    if (i >= params.rows || j >= params.columns) {{ return; }}
    var row = i;
    var column = j;
    if (params.moved_rows != 0u) {{ row = moved_to(part, i); }}
    if (params.moved_columns != 0u) {{ column = moved_to(part, j); }}
    let at = params.c_start + matrix * params.c_matrix + part * params.c_part
        + row * params.c_row + column * params.c_column;
    if (params.how == {_WRITE}u) {{ c[at] = sum; }}
    if (params.how == {_ADD}u) {{ c[at] = c[at] + sum; }}
    if (params.how == {_SUBTRACT}u) {{ c[at] = c[at] - sum; }}
}}
"""


def _kernel(dtype: DType, body: str) -> Kernel:
    parameters = Parameters(*_PRODUCT)
    text = parameters.text + arithmetic(dtype) + MOVED + _WRITING + body
    # They may lie in one buffer, which then needs one kind of access.
    buffers = (texts.target("x", dtype), texts.target("y", dtype), texts.target("c", dtype))
    return Kernel(KernelText(text, buffers, parameters.size), parameters)
