"""The CUDA backend: what a device gives is what the CPU gives, in order, over any layout; and how it says that there is
no device, which needs the plugin but no driver. `./dev test cuda` runs this on the emulated driver."""

import subprocess
import sys

import backplane as bp
import numpy as np
import pytest
from device_calls import LAYOUTS, RNG, normal, same


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", [bp.add, bp.subtract, bp.multiply])
def test_binary_ops_over_layouts(cuda, op, layout):
    view = LAYOUTS[layout]
    same(lambda x, y: op(view(x), view(y)), cuda, normal(7, 9), normal(7, 9), rtol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copy_over_layouts_is_exact(cuda, layout):
    same(lambda x: bp.copy(LAYOUTS[layout](x)), cuda, normal(7, 9), rtol=0)


@pytest.mark.parametrize("shapes", [((3, 1), (4,)), ((5, 1, 2), (1, 3, 1)), ((), (2, 2)), ((1,), (0,)), ((300, 1), (1, 700))])
def test_binary_ops_broadcast(cuda, shapes):
    same(bp.multiply, cuda, *(normal(*shape) for shape in shapes), rtol=1e-6)


def test_more_dimensions_than_one_launch_walks(cuda):
    x, order = normal(*(2,) * 10), (9, 4, 1, 7, 0, 5, 8, 2, 6, 3)
    same(lambda x: bp.permute_dims(x, order) + bp.flip(x), cuda, x, rtol=1e-6)


def test_numbers_and_fills(cuda):
    same(lambda x: x * 2.5 + 1, cuda, normal(5, 3), rtol=1e-6)
    assert bp.full((2, 3), -1.5, device=cuda).tolist() == [[-1.5] * 3] * 2


# Sizes at which kernels take another way: totals of chunks, lines that no block sorts, sums over many blocks of threads.
@pytest.mark.parametrize("shape, axis", [((300_000,), 0), ((3, 40_000), 1), ((9_000, 3), 0), ((700, 300), 0)])
def test_reductions_in_chunks(cuda, shape, axis):
    x = RNG.integers(-9, 9, shape).astype(np.float32)  # sums of these are exact in any order
    same(lambda x: bp.sum(x, axis=axis), cuda, x, rtol=0)
    same(lambda x: bp.max(x, axis=axis), cuda, x, rtol=0)


def test_a_sum_of_nothing_is_written_whole(cuda):
    same(lambda x: bp.sum(x, axis=0), cuda, normal(0, 70), rtol=0)
    same(lambda x: bp.prod(x, axis=1), cuda, normal(3, 0, 4), rtol=0)


@pytest.mark.parametrize("length", [1024, 1025, 5000])
@pytest.mark.parametrize("descending", [False, True])
def test_long_lines_are_sorted_and_stable(cuda, length, descending):
    x = RNG.integers(0, 50, (2, length)).astype(np.float32)
    order = bp.argsort(bp.asarray(x, device=cuda), axis=1, descending=descending).numpy()
    np.testing.assert_array_equal(order, np.argsort(-x if descending else x, axis=1, kind="stable"))


def test_running_sums_of_long_lines(cuda):
    x = RNG.integers(-9, 9, (3, 1000)).astype(np.float32)
    same(lambda x: bp.cumulative_sum(x, axis=1), cuda, x, rtol=0)


@pytest.mark.parametrize("op", ["floor_divide", "remainder", "fmod", "pow"])
@pytest.mark.parametrize("dtype", [bp.int8, bp.int64, bp.uint8], ids=str)
def test_the_device_refuses_the_integers_that_the_host_refuses(cuda, op, dtype):
    values = [0, 3] if op != "pow" else [-1, 3]
    if op == "pow" and dtype == bp.uint8:
        pytest.skip("no exponent is negative")
    x, y = bp.asarray([7, 8]).astype(dtype), bp.asarray(values).astype(dtype)
    for device in ("cpu", cuda):
        with pytest.raises(bp.DataError, match=op):
            getattr(bp, op)(x.to(device), y.to(device)).tolist()


def test_an_error_of_the_data_names_the_op_and_leaves_the_device_usable(cuda):
    x = bp.asarray([7, 8], device=cuda)
    with pytest.raises(Exception, match="floor_divide: an integer divisor is 0"):
        (x // bp.asarray([2, 0], device=cuda)).tolist()
    with pytest.raises(Exception, match="index 5 along axis 0"):
        bp.take(x, bp.asarray([0, 5], device=cuda), axis=0).tolist()
    assert (x // bp.asarray([2, 4], device=cuda)).tolist() == [3, 2]


def test_long_chains_run_in_order(cuda):
    x = bp.zeros(1000, device=cuda)
    one = bp.ones(1000, device=cuda)
    for _ in range(1000):  # each block is overwritten while the work that reads it may still run
        x = x + one
    bp.synchronize(cuda)
    assert (x.numpy() == 1000).all()


def test_a_source_may_change_once_it_was_copied(cuda):
    source = np.ones(100_000, np.float32)
    x = bp.asarray(source, device=cuda)
    source[:] = 7
    assert (x.numpy() == 1).all()


def test_it_is_listed(cuda):
    (listed,) = [info for info in bp.devices() if info.device == cuda]
    assert listed.plugin == "backplane_cuda" and listed.description and listed.total_memory > 0


def test_it_offers_the_extensions_of_devices(cuda):
    for name in ("callbacks", "capture", "events", "features", "memory", "peer", "pinned", "reset", "streams", "time"):
        assert name == "features" or cuda.has(name), name
    assert cuda.has("f16") and cuda.has("bf16") and cuda.has("f64") and cuda.has("subgroups") and not cuda.has("no such thing")
    assert cuda.features == sorted(cuda.features) and all(map(cuda.has, cuda.features))
    properties = cuda.properties
    major = int(properties["compute_capability"].split(".")[0])
    assert cuda.has("tensor_cores") == (major >= 7) and properties["multiprocessors"] > 0 and properties["subgroup_size"] == 32
    assert properties["integrated"] in (True, False) and properties["pci_bus"].count(":") == 2 and "." in properties["driver_version"]


def test_a_greater_priority_goes_first(cuda):
    least, greatest = bp.stream_priorities(cuda)
    assert least == 0 < greatest
    low, high = bp.Stream(cuda), bp.Stream(cuda, priority=greatest)
    x = bp.ones(3, device=cuda)
    with high:
        y = x + 1
    with low:
        z = x + 2
    assert y.tolist() == [2] * 3 and z.tolist() == [3] * 3 and high.priority == greatest
    with pytest.raises(ValueError, match="expected 0 to"):
        bp.Stream(cuda, priority=-1)


@pytest.fixture(scope="module")
def second(cuda):
    try:
        return bp.device("cuda:1")
    except (ValueError, bp.DeviceError) as error:
        pytest.skip(f"device 'cuda:1': {error}")


def test_devices_copy_to_each_other(cuda, second):
    x = bp.sin(bp.arange(300_000, dtype="float32", device=cuda))
    expected = x.numpy()
    moved = x.to(second)
    x.copy_(bp.zeros_like(x))  # comes after the copy
    assert moved.device == second
    np.testing.assert_array_equal((moved + 0).numpy(), expected)


def test_a_copy_between_devices_is_in_order_on_both(cuda, second):
    for i in range(10):
        x = bp.full((5000,), float(i), device=cuda)
        there = (x + 1).to(second)
        del x
        x = bp.full((5000,), -1.0, device=cuda)  # may have the memory that the copy reads, once it has
        assert there.to(cuda).sum().item() == 5000 * (i + 1) and x is not None


def test_kinds_of_memory(cuda):
    assert bp.memory_kinds(cuda) == ["device", "host_visible"]
    for kind in bp.memory_kinds(cuda):
        x = bp.empty_in(kind, (4, 5), dtype="float32", device=cuda, alignment=4096)
        x.copy_(bp.ones((4, 5), device=cuda))
        assert (x + 1).tolist() == [[2.0] * 5] * 4


def test_a_replay_finds_what_is_wrong_with_its_data(cuda):
    x, at = bp.asarray([7, 8, 9], device=cuda), bp.asarray([0, 1], device=cuda)
    with bp.capture(cuda) as recording:
        y = bp.take(x, at, axis=0) // at[1]
    for index, expected in ((1, "7, 8"), (3, "index 3 along axis 0"), (2, "3, 4"), (0, "divisor is 0")):
        at.copy_(bp.asarray([0, index], device=cuda))
        recording.replay()
        if "," in expected:
            assert y.tolist() == [7 // index, [7, 8, 9][index] // index]
            continue
        with pytest.raises(Exception, match=expected):
            y.tolist()


def test_a_device_is_reset(cuda, second):
    pinned = bp.pin(bp.arange(3), cuda)
    lost, stream, event = bp.ones(4, device=second), bp.Stream(second), bp.Event().record(bp.Stream(second))
    with bp.capture(second) as recording:
        lost + 1
    second.reset()
    for use in (lost.tolist, lambda: lost + 1, lambda: lost.to("cpu"), stream.synchronize, recording.replay):
        with pytest.raises(bp.DeviceLostError, match="reset"):
            use()
    x = bp.ones(4, device=second)
    with bp.Stream(second):
        assert (x + 1).to(cuda).tolist() == [2] * 4
    assert event.query() and pinned.to(second, non_blocking=True).tolist() == [0, 1, 2]
    cuda.reset()
    assert pinned.tolist() == [0, 1, 2] and pinned.to(second, non_blocking=True).tolist() == [0, 1, 2]
    assert (bp.ones(2, device=second).to(cuda) + 1).tolist() == [2, 2]


UNLOAD = """
import gc
import backplane as bp
device = bp.device("cuda")
x = bp.ones(3, device=device)
with bp.capture(device) as recording:
    x += 1
recording.replay()
stream, pinned = bp.Stream(device), bp.pin(bp.ones(3), device)
stream.on_complete(lambda: print("completed"))
event = stream.record()
event.synchronize()
print(x.tolist())
del device, x, recording, stream, pinned, event
gc.collect()
bp.unload_plugin("backplane_cuda")
print("unloaded")
"""


def test_the_plugin_goes_when_nothing_of_it_is_held(cuda):
    done = subprocess.run([sys.executable, "-c", UNLOAD], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["completed", "[2.0, 2.0, 2.0]", "unloaded"], done.stderr


def test_without_a_driver_it_says_so():
    try:
        bp.device("cuda")
    except ValueError as error:
        pytest.skip(f"device 'cuda': {error}")
    except bp.DeviceError as error:
        assert "device cuda: no dr" in str(error) and "Fix: " in str(error)
        assert "cuda" not in [info.name for info in bp.devices()]
    else:
        pytest.skip("device 'cuda': there is one")
