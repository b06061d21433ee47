"""Products and Fourier transforms of the CUDA backend: by NVIDIA's libraries where they are found, otherwise by its own kernel and by
the host. `./dev test cuda` runs this on the emulated driver, without libraries and with stand-ins for them."""

import ctypes

import backplane as bp
import numpy as np
import pytest
from device_calls import LAYOUTS, RNG, normal, same


@pytest.mark.parametrize(
    "shapes",
    [((3, 4), (4, 5)), ((17, 33), (33, 19)), ((1, 100), (100, 1)), ((4,), (4,)), ((4,), (4, 3)), ((2, 4), (4,)),
     ((3, 0), (0, 2)), ((0, 3), (3, 2)), ((5, 3, 4), (5, 4, 2)), ((5, 3, 4), (4, 2)), ((2, 1, 3, 4), (5, 4, 6)),
     ((3,), (2, 3, 4))],
)
def test_matmul(cuda, shapes):
    same(bp.matmul, cuda, *(normal(*shape) for shape in shapes), rtol=1e-4, atol=1e-4)


# How operands of 5 by 6 and 6 by 7 elements may lie, beside as they are made.
MATRICES = {
    "contiguous": lambda m: m,
    "transposed": lambda m: bp.copy(m.mT).mT,
    "a row of padding": lambda m: bp.concat([m, m], axis=1)[:, : m.shape[1]],
    "a transposed one of padding": lambda m: bp.concat([m, m], axis=0).mT[:, : m.shape[0]].mT,
    "an odd offset": lambda m: bp.concat([bp.zeros(1, dtype=m.dtype, device=m.device), bp.reshape(m, (-1,))])[1:].reshape(m.shape),
    "every second column": lambda m: bp.repeat(m, 2, axis=1)[:, ::2],
    "backward": lambda m: bp.copy(m[::-1])[::-1],
    "one row for all": lambda m: bp.broadcast_to(m[:1], m.shape),
}


@pytest.mark.parametrize("y_layout", MATRICES)
@pytest.mark.parametrize("x_layout", MATRICES)
def test_matmul_over_layouts(cuda, x_layout, y_layout):
    same(lambda x, y: MATRICES[x_layout](x) @ MATRICES[y_layout](y), cuda, normal(5, 6), normal(6, 7), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int32"])
def test_matmul_dtypes(cuda, dtype):
    x, y = (bp.astype(bp.asarray(RNG.integers(-4, 5, shape)), getattr(bp, dtype)) for shape in ((3, 9, 4), (4, 70)))
    if dtype.startswith("complex"):
        x, y = x * (1 + 2j), y * (2 - 1j)
    found = x.to(cuda) @ y.to(cuda)
    assert found.dtype == x.dtype
    assert (found.to("cpu") == x @ y).all()  # integers: exact in every dtype


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("function", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize(
    "shape, axes", [((5,), (0,)), ((6,), (0,)), ((4, 6), (0,)), ((3, 5, 4), (1,)), ((3, 5, 4), (2, 0)), ((2, 3, 4, 5), (1, 2, 3)), ((2, 3, 2, 2), (3, 1, 0, 2))]
)
def test_fourier_transforms(cuda, function, shape, axes, norm):
    x = normal(*shape) if function == "rfftn" else (normal(*shape) + 1j * normal(*shape)).astype(np.complex64)
    transform = getattr(bp.fft, function)
    expected = transform(bp.asarray(x, device="cpu"), axes=axes, norm=norm)
    with bp.allow_host_fallback():
        found = transform(bp.asarray(x, device=cuda), axes=axes, norm=norm)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


def _cufft_transforms():
    return _counter("libcufft.so.12", "emulated_cufft_transforms")


# A transform to reals over several axes takes two; one over more axes than a plan has runs on the host.
@pytest.mark.parametrize(
    "function, shape, transforms",
    [("fftn", (4, 6), 1), ("rfftn", (4, 6), 1), ("irfftn", (4, 6), 2), ("irfftn", (6,), 1), ("fftn", (2, 2, 2, 2), 0), ("fftn", (0,), 0)],
)
def test_transforms_that_the_library_computes(cuda, function, shape, transforms):
    x = bp.asarray(normal(3, *shape) + (0 if function == "rfftn" else 1j), device=cuda)
    axes = tuple(range(1, len(shape) + 1))
    before = _cufft_transforms()
    if 0 in shape:
        with pytest.raises(ValueError):
            getattr(bp.fft, function)(x, axes=axes)
    else:
        getattr(bp.fft, function)(x, axes=axes)
    assert _cufft_transforms() - before == transforms


def test_fourier_transforms_over_layouts(cuda):
    x = (normal(6, 8) + 1j * normal(6, 8)).astype(np.complex64)
    for layout in LAYOUTS:
        if layout not in ("empty", "a single element"):
            view = LAYOUTS[layout]
            expected = bp.fft.ifft(view(bp.asarray(x, device="cpu"))).numpy()
            np.testing.assert_allclose(bp.fft.ifft(view(bp.asarray(x, device=cuda))).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_an_offset_that_no_complex_number_has_is_copied_for_the_library(cuda):
    x = normal(9)
    expected = bp.fft.rfft(bp.asarray(x, device="cpu")[1:]).numpy()
    np.testing.assert_allclose(bp.fft.rfft(bp.asarray(x, device=cuda)[1:]).numpy(), expected, rtol=1e-4, atol=1e-5)


def _counter(library, name):
    """How much has gone to a stand-in of tests/cuda/libraries."""
    try:
        count = getattr(ctypes.CDLL(library), name)
    except (OSError, AttributeError):
        pytest.skip(f"the stand-in for {library} is not on LD_LIBRARY_PATH")
    count.restype = ctypes.c_uint64
    return count()


def _cublaslt_products():
    return _counter("libcublasLt.so.13", "emulated_cublaslt_products")


@pytest.mark.parametrize(
    "x, y, products",
    [
        ((5, 6), (6, 7), 1),
        ((6,), (6,), 1),
        ((3, 5, 6), (3, 6, 7), 1),
        ((3, 5, 6), (6, 7), 1),  # a taller left operand
        ((5, 6), (3, 6, 7), 1),
        ((2, 3, 5, 6), (2, 3, 6, 7), 1),  # one batch of six
        ((2, 1, 5, 6), (3, 6, 7), 2),
        ((5, 0), (0, 7), 0),
        ((0, 6), (6, 7), 0),
        ((70, 1, 2, 2), (1, 70, 2, 2), 0),  # more batches than calls are worth
    ],
)
def test_products_that_the_library_computes(cuda, x, y, products):
    before = _cublaslt_products()
    same(bp.matmul, cuda, normal(*x), normal(*y), rtol=1e-4, atol=1e-5)
    assert _cublaslt_products() - before == products


@pytest.mark.parametrize("layout", MATRICES)
def test_views_that_the_library_takes_uncopied(cuda, layout):
    x, y = MATRICES[layout](bp.asarray(normal(5, 6), device=cuda)), bp.asarray(normal(6, 7), device=cuda)
    before = _cublaslt_products()
    x @ y
    own = layout in ("every second column", "backward", "one row for all")
    assert _cublaslt_products() - before == (0 if own else 1)


def test_what_the_library_has_no_algorithm_for_goes_to_the_own_kernel(cuda, monkeypatch):
    before = _cublaslt_products()
    monkeypatch.setenv("BACKPLANE_EMULATED_CUBLASLT_REFUSES", "1")
    same(bp.matmul, cuda, normal(11, 12), normal(12, 13), rtol=1e-4, atol=1e-5)
    assert _cublaslt_products() == before


LIBRARIES = {
    "cublaslt": ("libcublasLt.so.13", "products go by the backend's own kernel"),
    "cufft": ("libcufft.so.12", "Fourier transforms run on the host"),
    "cusolver": ("libcusolver.so.12", "factorisations of matrices run on the host"),
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_missing_library_is_said_with_what_is_done_instead(cuda, name):
    library, instead = LIBRARIES[name]
    said = cuda.properties[name]
    try:
        ctypes.CDLL(library)
        assert said[0].isdigit()
    except OSError:
        assert said.startswith(f"not found, so {instead}") and "Fix:" in said


def test_why_a_transform_runs_on_the_host_although_there_is_a_library(cuda):
    x = bp.ones((2, 2, 2, 2), device=cuda)
    with bp.host_fallback("forbid"), pytest.raises(NotImplementedError, match="declined: (found 4 axes; cuFFT takes 1 to 3|libcufft.so.12 not found)"):
        bp.fft.fftn(x)


def test_a_second_device_has_its_own_library_handles(cuda):
    try:
        other = bp.device("cuda:1")
    except ValueError:
        pytest.skip("one device alone")
    same(lambda x, y: x @ y, other, normal(4, 5), normal(5, 6), rtol=1e-4, atol=1e-5)
    x = normal(4, 6)
    np.testing.assert_allclose(bp.fft.rfft(bp.asarray(x, device=other)).numpy(), bp.fft.rfft(bp.asarray(x)).numpy(), rtol=1e-4, atol=1e-4)
