"""The table in docs/capture.md of what a graph can hold, found out by capturing a call of each function.

python tools/capture_table.py          prints it
python tools/capture_table.py --write  puts it into the page, between its markers
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numr  # noqa: E402
from numr.errors import CaptureError  # noqa: E402
from tests.graph.functions import CALLS, operands  # noqa: E402

PAGE = ROOT / "docs" / "capture.md"
BEGIN, END = "<!-- functions: begin -->\n", "<!-- functions: end -->"


def table() -> str:
    """Functions by whether a graph holds them."""
    import numr.cpu as xp

    held: list[str] = []
    refused: list[str] = []
    for name, call in CALLS.items():
        try:
            numr.capture(lambda *args, call=call: call(xp, *args), *operands(xp))
        except CaptureError:
            refused.append(name)
        else:
            held.append(name)
    lines = ["| a graph holds | |", "| --- | --- |"]
    groups = {
        "functions": [name for name in held if "." not in name and "[" not in name],
        "`linalg`": [name.split(".")[1] for name in held if name.startswith("linalg.")],
        "`fft`": [name.split(".")[1] for name in held if name.startswith("fft.")],
        "indexing": [name for name in held if "[" in name],
    }
    for group, names in groups.items():
        lines.append(f"| {group} | {', '.join(f'`{name}`' for name in sorted(names))} |")
    shown = ", ".join(f"`{name}`" for name in sorted(refused))
    lines.append(f"| not: shapes depend on values | {shown} |")
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """A page with the table between its markers."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


def main() -> None:
    """Print the table, or write it."""
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(table())


if __name__ == "__main__":
    main()
