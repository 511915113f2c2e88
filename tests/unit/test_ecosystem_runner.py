"""The logic of the runner of other libraries' suites: it must not call a run good that proves nothing."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance import status
from conformance.xfails import XfailError
from tests.ecosystem import outcomes
from tests.ecosystem.__main__ import main
from tests.ecosystem.outcomes import Outcomes, judge
from tests.ecosystem.plugins.recording import _outcome, _Recorder
from tests.ecosystem.suites import FOLDER, SUITES

TEST = "scipy/a/tests/test_b.py::TestC::test_d"


def listed(tmp_path: Path, text: str) -> list[outcomes.Xfail]:
    path = tmp_path / "scipy-cpu.txt"
    path.write_text(text)
    return outcomes.expected(path)


def entries(tmp_path: Path, *tests: str) -> list[outcomes.Xfail]:
    return listed(tmp_path, "# The library knows others by name.\n" + "\n".join(tests))


def run(exit_code: int = 1, **tests: str) -> Outcomes:
    return Outcomes({f"{TEST}[{name}]": (what, "why") for name, what in tests.items()}, exit_code)


def test_a_failure_that_is_not_listed_fails_the_run() -> None:
    verdict = judge(run(x="failed", y="passed", z="error"), [], whole=True)
    assert verdict.unexpected == {f"{TEST}[x]": "why", f"{TEST}[z]": "why"}
    assert verdict.faults == ("2 failed",)


def test_listed_failures_are_expected_by_name_and_by_parameters(tmp_path: Path) -> None:
    found = run(x="failed", y="failed", z="passed")
    assert not judge(found, entries(tmp_path, TEST), whole=True).faults
    verdict = judge(found, entries(tmp_path, f"{TEST}[x]"), whole=True)
    assert list(verdict.expected) == [f"{TEST}[x]"]
    assert list(verdict.unexpected) == [f"{TEST}[y]"]


def test_a_listed_test_that_passes_is_told(tmp_path: Path) -> None:
    verdict = judge(run(0, x="passed"), entries(tmp_path, f"{TEST}[x]"), whole=True)
    assert [entry.test for entry in verdict.passing] == [f"{TEST}[x]"]
    assert not verdict.faults


def test_a_line_that_names_no_test_is_a_fault_of_a_whole_run(tmp_path: Path) -> None:
    stale = entries(tmp_path, f"{TEST}[gone]")
    assert judge(run(0, x="passed"), stale, whole=True).faults == (
        f"line 2 names no test: {TEST}[gone]",
    )
    assert not judge(run(0, x="passed"), stale, whole=False).faults


@pytest.mark.parametrize(("exit_code", "tests"), [(5, {}), (0, {}), (0, {"x": "skipped"})])
def test_a_run_without_tests_proves_nothing(exit_code: int, tests: dict[str, str]) -> None:
    assert "no test ran" in judge(run(exit_code, **tests), [], whole=True).faults


def test_a_run_that_pytest_broke_off_is_a_fault() -> None:
    assert judge(run(2, x="passed"), [], whole=True).faults == ("pytest ended with exit code 2",)


@pytest.mark.parametrize(
    "text",
    [
        f"{TEST}[x]\n",
        f"# todo\n{TEST}[x]\n",
        "# A whole file is too much to expect\nscipy/a/tests/test_b.py\n",
    ],
)
def test_a_line_without_a_reason_or_a_test_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(XfailError):
        listed(tmp_path, text)


def test_the_committed_lists_keep_the_rules() -> None:
    names = {suite.name for suite in SUITES}
    files = sorted((FOLDER / "expected").glob("*.txt"))
    assert files
    for path in files:
        suite, _, runtime = path.stem.rpartition("-")
        assert suite in names
        assert runtime in ("cpu", "cuda", "wgpu")
        outcomes.expected(path)


def phase(when: str, outcome: str, **more: object) -> SimpleNamespace:
    flags = {name: outcome == name for name in ("passed", "failed", "skipped")}
    return SimpleNamespace(nodeid=TEST, when=when, longrepr="text", **flags, **more)


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        (
            [phase("setup", "passed"), phase("call", "passed"), phase("teardown", "passed")],
            "passed",
        ),
        (
            [phase("setup", "passed"), phase("call", "failed"), phase("teardown", "passed")],
            "failed",
        ),
        ([phase("setup", "failed"), phase("teardown", "passed")], "error"),
        ([phase("setup", "passed"), phase("call", "passed"), phase("teardown", "failed")], "error"),
        ([phase("setup", "skipped"), phase("teardown", "passed")], "skipped"),
        ([phase("setup", "passed"), phase("call", "skipped", wasxfail="")], "xfailed"),
        ([phase("setup", "passed"), phase("call", "passed", wasxfail="")], "xpassed"),
    ],
)
def test_the_worst_phase_of_a_test_counts(
    tmp_path: Path, phases: list[SimpleNamespace], expected: str
) -> None:
    path = tmp_path / "outcomes.json"
    recorder = _Recorder(path)
    for report in phases:
        recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish()
    assert {json.loads(line)[0] for line in path.read_text().splitlines()} == {TEST}
    assert outcomes.load(path, 0).counts()[expected] == 1
    assert _outcome(phase("setup", "passed")) is None


def test_a_suite_that_is_not_installed_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.ecosystem.suites.Suite.version", lambda self: None)
    assert main(["--runtime", "cpu", "--suite", "scipy"]) == 2
    assert "not installed: scipy" in capsys.readouterr().err


def test_parts_of_a_library_are_modules_of_it() -> None:
    scipy = next(suite for suite in SUITES if suite.name == "scipy")
    assert scipy.tests() == ("scipy",)
    assert scipy.tests(("special", "stats")) == ("scipy.special", "scipy.stats")
    variables = scipy.environment("numr.cpu", ("float32",), {"PYTEST_ADDOPTS": "-x", "A": "b"})
    assert variables["A"] == "b"
    assert variables["SCIPY_ARRAY_API"] == "1"
    assert "PYTEST_ADDOPTS" not in variables


def test_a_row_of_the_page_is_that_of_a_suite_and_a_runtime() -> None:
    page = f"text\n{status.BEGIN}\n{status.END}\nend\n"
    columns = ("Suite", "Runtime", "Passed")
    for cells in (("scipy", "cpu", "1"), ("scipy", "wgpu", "2"), ("einops", "cpu", "3")):
        page = status.with_row(page, columns, cells, keys=2)
    page = status.with_row(page, columns, ("scipy", "cpu", "4"), keys=2)
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert rows[2:] == ["| einops | cpu | 3 |", "| scipy | cpu | 4 |", "| scipy | wgpu | 2 |"]
