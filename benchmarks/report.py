"""Tables of a run, for the terminal and for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from benchmarks import add, capture, device, importing, large, small, wgpu
from benchmarks.capture_tables import capture_tables
from benchmarks.environment import Environment
from benchmarks.goals import State, Verdict
from benchmarks.tables import Table, absent, figure, spread, times
from benchmarks.timing import Measurement, short

BEGIN: Final = "<!-- benchmarks: begin -->"
END: Final = "<!-- benchmarks: end -->"

_FLOOR: Final = (
    "The floor is the time to move the sum's bytes (two arrays read, one written) as fast as a bare copy "
    "over all threads moves its own, measured by turns with the rest."
)


class PageError(Exception):
    """The page has no place for the results."""


def small_table(measurements: Sequence[Measurement]) -> Table:
    """Lay out the small calls: the contenders' times, then numr's time over each peer's."""
    first = measurements[0]
    others = [name for name in first.series if name != first.subject]
    rows = (
        (
            m.label,
            *(times(series, "us") for series in m.series.values()),
            *(f"{m.ratio(name).value:.2f}" for name in others),
        )
        for m in measurements
    )
    return Table(
        "Small calls: microseconds of host time, median (best)",
        ("4 float64", *first.series, *(f"{first.subject}/{name}" for name in others)),
        tuple(rows),
        absent(measurements),
    )


def add_table(measurement: Measurement) -> Table:
    """Lay out ``a + b``: each contender's time beside NumPy's and the floor's."""
    assert measurement.elements is not None
    moved = 3 * 8 * measurement.elements
    rows = (
        (
            name,
            times(series, "ms"),
            f"{moved / series.median / 1e9:.1f}",
            spread(measurement.ratio("numpy", name)),
            f"{measurement.ratio(add.FLOOR, name).value:.2f}",
        )
        for name, series in measurement.series.items()
    )
    return Table(
        f"a + b of {short(measurement.elements)} float64: milliseconds, median (best)",
        ("", "time", "GB/s", "over numpy [range of rounds]", "over floor"),
        tuple(rows),
        (_FLOOR, *absent([measurement])),
    )


def large_tables(measurements: Sequence[Measurement]) -> list[Table]:
    """Lay out large work in full: a table for each group, a row for each measurement."""
    tables = []
    ordered = sorted(measurements, key=lambda m: _first_places(measurements)[m.group])
    for group, members in groupby(ordered, key=lambda m: m.group):
        rows = []
        for m in members:
            (peer,) = (name for name in m.series if name != m.subject)
            cells = (times(m.series[name], "ms") for name in (m.subject, peer))
            rows.append((m.label, m.dtype, short(m.elements or 0), *cells, spread(m.ratio(peer))))
        first = measurements[0]
        columns = ("", "dtype", "elements", *first.series, "ratio [range of rounds]")
        title = f"Large: {group}, milliseconds, median (best)"
        tables.append(Table(title, columns, tuple(rows), text_columns=2))
    return tables


def large_summary(measurements: Sequence[Measurement]) -> Table:
    """Lay out large work in short: ratios to NumPy, an operation a row, a size and dtype a column."""
    subject = measurements[0].subject
    sizes = list(dict.fromkeys(m.elements or 0 for m in measurements))
    floats = list(dict.fromkeys(m.dtype for m in measurements if m.dtype.startswith("float")))
    columns = [(size, dtype) for dtype in floats for size in sizes]
    # A measurement on booleans stands in the first columns: it has no second dtype.
    by_row: dict[tuple[str, str, str], dict[tuple[int, str], str]] = {}
    for m in measurements:
        column = m.dtype if m.dtype in floats else floats[0]
        shown = "" if m.dtype in floats else m.dtype
        row = by_row.setdefault((m.group, m.label, shown), {})
        row[m.elements or 0, column] = f"{m.ratio('numpy').value:.2f}"
    rows = (
        (group, f"{label} {shown}".strip(), *(row.get(column, "") for column in columns))
        for (group, label, shown), row in by_row.items()
    )
    return Table(
        f"Large: time of {subject} over NumPy's, median of the rounds",
        ("group", "operation", *(f"{short(size)} {dtype}" for size, dtype in columns)),
        tuple(rows),
        text_columns=2,
    )


def device_tables(measurements: Sequence[Measurement]) -> list[Table]:
    """Lay out work on a GPU: microseconds of each contender, and how near numr comes to the floor."""
    tables = []
    chosen = {
        "Bound by memory: microseconds, median": device.MEMORY,
        "Libraries: microseconds, median": device.LIBRARIES,
        f"Host time of calls on {device.FEW} float32: microseconds, median": (device.HOST,),
    }
    for title, groups in chosen.items():
        members = [m for m in measurements if m.group in groups]
        if not members:
            continue
        has_floor = groups is device.MEMORY
        names = [name for name in members[0].series if name != add.FLOOR]
        head = ("group", "operation", *(("floor",) if has_floor else ()), *names)
        rows = []
        for m in members:
            shown = ([add.FLOOR] if has_floor else []) + names
            cells = [figure(m.series[name].median * 1e6) for name in shown]
            if has_floor:
                cells.append(f"{1 / m.ratio(add.FLOOR).value:.0%}")
            rows.append(
                (m.group, m.label if m.group != m.label else short(m.elements or 0), *cells)
            )
        share = ("numr of floor",) if has_floor else ()
        tables.append(Table(title, (*head, *share), tuple(rows), absent(members), 2))
    for m in measurements:
        if m.group == device.OVERLAP:
            found = m.ratio(device.longer_of(m.series))
            cells = tuple(times(series, "ms") for series in m.series.values())
            tables.append(
                Table(
                    f"Pipelined copy of {short(m.elements or 0)} bytes: milliseconds, median (best)",
                    (*m.series, "both over the longer one"),
                    ((*cells, spread(found)),),
                    text_columns=0,
                )
            )
    return tables


def wgpu_tables(measurements: Sequence[Measurement]) -> list[Table]:
    """Lay out work through WebGPU: on a GPU as for CUDA, on a software adapter beside NumPy."""
    tables = device_tables(measurements)
    for m in measurements:
        if m.group == wgpu.LARGE:
            shown = [times(m.series[name], "us") for name in (add.FLOOR, m.subject)]
            share = f"{1 / m.ratio(add.FLOOR).value:.0%}"
            columns: tuple[str, ...] = (add.FLOOR, m.subject, f"{m.subject} of floor")
            title = f"a + b of {short(m.elements or 0)} float32: microseconds, median (best)"
            tables.append(Table(title, columns, ((*shown, share),), text_columns=0))
        elif m.group == wgpu.CHAINED:
            names = [name for name in m.series if name != wgpu.BOUND]
            shown = [times(m.series[name], "us") for name in names]
            title = (
                f"{m.label} of {m.elements} float32: microseconds for an addition, median (best)"
            )
            tables.append(Table(title, tuple(names), (tuple(shown),), text_columns=0))
    chains = [m for m in measurements if m.group == wgpu.SOFTWARE]
    if chains:
        names = list(chains[0].series)
        rows = (
            (
                m.label,
                m.dtype,
                *(times(series, "ms") for series in m.series.values()),
                spread(m.ratio("numpy")),
            )
            for m in chains
        )
        title = f"Chains of {short(chains[0].elements or 0)} elements: milliseconds, median (best)"
        columns = ("", "dtype", *names, "over numpy [range of rounds]")
        tables.append(Table(title, columns, tuple(rows), text_columns=2))
    return tables


def import_table(measurement: Measurement) -> Table:
    """Lay out import times."""
    rows = (
        (name, times(series, "ms"), spread(measurement.ratio("import numpy", name)))
        for name, series in measurement.series.items()
    )
    return Table(
        "Import in a fresh interpreter: milliseconds, median (best)",
        ("", "time", "over import numpy [range of rounds]"),
        tuple(rows),
    )


def goals_table(verdicts: Sequence[Verdict]) -> Table:
    """Lay out the goals and, below them, each measurement that is beyond its goal."""
    rows = []
    notes = []
    for verdict in verdicts:
        goal = verdict.goal
        bound = goal.bound
        if verdict.state is State.NOT_MEASURED:
            outcome, found = f"{verdict.state}: {verdict.reason}", "-"
        else:
            worst = verdict.found[0][1]
            outcome = str(verdict.state)
            found = spread(worst) if goal.count is None else f"{worst.value:.0f}"
            if len(verdict.found) > 1:
                found += f" (worst of {len(verdict.found)}: {verdict.found[0][0].title})"
            if not verdict.in_every_round:
                outcome += ", not in every round"
        if verdict.missed and len(verdict.found) > 1:
            outcome += f", {len(verdict.missed)} of {len(verdict.found)} beyond"
            digits = 2 if goal.count is None else 0
            beyond = "; ".join(f"{m.title} {r.value:.{digits}f}" for m, r in verdict.missed)
            notes.append(f"Beyond {bound}, {goal.name}: {beyond}.")
        rows.append((goal.name, goal.target, bound, found, outcome))
    return Table(
        "Goals",
        ("goal", "target", "bound", "this run [range of rounds]", "outcome"),
        tuple(rows),
        tuple(notes),
        text_columns=5,
    )


def _first_places(measurements: Sequence[Measurement]) -> dict[str, int]:
    return {
        group: place for place, group in enumerate(dict.fromkeys(m.group for m in measurements))
    }


def _tables(measurements: Sequence[Measurement], *, full: bool) -> list[Table]:
    by_name = {
        name: [m for m in measurements if m.benchmark == name]
        for name in (
            small.NAME,
            add.NAME,
            large.NAME,
            device.NAME,
            wgpu.NAME,
            importing.NAME,
            capture.NAME,
        )
    }
    tables = []
    if found := by_name[small.NAME]:
        tables.append(small_table(found))
    tables += [add_table(m) for m in by_name[add.NAME]]
    if found := by_name[large.NAME]:
        tables += large_tables(found) if full else [large_summary(found)]
    tables += device_tables(by_name[device.NAME])
    tables += wgpu_tables(by_name[wgpu.NAME])
    tables += [import_table(m) for m in by_name[importing.NAME]]
    tables += capture_tables(by_name[capture.NAME])
    return tables


def text(
    environment: Environment, measurements: Sequence[Measurement], verdicts: Sequence[Verdict]
) -> str:
    """Write a run for the terminal, the goals last."""
    tables = [*_tables(measurements, full=True), goals_table(verdicts)]
    return "\n\n".join(["\n".join(environment.lines()), *(table.as_text() for table in tables)])


def markdown(
    environment: Environment,
    measurements: Sequence[Measurement],
    verdicts: Sequence[Verdict],
    command: str,
) -> str:
    """Write a run for docs/benchmarks.md, the goals first and large work in short."""
    tables = [goals_table(verdicts), *_tables(measurements, full=False)]
    head = [f"From `{command}`. {' '.join(environment.lines())}"]
    return "\n\n".join([*head, *(table.as_markdown() for table in tables)])


def updated(page: str, results: str) -> str:
    """Put results between the markers of a page, in the place of what was there.

    Raises
    ------
    PageError
        If the page does not have each marker once, in order.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise PageError(f"the page needs one line {BEGIN!r} and, after it, one line {END!r}")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{results}\n{END}{after}"
