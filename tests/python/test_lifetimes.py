"""What queued work needs lives until the work has ended: executables and constants of models that are gone, memory of a lost device. After
a reset, what was compiled is compiled anew."""

import gc
import os
import pathlib
import subprocess
import sys
import threading

import backplane as bp
import numpy as np
import pytest

UNKIND = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent")) / "tests" / "unkind" / "files" / "unkind.so"


def compiled_steps(x):
    return bp.sum(bp.sort(x @ x + bp.ones((x.shape[0], 1), device=x.device)) * 2)


@pytest.mark.parametrize("device", ["vulkan", "cuda", "sim", "simh"])
def test_a_compiled_function_runs_after_a_reset(simulator, device):
    function = bp.compile(compiled_steps)

    def result():
        return function(bp.ones((4, 4), device=device)).item()

    expected = result()
    for _ in range(2):
        bp.device(device).reset()
        assert result() == expected


@pytest.mark.parametrize("device", ["vulkan", "cuda", "sim", "simh"])
def test_a_constant_of_before_a_reset_is_lost_and_said_to_be(simulator, device):
    weight = bp.full((3,), 2.0, device=device)
    function = bp.compile(lambda x: bp.sin(x) * weight + 1)
    function(bp.ones(3, device=device)).numpy()
    bp.device(device).reset()
    for _ in range(2):
        with pytest.raises(bp.DeviceLostError, match="made before the device was reset"):
            function(bp.ones(3, device=device)).numpy()


MAKES_CONSTANTS = {
    "tensor": lambda x: x * bp.asarray([1.0, 2.0, 3.0], device=x.device),
    "moved": lambda x: x * bp.asarray([1.0, 2.0, 3.0]).to(x.device),
    "indices": lambda x: (x * 2)[[2, 0, 1]],
    "array": lambda x: x * np.array([1, 2, 3], dtype=np.float32),
    "mask": lambda x: bp.where(bp.asarray([True, False, True], device=x.device), x, 0),
    "result": lambda x: (x * 2, bp.asarray([1.0, 2.0, 3.0], device=x.device))[1],
    "nested result": lambda x: (x * 2, {"both": [bp.ones(3, device=x.device), x]})[1]["both"][0] * 3,
}


@pytest.mark.parametrize("function", MAKES_CONSTANTS.values(), ids=MAKES_CONSTANTS)
@pytest.mark.parametrize("device", ["vulkan", "cuda", "sim", "simh"])
def test_a_constant_that_a_compiled_function_makes_is_made_anew_after_a_reset(simulator, device, function):
    calls = bp.compile(function), bp.compile(bp.grad(lambda x: function(x).sum()))

    def results():
        return [call(bp.asarray([1.0, 2.0, 4.0], device=device)).tolist() for call in calls]

    expected = results()
    for _ in range(2):
        bp.device(device).reset()
        assert results() == expected
        assert results() == expected


@pytest.mark.parametrize("device", ["vulkan", "cuda"])
def test_an_executable_outlives_its_function_while_its_work_is_queued(device):
    x = bp.ones((64, 64), device=device)
    results = []
    for i in range(4 if device == "vulkan" else 20):  # whose driver may take seconds for a program
        function = bp.compile(lambda x, i=i: bp.sin(x) * i + bp.cos(x))
        results.append(function(x))
        del function
        gc.collect()
    for i, result in enumerate(results):
        np.testing.assert_allclose(result.numpy(), np.sin(1.0) * i + np.cos(1.0), rtol=1e-5)


@pytest.mark.parametrize("device", ["cuda", "sim", "simh"])
def test_a_captured_compiled_call_replays_after_its_function_is_gone(simulator, device):
    x = bp.full((8,), 2.0, device=device)
    weight = bp.full((8,), 3.0, device=device)
    function = bp.compile(lambda x: bp.sin(x) * weight + 1)
    with bp.capture(device) as recording:
        y = function(x)
    del function, weight
    gc.collect()
    others = [bp.full((8,), 9.0, device=device) for _ in range(16)]
    recording.replay()
    np.testing.assert_allclose(y.numpy(), np.sin(2.0) * 3 + 1, rtol=1e-6)
    del others


@pytest.mark.parametrize("device", ["cuda", "sim", "simh"])
def test_what_is_compiled_in_a_capture_is_right_outside_of_it(simulator, device):
    """Constants are folded, and made row-major, when the first call comes: that work runs, and is not recorded."""
    table = bp.asarray(np.arange(6.0, dtype="float32").reshape(2, 3), device=device)
    function = bp.compile(lambda x: x @ (table.T + 1))
    x = bp.ones((1, 3), device=device)
    with bp.capture(device) as recording:
        y = function(x)
    np.testing.assert_array_equal(function(x).numpy(), [[6, 15]])
    recording.replay()
    np.testing.assert_array_equal(y.numpy(), [[6, 15]])


HUNG = """
import threading, time
import backplane as bp
bp.load_plugin({plugin!r})
device, beside = bp.device({device!r}), {device!r} + ":1"
other, tensor = bp.ones(4, device=beside), bp.ones(4, device=device)
bp.synchronize(beside)
bp.synchronize(device)
function = bp.compile(lambda x: bp.sum(bp.sort(x) * 2))
device.set_wait_timeout(1.0)
raised, went_on = [], []
def wait():
    try:
        (tensor + 1).numpy()
    except bp.DeviceLostError as error:
        raised.append(str(error))
threads = [threading.Thread(target=wait) for _ in range(4)]
begin = time.perf_counter()
for thread in threads: thread.start()
time.sleep(0.3)  # the queue hangs at the next piece of work, which is theirs
while any(thread.is_alive() for thread in threads):
    went_on.append((other + 1).numpy().sum() == 8)
    assert time.perf_counter() - begin < 30
for thread in threads: thread.join()
assert len(raised) == 4, raised
assert any("has not ended within 1.0 s" in text for text in raised), raised
assert went_on and all(went_on)
device.reset()
assert function(bp.ones(4, device=device)).item() == 8
assert (other + 1).numpy().sum() == 8
print("done")
"""


@pytest.mark.parametrize("device", ["unkind", "unkindh"])
def test_a_hung_queue_raises_in_all_waiting_threads_and_is_reset(device):
    if not UNKIND.exists():
        pytest.skip(f"device 'unkind': there is no {UNKIND}")
    program = HUNG.format(plugin=str(UNKIND), device=device)
    ran = subprocess.run([sys.executable, "-c", program], env=os.environ | {"BACKPLANE_UNKIND": "hang=4"}, capture_output=True,
                         text=True, timeout=120)
    assert ran.returncode == 0 and ran.stdout.strip() == "done", ran.stdout + ran.stderr


@pytest.mark.parametrize("device", ["sim", "simh"])
def test_tensors_dropped_and_made_beside_resets(simulator, device):
    """They end in any state of the device, and resets of several threads are one after the other or one."""
    failures = []

    def use():
        for _ in range(40):
            try:
                x = bp.ones(100, device=device) + 1
                y = x * 2
                del x
                y.numpy()
            except bp.DeviceLostError:
                pass
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

    def reset():
        for _ in range(10):
            bp.device(device).reset()

    threads = [threading.Thread(target=use) for _ in range(3)] + [threading.Thread(target=reset) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    bp.device(device).reset()
    assert (bp.ones(3, device=device) + 1).numpy().sum() == 6


BESIDE_RESETS = """
import sys, threading
import backplane as bp
bp.load_plugin({plugin!r})
device, over = bp.device({device!r}), threading.Event()
def use():
    while not over.is_set():
        try:
            first, second = bp.Stream(device), bp.Stream(device)
            for _ in range(20):
                event = first.record()
                second.wait(event)
                second.wait(first)
                event.query()
                second.on_complete(lambda: None)
        except (bp.DeviceLostError, ValueError):  # lost, or all streams are in use
            pass
threads = [threading.Thread(target=use) for _ in range(3)]
sys.setswitchinterval(1e-4)
for thread in threads: thread.start()
for _ in range(30000): device.reset()
over.set()
for thread in threads: thread.join()
print("done")
"""


@pytest.mark.parametrize("device", ["unkind", "unkindh"])
def test_streams_and_events_beside_resets(device):
    """A reset ends a device's streams and stamps: a call that waited for its lock meanwhile is refused."""
    if not UNKIND.exists():
        pytest.skip(f"device 'unkind': there is no {UNKIND}")
    program = BESIDE_RESETS.format(plugin=str(UNKIND), device=device)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0 and ran.stdout.strip() == "done" and not ran.stderr, ran.stdout + ran.stderr


def test_a_timeout_must_be_a_time():
    with pytest.raises(ValueError, match="set_wait_timeout: argument seconds: found -1"):
        bp.device("cpu").set_wait_timeout(-1)
    bp.device("cpu").set_wait_timeout(None)


LARGE = """
import backplane as bp
bp.load_plugin({plugin!r})
x = bp.full((1000,), 3.0, device={device!r})
y = bp.full((1000,), 2.0, device={device!r})
def steps(x, y):
    made = [bp.sin(x) * i for i in range(12)]  # of 4,000 bytes each, all of which live at once
    return sum(made, y) + sum(reversed(made), y)
expected = steps(x, y).numpy()
assert (bp.compile(steps)(x, y).numpy() == expected).all()
"""


@pytest.mark.parametrize("device", ["unkind", "unkindh"])
def test_no_arena_exceeds_the_largest_block_of_the_device(device):
    if not UNKIND.exists():
        pytest.skip(f"device 'unkind': there is no {UNKIND}")
    ran = subprocess.run([sys.executable, "-c", LARGE.format(plugin=str(UNKIND), device=device)], capture_output=True, text=True, timeout=120,
                         env=os.environ | {"BACKPLANE_UNKIND_LARGEST_BLOCK": "20000"})
    assert ran.returncode == 0 and "unkind:" not in ran.stderr, ran.stdout + ran.stderr


HANGING = """
import backplane as bp
bp.load_plugin({plugin!r})
device = bp.device("unkind")
device.set_wait_timeout(1.0)
def result():
    return (bp.ones(4, device=device) + 1).numpy().sum()
try:
    assert result() == 8
except bp.DeviceLostError as error:
    print(error)
device.reset()
device.set_wait_timeout(None)
assert result() == 8
"""


def test_whichever_piece_of_work_hangs_its_reader_raises_also_a_copy_that_hangs_itself():
    if not UNKIND.exists():
        pytest.skip(f"device 'unkind': there is no {UNKIND}")
    program = [sys.executable, "-c", HANGING.format(plugin=str(UNKIND))]
    runs = [subprocess.Popen(program, env=os.environ | {"BACKPLANE_UNKIND": f"hang={number}"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True) for number in range(5)]  # the last one is the copy to the host
    said = []
    for one in runs:
        out, err = one.communicate(timeout=60)
        assert one.returncode == 0 and "unkind:" not in err, out + err
        said.append(out)
    assert all("has not ended within 1.0 s" in text for text in said), said
    assert "copy_to_host has not ended" in said[-1], said


READ_BY_A_LOST_PEER = """
import backplane as bp
bp.load_plugin({plugin!r})
first, second = bp.device({device!r}), bp.device({device!r} + ":1")
x = bp.ones(4, device=first) + 1
y = bp.ones(4, device=second)
bp.synchronize(first)
bp.synchronize(second)
z = y + 1  # hangs, with the copy behind it
copied = x.to(second)
second.set_wait_timeout(0.3)
try:
    z.numpy()
    raise AssertionError("the plan's hang did not come")
except bp.DeviceLostError:
    second.reset()
for _ in range(3):
    x += 1
    bp.synchronize(first)
    assert x.to(second).numpy().sum() == x.numpy().sum()
assert x.numpy().sum() == 20
"""


@pytest.mark.parametrize("device", ["unkind", "unkindh"])
def test_a_device_hears_nothing_of_the_loss_of_a_peer_that_reads_its_memory(device):
    if not UNKIND.exists():
        pytest.skip(f"device 'unkind': there is no {UNKIND}")
    ran = subprocess.run([sys.executable, "-c", READ_BY_A_LOST_PEER.format(plugin=str(UNKIND), device=device)], capture_output=True, text=True,
                         timeout=120, env=os.environ | {"BACKPLANE_UNKIND": "hang=6"})
    assert ran.returncode == 0 and not ran.stderr, ran.stdout + ran.stderr


BEHIND_A_HUNG_STREAM = """
import backplane as bp
bp.load_plugin({plugin!r})
device = bp.device({device!r})
hung, writer = bp.Stream(device), bp.Stream(device)
with writer:
    x = bp.ones(4, device=device) + 1
bp.synchronize(device)
with hung:
    y = x + 1
writer.wait(hung)
device.set_wait_timeout(0.5)
try:
    x.numpy()  # a copy on its writer
    raise AssertionError("the plan's hang did not come")
except bp.DeviceLostError as error:
    assert "has not ended within 0.5 s" in str(error), error
device.reset()
assert (bp.ones(4, device=device) + 1).numpy().sum() == 8
"""


@pytest.mark.parametrize("device", ["unkind", "unkindh"])
def test_a_copy_on_a_stream_that_waits_for_a_hung_one_raises_in_time(device):
    """Also where the backend has no `abort`: the copy does not begin before the stream has come to it."""
    if not UNKIND.exists():
        pytest.skip(f"device 'unkind': there is no {UNKIND}")
    ran = subprocess.run([sys.executable, "-c", BEHIND_A_HUNG_STREAM.format(plugin=str(UNKIND), device=device)], capture_output=True, text=True,
                         timeout=60, env=os.environ | {"BACKPLANE_UNKIND": "hang=4"})
    assert ran.returncode == 0 and not ran.stderr, ran.stdout + ran.stderr
