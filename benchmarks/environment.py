"""What a run was made on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numr
from benchmarks.peers import OPTIONAL

#: Work that waits for each CPU before the run, on average over a minute, beyond which the machine is called busy.
_BUSY: Final = 0.25


@dataclass(frozen=True, slots=True)
class Environment:
    """Machine, versions and state at the start of a run."""

    date: str
    numr: str
    runtime: str
    device: str
    python: str
    #: Of NumPy and the optional peers; None where one is not installed.
    versions: dict[str, str | None]
    system: str
    processor: str
    #: CPUs that this process may use.
    cpus: int
    numr_threads: int
    #: Average over a minute; None where the system does not say.
    load: float | None
    quick: bool
    #: Thread pools of the native libraries loaded, as threadpoolctl finds them; None where it is not installed.
    pools: list[str] | None = None

    @property
    def busy(self) -> bool:
        """Whether others were using the machine when the run began."""
        return self.load is not None and self.load > _BUSY * self.cpus

    def as_json(self) -> dict[str, Any]:
        """Give everything in what JSON has."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Say it in sentences, for the head of a report."""
        versions = [f"{name} {version}" for name, version in self.versions.items() if version]
        load = "not known" if self.load is None else f"{self.load:.2f}"
        software = ", ".join([f"Python {self.python}", *versions])
        machine = f"{self.processor}, {self.system}, {self.cpus} CPUs"
        lines = [
            f"numr {self.numr} on {self.device}, {self.date}; {software}.",
            f"{machine}; numr uses {self.numr_threads} threads; load average at the start {load}.",
        ]
        if self.pools is None:
            lines.append("Thread pools of native libraries: threadpoolctl is not installed.")
        elif self.pools:
            lines.append(f"Thread pools of native libraries: {', '.join(self.pools)}.")
        if self.busy:
            lines.append(
                "The machine was busy before the run began. Contenders were timed by turns, so that ratios "
                "suffer least, but repeat the run on an idle machine before quoting it."
            )
        if self.quick:
            lines.append(
                "A quick run, on tiny arrays: it shows that everything runs, not how fast."
            )
        return lines


def collect(runtime: str, *, quick: bool) -> Environment:
    """Look at the machine, the installation and the load, before anything is timed."""
    info = numr.namespace(runtime).__array_namespace_info__()
    usable = getattr(os, "sched_getaffinity", None)
    return Environment(
        date=datetime.now(tz=UTC).date().isoformat(),
        numr=numr.__version__,
        runtime=runtime,
        device=_device(info.default_device()),
        python=platform.python_version(),
        versions={name: _version(name) for name in ("numpy", *OPTIONAL)}
        | ({"cupy": _cupy_version()} if runtime != "cpu" else {}),
        system=f"{platform.system()} {platform.machine()}",
        processor=_processor(),
        cpus=len(usable(0)) if usable else os.cpu_count() or 1,
        numr_threads=numr.config.num_threads,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        quick=quick,
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cupy_version() -> str | None:
    # The distribution has the version of CUDA in its name.
    names = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
    return next((version for name in names if (version := _version(name))), None)


def _device(device: Any) -> str:
    """The device, and on GPUs the product's name, which the line of the processor does not say."""
    return str(device) if device.runtime == "cpu" else f"{device} ({device.name})"


def _processor() -> str:
    # platform.processor() is empty or only the architecture on Linux.
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "processor not known"


def thread_pools() -> list[str] | None:
    """List the thread pools of the native libraries that are loaded by now."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return None
    return sorted({f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()})
