"""Tables of captured and jitted programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks import capture, first, programs
from benchmarks.tables import Table, absent, figure, times
from benchmarks.timing import Measurement, short

_FEW: Final = f"{programs.FEW} float32"
#: Groups of measurements that share a table, and its title; programs have one by themselves.
_TITLES: Final = {
    capture.SHORT: f"Jitted operations on {_FEW}: microseconds of a call, median",
    capture.LAUNCH: f"Launch of a graph on {_FEW}: microseconds of host time, median",
    first.GROUP: "First two calls of a new program: milliseconds, median (best)",
    first.ON_DISK: "First two calls in a process that finds compiled kernels: milliseconds, median (best)",
}


def capture_tables(measurements: Sequence[Measurement]) -> list[Table]:
    """Lay out programs: large ones in one table, and others in one for each group."""
    rest = [m for m in measurements if m.group not in _TITLES]
    tables = [_of_programs(rest)] if rest else []
    for group, title in _TITLES.items():
        members = [m for m in measurements if m.group == group]
        if not members:
            continue
        names = list(dict.fromkeys(name for m in members for name in m.series))
        names = [name for name in names if name != capture.BOUND]
        counts = list(members[0].counts)
        rows = []
        for m in members:
            cells = [
                times(m.series[name], "ms")
                if title.endswith("(best)")
                else figure(m.series[name].median * 1e6)
                for name in names
            ]
            rows.append((m.label, *cells, *(str(m.counts[count]) for count in counts)))
        tables.append(Table(title, ("", *names, *counts), tuple(rows), absent(members)))
    return tables


def _of_programs(measurements: Sequence[Measurement]) -> Table:
    """A program a row, a contender a column; the unit is that of the subject's times."""
    names = list(dict.fromkeys(name for m in measurements for name in m.series))
    shortest = min(m.series[m.subject].median for m in measurements)
    unit, factor = ("milliseconds", 1e3) if shortest >= 1e-3 else ("microseconds", 1e6)
    rows = (
        (
            m.label,
            m.dtype,
            short(m.elements or 0),
            *(figure(m.series[name].median * factor) if name in m.series else "" for name in names),
            str(m.counts[capture.STEPS]),
        )
        for m in measurements
    )
    columns = ("", "dtype", "elements", *names, capture.STEPS)
    title = f"Captured and jitted programs: {unit}, median"
    return Table(title, columns, tuple(rows), absent(measurements), text_columns=2)
