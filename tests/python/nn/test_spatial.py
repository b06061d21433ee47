"""Padding, resampling and columns of backplane.nn.functional: laws of the functions' arguments."""

import re

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("mode, numpys", [("constant", "constant"), ("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_pad_counts_from_the_last_axis(mode, numpys):
    x = numbers(2, 3, 5, 4)
    found = F.pad(bp.asarray(x), (1, 2, 3, 0), mode).numpy()
    np.testing.assert_array_equal(found, np.pad(x, ((0, 0), (0, 0), (3, 0), (1, 2)), numpys))


def test_negative_padding_takes_away():
    x = numbers(3, 6)
    np.testing.assert_array_equal(F.pad(bp.asarray(x), (-1, 2)).numpy(), np.pad(x[:, 1:], ((0, 0), (0, 2))))
    np.testing.assert_array_equal(F.pad(bp.asarray(x), (-1, -2)).numpy(), x[:, 1:-2])
    edge = F.pad(bp.asarray(x[:, :1]), (3, -1), "replicate")  # the edge is that of the whole input
    np.testing.assert_array_equal(edge.numpy(), x[:, :1].repeat(3, 1))


@pytest.mark.parametrize("mode, axes", LINEAR.items())
def test_interpolation_with_corners_aligned_keeps_what_is_linear(mode, axes):
    ramp = sum(np.meshgrid(*[np.arange(5.0)] * axes, indexing="ij"))
    found = F.interpolate(bp.asarray(ramp[None, None]), 9, mode=mode, align_corners=True).numpy()[0, 0]
    inner = (slice(2, -2),) * axes if mode == "bicubic" else (slice(None),) * axes
    np.testing.assert_allclose(found[inner], sum(np.meshgrid(*[np.arange(9) / 2] * axes, indexing="ij"))[inner], atol=1e-12)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_repeats_elements(mode):
    x = numbers(1, 2, 3, 4)
    found = F.interpolate(bp.asarray(x), scale_factor=(2, 3), mode=mode).numpy()
    np.testing.assert_array_equal(found, x.repeat(2, axis=2).repeat(3, axis=3))


def test_an_axis_that_keeps_its_length_keeps_its_elements():
    x = numbers(1, 1, 3, 4)
    found = F.interpolate(bp.asarray(x), scale_factor=(1.3, 2), mode="bilinear").numpy()
    np.testing.assert_allclose(found, F.interpolate(bp.asarray(x), (3, 8), mode="bilinear").numpy(), rtol=1e-12)


def test_antialias_averages_what_lies_between_the_points():
    x = np.zeros((1, 1, 8, 8))
    x[0, 0, 0, 0] = 1.0  # bilinear sampling at a quarter of the points misses it
    assert F.interpolate(bp.asarray(x), (2, 2), mode="bilinear").numpy().sum() == 0.0
    found = F.interpolate(bp.asarray(x), (2, 2), mode="bilinear", antialias=True).numpy()
    weights = 1 - np.abs(np.arange(6) + 0.5 - 2) / 4  # a triangle around the first point, as wide as the points are apart
    np.testing.assert_allclose(found[0, 0], [[(weights[0] / weights.sum()) ** 2, 0], [0, 0]], rtol=1e-12)


@pytest.mark.parametrize("mode, expected", [("bilinear", 0.0), ("bicubic", -0.625)])
def test_antialias_to_one_point_between_aligned_corners_is_pytorchs(mode, expected):
    x = bp.reshape(bp.arange(16.0), (1, 1, 4, 4))
    assert F.interpolate(x, 1, mode=mode, antialias=True, align_corners=True).tolist() == [[[[pytest.approx(expected)]]]]


def test_area_is_the_mean_of_blocks():
    x = numbers(1, 2, 4, 6)
    found = F.interpolate(bp.asarray(x), (2, 2), mode="area").numpy()
    np.testing.assert_allclose(found, x.reshape(1, 2, 2, 2, 2, 3).mean((3, 5)), rtol=1e-12)


def test_fold_counts_each_element_as_often_as_unfold_reads_it():
    x = bp.asarray(numbers(2, 3, 6, 5))
    how = {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)}
    counts = F.fold(F.unfold(bp.ones_like(x), **how), (6, 5), **how)
    np.testing.assert_allclose(F.fold(F.unfold(x, **how), (6, 5), **how).numpy(), (x * counts).numpy(), rtol=1e-12)


def test_pixel_unshuffle_inverts_pixel_shuffle():
    x = bp.asarray(numbers(2, 8, 3, 5))
    np.testing.assert_array_equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2).numpy(), x.numpy())


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 2, 3, 4, 2)])
def test_the_identity_map_samples_the_image_itself(shape, align_corners):
    x, axes = numbers(*shape), len(shape) - 2
    theta = np.broadcast_to(np.eye(axes, axes + 1), (shape[0], axes, axes + 1)).copy()
    grid = F.affine_grid(bp.asarray(theta), shape, align_corners)
    for mode in ("bilinear", "nearest", "bicubic")[: 3 if axes == 2 else 2]:
        np.testing.assert_allclose(F.grid_sample(bp.asarray(x), grid, mode, "border", align_corners).numpy(), x, atol=1e-12)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: F.pad(x, (1,)), "argument pad: found 1 numbers"),
        (lambda x: F.pad(x, (1, 1), "mirror"), "argument mode: found 'mirror'"),
        (lambda x: F.pad(x, (5, 0), "reflect"), "expected at most 4"),
        (lambda x: F.pad(x, (-3, -3)), "takes 6 elements"),
        (lambda x: F.interpolate(x), "expected one of them"),
        (lambda x: F.interpolate(x, 3, mode="linear"), "spatial axes for 'linear'"),
        (lambda x: F.interpolate(x, 3, antialias=True), "antialias: found True with mode 'nearest'"),
        (lambda x: F.interpolate(x, scale_factor=0.01), "gives an empty result"),
        (lambda x: F.grid_sample(x, x, "cubic"), "argument mode: found 'cubic'"),
        (lambda x: F.grid_sample(x, x), "argument grid"),
        (lambda x: F.affine_grid(x, (2, 3, 4)), "argument theta"),
        (lambda x: F.pixel_shuffle(x, 2), "channels that the square of factor divides"),
    ],
)
def test_arguments_out_of_their_domain(call, text):
    with pytest.raises(ValueError, match=text):
        call(bp.asarray(numbers(2, 3, 4, 5)))


@pytest.mark.parametrize("shape, how", [((1, 3, 9), {}), ((2, 4, 8), {}), ((4, 8), {}), ((4, 9), {"stride": 2}), ((9,), {}), ((1, 1, 4, 9), {}),
                                        ((1, 4, 9), {"dilation": 2}), ((1, 4, 9), {"padding": 1})])  # fmt: skip
def test_fold_says_which_columns_it_takes(shape, how):
    with pytest.raises(bp.ShapeError, match=rf"^fold: argument input: found shape {re.escape(str(shape))}, expected \(n, c \* 4, \d+\) or \(c \* 4, \d+\)"):
        F.fold(bp.ones(shape), (4, 4), 2, **how)


def test_pad_says_how_pairs_are_written():
    x = bp.ones((2, 3))
    with pytest.raises(bp.ArgumentTypeError, match=r"pad: argument pad: found \(\(1, 2\), \(3, 4\)\), expected numbers in a row.*use backplane.pad"):
        F.pad(x, ((1, 2), (3, 4)))
    assert F.pad(x, (3, 4, 1, 2)).tolist() == bp.pad(x, ((1, 2), (3, 4))).tolist()


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integers_have_linear_maps(dtype):
    rng = np.random.default_rng(5)
    x, weight, bias = (rng.integers(0, 5, shape).astype(dtype) for shape in [(2, 3), (4, 3), (4,)])
    for given in (x, x[0]):
        found = F.linear(bp.asarray(given), bp.asarray(weight), bp.asarray(bias))
        assert found.dtype.name == dtype and found.tolist() == (given @ weight.T + bias).tolist()
        assert F.linear(bp.asarray(given), bp.asarray(weight)).tolist() == (given @ weight.T).tolist()
