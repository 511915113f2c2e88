"""``python -m numr info`` says what is there, and what is not and why."""

from __future__ import annotations

import doctest
import gc
import json
import subprocess
import sys

import numpy as np
import pytest

import numr
from numr.__main__ import information, main, report
from numr.config import ENVIRONMENT, Config
from numr.errors import BackendLimitation
from numr.runtime import client_of


def test_versions():
    info = information()
    assert info["numr"] == numr.__version__
    assert info["numpy"] == np.__version__
    assert info["python"] == sys.version.split()[0]


def test_every_runtime_is_either_available_or_explained():
    info = information()
    assert list(info["runtimes"]) == list(numr.available())
    assert info["unavailable"] == {
        name: {"reason": why.reason, "remedy": why.remedy}
        for name, why in numr.unavailable().items()
    }
    assert {"cpu"} <= set(info["runtimes"])
    assert not set(info["runtimes"]) & set(info["unavailable"])


def test_devices_are_those_of_the_namespace():
    for name, runtime in information()["runtimes"].items():
        inspection = numr.namespace(name).__array_namespace_info__()
        assert runtime["namespace"] == numr.namespace(name).__name__
        assert [d["string"] for d in runtime["devices"]] == [str(d) for d in inspection.devices()]
        for device in runtime["devices"]:
            spec = device["string"]
            assert device["is_default"] == (spec == str(inspection.default_device()))
            assert set(inspection.dtypes(device=spec)) <= set(device["dtypes"])
            assert device["default_dtypes"] == {
                kind: str(dtype) for kind, dtype in inspection.default_dtypes(device=spec).items()
            }


def test_dtypes_of_a_device_do_not_depend_on_the_namespace_that_is_asked():
    names = numr.available()
    for device in (numr.namespace(name).zeros(1).device for name in names):
        asked = [numr.namespace(name).__array_namespace_info__() for name in names]
        assert len({str(info.dtypes(device=device)) for info in asked}) == 1
        assert len({str(info.default_dtypes(device=str(device))) for info in asked}) == 1
    with pytest.raises(numr.errors.NumrError, match="nowhere"):
        numr.cpu.__array_namespace_info__().dtypes(device="nowhere")


def test_memory_figures_are_the_allocators():
    gc.collect()  # or what earlier tests left could be freed in between
    before = information()["runtimes"]["cpu"]["devices"][0]["memory"]
    x = numr.cpu.zeros(1_000_000, dtype=numr.float64)
    during = information()["runtimes"]["cpu"]["devices"][0]["memory"]
    assert during["active_bytes"] - before["active_bytes"] == x.nbytes
    assert during["active_allocations"] - before["active_allocations"] == 1
    assert during["reserved_bytes"] >= during["active_bytes"]
    del x
    after = information()["runtimes"]["cpu"]["devices"][0]["memory"]
    assert after["active_bytes"] == before["active_bytes"]


def test_environment_lists_what_is_set(monkeypatch):
    monkeypatch.setenv("NUMR_NUM_THREADS", "3")
    monkeypatch.delenv("NUMR_ARRAY_API_TESTS", raising=False)
    environment = information()["environment"]
    assert {name: v["meaning"] for name, v in environment.items()} == ENVIRONMENT
    assert environment["NUMR_NUM_THREADS"]["value"] == "3"
    assert environment["NUMR_ARRAY_API_TESTS"]["value"] is None
    text = report(information())
    assert f"  '3': {ENVIRONMENT['NUMR_NUM_THREADS']}" in text
    assert f"  unset: {ENVIRONMENT['NUMR_ARRAY_API_TESTS']}" in text


def test_report_names_runtimes_devices_and_figures(capsys):
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"numr {numr.__version__}, Python ")
    assert "  cpu: available as numr.cpu" in text
    assert "    cpu: " in text
    assert "(default device)" in text
    assert "float64" in text
    assert "bytes active in" in text
    for name, why in numr.unavailable().items():
        assert f"  {name}: not available: {why.reason}. {why.remedy}" in text


@pytest.mark.parametrize(
    ("limit", "frozen", "words"),
    [
        (None, False, "no limit\n"),
        (12345, False, "limit 12345\n"),
        (None, True, "no limit, frozen\n"),
    ],
)
def test_report_shows_limit_and_freeze(limit, frozen, words):
    info = information()
    info["runtimes"]["cpu"]["devices"][0]["memory"].update(limit_bytes=limit, is_frozen=frozen)
    assert words in report(info)


def test_operations_on_the_host_are_counted_and_can_be_forbidden():
    client = client_of("cpu")
    before = dict(client.host_operations)
    assert "operations run on the host: none" in report(information())
    try:
        client.on_host("eig")
        client.on_host("eig")
        with (
            numr.config.override(allow_host_operations=False),
            pytest.raises(BackendLimitation, match="allow_host_operations") as error,
        ):
            client.on_host("eig")
        assert (error.value.backend, error.value.operation) == ("cpu", "eig")
        assert client.host_operations == {"eig": 2}
        assert "operations run on the host: 2 x eig" in report(information())
    finally:
        client.host_operations.clear()
        client.host_operations.update(before)


@pytest.mark.parametrize(
    ("value", "allowed"), [(None, True), ("", True), ("1", True), ("0", False)]
)
def test_the_environment_allows_operations_on_the_host(monkeypatch, value, allowed):
    monkeypatch.delenv("NUMR_ALLOW_HOST_OPERATIONS", raising=False)
    if value is not None:
        monkeypatch.setenv("NUMR_ALLOW_HOST_OPERATIONS", value)
    assert Config().allow_host_operations is allowed


def test_json_is_the_information(capsys):
    gc.collect()
    assert main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == information()


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["info", "--unknown"]])
def test_a_wrong_command_line_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "usage: python -m numr" in capsys.readouterr().err


def test_docstring_examples():
    # pytest itself collects no doctests from a __main__.py.
    results = doctest.testmod(sys.modules["numr.__main__"])
    assert results.attempted > 0
    assert results.failed == 0


def test_as_a_program():
    result = subprocess.run(
        [sys.executable, "-m", "numr", "info", "--json"], capture_output=True, text=True, check=True
    )
    assert result.stderr == ""
    assert json.loads(result.stdout)["numr"] == numr.__version__
