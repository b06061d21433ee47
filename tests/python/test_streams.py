"""Streams, events, pinned memory, copies between devices and completions, on the simulated devices: "sim" hands out addresses,
"simh" handles and keeps a pool of its own; on Vulkan; and on the CUDA device where there is one (`./dev test cuda`). On the CPU, which
has no streams, the same programs run."""

import gc
import sys
import threading

import backplane as bp
import numpy as np
import pytest

DEVICES = ["sim", "simh", "cuda"]
ORDERED = [*DEVICES, "vulkan"]  # of what is asked of any device with streams
pytestmark = pytest.mark.usefixtures("simulator")


def work(device, rounds=20, size=20000):
    """Some of it: what the device computes for a while."""
    x = bp.ones(size, device=device)
    for _ in range(rounds):
        x = bp.sin(x) + 1
    return x


@pytest.mark.parametrize("device", [*ORDERED, "cpu"])
def test_results_are_the_same_on_any_streams(device):
    expected = work(device, 3).numpy()
    first, second = bp.Stream(device), bp.Stream(device)
    with first:
        x = bp.sin(bp.ones(20000, device=device)) + 1
    with second:
        x = bp.sin(x) + 1
        with first:
            x = bp.sin(x)
        x = x + 1
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("device", ORDERED)
def test_with_makes_it_this_threads_current_stream(device):
    stream, inner = bp.Stream(device), bp.Stream(device)
    default = bp.current_stream(device)
    seen = []
    with stream:
        assert bp.current_stream(device) == stream != default
        with inner:
            assert bp.current_stream(device) == inner
        assert bp.current_stream(device) == stream
        thread = threading.Thread(target=lambda: seen.append(bp.current_stream(device) == default))
        thread.start()
        thread.join()
    assert seen == [True] and bp.current_stream(device) == default
    assert stream.device == device


@pytest.mark.parametrize("device", ORDERED)
def test_a_gradient_is_the_same_on_another_stream(device):
    x = bp.asarray([0.5, 2.0], device=device).requires_grad_()
    with bp.Stream(device):
        y = (bp.sin(x) * x).sum()
    with bp.Stream(device):
        y.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.sin([0.5, 2]) + np.cos([0.5, 2]) * [0.5, 2], rtol=2e-6)


@pytest.mark.parametrize("device", [*ORDERED, "cpu"])
def test_events_are_passed_in_order_and_tell_the_time_between(device):
    stream = bp.Stream(device)
    assert bp.Event().query(), "one that was not recorded is done"
    with stream:
        start = stream.record()
        work(device)
        end = bp.Event().record(stream)
    assert start.elapsed(end) >= 0 and start.query() and end.query()
    assert end.elapsed(start) == -start.elapsed(end)
    end.synchronize()
    assert stream.query()


def test_events_of_two_devices_have_no_time_between():
    with pytest.raises(ValueError, match="one device"):
        bp.Event().record(bp.Stream("sim")).elapsed(bp.Event().record(bp.Stream("simh")))
    with pytest.raises(TypeError, match="expected an Event"):
        bp.Event().elapsed(3)


@pytest.mark.parametrize("device", ORDERED)
def test_a_stream_waits_for_events_and_streams(device):
    slow, quick = bp.Stream(device), bp.Stream(device)
    with slow:
        kept = work(device, 40)
    event = slow.record()
    quick.wait(event)
    after = quick.record()
    after.synchronize()
    assert event.query()
    quick.wait(slow)
    quick.synchronize()
    del kept
    with pytest.raises(TypeError, match="expected an Event or a Stream"):
        quick.wait("sim")


def test_a_greater_priority_goes_first():
    least, greatest = bp.stream_priorities("sim")
    assert least < 0 < greatest and bp.stream_priorities("cpu") == (0, 0)
    low, high = bp.Stream("sim", priority=least), bp.Stream("sim", priority=greatest)
    order, gate = [], threading.Event()
    for stream, pieces, name in ((low, 40, "low"), (high, 1, "high")):
        stream.on_complete(gate.wait)
        with stream:
            ends = [work("sim", 4) for _ in range(pieces)]
        stream.on_complete(lambda name=name: order.append(name))
    gate.set()
    low.synchronize(), high.synchronize()
    del ends
    assert order == ["high", "low"] and high.priority == greatest
    with pytest.raises(ValueError, match="expected -1 to 1"):
        bp.Stream("sim", priority=7)
    with pytest.raises(ValueError, match="expected 0 to 0"):
        bp.Stream("cpu", priority=1)


@pytest.mark.parametrize("device", DEVICES)
def test_a_foreign_stream_runs_in_order_with_ours(device):
    theirs = bp.Stream(device)
    ours = bp.Stream.from_handle(device, theirs.handle)
    order = []
    for i in range(6):
        stream = theirs if i % 2 else ours
        stream.on_complete(lambda i=i: order.append(i))
    with ours:
        x = work(device, 2)
    ours.synchronize(), theirs.synchronize()
    assert order == list(range(6))
    np.testing.assert_array_equal(x.numpy(), work(device, 2).numpy())
    with pytest.raises(bp.BackplaneError, match="null"):
        bp.Stream.from_handle(device, 0)
    with pytest.raises(NotImplementedError, match="takes no streams of others"):
        bp.Stream.from_handle("cpu", 1)


@pytest.mark.parametrize("device", [*ORDERED, "cpu"])
def test_completions_come_when_the_work_has_ended(device):
    stream, seen = bp.Stream(device), threading.Event()
    with stream:
        x = work(device)
    end = stream.record()
    stream.on_complete(seen.set)
    assert seen.wait(30)
    assert end.query() and x is not None


@pytest.mark.parametrize("device", [*ORDERED, "cpu"])
def test_what_lies_before_a_completion_has_ended_while_that_runs(device):
    stream, seen, asked = bp.Stream(device), threading.Event(), threading.Event()
    with stream:
        x = work(device)
    end = stream.record()
    patience = 30 if device in ORDERED else 0  # on the CPU the completion runs inside on_complete
    stream.on_complete(lambda: (seen.set(), asked.wait(patience)))
    try:
        assert seen.wait(30) and end.query() and x is not None
    finally:
        asked.set()


def test_a_completion_that_fails_is_reported_and_harms_nothing(monkeypatch):
    reported, after = [], threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reported.append(report.exc_type))
    stream = bp.Stream("sim")
    stream.on_complete(lambda: 1 / 0)
    stream.on_complete(after.set)
    assert after.wait(30) and reported == [ZeroDivisionError]


def test_streams_are_given_back():
    for _ in range(3000):  # more than a device has at once
        bp.Stream("sim")


@pytest.mark.parametrize("device", ORDERED)
def test_pinned_memory_is_copied_without_waiting(device):
    numbers = np.arange(3e5, dtype=np.float32).reshape(3, -1)
    pinned = bp.asarray(numbers).pin_memory(device)
    assert pinned.is_pinned() and not bp.asarray(numbers).is_pinned() and pinned.device == "cpu"
    assert pinned.pin_memory(device) is pinned or pinned.pin_memory(device).is_pinned()
    there = pinned.to(device, non_blocking=True)
    back = (there + 1).to("cpu", non_blocking=True)
    assert back.is_pinned()
    bp.synchronize(device)
    np.testing.assert_array_equal(back.numpy(), numbers + 1)
    np.testing.assert_array_equal(pinned.T.to(device, non_blocking=True).numpy(), numbers.T)


@pytest.mark.parametrize("device", ORDERED)
def test_a_pinned_source_outlives_its_copy(device):
    stream = bp.Stream(device)
    with stream:
        busy = work(device, 40)
        there = [bp.full((1000,), i).pin_memory(device).to(device, non_blocking=True) for i in range(20)]
        gc.collect()
        for i in range(20):  # takes blocks that are free
            bp.full((1000,), -1).pin_memory(device)
    assert [x[0].item() for x in there] == list(range(20)) and busy is not None


def test_memory_that_is_not_pinned_is_copied_as_ever():
    x = bp.arange(1000)
    assert x.to("sim", non_blocking=True).tolist() == x.tolist()
    assert bp.pin(x, "sim").to("simh", non_blocking=True).tolist() == x.tolist(), "pinned for another backend"
    with pytest.raises(NotImplementedError, match='extension "pinned"'):
        x.pin_memory("cpu")


def test_a_gradient_passes_an_asynchronous_copy():
    x = bp.pin(bp.asarray([1.0, 2.0]), "sim").requires_grad_()
    (x.to("sim", non_blocking=True) ** 2).sum().backward()
    assert x.grad.tolist() == [2, 4]


@pytest.mark.parametrize(("source", "target"), [("sim", "sim:1"), ("simh:1", "simh"), ("sim", "simh"), ("simh", "sim:1"), ("sim", "sim")])
def test_devices_copy_to_each_other(source, target):
    """Peers without the host, others through it, in pieces: 13 MB are more than three of them."""
    x = bp.sin(bp.arange(3_300_000, dtype="float32", device=source))
    expected = x.numpy()
    moved = x.to(target)
    x.copy_(bp.zeros_like(x))  # comes after the copy
    assert moved.device == target
    np.testing.assert_array_equal((moved + 0).numpy(), expected if source != target else 0 * expected)


def test_a_copy_between_devices_is_in_order_on_both():
    for i in range(30):
        x = bp.full((5000,), float(i), device="sim")
        there = (x + 1).to("sim:1")
        del x
        x = bp.full((5000,), -1.0, device="sim")  # may have the memory that the copy reads, once it has
        assert there.to("sim").sum().item() == 5000 * (i + 1) and x is not None


def test_kinds_of_memory():
    assert bp.memory_kinds("sim") == ["device", "fast"] and bp.memory_kinds("cpu") == []
    x = bp.empty_in("fast", (4, 5), dtype="float32", device="sim", alignment=4096)
    x.copy_(bp.ones((4, 5), device="sim"))
    assert (x + 1).tolist() == [[2.0] * 5] * 4
    for _ in range(400):  # together more than there is: each goes when its work has ended
        y = bp.empty_in("fast", (1000,), device="sim:1").fill_(3)
        bp.synchronize("sim:1")
    assert y.sum().item() == 3000
    with pytest.raises(MemoryError, match="of fast memory"):
        bp.empty_in("fast", (1 << 20,), device="sim")
    with pytest.raises(ValueError, match="expected one of device, fast"):
        bp.empty_in("slow", (2,), device="sim")
    with pytest.raises(NotImplementedError, match='extension "memory"'):
        bp.empty_in("fast", (2,), device="cpu")


def test_a_backends_own_pool_is_asked_for_every_block():
    def held():
        """Bytes, when nothing waits any more: its pool drops given blocks, if their work has ended, as it takes the next."""
        gc.collect()
        bp.synchronize("simh")
        bp.ones(1, device="simh")
        bp.synchronize("simh")
        return bp.memory_stats("simh")["allocated_bytes"]

    before = held()
    x = bp.ones(100_000, device="simh")
    assert bp.memory_stats("simh")["allocated_bytes"] >= before - 64 + x.nbytes
    del x
    assert held() <= before + 64


def test_a_plugin_stays_while_streams_events_and_pinned_memory_live():
    keep = [bp.Stream("sim"), bp.Event().record(bp.Stream("sim")), bp.pin(bp.ones(3), "sim")]
    with pytest.raises(bp.BusyError, match="streams, events and recordings|pinned memory"):
        bp.unload_plugin("simulator")
    assert keep
