"""Memory of a device: its counts, the cached memory, the limit, and that a failed allocation leaves everything as it was."""

import backplane as bp
import pytest

MIB = 1 << 20


@pytest.fixture(autouse=True)
def no_limit():
    bp.empty_cache()
    yield
    bp.set_memory_limit(None)


def block(mebibytes):
    return bp.zeros(mebibytes * MIB // 4, dtype=bp.float32)


def allocated():
    return bp.memory_stats()["allocated_bytes"]


def keeps_memory():
    x = block(1)
    del x
    return bp.memory_stats()["reserved_bytes"] > allocated()


def test_what_lives_is_counted():
    before = bp.memory_stats()
    x = block(4)
    after = bp.memory_stats()
    assert 4 * MIB <= after["allocated_bytes"] - before["allocated_bytes"] <= 6 * MIB
    assert after["allocations"] == before["allocations"] + 1
    del x
    assert allocated() == before["allocated_bytes"]
    stats = bp.memory_stats("cpu")
    assert stats["limit_bytes"] is None and stats["reserved_bytes"] >= stats["allocated_bytes"]


def test_the_peak_is_the_most_since_it_was_reset():
    bp.reset_peak_memory_stats()
    before = allocated()
    assert bp.memory_stats()["peak_bytes"] == before
    x = block(8)
    del x
    assert allocated() == before and bp.memory_stats()["peak_bytes"] >= before + 8 * MIB
    bp.reset_peak_memory_stats("cpu")
    assert bp.memory_stats()["peak_bytes"] == before


def test_freed_memory_serves_again_until_the_cache_is_emptied():
    if not keeps_memory():
        pytest.skip("the allocator keeps nothing: AddressSanitizer is to see every use after free")
    for mebibytes in (1, 64):
        x = block(mebibytes)
        del x
        before = bp.memory_stats()
        assert before["reserved_bytes"] >= before["allocated_bytes"] + mebibytes * MIB
        x = block(mebibytes)
        after = bp.memory_stats()
        assert after["cache_hits"] == before["cache_hits"] + 1 and after["reserved_bytes"] == before["reserved_bytes"]
        del x
    bp.empty_cache()
    stats = bp.memory_stats()
    assert stats["reserved_bytes"] == stats["allocated_bytes"]


def test_beyond_the_limit_is_a_memory_error_and_nothing_else_happens():
    x = block(2)
    limit = allocated() + 8 * MIB
    bp.set_memory_limit(limit)
    assert bp.memory_stats()["limit_bytes"] == limit
    before = allocated()
    for call, op in ((lambda: block(64), "bp::"), (lambda: bp.broadcast_to(x, (40, x.size)) + 1, "bp::add"),
                     (lambda: bp.concat([x] * 40), "bp::concat")):
        with pytest.raises(MemoryError, match=rf"{op}.*bytes.*are in use, the limit is {limit} bytes.*set_memory_limit"):
            call()
    assert allocated() == before
    assert bp.sum(x + 1).item() == x.size  # half of it fits
    with pytest.raises(bp.OutOfMemoryError):
        block(64)
    bp.set_memory_limit(None)
    with pytest.raises(MemoryError, match="free tensors, or work in smaller pieces") as refused:
        block(1 << 30)
    assert "set_memory_limit" not in str(refused.value), "there is no limit to raise"
    assert block(64).size == 16 * MIB


def test_a_limit_counts_what_is_kept_but_gives_it_up_first():
    x = block(32)
    del x
    bp.set_memory_limit(allocated() + 48 * MIB)
    assert block(40).size == 10 * MIB  # another size: what was kept could not serve, and is gone


def test_a_backward_pass_that_fails_can_be_run_again():
    x = bp.ones(MIB, dtype=bp.float32)
    x.requires_grad = True
    y = bp.sum(bp.exp(x) * x)
    bp.empty_cache()
    bp.set_memory_limit(allocated())
    with pytest.raises(MemoryError):
        y.backward(retain_graph=True)
    bp.set_memory_limit(None)
    x.grad = None
    y.backward()
    assert x.grad[0].item() == pytest.approx(2 * 2.718281828, rel=1e-5)


@pytest.mark.parametrize("shape", [(2**61,), (2**62,), (2**31, 2**31, 2**31), (2**40,)])
def test_a_size_that_no_memory_has(shape):
    with pytest.raises(MemoryError, match="bytes|elements"):
        bp.zeros(shape, dtype=bp.float64)
    with pytest.raises(MemoryError, match="bp::.*(bytes|elements)"):
        bp.add(bp.broadcast_to(bp.zeros((1,) * len(shape), dtype=bp.float64), shape), 1)
    assert bp.zeros(3).tolist() == [0, 0, 0]


def test_the_limit_is_a_number_of_bytes():
    with pytest.raises(TypeError, match="set_memory_limit: argument bytes: found a value of type str"):
        bp.set_memory_limit("1 GiB")
    with pytest.raises(TypeError, match="float"):
        bp.set_memory_limit(1.5)
    for wrong in (-1, 2**63):
        with pytest.raises(ValueError, match=f"set_memory_limit: argument bytes: found {wrong}"):
            bp.set_memory_limit(wrong)
    with pytest.raises(ValueError, match="nowhere"):
        bp.memory_stats("nowhere")
