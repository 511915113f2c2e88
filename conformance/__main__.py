"""Command line of the conformance runner."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from conformance import report, status, suite, xfails
from numr.errors import RuntimeUnavailable

_STATUS_PAGE = suite.ROOT / "docs" / "conformance.md"
#: Tests that fail on any device without 64-bit dtypes, because of what the suite takes for granted.
_ASSUMING_64_BITS = suite.ROOT / "conformance" / "assuming-64-bits.txt"
_NO_DEADLINE = (
    "deadline off: the suite's limit of 800 ms for each example measures how busy the machine is, and"
    " where kernels are compiled how long that takes, not what the functions return"
)
_PRESENT = "present"
_FAILED, _NOT_RUN = 1, 2

#: The standard's dtypes that a namespace may lack on a device.
DTYPES = ("float64", "complex128", "int64", "uint64")


@dataclass(frozen=True, slots=True)
class Target:
    """A namespace to test."""

    runtime: str
    module: str
    version: str
    device: str
    lacking: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Name of the row in the table: a device that lacks dtypes has one of its own."""
        return f"{self.runtime}, without {' '.join(self.lacking)}" if self.lacking else self.runtime


def _listed_runtimes() -> list[str]:
    folder = suite.ROOT / "conformance"
    return sorted(path.stem.removeprefix("xfails-") for path in folder.glob("xfails-*.txt"))


def _target(runtime: str, module: str | None) -> Target:
    """Import the namespace and ask for its device; raises RuntimeUnavailable or ImportError."""
    name = module or f"numr.{runtime}"
    namespace = import_module(name)
    version = getattr(import_module(name.partition(".")[0]), "__version__", "unknown")
    info = namespace.__array_namespace_info__()
    device = info.default_device()
    present = info.dtypes()
    label = str(device)
    if label == "cpu":
        label = f"cpu ({platform.machine()}, {platform.system()}, Python {_python()})"
    if label.partition(":")[0] == "wgpu":
        label = f"{label} ({device.name})"
    lacking = tuple(dtype for dtype in DTYPES if dtype not in present)
    return Target(runtime, name, str(version), label, lacking)


def _python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _targets(arguments: argparse.Namespace) -> list[Target]:
    if arguments.runtime != _PRESENT:
        return [_target(arguments.runtime, arguments.module)]
    found: list[Target] = []
    for runtime in _listed_runtimes():
        try:
            found.append(_target(runtime, None))
        except RuntimeUnavailable as error:
            print(f"conformance: {runtime} is not present: {error}")
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m conformance",
        description="Run data-apis/array-api-tests at the pinned commit on a numr runtime.",
        epilog="Exit code: 0 conforms, 1 does not, 2 could not run.",
    )
    add = parser.add_argument
    add("--runtime", required=True, help="cpu, ..., or 'present': every runtime of this machine")
    add("--module", help="test this module in the runtime's place, say array_api_strict")
    add("--max-examples", type=int, default=100, help="hypothesis examples for each test (100)")
    add("-n", dest="workers", type=int, default=0, help="processes (0: no pytest-xdist)")
    add("-k", dest="expression", help="run only tests that match this pytest expression")
    add(
        "--suite",
        type=Path,
        help=f"checkout of the suite; else ${suite.SUITE_VARIABLE}, else cache",
    )
    absent = parser.add_mutually_exclusive_group()
    absent.add_argument("--clone", action="store_true", help="fetch the suite where it is absent")
    absent.add_argument(
        "--if-found",
        action="store_true",
        help="where the suite is absent, say so and exit with 0",
    )
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument(
        "--deadline",
        dest="deadline",
        action="store_true",
        default=True,
        help="keep the suite's limit of 800 ms for each example (default)",
    )
    limit.add_argument("--disable-deadline", dest="deadline", action="store_false")
    add("--report", type=Path, help="keep the JSON report of the run here (one runtime)")
    add("--write-status", action="store_true", help="update docs/conformance.md")
    return parser


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.max_examples < 1:
        parser.error("--max-examples must be at least 1")
    if arguments.workers < 0:
        parser.error("-n must not be negative")
    if arguments.write_status and (arguments.expression is not None or arguments.module):
        parser.error("--write-status needs a complete run on numr: neither -k nor --module")
    if arguments.runtime == _PRESENT and (arguments.module or arguments.report):
        parser.error("--module and --report need one runtime, not --runtime present")
    return arguments


def _suite(arguments: argparse.Namespace) -> suite.Suite | None:
    path = suite.find(arguments.suite, os.environ)
    if path is not None:
        return suite.verify(path)
    if arguments.clone:
        destination = suite.default_path(os.environ)
        print(f"conformance: cloning {suite.PIN.url} into {destination}", flush=True)
        return suite.clone(destination)
    if arguments.if_found:
        return None
    raise suite.SuiteError(f"the suite was not found: {suite.how_to_get(os.environ)}")


def _run(target: Target, found: suite.Suite, arguments: argparse.Namespace) -> bool:
    """Run the suite on one target and print the outcome; True where it conforms."""
    listed = suite.ROOT / "conformance" / f"xfails-{target.runtime}.txt"
    if not listed.exists():
        raise xfails.XfailError(
            f"{listed} is missing; each runtime has one, empty but for comments"
        )
    lists = [listed, _ASSUMING_64_BITS] if target.lacking else [listed]
    entries = [
        entry
        for path in lists
        for entry in xfails.parse(
            path.read_text(encoding="utf-8"), str(path.relative_to(suite.ROOT))
        )
    ]
    print(f"conformance: {target.module} {target.version} on {target.device}")
    print(f"conformance: suite {found.path}, {found.note}; standard {suite.STANDARD_VERSION}")
    print(f"conformance: {len(entries)} xfail entries; {arguments.max_examples} examples a test")
    if target.lacking:
        print(f"conformance: the device has no {', '.join(target.lacking)}, so the suite uses none")
    if not arguments.deadline:
        print(f"conformance: {_NO_DEADLINE}")
    else:
        print(
            "conformance: libraries are loaded before the first test, which no test is to wait for"
        )
    with tempfile.TemporaryDirectory() as folder:
        expected = Path(folder) / "xfails.txt"
        expected.write_text("".join(f"{entry.test}\n" for entry in entries), encoding="utf-8")
        run = suite.Run(
            module=target.module,
            xfails=expected,
            report=(arguments.report or Path(folder) / "report.json").resolve(),
            max_examples=arguments.max_examples,
            deadline=arguments.deadline,
            workers=arguments.workers,
            expression=arguments.expression,
            lacking=target.lacking,
        )
        exit_code = suite.execute(found, run, os.environ)
        summary = report.load(run.report)
    stale = xfails.unmatched(entries, summary.tests) if arguments.expression is None else []
    faults = report.problems(summary, exit_code, stale)
    if arguments.write_status and (why := report.incomplete(summary, exit_code)):
        print(f"conformance: {_STATUS_PAGE.name} not updated: {'; '.join(why)}", file=sys.stderr)
    elif arguments.write_status:
        _write_status(target, found, arguments, summary)
    print(report.render(target.label, summary, faults))
    return not faults


def _write_status(
    target: Target, found: suite.Suite, arguments: argparse.Namespace, summary: report.Summary
) -> None:
    reasons = (f"{len(tests)} {reason}" for reason, tests in summary.skips_by_reason().items())
    row = status.Row(
        runtime=target.label,
        device=target.device,
        date=datetime.now(tz=UTC).date().isoformat(),
        suite_commit=found.commit[:7] if found.commit else "not verified",
        standard=suite.STANDARD_VERSION,
        max_examples=arguments.max_examples,
        deadline="800 ms" if arguments.deadline else "off",
        passed=len(summary.passed),
        failed=len(summary.failed),
        xfailed=len(summary.xfailed),
        xpassed=len(summary.xpassed),
        skipped=", ".join(reasons) or "0",
        numr=target.version,
    )
    page = _STATUS_PAGE.read_text(encoding="utf-8") if _STATUS_PAGE.exists() else None
    _STATUS_PAGE.parent.mkdir(exist_ok=True)
    _STATUS_PAGE.write_text(status.update(page, row), encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = _arguments(argv)
    try:
        found = _suite(arguments)
        if found is None:
            print("CONFORMANCE DID NOT RUN: THE OFFICIAL SUITE WAS NOT FOUND ON THIS MACHINE.")
            print(f"To get it: {suite.how_to_get(os.environ)}.")
            return 0
        targets = _targets(arguments)
        if not targets:
            print("conformance: no runtime is present", file=sys.stderr)
            return _NOT_RUN
        outcomes = [_run(target, found, arguments) for target in targets]
    except (suite.SuiteError, report.ReportError, xfails.XfailError, status.StatusError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return _NOT_RUN
    except ImportError as error:  # RuntimeUnavailable is one
        print(f"conformance: cannot import what is to be tested: {error}", file=sys.stderr)
        return _NOT_RUN
    return 0 if all(outcomes) else _FAILED


if __name__ == "__main__":
    sys.exit(main())
