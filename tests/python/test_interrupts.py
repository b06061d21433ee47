"""Ctrl-C ends long calls between their parts: the nodes of a backward pass, the pieces of a kernel, the steps of a loop."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from sanitized import SANITIZED

STEPS = 4_000 if SANITIZED else 40_000

LONG = {
    "backward": f"""
        x = bp.ones((512, 512)).requires_grad_()
        y = x
        for _ in range({STEPS}):  # a node that keeps no tensor: of sines all operands would stay, 40 GB
            y = y * 0.999
        y = y.sum()
        call = lambda: y.backward(retain_graph=True)
        """,
    "matmul": """
        a = bp.ones((12_000, 12_000))
        call = lambda: a @ a
        """,
    "while_loop": """
        call = lambda: bp.while_loop(lambda s: s < 10**9, lambda s: s + 1, bp.asarray(0))
        """,
    "compiled while_loop": """
        call = lambda: bp.compile(lambda x: bp.while_loop(lambda s: s < 10**9, lambda s: s + 1, x))(bp.asarray(0))
        """,
    "scan": """
        call = lambda: bp.scan(lambda c, _: (c + 1, None), bp.asarray(0), None, length=10**9)
        """,
    "nonzero": """
        bp.set_num_threads(1)
        x = bp.broadcast_to(bp.zeros(1), (2**37,))
        call = lambda: bp.nonzero(x)
        """,
    "flatnonzero": """
        bp.set_num_threads(1)
        x = bp.broadcast_to(bp.zeros(1), (2**37,))
        call = lambda: bp.flatnonzero(x)
        """,
    "argmax": """
        bp.set_num_threads(1)
        x = bp.broadcast_to(bp.zeros(1), (2**37,))
        call = lambda: bp.argmax(x)
        """,
    "argmax along an axis": """
        bp.set_num_threads(1)
        x = bp.broadcast_to(bp.zeros((2, 1)), (2, 2**36))
        call = lambda: bp.argmax(x, axis=1)
        """,
    "stack of matrices": """
        a = bp.ones((60, 1300, 1300), dtype=bp.float64)
        call = lambda: a @ a
        """,
}


@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_the_call(name):
    """It raises KeyboardInterrupt long before the call would have ended, and the next call works."""
    program = "import signal, sys, time\nimport backplane as bp\n" + textwrap.dedent(LONG[name]) + textwrap.dedent("""
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
        print("ready", flush=True)
        start = time.monotonic()
        try:
            call()
            print("ended")
        except KeyboardInterrupt:
            print("interrupted")
        print((bp.ones(2) + 1).tolist(), flush=True)
        """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    assert out.splitlines() == ["interrupted", "[2.0, 2.0]"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_handler_that_does_not_raise_lets_the_call_go_on(threads):
    program = textwrap.dedent(f"""
        import os, signal, threading, time
        import backplane as bp
        handled = []
        signal.signal(signal.SIGUSR1, lambda *_: handled.append((bp.ones(2) + 1).tolist()))
        x = bp.ones((64, 64)).requires_grad_()
        y = x
        for _ in range({STEPS // 2}):
            y = bp.sin(y)
        y = y.sum()
        stop = threading.Event()
        def kick():
            while not stop.is_set():
                os.kill(os.getpid(), signal.SIGUSR1)
                time.sleep(0.01)
        kicker = threading.Thread(target=kick)
        kicker.start()
        y.backward()
        during = len(handled)
        stop.set()
        kicker.join()
        assert during > 1, during
        assert all(one == [2.0, 2.0] for one in handled)
        print(float(x.grad.sum()) > 0)
        """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "BACKPLANE_NUM_THREADS": str(threads)})
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_signals_leave_a_product_as_it_is(dtype):
    """Whatever library computes it: one of them kept values where the kernel puts a handler's frame."""
    program = textwrap.dedent(f"""
        import signal
        import backplane as bp
        a, b = (bp.randint(-4, 4, (400, 400), generator=bp.Generator(seed)).astype("{dtype}") for seed in (1, 2))
        alone = a @ b
        handled = []
        signal.signal(signal.SIGALRM, lambda *_: handled.append(None))
        signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
        while len(handled) < 50:
            assert bool(bp.all(a @ b == alone))
        signal.setitimer(signal.ITIMER_REAL, 0)
        """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_signals_leave_a_convolution_as_it_is():
    program = textwrap.dedent("""
        import signal
        import backplane as bp
        x, w = (bp.ones(shape).requires_grad_() for shape in ((2, 100, 64, 64), (100, 100, 3, 3)))
        handled = []
        signal.signal(signal.SIGALRM, lambda *_: handled.append(None))
        signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
        while len(handled) < 50:
            x.grad = w.grad = None
            bp.nn.functional.conv2d(x, w, stride=2, dilation=2).sum().backward()
            assert x.grad.max().item() == 900
        signal.setitimer(signal.ITIMER_REAL, 0)
        """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_other_threads_run_beside_a_loop():
    """However small its steps are: a thread that ticks every 10 ms does so while the loop runs."""
    program = textwrap.dedent("""
        import threading, time
        import backplane as bp
        ticks, stop = [], threading.Event()
        def tick():
            while not stop.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.01)
        ticker = threading.Thread(target=tick)
        ticker.start()
        start = time.monotonic()
        bp.while_loop(lambda s: s < 300_000, lambda s: s + 1, bp.asarray(0))
        end = time.monotonic()
        stop.set()
        ticker.join()
        assert sum(start < t < end for t in ticks) > 1, (start, end, ticks)
        """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
