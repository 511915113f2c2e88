"""numr.wgpu beside CuPy, PyTorch and the floor of the device's memory on a GPU, beside NumPy on a software adapter."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from benchmarks import device, peers
from benchmarks.add import FLOOR
from benchmarks.timing import Contender, Effort, Measurement, Series, compare, constant, short
from numr.runtime import client_of, runtime

NAME: Final = "wgpu"
#: The runtime that it is for.
RUNTIME: Final = "wgpu"

FULL: Final = Effort(rounds=5, samples=2, seconds=0.008)
QUICK: Final = Effort(rounds=1, samples=1, seconds=0.0001)

#: Three arrays of a gigabyte.
LARGE: Final = "large"
LARGE_ELEMENTS: Final = 250_000_000
CHAINED: Final = "chained"
#: Additions of few elements, one after the other, with a read at the end.
ADDITIONS: Final = 1000
SOFTWARE: Final = "software"
SOFTWARE_ELEMENTS: Final = 10_000_000
QUICK_ELEMENTS: Final = 720

#: Seconds of copies before each comparison: a GPU lowers its clocks while kernels are compiled.
_AWAKENING: Final = 0.15

#: Bounds that are no peer's time, as contenders: seconds of one call.
BOUND: Final = "bound"
_PRODUCT_RATE: Final = 12e12
_ADDITION: Final = 15e-6

_LEFT_OUT: Final = frozenset({"take rows", "take columns", "cumulative_prod axis=1", "solve"})
#: What is measured of the benchmark of CUDA, in the same words.
CASES: Final = tuple(case for case in device.CASES if case.label not in _LEFT_OUT)

#: Chains of elementwise operations, for each dtype on a software adapter.
STATEMENTS: Final[dict[str, str]] = {
    "a + b": "a + b",
    "a * b + c": "a * b + c",
    "sqrt": "xp.sqrt(a)",
    "exp": "xp.exp(a)",
    "sin": "xp.sin(a)",
    "tanh": "xp.tanh(a)",
    "exp(-a * a)": "xp.exp(-a * a)",
}
DTYPES: Final = ("float32", "float64")


def measure(
    subject: peers.Library, *, quick: bool, say: Callable[[str], object]
) -> list[Measurement]:
    """Measure what suits the adapter."""
    allocator: Any = client_of(runtime(RUNTIME).default_device()).allocator
    suitable = on_software if allocator.adapter.is_cpu else on_gpu
    return suitable(subject, quick=quick, say=say)


def on_software(
    subject: peers.Library, *, quick: bool, say: Callable[[str], object]
) -> list[Measurement]:
    """Time chains of elementwise operations on numr and NumPy."""
    elements = QUICK_ELEMENTS if quick else SOFTWARE_ELEMENTS
    peer, random, found = peers.numpy(), np.random.default_rng(0), []
    available = {str(dtype) for dtype in _dtypes(subject)}
    for dtype in filter(available.__contains__, DTYPES):
        values = [random.random(elements, dtype=np.dtype(dtype).type) + 0.5 for _ in range(3)]
        names = {
            library.name: dict(zip("abc", map(library.convert, values), strict=True))
            | {"xp": library.xp}
            for library in (subject, peer)
        }
        for label, statement in STATEMENTS.items():
            say(f"{label}, {short(elements)} {dtype}")
            contenders = [
                Contender(library.name, statement, names[library.name], library.wait)
                for library in (subject, peer)
            ]
            series = compare(contenders, QUICK if quick else FULL)
            found.append(Measurement(NAME, SOFTWARE, label, subject.name, series, dtype, elements))
    return found


def _dtypes(subject: peers.Library) -> list[Any]:
    return list(subject.xp.__array_namespace_info__().dtypes().values())


def on_gpu(
    subject: peers.Library, *, quick: bool, say: Callable[[str], object]
) -> list[Measurement]:
    """Time work of all kinds on numr and the peers that compute on the same GPU."""
    sizes = device.QUICK_SIZES if quick else device.SIZES
    effort = QUICK if quick else FULL
    present, absent = peers.load(("cupy", "torch"), peers.ON_CUDA)
    libraries = [subject, *present]
    names = {library.name: device.operands(library, sizes) for library in libraries}
    found = []
    for case in (*CASES, *device.CALLS):
        say(f"{case.group}: {case.label}")
        contenders = [
            Contender(
                library.name,
                device.in_words_of(case, library.name),
                names[library.name],
                library.wait,
            )
            for library in libraries
        ]
        if case.moved:
            contenders += copies(libraries, {k: own["a"] for k, own in names.items()})
        if not quick:
            awaken(contenders, subject, names[subject.name]["a"])
        series = compare(contenders, effort, count_wait=case.group != device.HOST)
        elements = device.elements_of(case, sizes)
        if case.moved:
            series = with_floor(series, case.moved / 8)
        if case.group == "matmul":
            series[BOUND] = constant(2 * sizes.matrix**3 / _PRODUCT_RATE, series)
        dtype = "complex64" if case.group == "fft" else "float32"
        found.append(
            Measurement(NAME, case.group, case.label, subject.name, series, dtype, elements, absent)
        )
    found.append(_chained(libraries, names, effort, absent, say))
    del names
    found.append(_large(libraries, QUICK_ELEMENTS if quick else LARGE_ELEMENTS, effort, say))
    return found


def awaken(contenders: list[Contender], subject: peers.Library, array: Any) -> None:
    """Have everything compiled, and then keep the GPU busy for a while."""
    for contender in contenders:
        timeit.Timer(contender.statement, globals=dict(contender.names)).timeit(1)
        contender.wait()
    end = time.perf_counter() + _AWAKENING
    while time.perf_counter() < end:
        for _ in range(10):
            subject.xp.asarray(array, copy=True)
        subject.wait()


def copies(libraries: list[peers.Library], arrays: Mapping[str, Any]) -> list[Contender]:
    """Ways to copy an array within the device: numr's kernel, and PyTorch's into memory that is there."""
    contenders = []
    for library in libraries:
        if library.name == "cupy":
            continue  # it copies as PyTorch does, but allocates meanwhile
        own = {"xp": library.xp, "a": arrays[library.name]}
        statement = "xp.asarray(a, copy=True)"
        if library.name == "torch":
            own["b"] = library.xp.empty_like(own["a"])
            statement = "b.copy_(a)"
        contenders.append(Contender(f"{FLOOR} of {library.name}", statement, own, library.wait))
    return contenders


def with_floor(series: Mapping[str, Series], factor: float) -> dict[str, Series]:
    """The contenders, with the quickest of the copies, times a factor, as the floor."""
    ways = [name for name in series if name.startswith(f"{FLOOR} of ")]
    quickest = min(ways, key=lambda name: series[name].median)
    result = {name: each for name, each in series.items() if name not in ways}
    return {**result, FLOOR: series[quickest].scaled(factor)}


#: How each library's array comes to the host.
_READS: Final[dict[str, Callable[[Any], object]]] = {
    "cupy": lambda array: array.get(),
    "torch": lambda array: array.cpu(),
}


def chain(x: Any, y: Any, read: Callable[[Any], object], count: int = ADDITIONS) -> object:
    """Add and add again, and read the result."""
    for _ in range(count):
        x = x + y
    return read(x)


def _chained(
    libraries: list[peers.Library],
    names: Mapping[str, Mapping[str, Any]],
    effort: Effort,
    absent: Mapping[str, str],
    say: Callable[[str], object],
) -> Measurement:
    say("chained additions")
    contenders = []
    for library in libraries:
        read = _READS.get(library.name, lambda array: array.to_numpy())
        own = {**names[library.name], "chain": chain, "read": read}
        contenders.append(Contender(library.name, "chain(x, y, read)", own, library.wait))
    series = {
        name: each.scaled(1 / ADDITIONS) for name, each in compare(contenders, effort).items()
    }
    series[BOUND] = constant(_ADDITION, series)
    label = f"{ADDITIONS} additions and a read"
    subject = libraries[0].name
    return Measurement(NAME, CHAINED, label, subject, series, "float32", device.FEW, absent)


def _large(
    libraries: list[peers.Library], elements: int, effort: Effort, say: Callable[[str], object]
) -> Measurement:
    say(f"a + b, {short(elements)} float32")
    subject = libraries[0]
    values = np.ones(elements, np.float32)
    arrays = {
        library.name: library.convert(values) for library in libraries if library.name != "cupy"
    }
    own = {"a": arrays[subject.name], "b": subject.convert(values)}
    contenders = [Contender(subject.name, "a + b", own, subject.wait)]
    contenders += copies(libraries, arrays)
    # Two arrays are read and one is written, where a copy reads one and writes one.
    series = with_floor(compare(contenders, effort), 3 / 2)
    return Measurement(NAME, LARGE, "a + b", subject.name, series, "float32", elements)
