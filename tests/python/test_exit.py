"""The interpreter ends while threads are anywhere inside the package: the process leaves with its own status, soon."""

import os
import subprocess
import sys

import pytest

# What a daemon thread does, again and again, until the interpreter is gone; `x` is large enough for calls to give the lock away.
WORK = {
    "an op": "x + x",
    "a product": "m @ m",
    "an op on a small tensor": "s + s",
    "an in-place op": "z = y; z += 1",
    "numbers out": "x.sum().item()",
    "a list": "s.tolist()",
    "backward": "w = bp.ones(30000).requires_grad_(); (w * w).sum().backward()",
    "a hook": "w = bp.ones(30000).requires_grad_(); w.register_hook(lambda g: spin()); (w * w).sum().backward()",
    "a hook's end": "w = bp.ones(30000).requires_grad_(); w.register_hook(lambda g: None); v = (w * w).sum(); del w; v.backward()",
    "grad": "bp.grad(lambda w: (spin(), (w * w).sum())[1])(x)",
    "vmap": "bp.vmap(lambda w: (spin(), w * w)[1])(m)",
    "jvp": "bp.jvp(lambda w: (spin(), w * w)[1], (x,), (x,))",
    "a custom function": "bp.checkpoint(lambda w: (spin(), (w * w).sum())[1])(bp.ones(30000).requires_grad_()).backward()",
    "a custom op": "custom(x)",
    "a custom op's gradient": "custom(bp.ones(30000).requires_grad_()).sum().backward()",
    "a wrapped buffer": "(bp.asarray(np.ones(30000)) + 1).sum()",
    "an exported buffer": "np.asarray(x + 1).sum()",
    "dlpack": "np.from_dlpack(bp.from_dlpack(np.ones(30000)) + 1).sum()",
    "devices": "bp.devices(); bp.plugins(); bp.synchronize('cpu')",
    "copies": "bp.to_numpy(x + 0)",
    "foreign numbers": "bp.asarray([Number(), Number()])",
    "a tree of containers": "bp.grad(lambda t: (spin(), t['a'].sum())[1])({'a': x})",
    "garbage": "c = Cycle(); c.own = c; c.t = bp.asarray(np.ones(9)); del c; [[] for _ in range(50)]",
}

PROGRAM = """
import sys, threading, time
import numpy as np
import backplane as bp
sys.setswitchinterval(1e-5)
x, m, s, y = bp.ones(30000), bp.ones((200, 200)), bp.ones(3), bp.ones(30000)

def spin():
    for _ in range(20):
        pass

class Number:
    def __float__(self):
        spin()
        return 1.0

class Cycle:
    def __del__(self):
        spin()

@bp.custom_op("exit::custom")
def custom(x: bp.Tensor) -> bp.Tensor:
    spin()
    return x * 2

@custom.register_shape
def _(x):
    return x

@custom.register_vjp
def _(g):
    spin()
    return g * 2

def work():
    while True:
        try:
            WORK
        except Exception as error:
            print("in the thread:", repr(error), file=sys.stderr, flush=True)
            raise

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
print("done", flush=True)
sys.exit(3)
"""


def ends_well(program):
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                           env={**os.environ, "BACKPLANE_NUM_THREADS": "2"})  # fmt: skip
    assert (ended.returncode, ended.stdout) == (3, "done\n"), ended.stderr
    return ended


@pytest.mark.parametrize("what", WORK)
def test_daemon_threads_end_with_the_process(what):
    program = PROGRAM.replace("WORK", WORK[what])
    for _ in range(4):
        ended = ends_well(program)
        assert ended.stderr == "", ended.stderr


FINALIZERS = """
import atexit, os, sys
import backplane as bp

@atexit.register
def late():
    print(custom(bp.ones(2)).tolist())

@bp.custom_op("exit::custom")
def custom(x: bp.Tensor) -> bp.Tensor:
    return x * 2

@custom.register_shape
def _(x):
    return x

class Noted:
    def __init__(self):
        self.write, self.ending = os.write, sys.is_finalizing
    def __del__(self):
        self.write(1, b"finalized %d" % self.ending())

noted = Noted()
sys.stdout.reconfigure(line_buffering=True)
"""


def test_custom_ops_run_in_atexit_and_let_their_modules_be_finalized():
    ended = subprocess.run([sys.executable, "-c", FINALIZERS], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[2.0, 2.0]\nfinalized 1", "")


@pytest.mark.parametrize("milliseconds", [0, 3, 6, 10, 15, 20, 30])
def test_the_process_ends_while_threads_open_libraries(milliseconds):
    """Drivers are opened with a device's first use; the loader of libraries and their static objects are one of a kind."""
    program = PROGRAM.replace("WORK", WORK["devices"]).replace("sleep(0.05)", f"sleep({milliseconds / 1000})")
    for _ in range(2):
        ends_well(program)
