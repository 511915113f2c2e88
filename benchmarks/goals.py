"""What numr's speed is meant to be, as data, and whether a run found it so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from benchmarks import add, capture, device, first, importing, large, programs, small, wgpu
from benchmarks.timing import Measurement, Ratio


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on the ratio of numr's time to a peer's, or on a count, for all measurements that it covers."""

    name: str
    #: In words, as it was set.
    target: str
    benchmark: str
    groups: tuple[str, ...]
    #: Empty where a count is bounded.
    peer: str
    at_most: float
    #: Only the measurement of this label, where a group has others.
    label: str | None = None
    #: The contender to judge, where it is not the measurement's subject.
    subject: str | None = None
    #: The fewest and the most elements.
    elements: tuple[int, int] | None = None
    #: The runtime that it is set for.
    runtime: str = "cpu"
    #: What is counted, where no time is meant.
    count: str | None = None

    @property
    def bound(self) -> str:
        """What is allowed, in short."""
        return (
            f"{self.at_most:.0f} {self.count}"
            if self.count
            else f"{self.at_most:.2f} x {self.peer}"
        )

    def covers(self, measurement: Measurement) -> bool:
        """Whether a measurement is one of those that the goal is about."""
        low, high = self.elements or (0, 0)
        return (
            measurement.benchmark == self.benchmark
            and measurement.group in self.groups
            and self.label in (None, measurement.label)
            and (self.elements is None or low <= (measurement.elements or 0) <= high)
        )

    def found(self, measurement: Measurement) -> Ratio:
        """What a measurement says of the goal; a count is the same in all rounds."""
        if self.count is None:
            return measurement.ratio(self.peer, self.subject)
        count = measurement.counts[self.count]
        return Ratio(count, count, count)


_LARGE: Final = (large.SIZES[0], large.SIZES[-1])
_WITHOUT_LLVMLITE: Final = capture.in_blocks("numr.cpu")
_ROWS: Final = tuple(program.name for program in programs.NORMS)
_SUMS_AND_SOFTMAX: Final = (programs.SUM_OF_EXP.name, programs.SOFTMAX.name)


def _over_rows(where: str, runtime: str) -> tuple[Goal, ...]:
    """Goals of programs over rows on GPUs: their time, and how many kernels they take."""
    return (
        Goal(
            name=f"jitted softmax, layer norm, mean and variance of 100M on {where}",
            target="at most 1.5 of the time to move the memory, each",
            benchmark=capture.NAME,
            groups=_ROWS,
            peer=add.FLOOR,
            at_most=1.5,
            runtime=runtime,
        ),
        Goal(
            name=f"steps of softmax, layer norm, mean and variance on {where}",
            target="two kernels or fewer, each",
            benchmark=capture.NAME,
            groups=_ROWS,
            peer="",
            at_most=2,
            runtime=runtime,
            count=capture.STEPS,
        ),
    )


#: Scans and selections are measured without a goal.
GOALS: Final[tuple[Goal, ...]] = (
    Goal(
        name="x + y of 4 float64",
        target="at most 0.9 of PyTorch's eager time",
        benchmark=small.NAME,
        groups=("call",),
        label="x + y",
        peer="torch",
        at_most=0.9,
    ),
    Goal(
        name="a + b of 10M float64",
        target="at least 2.0 times NumPy's speed on two cores",
        benchmark=add.NAME,
        groups=("add",),
        elements=(add.ELEMENTS, add.ELEMENTS),
        subject=add.with_threads("numr.cpu", 2),
        peer="numpy",
        at_most=1 / 2.0,
    ),
    Goal(
        name="elementwise functions, 1M to 30M",
        target="at most 1.1 of NumPy's time, each",
        benchmark=large.NAME,
        groups=("elementwise", "comparison", "broadcast", "cast", "where"),
        elements=_LARGE,
        peer="numpy",
        at_most=1.1,
    ),
    Goal(
        name="copies, 1M to 30M",
        target="at most 1.1 of NumPy's time, each",
        benchmark=large.NAME,
        groups=("copy", "concat"),
        elements=_LARGE,
        peer="numpy",
        at_most=1.1,
    ),
    Goal(
        name="reductions, 1M to 30M",
        target="at most 1.1 of NumPy's time, each",
        benchmark=large.NAME,
        groups=("reduction",),
        elements=_LARGE,
        peer="numpy",
        at_most=1.1,
    ),
    Goal(
        name="import numr",
        target="under 1.3 of NumPy's import time",
        benchmark=importing.NAME,
        groups=("import",),
        peer="import numpy",
        at_most=1.3,
    ),
    Goal(
        name="memory-bound work on CUDA, 100M",
        target="at least 70 % of the rate of a copy, each",
        benchmark=device.NAME,
        groups=device.MEMORY,
        elements=(device.SIZES.side**2, device.SIZES.side**2),
        peer=add.FLOOR,
        at_most=1 / 0.7,
        runtime=device.RUNTIME,
    ),
    Goal(
        name="libraries on CUDA",
        target="at most 1.05 of CuPy's time, each",
        benchmark=device.NAME,
        groups=device.LIBRARIES,
        peer="cupy",
        at_most=1.05,
        runtime=device.RUNTIME,
    ),
    Goal(
        name="x + y of 1024 float32 on CUDA, beside CuPy",
        target="at most CuPy's host time",
        benchmark=device.NAME,
        groups=(device.HOST,),
        label="x + y",
        peer="cupy",
        at_most=1.0,
        runtime=device.RUNTIME,
    ),
    Goal(
        name="x + y of 1024 float32 on CUDA, beside PyTorch",
        target="at most PyTorch's host time",
        benchmark=device.NAME,
        groups=(device.HOST,),
        label="x + y",
        peer="torch",
        at_most=1.0,
        runtime=device.RUNTIME,
    ),
    Goal(
        name="a + b of three arrays of 1 GB on a GPU through WebGPU",
        target="at least 90 % of the rate of a copy",
        benchmark=wgpu.NAME,
        groups=(wgpu.LARGE,),
        peer=add.FLOOR,
        at_most=1 / 0.9,
        runtime=wgpu.RUNTIME,
    ),
    Goal(
        name="sums, 100M on a GPU through WebGPU",
        target="at least 60 % of the rate of a copy, each",
        benchmark=wgpu.NAME,
        groups=("reduction",),
        peer=add.FLOOR,
        at_most=1 / 0.6,
        runtime=wgpu.RUNTIME,
    ),
    Goal(
        name="running sums, 100M on a GPU through WebGPU",
        target="at least 60 % of the rate of a copy, each",
        benchmark=wgpu.NAME,
        groups=("scan",),
        peer=add.FLOOR,
        at_most=1 / 0.6,
        runtime=wgpu.RUNTIME,
    ),
    Goal(
        name="copy of the transpose, 100M on a GPU through WebGPU",
        target="at least 60 % of the rate of a copy",
        benchmark=wgpu.NAME,
        groups=("copy",),
        label="transposed",
        peer=add.FLOOR,
        at_most=1 / 0.6,
        runtime=wgpu.RUNTIME,
    ),
    Goal(
        name="matrix product, 4096 x 4096 float32 on a GPU through WebGPU",
        target="at least 12 TFLOP/s",
        benchmark=wgpu.NAME,
        groups=("matmul",),
        peer=wgpu.BOUND,
        at_most=1.0,
        runtime=wgpu.RUNTIME,
    ),
    Goal(
        name="sort, 10M float32 on a GPU through WebGPU",
        target="at most 8 times CuPy's time",
        benchmark=wgpu.NAME,
        groups=("sort",),
        peer="cupy",
        at_most=8.0,
        runtime=wgpu.RUNTIME,
    ),
    Goal(
        name="chained additions of 1024 float32 on a GPU through WebGPU",
        target="at most 15 us each, with a read of the last",
        benchmark=wgpu.NAME,
        groups=(wgpu.CHAINED,),
        peer=wgpu.BOUND,
        at_most=1.0,
        runtime=wgpu.RUNTIME,
    ),
    Goal(
        name="elementwise chains, 10M on a software adapter",
        target="at most 3 times NumPy's time, each",
        benchmark=wgpu.NAME,
        groups=(wgpu.SOFTWARE,),
        peer="numpy",
        at_most=3.0,
        runtime=wgpu.RUNTIME,
    ),
    Goal(
        name="jitted chain of 10M on the CPU, beside NumPy",
        target="at least 8 times NumPy's speed on two cores, each dtype",
        benchmark=capture.NAME,
        groups=(programs.CHAIN.name,),
        peer="numpy",
        at_most=1 / 8,
    ),
    Goal(
        name="jitted chain of 10M on the CPU, beside PyTorch's compiler",
        target="at most 0.7 of torch.compile's time, each dtype",
        benchmark=capture.NAME,
        groups=(programs.CHAIN.name,),
        peer=capture.TORCH,
        at_most=0.7,
    ),
    Goal(
        name="jitted chain of 10M without llvmlite, beside NumPy",
        target="at least 2.3 times NumPy's speed on two cores, each dtype",
        benchmark=capture.NAME,
        groups=(programs.CHAIN.name,),
        subject=_WITHOUT_LLVMLITE,
        peer="numpy",
        at_most=1 / 2.3,
    ),
    Goal(
        name="jitted chain of 10M without llvmlite, beside numexpr",
        target="at most numexpr's time, each dtype",
        benchmark=capture.NAME,
        groups=(programs.CHAIN.name,),
        subject=_WITHOUT_LLVMLITE,
        peer="numexpr",
        at_most=1.0,
    ),
    Goal(
        name="jitted sum of exp and softmax of 10M on the CPU",
        target="at most 1.3 of the time to move the memory, each",
        benchmark=capture.NAME,
        groups=_SUMS_AND_SOFTMAX,
        peer=add.FLOOR,
        at_most=1.3,
    ),
    Goal(
        name="first two calls of a new program on the CPU",
        target="under 100 ms, in a fresh process too",
        benchmark=capture.NAME,
        groups=(first.GROUP,),
        peer=capture.BOUND,
        at_most=1.0,
    ),
    Goal(
        name="compiled kernels on disk, on the CPU",
        target="a second process compiles none again",
        benchmark=capture.NAME,
        groups=(first.ON_DISK,),
        peer="",
        at_most=0,
        count=first.COMPILED,
    ),
    Goal(
        name="jitted chain of 10M on CUDA, beside PyTorch's compiler",
        target="at most 1.1 of torch.compile's time",
        benchmark=capture.NAME,
        groups=(programs.CHAIN.name,),
        peer=capture.TORCH,
        at_most=1.1,
        runtime=device.RUNTIME,
    ),
    Goal(
        name="jitted chain of 10M on CUDA",
        target="at most 1.25 of the time to move the memory",
        benchmark=capture.NAME,
        groups=(programs.CHAIN.name,),
        peer=add.FLOOR,
        at_most=1.25,
        runtime=device.RUNTIME,
    ),
    Goal(
        name="jitted call of 101 operations on 4096 float32 on CUDA",
        target="at most 30 us",
        benchmark=capture.NAME,
        groups=(capture.SHORT,),
        peer=capture.BOUND,
        at_most=1.0,
        runtime=device.RUNTIME,
    ),
    Goal(
        name="launch of a graph of 100 kernels on CUDA",
        target="at most 10 us of host time",
        benchmark=capture.NAME,
        groups=(capture.LAUNCH,),
        peer=capture.BOUND,
        at_most=1.0,
        runtime=device.RUNTIME,
    ),
    *_over_rows("CUDA", device.RUNTIME),
    Goal(
        name="jitted chain of 10M on a GPU through WebGPU",
        target="at least 80 % of the rate of a copy",
        benchmark=capture.NAME,
        groups=(programs.CHAIN.name,),
        peer=add.FLOOR,
        at_most=1 / 0.8,
        runtime=wgpu.RUNTIME,
    ),
    Goal(
        name="launched graph of 101 operations on a GPU through WebGPU",
        target="at least 5 times the speed of eager calls",
        benchmark=capture.NAME,
        groups=(capture.SHORT,),
        subject=capture.graph_of("numr.wgpu"),
        peer=capture.eager_of("numr.wgpu"),
        at_most=1 / 5,
        runtime=wgpu.RUNTIME,
    ),
    *_over_rows("a GPU through WebGPU", wgpu.RUNTIME),
)


class State(StrEnum):
    """What a run says of a goal."""

    MET = "met"
    MISSED = "missed"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A goal, what a run says of it, and on what grounds."""

    goal: Goal
    state: State
    #: Why nothing was measured; empty where something was.
    reason: str = ""
    #: The measurements with their ratios, the worst first.
    found: tuple[tuple[Measurement, Ratio], ...] = ()

    @property
    def missed(self) -> tuple[tuple[Measurement, Ratio], ...]:
        """The measurements beyond the bound, the worst first."""
        return tuple((m, r) for m, r in self.found if r.value > self.goal.at_most)

    @property
    def in_every_round(self) -> bool:
        """Whether all rounds of the worst measurement are on the side of the bound that their median is on."""
        if not self.found:
            return False
        worst = self.found[0][1]
        return worst.high <= self.goal.at_most or worst.low > self.goal.at_most

    def as_json(self) -> dict[str, Any]:
        """Give the outcome in what JSON has."""
        return {
            "goal": self.goal.name,
            "target": self.goal.target,
            "peer": self.goal.peer,
            "count": self.goal.count,
            "at_most": self.goal.at_most,
            "state": str(self.state),
            "reason": self.reason,
            "in_every_round": self.in_every_round,
            "measurements": len(self.found),
            "worst": self.found[0][1]._asdict() if self.found else None,
            "missed": {m.title: r.value for m, r in self.missed},
        }


def evaluate(
    measurements: Sequence[Measurement],
    *,
    runtime: str,
    quick: bool,
    goals: Iterable[Goal] = GOALS,
) -> list[Verdict]:
    """Judge each goal by a run.

    Parameters
    ----------
    measurements : sequence of Measurement
        All of the run.
    runtime : str
        The runtime that was measured.
    quick : bool
        Whether the run was too short, and its arrays too small, to say anything.
    goals : iterable of Goal
        What to judge.

    Returns
    -------
    list of Verdict
        One for each goal. A goal is met if the ratio of every measurement that it covers is within its bound.
    """
    return [_verdict(goal, measurements, runtime, quick) for goal in goals]


def _verdict(goal: Goal, measurements: Sequence[Measurement], runtime: str, quick: bool) -> Verdict:
    def not_measured(reason: str) -> Verdict:
        return Verdict(goal, State.NOT_MEASURED, reason)

    if quick:
        return not_measured("a quick run is too short to judge")
    if runtime != goal.runtime:
        return not_measured(f"the goal is set for the runtime {goal.runtime}")
    covered = [m for m in measurements if goal.covers(m)]
    if not covered:
        if any(m.benchmark == goal.benchmark for m in measurements):
            return not_measured(f"the benchmark {goal.benchmark} does not do that on this device")
        return not_measured(f"the benchmark {goal.benchmark} was not run")
    for measurement in covered:
        if goal.peer in measurement.absent:
            return not_measured(measurement.absent[goal.peer])
        if goal.subject is not None and goal.subject not in measurement.series:
            return not_measured(f"there was no {goal.subject!r} in this run")
        if goal.count is not None and goal.count not in measurement.counts:
            return not_measured(f"there was nothing to count as {goal.count}")
    found = [(m, goal.found(m)) for m in covered]
    found.sort(key=lambda pair: pair[1].value, reverse=True)
    state = State.MET if found[0][1].value <= goal.at_most else State.MISSED
    return Verdict(goal, state, found=tuple(found))
