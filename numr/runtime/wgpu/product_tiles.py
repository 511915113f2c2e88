"""Matrix products by workgroups: each computes a tile of the result, from tiles of the factors in shared memory.

An invocation has up to 8 rows and 8 columns of the tile in registers, in groups of four. It reads what it
contributes to the next tiles of the factors while the present ones are multiplied. Shared tiles lie in vectors of four
elements along the rows of the left and the columns of the right factor, all of whose reads are free of bank conflicts.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.product_arithmetic import Arithmetic
from numr.runtime.wgpu.product_frame import Product, View, decode, launch, parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["Tile", "multiply", "tiles"]


class Tile(NamedTuple):
    """The tile of a workgroup.

    Attributes
    ----------
    rows, columns : int
        Elements of the result that an invocation has, multiples of 4.
    down, across : int
        Invocations along the rows and the columns.
    depth : int
        How much of the inner axis is in shared memory.
    cost : float
        Time for an element of the tile, compared to the largest tile.
    """

    rows: int
    columns: int
    down: int
    across: int
    depth: int
    cost: float

    @property
    def height(self) -> int:
        """Rows of the tile."""
        return self.rows * self.down

    @property
    def width(self) -> int:
        """Columns of the tile."""
        return self.columns * self.across

    @property
    def size(self) -> int:
        """Invocations of the workgroup."""
        return self.down * self.across

    def memory(self, numbers: Arithmetic) -> int:
        """Bytes of shared memory that tiles of both factors take."""
        return self.depth * (self.height + self.width + 8) * numbers.total.itemsize


_MEDIUM: Final = Tile(4, 4, 16, 16, 8, 1.5)
_SMALL: Final = Tile(4, 4, 8, 8, 16, 2.0)
_NARROW: Final = Tile(4, 4, 32, 4, 8, 2.0)


def tiles(numbers: Arithmetic) -> tuple[Tile, ...]:
    """The tiles that products of a dtype are computed by."""
    if len(numbers.parts) == 2:
        return _MEDIUM._replace(cost=1.0), _SMALL, _NARROW
    if numbers.total.itemsize == 8:
        return Tile(8, 4, 16, 16, 8, 1.0), _MEDIUM, _SMALL, _NARROW
    return Tile(8, 8, 16, 16, 8, 1.0), _MEDIUM, _SMALL, _NARROW


def multiply(
    context: DeviceContext, product: Product, numbers: Arithmetic, tile: Tile, slices: int
) -> None:
    """Compute a product by tiles of a size, with the inner axis in slices."""
    shared = context.limits["max-compute-workgroup-storage-size"]
    buffers = 2 if 2 * tile.memory(numbers) <= shared else 1

    def text(rank: int, views: Sequence[View]) -> KernelText:
        left, right, result = views
        vectors = (
            _are_vectors(numbers, left, -2),
            _are_vectors(numbers, right, -1),
            product.columns % 4 == 0 and _are_vectors(numbers, result, -1),
        )
        fast = (
            abs(left.strides[-1]) < abs(left.strides[-2]),
            abs(right.strides[-2]) < abs(right.strides[-1]),
        )
        return _text(numbers, tile, buffers, rank, vectors, fast)

    blocks = (-(-product.rows // tile.height), -(-product.columns // tile.width))
    launch(context, product, text, blocks, slices, depth=tile.depth)


def _are_vectors(numbers: Arithmetic, view: View, axis: int) -> bool:
    """Whether four neighbours along an axis of matrices are a vector of 16 bytes."""
    if numbers.element.itemsize != 4 or view.strides[axis] != 1:
        return False
    others = (stride for i, stride in enumerate(view.strides) if i != len(view.strides) + axis)
    return view.start % 4 == 0 and all(stride % 4 == 0 for stride in others)


class _Side(NamedTuple):
    """One factor: names of its buffer and parameters, and how its tiles are read.

    Attributes
    ----------
    name, across : str
        The factor, and its axis that is not summed over, in singular.
    extent : int
        Length of the tile along that axis.
    vector : bool
        Whether four neighbours along that axis are read as one.
    inner_fast : bool
        Whether neighbouring invocations read neighbours along the inner axis.
    """

    name: str
    across: str
    extent: int
    vector: bool
    inner_fast: bool


@cache
def _text(
    numbers: Arithmetic,
    tile: Tile,
    buffers: int,
    rank: int,
    vectors: tuple[bool, bool, bool],
    fast: tuple[bool, bool],
) -> KernelText:
    """The kernel of a tile.

    Parameters
    ----------
    numbers, tile : Arithmetic, Tile
        What is computed, and how much in a workgroup.
    buffers : int
        Tiles of each factor in shared memory: with two, one is filled while the other is read.
    rank : int
        Of the leading axes.
    vectors : tuple of bool
        Whether the left, the right factor and the result are bound as vectors of four elements.
    fast : tuple of bool
        Whether invocations next to each other read neighbours along the inner axis, of the left and right factor.
    """
    sides = (
        _Side("left", "row", tile.height, vectors[0], fast[0]),
        _Side("right", "column", tile.width, vectors[1], fast[1]),
    )
    turn = "turn" if buffers == 2 else "0u"
    before: list[str] = []
    fetch: list[str] = []
    put: list[str] = []
    for side in sides:
        for lines, more in zip(
            (before, fetch, put), _reading(numbers, tile, side, turn), strict=True
        ):
            lines += more
    both = buffers == 2
    code = [
        "let number = group.x + group.y * params.row;",
        "if (number >= params.count) { return; }",
        decode(rank),
        *_own_place(tile),
        *before,
        *(
            f"var sum{r}_{h}{part} = {numbers.vector}();"
            for r in range(tile.rows)
            for h in range(tile.columns // 4)
            for part in numbers.parts
        ),
        "var turn = 0u;" if both else "",
        "var k = first;",
        *fetch,
        *put,
        "workgroupBarrier();",
        "loop {",
        f"k += {tile.depth}u;",
        "let more = k < end;",
        "if (more) {",
        *fetch,
        "}",
        *_multiplication(numbers, tile, turn),
        "if (!more) { break; }",
        "turn = 1u - turn;" if both else "workgroupBarrier();",
        *put,
        "workgroupBarrier();",
        "}",
        *_writing(numbers, tile, vectors[2]),
        "}",
    ]
    shared = "".join(
        f"var<workgroup> {side.name}_tile{part}: "
        f"array<array<array<{numbers.vector}, {side.extent // 4 + 1}>, {tile.depth}>, {buffers}>;\n"
        for side in sides
        for part in numbers.parts
    )
    params = parameters(rank)
    body = (
        f"{params.text}{shared}@compute @workgroup_size({tile.size})\n"
        "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {\n"
    ) + "\n".join(code)
    bound = tuple(
        buffer._replace(type=f"array<{numbers.vector}>") if vector else buffer
        for buffer, vector in zip(numbers.buffers(), vectors, strict=True)
    )
    return KernelText(body, bound, params.size)


def _own_place(tile: Tile) -> list[str]:
    """Declarations of an invocation's place in the tile."""
    if (tile.down, tile.across) == (16, 16):
        # Squares of few rows and columns for those that run together: they read little.
        return [
            "let own_column = (t & 7u) | ((t >> 2u) & 8u);",
            "let own_row = ((t >> 3u) & 3u) | ((t >> 4u) & 12u);",
        ]
    return [f"let own_column = t % {tile.across}u;", f"let own_row = t / {tile.across}u;"]


def _reading(
    numbers: Arithmetic, tile: Tile, side: _Side, turn: str
) -> tuple[list[str], list[str], list[str]]:
    """Declarations, and statements that read from a factor and write to its shared tile."""
    name, quads = side.name, side.extent // 4
    vectors = quads * tile.depth
    limit = f"params.{side.across}s"
    before, fetch, put = [], [], []
    for i in range(-(-vectors // tile.size)):
        own, place, inner = f"{name}{i}", f"{name}_place{i}", f"{name}_inner{i}"
        # Where one factor takes half of the invocations, the other takes the other half.
        spot = f"t + {i * tile.size}u"
        if name == "right" and 2 * vectors <= tile.size:
            spot = f"t ^ {tile.size // 2}u"
        along, over = ("%", "/") if side.inner_fast else ("/", "%")
        unit = tile.depth if side.inner_fast else quads
        before += [
            f"let {own}_spot = {spot};",
            f"let {inner} = {own}_spot {along} {unit}u;",
            f"let {place} = {own}_spot {over} {unit}u;",
            f"let {own}_first = block_{side.across} * {side.extent}u + 4u * {place};",
            *(f"var {own}{part} = {numbers.vector}();" for part in numbers.parts),
        ]
        inside = "" if vectors % tile.size == 0 else f" && {own}_spot < {vectors}u"
        fetch += ["{", f"let inner = k + {inner};", f"if (inner < end{inside}) {{"]
        fetch.append(f"let step = inner * params.{name}_inner;")
        if side.vector:
            before.append(f"let {own}_from = {name}_at + min({own}_first, ({limit} - 1u) & ~3u);")
            fetch.append(f"{own} = {name}[({own}_from + step) >> 2u];")
        else:
            for j in range(4):
                element = f"min({own}_first + {j}u, {limit} - 1u)"
                before.append(
                    f"let {own}_from{j} = {name}_at + {element} * params.{name}_{side.across};"
                )
                fetch += numbers.load(f"e{j}", name, f"({own}_from{j} + step)")
            for part in numbers.parts:
                elements = ", ".join(f"e{j}{part}" for j in range(4))
                fetch.append(f"{own}{part} = {numbers.vector}({elements});")
        fetch += [
            "} else {",
            *(f"{own}{part} = {numbers.vector}();" for part in numbers.parts),
            "}",
            "}",
        ]
        stores = [
            f"{name}_tile{part}[{turn}][{inner}][{place}] = {own}{part};" for part in numbers.parts
        ]
        put += [f"if ({own}_spot < {vectors}u) {{", *stores, "}"] if inside else stores
    return before, fetch, put


def _multiplication(numbers: Arithmetic, tile: Tile, turn: str) -> list[str]:
    """Statements that multiply the shared tiles."""
    lines: list[str] = []
    parts = numbers.parts
    for k in range(tile.depth):
        lines.append("{")
        for name, own, count, step in (
            ("left", "own_row", tile.rows // 4, tile.down),
            ("right", "own_column", tile.columns // 4, tile.across),
        ):
            lines += [
                f"let {name}{g}{part} = {name}_tile{part}[{turn}][{k}][{own} + {g * step}u];"
                for g in range(count)
                for part in parts
            ]
        for r in range(tile.rows):
            left = [f"left{r // 4}{part}.{'xyzw'[r % 4]}" for part in parts]
            for h in range(tile.columns // 4):
                right = [f"right{h}{part}" for part in parts]
                lines += numbers.add_product(f"sum{r}_{h}", left, right, numbers.vector)
        lines.append("}")
    return lines


def _writing(numbers: Arithmetic, tile: Tile, vector: bool) -> list[str]:
    """Statements that write an invocation's part of the result."""
    lines = [
        f"let column{h} = block_column * {tile.width}u + 4u * (own_column + {h * tile.across}u);"
        for h in range(tile.columns // 4)
    ]
    for r in range(tile.rows):
        row = f"block_row * {tile.height}u + 4u * (own_row + {r // 4 * tile.down}u) + {r % 4}u"
        lines += ["{", f"let row = {row};", "if (row < params.rows) {"]
        lines.append("let line = target_at + row * params.target_row;")
        for h in range(tile.columns // 4):
            if vector:
                store = f"result[(line + column{h}) >> 2u] = sum{r}_{h};"
                lines.append(f"if (column{h} < params.columns) {{ {store} }}")
                continue
            for j in range(4):
                place = f"line + (column{h} + {j}u) * params.target_column"
                store = numbers.store(place, f"sum{r}_{h}", j)
                lines.append(f"if (column{h} + {j}u < params.columns) {{ {store} }}")
        lines += ["}", "}"]
    return lines
