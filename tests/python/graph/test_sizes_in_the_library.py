"""Functions of the package that compute with sizes: one graph, made with dynamic sizes, gives what the function gives at every size; or making
it fails and names what depends on the size."""

import math

import backplane as bp
import numpy as np
import pytest
from backplane.nn import functional as F

SIZES = (2, 3, 5, 8, 13, 17, 30, 64)
# name: (function, shape of the example, its dynamic axes)
FUNCTIONS = {
    "pad to a multiple": (lambda x: F.pad(x, (0, (-x.shape[2]) % 8)), (1, 1, 12), (2,)),
    "pad by a part": (lambda x: F.pad(x, (x.shape[2] // 2, 1)), (1, 1, 12), (2,)),
    "crop": (lambda x: F.pad(x, (-(x.shape[2] // 2), 0)), (1, 1, 12), (2,)),
    "reflect": (lambda x: F.pad(x, (x.shape[2] // 2, 1), mode="reflect"), (1, 1, 12), (2,)),
    "circular": (lambda x: F.pad(x, (x.shape[2] // 2, 1), mode="circular"), (1, 1, 12), (2,)),
    "bp.pad": (lambda x: bp.pad(x, ((0, x.shape[0]), (1, 2))), (12, 3), (0,)),
    "bp.pad wrap": (lambda x: bp.pad(x, (0, x.shape[0]), mode="wrap"), (12,), (0,)),
    "split at": (lambda x: tuple(bp.split(x, [x.shape[0] // 2])), (12,), (0,)),
    "split sizes": (lambda x: tuple(x.split([x.shape[0] // 2, x.shape[0] - x.shape[0] // 2])), (12,), (0,)),
    "split another axis": (lambda x: tuple(x.split(2, 1)), (12, 6), (0,)),
    "chunk": (lambda x: tuple(bp.chunk(x, 2)), (12,), (0,)),
    "array_split": (lambda x: tuple(bp.array_split(x, 3)), (12,), (0,)),
    "unbind": (lambda x: tuple(x.unbind(1)), (12, 3), (0,)),
    "irfft": (lambda x: bp.fft.irfft(bp.fft.rfft(x), n=x.shape[0]), (12,), (0,)),
    "fft of twice": (lambda x: bp.abs(bp.fft.fft(x, n=2 * x.shape[0])), (12,), (0,)),
    "irfftn": (lambda x: bp.fft.irfftn(bp.fft.rfftn(x), s=x.shape), (12, 6), (0,)),
    "instance_norm of a batch": (F.instance_norm, (5, 2, 4, 4), (0,)),
    "instance_norm of images": (F.instance_norm, (5, 2, 4, 4), (2, 3)),
    "interpolate twice": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (1, 1, 9, 11), (2, 3)),
    "interpolate half": (lambda x: F.interpolate(x, scale_factor=0.5), (1, 1, 12), (2,)),
    "interpolate to a size": (lambda x: F.interpolate(x, size=7, mode="linear"), (1, 1, 12), (2,)),
    "interpolate to one more": (lambda x: F.interpolate(x, size=2 * x.shape[2] + 1), (1, 1, 12), (2,)),
    "interpolate cubic": (lambda x: F.interpolate(x, size=(5, 2 * x.shape[3]), mode="bicubic"), (1, 1, 9, 11), (2, 3)),
    "interpolate corners": (lambda x: F.interpolate(x, size=2 * x.shape[2] + 1, mode="linear", align_corners=True), (1, 1, 12), (2,)),
    "avg_pool ceil": (lambda x: F.avg_pool1d(x, 2, ceil_mode=True), (1, 1, 11), (2,)),
    "max_pool ceil": (lambda x: F.max_pool2d(x, 2, ceil_mode=True), (1, 1, 12, 13), (2, 3)),
    "pools behind each other": (lambda x: F.avg_pool1d(F.max_pool1d(x, 3, 2, 1), 2, ceil_mode=True), (1, 1, 11), (2,)),
    "adaptive avg": (lambda x: F.adaptive_avg_pool1d(x, 3), (1, 1, 11), (2,)),
    "adaptive avg of images": (lambda x: F.adaptive_avg_pool2d(x, (1, 3)), (1, 1, 12, 7), (2, 3)),
    "adaptive max": (lambda x: F.adaptive_max_pool1d(x, 3), (1, 1, 12), (2,)),
    "adaptive avg of a batch": (lambda x: F.adaptive_avg_pool2d(x, 3), (4, 1, 11, 12), (0,)),
    "hann_window": (lambda x: x * bp.hann_window(x.shape[0]), (12,), (0,)),
    "bartlett_window": (lambda x: x * bp.bartlett_window(x.shape[0]), (12,), (0,)),
    "meshgrid": (lambda x: bp.meshgrid(bp.arange(x.shape[0]), bp.arange(x.shape[1]), indexing="ij")[0] * x, (12, 6), (0, 1)),
    "broadcast_arrays": (lambda x: bp.broadcast_arrays(bp.arange(x.shape[0]), x)[0] * x, (12,), (0,)),
    "np.prod": (lambda x: x.reshape(np.prod(x.shape)) / float(np.prod(x.shape)), (12, 6), (0,)),
    "math.prod": (lambda x: x.reshape(math.prod(x.shape)), (12, 6), (0, 1)),
    "math.ceil": (lambda x: x[: math.ceil(x.shape[0] / 2)], (12,), (0,)),
    "math.floor": (lambda x: x[: math.floor(x.shape[0] * 0.75)], (12,), (0,)),
    "int": (lambda x: x[: int(x.shape[0] * 0.5)], (12,), (0,)),
    "int below 0": (lambda x: x + int((x.shape[0] - 100) / 8), (12,), (0,)),
    "__index__": (lambda x: x[: x.shape[0].__index__() - 1], (12,), (0,)),
}


def same_results(found, expected):
    found, expected = ((r if isinstance(r, tuple) else (r,)) for r in (found, expected))
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_graph_for_every_size(name):
    function, shape, axes = FUNCTIONS[name]
    random = np.random.default_rng(0)
    graph = bp.make_graph(function, dynamic={"x" if function.__name__ == "<lambda>" else "input": {axis: f"n{axis}" for axis in axes}})(bp.ones(shape))
    for turn, size in enumerate(SIZES):
        sizes = list(shape)
        for place, axis in enumerate(axes):
            sizes[axis] = SIZES[(turn + 3 * place) % len(SIZES)]
        x = bp.asarray(random.standard_normal(sizes).astype("f4"))
        same_results(graph(x), function(x))


def test_a_fixed_image_keeps_the_kernels_of_its_size():
    function = lambda x: F.adaptive_avg_pool2d(x, 3)
    of_batch = bp.make_graph(function, dynamic={"x": {0: "b"}})(bp.ones((4, 1, 12, 12)))
    of_image = bp.make_graph(function, dynamic={"x": {2: "h", 3: "w"}})(bp.ones((4, 1, 12, 13)))
    assert "bp::matmul" not in str(of_batch) and "bp::matmul" in str(of_image)


REFUSED = {
    "a logarithm": (lambda x: x / math.log(x.shape[0]), "a floating number that Python computed from a dynamic size"),
    "parts without a law": (lambda x: tuple(x.split(5)), "the function returns another structure"),
    "a product with a long fraction": (lambda x: x[: int(x.shape[0] * 0.7)], "makes an int of a size"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_law_is_refused(name):
    function, why = REFUSED[name]
    with pytest.raises(bp.ShapeError, match=why):
        bp.make_graph(function, dynamic={"x": {0: "n"}})(bp.ones((12,)))


def test_compiled_functions_of_any_size():
    runs = []

    def function(x):
        bp.unguarded(runs.append, 1)
        return F.adaptive_avg_pool1d(F.interpolate(F.pad(x, (0, (-x.shape[2]) % 4)), scale_factor=0.5), 3)

    compiled = bp.compile(function, dynamic={"x": {2: "w"}})
    compiled(bp.ones((1, 1, 12)))
    traced = len(runs)
    for size in SIZES:
        x = bp.asarray(np.arange(size, dtype="f4").reshape(1, 1, size))
        same_results(compiled(x), function(x))
    assert len(runs) == traced + len(SIZES)  # one run each without the compiled function
