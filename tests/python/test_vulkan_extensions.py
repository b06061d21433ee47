"""What the Vulkan devices offer beyond their table: time, features and properties, kinds of memory. Streams: test_streams.py."""

import backplane as bp
import numpy as np
import pytest


def test_features_and_properties_by_name(vulkan):
    for name in ("memory", "time", "timestamps"):
        assert vulkan.has(name), name
    assert vulkan.features == sorted(vulkan.features) and all(map(vulkan.has, vulkan.features))
    properties = vulkan.properties
    assert properties["device_type"] in ("discrete", "integrated", "virtual", "cpu", "other")
    assert properties["integrated"] == (properties["device_type"] == "integrated")
    assert tuple(map(int, properties["api_version"].split(".")[:2])) >= (1, 2)
    assert properties["subgroup_size"] > 0 and properties["shared_memory_per_block"] >= 16384
    assert properties["driver"] and properties["largest_block"] >= 1 << 30


def test_a_clock_counts_what_the_device_does(vulkan):
    """Of the same chain ten times as long: a clock of the host's at the time of recording would not know."""
    x = bp.ones(100_000, dtype=bp.float32, device=vulkan)

    def took(rounds):
        start = bp.Event().record(bp.current_stream(vulkan))
        y = x
        for _ in range(rounds):
            y = bp.sin(y)
        return start.elapsed(bp.Event().record(bp.current_stream(vulkan)))

    took(4)  # compiles the shader
    short, long = min(took(4) for _ in range(5)), min(took(40) for _ in range(3))
    assert 0 < short and long > 3 * short


def test_stamps_are_used_again(vulkan):
    """More of them than a pool holds, some dropped while their work still runs."""
    stream = bp.Stream(vulkan)
    with stream:
        x = bp.ones(10_000, dtype=bp.float32, device=vulkan)
        events = [stream.record() for _ in range(200)]
        for _ in range(300):
            x = x + 1
            bp.Event().record(stream)
    assert all(a.elapsed(b) >= 0 for a, b in zip(events, events[1:]))
    assert x.numpy()[0] == 301


def test_a_profile_has_device_times(vulkan):
    x = bp.ones((256, 256), dtype=bp.float32, device=vulkan)
    (x @ x).numpy()
    with bp.profile() as profile:
        (x @ x).numpy()
    (event,) = [event for event in profile.events if "matmul" in event["name"]]
    assert event["device_time"] > 0


@pytest.mark.parametrize("kind", ["device", "host_visible"])
@pytest.mark.parametrize("alignment", [0, 4096])
def test_kinds_of_memory(vulkan, kind, alignment):
    assert bp.memory_kinds(vulkan) == ["device", "host_visible"]
    before = bp.memory_stats(vulkan)["reserved_bytes"]
    for _ in range(50):
        x = bp.empty_in(kind, (40, 50), dtype="float32", device=vulkan, alignment=alignment)
        x.copy_(bp.ones((40, 50), device=vulkan))
        np.testing.assert_array_equal((x + 1).numpy(), np.full((40, 50), 2, np.float32))
    del x
    bp.synchronize(vulkan)
    assert bp.memory_stats(vulkan)["reserved_bytes"] <= before + (1 << 22)
    with pytest.raises(ValueError, match="expected one of device, host_visible"):
        bp.empty_in("fast", (2,), device=vulkan)
