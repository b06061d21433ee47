"""BACKPLANE_CHECKED=1 names the plugin, the op and what its kernel wrote where; without it the same program does not notice.

The plugin is tests/conformance/broken_plugin.cpp; each program is a process of its own.
"""

import os
import pathlib
import subprocess
import sys

import pytest

PLUGIN = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent")) / "tests" / "conformance" / "files" / "broken.so"
PROGRAM = f"""
import backplane as bp
bp.load_plugin({str(PLUGIN)!r})
x = bp.ones((64,), device="broken") * 1.5
for _ in range(3):
    y = bp.{{name}}(x)
bp.synchronize("broken")
print("ended")
"""
FAULTS = {
    "past_end": ("negative", 'bp::negative: the kernel of plugin "broken" wrote 4 bytes behind the end of result 0'),
    "writes_argument": ("ceil", 'bp::ceil: the kernel of plugin "broken" wrote into its argument 1'),
    "scratch_kept": ("negative", 'bp::negative: the kernel of plugin "broken" wrote into scratch memory of an earlier call'),
    "argument_reused": ("round", 'bp::round: the kernel of plugin "broken" wrote into the memory of an argument of an earlier call'),
    "argument_released": ("round", 'bp::round: the kernel of plugin "broken" released argument 1, which it borrows'),
}
NOTICED = ("argument_released",)  # without checks, too: it is the end of a tensor that is in use
LOAD = f"""
import backplane as bp
bp.load_plugin({str(PLUGIN)!r})
device = bp.device("broken")
"""
# What a row keeps of its calls before is of no use after it.
RESET = LOAD + """
for _ in range(4):
    x = bp.ones((64,), device=device) * 1.5
    for _ in range(8):
        y = bp.round(-x)
    assert y.tolist() == [-2] * 64, y
    del x, y
    device.reset()
print("ended")
"""
LOSS = LOAD + """
losses = 0
for _ in range(4):
    try:
        for _ in range(20):
            x = bp.ones((64,), device=device) * 1.5
            assert bp.round(-x).tolist() == [-2] * 64
    except bp.DeviceLostError:
        losses += 1
        device.reset()
assert losses == 1
print("ended")
"""
# The results do not fit in front of the kernel; earlier calls lent it 64 KiB each.
FULL = LOAD + """
x = bp.ones((16384,), device=device)
y, failed = -x, 0
for _ in range(200):
    bp.empty_cache(device)
    bp.set_memory_limit(bp.memory_stats(device)["allocated_bytes"] + 70000, device)
    try:
        bp.negative(x, out=y)
        kept = -x
    except MemoryError:
        failed += 1
    bp.set_memory_limit(None, device)
    assert (-x).tolist() == y.tolist()
assert failed > 100, failed
print("ended")
"""


def run(fault, checked, program="", **more):
    environment = {**os.environ, "BROKEN_FAULT": fault, "BACKPLANE_CHECKED": checked, **more}
    program = program or PROGRAM.format(name=FAULTS.get(fault, ("ceil",))[0])
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=environment)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_kernel_wrote_is_said(fault):
    done = run(fault, "1")
    assert done.returncode == 1 and FAULTS[fault][1] in done.stderr


@pytest.mark.parametrize("fault", sorted(set(FAULTS) - set(NOTICED)))
def test_without_it_nothing_is_looked_at(fault):
    done = run(fault, "0")
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def test_a_right_kernel_passes():
    done = run("", "1")
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


@pytest.mark.parametrize("fault", ["", "handles", "argument_held"])
def test_a_reset_takes_what_was_lent(fault):
    done = run(fault, "1", RESET)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


@pytest.mark.parametrize("after", [1, 17, 40])
def test_a_lost_device_takes_what_was_lent(after):
    done = run("", "1", LOSS, BACKPLANE_SIM_LOSE_AFTER=str(after))
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def test_a_call_that_fails_on_the_way_keeps_nothing():
    done = run("", "1", FULL, BACKPLANE_SIM_MEMORY=str(8 << 20))
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def test_reloads_leave_nothing_behind():
    build = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent"))
    done = subprocess.run([build / "bin" / "test_loader", "--gtest_filter=UnloadCycles.OfRowsLeaveNothingBehind"],
                          capture_output=True, text=True, timeout=120, env={**os.environ, "BACKPLANE_CHECKED": "1"})
    assert done.returncode == 0 and "[  PASSED  ] 1 test." in done.stdout, done.stdout
