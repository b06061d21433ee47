"""What work that failed has written is marked: whoever reads it, or what is computed from it, gets the first cause with its op's name, on
any stream, device or replay; overwriting all of it clears the mark."""

import os
import pathlib

import backplane as bp
import numpy as np
import pytest

UNKIND = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent")) / "tests" / "unkind" / "files" / "unkind.so"
DEVICES = ["sim", "simh", "unkind", "unkindh", "vulkan", "cuda"]
CAUSE = "bp::(take|index).*9"

pytestmark = pytest.mark.usefixtures("simulator")


@pytest.fixture(autouse=True)
def _unkind(request):
    if "unkind" not in str(request.node.callspec.params.get("device")):
        return
    if not UNKIND.exists():
        pytest.skip(f"device 'unkind': there is no {UNKIND}")
    if not any(plugin.name == "unkind" and plugin.state == "loaded" for plugin in bp.plugins()):
        bp.load_plugin(UNKIND)


def spoiled(device, size=4):
    """A tensor whose kernel fails once it runs."""
    return bp.take(bp.ones(3, device=device), bp.full((size,), 9, dtype=bp.int64, device=device))


def raises_cause():
    return pytest.raises(bp.DataError, match=CAUSE)


@pytest.mark.parametrize("device", DEVICES)
class TestErrorsFollowData:
    def test_on_another_stream(self, device):
        first, second = bp.Stream(device), bp.Stream(device)
        with first:
            y = spoiled(device)
        with second:
            z = y * 2 + 1
            with raises_cause():
                z.numpy()

    def test_after_somebody_has_seen_them(self, device):
        y = spoiled(device)
        z = y + 1
        with raises_cause():
            bp.synchronize(device)
        for _ in range(2):
            with raises_cause():
                z.numpy()
        with raises_cause():
            (y * 2).numpy()

    def test_and_nothing_else(self, device):
        x = bp.ones(4, device=device)
        y = spoiled(device)
        with raises_cause():
            y.numpy()
        np.testing.assert_array_equal((x + 1).numpy(), [2, 2, 2, 2])
        bp.synchronize(device)

    def test_until_all_is_overwritten(self, device):
        y = spoiled(device)
        with raises_cause():
            y.numpy()
        bp.add(bp.ones(4, device=device), 1, out=y)
        np.testing.assert_array_equal(y.numpy(), [2, 2, 2, 2])

    def test_where_a_part_is_overwritten(self, device):
        y = spoiled(device)
        with raises_cause():
            y[0:2] = 5
            y.numpy()

    def test_through_a_view(self, device):
        y = spoiled(device)
        part = y[1:3]
        with raises_cause():
            bp.synchronize(device)
        with raises_cause():
            part.numpy()

    def test_through_a_chain_over_streams(self, device):
        streams = [bp.Stream(device) for _ in range(3)]
        with streams[0]:
            y = spoiled(device)
        for i in range(12):
            with streams[i % 3]:
                y = y + 1
        with raises_cause():
            y.numpy()

    def test_to_the_host_and_to_another_device(self, device):
        if device in ("vulkan", "cuda"):
            pytest.skip("one device")
        y = spoiled(f"{device}:0")
        with raises_cause():
            z = y.to(f"{device}:1") + 1
            z.numpy()

    def test_through_a_replay(self, device):
        if device == "vulkan":
            pytest.skip("device 'vulkan' captures nothing")
        indices = bp.zeros(4, dtype=bp.int64, device=device)
        x = bp.ones(3, device=device)
        with bp.capture(device) as recording:
            y = bp.take(x, indices)
            z = y + 1
        recording.replay()
        np.testing.assert_array_equal(z.numpy(), [2, 2, 2, 2])
        bp.add(indices, 9, out=indices)
        recording.replay()
        with bp.Stream(device):
            w = z * 2
            with raises_cause():
                w.numpy()
        bp.multiply(indices, 0, out=indices)
        recording.replay()
        np.testing.assert_array_equal(z.numpy(), [2, 2, 2, 2])

    def test_in_compiled_functions(self, device):
        function = bp.compile(lambda x, at: bp.sum(bp.sort(bp.take(x, at)) * 2))
        x, good = bp.ones(3, device=device), bp.zeros(4, dtype=bp.int64, device=device)
        assert function(x, good).item() == 8
        with raises_cause():
            function(x, good + 9).item()
        assert function(x, good).item() == 8
