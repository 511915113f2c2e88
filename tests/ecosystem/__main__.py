"""Command line of the runner."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import numr
from conformance import status
from conformance.xfails import XfailError
from tests.ecosystem import outcomes
from tests.ecosystem.outcomes import Outcomes, Verdict
from tests.ecosystem.suites import FOLDER, ROOT, SUITES, Suite

_PAGE = ROOT / "docs" / "ecosystem.md"
_COLUMNS = ("Suite", "Runtime", "Device", "Version", "Part", "Date")
_COUNTS = ("passed", "failed", "expected failures", "skipped")
_FAILED, _NOT_RUN = 1, 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.ecosystem",
        description="Run the test suites of other libraries on a numr runtime.",
        epilog="Exit code: 0 nothing failed but what is expected, 1 something did, 2 nothing could run.",
    )
    add = parser.add_argument
    names = [suite.name for suite in SUITES]
    add("--runtime", required=True, help="cpu, cuda, wgpu, or 'present': every one of this machine")
    add("--suite", action="append", choices=names, help="only this one; may be repeated")
    add("--part", action="append", default=[], help="only this submodule, such as 'stats'")
    add("--dtype", action="append", default=[], help="a dtype for suites that take some")
    add("-n", dest="workers", type=int, default=0, help="processes (0: no pytest-xdist)")
    add("-k", dest="expression", help="run only tests that match this pytest expression")
    add("--timeout", type=int, default=300, help="seconds for each test (300)")
    add("--keep", type=Path, help="keep the recorded outcomes in this folder")
    add("--write-status", action="store_true", help="update docs/ecosystem.md")
    return parser


def _dtypes(namespace: str) -> tuple[str, ...]:
    """The floating-point dtypes to test: the namespace's default and those before it."""
    info = import_module(namespace).__array_namespace_info__()
    names = [*info.dtypes(kind="real floating")]
    return tuple(names[: names.index(str(info.default_dtypes()["real floating"])) + 1])


def _run(suite: Suite, runtime: str, options: argparse.Namespace) -> Outcomes:
    """Run one suite on one runtime; its output goes to ours."""
    namespace = f"numr.{runtime}"
    dtypes = tuple(options.dtype) or _dtypes(namespace)
    with tempfile.TemporaryDirectory() as folder:
        kept = options.keep or Path(folder)
        recorded = (kept / f"{suite.name}-{runtime}.json").resolve()
        recorded.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-c", str(FOLDER / "pytest.ini")]
        command += ["--rootdir", str(suite.installed_in())]
        command += ["-p", "tests.ecosystem.plugins.recording", "--outcomes", str(recorded)]
        command += ["-p", f"tests.ecosystem.plugins.{suite.plugin}", "-p", "no:cacheprovider"]
        command += ["-q", "-rN", "--tb=short", "--disable-warnings"]
        command += ["--timeout", str(options.timeout)]
        command += ["-n", str(options.workers)] if options.workers else []
        command += suite.arguments
        command += ["-k", options.expression] if options.expression else []
        command += ["--pyargs", *suite.tests(tuple(options.part))]
        environment = suite.environment(namespace, dtypes, os.environ)
        sys.stdout.flush()
        done = subprocess.run(command, cwd=folder, env=environment, check=False)
        return outcomes.load(recorded, done.returncode)


def _print(suite: Suite, runtime: str, found: Outcomes, verdict: Verdict) -> None:
    for test, message in verdict.unexpected.items():
        print(f"FAILED {test}: {message}")
    for test, entry in verdict.expected.items():
        print(f"expected failure {test}: {entry.reason}")
    for entry in verdict.passing:
        print(f"passes {entry.test}: remove line {entry.line} of the expected failures")
    counts = ", ".join(f"{count} {name}" for name, count in _numbers(found, verdict).items())
    ending = "; ".join(verdict.faults) or "nothing failed but what was expected"
    print(f"{suite.name} {suite.version()} on numr.{runtime}: {counts}: {ending}", flush=True)


def _numbers(found: Outcomes, verdict: Verdict) -> dict[str, int]:
    counts = found.counts()
    numbers = (
        counts["passed"] + counts["xpassed"],
        len(verdict.unexpected),
        len(verdict.expected),
        counts["skipped"] + counts["xfailed"],
    )
    return dict(zip(_COUNTS, numbers, strict=True))


def _write_status(suite: Suite, runtime: str, parts: list[str], numbers: dict[str, int]) -> None:
    device = import_module(f"numr.{runtime}").__array_namespace_info__().default_device()
    label = f"{platform.machine()}" if runtime == "cpu" else getattr(device, "name", str(device))
    cells = (
        *(suite.name, runtime, label, suite.version() or "", ", ".join(parts) or "all"),
        datetime.now(tz=UTC).date().isoformat(),
        *map(str, numbers.values()),
    )
    page = _PAGE.read_text(encoding="utf-8")
    columns = (*_COLUMNS, *(name.capitalize() for name in _COUNTS))
    _PAGE.write_text(status.with_row(page, columns, cells, keys=2), encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    options = _parser().parse_args(argv)
    runtimes = numr.available() if options.runtime == "present" else (options.runtime,)
    chosen = [suite for suite in SUITES if not options.suite or suite.name in options.suite]
    absent = [suite.name for suite in chosen if suite.version() is None]
    if absent:
        print(
            f"ecosystem: not installed: {', '.join(absent)}. `make ecosystem` makes an environment"
            ' that has them, as does `pip install "numr[ecosystem]"`.',
            file=sys.stderr,
        )
        return _NOT_RUN
    whole = not options.part and options.expression is None
    good = True
    for runtime in runtimes:
        for suite in chosen:
            try:
                entries = outcomes.expected(FOLDER / "expected" / f"{suite.name}-{runtime}.txt")
            except XfailError as error:
                print(f"ecosystem: {error}", file=sys.stderr)
                return _NOT_RUN
            found = _run(suite, runtime, options)
            verdict = outcomes.judge(found, entries, whole=whole)
            _print(suite, runtime, found, verdict)
            good = good and not verdict.faults
            if options.write_status and found.tests:
                _write_status(suite, runtime, options.part, _numbers(found, verdict))
    return 0 if good else _FAILED


if __name__ == "__main__":
    sys.exit(main())
