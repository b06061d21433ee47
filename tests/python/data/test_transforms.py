"""Transforms of images: each image of a batch gets its own random numbers. Its result is one of those that the options allow."""

import numpy as np
import pytest

import backplane as bp
from backplane.data import transforms as T


@pytest.fixture
def images():
    return bp.asarray(np.random.default_rng(0).random((12, 3, 8, 10), dtype=np.float32) + 0.01) / 1.01


def test_crops_are_parts_of_the_padded_images(images):
    crop = T.RandomCrop((8, 7), padding=2, generator=bp.Generator(1))(images).numpy()
    padded = np.pad(images.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)))
    places = [
        [(top, left) for top in range(5) for left in range(8) if np.array_equal(padded[i, :, top : top + 8, left : left + 7], crop[i])] for i in range(12)
    ]
    assert all(len(found) == 1 for found in places) and len({found[0] for found in places}) > 6
    np.testing.assert_array_equal(T.CenterCrop(4)(images).numpy(), images.numpy()[:, :, 2:6, 3:7])


@pytest.mark.parametrize(("flip", "axis"), [(T.RandomHorizontalFlip, 3), (T.RandomVerticalFlip, 2)])
def test_each_image_is_flipped_or_not(flip, axis, images):
    found = flip(generator=bp.Generator(1))(images).numpy()
    same = [np.array_equal(found[i], images.numpy()[i]) for i in range(12)]
    other = [np.array_equal(found[i], np.flip(images.numpy(), axis)[i]) for i in range(12)]
    assert [not x for x in same] == other and 0 < sum(same) < 12
    np.testing.assert_array_equal(flip(1.0)(images[0]).numpy(), np.flip(images.numpy(), axis)[0])


def test_erased_rectangles(images):
    found = T.RandomErasing(1.0, generator=bp.Generator(1))(images).numpy() == 0
    for one in found:
        assert np.array_equal(one[0], one[1])
        rows, columns = one[0].any(axis=1), one[0].any(axis=0)
        assert one[0].sum() == rows.sum() * columns.sum()  # a rectangle
        assert np.diff(np.flatnonzero(rows)).tolist() == [1] * (rows.sum() - 1)
    assert len({one.sum() for one in found}) > 3 and np.array_equal(T.RandomErasing(0.0)(images).numpy(), images.numpy())


def test_affine(images):
    square = images[:, :, :, :8]
    turned = T.RandomAffine(90.0)
    turned._uniform = lambda x, low, high, *shape, **how: bp.full((x.shape[0],), high)
    np.testing.assert_allclose(turned(square).numpy(), np.rot90(square.numpy(), -1, (2, 3)), atol=1e-5)
    quarter = T.RandomAffine((90, 90))(square)
    assert np.allclose(quarter.numpy(), np.rot90(square.numpy(), -1, (2, 3)), atol=1e-5)
    with pytest.raises(bp.ArgumentValueError, match="degrees: found \\(10, -10\\)"):
        T.RandomAffine((10, -10))
    moved = T.RandomAffine(0.0, (0.25, 0.5))
    moved._uniform = turned._uniform
    expected = np.zeros(square.shape)
    expected[:, :, 2:, 4:] = square.numpy()[:, :, :6, :4]
    np.testing.assert_allclose(moved(square).numpy(), expected, atol=1e-5)
    assert not np.array_equal(*T.RandomAffine(30.0)(bp.stack([images[0], images[0]])).numpy())


def test_colours(images):
    brighter = T.ColorJitter(0.5, generator=bp.Generator(0))(images * 0.5).numpy() / (images.numpy() * 0.5)
    factors = brighter.reshape(12, -1)
    np.testing.assert_allclose(factors, np.broadcast_to(factors[:, :1], factors.shape), rtol=1e-5)
    assert 0.5 < factors.min() and factors.max() < 1.5 and len(np.unique(factors[:, 0].round(4))) == 12
    grey = bp.broadcast_to(images[:, :1], images.shape)
    np.testing.assert_allclose(T.ColorJitter(saturation=1.0)(grey).numpy(), grey.numpy(), atol=1e-4)


def test_a_pipeline_compiles_and_draws_anew():
    images = bp.asarray(np.random.default_rng(0).integers(0, 256, (4, 3, 8, 8), dtype=np.uint8))
    augment = T.Compose([
        T.ToFloat(), T.RandomCrop(8, padding=1), T.RandomHorizontalFlip(), T.RandomAffine(5.0), T.RandomErasing(), T.Normalize([0.5] * 3, 0.25)
    ])  # fmt: skip
    compiled = bp.compile(augment)
    bp.manual_seed(0)
    first, second = compiled(images), compiled(images)
    bp.manual_seed(0)
    np.testing.assert_allclose(augment(images).numpy(), first.numpy(), atol=1e-5)
    assert not np.array_equal(first.numpy(), second.numpy())
    assert T.Resize((4, 5))(first).shape == (4, 3, 4, 5)


@pytest.mark.parametrize(
    ("transform", "shape", "error"),
    [
        (T.RandomCrop(9), (3, 8, 8), bp.ShapeError), (T.CenterCrop(9), (3, 8, 8), bp.ShapeError), (T.Normalize([0.5] * 2, 1.0), (3, 8, 8), bp.ShapeError),
        (T.ColorJitter(0.1), (1, 8, 8), bp.ShapeError), (T.RandomHorizontalFlip(), (8, 8), bp.ShapeError),
    ],
)  # fmt: skip
def test_other_shapes_are_refused(transform, shape, error):
    with pytest.raises(error, match=type(transform).__name__):
        transform(bp.ones(shape))


def test_other_options_are_refused():
    for make in (lambda: T.RandomCrop(0), lambda: T.RandomErasing(2.0), lambda: T.ColorJitter(2.0), lambda: T.Normalize(0.0, 0.0), lambda: T.RandomAffine(scale=(0, 1))):
        with pytest.raises(bp.ArgumentValueError):
            make()
    with pytest.raises(bp.DtypeError, match="ToFloat"):
        T.Normalize(0.5, 0.5)(bp.ones((3, 4, 4), dtype=bp.uint8))
