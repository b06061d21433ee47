"""Pooling of backplane.nn.functional: what the Python side adds to the ops, and laws between the functions."""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_indices_are_where_the_maxima_are_and_unpooling_puts_them_back(axes):
    x = numbers(2, 3, *[6] * axes)
    pool, unpool = getattr(F, f"max_pool{axes}d"), getattr(F, f"max_unpool{axes}d")
    values, indices = pool(bp.asarray(x), 2, return_indices=True)
    flat = x.reshape(2, 3, -1)
    np.testing.assert_array_equal(np.take_along_axis(flat, indices.numpy().reshape(2, 3, -1), -1), values.numpy().reshape(2, 3, -1))
    back = unpool(values, indices, 2).numpy()
    assert back.shape == x.shape
    np.testing.assert_array_equal(back[back != 0], x[back != 0])
    assert (back != 0).sum() == values.size


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_window_of_the_whole_image_is_its_mean_and_maximum(axes):
    x = numbers(2, 3, *[5, 4, 3][:axes])
    over = tuple(range(2, axes + 2))
    for name, reduce in (("avg", np.mean), ("max", np.max)):
        expected = reduce(x, axis=over, keepdims=True)
        np.testing.assert_allclose(getattr(F, f"{name}_pool{axes}d")(bp.asarray(x), x.shape[2:]).numpy(), expected, rtol=1e-12)
        np.testing.assert_allclose(getattr(F, f"adaptive_{name}_pool{axes}d")(bp.asarray(x), 1).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_without_a_batch_is_a_batch_of_one(axes):
    x = bp.asarray(numbers(3, *[5] * axes))
    for name in (f"max_pool{axes}d", f"avg_pool{axes}d", f"adaptive_avg_pool{axes}d"):
        np.testing.assert_array_equal(getattr(F, name)(x, 2).numpy(), getattr(F, name)(bp.expand_dims(x, [0]), 2)[0].numpy())


def test_padding_counts_unless_it_is_asked_not_to():
    x = bp.ones((1, 1, 4, 4))
    assert F.avg_pool2d(x, 2, 2, 1)[0, 0, 0, 0].item() == 0.25
    assert F.avg_pool2d(x, 2, 2, 1, count_include_pad=False)[0, 0, 0, 0].item() == 1
    assert F.avg_pool2d(x, 2, divisor_override=1)[0, 0, 0, 0].item() == 4


def test_none_keeps_an_axis():
    assert F.adaptive_avg_pool2d(bp.ones((1, 2, 5, 6)), (None, 2)).shape == (1, 2, 5, 2)
    assert F.adaptive_max_pool3d(bp.ones((2, 5, 6, 7)), (1, None, 3)).shape == (2, 1, 6, 3)


def test_lp_pool_of_one_axis_is_the_norm():
    x = numbers(1, 1, 6) ** 2
    found = F.lp_pool1d(bp.asarray(x), 2.0, 3).numpy()
    np.testing.assert_allclose(found[0, 0], np.linalg.norm(x.reshape(2, 3), axis=1), rtol=1e-12)


def test_ceil_mode_takes_a_window_wider_than_the_image():
    x = numbers(1, 2, 3, 2)
    np.testing.assert_array_equal(F.max_pool2d(bp.asarray(x), (4, 2), ceil_mode=True).numpy(), x.max((2, 3), keepdims=True))
    np.testing.assert_allclose(F.avg_pool2d(bp.asarray(x), (4, 2), ceil_mode=True).numpy(), x.mean((2, 3), keepdims=True), rtol=1e-12)


def test_a_dilated_window_of_padding_alone_has_no_maximum():
    x = bp.asarray(numbers(1, 1, 1, 3)).requires_grad_()
    found = F.max_pool2d(x, 2, 1, 1, 2, ceil_mode=True)
    assert found.shape == (1, 1, 1, 3) and (found.detach().numpy() == -np.inf).all()
    found.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros((1, 1, 1, 3)))


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: F.max_pool2d(x, 9), "windows that fit into the image"),
        (lambda x: F.max_pool2d(x, 9, 1, ceil_mode=True), "fit into the image"),
        (lambda x: F.max_pool2d(x, 2, 0), "stride and dilation of at least 1"),
        (lambda x: F.avg_pool2d(x, 2, 1, 2), "padded by at most half of them"),
        (lambda x: F.max_pool1d(x, 2), "argument input"),
        (lambda x: F.avg_pool2d(x, (1, 2, 3)), "argument kernel_size: found 3 integers"),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=0), "divisor_override"),
        (lambda x: F.adaptive_avg_pool2d(x, 0), "output_size"),
        (lambda x: F.max_unpool2d(x, bp.zeros((1, 2, 4, 5), dtype=bp.int64), 2), "argument indices"),
        (lambda x: F.lp_pool2d(x, 0, 2), "norm_type"),
    ],
)
def test_arguments_out_of_their_domain(call, text):
    with pytest.raises(ValueError, match=text):
        call(bp.asarray(numbers(1, 2, 5, 5)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64"])
@pytest.mark.parametrize("more", [{}, {"stride": 2, "padding": 1}, {"stride": 2, "padding": 1, "ceil_mode": True}, {"padding": 1, "dilation": 3}], ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_largest_of_integers_is_that_of_floats(axes, more, dtype):
    least = np.iinfo(dtype).min // 2
    small = np.random.default_rng(4).integers(0, 100, (2, 3, *[9] * axes)).astype(np.float64)
    x = small.astype(dtype) + np.asarray(least, dtype)
    pool = getattr(F, f"max_pool{axes}d")
    values, indices = pool(bp.asarray(x), 2, return_indices=True, **more)
    expected, places = pool(bp.asarray(small), 2, return_indices=True, **more)
    assert values.dtype.name == dtype
    np.testing.assert_array_equal(values.numpy(), expected.numpy().astype(dtype) + np.asarray(least, dtype))
    np.testing.assert_array_equal(indices.numpy(), places.numpy())
    adaptive = getattr(F, f"adaptive_max_pool{axes}d")
    np.testing.assert_array_equal(adaptive(bp.asarray(x), 4, return_indices=True)[1].numpy(), adaptive(bp.asarray(small), 4, return_indices=True)[1].numpy())


def windows_begin(u, size, width, count):
    alpha = (size - width) / max(count - 1, 1)
    return [int((i + u) * alpha) - int(u * alpha) for i in range(count - 1)] + [size - width]


@pytest.mark.parametrize("axes", [2, 3])
def test_fractional_pooling_takes_the_maxima_of_its_windows(axes):
    x, u = numbers(2, 3, *[9, 8, 7][:axes]), np.random.default_rng(1).uniform(size=(2, 3, axes))
    counts, width = [5, 4, 1][:axes], 2
    function = getattr(F, f"fractional_max_pool{axes}d")
    found, places = function(bp.asarray(x), width, counts, return_indices=True, _random_samples=bp.asarray(u))
    order = [1, 0] if axes == 2 else [0, 1, 2]  # of the samples, as in PyTorch
    for i in np.ndindex(2, 3):
        begins = [windows_begin(u[(*i, order[a])], x.shape[2 + a], width, counts[a]) for a in range(axes)]
        for place in np.ndindex(*counts):
            window = tuple(slice(begins[a][place[a]], begins[a][place[a]] + width) for a in range(axes))
            assert found[(*i, *place)].item() == x[i][window].max() == x[i].ravel()[places[(*i, *place)].item()]


def test_fractional_pooling_by_ratio_and_as_a_layer():
    x = bp.asarray(numbers(3, 9, 9))
    pool = bp.nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.4))
    bp.manual_seed(1)
    first = pool(x)
    bp.manual_seed(1)
    assert first.shape == (3, 4, 3) and bp.all(first == pool(x))
    assert bp.grad(lambda a: pool(a).sum())(x).sum().item() == 3 * 4 * 3
    for faults in ({}, {"output_size": 3, "output_ratio": 0.5}, {"output_size": 9}, {"output_ratio": 1.5}, {"output_size": 0}):
        with pytest.raises(bp.ArgumentValueError, match="fractional_max_pool2d: "):
            F.fractional_max_pool2d(x, 2, **faults)
