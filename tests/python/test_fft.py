"""backplane.fft: every function = NumPy's, over sizes, axes, norms and padding; gradients reach through them."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(5)
NORMS = ["backward", "ortho", "forward"]


def close(found, expected, eps=1e-10):
    expected = np.asarray(expected)
    found = np.asarray(found.numpy())
    assert found.shape == expected.shape and found.dtype == expected.dtype, f"{found.dtype}{found.shape}"
    np.testing.assert_allclose(found, expected, rtol=eps, atol=eps * max(1, expected.size))


def drawn(shape, real):
    x = RNG.standard_normal(shape)
    return x if real else x + 1j * RNG.standard_normal(shape)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [1, 2, 7, 12, 97])
def test_one_axis(name, norm, size):
    x = drawn((3, size, 2), name in ("rfft", "ihfft"))
    for n in (None, max(size - 3, 1), size + 5):
        if n is None and size == 1 and name in ("irfft", "hfft"):
            continue  # 2 (1 - 1) elements: an error, below
        close(getattr(bp.fft, name)(bp.asarray(x), n=n, axis=1, norm=norm), getattr(np.fft, name)(x, n, 1, norm))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
@pytest.mark.parametrize("norm", NORMS)
def test_several_axes(name, norm):
    x = drawn((4, 5, 6), "rfft" in name and "ir" not in name)
    for s, axes in (((3, 8), (0, 2)), ((5, 6), (-1, 1)), ((4, 4), (0, 1))):
        close(getattr(bp.fft, name)(bp.asarray(x), s=s, axes=axes, norm=norm), getattr(np.fft, name)(x, s, axes, norm))
    close(getattr(bp.fft, name)(bp.asarray(x), norm=norm), getattr(np.fft, name)(x, norm=norm))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision_stays(dtype):
    x = drawn((1000,), dtype == "float32").astype(dtype)
    close(bp.fft.fft(bp.asarray(x)), np.fft.fft(x).astype("complex64"), 1e-5)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_and_shifts(n):
    close(bp.fft.fftfreq(n, d=0.5, dtype=bp.float64), np.fft.fftfreq(n, 0.5))
    close(bp.fft.rfftfreq(n, d=0.5, dtype=bp.float64), np.fft.rfftfreq(n, 0.5))
    x = drawn((n, 3), True)
    for axes in (None, 0, (1,)):
        close(bp.fft.fftshift(bp.asarray(x), axes=axes), np.fft.fftshift(x, axes))
        close(bp.fft.ifftshift(bp.fft.fftshift(bp.asarray(x), axes=axes), axes=axes), x)


def test_long_and_many_lines_are_cut_among_threads():
    for shape in ((2000, 64), (64, 2000), (8, 30, 1001)):
        x = drawn(shape, False)
        close(bp.fft.fftn(bp.asarray(x)), np.fft.fftn(x), 1e-9)


def test_bad_arguments_are_refused():
    x = bp.ones((4,))
    for call in (
        lambda: bp.fft.fft(x, norm="none"),
        lambda: bp.fft.fft(x, n=0),
        *[lambda f=f, n=n: f(x, n=n) for n in (-1, -5) for f in (bp.fft.fft, bp.fft.ifft, bp.fft.rfft, bp.fft.irfft, bp.fft.hfft, bp.fft.ihfft)],
        lambda: bp.fft.irfft(bp.ones((1,))),
        lambda: bp.fft.fftn(x, s=(2, 2), axes=(0,)),
        lambda: bp.fft.fftn(bp.ones((2, 2)), axes=(0, -2)),
        lambda: bp.fft.fftfreq(0),
        lambda: bp.fft.irfftn(bp.asarray(1.0)),
        lambda: bp.fft.rfftn(bp.ones((2,)), axes=()),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(IndexError):
        bp.fft.fft(x, axis=1)
    with pytest.raises(TypeError):
        bp.fft.rfft(x + 0j)


def test_a_filter_has_a_gradient():
    """The gradient of |irfft(rfft(x) h)|^2 / 2 is the filter's adjoint applied to its result."""
    x = bp.asarray(drawn((16,), True))
    h = np.exp(-np.arange(9) / 3)

    def filtered(x):
        return bp.fft.irfft(bp.fft.rfft(x) * bp.asarray(h), n=16)

    found = bp.grad(lambda x: bp.sum(bp.square(filtered(x))) / 2)(x)
    matrix = np.stack([np.fft.irfft(np.fft.rfft(row) * h, 16) for row in np.eye(16)], 1)
    close(found, matrix.T @ matrix @ x.numpy(), 1e-9)
