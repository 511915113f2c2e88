"""Captured and jitted programs beside eager code, compilers of other libraries and the floor of the memory."""

from __future__ import annotations

import importlib
import timeit
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

import numr
from benchmarks import add, first, peers, programs, wgpu
from benchmarks.add import FLOOR
from benchmarks.programs import Program
from benchmarks.timing import Contender, Effort, Measurement, Series, compare, constant, short
from numr.runtime import client_of, runtime

NAME: Final = "capture"

FULL: Final = Effort(rounds=7, samples=2, seconds=0.02)
QUICK: Final = Effort(rounds=1, samples=1, seconds=0.0001)
#: Launches whose host time is taken are few enough that none has to wait for the device.
LAUNCHES: Final = Effort(rounds=11, samples=3, seconds=0.0005)

#: Groups of measurements, where one is not a program.
SHORT: Final = "short"
LAUNCH: Final = "launch"

#: Bounds that are no peer's time.
BOUND: Final = wgpu.BOUND
_BOUNDS: Final = {SHORT: 30e-6, LAUNCH: 10e-6, first.GROUP: 0.1}

#: What a count says how many of there are: what a launch does, kernels and calls of libraries.
STEPS: Final = "steps"

TORCH: Final = "torch.compile"
JAX: Final = "jax.jit"
#: Compilers, and the libraries that they belong to.
COMPILERS: Final = {TORCH: "torch", JAX: "jax"}
_LEFT_OUT: Final = "is left out of quick runs, in which it would do nothing but compile"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is computed."""

    vectors: int
    #: How many rows, and elements in each.
    rows: tuple[int, int]


SIZES: Final = Sizes(10_000_000, (10_000, 1000))
#: Rows do not fit into the caches of GPUs.
GPU_SIZES: Final = Sizes(10_000_000, (100_000, 1000))
SOFTWARE_SIZES: Final = Sizes(1_000_000, (1000, 1000))
QUICK_SIZES: Final = Sizes(720, (24, 30))
DTYPES: Final = ("float32", "float64")


def graph_of(name: str) -> str:
    """Name a graph of numr that is launched, on memory that exists."""
    return f"{name}, graph"


def eager_of(name: str) -> str:
    """Name numr without a graph."""
    return f"{name}, eager"


def in_blocks(name: str) -> str:
    """Name numr jitted where there is no compiler."""
    return f"{name}, without llvmlite"


def on_software(group: str) -> str:
    """Name a group of measurements of an adapter that is no GPU, for which no goal is set."""
    return f"{group} on a software adapter"


def measure(
    subject: peers.Library, *, quick: bool, say: Callable[[str], object]
) -> list[Measurement]:
    """Measure what suits the runtime."""
    if subject.name == "numr.cpu":
        return on_cpu(subject, quick=quick, say=say)
    allocator: Any = client_of(
        runtime(subject.name.removeprefix("numr.")).default_device()
    ).allocator
    if subject.name == f"numr.{wgpu.RUNTIME}" and allocator.adapter.is_cpu:
        return on_software_adapter(subject, quick=quick, say=say)
    return on_gpu(subject, quick=quick, say=say)


# -------------------------------------------------------------------- contenders
def of_numr(
    subject: peers.Library, program: Program, values: Mapping[str, Any]
) -> tuple[list[Contender], int]:
    """Numr jitted, a launched graph and eager, and how many steps the graph has."""
    function = program.for_library(subject)
    graph = numr.capture(function, *(values[name] for name in program.arguments))
    names = {**values, "jitted": numr.jit(function), "eager": function, "graph": graph}
    name, wait = subject.name, subject.wait
    return [
        Contender(name, f"jitted{program.call}", names, wait),
        Contender(graph_of(name), "graph.launch()", names, wait),
        Contender(eager_of(name), f"eager{program.call}", names, wait),
    ], len(graph.nodes)


def without_compiler(
    subject: peers.Library, program: Program, values: Mapping[str, Any]
) -> Contender:
    """Numr jitted on the CPU, with NumPy in blocks in the place of compiled kernels."""
    names = {**values, "jitted": numr.jit(program.for_library(subject))}
    setting = partial(numr.config.override, jit=False)
    return Contender(in_blocks(subject.name), f"jitted{program.call}", names, subject.wait, setting)


def eager(library: peers.Library, program: Program, values: Mapping[str, Any]) -> Contender:
    """A peer as it is."""
    names = {**values, "eager": program.for_library(library)}
    return Contender(library.name, f"eager{program.call}", names, library.wait)


def in_numexpr(library: peers.Library, program: Program, values: Mapping[str, Any]) -> Contender:
    """Numexpr, which takes an expression as text."""
    names = {
        "evaluate": library.xp.evaluate,
        "text": program.in_numexpr,
        "own": {name: values[name] for name in program.arguments},
    }
    return Contender(library.name, "evaluate(text, local_dict=own)", names, library.wait)


def in_torch(
    library: peers.Library, program: Program, values: Mapping[str, Any], mode: str | None = None
) -> Contender:
    """PyTorch's compiler.

    Raises
    ------
    RuntimeError
        If it cannot compile here, for want of a compiler of C++, say.
    """
    compiled = library.xp.compile(program.for_library(library), dynamic=False, mode=mode)
    names = {**values, "compiled": compiled}
    compiled(*(values[name] for name in program.arguments))
    return Contender(TORCH, f"compiled{program.call}", names, library.wait)


def in_jax(library: peers.Library, program: Program, values: Mapping[str, Any]) -> Contender:
    """JAX's compiler. On the CPU each call is waited for, as others return when they are done."""
    jax = importlib.import_module("jax")
    names = {
        **values,
        "compiled": jax.jit(program.for_library(library)),
        "done": jax.block_until_ready,
    }
    call = f"compiled{program.call}"
    on_host = all(device.platform == "cpu" for device in values[program.arguments[0]].devices())
    return Contender(JAX, f"done({call})" if on_host else call, names, library.wait)


class Peers:
    """The peers of a run.

    Parameters
    ----------
    names : iterable of str
        Keys of ``makers``.
    makers : mapping of str to callable
        What makes each library, by its name.
    quick : bool
        Whether compilers that take seconds are left out.
    """

    def __init__(
        self,
        names: Iterable[str],
        makers: Mapping[str, Callable[[], peers.Library]],
        *,
        quick: bool,
    ) -> None:
        present, absent = peers.load(tuple(names), makers)
        self.libraries = {library.name: library for library in present}
        self.absent = dict(absent)
        for compiler, library in COMPILERS.items():
            if library in absent:
                self.absent[compiler] = absent[library]
            elif quick and compiler == TORCH:
                self.absent[compiler] = f"{compiler} {_LEFT_OUT}"

    def compiled(
        self, program: Program, values: Mapping[str, Mapping[str, Any]], mode: str | None = None
    ) -> list[Contender]:
        """The compilers at hand, with a program."""
        found = []
        if TORCH not in self.absent:
            try:
                library = self.libraries["torch"]
                found.append(in_torch(library, program, values["torch"], mode))
            except RuntimeError as error:
                self.absent[TORCH] = f"{TORCH} fails: {str(error).strip().splitlines()[0]}"
        if JAX not in self.absent:
            found.append(in_jax(self.libraries["jax"], program, values["jax"]))
        return found


# --------------------------------------------------------------------------- CPU
def on_cpu(
    subject: peers.Library, *, quick: bool, say: Callable[[str], object]
) -> list[Measurement]:
    """Time large programs in both dtypes, and first calls."""
    others = Peers(("torch", "jax", "numexpr"), peers.OPTIONAL, quick=quick)
    found = [
        measurement
        for dtype in DTYPES
        # A function of its own for each set of arrays, which dies before the next is made.
        for measurement in _on_cpu(subject, others, dtype, quick=quick, say=say)
    ]
    names = {subject.name: "numr.cpu"}
    if not quick:
        names |= {key: own for key, own in COMPILERS.items() if key not in others.absent}
    calls = first.measure(NAME, names, others.absent, quick=quick, say=say)
    return found + [_with_bound(m) for m in calls]


def _on_cpu(
    subject: peers.Library,
    others: Peers,
    dtype: str,
    *,
    quick: bool,
    say: Callable[[str], object],
) -> list[Measurement]:
    sizes, effort = (QUICK_SIZES, QUICK) if quick else (SIZES, FULL)
    numpy, expressions = peers.numpy(), others.libraries.get("numexpr")
    libraries = (subject, numpy, *others.libraries.values())
    values = {
        library.name: programs.operands(library, sizes.vectors, sizes.rows, dtype)
        for library in libraries
    }
    found = []
    with ThreadPoolExecutor(numr.config.num_threads) as pool:
        source = values[numpy.name]["a"]
        copy = partial(
            add.split_copy, source, np.zeros_like(source), numr.config.num_threads, run=pool.map
        )
        for program in (programs.CHAIN, programs.SUM_OF_EXP, *programs.NORMS):
            say(f"{program.name}, {short(sizes.vectors)} {dtype}")
            contenders, steps = of_numr(subject, program, values[subject.name])
            contenders.append(without_compiler(subject, program, values[subject.name]))
            contenders.append(eager(numpy, program, values[numpy.name]))
            if expressions is not None and program.in_numexpr is not None:
                contenders.append(in_numexpr(expressions, program, values["numexpr"]))
            contenders += others.compiled(program, values)
            contenders.append(Contender(FLOOR, "copy()", {"copy": copy}))
            series = compare(contenders, effort)
            # A copy reads and writes each element. All matrices have as many elements as a vector.
            series[FLOOR] = series[FLOOR].scaled(program.moved / 2)
            found.append(
                _measurement(program, program.name, subject, series, dtype, sizes, others, steps)
            )
    return found


# -------------------------------------------------------------------------- GPUs
def on_gpu(
    subject: peers.Library, *, quick: bool, say: Callable[[str], object]
) -> list[Measurement]:
    """Time large programs, and the host's time of short ones, beside what computes on the same GPU."""
    sizes, effort = (QUICK_SIZES, QUICK) if quick else (GPU_SIZES, FULL)
    others = Peers(("torch", "jax"), peers.ON_CUDA, quick=quick)
    torch = others.libraries.get("torch")
    libraries = (subject, *others.libraries.values())
    values = {
        library.name: programs.operands(library, sizes.vectors, sizes.rows, "float32")
        for library in libraries
    }
    copying = [subject] if torch is None else [subject, torch]
    found = []
    for program in (programs.CHAIN, *programs.NORMS):
        say(f"{program.name}, float32")
        contenders, steps = of_numr(subject, program, values[subject.name])
        if torch is not None:
            contenders.append(eager(torch, program, values["torch"]))
        contenders += others.compiled(program, values)
        source = program.arguments[0]
        contenders += wgpu.copies(copying, {key: own[source] for key, own in values.items()})
        if not quick:
            wgpu.awaken(contenders, subject, values[subject.name]["a"])
        series = wgpu.with_floor(compare(contenders, effort), program.moved / 2)
        found.append(
            _measurement(program, program.name, subject, series, "float32", sizes, others, steps)
        )
    found.append(_short(subject, others, values, effort, quick=quick, say=say))
    found.append(_launch(subject, others, values, quick=quick, say=say))
    return found


def _short(
    subject: peers.Library,
    others: Peers,
    values: Mapping[str, Mapping[str, Any]],
    effort: Effort,
    *,
    quick: bool,
    say: Callable[[str], object],
) -> Measurement:
    program = programs.SHORT
    say(f"{program.name}, {programs.FEW} float32")
    contenders, steps = of_numr(subject, program, values[subject.name])
    if "torch" in others.libraries:
        contenders.append(eager(others.libraries["torch"], program, values["torch"]))
    contenders += others.compiled(program, values, "reduce-overhead")
    if not quick:
        wgpu.awaken(contenders, subject, values[subject.name]["a"])
    series = compare(contenders, effort)
    return _with_bound(
        _measurement(program, SHORT, subject, series, "float32", None, others, steps)
    )


def _launch(
    subject: peers.Library,
    others: Peers,
    values: Mapping[str, Mapping[str, Any]],
    *,
    quick: bool,
    say: Callable[[str], object],
) -> Measurement:
    program = programs.LAUNCHED
    say(f"launch of {program.name}, {programs.FEW} float32")
    of_subject, steps = of_numr(subject, program, values[subject.name])
    # A launch alone is the subject here: a jitted call makes new arrays as well.
    contenders = [each for each in of_subject if each.name == graph_of(subject.name)]
    if "torch" in others.libraries:
        contenders.append(_graph_of_torch(others.libraries["torch"], program, values["torch"]))
    # What comes right before the timed launches is one of the same graph, for both.
    contenders = [replace(each, setting=partial(_after_a_call, each)) for each in contenders]
    series = compare(contenders, QUICK if quick else LAUNCHES, count_wait=False)
    found = _measurement(program, LAUNCH, subject, series, "float32", None, others, steps)
    return _with_bound(found)


@contextmanager
def _after_a_call(contender: Contender) -> Iterator[None]:
    """Call once, and wait, before what is timed."""
    timeit.Timer(contender.statement, globals=dict(contender.names)).timeit(1)
    contender.wait()
    yield


def _graph_of_torch(
    library: peers.Library, program: Program, values: Mapping[str, Any]
) -> Contender:
    """A CUDA graph that PyTorch captures."""
    torch = library.xp
    function = program.for_library(library)
    arguments = [values[name] for name in program.arguments]
    stream = torch.cuda.Stream()
    # Libraries have to be loaded, and memory reserved, before a capture.
    with torch.cuda.stream(stream):
        function(*arguments)
    library.wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(*arguments)
    names = {"graph": graph, "result": result}
    return Contender(graph_of(library.name), "graph.replay()", names, library.wait)


# ------------------------------------------------------------- software adapters
def on_software_adapter(
    subject: peers.Library, *, quick: bool, say: Callable[[str], object]
) -> list[Measurement]:
    """Time programs on numr and NumPy."""
    sizes, effort = (QUICK_SIZES, QUICK) if quick else (SOFTWARE_SIZES, FULL)
    numpy, none = peers.numpy(), Peers((), {}, quick=quick)
    values = {
        library.name: programs.operands(library, sizes.vectors, sizes.rows, "float32")
        for library in (subject, numpy)
    }
    found = []
    for program in (programs.CHAIN, programs.SUM_OF_EXP, *programs.NORMS, programs.SHORT):
        say(f"{program.name}, float32")
        contenders, steps = of_numr(subject, program, values[subject.name])
        contenders.append(eager(numpy, program, values[numpy.name]))
        series = compare(contenders, effort)
        group = on_software(SHORT if program is programs.SHORT else program.name)
        own = None if program is programs.SHORT else sizes
        found.append(_measurement(program, group, subject, series, "float32", own, none, steps))
    return found


# ------------------------------------------------------------------ measurements
def _measurement(
    program: Program,
    group: str,
    subject: peers.Library,
    series: Mapping[str, Series],
    dtype: str,
    sizes: Sizes | None,
    others: Peers,
    steps: int,
) -> Measurement:
    """A measurement; without sizes it is one of few elements."""
    elements = programs.FEW
    if sizes is not None:
        elements = int(np.prod(sizes.rows)) if program.arguments == "m" else sizes.vectors
    name = graph_of(subject.name) if group == LAUNCH else subject.name
    absent = {key: reason for key, reason in others.absent.items() if key not in series}
    return Measurement(
        NAME, group, program.name, name, series, dtype, elements, absent, {STEPS: steps}
    )


def _with_bound(found: Measurement) -> Measurement:
    """The measurement with its group's bound as one more contender, if it has one."""
    seconds = _BOUNDS.get(found.group)
    if seconds is None:
        return found
    series = {**found.series, BOUND: constant(seconds, found.series)}
    return replace(found, series=series)
