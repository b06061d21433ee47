"""Laws of elementwise ops without a kernel: from its second time on, a large call runs as one compiled pass, with the bits that its parts give."""

import backplane as bp
import numpy as np
import pytest

from entries_plugin import entries  # noqa: F401

SHAPE = (256, 129)  # more elements than the least that is compiled, and no whole number of vectors
CALLS = 3
DTYPES = ["float32", "float64", "float16", "bfloat16"]


def numbers(shape, dtype, seed=0):
    return bp.asarray(np.random.default_rng(seed).uniform(-3, 3, shape)).astype(getattr(bp, dtype))


def bits(tensor):
    return np.from_dlpack(bp.bitcast(tensor, {2: bp.uint16, 4: bp.uint32, 8: bp.uint64}[tensor.dtype.itemsize])).copy()


def kernels_of(function):
    bp.reset_call_counts()
    result = function()
    return result, bp.call_counts().kernels


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_pass_has_the_bits_of_the_parts(entries, dtype):
    x, y = numbers(SHAPE, dtype), numbers((1, SHAPE[1]), dtype, 1)
    # A call whose parts the compiler leaves to kernels, or that is small, runs part by part.
    calls = [(True, lambda: entries.wave(x, speed=1.7)), (True, lambda: entries.wave(x.T, speed=-0.3)), (False, lambda: entries.mixed(x, y)),
             (False, lambda: entries.mixed(y, x, slope=3, sharp=True)), (False, lambda: entries.wave(x[:, ::2][:, :60], speed=2))]  # fmt: skip
    for joined, call in calls:
        parts, n_parts = kernels_of(call)
        assert n_parts >= 2
        for _ in range(CALLS):
            whole, n_whole = kernels_of(call)
            assert n_whole <= (1 if joined else n_parts)
            assert whole.shape == parts.shape and np.array_equal(bits(whole), bits(parts))


def test_a_number_that_changes_at_each_call_compiles_nothing(entries):
    x = numbers(SHAPE, "float32")
    for k in range(5):
        _, n = kernels_of(lambda: entries.wave(x, speed=1 + k / 64))
        assert n == 2


def test_gradients_and_transforms_see_the_op(entries):
    x = numbers(SHAPE, "float64")
    def sums(v):
        return bp.sum(entries.wave(v, speed=3))
    for _ in range(3):
        found = bp.grad(sums)(x)
        assert np.allclose(found.numpy(), 3 * np.cos(3 * x.numpy()), atol=1e-12)
        leaf = x.detach().requires_grad_()
        sums(leaf).backward()
        assert np.allclose(leaf.grad.numpy(), found.numpy(), atol=1e-12)
        rows = bp.vmap(lambda row: entries.wave(row, speed=3))(x)
        assert np.allclose(rows.numpy(), np.sin(3 * x.numpy()), atol=1e-12)


def test_a_given_result_and_the_op_in_place(entries):
    for _ in range(3):
        x, out = numbers(SHAPE, "float32"), bp.zeros(SHAPE)
        expected = np.sin(2 * x.numpy())
        entries.wave(x, speed=2, out=out)
        entries.wave_(x, speed=2)
        assert np.allclose(out.numpy(), expected, atol=1e-6) and np.allclose(x.numpy(), expected, atol=1e-6)


def test_a_result_is_memory_of_its_own(entries):
    x = numbers(SHAPE, "float32")
    results = [entries.wave(x, speed=1) for _ in range(4)]
    results[2][...] = 0
    assert np.array_equal(bits(results[1]), bits(results[3])) and not results[2].any()


def test_a_kernel_that_comes_later_is_used(entries):
    op = bp.custom_op("fused_calls::tripled", "tripled(Tensor x) -> Tensor", shape="broadcast(x)")
    op.register_decomposition(lambda x: x + x + x)
    x = bp.ones(SHAPE)
    for _ in range(3):
        assert op(x).tolist()[0][0] == 3
    op.register_kernel("cpu")(lambda x: x * 4)
    assert op(x).tolist()[0][0] == 4
