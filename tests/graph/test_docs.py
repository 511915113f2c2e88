"""The table of functions in the documentation is what capturing finds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_functions_is_current():
    spec = importlib.util.spec_from_file_location(
        "capture_table", ROOT / "tools" / "capture_table.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.PAGE.read_text(encoding="utf-8")
    assert module.with_table(page) == page, "run: python tools/capture_table.py --write"
    assert "`unique_values`" in page
