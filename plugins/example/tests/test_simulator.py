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


# Of half floats and of complex numbers.
INEXACT = {
    "sum of rows": lambda x: bp.sum(x, axis=1),
    "prod of all": bp.prod,
    "cumulative_sum": lambda x: bp.cumulative_sum(x, axis=1),
    "matmul": lambda x: bp.matmul(x, bp.matrix_transpose(x)),
    "a number": lambda x: x * 3 + x / 7,
    "a view": lambda x: x[:, ::-2] - x[1:2, ::-2],
    **{f: (lambda x, f=f: getattr(bp, f)(x)) for f in "abs sign sqrt exp expm1 log log1p sin cos tanh atan conj square".split()},
    "pow": lambda x: bp.pow(x, x),
    "equal": lambda x: bp.equal(x, bp.flip(x)),
    "any": lambda x: bp.any(x, axis=0),
    "index": lambda x: x[bp.asarray(AT, device=x.device)],
    "cast to a float": lambda x: bp.astype(bp.abs(x), bp.float32),
}
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "complex64": 2e-5, "complex128": 1e-12}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", INEXACT)
def test_half_floats_and_complex_numbers_too(name, dtype):
    values = P + 1j * Y if dtype.startswith("complex") else P

    def run(device):
        found = INEXACT[name](bp.astype(bp.asarray(values), getattr(bp, dtype)).to(device))
        return bp.to_numpy(bp.astype(found, bp.float32) if found.dtype.name == "bfloat16" else found), found.dtype

    (expected, expected_dtype), (found, found_dtype) = run("cpu"), run("sim")
    assert found_dtype is expected_dtype
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


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


def test_synchronize_waits_for_what_was_issued():
    bad = bp.asarray(X, device="sim")[bp.asarray(np.array([0, 9]), device="sim")]
    with pytest.raises(bp.DataError, match=r"index.*9"):
        bp.synchronize("sim")
    del bad
    assert bp.synchronize("sim") is None


@pytest.mark.parametrize("device", DEVICES)
def test_a_bad_index_is_raised_at_the_next_wait_and_the_device_lives_on(device):
    x = bp.asarray(X, device=device)
    bad = x[bp.asarray(np.array([0, 9]), device=device)]
    with pytest.raises(bp.DataError, match=r"index.*9"):
        bp.to_numpy(bad)
    np.testing.assert_array_equal(bp.to_numpy(x + x), X + X)
