"""Several threads that trace at once: each gets its own graph, with the guards and effects of its own function."""

import gc
import os
import signal
import threading
import time

import pytest

import backplane as bp
from backplane import nn, optim


def on_threads(n, body):
    """The results of body(i) on n threads; raises what one of them raises."""
    results, start = [None] * n, threading.Barrier(n)

    def run(i):
        start.wait()
        try:
            results[i] = body(i)
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def trained(i):
    generator_seed = 3 + i
    bp.manual_seed(generator_seed)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    with bp.no_grad():
        for k, p in enumerate(model.parameters()):
            p[...] = bp.reshape(bp.arange(p.size, dtype=p.dtype), p.shape) * 0.1 * (k + 1 + i)
    optimizer = optim.AdamW(model.parameters(), lr=0.1)

    @bp.compile(state=[model, optimizer])
    def step(x):
        loss, gradients = bp.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
        optimizer.update(model, gradients)
        return loss

    return [step(bp.ones((4, 2)) * k).item() for k in range(3)]


def test_training_steps_are_traced_on_four_threads():
    assert on_threads(4, trained) == [trained(i) for i in range(4)]


def test_each_thread_guards_what_its_function_reads():
    class Settings:
        scale = 1

    settings = [Settings() for _ in range(4)]

    def body(i):
        kept = []

        @bp.compile
        def f(x):
            kept.append(settings[i].scale)
            held = [x * settings[i].scale, {"y": x + i}]
            return held[0] + held[1]["y"]

        results = []
        for scale in (2, 3, 2):
            settings[i].scale = scale
            results.append(f(bp.ones(1)).item())
        return results, kept

    assert on_threads(4, body) == [([3 + i, 4 + i, 3 + i], [2, 3, 2]) for i in range(4)]


def with_containers(x):
    kept, by_name = [x], {"k": [x]}
    gc.collect()
    kept.append(x * 2)
    by_name["y"] = kept
    return kept[1] + by_name["y"][0] + next(iter(kept))


def test_a_function_that_collects_garbage_keeps_its_own_objects():
    compiled = bp.compile(with_containers)
    for i in range(3):
        assert compiled(bp.ones(1) * i).item() == 4 * i


def test_another_thread_collects_garbage():
    collects, ends = threading.Event(), threading.Event()

    def f(x):
        kept = [x]
        bp.unguarded(collects.set)
        bp.unguarded(ends.wait)
        kept.append(x * 2)
        return kept[1]

    def collect():
        collects.wait()
        gc.collect(0)
        ends.set()

    thread = threading.Thread(target=collect)
    thread.start()
    assert bp.compile(f)(bp.ones(1)).item() == 2
    thread.join()


def while_one_traces(seconds, body):
    """body() while another thread traces for so long."""
    traces = threading.Event()

    def slow(x):
        bp.unguarded(traces.set)
        time.sleep(seconds)
        return x * 2

    thread = threading.Thread(target=lambda: bp.compile(slow)(bp.ones(1)))
    thread.start()
    traces.wait()
    try:
        return body()
    finally:
        thread.join()


def test_a_child_of_a_fork_does_not_wait_for_a_trace_of_its_parent():
    def fork():
        child = os.fork()
        if child == 0:
            os._exit(0 if bp.compile(lambda x: x * 3)(2) == 6 else 1)
        return os.waitpid(child, 0)[1]

    assert while_one_traces(1.0, fork) == 0


def test_who_waits_for_a_trace_can_be_interrupted():
    def interrupted():
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            bp.compile(lambda x: x * 3)(bp.ones(1))
        return time.monotonic() - started

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
    try:
        assert while_one_traces(4.0, interrupted) < 3.0
    finally:
        signal.signal(signal.SIGINT, before)
    assert bp.compile(lambda x: x * 3)(bp.ones(1)).item() == 3
