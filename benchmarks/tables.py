"""Tables, and how times and ratios are written in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.timing import Measurement, Ratio, Series

_UNITS: Final = {"us": 1e6, "ms": 1e3}


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table; the first column is text, the others are figures."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    #: How many columns from the left are text.
    text_columns: int = 1

    def as_text(self) -> str:
        """Lay the table out in columns."""
        lines = [self.title, "=" * len(self.title)]
        if self.rows:
            table = (self.columns, *self.rows)
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            lines += [self._line(row, widths) for row in table]
            lines.insert(3, "  ".join("-" * width for width in widths))
        return "\n".join([*lines, *self.notes])

    def _line(self, row: tuple[str, ...], widths: Sequence[int]) -> str:
        cells = (
            f"{cell:<{width}}" if place < self.text_columns else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    def as_markdown(self) -> str:
        """Write the table in Markdown, under a heading of the third level."""
        lines = [f"### {self.title}", ""]
        if self.rows:
            rule = tuple(
                "---" if place < self.text_columns else "---:" for place in range(len(self.columns))
            )
            lines += [_markdown_line(row) for row in (self.columns, rule, *self.rows)]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines)


def _markdown_line(cells: Iterable[str]) -> str:
    safe = (cell.replace("|", "\\|").replace("*", "\\*") for cell in cells)
    return f"| {' | '.join(safe)} |"


def times(series: Series, unit: str) -> str:
    """Write a median and, in brackets, the best; ``unit`` is "us" or "ms"."""
    factor = _UNITS[unit]
    return f"{figure(series.median * factor)} ({figure(series.best * factor)})"


def figure(value: float) -> str:
    """Write three digits, and never an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def spread(found: Ratio) -> str:
    """Write a ratio and the range of the rounds."""
    return f"{found.value:.2f} [{found.low:.2f}-{found.high:.2f}]"


def absent(measurements: Iterable[Measurement]) -> tuple[str, ...]:
    """Say which contenders could not take part."""
    reasons = {reason: None for m in measurements for reason in m.absent.values()}
    return tuple(f"not measured: {reason}" for reason in reasons)
