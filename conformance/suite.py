"""The official suite: which commit, where it lies, how it is fetched, checked and run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STANDARD_VERSION: Final = "2025.12"
SUITE_VARIABLE: Final = "NUMR_ARRAY_API_TESTS"

ROOT: Final = Path(__file__).resolve().parent.parent


class SuiteError(Exception):
    """The suite is absent, is not the pinned one, or did not run."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A commit of the suite with the commit of the standard that it tests against."""

    url: str
    commit: str
    standard_url: str
    standard_commit: str


PIN: Final = Pin(
    url="https://github.com/data-apis/array-api-tests",
    commit="55fcc60179efa2680ddd6cd926ddf17b83530e2b",
    standard_url="https://github.com/data-apis/array-api",
    standard_commit="5f847a3858875c682ae901aa22b0413bf24be9da",
)


@dataclass(frozen=True, slots=True)
class Suite:
    """A checkout of the suite: ``commit`` is None where nothing proves which commit it is."""

    path: Path
    commit: str | None
    note: str


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Folder for what the project may fetch again."""
    # The base-directory specification has relative values ignored.
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "numr"


def default_path(environ: Mapping[str, str]) -> Path:
    """Folder of the suite where neither the command line nor the environment names one."""
    return cache_folder(environ) / "array-api-tests"


def find(explicit: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Folder of the suite, or None where it was not named and the cache does not hold it.

    A named folder that does not exist raises: another suite must not stand in for it.
    """
    named = explicit
    origin = "--suite"
    if named is None and environ.get(SUITE_VARIABLE):
        named = Path(environ[SUITE_VARIABLE])
        origin = SUITE_VARIABLE
    if named is not None:
        path = named.expanduser().resolve()
        if not path.is_dir():
            raise SuiteError(f"{origin} names {path}, which is no folder")
        return path
    path = default_path(environ)
    return path if path.is_dir() else None


def how_to_get(environ: Mapping[str, str], pin: Pin = PIN) -> str:
    """Ways to obtain the suite."""
    return (
        f"`make conformance` clones {pin.url} at {pin.commit[:7]} into {default_path(environ)} "
        f"(so does `python -m conformance --clone`); an existing checkout is named by "
        f"--suite PATH or {SUITE_VARIABLE}=PATH"
    )


def _git(*arguments: str, folder: Path) -> str:
    """Run git on the repository whose work tree is exactly ``folder``; return what it prints."""
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SuiteError(f"git is not installed; it is needed for {folder}") from None
    if done.returncode:
        raise SuiteError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout.strip()


def _check_folder(path: Path, version: str) -> None:
    expected = (
        path / "conftest.py",
        path / "array_api_tests",
        path / "array-api" / "spec" / version / "API_specification",
        path / "array-api" / "src" / "array_api_stubs" / f"_{version.replace('.', '_')}",
    )
    missing = [str(each.relative_to(path)) for each in expected if not each.exists()]
    if missing:
        raise SuiteError(
            f"{path} is no complete checkout of array-api-tests: {', '.join(missing)} not found"
            f" (array-api is its submodule: `git submodule update --init`)"
        )


def verify(path: Path, pin: Pin = PIN, version: str = STANDARD_VERSION) -> Suite:
    """Check that ``path`` holds the pinned suite with its submodule, unchanged."""
    _check_folder(path, version)
    unproven: list[str] = []
    for folder, commit in ((path, pin.commit), (path / "array-api", pin.standard_commit)):
        # Without this look git would answer for a repository further up.
        if not (folder / ".git").exists():
            unproven.append(folder.name)
            continue
        head = _git("rev-parse", "HEAD", folder=folder)
        if head != commit:
            raise SuiteError(
                f"{folder} is at commit {head}, pinned is {commit}: check that commit out,"
                f" or remove the folder and fetch it again"
            )
        changed = _git(
            "status", "--porcelain", "--untracked-files=no", "--ignore-submodules", folder=folder
        )
        if changed:
            raise SuiteError(f"{folder} differs from its commit {commit[:7]}:\n{changed}")
    if unproven:
        note = f"commit could not be verified: no .git in {' and '.join(unproven)}"
        return Suite(path, None if path.name in unproven else pin.commit, note)
    return Suite(path, pin.commit, f"commit {pin.commit[:7]} verified")


def _fetch_commit(url: str, commit: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _git("init", "--quiet", folder=folder)
    _git("fetch", "--quiet", "--depth", "1", url, commit, folder=folder)
    _git("checkout", "--quiet", "--detach", commit, folder=folder)


def clone(destination: Path, pin: Pin = PIN, version: str = STANDARD_VERSION) -> Suite:
    """Fetch the pinned suite with its submodule into ``destination``, which must not exist."""
    if destination.exists():
        raise SuiteError(f"{destination} exists; it is not overwritten")
    destination.parent.mkdir(parents=True, exist_ok=True)
    # Cloned beside its place and then renamed, so that an interrupted clone leaves no half suite.
    partial = Path(tempfile.mkdtemp(prefix="array-api-tests-", dir=destination.parent))
    try:
        _fetch_commit(pin.url, pin.commit, partial)
        _fetch_commit(pin.standard_url, pin.standard_commit, partial / "array-api")
        verify(partial, pin, version)
        partial.rename(destination)
    finally:
        if partial.exists():
            shutil.rmtree(partial)
    return verify(destination, pin, version)


@dataclass(frozen=True, slots=True)
class Run:
    """What to run: the module under test and the options that the suite is given."""

    module: str
    xfails: Path
    report: Path
    max_examples: int
    deadline: bool
    workers: int = 0
    expression: str | None = None
    lacking: tuple[str, ...] = ()


def environment(
    module: str, environ: Mapping[str, str], lacking: Sequence[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """Environment for the suite, and the variables left out because they would weaken it.

    ``lacking`` names the dtypes that the device has not, by the namespace's own account.
    """
    dropped = sorted(
        name
        for name in environ
        if name.startswith("ARRAY_API_TESTS_") or name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")
    )
    result = {name: value for name, value in environ.items() if name not in dropped}
    path = environ.get("PYTHONPATH")
    result["PYTHONPATH"] = f"{ROOT}{os.pathsep}{path}" if path else str(ROOT)
    result["ARRAY_API_TESTS_MODULE"] = module
    result["ARRAY_API_TESTS_VERSION"] = STANDARD_VERSION
    if lacking:
        result["ARRAY_API_TESTS_SKIP_DTYPES"] = ",".join(lacking)
    # Failing examples are tried first in the next run; the suite's own folder stays untouched.
    result.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_folder(environ) / "hypothesis"))
    return result, dropped


def command(run: Run, skips: Path) -> list[str]:
    """Command line that runs the suite from its own folder."""
    # Our own file of skips is empty and must stay so, or the suite would look for its skips.txt.
    arguments = [sys.executable, "-m", "pytest", "array_api_tests", "-p", "no:cacheprovider"]
    arguments += [
        "--quiet",
        "-rN",
        "--tb=short",
        "--disable-warnings",
        "--max-examples",
        str(run.max_examples),
    ]
    arguments += ["--xfails-file", str(run.xfails), "--skips-file", str(skips)]
    arguments += ["--json-report", "--json-report-file", str(run.report)]
    arguments += ["--json-report-omit", "collectors", "log", "keywords", "streams", "warnings"]
    if not run.deadline:
        arguments.append("--disable-deadline")
    if run.deadline:
        arguments += ["-p", "conformance.loading"]
    if run.workers:
        arguments += ["-n", str(run.workers)]
    if run.expression is not None:
        arguments += ["-k", run.expression]
    return arguments


def execute(suite: Suite, run: Run, environ: Mapping[str, str]) -> int:
    """Run the suite; its output goes to ours. Return pytest's exit code."""
    variables, dropped = environment(run.module, environ, run.lacking)
    if dropped:
        print(f"conformance: left out of the environment: {', '.join(dropped)}")
    run.report.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        skips = Path(folder) / "skips.txt"
        skips.touch()
        return _run(command(run, skips), suite.path, variables)


def _run(arguments: Sequence[str], folder: Path, variables: Mapping[str, str]) -> int:
    sys.stdout.flush()
    return subprocess.run(arguments, cwd=folder, env=dict(variables), check=False).returncode
