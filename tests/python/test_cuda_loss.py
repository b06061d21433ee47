"""A CUDA device whose kernel never ends: who waits raises in time, and the device comes back. `./dev test cuda` runs this on
the emulated driver, which refuses a device that hangs in the same calls as CUDA does."""

import subprocess
import sys

import pytest

HUNG = """
import ctypes, threading, time
import backplane as bp
driver = ctypes.CDLL("libcuda.so.1")
def hang(stream):
    "Puts a kernel that never ends on a stream of the device."
    text = b".version 8.0\\n.target sm_75\\n.address_size 64\\n.visible .entry k()\\n{\\n$L:\\nbra.uni $L;\\n}\\n"
    context, module, function = (ctypes.c_void_p() for _ in range(3))
    handle = ctypes.c_void_p(stream.handle)
    assert driver.cuStreamGetCtx(handle, ctypes.byref(context)) == 0
    assert driver.cuCtxPushCurrent_v2(context) == 0
    assert driver.cuModuleLoadData(ctypes.byref(module), text) == 0
    assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"k") == 0
    assert driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, handle, None, None) == 0
    assert driver.cuCtxPopCurrent_v2(ctypes.byref(context)) == 0

device = bp.device("cuda")
beside = bp.device("cuda:1") if len([d for d in bp.devices() if d.device.backend == "cuda"]) > 1 else bp.device("cpu")
other, tensor = bp.ones(4, device=beside), bp.ones(4, device=device)
function = bp.compile(lambda x: bp.sum(bp.sort(x) * 2))
assert function(tensor).item() == 8
bp.synchronize(device)
device.set_wait_timeout(1.0)
hung = bp.Stream(device)
with hung:
    tensor + 1
"""

WAITS = """
hang(hung)
called, raised, went_on = [], [], []
hung.on_complete(lambda: called.append(1))
def wait(how):
    try:
        with hung:
            how()
    except bp.DeviceLostError as error:
        raised.append(str(error))
ways = [lambda: (tensor + 1).numpy(), lambda: (tensor * 3).sum().item(), hung.synchronize, hung.record().synchronize]
threads = [threading.Thread(target=wait, args=(how,)) for how in ways]
begin = time.perf_counter()
for thread in threads: thread.start()
while any(thread.is_alive() for thread in threads):
    went_on.append((other + 1).numpy().sum() == 8)
    assert time.perf_counter() - begin < 30
for thread in threads: thread.join()
assert len(raised) == 4, raised
assert any("has not ended within 1.0 s" in text for text in raised), raised
assert went_on and all(went_on)
device.reset()
assert called == [1], called
assert function(bp.ones(4, device=device)).item() == 8
assert (other + 1).numpy().sum() == 8
print("done")
"""

# Without a timeout, by a reset from another thread.
RESET = """
device.set_wait_timeout(None)
hang(hung)
raised = []
def wait():
    try:
        hung.synchronize()
    except bp.DeviceLostError as error:
        raised.append(str(error))
thread = threading.Thread(target=wait)
thread.start()
time.sleep(0.1)
device.reset()
thread.join()
assert len(raised) == 1, raised
assert function(bp.ones(4, device=device)).item() == 8
print("done")
"""


@pytest.mark.parametrize("then", [WAITS, RESET], ids=["waits", "reset"])
def test_a_kernel_that_never_ends(cuda, then):
    ran = subprocess.run([sys.executable, "-c", HUNG + then], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0 and ran.stdout.strip() == "done", ran.stdout + ran.stderr
