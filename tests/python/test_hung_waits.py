"""Waits for work that never ends: Ctrl-C ends them, a timeout names the op, and what the error advises does not hang in turn."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from sanitized import SANITIZED

FILES = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent")) / "tests"
UNKIND, BROKEN = FILES / "unkind" / "files" / "unkind.so", FILES / "conformance" / "files" / "broken.so"

# device -> its plugin, and the environment in which the square root of float64 numbers never ends
DEVICES = {
    "unkind": (UNKIND, {"BACKPLANE_UNKIND": "hang=2"}),
    "unkindh": (UNKIND, {"BACKPLANE_UNKIND": "hang=2"}),
    "broken": (BROKEN, {"BROKEN_KERNEL": "hangs"}),
    "broken without wait_for": (BROKEN, {"BROKEN_KERNEL": "hangs", "BROKEN_FAULT": "nothing_ends"}),
}

START = """
import os, signal, sys, threading, time
import backplane as bp
bp.load_plugin({plugin!r})
device = bp.device({device!r})
signal.signal(signal.SIGINT, signal.default_int_handler)
x = bp.full((4,), 2.0, dtype=bp.float64, device=device)
bp.synchronize(device)
"""

WAITS = {
    "numpy": "y = bp.sqrt(x); wait = lambda: y.numpy()",
    "item": "y = bp.sqrt(x); wait = lambda: y[0].item()",
    "synchronize": "y = bp.sqrt(x); wait = lambda: bp.synchronize(device)",
    "stream": "hung = bp.Stream(device); wait = hung.synchronize\nwith hung: y = bp.sqrt(x)",
    "event": "hung = bp.Stream(device)\nwith hung: y = bp.sqrt(x)\nwait = hung.record().synchronize",
    "compiled call": "f = bp.compile(lambda x: bp.sqrt(x)); y = f(x); wait = lambda: (f(x) + y).tolist()",
}


def run(device, program, timeout=60):
    plugin, environment = DEVICES[device]
    if not plugin.exists():
        pytest.skip(f"device {device!r}: there is no {plugin}")
    text = START.format(plugin=str(plugin), device=device.split()[0]) + textwrap.dedent(program)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=timeout, env=os.environ | environment)


@pytest.mark.parametrize("device, wait", [*(("unkind", wait) for wait in WAITS), *((device, "numpy") for device in DEVICES if device != "unkind")])
def test_an_interrupt_ends_a_wait(device, wait):
    done = run(device, WAITS[wait] + textwrap.dedent("""
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            wait()
            print("ended")
        except KeyboardInterrupt:
            print("interrupted")
        print((bp.ones(2) + 1).tolist(), flush=True)
        os._exit(0)
        """))
    assert done.stdout.splitlines() == ["interrupted", "[2.0, 2.0]"], done.stdout + done.stderr


@pytest.mark.parametrize("device", ["unkind", "broken"])
def test_a_timeout_names_the_op_that_hangs(device):
    done = run(device, """
        y = bp.sin(bp.sqrt(x) * 3)
        device.set_wait_timeout(0.5)
        try:
            y.numpy()
        except bp.DeviceLostError as error:
            print(error, flush=True)
        os._exit(0)
        """)
    assert "bp::sqrt, or a call behind it up to bp::sin, has not ended within 0.5 s" in done.stdout, done.stdout + done.stderr


def test_what_is_advised_after_a_hang_does_not_hang():
    if SANITIZED:
        pytest.skip("os._exit leaves the queue's thread, which the sanitizer reports")
    done = run("broken without wait_for", """
        y = bp.sqrt(x)
        device.set_wait_timeout(0.5)
        for step in (y.numpy, device.reset, lambda: bp.unload_plugin("broken")):
            try:
                step()
                print("no error")
            except (RuntimeError, NotImplementedError) as error:
                print(type(error).__name__, error)
            if step == device.reset:
                del x, y, step
        sys.stdout.flush()
        os._exit(0)
        """)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    assert [line.split()[0] for line in lines] == ["DeviceLostError", "MissingRuleError", "BusyError"], done.stdout + done.stderr
    assert all("end the process" in line for line in lines), done.stdout
