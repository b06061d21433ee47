"""A child that is forked while other threads are anywhere inside the package computes, differentiates and registers."""

import os
import subprocess
import sys

import pytest

# What three threads do while the main one forks.
WORK = {
    "backward": "(shared * shared).sum().backward()",
    "leaves": "(bp.ones(2).requires_grad_() * 2).sum().backward()",
    "hooks": "h = shared.register_hook(lambda g: None); (shared * 1).sum().backward(); h.remove()",
    "registration": "define('fork::of%d' % threading.get_ident())",
    "vmap": "bp.vmap(looped)(bp.ones((3, 2)))",
    "large tensors": "bp.ones(50000) + 1",
    "products": "m @ m",
    "convolutions": "bp.nn.functional.conv2d(images, filters)",
    "devices": "bp.plugins(); bp.devices()",
    "random numbers": "bp.normal((1000,))",
}

PROGRAM = """
import os, signal, threading
import backplane as bp
shared, m = bp.ones(3000).requires_grad_(), bp.ones((60, 60))
images, filters = bp.ones((2, 16, 20, 20)), bp.ones((16, 16, 3, 3))
before = bp.ones(50000)  # of the parent: the child gives it back

def define(name):
    @bp.custom_op(name, replace=True)
    def op(x: bp.Tensor) -> bp.Tensor:
        return x * 2
    op.register_shape(lambda x: x)
    op.register_vjp(lambda g: g * 2)
    return op

looped = define("fork::looped")
looped.register_batch("loop")

def child():
    global before
    signal.alarm(20)
    del before
    w = bp.ones(3000).requires_grad_()
    (w * w).sum().backward()
    (shared * 2).sum().backward()
    op = define("fork::child")
    v = bp.ones(50000).requires_grad_()
    op(v).sum().backward()
    (m @ m).sum().item()
    bp.nn.functional.conv2d(images, filters).sum().item()
    good = w.grad[0].item() == 2 and v.grad[0].item() == 2 and bp.vmap(lambda r: r + 1)(m)[0, 0].item() == 2
    os._exit(0 if good else 1)

def work():
    while not stop.is_set():
        WORK

stop = threading.Event()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
ends = []
signal.alarm(100)
for _ in range(ROUNDS):
    pid = os.fork()
    if pid == 0:
        child()
    ends.append(os.waitpid(pid, 0)[1])
    if ends[-1]:
        break
stop.set()
for thread in threads:
    thread.join()
print(sorted(set(ends)))
"""


ALLOCATOR_KNOWS_FORKS = pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""),
                                           reason="the address sanitizer of GCC 12 does not take its allocator's locks before a fork")  # fmt: skip


@ALLOCATOR_KNOWS_FORKS
@pytest.mark.parametrize("what", WORK)
def test_a_child_works_whatever_other_threads_did(what):
    program = PROGRAM.replace("WORK", WORK[what]).replace("ROUNDS", "50")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=150,
                           env={**os.environ, "BACKPLANE_NUM_THREADS": "2"})  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "[0]\n"), ended.stderr


IMPORT = """
import os, signal, threading, time
import backplane as bp
thread = threading.Thread(target=lambda: MODULE)
thread.start()
time.sleep(DELAY)
pid = os.fork()
if pid == 0:
    signal.alarm(20)
    bp.nn.functional.relu(bp.ones(2))
    repr(bp.ones(2))
    os._exit(0)
thread.join()
print(os.waitpid(pid, 0)[1])
"""


@pytest.mark.parametrize("delay", [0, 0.001, 0.004])
@pytest.mark.parametrize("module", ["bp.nn", "repr(bp.ones(2))"])
def test_a_child_has_the_modules_that_another_thread_is_importing(module, delay):
    program = IMPORT.replace("MODULE", module).replace("DELAY", str(delay))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "0\n"), ended.stderr


PRODUCTS = """
import os, signal, threading
import backplane as bp
x = bp.ones((100, 100))

def work():
    while not stop.is_set():
        x @ x

stop = threading.Event()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
end = 0
for _ in range(1200):  # a lock of oneDNN is held for a thousandth of the time
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        x @ x
        os._exit(0)
    end = end or os.waitpid(pid, 0)[1]
    if end:
        break
stop.set()
for thread in threads:
    thread.join()
print(end)
"""


@ALLOCATOR_KNOWS_FORKS
def test_a_child_computes_products_whatever_locks_a_library_has():
    ended = subprocess.run([sys.executable, "-c", PRODUCTS], capture_output=True, text=True, timeout=150)
    assert (ended.returncode, ended.stdout) == (0, "0\n"), ended.stderr
