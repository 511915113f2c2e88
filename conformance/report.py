"""Read the suite's report: counts, reasons of skips, and whether the run proves anything."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.xfails import Xfail

# Reasons that the suite writes on its own tests whatever the module: test_remainder is marked
# `skip(reason="flaky")`. Any other skip is caused by the module under test or by its options.
SUITE_SKIPS: Final = frozenset({"flaky"})

_STAGES: Final = ("setup", "call", "teardown")
_TEST_ERRORS: Final = 1  # pytest's exit code where tests ran and some failed


class ReportError(Exception):
    """The report is absent or not in the form that pytest-json-report writes."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One run of the suite; every field but the two counts holds test ids or texts by test id."""

    passed: tuple[str, ...]
    failed: dict[str, str]
    xfailed: tuple[str, ...]
    xpassed: tuple[str, ...]
    skipped: dict[str, str]
    collected: int
    deselected: int

    @property
    def tests(self) -> list[str]:
        """Ids of all tests that have an outcome."""
        return [*self.passed, *self.failed, *self.xfailed, *self.xpassed, *self.skipped]

    @property
    def ran(self) -> int:
        """Number of tests whose code was run."""
        return len(self.passed) + len(self.failed) + len(self.xfailed) + len(self.xpassed)

    def skips_by_reason(self) -> dict[str, list[str]]:
        """Ids of the skipped tests under the reason given for them."""
        groups: dict[str, list[str]] = {}
        for test, reason in self.skipped.items():
            groups.setdefault(reason, []).append(test)
        return groups

    def foreign_skips(self) -> dict[str, list[str]]:
        """Skips that are not the suite's own: each hides something that the module lacks."""
        return {
            reason: tests
            for reason, tests in self.skips_by_reason().items()
            if reason not in SUITE_SKIPS
        }


def load(path: Path) -> Summary:
    """Read the report that pytest-json-report wrote."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ReportError(f"the suite wrote no report to {path}: it ended too early") from None
    try:
        return summarise(json.loads(text))
    except json.JSONDecodeError as error:
        raise ReportError(f"{path} is no JSON: {error}") from error


def summarise(report: dict[str, Any]) -> Summary:
    """Sort the tests of a report by outcome."""
    try:
        tests = report["tests"]
        counts = report["summary"]
        collected = counts["collected"]
    except KeyError as error:
        raise ReportError(f"the report has no field {error}") from error
    passed: list[str] = []
    failed: dict[str, str] = {}
    xfailed: list[str] = []
    xpassed: list[str] = []
    skipped: dict[str, str] = {}
    for test in tests:
        name, outcome = test["nodeid"], test["outcome"]
        if outcome == "passed":
            passed.append(name)
        elif outcome in ("failed", "error"):
            failed[name] = _crash(test)
        elif outcome == "xfailed":
            xfailed.append(name)
        elif outcome == "xpassed":
            xpassed.append(name)
        elif outcome == "skipped":
            skipped[name] = _skip_reason(test)
        else:
            raise ReportError(f"{name} has the unknown outcome {outcome!r}")
    return Summary(
        passed=tuple(passed),
        failed=failed,
        xfailed=tuple(xfailed),
        xpassed=tuple(xpassed),
        skipped=skipped,
        collected=collected,
        deselected=counts.get("deselected", 0),
    )


def _crash(test: dict[str, Any]) -> str:
    for stage in _STAGES:
        message = test.get(stage, {}).get("crash", {}).get("message", "")
        if message:
            return str(message).splitlines()[0]
    return "no message"


def _skip_reason(test: dict[str, Any]) -> str:
    for stage in _STAGES:
        part = test.get(stage, {})
        if part.get("outcome") == "skipped":
            # The text of (path, line, "Skipped: reason"), after a line naming the worker if any.
            text = str(part.get("longrepr", ""))
            try:
                reason = ast.literal_eval(text[text.index("(") :])[2]
            except (ValueError, SyntaxError, IndexError):
                return text or "no reason given"
            return str(reason).removeprefix("Skipped: ")
    return "no reason given"


def incomplete(summary: Summary, exit_code: int) -> list[str]:
    """Why the run's counts say nothing about the module; empty for a run that went to its end."""
    found: list[str] = []
    if not summary.ran:
        found.append("no test ran")
    if exit_code not in (0, _TEST_ERRORS) or (exit_code and not summary.failed):
        found.append(f"pytest ended with exit code {exit_code}")
    expected = summary.collected - summary.deselected
    if len(summary.tests) != expected:
        found.append(f"{len(summary.tests)} outcomes for {expected} selected tests")
    return found


def problems(summary: Summary, exit_code: int, stale: list[Xfail]) -> list[str]:
    """Why the run does not show conformance; empty where it does."""
    found = [f"{len(summary.failed)} failed"] if summary.failed else []
    found += incomplete(summary, exit_code)
    found += [
        f"{len(tests)} skipped for a reason that is not the suite's own: {reason}"
        for reason, tests in summary.foreign_skips().items()
    ]
    found += [f"xfail line {each.line} names no test: {each.test}" for each in stale]
    return found


def render(runtime: str, summary: Summary, faults: list[str]) -> str:
    """Report for people; its last line holds the counts."""
    lines = [f"FAILED {name}: {message}" for name, message in summary.failed.items()]
    lines += [f"xfailed {name}" for name in summary.xfailed]
    lines += [f"xpassed {name}: remove it from the xfail file" for name in summary.xpassed]
    for reason, tests in summary.skips_by_reason().items():
        owner = "by the suite itself" if reason in SUITE_SKIPS else "BECAUSE OF THE MODULE"
        functions = sorted({test.rpartition("::")[2].split("[", 1)[0] for test in tests})
        lines.append(f"skipped {owner}: {len(tests)} x {reason!r} ({', '.join(functions)})")
    lines.append(
        f"{summary.collected} collected, {summary.deselected} deselected, {summary.ran} ran, "
        f"{len(summary.xfailed)} xfailed, {len(summary.xpassed)} xpassed"
    )
    if faults:
        lines.append("DOES NOT CONFORM: " + "; ".join(faults))
    elif summary.xfailed or summary.xpassed:
        lines.append("nothing failed but what the xfail file lists")
    else:
        lines.append("all selected tests passed, but for those that the suite itself skips")
    lines.append(
        f"{runtime}: {len(summary.passed)} passed, {len(summary.failed)} failed, "
        f"{len(summary.skipped)} skipped"
    )
    return "\n".join(lines)
