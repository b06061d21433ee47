"""x.view(dtype) has the bits of x as another dtype, over the same memory: NumPy's values, PyTorch's refusals, and no derivative."""

import backplane as bp
import numpy as np
import pytest

PAIRS = [
    ("f4", "i4", (2, 3)), ("f8", "u8", ()), ("f8", "u2", (2, 3)), ("u1", "i4", (2, 8)), ("i2", "f4", (3, 2)), ("c8", "f4", (2, 3)),
    ("f4", "c8", (4,)), ("f2", "i2", (5,)), ("i8", "f8", (2, 1)), ("?", "u1", (3,)), ("f4", "u1", (0,)), ("u1", "f8", (2, 0))
]  # fmt: skip


def array(dtype, shape):
    data = np.random.default_rng(3).standard_normal(shape) * 50
    return np.asarray(data > 0) if dtype == "?" else np.asarray(data.astype(np.int8).astype(dtype))


def equal(found, expected):
    assert str(found.dtype).endswith(expected.dtype.name) and found.numpy().tobytes() == expected.tobytes() and found.shape == expected.shape


@pytest.mark.parametrize("source, target, shape", PAIRS)
def test_the_bits_are_numpys(source, target, shape):
    a = array(source, shape)
    x = bp.asarray(a, copy=True)
    equal(x.view(np.dtype(target)), a.view(target))
    equal(bp.bitcast(x, np.dtype(target)), a.view(target))
    equal(bp.compile(lambda t: t.view(np.dtype(target)))(x), a.view(target))
    if source != "?":
        assert x.view(np.dtype(target)).view(np.dtype(source)).tolist() == x.tolist()
    if shape:
        rows = bp.vmap(lambda t: t.view(np.dtype(target)))(bp.stack([x, x]))
        equal(rows, np.stack([a.view(target)] * 2))


def test_it_shares_memory_both_ways():
    x = bp.asarray([1.0, -2.0])
    bits = x.view(bp.int32)
    bits &= 0x7FFFFFFF
    assert x.tolist() == [1.0, 2.0]
    x[0] = 0.0
    assert bits.tolist() == [0, 0x40000000]
    part = bp.zeros(4, dtype=bp.int32)[1:3].view(bp.float32)
    part[:] = 1.0
    assert part.view(bp.int32).tolist() == [0x3F800000] * 2


REFUSED = [
    (lambda: bp.asarray(1.0).view(bp.uint8), bp.ShapeError, "has no dimensions"),
    (lambda: bp.zeros(3, dtype=bp.uint8).view(bp.int32), bp.ShapeError, "size 3 along its last axis; expected a multiple of 4"),
    (lambda: bp.zeros((2, 4)).T.view(bp.uint8), ValueError, "stride 4 along its last axis; expected 1"),
    (lambda: bp.zeros(9, dtype=bp.uint8)[1:].view(bp.int32), ValueError, "not a multiple of 4"),
    (lambda: bp.zeros((4, 6), dtype=bp.uint8)[:, :4].view(bp.int32), ValueError, "stride 6 along axis 0; expected a multiple of 4"),
    (lambda: bp.zeros(2, dtype=bp.uint8).view(bp.bool), TypeError, "found bool"),
    (lambda: bp.vmap(lambda t: t.view(bp.uint8))(bp.ones(3)), bp.ShapeError, "has no dimensions"),
]


@pytest.mark.parametrize("call, error, words", REFUSED)
def test_what_memory_does_not_allow_is_refused(call, error, words):
    with pytest.raises(error, match=f"bitcast: argument .*{words}"):
        call()


def through_bits(x):
    return (x * 2).view(bp.int32).view(bp.float32).sum() + x.sum()


@pytest.mark.parametrize("derived", [bp.grad(through_bits), bp.compile(bp.grad(through_bits)), bp.vmap(bp.grad(lambda x: through_bits(x[None])))])
def test_the_bits_are_a_constant_of_derivatives(derived):
    x = bp.asarray([1.0, 2.0])
    assert derived(x).tolist() == [1.0, 1.0]
    assert bp.jvp(through_bits, (x,), (x,))[1].item() == 3.0


def written(x):
    y = x * 2
    y.view(bp.int32).fill_(0)
    return y.sum()


def on_the_tape(x):
    return written(x.clone().requires_grad_())


@pytest.mark.parametrize("run", [
    on_the_tape, lambda x: bp.grad(written)(x), lambda x: bp.jvp(written, (x,), (x,)),
    lambda x: bp.vmap(bp.grad(lambda t: written(t[None])))(x), lambda x: bp.grad(bp.compile(written))(x),
])  # fmt: skip
def test_writing_through_the_bits_of_a_differentiated_tensor_is_refused(run):
    with pytest.raises(bp.BackplaneError, match="bitcast: .*no derivative"):
        run(bp.asarray([1.0, 2.0]))


def test_a_differentiated_value_is_not_written_through_bits():
    x, buffer = bp.asarray([1.0, 2.0]).requires_grad_(), bp.zeros(2, dtype=bp.int32)
    with pytest.raises(bp.BackplaneError, match="bitcast: .*no derivative"):
        buffer.view(bp.float32).copy_(x)
    with bp.no_grad():
        buffer.view(bp.float32).copy_(x)
    assert buffer.view(bp.float32).tolist() == [1.0, 2.0]


def test_rows_are_written_through_their_bits():
    def absolute(x):
        y = x.clone()
        y.view(bp.int32).bitwise_and_(0x7FFFFFFF)
        return y

    assert bp.vmap(absolute)(bp.asarray([[1.0, -2.0], [-3.0, 4.0]])).tolist() == [[1.0, 2.0], [3.0, 4.0]]
