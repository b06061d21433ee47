"""The Vulkan backend in processes of their own: without a driver, with two devices, loaded and unloaded many times."""

import os
import pathlib
import subprocess
import sys

import pytest


def _python(code, **environment):
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


CYCLES = """
import gc, os, pathlib, backplane as bp, numpy as np

def held():
    private = next(line for line in open("/proc/self/smaps_rollup") if line.startswith("Private_Dirty"))
    return int(private.split()[1]), len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

plugin = os.environ["BACKPLANE_BUILD"] + "/lib/backplane/plugins/backplane_vulkan.so"
array = np.ones(16, np.float32)

def cycle():
    bp.load_plugin(plugin)
    x = bp.asarray(array, device="vulkan")
    assert (x.numpy() == 1).all()
    del x
    gc.collect()
    bp.unload_plugin("backplane_vulkan")

for _ in range(10):  # until the allocator's arenas have settled
    cycle()
before = held()
for _ in range(90):
    cycle()
print(*(after - then for after, then in zip(held(), before)))
"""


def test_a_hundred_reloads_leave_nothing_behind(vulkan):
    """Without kernels: what the driver keeps of a compiled pipeline settles later than a test may last."""
    kilobytes, threads, files = map(int, _python(CYCLES, BACKPLANE_VULKAN_CACHE="").split())
    assert threads <= 0 and files <= 0
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # which keeps freed memory for a while
        assert kilobytes < 1024


TWO_DEVICES = """
import numpy as np, backplane as bp

listed = [info.name for info in bp.devices() if info.name.startswith("vulkan")]
assert listed == ["vulkan", "vulkan:1"], listed
first, second = (bp.device(name) for name in listed)
array = np.random.default_rng(3).standard_normal((40, 30)).astype(np.float32)
x, y, z = (bp.asarray(array, device=device) for device in (first, second, "cpu"))
for _ in range(20):  # work on all three in turns, and what one has computed goes on to the next
    x, y, z = (y * 0.5 + 1).to(first), (z @ z.T @ z * 0.01).to(second), (x - 0.25).to("cpu")
a, b, c = (bp.asarray(array, device="cpu") for _ in range(3))
for _ in range(20):
    a, b, c = b * 0.5 + 1, c @ c.T @ c * 0.01, a - 0.25
for found, expected, device in ((x, a, first), (y, b, second), (z, c, bp.device("cpu"))):
    assert found.device == device
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-3, atol=1e-4)
try:
    x + y
except ValueError as error:
    print("refused:", str(error).splitlines()[0])
bp.empty_cache(first)
assert bp.memory_stats(second)["allocated_bytes"] > 0
"""


def _software_drivers():
    folders = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")
    return [path for folder in folders for path in sorted(pathlib.Path(folder).glob("*lvp*.json"))]


def test_two_devices_and_the_cpu_in_one_program(vulkan, tmp_path):
    """The loader lists a driver as often as it is named under different paths, so two devices need no second GPU."""
    drivers = _software_drivers()
    if not drivers:
        pytest.skip("no software driver (Debian: mesa-vulkan-drivers)")
    manifests = [tmp_path / "first.json", tmp_path / "second.json"]
    for manifest in manifests:
        manifest.write_text(drivers[0].read_text())
    both = ":".join(map(str, manifests))
    assert "refused: " in _python(TWO_DEVICES, VK_DRIVER_FILES=both, VK_ICD_FILENAMES=both)


def test_importing_does_not_open_it(vulkan):
    state = "import backplane as bp; print([p.state for p in bp.plugins() if p.name == 'backplane_vulkan'])"
    assert "loaded" not in _python(state)


def test_without_a_driver_it_says_so(vulkan):
    code = """
import backplane as bp
try:
    bp.zeros(2, device='vulkan')
except bp.DeviceError as error:
    print(error)
print([info.name for info in bp.devices()])
"""
    out = _python(code, VK_ICD_FILENAMES="/nonexistent.json", VK_DRIVER_FILES="/nonexistent.json")
    assert "device vulkan: no driver" in out and "'cpu'" in out


KERNEL_CYCLES = """
import ctypes, gc, os, backplane as bp

class Held(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

library = ctypes.CDLL("libc.so.6")
library.mallinfo2.restype = Held

def held():  # what is allocated; what the allocator keeps for later use is not
    found = library.mallinfo2()
    return (found.uordblks + found.hblkhd) // 1024

plugin = os.environ["BACKPLANE_BUILD"] + "/lib/backplane/plugins/backplane_vulkan.so"

def cycle():
    bp.load_plugin(plugin)
    x = bp.ones((16, 16), dtype=bp.float32, device="vulkan")
    y = (x @ x + x * 2).sum()
    assert y.item() == 16 * 16 * 18
    del x, y
    gc.collect()
    bp.unload_plugin("backplane_vulkan")

for _ in range(8):
    cycle()
before = held()
for _ in range(12):
    cycle()
print(held() - before)
"""


def test_reloads_with_kernels_keep_no_allocations(vulkan):
    """The process grows for some thirty cycles more, by free memory that the allocator has in pieces."""
    if not hasattr(__import__("ctypes").CDLL(None), "mallinfo2") or "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("no mallinfo2 of the C library's allocator")
    assert int(_python(KERNEL_CYCLES, BACKPLANE_VULKAN_CACHE="")) < 256
