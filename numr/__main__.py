"""``python -m numr info``: what this installation of numr is and what it finds on the machine."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

import numr
from numr.config import ENVIRONMENT
from numr.runtime import Device, Runtime, client_of, runtime

__all__ = ["information", "main", "report"]


def information() -> dict[str, Any]:
    """Collect what ``python -m numr info`` shows.

    Returns
    -------
    dict
        Of strings, numbers, None, lists and dicts alone, so that it can be written as JSON: ``numr``, ``python``,
        ``numpy`` and ``platform`` are versions; ``runtimes`` maps each runtime that can be used to its namespace,
        graph capture and devices; ``unavailable`` maps each of the others to reason and remedy;
        ``environment`` maps each variable that numr reads to its value, None where unset, and meaning.

    Examples
    --------
    >>> sorted(information()["runtimes"]["cpu"]["devices"][0])
    ['default_dtypes', 'dtypes', 'host_operations', 'is_default', 'memory', 'name', 'string']
    """
    return {
        "numr": numr.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "runtimes": {name: _runtime(runtime(name)) for name in numr.available()},
        "unavailable": {
            name: {"reason": why.reason, "remedy": why.remedy}
            for name, why in numr.unavailable().items()
        },
        "environment": {
            name: {"value": os.environ.get(name), "meaning": meaning}
            for name, meaning in ENVIRONMENT.items()
        },
    }


def _runtime(cls: type[Runtime]) -> dict[str, Any]:
    default = cls.default_device()
    return {
        "namespace": cls.namespace,
        "supports_graph_capture": cls.supports_graph_capture(),
        "devices": [_device(device, device == default) for device in cls.devices()],
    }


def _device(device: Device, is_default: bool) -> dict[str, Any]:
    client = client_of(device)
    defaults = client.defaults
    return {
        "string": str(device),
        "name": device.name,
        "is_default": is_default,
        "dtypes": [str(dtype) for dtype in client.dtypes],
        "default_dtypes": {
            "real floating": str(defaults.real),
            "complex floating": str(defaults.complex),
            "integral": str(defaults.integral),
            "indexing": str(defaults.indexing),
        },
        "memory": asdict(client.allocator.stats()),
        "host_operations": dict(client.host_operations),
    }


def report(info: dict[str, Any]) -> str:
    """Lay out what :func:`information` collected for people.

    Parameters
    ----------
    info : dict
        As :func:`information` returns it.

    Returns
    -------
    str
        Several lines, without a newline at the end.
    """
    lines = [
        f"numr {info['numr']}, Python {info['python']}, NumPy {info['numpy']}",
        info["platform"],
        "",
        "Runtimes",
    ]
    for name, details in info["runtimes"].items():
        capture = "yes" if details["supports_graph_capture"] else "no"
        lines.append(f"  {name}: available as {details['namespace']}; graph capture: {capture}")
        for device in details["devices"]:
            lines.extend(_device_lines(device))
    for name, why in info["unavailable"].items():
        lines.append(f"  {name}: not available: {why['reason']}. {why['remedy']}")
    lines += ["", "Environment variables"]
    width = max(len(name) for name in info["environment"])
    for name, variable in info["environment"].items():
        value = "unset" if variable["value"] is None else repr(variable["value"])
        lines.append(f"  {name:<{width}}  {value}: {variable['meaning']}")
    return "\n".join(lines)


def _device_lines(device: dict[str, Any]) -> list[str]:
    memory = device["memory"]
    limit = memory["limit_bytes"]
    bound = "no limit" if limit is None else f"limit {limit}"
    default = " (default device)" if device["is_default"] else ""
    frozen = ", frozen" if memory["is_frozen"] else ""
    active = f"{memory['active_bytes']} bytes active in {memory['active_allocations']} allocations"
    total = f"{memory['total_bytes']} bytes in {memory['total_allocations']} allocations"
    kinds = ", ".join(f"{kind} {dtype}" for kind, dtype in device["default_dtypes"].items())
    peak, reserved = memory["peak_usage"], memory["reserved_bytes"]
    on_host = ", ".join(f"{count} x {name}" for name, count in device["host_operations"].items())
    return [
        f"    {device['string']}: {device['name']}{default}",
        f"      dtypes: {', '.join(device['dtypes'])}",
        f"      default dtypes: {kinds}",
        f"      memory: {active}, {peak} at peak, {reserved} reserved, {bound}{frozen}",
        f"      allocated so far: {total}",
        f"      operations run on the host: {on_host or 'none'}",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line's arguments; those of the process where None.

    Returns
    -------
    int
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m numr", description="What numr finds here.")
    commands = parser.add_subparsers(dest="command", required=True)
    info = commands.add_parser(
        "info",
        help="versions, runtimes, devices, dtypes, memory and environment variables",
        description="Show versions, runtimes, devices, dtypes, memory and environment variables.",
    )
    info.add_argument("--json", action="store_true", help="print JSON, for programs")
    options = parser.parse_args(arguments)
    found = information()
    print(json.dumps(found, indent=2) if options.json else report(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
