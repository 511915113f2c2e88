"""Finding WebGPU adapters, and what a process sees of the runtime: its absence, forks, the exit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from numr.dtypes import ALL_DTYPES
from numr.errors import DeviceMismatch, RuntimeUnavailable
from numr.runtime.wgpu import WgpuDevice, WgpuRuntime, devices
from numr.runtime.wgpu.devices import DEFAULTS, USED_FEATURES, Adapter, dtypes_of, feature_of
from tests.runtime.wgpu_support import require_adapter, variant

pytestmark = pytest.mark.wgpu


# ------------------------------------------------------------- which adapters
def adapter(device, kind="CPU", interface="Vulkan", hardware=(1, 1), features=USED_FEATURES):
    """What wgpu lists, as far as numr looks at it."""
    return SimpleNamespace(
        info={
            "device": device,
            "description": "driver",
            "vendor": "",
            "backend_type": interface,
            "adapter_type": kind,
            "vendor_id": hardware[0],
            "device_id": hardware[1],
        },
        features=set(features) | {"texture-compression-bc", "mappable-primary-buffers"},
        limits={"max-buffer-size": 1 << 30},
    )


MACHINE = [
    adapter("Soft", hardware=(9, 0)),
    adapter("Little", "IntegratedGPU", hardware=(2, 1), features=["shader-f16"]),
    adapter("Big", "DiscreteGPU", "D3D12", hardware=(3, 7)),
    adapter("Big", "DiscreteGPU", hardware=(3, 7)),
    adapter("Big", "DiscreteGPU", hardware=(3, 7)),  # two of a kind
    adapter("Big", "DiscreteGPU", "OpenGL", hardware=(3, 0), features=[]),
    adapter("Soft", "CPU", "OpenGL", hardware=(9, 0), features=[]),
]


@pytest.fixture
def found(monkeypatch):
    """Adapters that numr finds on a machine, under an environment."""
    import wgpu

    def find(machine=MACHINE, **environment):
        for name in ("NUMR_WGPU_ADAPTER", "NUMR_WGPU_DISABLE", "VK_DRIVER_FILES"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(
            wgpu, "gpu", SimpleNamespace(enumerate_adapters_sync=lambda: list(machine))
        )
        monkeypatch.setattr(devices, "_hardware", devices._hardware)  # what it is set to is undone
        return devices._look()

    return find


def test_the_most_powerful_adapter_is_the_first(found):
    assert [str(a) for a in found()] == [
        "Big (Vulkan, DiscreteGPU)",
        "Big (Vulkan, DiscreteGPU)",
        "Little (Vulkan, IntegratedGPU)",
        "Soft (Vulkan, CPU)",
    ]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("2", ["Little (Vulkan, IntegratedGPU)"]),
        ("soft", ["Soft (Vulkan, CPU)"]),
        ("Big", ["Big (Vulkan, DiscreteGPU)"] * 2),
        ("D3D12", ["Big (D3D12, DiscreteGPU)"]),
        ("opengl", ["Big (OpenGL, DiscreteGPU)", "Soft (OpenGL, CPU)"]),
        (" ", ["Big (Vulkan, DiscreteGPU)"] * 2 + ["Little (Vulkan, IntegratedGPU)"] + ["Soft (Vulkan, CPU)"]),
    ],
)  # fmt: skip
def test_the_environment_chooses_adapters(found, wanted, chosen):
    assert [str(a) for a in found(NUMR_WGPU_ADAPTER=wanted)] == chosen


@pytest.mark.parametrize("wanted", ["4", "17", "Voodoo"])
def test_a_choice_that_nothing_matches_is_refused_with_what_there_is(found, wanted):
    why = found(NUMR_WGPU_ADAPTER=wanted)
    assert isinstance(why, RuntimeUnavailable)
    assert repr(wanted) in why.reason
    assert "Little (Vulkan, IntegratedGPU)" in why.remedy


def test_only_features_that_serve_computing_are_used(found):
    big, _, little, _ = found()
    assert big.features == USED_FEATURES
    assert little.features == {"shader-f16"}


def test_features_are_switched_off_by_the_environment(found):
    big, _, little, _ = found(NUMR_WGPU_DISABLE="shader-f64, shader-int64,")
    assert USED_FEATURES - big.features == {"shader-f64", "shader-int64"}
    assert little.features == {"shader-f16"}
    why = found(NUMR_WGPU_DISABLE="shader-f64,shader-f65")
    assert isinstance(why, RuntimeUnavailable)
    assert "shader-f65" in why.reason
    assert "shader-f64" in why.remedy


def test_opengl_alone_is_not_used_unless_it_is_named(found):
    why = found(machine=MACHINE[5:], VK_DRIVER_FILES="/nowhere.json")
    assert isinstance(why, RuntimeUnavailable)
    assert "Soft (OpenGL, CPU)" in why.reason
    assert "/nowhere.json" in why.reason
    assert len(found(machine=MACHINE[5:], NUMR_WGPU_ADAPTER="OpenGL")) == 2


def test_dtypes_are_those_that_the_features_give():
    everything = dtypes_of(USED_FEATURES)
    assert everything == ALL_DTYPES
    names = {str(d) for d in everything}
    for feature, missing in [
        ("shader-f16", {"float16"}),
        ("shader-f64", {"float64", "complex128"}),
        ("shader-int64", {"int64", "uint64", "float64", "complex128"}),
    ]:
        assert {str(d) for d in dtypes_of(USED_FEATURES - {feature})} == names - missing
        assert all(feature in feature_of(np.dtype(name)) for name in missing)
    least = dtypes_of(frozenset())
    assert not any(map(feature_of, least))
    assert [str(d) for d in DEFAULTS] == ["float32", "complex64", "int32", "int32"]
    assert set(DEFAULTS) <= set(least)


# ------------------------------------------------------------- on this machine
def test_features_that_are_off_are_off_on_the_device():
    require_adapter()
    rt = variant(without=["shader-f64", "shader-int64", "shader-f16"])
    device = rt.default_device()
    opened = rt.opened(device)
    assert not {"shader-f64", "shader-int64", "shader-f16"} & set(opened.gpu.features)
    client = rt.default_client(device)
    assert client.defaults.real == np.dtype("float32")
    assert np.dtype("float64") not in client.dtypes
    import wgpu

    with pytest.raises(wgpu.GPUError, match="FLOAT64"):
        opened.gpu.create_shader_module(
            code="@group(0) @binding(0) var<storage, read_write> x: array<f64>;\n"
            "@compute @workgroup_size(1) fn main() { x[0] = 1.0lf; }"
        )


def test_devices_are_asked_for_all_that_they_have():
    require_adapter()
    found = devices.adapters()[0]
    assert isinstance(found, Adapter)
    opened = WgpuRuntime.opened(WgpuRuntime.default_device())
    assert set(opened.gpu.features) >= found.features
    for limit in ("max-buffer-size", "max-storage-buffer-binding-size", "max-immediate-size"):
        assert opened.gpu.limits[limit] == found.limits[limit]


def test_a_device_is_called_by_its_product():
    require_adapter()
    assert WgpuRuntime.default_device().name == str(devices.adapters()[0])
    assert WgpuDevice(4711).name == "wgpu device 4711"
    with pytest.raises(DeviceMismatch, match="wgpu:0"):
        WgpuRuntime.allocator(WgpuDevice(4711))


# ---------------------------------------------------------------- processes
PREPARE = """
import os, sys
import numpy as np
from numr.runtime import Storage
from numr.runtime.wgpu import WgpuRuntime as rt, devices
def fill(value, count=1000):
    storage = Storage.allocate(4 * count, device, rt)
    rt.copy_to_device(np.full(count, value, np.uint32), storage.handle, device)
    return storage
def total(storage):
    host = np.empty(storage.size // 4, np.uint32)
    rt.copy_from_device(storage.handle, host, device)
    return int(host.sum())
"""


def run(program, prepare=PREPARE, **environment):
    """Standard output of a program, which must end well."""
    # Some drivers complain on standard error where these are not set.
    given = {"LP_NUM_THREADS": "0", "XDG_RUNTIME_DIR": "/tmp", **environment}
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", prepare + program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **given},
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)  # with all children that hang
        process.kill()
        raise
    assert (process.returncode, errors) == (0, "")
    return output


def test_a_missing_library_is_named_with_the_command_that_adds_it():
    program = """
class Block:
    def find_spec(self, name, path=None, target=None):
        if name == "wgpu":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
print(rt.unavailable())
try:
    rt.devices()
except ImportError as error:
    print(error)
"""
    message = (
        "the runtime 'wgpu' is not available: the package wgpu is not installed. "
        "Run: pip install 'numr[wgpu]'.\n"
    )
    assert run(program) == 2 * message


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the variable is that of Linux")
def test_a_missing_adapter_is_named_with_the_command_that_adds_one():
    output = run("print(rt.unavailable())", VK_DRIVER_FILES="/nowhere.json", NUMR_WGPU_ADAPTER="")
    assert output.startswith("the runtime 'wgpu' is not available: there is no Vulkan")
    assert "the driver /nowhere.json alone" in output
    assert "apt-get install mesa-vulkan-drivers" in output


def test_numr_without_an_adapter_says_so_wherever_the_runtime_is_named():
    program = """
import numr
import numr.wgpu as xp
print("wgpu" in numr.available(), "wgpu" in numr.unavailable())
for use in (lambda: numr.namespace("wgpu"), lambda: xp.zeros(3), xp.__array_namespace_info__().devices):
    try:
        use()
    except numr.errors.RuntimeUnavailable as error:
        print(error.runtime, "apt-get install mesa-vulkan-drivers" in str(error))
"""
    output = run(program, VK_DRIVER_FILES="/nowhere.json", NUMR_WGPU_ADAPTER="")
    assert output == "False True\n" + 3 * "wgpu True\n"


def test_the_namespace_and_the_registry_load_the_library_at_their_first_use():
    program = """
import numr
import numr.wgpu as xp
print("wgpu" in sys.modules)
print(xp.asarray([1, 2]) + 1)
print("wgpu" in numr.available(), numr.wgpu is xp, numr.wgpu.linalg is xp.linalg)
"""
    require_adapter()
    assert run(program) == "False\n[2 3]\nTrue True True\n"


def test_an_interpreter_that_exits_in_the_middle_of_work_is_quick_and_quiet():
    require_adapter()
    program = """
import time
device = rt.default_device()
one, two = fill(1, 1 << 20), fill(2, 1 << 20)
rt.copy_strided(one.handle, 0, two.handle, (1 << 10, 1 << 10), (1, 1 << 10), 4, device)
rt.record_compute_event(device)
for _ in range(20):
    rt.copy_strided(one.handle, 0, two.handle, (1 << 10, 1 << 10), (1, 1 << 10), 4, device)
class Node: pass
node = Node(); node.me = node; node.storage = one
print(time.time())
"""
    started = float(run(program))
    assert time.time() - started < 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("code", [0, 3])
def test_a_child_of_fork_that_uses_no_device_exits_as_it_says(code):
    require_adapter()
    program = f"""
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
device = rt.default_device()
before = fill(3)
child = os.fork()
if child == 0:
    grandchild = os.fork()
    if grandchild == 0:
        sys.exit({code})
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), total(before))
"""
    assert run(program) == f"{code} 3000\n"


def require_forking_adapters():
    """Skip the test where a driver does not survive a fork; a test below has what happens then."""
    require_adapter()
    if devices._hardware:
        pytest.skip(f"the driver of {devices._hardware} does not survive a fork")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_of_fork_is_told_that_drivers_of_hardware_do_not_survive():
    require_adapter()
    program = """
import time, warnings
import numr
from numr.errors import DeviceLostError, RuntimeUnavailable
warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
device = rt.default_device()
before = fill(3)
devices._hardware = devices._hardware or "a graphics card"
def work():
    for use in (lambda: fill(5), lambda: numr.namespace("wgpu").zeros(3)):
        try:
            use()
        except RuntimeUnavailable as error:
            print("does not survive a fork" in str(error), "spawn" in str(error))
    try:
        total(before)
    except DeviceLostError as error:
        print("forked from" in str(error))
    print("wgpu" in numr.available(), float(numr.cpu.ones(3)[0]), flush=True)
child = os.fork()
if child == 0:
    work()
    grandchild = os.fork()
    if grandchild == 0:
        work()
        sys.exit(0)
    print(os.waitpid(grandchild, 0)[1], flush=True)
    sys.exit(0)
_, status = os.waitpid(child, 0)
print("parent", status, total(before))
"""
    told = ["True True", "True True", "True", "False 1.0"]
    assert run(program).splitlines() == [*told, *told, "0", "parent 0 3000"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_of_fork_gets_a_working_device_of_its_own():
    require_forking_adapters()
    program = """
import warnings
from numr.errors import DeviceLostError
warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
device = rt.default_device()
before = fill(3)
from wgpu.backends.wgpu_native import _helpers
instance = _helpers._the_instance
pending = fill(4)
rt.copy_strided(before.handle, 0, pending.handle, (10, 10), (1, 10), 4, device)
child = os.fork()
if child == 0:
    new = fill(5)
    copied = fill(0)
    rt.copy_strided(new.handle, 3996, copied.handle, (1000,), (-1,), 4, device)
    print(_helpers._the_instance != instance)
    print("child", total(new), total(copied), rt.allocator(device).stats().active_allocations)
    try:
        total(before)
    except DeviceLostError as error:
        print("forked from" in str(error))
    del before, pending
    print(rt.allocator(device).stats().active_allocations, flush=True)
    grandchild = os.fork()
    if grandchild == 0:
        print("grandchild", total(fill(6)), flush=True)
        sys.exit(0)
    print(os.waitpid(grandchild, 0)[1], flush=True)
    sys.exit(0)
_, status = os.waitpid(child, 0)
print("parent", status, total(before), total(pending))
"""
    assert run(program).splitlines() == [
        "True",
        "child 5000 5000 4",
        "True",
        "2",
        "grandchild 6000",
        "0",
        "parent 0 3000 3900",
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_beside_threads_that_work_does_not_hang():
    require_forking_adapters()
    program = """
import threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
device = rt.default_device()
stop = threading.Event()
counts = [0, 0]
def work(number):
    while not stop.is_set():
        one, two = fill(number), fill(0)
        rt.copy_strided(one.handle, 3996, two.handle, (1000,), (-1,), 4, device)
        assert total(two) == 1000 * number
        counts[number] += 1
threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(2)]
for thread in threads:
    thread.start()
for _ in range(8):
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        os._exit(total(fill(2)) - 2000)
    deadline = time.time() + 30
    while not (done := os.waitpid(child, os.WNOHANG))[0] and time.time() < deadline:
        time.sleep(0.01)
    if not done[0]:
        os.kill(child, 9)
    print(done[1] if done[0] else "hangs")
stop.set()
for thread in threads:
    thread.join()
print(min(counts) > 0)
"""
    assert run(program) == "0\n" * 8 + "True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_graphs_and_forks():
    require_forking_adapters()
    program = """
import gc, warnings
import numr, numr.wgpu as xp
from numr.errors import DeviceLostError
warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
x = xp.asarray([3.0, 1.0, 2.0])
graph = numr.capture(lambda x: xp.cumulative_sum(xp.sort(x) * 2), x)
for _ in range(3):
    graph.launch()
graph.outputs[0].tolist()
child = os.fork()
if child == 0:
    try:
        graph.launch()
    except DeviceLostError as error:
        print("forked from" in str(error))
    del graph
    gc.collect()
    y = xp.asarray([5.0, 4.0])
    other = numr.capture(lambda x: xp.cumulative_sum(xp.sort(x) * 2), y)
    for _ in range(3):
        other.launch()
    print("child", other.outputs[0].tolist(), flush=True)
    sys.exit(0)
_, status = os.waitpid(child, 0)
graph.launch()
print("parent", status, graph.outputs[0].tolist())
"""
    assert run(program).splitlines() == [
        "True",
        "child [8.0, 18.0]",
        "parent 0 [2.0, 6.0, 12.0]",
    ]
