"""numr.cuda beside CuPy, PyTorch and the floor that a copy within the device's memory sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks import peers
from benchmarks.add import FLOOR
from benchmarks.timing import Contender, Effort, Measurement, Series, compare

NAME: Final = "device"
#: The runtime that it is for.
RUNTIME: Final = "cuda"

FULL: Final = Effort(rounds=5, samples=2, seconds=0.008)
QUICK: Final = Effort(rounds=1, samples=1, seconds=0.0001)

#: Work whose time is that of its bytes.
MEMORY: Final = (
    "elementwise",
    "broadcast",
    "copy",
    "concat",
    "reduction",
    "arg",
    "scan",
    "selection",
)
#: Work of NVIDIA's libraries.
LIBRARIES: Final = ("sort", "matmul", "fft", "solve")
HOST: Final = "host"
OVERLAP: Final = "overlap"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is computed: a cube's side lengths, of which the product is a square, and others."""

    cube: tuple[int, int, int]
    side: int
    sorted: int
    matrix: int
    transform: int
    #: Bytes that a pipelined copy moves, and products of matrices beside it.
    moved: int
    products: int


SIZES: Final = Sizes((100, 1000, 1000), 10_000, 10_000_000, 4096, 1 << 24, 1 << 26, 3)
QUICK_SIZES: Final = Sizes((4, 12, 12), 24, 500, 16, 64, 1 << 12, 1)


@dataclass(frozen=True, slots=True)
class Case:
    """One statement for numr, and the same for CuPy and PyTorch where they have other words.

    Names: ``a b`` are vectors of float32, ``m n`` the same as square matrices and ``c`` as a cube; ``row`` and ``col``
    broadcast with the matrices; ``k`` is a mask of ``a`` and ``km`` of ``m``; ``i`` permutes a side of the matrices.
    """

    group: str
    label: str
    statement: str
    in_cupy: str | None = None
    in_torch: str | None = None
    #: Bytes for each element: what has to be read and written at least.
    moved: float = 0.0


def _operators(group: str, moved: float, *expressions: str) -> Iterator[Case]:
    return (Case(group, each, each, moved=moved) for each in expressions)


def _over_axes(
    group: str, name: str, moved: float, in_cupy: str | None = None, in_torch: str | None = None
) -> Iterator[Case]:
    for where, arguments in (
        ("", "a"),
        (" axis=0", "m, axis=0"),
        (" axis=1", "m, axis=1"),
        (" middle axis", "c, axis=1"),
    ):
        # PyTorch's running sum wants an axis.
        torchs = "a, axis=0" if in_torch == "cumsum" and not where else arguments
        yield Case(
            group,
            f"{name}{where}",
            f"xp.{name}({arguments})",
            f"xp.{in_cupy or name}({arguments})",
            f"xp.{in_torch or name}({torchs})",
            moved,
        )


CASES: Final[tuple[Case, ...]] = (
    *_operators("elementwise", 12, "a + b"),
    *_operators("elementwise", 8, "a + 1.0"),
    *_operators("elementwise", 5, "a > 0.5"),
    Case("elementwise", "exp", "xp.exp(a)", moved=8),
    Case("elementwise", "where(km, m, n)", "xp.where(km, m, n)", moved=13),
    *_operators("broadcast", 8, "m + row", "m + col"),
    *_operators("broadcast", 12, "m + n.T"),
    Case(
        "copy",
        "contiguous",
        "xp.asarray(a, copy=True)",
        "a.copy()",
        "a.clone()",
        moved=8,
    ),
    Case(
        "copy",
        "transposed",
        "m.T.contiguous()",
        "xp.ascontiguousarray(m.T)",
        "m.T.contiguous()",
        moved=8,
    ),
    Case(
        "copy",
        "axes (2, 0, 1)",
        "xp.permute_dims(c, (2, 0, 1)).contiguous()",
        "xp.ascontiguousarray(xp.transpose(c, (2, 0, 1)))",
        "xp.permute(c, (2, 0, 1)).contiguous()",
        moved=8,
    ),
    # Every second element: memory hands out its neighbours too.
    Case(
        "copy",
        "every second",
        "a[::2].contiguous()",
        "xp.ascontiguousarray(a[::2])",
        "a[::2].contiguous()",
        moved=6,
    ),
    Case("concat", "axis=0", "xp.concat((m, n))", in_cupy="xp.concatenate((m, n))", moved=16),
    Case(
        "concat",
        "axis=1",
        "xp.concat((m, n), axis=1)",
        "xp.concatenate((m, n), axis=1)",
        moved=16,
    ),
    *_over_axes("reduction", "sum", 4),
    *_over_axes("reduction", "max", 4, in_torch="amax"),
    *_over_axes("arg", "argmax", 4),
    *_over_axes("scan", "cumulative_sum", 8, "cumsum", "cumsum"),
    Case(
        "scan",
        "cumulative_prod axis=1",
        "xp.cumulative_prod(m, axis=1)",
        "xp.cumprod(m, axis=1)",
        "xp.cumprod(m, axis=1)",
        moved=8,
    ),
    Case("selection", "take rows", "xp.take(m, i, axis=0)", in_torch="m[i]", moved=8),
    Case("selection", "take columns", "xp.take(m, i, axis=1)", in_torch="m[:, i]", moved=8),
    # Half of the elements are selected, and the mask is read once to count and once to select.
    *_operators("selection", 1 + 1 + 4 + 2, "a[k]"),
    Case("selection", "nonzero", "xp.nonzero(k)", moved=1 + 1 + 4),
    Case("sort", "sort", "xp.sort(s)"),
    Case("matmul", "matmul", "xp.matmul(p, q)"),
    Case("fft", "fft", "xp.fft.fft(z)"),
    Case("solve", "solve", "xp.linalg.solve(p, q)"),
)

#: Host time of calls on few elements. ``x y`` are vectors, ``w`` a matrix and ``r`` its first row.
CALLS: Final[tuple[Case, ...]] = (
    *_operators(HOST, 0, "x + y", "x + 1.0", "-x", "w + r", "x[:10]"),
    *(Case(HOST, name, f"xp.{name}(x)") for name in ("exp", "sum", "argmax")),
    Case(HOST, "sum axis=0", "xp.sum(w, axis=0)"),
    Case(HOST, "where", "xp.where(h, x, y)"),
    Case(HOST, "matmul", "xp.matmul(w, w)"),
)
#: Elements of their operands.
FEW: Final = 1024


def operands(library: peers.Library, sizes: Sizes) -> dict[str, Any]:
    """Make what the statements use, the same for each library, as arrays in memory of its own."""
    xp = library.xp
    random = np.random.default_rng(0)

    def made(*shape: int) -> Any:
        return library.convert(random.random(shape, dtype=np.float32))

    elements = sizes.side**2
    a, b = made(elements), made(elements)
    square = (sizes.side, sizes.side)
    m, n = xp.reshape(a, square), xp.reshape(b, square)
    x, y, order = made(FEW), made(FEW), random.permutation(sizes.side)
    w = xp.reshape(x, (32, 32))
    z = random.random((2, sizes.transform), dtype=np.float32)
    k = a > 0.5
    return {
        "xp": xp,
        "a": a,
        "b": b,
        "m": m,
        "n": n,
        "c": xp.reshape(a, sizes.cube),
        "row": b[: sizes.side],
        "col": b[: sizes.side, None],
        "k": k,
        "km": xp.reshape(k, square),
        "i": library.convert(order),
        "s": made(sizes.sorted),
        "p": made(sizes.matrix, sizes.matrix),
        "q": made(sizes.matrix, sizes.matrix),
        "z": library.convert(z[0] + 1j * z[1]),
        "x": x,
        "y": y,
        "w": w,
        "r": w[:1],
        "h": x > 0.5,
    }


def elements_of(case: Case, sizes: Sizes) -> int:
    """How many elements the work of a case has."""
    own = {
        "sort": sizes.sorted,
        "matmul": sizes.matrix**2,
        "solve": sizes.matrix**2,
        "fft": sizes.transform,
        HOST: FEW,
    }
    return own.get(case.group, sizes.side**2)


def in_words_of(case: Case, library: str) -> str:
    """A case's statement for a library."""
    other = {"cupy": case.in_cupy, "torch": case.in_torch}.get(library)
    return other or case.statement


def measure(
    subject: peers.Library, *, quick: bool, say: Callable[[str], object]
) -> list[Measurement]:
    """Time each statement on numr and the peers that are installed, and a bare copy for the floor."""
    sizes, effort = (QUICK_SIZES, QUICK) if quick else (SIZES, FULL)
    present, absent = peers.load(("cupy", "torch"), peers.ON_CUDA)
    libraries = [subject, *present]
    names = {library.name: operands(library, sizes) for library in libraries}
    found = []
    for case in (*CASES, *CALLS):
        say(f"{case.group}: {case.label}")
        contenders = [
            Contender(
                library.name, in_words_of(case, library.name), names[library.name], library.wait
            )
            for library in libraries
        ]
        if case.moved:
            own = names[subject.name]
            contenders.append(Contender(FLOOR, "xp.asarray(a, copy=True)", own, subject.wait))
        series = compare(contenders, effort, count_wait=case.group != HOST)
        if case.moved:
            # A copy reads and writes 4 bytes for each element.
            series[FLOOR] = series[FLOOR].scaled(case.moved / 8)
        found.append(
            Measurement(
                NAME,
                case.group,
                case.label,
                subject.name,
                series,
                "complex64" if case.group == "fft" else "float32",
                elements_of(case, sizes),
                absent,
            )
        )
    say("pipelined copy beside products")
    found.append(overlap(subject, names[subject.name], sizes, effort))
    return found


def overlap(
    subject: peers.Library, names: Mapping[str, Any], sizes: Sizes, effort: Effort
) -> Measurement:
    """Time products of matrices, a pipelined copy to the host, and both at once, which share nothing but the start."""
    p = names["p"]
    device, runtime = p.device, p._client.runtime
    handle = runtime.allocate(sizes.moved, device)
    host = bytearray(sizes.moved)

    def compute() -> None:
        for _ in range(sizes.products):
            subject.xp.matmul(p, names["q"])

    def copy() -> None:
        event = runtime.record_compute_event(device)
        runtime.copy_from_device_pipelined(handle, host, device, event)

    def both() -> None:
        event = runtime.record_compute_event(device)
        compute()
        runtime.copy_from_device_pipelined(handle, host, device, event)
        subject.wait()

    try:
        contenders = [
            Contender(name, "f()", {"f": f}, subject.wait)
            for name, f in (("compute", compute), ("copy", copy), ("both", both))
        ]
        series = compare(contenders, effort)
    finally:
        runtime.deallocate(handle, sizes.moved, device)
    return Measurement(NAME, OVERLAP, "pipelined copy", "both", series, elements=sizes.moved)


def longer_of(series: Mapping[str, Series]) -> str:
    """Which of the two parts of :func:`overlap` takes longer: what both at once take at least."""
    return max(("compute", "copy"), key=lambda name: series[name].median)
