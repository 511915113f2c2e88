"""The conformance runner's own logic: it must not call a run good that proves nothing."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance import loading, report, status, suite, xfails
from conformance.__main__ import Target, _target, main

ADD = "array_api_tests/test_operators_and_elementwise_functions.py::test_add"
SIN = "array_api_tests/test_operators_and_elementwise_functions.py::test_sin"
FFT = "array_api_tests/test_fft.py::test_fft"


# ---- xfail files


def test_an_xfail_line_takes_its_reason_and_link_from_the_comment_above():
    text = (
        f"# Header.\n\n# The sign of zero is lost,\n# see https://example.org/7\n{ADD}\n{SIN}[x]\n"
    )
    found = xfails.parse(text, "xfails-cpu.txt")
    assert [(each.test, each.line) for each in found] == [(ADD, 5), (f"{SIN}[x]", 6)]
    assert {each.link for each in found} == {"https://example.org/7"}
    assert found[0].reason == "The sign of zero is lost, see"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{ADD}\n", "no link"),
        (f"# The sign of zero is lost\n{ADD}\n", "no link"),
        (f"# https://example.org/7\n{ADD}\n", "no reason"),
        (f"# todo https://example.org/7\n{ADD}\n", "no reason"),
        (f"# The sign of zero is lost https://example.org/7\n\n{ADD}\n", "no link"),
        (f"# Sign of zero lost https://example.org/7\n{ADD}\n# Next one is new\n{SIN}\n", ":4:"),
        (f"# Sign of zero lost https://example.org/7\n{ADD} \n", "no test id"),
        (f"# Sign of zero lost https://example.org/7\n{ADD}  # why\n", "no test id"),
        ("# Sign of zero lost https://example.org/7\narray_api_tests/test_fft.py\n", "no test id"),
        ("# Sign of zero lost https://example.org/7\n  # indented\n", "no test id"),
        (f"# Sign of zero lost https://example.org/7\n{ADD}\n{ADD}\n", "line 2 already"),
    ],
)
def test_a_line_that_breaks_the_rules_is_refused(text, message):
    with pytest.raises(xfails.XfailError, match=message):
        xfails.parse(text, "xfails-cpu.txt")


def test_the_committed_xfail_files_keep_the_rules():
    files = sorted((suite.ROOT / "conformance").glob("xfails-*.txt"))
    assert suite.ROOT / "conformance" / "xfails-cpu.txt" in files
    files.append(suite.ROOT / "conformance" / "assuming-64-bits.txt")
    for path in files:
        xfails.parse(path.read_text(encoding="utf-8"), path.name)


def test_entries_that_name_no_test_are_found():
    text = f"# Known to be wrong, https://example.org/7\n{ADD}\n{SIN}[a]\n{SIN}[b]\n{FFT}\n"
    entries = xfails.parse(text, "x")
    stale = xfails.unmatched(entries, [f"{ADD}[p]", f"{SIN}[a]"])
    assert [each.test for each in stale] == [f"{SIN}[b]", FFT]


# ---- counting


def outcome(name, kind, **stages):
    return {"nodeid": name, "outcome": kind, **stages}


def skip(name, reason, worker=""):
    longrepr = f"{worker}{('/suite/test_x.py', 12, f'Skipped: {reason}')!r}"
    return outcome(name, "skipped", setup={"outcome": "skipped", "longrepr": longrepr})


def make(*tests, deselected=0, missing=0):
    collected = len(tests) + deselected + missing
    return {"tests": list(tests), "summary": {"collected": collected, "deselected": deselected}}


def test_outcomes_are_counted_and_skips_grouped_by_reason():
    crash = {"outcome": "failed", "crash": {"message": "AssertionError: out=nan\nassert False"}}
    summary = report.summarise(
        make(
            outcome("a", "passed"),
            outcome("b", "failed", call=crash),
            outcome("c", "error", setup=crash),
            outcome("d", "xfailed"),
            outcome("e", "xpassed"),
            skip("f::test_remainder[x]", "flaky"),
            skip("g", "flaky", worker="[gw1] linux -- Python 3.11.7 /bin/python\n"),
            skip("h", 'fft isn\'t "found" (in array module)'),
            deselected=4,
        )
    )
    assert summary.passed == ("a",)
    assert summary.failed == {"b": "AssertionError: out=nan", "c": "AssertionError: out=nan"}
    assert (summary.xfailed, summary.xpassed) == (("d",), ("e",))
    assert summary.skips_by_reason() == {
        "flaky": ["f::test_remainder[x]", "g"],
        'fft isn\'t "found" (in array module)': ["h"],
    }
    assert list(summary.foreign_skips()) == ['fft isn\'t "found" (in array module)']
    assert summary.ran == 5
    assert (summary.collected, summary.deselected) == (12, 4)


def test_a_clean_run_has_no_problem_and_ends_with_its_counts():
    summary = report.summarise(make(outcome("a", "passed"), skip("b::test_remainder", "flaky")))
    faults = report.problems(summary, 0, [])
    assert faults == []
    text = report.render("cpu", summary, faults)
    assert text.splitlines()[-1] == "cpu: 1 passed, 0 failed, 1 skipped"
    assert "skipped by the suite itself: 1 x 'flaky' (test_remainder)" in text
    assert "DOES NOT CONFORM" not in text


@pytest.mark.parametrize(
    ("content", "exit_code", "expected"),
    [
        (make(), 5, "no test ran"),
        (make(skip("a", "flaky")), 0, "no test ran"),
        (make(outcome("a", "passed"), outcome("b", "failed")), 1, "1 failed"),
        (make(outcome("a", "passed"), outcome("b", "error")), 1, "1 failed"),
        (make(outcome("a", "passed")), 2, "exit code 2"),
        (make(outcome("a", "passed")), 1, "exit code 1"),
        (make(outcome("a", "passed")), -9, "exit code -9"),
        (make(outcome("a", "passed"), missing=3), 0, "1 outcomes for 4 selected"),
        (make(outcome("a", "passed"), skip("b", "fft not found in array module")), 0, "fft not"),
    ],
)
def test_a_run_that_proves_nothing_is_a_problem(content, exit_code, expected):
    summary = report.summarise(content)
    faults = report.problems(summary, exit_code, [])
    assert any(expected in fault for fault in faults)
    assert "DOES NOT CONFORM" in report.render("cpu", summary, faults)


def test_a_stale_xfail_entry_is_a_problem():
    stale = [xfails.Xfail(ADD, "reason", "https://example.org/7", 3)]
    summary = report.summarise(make(outcome("a", "passed")))
    assert report.problems(summary, 0, stale) == [f"xfail line 3 names no test: {ADD}"]


def test_only_failures_leave_a_run_complete():
    failed = report.summarise(make(outcome("a", "failed")))
    assert report.incomplete(failed, 1) == []
    assert report.incomplete(report.summarise(make()), 5) != []


def test_an_xfail_is_named_in_the_report():
    summary = report.summarise(make(outcome("a", "passed"), outcome("b", "xfailed")))
    text = report.render("cpu", summary, [])
    assert "xfailed b" in text
    assert "nothing failed but what the xfail file lists" in text


def test_an_absent_or_malformed_report_is_an_error(tmp_path):
    with pytest.raises(report.ReportError, match="wrote no report"):
        report.load(tmp_path / "report.json")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    with pytest.raises(report.ReportError, match="no JSON"):
        report.load(tmp_path / "broken.json")
    (tmp_path / "empty.json").write_text(json.dumps({"tests": []}), encoding="utf-8")
    with pytest.raises(report.ReportError, match="summary"):
        report.load(tmp_path / "empty.json")
    with pytest.raises(report.ReportError, match="unknown outcome 'rerun'"):
        report.summarise(make(outcome("a", "rerun")))


# ---- the status table


def row(runtime, passed=1, device="cpu"):
    return status.Row(
        runtime=runtime,
        device=device,
        date="2026-01-02",
        suite_commit="55fcc60",
        standard="2025.12",
        max_examples=100,
        deadline="off",
        passed=passed,
        failed=0,
        xfailed=0,
        xpassed=0,
        skipped="5 flaky",
        numr="0.1.0",
    )


def rows(page):
    table = page.partition(status.BEGIN)[2].partition(status.END)[0].strip().splitlines()
    return [line.split(" | ") for line in table]


def test_a_new_page_gets_header_and_row():
    page = status.update(None, row("cpu", passed=1379))
    header, rule, cells = rows(page)
    assert len(header) == len(rule) == len(cells) == 13
    assert header[7] == "Passed"
    assert cells[7] == "1379"
    assert page.startswith("# Conformance\n")
    assert page.endswith(f"{status.END}\n")


def test_only_the_row_of_the_runtime_changes():
    page = status.update(None, row("wgpu", passed=3))
    page = status.update(page, row("cpu", passed=1))
    page += "\nA note below the table.\n"
    updated = status.update(page, row("cpu", passed=2))
    assert [line[0] for line in rows(updated)[2:]] == ["| cpu", "| wgpu"]
    assert [line[7] for line in rows(updated)[2:]] == ["2", "3"]
    assert updated.replace("| 2 |", "| 1 |") == page
    assert status.update(updated, row("cpu", passed=2)) == updated


def test_a_cell_cannot_break_the_table():
    page = status.update(None, row("cpu", device="a | b\nc"))
    assert "a \\| b c" in page


@pytest.mark.parametrize(
    "page", ["# no markers", status.BEGIN, f"{status.END}\n{status.BEGIN}", f"{status.BEGIN}\n" * 2]
)
def test_a_page_without_a_table_is_not_overwritten(page):
    with pytest.raises(status.StatusError, match="status"):
        status.update(page, row("cpu"))


# ---- finding, checking and fetching the suite


def test_the_suite_is_found_where_it_was_named(tmp_path):
    named, other = tmp_path / "named", tmp_path / "other"
    named.mkdir()
    other.mkdir()
    environ = {suite.SUITE_VARIABLE: str(other), "XDG_CACHE_HOME": str(tmp_path)}
    assert suite.find(named, environ) == named
    assert suite.find(None, environ) == other
    cached = suite.default_path(environ)
    assert cached == tmp_path / "numr" / "array-api-tests"
    del environ[suite.SUITE_VARIABLE]
    assert suite.find(None, environ) is None
    cached.mkdir(parents=True)
    assert suite.find(None, environ) == cached


def test_a_named_suite_that_is_absent_is_an_error_even_with_one_in_the_cache(tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    suite.default_path(environ).mkdir(parents=True)
    with pytest.raises(suite.SuiteError, match="--suite names"):
        suite.find(tmp_path / "absent", environ)
    environ[suite.SUITE_VARIABLE] = str(tmp_path / "absent")
    with pytest.raises(suite.SuiteError, match=suite.SUITE_VARIABLE):
        suite.find(None, environ)


@pytest.mark.parametrize("environ", [{}, {"XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "relative"}])
def test_the_cache_folder_is_in_the_home_folder_by_default(environ):
    assert suite.cache_folder(environ) == Path.home() / ".cache" / "numr"


def files_of_the_suite(folder):
    (folder / "array_api_tests").mkdir(parents=True)
    (folder / "conftest.py").write_text("", encoding="utf-8")
    (folder / "array_api_tests" / "test_x.py").write_text("", encoding="utf-8")


def files_of_the_standard(folder):
    for each in ("spec/2025.12/API_specification", "src/array_api_stubs/_2025_12"):
        (folder / each).mkdir(parents=True)
        (folder / each / "page.txt").write_text("text", encoding="utf-8")


def test_a_copy_without_git_is_accepted_but_not_called_verified(tmp_path):
    files_of_the_suite(tmp_path)
    with pytest.raises(suite.SuiteError, match="API_specification"):
        suite.verify(tmp_path)
    files_of_the_standard(tmp_path / "array-api")
    found = suite.verify(tmp_path)
    assert found.commit is None
    assert "could not be verified" in found.note


def git(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def pin(tmp_path):
    """Two local repositories in the place of the suite and the standard."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    commits = {}
    for name, fill in (("tests", files_of_the_suite), ("standard", files_of_the_standard)):
        folder = tmp_path / "origin" / name
        folder.mkdir(parents=True)
        fill(folder)
        git(folder, "init", "--quiet")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", "first")
        commits[name] = git(folder, "rev-parse", "HEAD")
    origin = tmp_path / "origin"
    return suite.Pin(
        str(origin / "tests"), commits["tests"], str(origin / "standard"), commits["standard"]
    )


def test_the_pinned_commits_are_cloned_and_verified(pin, tmp_path):
    destination = tmp_path / "cache" / "suite"
    found = suite.clone(destination, pin)
    assert found.path == destination
    assert found.commit == pin.commit
    assert list(destination.parent.iterdir()) == [destination]
    with pytest.raises(suite.SuiteError, match="exists"):
        suite.clone(destination, pin)


def test_a_failed_clone_leaves_nothing_behind(pin, tmp_path):
    wrong = suite.Pin(pin.url, "0" * 40, pin.standard_url, pin.standard_commit)
    destination = tmp_path / "cache" / "suite"
    with pytest.raises(suite.SuiteError, match="fetch"):
        suite.clone(destination, wrong)
    assert list(destination.parent.iterdir()) == []


def test_another_commit_or_a_changed_file_is_refused(pin, tmp_path):
    destination = tmp_path / "suite"
    suite.clone(destination, pin)
    other = suite.Pin(pin.url, pin.commit, pin.standard_url, "0" * 40)
    with pytest.raises(suite.SuiteError, match="pinned is 0000000"):
        suite.verify(destination, other)
    (destination / "array_api_tests" / "test_x.py").write_text("changed", encoding="utf-8")
    with pytest.raises(suite.SuiteError, match=r"test_x\.py"):
        suite.verify(destination, pin)


def test_a_submodule_without_git_is_not_taken_for_the_suite_around_it(pin, tmp_path):
    destination = tmp_path / "suite"
    suite.clone(destination, pin)
    shutil.rmtree(destination / "array-api" / ".git")
    found = suite.verify(destination, pin)
    assert found.commit == pin.commit
    assert "array-api" in found.note


# ---- running it


def test_variables_that_weaken_the_suite_are_left_out_and_named():
    environ = {
        "PATH": "/bin",
        "PYTHONPATH": "/elsewhere",
        "PYTEST_ADDOPTS": "-x",
        "ARRAY_API_TESTS_SKIP_DTYPES": "uint64",
        "ARRAY_API_TESTS_MODULE": "numpy",
    }
    variables, dropped = suite.environment("numr.cpu", environ)
    assert dropped == ["ARRAY_API_TESTS_MODULE", "ARRAY_API_TESTS_SKIP_DTYPES", "PYTEST_ADDOPTS"]
    assert variables["ARRAY_API_TESTS_MODULE"] == "numr.cpu"
    assert variables["ARRAY_API_TESTS_VERSION"] == "2025.12"
    assert variables["PYTHONPATH"].split(":")[0] == str(suite.ROOT)
    assert variables["PATH"] == "/bin"
    assert not {"PYTEST_ADDOPTS", "ARRAY_API_TESTS_SKIP_DTYPES"} & variables.keys()


def test_dtypes_that_a_device_has_not_are_left_out():
    variables, _ = suite.environment("numr.wgpu", {}, ("float64", "complex128"))
    assert variables["ARRAY_API_TESTS_SKIP_DTYPES"] == "float64,complex128"
    target = Target("wgpu", "numr.wgpu", "1", "wgpu:0", ("float64", "complex128"))
    assert target.label == "wgpu, without float64 complex128"
    assert Target("cpu", "numr.cpu", "1", "cpu").label == "cpu"


def test_what_is_left_out_is_what_the_namespace_says(monkeypatch):
    info = SimpleNamespace(
        default_device=lambda: "small:0", dtypes=lambda: {"float32": 1, "int64": 2}
    )
    module = SimpleNamespace(__array_namespace_info__=lambda: info, __version__="7")
    monkeypatch.setitem(sys.modules, "small", module)
    target = _target("small", "small")
    assert target == Target("small", "small", "7", "small:0", ("float64", "complex128", "uint64"))
    assert _target("cpu", None).lacking == ()


def test_the_command_line_passes_every_option_on(tmp_path):
    run = suite.Run(
        module="numr.cpu",
        xfails=tmp_path / "xfails.txt",
        report=tmp_path / "report.json",
        max_examples=7,
        deadline=False,
        workers=2,
        expression="test_abs",
    )
    line = suite.command(run, tmp_path / "skips.txt")
    pairs = set(itertools.pairwise(line))
    assert ("--max-examples", "7") in pairs
    assert ("--xfails-file", str(run.xfails)) in pairs
    assert ("--skips-file", str(tmp_path / "skips.txt")) in pairs
    assert ("--json-report-file", str(run.report)) in pairs
    assert {("-n", "2"), ("-k", "test_abs")} <= pairs
    assert "--disable-deadline" in line


CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--max-examples", type=int)
    parser.addoption("--disable-deadline", action="store_true")
    parser.addoption("--xfails-file")
    parser.addoption("--skips-file")
"""

TESTS = """
import os
import pytest

def test_passes(request):
    assert os.environ["ARRAY_API_TESTS_MODULE"] == "numr.cpu"
    assert request.config.getoption("--max-examples") == 7
    assert open(request.config.getoption("--skips-file")).read() == ""

def test_fails():
    assert 1 == 2

@pytest.mark.skip(reason="flaky")
def test_is_skipped():
    pass

@pytest.mark.xfail
def test_is_expected_to_fail():
    assert 1 == 2

@pytest.fixture
def broken():
    raise ValueError("no setup")

def test_has_an_error(broken):
    pass
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_a_suite_is_run_and_its_report_read(tmp_path, workers):
    folder = tmp_path / "suite"
    files_of_the_suite(folder)
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "array_api_tests" / "test_x.py").write_text(TESTS, encoding="utf-8")
    run = suite.Run(
        module="numr.cpu",
        xfails=tmp_path / "xfails.txt",
        report=tmp_path / "report.json",
        max_examples=7,
        deadline=True,
        workers=workers,
    )
    exit_code = suite.execute(suite.Suite(folder, None, ""), run, os.environ)
    summary = report.load(run.report)
    name = "array_api_tests/test_x.py::test_"
    assert exit_code == 1
    assert summary.passed == (f"{name}passes",)
    assert summary.failed.keys() == {f"{name}fails", f"{name}has_an_error"}
    assert "1 == 2" in summary.failed[f"{name}fails"]
    assert "no setup" in summary.failed[f"{name}has_an_error"]
    assert summary.skipped == {f"{name}is_skipped": "flaky"}
    assert summary.xfailed == (f"{name}is_expected_to_fail",)
    assert report.problems(summary, exit_code, []) == ["2 failed"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--runtime", "cpu", "--write-status", "-k", "test_abs"],
        ["--runtime", "cpu", "--write-status", "--module", "array_api_strict"],
        ["--runtime", "present", "--module", "array_api_strict"],
        ["--runtime", "cpu", "--clone", "--if-found"],
        ["--runtime", "cpu", "--max-examples", "0"],
        [],
    ],
)
def test_contradictory_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "error" in capsys.readouterr().err


def test_a_missing_suite_is_an_error_or_said_in_capitals(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(suite.SUITE_VARIABLE, raising=False)
    assert main(["--runtime", "cpu"]) == 2
    assert "make conformance" in capsys.readouterr().err
    assert main(["--runtime", "cpu", "--if-found"]) == 0
    printed = capsys.readouterr().out
    assert "CONFORMANCE DID NOT RUN" in printed
    assert suite.SUITE_VARIABLE in printed


def test_libraries_are_loaded_before_the_first_test(monkeypatch):
    import numr.cpu as xp

    calls = []

    def recorded(module, name):
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args: calls.append(name) or function(*args))

    for name in ("matmul", "sort"):
        recorded(xp, name)
    for name in ("cholesky", "svd", "solve"):
        recorded(xp.linalg, name)
    recorded(xp.fft, "fft")
    monkeypatch.setenv("ARRAY_API_TESTS_MODULE", "numr.cpu")
    loading.pytest_sessionstart()
    assert {"matmul", "fft", "sort", "cholesky", "svd", "solve"} == set(calls)
    # Each dtype has code of its own in such libraries.
    assert calls.count("svd") == 4


def test_only_runs_with_deadlines_load_libraries(tmp_path):
    for deadline in (True, False):
        run = suite.Run("numr.cpu", tmp_path / "x", tmp_path / "r.json", 5, deadline)
        assert ("conformance.loading" in suite.command(run, tmp_path / "s")) == deadline
