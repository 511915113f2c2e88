"""Timing of several contenders by turns, so that a drift of the machine's speed hits all of them.

A run has rounds. In each round every contender is sampled a few times, in an order that is turned round from
sample to sample. A sample is as many calls as fill a short time, and gives seconds for one call. Contenders are
compared within each round; what is reported is the median of the rounds' ratios, and their range.
"""

from __future__ import annotations

import math
import statistics
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

Clock = Callable[[], float]

#: Calls in one sample grow by at most this factor at a time while a contender's number is looked for.
_GROWTH: Final = 10


def _nothing() -> None:
    """Wait for nothing: the work of a call is done when it returns."""


@dataclass(frozen=True, slots=True)
class Contender:
    """Something to be timed: a statement and the names that it uses."""

    name: str
    statement: str
    names: Mapping[str, Any]
    #: Called after the calls of a sample, for libraries whose calls return before the work is done.
    wait: Callable[[], object] = _nothing
    #: Entered around each sample, outside of what is timed.
    setting: Callable[[], AbstractContextManager[object]] = nullcontext


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is timed."""

    rounds: int
    #: Samples of each contender in a round. Two make the order of a round symmetric.
    samples: int
    #: The least length of a sample.
    seconds: float


@dataclass(frozen=True, slots=True)
class Series:
    """Seconds for one call of one contender: the samples of each round."""

    rounds: tuple[tuple[float, ...], ...]

    @property
    def best(self) -> float:
        """The quickest sample."""
        return min(min(samples) for samples in self.rounds)

    @property
    def median(self) -> float:
        """The median of all samples."""
        return statistics.median(seconds for samples in self.rounds for seconds in samples)

    def scaled(self, factor: float) -> Series:
        """Multiply all samples by a number."""
        return Series(tuple(tuple(factor * s for s in samples) for samples in self.rounds))

    def as_json(self) -> dict[str, Any]:
        """Give the samples, the best and the median in what JSON has."""
        rounds = [list(samples) for samples in self.rounds]
        return {"best": self.best, "median": self.median, "rounds": rounds}


class Ratio(NamedTuple):
    """One contender's time over another's."""

    #: The median of the rounds' ratios.
    value: float
    low: float
    high: float


def ratio(subject: Series, peer: Series) -> Ratio:
    """Compare two contenders of one run.

    Parameters
    ----------
    subject, peer : Series
        Of equally many rounds, which were measured side by side.

    Returns
    -------
    Ratio
        Of the subject's time to the peer's: the median over the rounds of the ratio of the round's medians,
        with the lowest and the highest.

    Raises
    ------
    ValueError
        If the two have different numbers of rounds, so that they are not of one run.
    """
    if len(subject.rounds) != len(peer.rounds):
        raise ValueError(
            f"ratio: {len(subject.rounds)} and {len(peer.rounds)} rounds were not measured in one run"
        )
    ratios = [
        statistics.median(mine) / statistics.median(theirs)
        for mine, theirs in zip(subject.rounds, peer.rounds, strict=True)
    ]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of a benchmark: what was timed, and the contenders' times."""

    benchmark: str
    #: What kind of work it is; goals may be set for a group.
    group: str
    label: str
    #: The contender whose speed is in question.
    subject: str
    series: Mapping[str, Series]
    dtype: str = ""
    elements: int | None = None
    #: Contenders that could not take part, and why.
    absent: Mapping[str, str] = field(default_factory=dict)
    #: What was counted beside, such as kernels.
    counts: Mapping[str, int] = field(default_factory=dict)

    def ratio(self, peer: str, subject: str | None = None) -> Ratio:
        """Compare the subject, or another contender, with a peer."""
        return ratio(self.series[subject or self.subject], self.series[peer])

    @property
    def title(self) -> str:
        """Name the line among others: what, of how many elements, of which dtype."""
        size = "" if self.elements is None else f"{short(self.elements)} "
        return f"{self.label} {size}{self.dtype}".strip()

    def as_json(self) -> dict[str, Any]:
        """Give everything, with the ratio to each other contender, in what JSON has."""
        return {
            "benchmark": self.benchmark,
            "group": self.group,
            "label": self.label,
            "dtype": self.dtype,
            "elements": self.elements,
            "subject": self.subject,
            "seconds": {name: series.as_json() for name, series in self.series.items()},
            "ratios": {
                name: self.ratio(name)._asdict() for name in self.series if name != self.subject
            },
            "absent": dict(self.absent),
            "counts": dict(self.counts),
        }


def constant(seconds: float, series: Mapping[str, Series]) -> Series:
    """A time that is no contender's, for the same rounds."""
    rounds = next(iter(series.values())).rounds
    return Series(tuple((seconds,) for _ in rounds))


def short(count: int) -> str:
    """Write a number of elements as people say it: 10M, 1.5K, 12."""
    for unit, size in (("M", 1_000_000), ("K", 1_000)):
        if count >= size:
            return f"{count / size:.4g}{unit}"
    return str(count)


def alternate(
    samplers: Mapping[str, Callable[[], float]], rounds: int, samples: int
) -> dict[str, Series]:
    """Sample by turns.

    Parameters
    ----------
    samplers : mapping of str to callable
        Each call takes one sample and returns seconds.
    rounds, samples : int
        How many rounds, and samples of each contender in a round.

    Returns
    -------
    dict of str to Series
        In the order of ``samplers``.
    """
    taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in samplers}
    order = list(samplers)
    for _ in range(rounds):
        found: dict[str, list[float]] = {name: [] for name in samplers}
        for _ in range(samples):
            for name in order:
                found[name].append(samplers[name]())
            order.reverse()
        for name, seconds in found.items():
            taken[name].append(tuple(seconds))
    return {name: Series(tuple(each)) for name, each in taken.items()}


def compare(
    contenders: Sequence[Contender],
    effort: Effort,
    *,
    count_wait: bool = True,
    clock: Clock = time.perf_counter,
) -> dict[str, Series]:
    """Time contenders by turns.

    Parameters
    ----------
    contenders : sequence of Contender
        Of different names. Each makes as many calls in a sample as its own speed asks for.
    effort : Effort
        How much is timed.
    count_wait : bool
        Whether waiting for the work to be done is part of the time, or only the host's calls are.
    clock : callable
        Returns seconds.

    Returns
    -------
    dict of str to Series
        Seconds for one call, in the order of ``contenders``.
    """
    samplers: dict[str, Callable[[], float]] = {}
    for contender in contenders:
        if contender.name in samplers:
            raise ValueError(f"compare: two contenders are called {contender.name!r}")
        sample = _sampler(contender, count_wait, clock)
        # The first call may load, compile and fill caches.
        sample(1)
        samplers[contender.name] = partial(sample, calls_that_fill(effort.seconds, sample))
    return alternate(samplers, effort.rounds, effort.samples)


def calls_that_fill(seconds: float, sample: Callable[[int], float]) -> int:
    """Find how many calls take at least ``seconds``; ``sample(n)`` gives the seconds of one of n."""
    calls = 1
    while (taken := sample(calls) * calls) < seconds:
        wanted = calls * seconds / taken * 1.2 if taken > 0 else math.inf
        calls = max(2 * calls, math.ceil(min(wanted, calls * _GROWTH)))
    return calls


def _sampler(contender: Contender, count_wait: bool, clock: Clock) -> Callable[[int], float]:
    # The statement is compiled into the loop that repeats it, so that no call of ours is timed with it.
    timer = timeit.Timer(contender.statement, timer=clock, globals=dict(contender.names))

    def sample(calls: int) -> float:
        with contender.setting():
            taken = timer.timeit(calls)
            start = clock()
            contender.wait()
            if count_wait:
                taken += clock() - start
        return taken / calls

    return sample
