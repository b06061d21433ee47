"""Python over a device whose memory the host cannot read: the simulated accelerator of the example plugins."""

import pickle

import backplane as bp
import numpy as np
import pytest


@pytest.fixture(scope="module")
def sim(simulator):
    return bp.device("sim")


def test_there_and_back(sim):
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    x = bp.asarray(array, device=sim)
    assert x.device == "sim"
    np.testing.assert_array_equal(x.numpy(), array)
    np.testing.assert_array_equal(np.asarray(x), array)
    assert x.tolist() == array.tolist() and x[1, 2].item() == 5
    assert x.to("cpu").device == "cpu" and x.to("cpu").to(sim).tolist() == array.tolist()
    assert bp.asarray([1, 2], device="sim").tolist() == [1, 2]


def test_an_array_of_its_elements_is_a_copy_that_refuses_to_be_written(sim):
    x = bp.ones((2, 3)).to(sim)
    for array in (x.numpy(), np.asarray(x), x.to(bp.bfloat16).to(bp.float32).numpy()):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    np.array(x)[:] = 0  # a copy that was asked for
    assert x.sum().item() == 6


@pytest.mark.parametrize("name", ["fmax", "fmin", "xlogy", "maximum", "logaddexp"])
def test_a_number_goes_where_the_tensor_is(sim, name):
    """Also inside decompositions and derivatives, whose calls of the number alone name no device."""
    call, x = getattr(bp, name), bp.asarray([0.5, 3.0])
    there = x.to(sim).requires_grad_()
    for number in (2, float("nan")):
        found = call(there, number)
        assert found.device == "sim"
        np.testing.assert_allclose(found.detach().numpy(), call(x, number).numpy(), rtol=1e-6)
    call(there, 2.0).sum().backward()
    assert there.grad.device == "sim"


def test_its_memory_is_counted_and_limited_by_the_core(sim):
    x = bp.ones(1 << 20, device=sim)
    stats = bp.memory_stats(sim)
    assert stats["allocated_bytes"] >= x.nbytes and stats["limit_bytes"] is None
    held = stats["reserved_bytes"]
    bp.set_memory_limit(held, sim)
    try:
        with pytest.raises(MemoryError, match="the limit is"):
            bp.ones(held, device=sim)
        assert x.sum().item() == 1 << 20  # what was there before is there still
    finally:
        bp.set_memory_limit(None, sim)
    del x
    bp.empty_cache(sim)
    bp.reset_peak_memory_stats(sim)
    after = bp.memory_stats(sim)
    assert after["peak_bytes"] == after["allocated_bytes"] < stats["allocated_bytes"]


def test_its_memory_is_not_handed_out(sim):
    x = bp.ones(2, device=sim)
    with pytest.raises(BufferError, match="host memory"):
        memoryview(x)
    with pytest.raises(ValueError):
        np.asarray(x, copy=False)
    assert x.__dlpack_device__()[0] != 1
    assert np.from_dlpack(x, device="cpu").tolist() == [1, 1]


def test_calls_indexing_and_gradients(sim):
    x = bp.asarray([[1.0, 2.0], [3.0, 4.0]], device=sim).requires_grad_()
    y = (x @ x.T)[0] * 2 + x[[1, 0], [0, 1]]
    y.sum().backward()
    host = x.detach().to("cpu").requires_grad_()
    ((host @ host.T)[0] * 2 + host[[1, 0], [0, 1]]).sum().backward()
    assert x.grad.device == "sim"
    np.testing.assert_allclose(x.grad.numpy(), host.grad.numpy())
    z = bp.zeros((2, 2), device=sim)
    z[0] = 5
    z[1, :1] = [7.0]
    assert z.tolist() == [[5, 5], [7, 0]]


def test_devices_do_not_mix(sim):
    with pytest.raises(ValueError) as caught:
        bp.ones(2, device=sim) + bp.ones(2)
    assert "sim" in str(caught.value) and "cpu" in str(caught.value)
    assert (bp.ones(2, device=sim) + 1).device == "sim"


def test_default_device(sim):
    bp.set_default_device(sim)
    assert bp.zeros(1).device == "sim" and bp.asarray([1.0]).device == "sim"
    assert bp.uniform((2,)).device == "sim"


def test_text_and_pickle(sim):
    x = bp.asarray([1.0, 2.0], device=sim)
    assert repr(x) == "tensor([1., 2.], device='sim')"
    assert "..." in repr(bp.zeros(2000, device=sim))
    again = pickle.loads(pickle.dumps(x))
    assert again.device == "sim" and again.tolist() == [1, 2]


def test_one_seed_gives_the_same_bits(sim):
    here = bp.random_bits((100,), generator=bp.Generator(4), device="cpu")
    there = bp.random_bits((100,), generator=bp.Generator(4), device=sim)
    assert here.tolist() == there.tolist()


def test_powers_in_float64_are_where_the_tensor_is(sim):
    x = bp.asarray([1.0, 4.0], device=sim)
    for power in (0.1, [0.1, 0.1], np.asarray([0.1, 0.1])):
        found = bp.float_power(x, power)
        assert found.device == "sim" and found.dtype is bp.float64
        np.testing.assert_array_equal(found.numpy(), np.float_power([1.0, 4.0], 0.1))


def test_rows_of_the_device_are_printed(sim, capsys):
    x = bp.asarray([1.0, 2.0], device=sim)
    for function in (bp.vmap(lambda row: bp.debug.print("{}", row) or row * 2), bp.compile(bp.vmap(lambda row: bp.debug.print("{}", row) or row * 2))):
        assert function(x).tolist() == [2.0, 4.0]
        assert capsys.readouterr().out == "1.0\n2.0\n"
