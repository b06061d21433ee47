"""A thread that waits for a device holds nothing that the device's callbacks and other threads need."""

import os
import pathlib
import subprocess
import sys

import pytest

UNKIND = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent")) / "tests" / "unkind" / "files" / "unkind.so"
pytestmark = pytest.mark.skipif(not UNKIND.exists(), reason="tests/unkind is not built")


def run(body, plan="seed=1"):
    program = f"import threading\nimport backplane as bp\nbp.load_plugin({str(UNKIND)!r})\n{body}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=90, env={**os.environ, "BACKPLANE_UNKIND": plan})
    assert done.returncode == 0 and "unkind:" not in done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("device", ["unkind", "unkindh"])
def test_small_calls_go_on_beside_a_copy_behind_a_python_callback(device):
    run(f"""
x = bp.ones(16, device={device!r})
held = bp.Stream({device!r})
for i in range(60):
    with held:
        y = x + i
    held.synchronize()
    held.on_complete(lambda: sum(range(2000)))
    found = []
    reader = threading.Thread(target=lambda: found.append(y.tolist()))
    reader.start()
    for k in range(20):
        z = x + k
        bp.zeros(4, device={device!r})
    reader.join()
    assert found == [[1.0 + i] * 16] and z.tolist() == [20.0] * 16
""")


@pytest.mark.parametrize("device", ["unkind", "unkindh"])
def test_a_callback_may_drop_the_last_reference(device):
    run(f"""
streams = [bp.Stream({device!r}) for _ in range(2)]
def work(stream):
    for i in range(40):
        with stream:
            kept = [bp.full(1000, i, dtype=bp.int32, device={device!r}) + 1]
            y = kept[0] * 2
        stream.on_complete(kept.clear)
        del kept
        assert y.tolist() == [2 * i + 2] * 1000
threads = [threading.Thread(target=work, args=(stream,)) for stream in streams]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")


def test_a_stream_waits_for_one_of_a_peer_without_the_host():
    run("""
first, second = bp.Stream("unkind:0"), bp.Stream("unkind:1")
with first:
    x = bp.full(8, 3, dtype=bp.int32, device="unkind:0") + 1
go, went = threading.Event(), []
first.on_complete(lambda: went.append(go.wait(20)))
second.wait(first)
go.set()
assert x.to("unkind:1").tolist() == [4] * 8
first.synchronize()
assert went == [True], "the wait came back when the callback had given up"
""")
