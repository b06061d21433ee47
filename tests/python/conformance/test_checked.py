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
    "argument_released": ("round", 'bp::round: the kernel of plugin "broken" released its argument 1, which it borrows'),
}
NOTICED = ("argument_released",)  # without checks, too: it is the end of a tensor that is in use


def run(fault, checked):
    environment = {**os.environ, "BROKEN_FAULT": fault, "BACKPLANE_CHECKED": checked}
    program = PROGRAM.format(name=FAULTS.get(fault, ("ceil",))[0])
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


def test_reloads_leave_nothing_behind():
    build = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent"))
    done = subprocess.run([build / "bin" / "test_loader", "--gtest_filter=UnloadCycles.OfRowsLeaveNothingBehind"],
                          capture_output=True, text=True, timeout=120, env={**os.environ, "BACKPLANE_CHECKED": "1"})
    assert done.returncode == 0 and "[  PASSED  ] 1 test." in done.stdout, done.stdout
