"""What networks are made of, on the Vulkan backend: kernels whose results and gradients are the CPU's."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(12)


def _normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


CONVOLUTIONS = {
    "one tile, cut into slices": ((48, 16, 8, 8), (32, 16, 3, 3), {"padding": (1, 1)}),
    "several tiles, strides that leave a rest": ((3, 70, 9, 9), (70, 70, 2, 3), {"stride": (3, 2), "padding": (2, 1)}),
    "groups and dilation": ((2, 36, 10, 11), (68, 18, 3, 3), {"groups": 2, "padding": (1, 1), "dilation": (1, 2)}),
    "a channel per group": ((5, 8, 6, 6), (24, 1, 3, 3), {"groups": 8, "padding": (1, 1)}),
    "a kernel of one element": ((2, 5, 4, 3), (7, 5, 1, 1), {"stride": (2, 1)}),
    "no images": ((0, 3, 5, 5), (4, 3, 3, 3), {}),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_conv2d_and_its_gradients(vulkan, case):
    x_shape, w_shape, options = CONVOLUTIONS[case]
    x, w, found = _normal(*x_shape), _normal(*w_shape), []
    for device in ("cpu", vulkan):
        inputs = [bp.asarray(array, device=device).requires_grad_() for array in (x, w)]
        bp.reset_call_counts()
        y = bp.conv2d(*inputs, **options)
        y.backward(y.detach() * 0.1)
        assert bp.call_counts().decompositions == 0
        found.append([y.detach().numpy(), *(tensor.grad.numpy() for tensor in inputs)])
    for expected, ours in zip(*found):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5 * max(1, np.abs(expected).max(initial=0)))


def test_an_adjoint_of_another_convolution_is_refused(vulkan):
    y, w = bp.zeros((1, 4, 3, 3), device=vulkan), bp.zeros((4, 3, 3, 3), device=vulkan)
    with pytest.raises(bp.ShapeError, match="not sizes of one convolution"):
        bp.ops.bp.conv2d_input_grad(y, w, (1, 3, 6, 5))


NETWORK_OPS = {
    "batch_norm": (lambda x, w: bp.batch_norm(x, w, w)[0], (6, 5, 7, 4)),
    "batch_norm of rows that no word holds": (lambda x, w: bp.batch_norm(x, w, w)[0], (6, 5, 3, 3)),
    "batch_norm of two axes": (lambda x, w: bp.batch_norm(x, w, w)[0], (300, 5)),
    "batch_norm of a mean far from 0": (lambda x, w: bp.batch_norm(x + 1000, w, w)[0], (40, 5, 6)),
    "batch_norm_inference": (lambda x, w: bp.batch_norm_inference(x, w, w * w, w), (6, 5, 4)),
    "max_pool2d": (lambda x, w: bp.max_pool2d(x, (3, 2), (2, 1), (1, 1)), (2, 5, 9, 7)),
    "avg_pool2d": (lambda x, w: bp.avg_pool2d(x, (2, 3), (1, 2), (1, 1)), (2, 5, 6, 9)),
    "softmax": (lambda x, w: bp.softmax(x, axis=1), (6, 5, 4)),
    "softmax of long lines": (lambda x, w: bp.softmax(x), (3, 5, 700)),
    "log_softmax": (lambda x, w: bp.log_softmax(x, axis=-1), (2, 5, 300)),
}


@pytest.mark.parametrize("name", NETWORK_OPS)
def test_ops_of_networks_and_their_gradients(vulkan, name):
    op, shape = NETWORK_OPS[name]
    x, w, found = _normal(*shape), np.abs(_normal(5)) + 0.5, []
    for device in ("cpu", vulkan):
        inputs = [bp.asarray(array, device=device).requires_grad_() for array in (x, w)]
        y = op(*inputs)
        y.backward(bp.sin(y.detach() * 3))
        found.append([y.detach().numpy(), *(tensor.grad.numpy() for tensor in inputs if tensor.grad is not None)])
    far = "far" in name
    for expected, ours in zip(*found):
        np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=(2e-2 if far else 1e-5) * max(1, np.abs(expected).max()))


def test_a_step_of_training_is_kernels(vulkan):
    x, scale = bp.asarray(_normal(4, 3, 6, 6), device=vulkan).requires_grad_(), bp.ones(3, device=vulkan)
    bp.reset_call_counts()
    bp.batch_norm(x, scale, scale)[0].sum().backward()
    bp.ops.bp.max_pool2d_with_indices(x.detach(), (2, 2))
    bp.softmax(x.detach())
    assert bp.call_counts().decompositions == 0
