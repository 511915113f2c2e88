"""The table of docs/conformance.md: one row for each runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from conformance.suite import PIN, STANDARD_VERSION

BEGIN: Final = "<!-- status: begin -->"
END: Final = "<!-- status: end -->"

_COLUMNS: Final = (
    "Runtime",
    "Device",
    "Date",
    "Suite commit",
    "Standard",
    "Max examples",
    "Deadline",
    "Passed",
    "Failed",
    "Xfailed",
    "Xpassed",
    "Skipped",
    "numr",
)

_PAGE: Final = f"""\
# Conformance

Outcome of [data-apis/array-api-tests]({PIN.url}) at commit `{PIN.commit[:7]}` against version
{STANDARD_VERSION} of the [array API standard](https://data-apis.org/array-api/{STANDARD_VERSION}/).
`make conformance` runs the suite and writes the row of each runtime that is present. Passed,
failed, xfailed, xpassed and skipped count tests; skips show their reasons, and those called
flaky are marked so in the suite itself, for every library.

{BEGIN}
{END}
"""


class StatusError(Exception):
    """The page has no table to update."""


@dataclass(frozen=True, slots=True)
class Row:
    """One runtime's latest complete run."""

    runtime: str
    device: str
    date: str
    suite_commit: str
    standard: str
    max_examples: int
    deadline: str
    passed: int
    failed: int
    xfailed: int
    xpassed: int
    skipped: str
    numr: str

    def cells(self) -> tuple[str, ...]:
        """Cells in the order of the columns, safe inside a Markdown table."""
        values = (getattr(self, name) for name in self.__dataclass_fields__)
        return tuple(str(value).replace("|", "\\|").replace("\n", " ") for value in values)


def _key(line: str, keys: int) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.split("|")[1 : keys + 1])


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def update(page: str | None, row: Row) -> str:
    """Page with the row of this runtime replaced or added, all else as it was."""
    return with_row(_PAGE if page is None else page, _COLUMNS, row.cells())


def with_row(text: str, columns: tuple[str, ...], cells: tuple[str, ...], keys: int = 1) -> str:
    """Page whose table has a row with these cells, in the place of one whose first ``keys`` cells are the same."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise StatusError(f"the status page needs one {BEGIN!r} and, after it, one {END!r}")
    before, _, rest = text.partition(BEGIN)
    table, _, after = rest.partition(END)
    # The first two lines are the header and its rule.
    old = [line for line in table.splitlines() if line.startswith("|")][2:]
    rows = {_key(line, keys): line for line in old}
    rows[_key(_line(cells), keys)] = _line(cells)
    lines = [_line(columns), _line(("---",) * len(columns)), *(rows[key] for key in sorted(rows))]
    return f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}"
