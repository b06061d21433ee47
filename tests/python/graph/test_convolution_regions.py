"""A convolution and what follows it run as one region: the results are those of eager mode, and a region ends where its steps do."""

import backplane as bp
import numpy as np
import pytest

# images, kernels, stride, padding, groups: each computed in another way
WAYS = {
    "pointwise": ((1, 20, 9, 13), (24, 20, 1, 1), 1, 0, 1),
    "pointwise, a few pixels": ((1, 20, 2, 3), (24, 20, 1, 1), 1, 0, 1),
    "a channel a group": ((2, 12, 9, 21), (12, 1, 3, 3), 1, 1, 12),
    "a channel a group, strides": ((1, 5, 20, 40), (10, 1, 3, 3), 2, 1, 5),
    "a channel a group, rows": ((1, 5, 12, 19), (5, 1, 5, 5), 1, 0, 5),
    "dense": ((1, 16, 20, 20), (32, 16, 3, 3), 1, 1, 1),
    "dense, direct": ((1, 3, 60, 60), (8, 3, 3, 3), 1, 1, 1),
    "dense, small": ((1, 3, 5, 5), (4, 3, 3, 3), 2, 1, 1),
}


def random(shape, seed, scale=1.0):
    return bp.asarray((np.random.default_rng(seed).standard_normal(shape) * scale).astype("float32"))


class Layer:
    """The operands of a convolution, and of steps behind it."""

    def __init__(self, way):
        shape, kernel, self.stride, self.padding, self.groups = WAYS[way]
        self.x, self.w, channels = random(shape, 0), random(kernel, 1), kernel[0]
        self.bias, self.scale = random((channels, 1, 1), 2), random((1, channels, 1, 1), 3)
        self.mean, self.weight, self.offset = (random((channels,), seed) for seed in (4, 5, 6))
        self.variance = bp.abs(random((channels,), 7)) + 0.1

    def conv(self, x, w):
        return bp.conv2d(x, w, stride=[self.stride] * 2, padding=[self.padding] * 2, groups=self.groups)


STEPS = {
    "bias and relu": (lambda y, s: bp.relu(y + s.bias), 3),
    "bias first": (lambda y, s: s.bias + y, 2),
    "a number": (lambda y, s: bp.relu(y * 0.5 - 1), 4),
    "subtracted from": (lambda y, s: s.bias - y, 2),
    "scale and shift": (lambda y, s: (y - s.bias) * s.scale + 2, 4),
    "one number in a tensor": (lambda y, s: y * bp.reshape(s.mean[0], (1, 1, 1)), 2),
    "relu6": (lambda y, s: bp.relu6(y + s.bias), 3),
    "clip": (lambda y, s: bp.clip(y, -0.5, 0.25), 3),
    "bounds": (lambda y, s: bp.minimum(bp.maximum(y, -0.5), 0.25), 3),
    "hardtanh": (lambda y, s: bp.hardtanh(y), 2),
    "batch norm": (lambda y, s: bp.relu(bp.batch_norm_inference(y + s.bias, s.mean, s.variance, s.weight, s.offset)), 4),
    "batch norm without weights": (lambda y, s: bp.batch_norm_inference(y, s.mean, s.variance, eps=0.5), 2),
}


def region_sizes(f, *args):
    lines = bp.explain_plan(f)(*args).splitlines()
    return [int(line.split("region of ")[1].split(" ")[0]) for line in lines if "region of " in line]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("way", WAYS)
def test_results_are_those_of_eager_mode(way, steps):
    layer = Layer(way)
    after, nodes = STEPS[steps]
    f = lambda x, w: after(layer.conv(x, w), layer)  # noqa: E731
    expected, found = f(layer.x, layer.w).numpy(), bp.compile(f)(layer.x, layer.w).numpy()
    if steps.startswith("batch norm"):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    else:
        assert found.tobytes() == expected.tobytes()
    assert max(region_sizes(f, layer.x, layer.w)) >= min(nodes, 2)
    assert "bp::conv2d" not in [line.split("= ")[1].split("(")[0] for line in kernel_nodes(f, layer.x, layer.w)]


def kernel_nodes(f, *args):
    """The nodes of a plan that run by themselves."""
    lines = bp.explain_plan(f)(*args).splitlines()
    return [node for node, place in zip(lines, lines[1:], strict=False) if ", the kernel of" in place]


@pytest.mark.parametrize("way", WAYS)
def test_special_values_pass_as_in_eager_mode(way):
    layer = Layer(way)
    x = np.zeros(layer.x.shape, "float32")
    x.reshape(-1)[[0, 3, -1]] = [np.nan, np.inf, -np.inf]
    w = bp.abs(layer.w) * 0 + 1
    for bound in (0.0, -0.0, np.inf, -np.inf):
        for f in (
            lambda x, w, b=bound: bp.maximum(layer.conv(x, w) * -1, b),
            lambda x, w, b=bound: bp.minimum(layer.conv(x, w) * -1, b),
            lambda x, w: bp.relu(layer.conv(x, w) * -1),
            lambda x, w: bp.hardtanh(layer.conv(x, w) * -1, min_val=0, max_val=1),
            lambda x, w: bp.clip(layer.conv(x, w) * -1, -0.0, 0.0),
        ):
            expected, found = f(bp.asarray(x), w).numpy(), bp.compile(f)(bp.asarray(x), w).numpy()
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found)[~np.isnan(found)], np.signbit(expected)[~np.isnan(expected)])
    nan = bp.asarray(np.float32("nan"))
    f = lambda x, w: bp.clip(layer.conv(x, w), nan, 1.0)  # noqa: E731
    assert np.isnan(bp.compile(f)(layer.x, layer.w).numpy()).all()


@pytest.mark.parametrize("way", WAYS)
def test_threads_do_not_change_the_bits(way):
    layer = Layer(way)
    f = bp.compile(lambda x, w: bp.relu(layer.conv(x, w) + layer.bias))
    before = bp.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            bp.set_num_threads(threads)
            results.append(f(layer.x, layer.w).numpy().tobytes())
    finally:
        bp.set_num_threads(before)
    assert len(set(results)) == 1


@pytest.mark.parametrize("way", WAYS)
def test_operands_of_any_strides_and_new_values_are_read(way):
    layer = Layer(way)
    f = bp.compile(lambda x, w, b: bp.relu(layer.conv(x, w) + b))
    turned = [bp.asarray(np.ascontiguousarray(t.numpy().T)).T for t in (layer.x, layer.w, layer.bias)]
    expected = bp.relu(layer.conv(layer.x, layer.w) + layer.bias).numpy()
    assert f(*turned).numpy().tobytes() == expected.tobytes()
    captured = bp.compile(lambda x: bp.relu(layer.conv(x, layer.w) + layer.bias))
    assert captured(layer.x).numpy().tobytes() == expected.tobytes()
    layer.w *= 2
    layer.bias += 1
    expected = bp.relu(layer.conv(layer.x, layer.w) + layer.bias).numpy()
    assert captured(layer.x).numpy().tobytes() == expected.tobytes()


def test_a_region_ends_where_its_results_are_read_elsewhere():
    layer = Layer("dense")

    def read_twice(x, w):
        y = layer.conv(x, w)
        return bp.relu(y + layer.bias), bp.tanh(y)

    def given(x, w):
        y = layer.conv(x, w) + layer.bias
        return y, bp.relu(y)

    def with_residual(x, w):
        y = layer.conv(x, w) + layer.bias
        return bp.relu(y + bp.tanh(y))

    def added_to_images(x, w):
        return layer.conv(x, w) + random((20, 20), 8)

    for f in (read_twice, given, with_residual, added_to_images):
        found, expected = bp.compile(f)(layer.x, layer.w), f(layer.x, layer.w)
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes(), f.__name__
    assert any("bp::conv2d" in node for node in kernel_nodes(read_twice, layer.x, layer.w))
    assert any("bp::conv2d" in node for node in kernel_nodes(added_to_images, layer.x, layer.w))


def test_layers_that_need_one_another_run_in_order():
    first, second = Layer("pointwise"), Layer("pointwise")

    def f(x, w):
        y = bp.relu(first.conv(x, w) + first.bias)
        s = bp.sigmoid(bp.mean(y, axis=(2, 3), keepdims=True))
        return bp.relu(second.conv(x * 2, w) * bp.reshape(s[0], (24, 1, 1)) + bp.tanh(s[0]))

    assert bp.compile(f)(first.x, first.w).numpy().tobytes() == f(first.x, first.w).numpy().tobytes()


@pytest.mark.parametrize("way", WAYS)
def test_gradients_and_batches_are_unchanged(way):
    layer = Layer(way)
    loss = lambda x, w: bp.sum(bp.relu(layer.conv(x, w) + layer.bias) ** 2)  # noqa: E731
    for found, expected in zip(bp.compile(bp.grad(loss, argnums=(0, 1)))(layer.x, layer.w), bp.grad(loss, argnums=(0, 1))(layer.x, layer.w), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4 * float(bp.max(bp.abs(expected))))
    rows = bp.stack([layer.x, layer.x * 2])
    batched = bp.vmap(lambda x: bp.relu(layer.conv(x, layer.w) + layer.bias))
    np.testing.assert_allclose(bp.compile(batched)(rows).numpy(), batched(rows).numpy(), rtol=1e-5, atol=1e-5)


def test_other_dtypes_run_op_by_op():
    layer = Layer("dense")
    for dtype in (bp.float64, bp.float16):
        f = lambda x, w, b: bp.relu(layer.conv(x, w) + b)  # noqa: E731
        args = [t.astype(dtype) for t in (layer.x, layer.w, layer.bias)]
        assert bp.compile(f)(*args).numpy().tobytes() == f(*args).numpy().tobytes()
