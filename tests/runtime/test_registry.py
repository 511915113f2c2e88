"""The registry: which runtimes there are, and why others are not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from numr.errors import DeviceMismatch, RuntimeUnavailable
from numr.runtime import (
    Runtime,
    available,
    client_of,
    device_of,
    register,
    runtime,
    unavailable,
    unregister,
)
from numr.runtime.cpu import CpuClient, CpuRuntime
from tests.runtime.toy_runtime import ToyRuntime


@pytest.fixture
def toy():
    register(ToyRuntime)
    yield ToyRuntime
    unregister("toy")


class Broken(ToyRuntime):
    @classmethod
    def name(cls):
        return "broken"

    @classmethod
    def unavailable(cls):
        return RuntimeUnavailable("broken", "its parts are missing", "Run: pip install parts.")


@pytest.fixture
def broken():
    register(Broken)
    yield Broken
    unregister("broken")


def test_the_cpu_is_always_there():
    assert "cpu" in available()
    assert runtime("cpu") is CpuRuntime
    assert CpuRuntime.Client is CpuClient
    assert "cpu" not in unavailable()


def test_runtimes_that_are_not_there_say_why():
    for name, why in unavailable().items():
        assert name not in available()
        assert why.runtime == name
        assert why.reason
        assert why.remedy
        with pytest.raises(RuntimeUnavailable) as caught:
            runtime(name)
        assert isinstance(caught.value, ImportError)
        assert caught.value.reason == why.reason
        assert why.remedy in str(caught.value)


def test_numrs_own_runtimes_are_available_or_explained():
    assert set(available()) | set(unavailable()) >= {"cpu", "cuda", "wgpu"}


def test_an_unknown_runtime_is_named_with_the_known_ones():
    with pytest.raises(RuntimeUnavailable, match=r"'tpu'.*cpu.*register"):
        runtime("tpu")


def test_a_third_party_registers_its_runtime(toy):
    assert "toy" in available()
    assert runtime("toy") is toy
    assert register(toy) is toy  # again
    assert device_of("toy:1") == toy.Device(1)
    assert client_of("toy:1") is toy.default_client(toy.Device(1))


def test_a_runtime_is_forgotten(toy):
    unregister("toy")
    try:
        assert "toy" not in available()
        with pytest.raises(RuntimeUnavailable):
            client_of("toy:1")
        with pytest.raises(RuntimeUnavailable):
            unregister("toy")
    finally:
        register(toy)
    with pytest.raises(RuntimeUnavailable, match="cpu"):
        unregister("cpu")


def test_a_registered_runtime_may_be_unusable(broken):
    assert "broken" not in available()
    assert unavailable()["broken"].reason == "its parts are missing"
    with pytest.raises(RuntimeUnavailable, match="pip install parts"):
        runtime("broken")
    with pytest.raises(RuntimeUnavailable, match="pip install parts"):
        device_of("broken:0")


def test_names_are_not_taken_twice(toy):
    class Thief(ToyRuntime):
        pass

    with pytest.raises(ValueError, match="'toy' already"):
        register(Thief)
    assert runtime("toy") is toy

    class Usurper(ToyRuntime):
        @classmethod
        def name(cls):
            return "cpu"

    with pytest.raises(ValueError, match="'cpu' already"):
        register(Usurper)


def test_incomplete_runtimes_are_refused():
    class Half(Runtime):
        namespace = "half"

        @classmethod
        def name(cls):
            return "half"

    with pytest.raises(TypeError, match=r"Half.*allocate.*copy_strided.*Device.*Client.*Allocator"):
        register(Half)
    for bad in (None, ToyRuntime.Device, "toy"):
        with pytest.raises(TypeError, match="subclass"):
            register(bad)


def test_devices_are_found_over_all_runtimes(toy):
    cpu = CpuRuntime.default_device()
    for spec in (cpu, "cpu", "cpu:0"):
        assert device_of(spec) == cpu
        assert client_of(spec) is CpuRuntime.default_client(cpu)
    assert device_of("toy") == toy.default_device()
    assert device_of(toy.Device(1)) == toy.Device(1)


@pytest.mark.parametrize("spec", ["cpu:1", "toy:2", CpuRuntime.Device(3), None, 5, ("cpu",), []])
def test_devices_that_do_not_exist_are_refused(toy, spec):
    for find in (device_of, client_of):
        with pytest.raises(DeviceMismatch, match="device"):
            find(spec)


def code_lines(text):
    """The lines of a program without what the formatter of the page may change: indentation, blank lines."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"


def test_the_documentation_quotes_the_toy_runtime():
    root = Path(__file__).resolve().parents[2]
    page = (root / "docs" / "write-a-runtime.md").read_text(encoding="utf-8")
    files = [root / "tests" / "runtime" / name for name in ("toy_runtime.py", "conftest.py")]
    sources = [code_lines(file.read_text(encoding="utf-8")) for file in files]
    quotes = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(quotes) > 5
    for quote in quotes:
        assert any(code_lines(quote) in source for source in sources), quote
    assert len(files[0].read_text(encoding="utf-8").splitlines()) < 150
