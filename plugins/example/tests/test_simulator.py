"""The simulated devices give what the CPU gives, without its help: their kernels are the primitives alone, and all else
reaches them by decomposition."""

import numpy as np
import pytest

import backplane as bp

RNG = np.random.default_rng(7)
X = RNG.standard_normal((3, 4)).astype(np.float32)
Y = RNG.standard_normal((4,)).astype(np.float32)
P = np.abs(X) + np.float32(0.5)
I = RNG.integers(-5, 6, (3, 4)).astype(np.int32)
J = RNG.integers(1, 4, (3, 4)).astype(np.int32)
B = X > 0
AT = np.array([2, 0, -1])
IMAGES = RNG.standard_normal((2, 3, 6, 6)).astype(np.float32)
FILTERS = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)
LABELS = np.array([1, 0, 3])

UNARY = "negative abs sign square exp expm1 sin cos tan atan tanh erf sigmoid relu silu gelu floor ceil trunc round".split()
BINARY = "add subtract multiply divide maximum minimum atan2 remainder floor_divide".split()
COMPARE = "equal not_equal less less_equal greater greater_equal".split()
REDUCE = "sum prod max min any all mean var std logsumexp".split()

CASES = {
    **{f: (lambda x, f=f: getattr(bp, f)(x), X) for f in UNARY},
    **{f: (lambda x, f=f: getattr(bp, f)(x), P) for f in ("sqrt", "rsqrt", "log", "log1p", "log2", "reciprocal")},
    **{f: (lambda x, y, f=f: getattr(bp, f)(x, y), X, Y) for f in BINARY + COMPARE},
    **{f"{f} of a number": (lambda x, f=f: getattr(bp, f)(x, 2), X) for f in BINARY + COMPARE},
    **{f"{f} of integers": (lambda x, y, f=f: getattr(bp, f)(x, y), I, J) for f in BINARY + COMPARE if f != "atan2"},
    **{f"bitwise_{f}": (lambda x, y, f=f: getattr(bp, f"bitwise_{f}")(x, y), I, J)
       for f in ("and", "or", "xor", "left_shift", "right_shift")},
    **{f"{f} of all": (lambda x, f=f: getattr(bp, f)(x), X) for f in REDUCE},
    **{f"{f} of rows": (lambda x, f=f: getattr(bp, f)(x, axis=1, keepdims=True), X) for f in REDUCE},
    **{f"{f} of columns": (lambda x, f=f: getattr(bp, f)(x, axis=0), X) for f in REDUCE + ["argmax", "argmin"]},
    "argmax of all": (bp.argmax, X),
    "sum of booleans": (bp.sum, B),
    "sum of integers": (bp.sum, I),
    "pow": (bp.pow, P, X),
    "pow of integers": (bp.pow, I, J),
    "where": (bp.where, B, X, Y),
    "bitwise_invert": (bp.bitwise_invert, B),
    "cumulative_sum": (lambda x: bp.cumulative_sum(x, axis=0), X),
    "matmul": (lambda x, y: x @ y.T, X, P),
    "matmul of a vector": (bp.matmul, X, Y),
    "matmul of batches": (bp.matmul, IMAGES, IMAGES),
    "concat": (lambda x, y: bp.concat([x, y], axis=1), X, P),
    "reshape of a transposed view": (lambda x: bp.reshape(x.T, (2, 6)), X),
    "a view that begins off the alignment": (lambda x: x[:, 1:] * 2, X),
    "a view that runs backward": (lambda x: x[::-1, ::2] + 1, X),
    "index": (lambda x, at: x[at], X, AT),
    "index of the second axis": (lambda x, at: x[:, at], X, AT),
    "index with axes apart": (lambda x, at: bp.asarray(x)[at, :, at], IMAGES[:, :, :3, :3], np.array([1, 0])),
    "take_along_axis": (lambda x, at: bp.take_along_axis(x, at, axis=1), X, np.abs(I) % 4),
    "argsort": (lambda x: bp.argsort(x, axis=0, descending=True), X),
    "sort": (bp.sort, X),
    "softmax": (bp.softmax, X),
    "log_softmax": (bp.log_softmax, X),
    "cross_entropy": (bp.cross_entropy, X, LABELS),
    "conv2d": (lambda x, w: bp.conv2d(x, w, padding=[1, 1], stride=[2, 1]), IMAGES, FILTERS),
    "max_pool2d": (lambda x: bp.max_pool2d(x, [2, 2]), IMAGES),
    "layer_norm": (lambda x: bp.layer_norm(x), X),
    **{f"cast to {d}": (lambda x, d=d: bp.astype(x, getattr(bp, d)), 30 * P)
       for d in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float64".split()},
}
DEVICES = ["sim:0", "sim:1", "simh"]


@pytest.fixture(autouse=True)
def no_help_from_the_host(simulator):
    before = bp.allow_host_fallback(False)
    yield
    bp.allow_host_fallback(before)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_same_as_the_cpu(name, device):
    call, *arrays = CASES[name]
    expected = bp.to_numpy(call(*(bp.asarray(array) for array in arrays)))
    found = call(*(bp.asarray(array, device=device) for array in arrays))
    assert str(found.device) == str(bp.asarray(0, device=device).device)
    found = bp.to_numpy(found)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_are_those_of_the_cpu(device):
    def gradients(device):
        x, w, v = (bp.asarray(a, device=device).requires_grad_() for a in (IMAGES, FILTERS, Y))
        hidden = bp.relu(bp.conv2d(x, w, padding=[1, 1])).sum(axis=(2, 3))
        loss = bp.cross_entropy(hidden * v, bp.asarray(np.array([3, 1]), device=device)).mean()
        loss.backward()
        return [bp.to_numpy(t.grad) for t in (x, w, v)]

    for found, expected in zip(gradients(device), gradients("cpu"), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_random_bits_do_not_depend_on_the_device(device):
    def draw(device):
        generator = bp.Generator(3)
        return [bp.to_numpy(f((5, 3), device=device, generator=generator)) for f in (bp.uniform, bp.normal)]

    for found, expected in zip(draw(device), draw("cpu"), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_assignment_through_an_index(device):
    expected, x = X.copy(), bp.asarray(X, device=device)
    for key, value in (((1, 2), 5), ((slice(None), slice(1, 4, 2)), Y[:2]), ((AT,), 7), ((slice(None, None, -1),), X)):
        expected[key] = value
        key = tuple(bp.asarray(k, device=device) if isinstance(k, np.ndarray) else k for k in key)
        x[key] = bp.asarray(value, device=device) if isinstance(value, np.ndarray) else value
        np.testing.assert_array_equal(bp.to_numpy(x), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("key", [(slice(None), slice(1, None)), (slice(None, None, -1), slice(3, None, -2)), (2, 3)], ids=str)
def test_in_place_through_a_view_that_begins_off_the_alignment(key, device):
    expected, x = X.copy(), bp.asarray(X, device=device)
    view = x[key]
    view += 1
    bp.square(view, out=view)
    expected[key] = (expected[key] + 1) ** 2
    np.testing.assert_allclose(bp.to_numpy(x), expected, rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_a_bad_index_is_raised_at_the_next_wait_and_the_device_lives_on(device):
    x = bp.asarray(X, device=device)
    bad = x[bp.asarray(np.array([0, 9]), device=device)]
    with pytest.raises(bp.DataError, match=r"index.*9"):
        bp.to_numpy(bad)
    np.testing.assert_array_equal(bp.to_numpy(x + x), X + X)
