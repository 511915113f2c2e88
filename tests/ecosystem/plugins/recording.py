"""Writes a line of JSON for each phase of a test that says something, from the first process where there are several.

What is written stays if the run is broken off.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption("--outcomes", type=Path, help="write the outcome of each test to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Record in the first process only."""
    path = config.getoption("--outcomes")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(path), "numr-outcomes")


class _Recorder:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write the outcome of one phase of a test."""
        outcome = _outcome(report)
        if outcome is not None:
            self._write(report.nodeid, outcome, _message(report))

    def pytest_collectreport(self, report: Any) -> None:
        """Write that a file could not be collected."""
        if report.failed:
            self._write(report.nodeid, "error", _message(report))

    def _write(self, test: str, outcome: str, message: str) -> None:
        self._file.write(json.dumps([test, outcome, message]) + "\n")

    def pytest_sessionfinish(self) -> None:
        """Close the file."""
        self._file.close()


def _outcome(report: Any) -> str | None:
    expected = hasattr(report, "wasxfail")
    if report.skipped:
        return "xfailed" if expected else "skipped"
    if report.failed:
        return "failed" if report.when == "call" else "error"
    if report.when != "call":
        return None
    return "xpassed" if expected else "passed"


def _message(report: Any) -> str:
    if report.passed:
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr or "")
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""
