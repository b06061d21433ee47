"""What is a copy in NumPy or PyTorch shares no memory with its argument here, also where nothing is to do; views stay views."""

import backplane as bp
import backplane.nn.functional as F
import pytest

COPIES = {
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 1), (1, 4, 2, 3)),
    "channel_shuffle of one each": (lambda x: F.channel_shuffle(x, 4), (1, 4, 2, 3)),
    "diag": (bp.diag, (3, 4)),
    "diff": (lambda x: bp.diff(x, n=0), (3, 4)),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=1.0, mode="bilinear"), (1, 1, 2, 3)),
    "interpolate, smooth": (lambda x: F.interpolate(x, size=(2, 3), mode="bicubic", antialias=True), (1, 1, 2, 3)),
    "matrix_power": (lambda x: bp.linalg.matrix_power(x, 1), (3, 3)),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 4), (2, 3, 4)),
    "adaptive_avg_pool1d, one": (lambda x: F.adaptive_avg_pool1d(x, 1), (2, 3, 1)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (4, 3)), (2, 2, 4, 3)),
    "adaptive_avg_pool3d": (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 2)), (1, 2, 2, 3, 2)),
    "clip": (lambda x: bp.clip(x, None, None), (3,)),
    "clip, method": (lambda x: x.clip(), (3,)),
    "fftshift of no axes": (lambda x: bp.fft.fftshift(x, axes=()), (3, 4)),
    "pad by nothing": (lambda x: bp.pad(x, 0, "edge"), (3, 4)),
    "unwrap of one": (lambda x: bp.unwrap(x), (1,)),
    "fftshift of one": (lambda x: bp.fft.fftshift(x), (1, 1)),
    "ifftshift of no axes": (lambda x: bp.fft.ifftshift(x, axes=()), (3, 4)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 1), (1, 4, 2, 3)),
    "pixel_shuffle of pixels": (lambda x: F.pixel_shuffle(x, 2), (1, 4, 1, 1)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 1), (1, 4, 2, 3)),
}
VIEWS = {
    "diagonal": bp.diagonal,
    "flip": lambda x: bp.flip(x, axis=0),
    "fliplr": bp.fliplr,
    "flipud": bp.flipud,
    "rot90": bp.rot90,
    "an element": lambda x: x[0, 0],
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_copies_are_written_apart(name, compiled):
    function, shape = COPIES[name]
    x = bp.arange(1.0, 1 + bp.ones(shape).size).reshape(shape)
    y = (bp.compile(function) if compiled else function)(x)
    before = x.tolist()
    y += 1
    assert x.tolist() == before


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_written_through(name):
    x = bp.arange(9.0).reshape(3, 3)
    VIEWS[name](x)[...] = -1.0
    assert (x == -1).any()


def test_swapping_elements_needs_copies():
    x = bp.asarray([1.0, 2.0, 3.0])
    x[0], x[2] = x[2].copy(), x[0].copy()
    assert x.tolist() == [3, 2, 1]
    x[[0, 2]] = x[[2, 0]]
    assert x.tolist() == [1, 2, 3]
