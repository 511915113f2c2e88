"""What a run of a suite says, beside what was expected of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance import xfails
from conformance.xfails import Xfail

#: A test of an installed library: a whole file can never be expected to fail.
_TEST: Final = re.compile(r"[\w/.-]+/test_\w+\.py(::\w+)*::test_\w+(\[.*\])?")
_TESTS_FAILED: Final = 1
#: Outcomes from the worst to the best.
_ORDER: Final = ("error", "failed", "xpassed", "xfailed", "skipped", "passed")


@dataclass(frozen=True)
class Outcomes:
    """The outcome of each test, by its id, and pytest's exit code."""

    tests: dict[str, tuple[str, str]]
    exit_code: int

    def counts(self) -> Counter[str]:
        """How many tests had each outcome."""
        return Counter(outcome for outcome, _ in self.tests.values())

    def failures(self) -> dict[str, str]:
        """Messages of the tests that failed, by id."""
        return {
            test: message
            for test, (outcome, message) in self.tests.items()
            if outcome in ("failed", "error")
        }


@dataclass(frozen=True)
class Verdict:
    """Failures and expected failures of a run, and what is wrong with it."""

    unexpected: dict[str, str]
    expected: dict[str, Xfail]
    passing: tuple[Xfail, ...]
    faults: tuple[str, ...]


def load(path: Path, exit_code: int) -> Outcomes:
    """Read what the recording plugin wrote; of the phases of a test the worst counts."""
    tests: dict[str, tuple[str, str]] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            test, outcome, message = json.loads(line)
            before = tests.get(test)
            if before is None or _ORDER.index(outcome) < _ORDER.index(before[0]):
                tests[test] = (outcome, message)
    return Outcomes(tests, exit_code)


def expected(path: Path) -> list[Xfail]:
    """The failures that a file lists, each with a reason; none where there is no file."""
    if not path.exists():
        return []
    return xfails.parse(path.read_text(encoding="utf-8"), path.name, _TEST, needs_link=False)


def judge(outcomes: Outcomes, entries: list[Xfail], *, whole: bool) -> Verdict:
    """Compare a run with what was expected; ``whole`` where every test of the suite was to run."""
    by_test = {entry.test: entry for entry in entries}
    failures = outcomes.failures()
    foreseen: dict[str, Xfail] = {}
    for test in failures:
        entry = by_test.get(test) or by_test.get(test.split("[", maxsplit=1)[0])
        if entry is not None:
            foreseen[test] = entry
    used = set(foreseen.values())
    stale = xfails.unmatched(entries, outcomes.tests) if whole else []
    ran = {*outcomes.tests, *(test.split("[", maxsplit=1)[0] for test in outcomes.tests)}
    passing = tuple(entry for entry in entries if entry.test in ran and entry not in used)
    unexpected = {test: text for test, text in failures.items() if test not in foreseen}
    faults = [f"{len(unexpected)} failed"] if unexpected else []
    faults += [f"line {entry.line} names no test: {entry.test}" for entry in stale]
    counts = outcomes.counts()
    if not counts["passed"] and not failures:
        faults.append("no test ran")
    if outcomes.exit_code not in (0, _TESTS_FAILED):
        faults.append(f"pytest ended with exit code {outcomes.exit_code}")
    return Verdict(unexpected, foreseen, passing, tuple(faults))
