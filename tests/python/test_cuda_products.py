"""Products and Fourier transforms of the CUDA backend: by NVIDIA's libraries where they are found, otherwise by its own kernel and by
the host. `./dev test cuda` runs this on the emulated driver, without libraries and with stand-ins for them."""

import ctypes

import backplane as bp
import numpy as np
import pytest
from device_calls import LAYOUTS, RNG, normal, recorded_by, same


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
    return recorded_by("libcufft.so.12", "emulated_cufft_transforms")


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


def _cublaslt_products():
    return recorded_by("libcublasLt.so.13", "emulated_cublaslt_products")


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


# Operands of a product and the addend; the products, and the ones that add a bias themselves.
ADDED = {
    "a number per column": ((5, 6), (6, 7), (7,), 1, 1),
    "a stack of rows": ((3, 5, 6), (6, 7), (7,), 1, 1),
    "a batch": ((3, 5, 6), (3, 6, 7), (7,), 1, 1),
    "a matrix": ((5, 6), (6, 7), (5, 7), 1, 0),
    "a stack of matrices": ((3, 5, 6), (3, 6, 7), (3, 5, 7), 1, 0),
    "a matrix for all of a batch": ((3, 5, 6), (3, 6, 7), (5, 7), 1, 0),
    "a number per row": ((5, 6), (6, 7), (5, 1), 1, 0),
    "one number": ((5, 6), (6, 7), (), 1, 0),
    "a number per matrix": ((2, 1, 5, 6), (3, 6, 7), (2, 3, 1, 1), 2, 0),
    "two batches": ((2, 1, 5, 6), (3, 6, 7), (7,), 2, 2),
    "a vector on the left": ((6,), (6, 7), (7,), 1, 1),
    "a vector on the right": ((5, 6), (6,), (5,), 1, 0),
    "nothing to sum": ((5, 0), (0, 7), (7,), 0, 0),
}


def normals(*shapes, dtype=None):
    made = [bp.asarray(normal(*shape)) for shape in shapes]
    return [x.astype(dtype) for x in made] if dtype is not None else made


def alike(function, cuda, *operands, rtol=1e-4):
    expected, found = function(*operands), function(*(x.to(cuda) for x in operands))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.to("cpu").astype(bp.float64).numpy(), expected.astype(bp.float64).numpy(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("case", ADDED)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_what_is_added_to_a_product(cuda, case, dtype):
    rtol = {"float16": 4e-3, "bfloat16": 4e-2}.get(dtype, 1e-5)
    alike(bp.matmul_add, cuda, *normals(*ADDED[case][:3], dtype=getattr(bp, dtype)), rtol=rtol)


@pytest.mark.parametrize("layout", MATRICES)
def test_what_is_added_in_any_layout(cuda, layout):
    alike(lambda x, y, z: bp.matmul_add(x, y, MATRICES[layout](z)), cuda, *normals((5, 6), (6, 7), (5, 7)))
    alike(lambda x, y, z: bp.matmul_add(x, y, MATRICES[layout](z)[0]), cuda, *normals((5, 6), (6, 7), (5, 7)))


def test_a_complex_product_and_what_is_added(cuda):
    x, y, z = ((bp.asarray(normal(*shape)) + 1j * bp.asarray(normal(*shape))) for shape in ((5, 6), (6, 7), (7,)))
    found, expected = bp.matmul_add(x.to(cuda), y.to(cuda), z.to(cuda)), bp.matmul_add(x, y, z)
    np.testing.assert_allclose(found.to("cpu").numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


def test_what_does_not_broadcast_to_the_product_is_refused(cuda):
    for device in ("cpu", cuda):
        x, y = bp.ones((5, 6), device=device), bp.ones((6, 1), device=device)
        for z in ((7,), (2, 5, 1), (4, 1)):
            with pytest.raises(bp.ShapeError, match="argument z"):
                bp.matmul_add(x, y, bp.ones(z, device=device))


def _biased_products():
    return recorded_by("libcublasLt.so.13", "emulated_cublaslt_biased_products")


@pytest.mark.parametrize("case", ADDED)
def test_what_the_library_adds_itself(cuda, case):
    *shapes, products, biased = ADDED[case]
    before, biased_before = _cublaslt_products(), _biased_products()
    alike(bp.matmul_add, cuda, *normals(*shapes))
    assert (_cublaslt_products() - before, _biased_products() - biased_before) == (products, biased)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_linear_layer_is_one_product_of_the_library(cuda, dtype):
    x, weight, bias = (x.to(cuda) for x in normals((4, 5, 6), (7, 6), (7,), dtype=getattr(bp, dtype)))
    before, kernels = _biased_products(), bp.call_counts().kernels
    y = bp.nn.functional.linear(x, weight, bias)
    assert (_biased_products() - before, bp.call_counts().kernels - kernels) == (1, 1)
    expected = (x @ weight.mT + bias).astype(bp.float64)
    np.testing.assert_allclose(y.astype(bp.float64).numpy(), expected.numpy(), rtol=2e-2, atol=5e-2)


def test_addmm_is_one_product_of_the_library(cuda):
    before = _cublaslt_products(), _biased_products()
    for z in ((7,), (5, 7)):
        alike(bp.addmm, cuda, *normals(z, (5, 6), (6, 7)))
    assert (_cublaslt_products() - before[0], _biased_products() - before[1]) == (2, 1)


def test_the_gradient_of_a_linear_layer(cuda):
    def loss(x, weight, bias):
        return bp.sum(bp.linear(x, weight, bias) ** 2)

    operands = normals((4, 5, 6), (7, 6), (7,))
    for found, expected in zip(bp.grad(loss, argnums=(0, 1, 2))(*(x.to(cuda) for x in operands)), bp.grad(loss, argnums=(0, 1, 2))(*operands)):
        np.testing.assert_allclose(found.to("cpu").numpy(), expected.numpy(), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("refuses, products", [("1", 0), ("bias", 1)])
def test_where_the_library_adds_no_bias_it_is_written_first(cuda, monkeypatch, refuses, products):
    before = _cublaslt_products()
    monkeypatch.setenv("BACKPLANE_EMULATED_CUBLASLT_REFUSES", refuses)
    columns = 15 + products  # a plan of the other choice stays
    alike(bp.matmul_add, cuda, *normals((13, 14), (14, columns), (columns,)))
    assert _cublaslt_products() - before == products


def test_calls_of_one_plan_add_their_own_bias(cuda):
    x, y, *biases = (x.to(cuda) for x in normals((5, 6), (6, 7), (7,), (7,), (7,)))
    found = [bp.matmul_add(x, y, bias) for bias in biases]
    for result, bias in zip(found, biases):
        np.testing.assert_allclose(result.numpy(), (x @ y + bias).numpy(), rtol=1e-4, atol=1e-5)


def test_a_bias_at_an_odd_offset_is_added_as_a_matrix(cuda):
    before = _cublaslt_products(), _biased_products()
    alike(lambda x, y, z: bp.matmul_add(x, y, z[1:]), cuda, *normals((5, 6), (6, 7), (8,)))
    assert (_cublaslt_products() - before[0], _biased_products() - before[1]) == (1, 0)


LIBRARIES = {
    "cudnn": ("libcudnn.so.9", "convolutions go by the backend's own kernels"),
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
