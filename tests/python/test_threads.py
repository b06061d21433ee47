"""Threads share tensors; each has its own grad mode; long calls let others run."""

import threading
from concurrent.futures import ThreadPoolExecutor

import backplane as bp
import numpy as np


def run(count, work):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def test_results_do_not_mix():
    shared = bp.asarray(np.arange(1000.0))

    def work(number):
        x = shared
        for _ in range(200):
            x = shared * number + 1
        return x[10].item()

    assert run(8, work) == [10 * number + 1 for number in range(8)]


def test_errors_belong_to_their_thread():
    def work(number):
        texts = set()
        for _ in range(100):
            try:
                bp.zeros(number + 2) + bp.zeros(number + 50)
            except ValueError as error:
                texts.add(str(error))
        return texts

    for number, texts in enumerate(run(6, work)):
        assert len(texts) == 1 and f"({number + 50},)" in texts.pop()


def test_grad_mode_is_per_thread():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with bp.no_grad():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    assert entered.wait(10)
    assert bp.grad_enabled() and (bp.ones(1).requires_grad_() * 2).requires_grad
    leave.set()
    thread.join()


def test_backward_in_threads():
    def work(number):
        w = bp.ones(200).requires_grad_()
        for _ in range(20):
            y = (w * number).sum()
            y.backward()
        return w.grad[0].item()

    assert run(4, work) == [20.0 * number for number in range(4)]


def test_hooks_run_with_the_interpreter_lock():
    seen = []

    def work(number):
        x = bp.ones(50_000).requires_grad_()
        for _ in range(10):
            y = x * number
            y.register_hook(lambda g: seen.append(number))
            y.sum().backward()

    run(4, work)
    assert sorted(seen) == sorted([number for number in range(4) for _ in range(10)])


def test_others_run_during_a_long_call():
    ticks = []
    stop = threading.Event()

    def count():
        while not stop.is_set():
            ticks.append(1)
            stop.wait(0.001)

    thread = threading.Thread(target=count)
    x = bp.ones((700, 700))
    thread.start()
    before = len(ticks)
    for _ in range(20):
        x = x @ x * 0.001
    during = len(ticks) - before
    stop.set()
    thread.join()
    assert during > 0


def test_wrapped_memory_dies_on_any_thread():
    def work(number):
        for _ in range(200):
            x = bp.asarray(np.full(20_000, number))
            (x + x).sum()
        return True

    assert all(run(6, work))


def test_devices_are_listed_beside_ops_that_are_replaced():
    errors, stop = [], threading.Event()

    def work():
        while not stop.is_set():
            try:
                bp.devices()
            except bp.BackplaneError as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):

            @bp.custom_op("threads::replaced", replace=True)
            def of_one(x: bp.Tensor) -> bp.Tensor:
                return x

            @bp.custom_op("threads::replaced", replace=True)
            def of_two(x: bp.Tensor, n: int) -> bp.Tensor:
                return x
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
