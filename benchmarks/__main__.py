"""Command line of the benchmarks."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks import (
    add,
    capture,
    device,
    environment,
    goals,
    importing,
    large,
    peers,
    report,
    small,
    wgpu,
)
from benchmarks.timing import Measurement
from numr.errors import RuntimeUnavailable

_Say = Callable[[str], object]
_CANNOT_RUN: Final = 2


def _import(subject: peers.Library, *, quick: bool, say: _Say) -> list[Measurement]:
    return importing.measure(subject.name, quick=quick, say=say)


#: In the order of the run.
BENCHMARKS: Final = {
    small.NAME: small.measure,
    add.NAME: add.measure,
    large.NAME: large.measure,
    importing.NAME: _import,
    capture.NAME: capture.measure,
}
#: On GPUs with peers of their own.
ON_DEVICE: Final = {device.NAME: device.measure, wgpu.NAME: wgpu.measure}
ALL: Final = {**BENCHMARKS, **ON_DEVICE}
#: What a runtime runs unless told otherwise; others run those of the CPU.
USUAL: Final = {
    device.RUNTIME: {device.NAME, capture.NAME},
    wgpu.RUNTIME: {wgpu.NAME, capture.NAME},
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time numr beside its peers by turns, and compare with the goals.",
        epilog="Exit code: 0 the run is complete, whatever it found; 2 it could not be made.",
    )
    option = parser.add_argument
    option("--only", choices=list(ALL), action="append", help="leave out others; repeatable")
    option("--runtime", default="cpu", metavar="NAME", help="the runtime of numr to time (cpu)")
    option("--quick", action="store_true", help="tiny arrays, few rounds: shows that all runs")
    option("--json", type=Path, metavar="PATH", help="write every sample here")
    option("--markdown", type=Path, metavar="PATH", help="write results between the page's markers")
    return parser


def _progress(line: str) -> None:
    print(f"benchmarks: {line}", file=sys.stderr, flush=True)


def _command(arguments: argparse.Namespace) -> str:
    # Without the paths of files written, which do not change what is measured.
    parts = ["python -m benchmarks"]
    parts += [f"--only {name}" for name in arguments.only or ()]
    if arguments.runtime != "cpu":
        parts.append(f"--runtime {arguments.runtime}")
    if arguments.quick:
        parts.append("--quick")
    return " ".join(parts)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    # Before the run, so that no run is lost to a file that cannot be written.
    if arguments.json and not arguments.json.parent.is_dir():
        parser.error(f"--json {arguments.json}: there is no folder {arguments.json.parent}")
    try:
        if arguments.markdown:
            report.updated(arguments.markdown.read_text(encoding="utf-8"), "")
        subject = peers.numr_on(arguments.runtime)
    except (report.PageError, OSError) as error:
        print(f"benchmarks: --markdown {arguments.markdown}: {error}", file=sys.stderr)
        return _CANNOT_RUN
    except RuntimeUnavailable as error:
        print(f"benchmarks: --runtime {arguments.runtime}: {error}", file=sys.stderr)
        return _CANNOT_RUN
    machine = environment.collect(arguments.runtime, quick=arguments.quick)
    measurements: list[Measurement] = []
    usual = USUAL.get(arguments.runtime, BENCHMARKS)
    for name, measure in ALL.items():
        if name in (arguments.only or usual):
            say = lambda line, name=name: _progress(f"{name}: {line}")  # noqa: E731
            measurements += measure(subject, quick=arguments.quick, say=say)
    # Peers, and their libraries with them, are loaded by what measures them.
    machine = replace(machine, pools=environment.thread_pools())
    verdicts = goals.evaluate(measurements, runtime=arguments.runtime, quick=arguments.quick)
    print(report.text(machine, measurements, verdicts))
    if arguments.json:
        found = {
            "environment": machine.as_json(),
            "measurements": [m.as_json() for m in measurements],
            "goals": [verdict.as_json() for verdict in verdicts],
        }
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if arguments.markdown:
        results = report.markdown(machine, measurements, verdicts, _command(arguments))
        # Read again: a run takes minutes, in which the page may have been edited.
        page = report.updated(arguments.markdown.read_text(encoding="utf-8"), results)
        arguments.markdown.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
