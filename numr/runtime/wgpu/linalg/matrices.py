"""What the kernels of linear algebra share: their texts, teams of invocations, blocks of matrices, and a call's work.

A *team* is a part of a workgroup, or all of it, that works on one matrix: small matrices share a
workgroup, so that many of them keep a device busy. Arrays of a call are stacks with one leading axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from numr import dtypes as dt
from numr.dtypes import DType
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.checking import grid
from numr.runtime.wgpu.linalg.arithmetic import SWEEPS, arithmetic
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import Parameters

if TYPE_CHECKING:
    from numr.runtime.wgpu.families import Families

__all__ = [
    "ELEMENT",
    "STEPS",
    "Block",
    "Kernel",
    "Team",
    "Work",
    "element_kernel",
    "fold",
    "place",
    "power_of_two",
    "steps",
    "team_kernel",
]

#: Loop iterations that an invocation may take: software drivers stop it at 65535.
STEPS: Final = 30000


# ----------------------------------------------------------------------------- kernels
class Kernel(NamedTuple):
    """The text of a kernel, and how its parameters are packed."""

    text: KernelText
    parameters: Parameters


def element_kernel(
    dtype: DType,
    names: Sequence[str],
    buffers: Sequence[StorageBuffer],
    body: str,
    functions: str = "",
) -> Kernel:
    """A kernel that goes over numbers one by one: of elements, columns or whole matrices.

    Parameters
    ----------
    dtype : dtype
        Of the matrices.
    names : sequence of str
        Parameters after ``row`` and ``count``.
    buffers : sequence of StorageBuffer
        What it binds.
    body : str
        Statements on the number ``i``, which is below ``count``.
    functions : str
        Declarations in the module.
    """
    parameters = Parameters("row", "count", *names)
    text = (
        parameters.text
        + arithmetic(dtype)
        + functions
        + texts.invocation()
        + "    if (i >= params.count) { return; }\n"
        + body
        + "}\n"
    )
    return Kernel(KernelText(text, tuple(buffers), parameters.size), parameters)


#: What a kernel's numbers stand for that goes over ``params.rows`` and ``params.columns`` of each matrix.
ELEMENT: Final = """\
    let matrix = i / (params.rows * params.columns);
    let rest = i % (params.rows * params.columns);
    let row = rest / params.columns;
    let column = rest % params.columns;
"""


def steps(name: str) -> tuple[str, ...]:
    """Parameters of a block: what :attr:`Block.steps` gives."""
    return tuple(f"{name}_{step}" for step in ("start", "row", "column", "matrix"))


def place(name: str, row: str = "row", column: str = "column") -> str:
    """WGSL of where an element of a block lies, in a row and column of a ``matrix``."""
    return (
        f"(params.{name}_start + matrix * params.{name}_matrix"
        f" + {row} * params.{name}_row + {column} * params.{name}_column)"
    )


#: Parameters that the kernels of teams begin with: workgroups in a row of them, the number of teams, invocations in
#: a team and, where they are placed in rows and columns, invocations in a row.
_PLACES: Final = ("row", "count", "team", "across")

_TEAM: Final = """\
var<private> place: u32;
var<private> lane: u32;
var<private> lane_column: u32;
var<private> lane_row: u32;
var<private> down: u32;
var<private> member: u32;
var<private> live: bool;
fn join(index: u32, group: vec3<u32>) {{
    place = index;
    lane = index & (params.team - 1u);
    lane_column = lane & (params.across - 1u);
    lane_row = lane / params.across;
    down = params.team / params.across;
    let number = (group.x + group.y * params.row) * ({width}u / params.team) + index / params.team;
    // Teams too many go along with the last one without writing, since all have to meet at barriers.
    live = number < params.count;
    member = min(number, params.count - 1u);
}}
"""


def team_kernel(
    dtype: DType,
    width: int,
    names: Sequence[str],
    buffers: Sequence[StorageBuffer],
    functions: str,
    body: str,
) -> Kernel:
    """A kernel of teams.

    Parameters
    ----------
    dtype : dtype
        Of the matrices.
    width : int
        Invocations in a workgroup.
    names : sequence of str
        Parameters after those of :data:`_PLACES`.
    buffers : sequence of StorageBuffer
        What it binds.
    functions : str
        Declarations in the module.
    body : str
        Statements of the function ``main``. ``member`` is the team's number, ``lane`` the invocation's in the team,
        ``lane_row`` and ``lane_column`` its place if the team has rows of ``params.across``, of which there are
        ``down``. Only where ``live`` is true may they write. Barriers need control flow that is the same for all.
    """
    parameters = Parameters(*_PLACES, *names)
    text = (
        parameters.text
        + arithmetic(dtype)
        + _TEAM.format(width=width)
        + functions
        + f"@compute @workgroup_size({width})\n"
        + "fn main(@builtin(local_invocation_index) index: u32, @builtin(workgroup_id) group: vec3<u32>) {\n"
        + "    join(index, group);\n"
        + body
        + "}\n"
    )
    return Kernel(KernelText(text, tuple(buffers), parameters.size), parameters)


def fold(name: str, type: str, width: int, combined: str = "x + y") -> str:
    """A function that combines a value of each lane of a team, always in the same order.

    It takes the value and a power of two ``kept``: lanes whose numbers are equal modulo it are combined, and get the
    result. All invocations of the workgroup have to call it, with the same ``kept``.

    Parameters
    ----------
    name, type : str
        The function's name, and the type of the values.
    width : int
        Invocations in a workgroup.
    combined : str
        WGSL of two values ``x`` and ``y`` combined.
    """
    return f"""\
var<workgroup> {name}_values: array<{type}, {width}>;
fn {name}_of_two(x: {type}, y: {type}) -> {type} {{ return {combined}; }}
fn {name}(value: {type}, kept: u32) -> {type} {{
    {name}_values[place] = value;
    workgroupBarrier();
    for (var step = params.team >> 1u; step >= kept; step >>= 1u) {{
        if (lane < step) {{
            {name}_values[place] = {name}_of_two({name}_values[place], {name}_values[place + step]);
        }}
        workgroupBarrier();
    }}
    let result = {name}_values[place - lane + (lane & (kept - 1u))];
    workgroupBarrier();
    return result;
}}
"""


# -------------------------------------------------------------------------------- host
class Team(NamedTuple):
    """How invocations are divided among matrices.

    Attributes
    ----------
    width : int
        Invocations in a workgroup.
    size, across : int
        Invocations in a team, and in a row of it; powers of two.
    """

    width: int
    size: int
    across: int

    @classmethod
    def of(cls, size: int, across: int) -> Team:
        """A team of so many invocations, in a workgroup that has room for it."""
        return cls(64 if size <= 64 else 256, size, across)

    @property
    def down(self) -> int:
        """Rows of invocations."""
        return self.size // self.across


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below a number."""
    return 1 << (number - 1).bit_length()


class Block(NamedTuple):
    """The same part of each matrix of a stack: where it starts, and its steps in elements.

    Attributes
    ----------
    array : DeviceArray
        A new C-contiguous array.
    start, row, column, matrix : int
        The first element of the first matrix, and steps to the next row, column and matrix.
    part : int
        Step to the next of several parts of one matrix.
    conjugate : bool
        Whether the conjugates of the elements are meant.
    """

    array: DeviceArray
    start: int
    row: int
    column: int
    matrix: int
    part: int = 0
    conjugate: bool = False

    @classmethod
    def of(cls, array: DeviceArray) -> Block:
        """The matrices of a stack."""
        rows, columns = array.shape[-2:]
        return cls(array, 0, columns, 1, rows * columns)

    def at(self, row: int, column: int) -> Block:
        """What starts at a row and column."""
        return self._replace(start=self.start + row * self.row + column * self.column)

    @property
    def transposed(self) -> Block:
        """With rows as columns."""
        return self._replace(row=self.column, column=self.row)

    @property
    def conjugated(self) -> Block:
        """With the conjugates of the elements."""
        return self._replace(conjugate=not self.conjugate)

    @property
    def adjoint(self) -> Block:
        """Transposed and conjugated."""
        return self.transposed.conjugated

    @property
    def steps(self) -> tuple[int, int, int, int]:
        """Start and steps, as kernels of teams take them."""
        return self.start, self.row, self.column, self.matrix


class Work:
    """The kernels of one call on a stack of matrices.

    Parameters
    ----------
    client : Families
        Whose call it is.
    function : str
        The call's name, for errors.
    count : int
        Number of matrices, above 0.
    dtype : dtype
        Of their elements.

    Attributes
    ----------
    real : dtype
        Of real numbers.
    context : DeviceContext
        The device.
    status : DeviceArray
        Words in which kernels tell what they met.
    """

    #: Words of the status: those that :data:`STATUS` tells of, and one for each sweep of an iteration.
    WORDS: Final = SWEEPS + 64

    def __init__(self, client: Families, function: str, count: int, dtype: DType) -> None:
        self.client = client
        self.context = client.context
        self.function = function
        self.count = count
        self.dtype = dtype
        self.real = dt.real_of(dtype)
        self.status = self.filled(np.zeros(self.WORDS, np.uint32))

    def team(self, rows: int, columns: int, least: int = 1) -> Team:
        """A team for a matrix whose elements are worked on side by side, of ``least`` invocations or more."""
        size = power_of_two(min(max(rows * columns // 4, 1), 256))
        wide = 16
        if self.context.is_cpu:
            # A few are computed at a time, and barriers cost much: as many as keep the steps of each within bounds.
            wide = 8
            needed = power_of_two(max(rows * columns * min(rows, columns) // 2048, 1))
            size = min(needed, 64 if rows <= 4096 else 256)
        size = max(size, least)
        across = power_of_two(min(columns, wide if rows > 8 else 64, size))
        return Team.of(size, across)

    def empty(self, *shape: int, dtype: DType | None = None) -> DeviceArray:
        """A new stack of arrays of a shape, whose elements are arbitrary."""
        return self.context.empty((self.count, *shape), dtype or self.dtype)

    def filled(self, host: np.ndarray[Any, Any]) -> DeviceArray:
        """A few numbers of the host."""
        return self.client.from_host(host, copy=True)

    def met(self) -> list[int]:
        """The words of the status, when all kernels so far are done."""
        words: list[int] = self.client.to_host(self.status).tolist()
        return words

    def run(
        self,
        kernel: Kernel,
        arrays: Sequence[DeviceArray],
        values: Sequence[int],
        groups: tuple[int, int, int],
    ) -> None:
        """Run a kernel on arrays that are new and C-contiguous."""
        bindings = [self.context.bind(array, self.function).binding for array in arrays]
        self.context.run(kernel.text, bindings, kernel.parameters.pack(*values), groups)

    def each(
        self, kernel: Kernel, arrays: Sequence[DeviceArray], each: int, values: Sequence[int] = ()
    ) -> None:
        """Run an :func:`element_kernel` on as many numbers of each matrix."""
        count = self.count * each
        groups, row = self.context.grid(count)
        self.run(kernel, arrays, (row, count, *values), groups)

    def teams(
        self,
        kernel: Kernel,
        team: Team,
        arrays: Sequence[DeviceArray],
        values: Sequence[int],
        parts: int = 1,
    ) -> None:
        """Run a :func:`team_kernel` with so many teams for each matrix."""
        count = self.count * parts
        groups, row = grid(-(-count * team.size // team.width), 1, self.context.max_groups)
        self.run(kernel, arrays, (row, count, team.size, team.across, *values), groups)
