"""Functions that the package takes from backplane.compat for signals, random numbers, solving, text files and archives."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("m", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("name", ["hanning", "hamming", "blackman", "bartlett"])
def test_windows(name, m):
    """NumPy's are symmetric; PyTorch's are those of one more point, without the last."""
    found, wanted = getattr(bp, name)(m), getattr(np, name)(m)
    assert found.dtype == bp.float32 and found.shape == (m,)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-7)
    periodic = getattr(bp, "hann_window" if name == "hanning" else f"{name}_window")(max(m, 1))
    np.testing.assert_allclose(periodic.numpy(), getattr(np, name)(max(m, 1) + 1)[:-1] if m > 1 else [1], atol=1e-7)


def test_kaisers_window():
    np.testing.assert_allclose(bp.kaiser(9, 3.0).numpy(), np.kaiser(9, 3.0), rtol=1e-6)
    np.testing.assert_allclose(bp.kaiser_window(8, beta=3.0).numpy(), np.kaiser(9, 3.0)[:-1], rtol=1e-6)


def test_transforms_of_windows_and_back():
    x, window = bp.asarray(RNG.normal(size=(2, 100))), bp.hann_window(16, dtype="float64")
    spectrum = bp.stft(x, 16, hop_length=4, window=window, return_complex=True)
    padded = np.pad(x.numpy(), ((0, 0), (8, 8)), mode="reflect")
    frames = np.stack([padded[:, i : i + 16] for i in range(0, 101, 4)], axis=-1) * window.numpy()[:, None]
    np.testing.assert_allclose(spectrum.numpy(), np.fft.rfft(frames, axis=1), atol=1e-12)
    np.testing.assert_allclose(bp.istft(spectrum, 16, hop_length=4, window=window, length=100).numpy(), x.numpy(), atol=1e-12)


def test_the_gradient_of_a_spectrum():
    x, window = bp.asarray(RNG.normal(size=40)), bp.hann_window(8, dtype="float64")
    power = bp.compile(bp.grad(lambda x: bp.abs(bp.stft(x, 8, window=window, return_complex=True)).square().sum()))
    step = bp.asarray(RNG.normal(size=40))
    loss = lambda x: bp.abs(bp.stft(x, 8, window=window, return_complex=True)).square().sum().item()  # noqa: E731
    np.testing.assert_allclose((power(x) * step).sum().item(), (loss(x + 1e-5 * step) - loss(x - 1e-5 * step)) / 2e-5, rtol=1e-7)


def test_solving_by_a_cholesky_factor():
    a = RNG.normal(size=(3, 4, 4))
    a, b = bp.asarray(a @ a.transpose(0, 2, 1) + np.eye(4)), bp.asarray(RNG.normal(size=(3, 4, 2)))
    for upper in (False, True):
        factor = bp.linalg.cholesky(a, upper=upper)
        np.testing.assert_allclose((a @ bp.cholesky_solve(b, factor, upper)).numpy(), b.numpy(), atol=1e-12)
        np.testing.assert_allclose(bp.cholesky_inverse(factor, upper).numpy(), np.linalg.inv(a.numpy()), atol=1e-12)


def test_random_counts():
    rates = bp.full((40000,), 3.0)
    counts = bp.poisson(rates, generator=bp.Generator(1)).numpy()
    assert abs(counts.mean() - 3) < 0.05 and abs(counts.var() - 3) < 0.1 and (counts == counts.round()).all()
    counts = bp.binomial(bp.full((40000,), 10.0), bp.full((40000,), 0.3), generator=bp.Generator(1)).numpy()
    assert abs(counts.mean() - 3) < 0.05 and abs(counts.var() - 2.1) < 0.1 and counts.max() <= 10


def test_archives_and_text_files(tmp_path):
    x, y = bp.asarray(RNG.normal(size=(3, 2))), bp.arange(4)
    for save in (bp.savez, bp.savez_compressed):
        save(tmp_path / "x.npz", x, count=y)
        found = np.load(tmp_path / "x.npz")
        assert sorted(found) == ["arr_0", "count"] and (found["arr_0"] == x.numpy()).all() and (found["count"] == y.numpy()).all()
    bp.savetxt(tmp_path / "x.txt", x)
    assert (bp.loadtxt(tmp_path / "x.txt") == x).all() and (bp.genfromtxt(tmp_path / "x.txt") == x).all()
    assert bp.fromiter((i * i for i in range(3)), bp.int64).tolist() == [0, 1, 4]
    assert bp.frombuffer(b"\x01\x02\x03", dtype=bp.uint8).tolist() == [1, 2, 3]


def test_bits_and_powers_of_two():
    x = bp.asarray([1, 0, 1, 1, 0, 0, 0, 1, 1], dtype="uint8")
    assert bp.packbits(x).tolist() == np.packbits(x.numpy()).tolist() and bp.unpackbits(bp.packbits(x)).tolist()[:9] == x.tolist()
    mantissa, exponent = bp.frexp(bp.asarray([3.0, -0.25, 0.0]))
    assert mantissa.tolist() == [0.75, -0.5, 0] and exponent.tolist() == [2, -1, 0]
    assert bp.spacing(bp.asarray([1.0, 1024.0])).tolist() == np.spacing(np.float32([1, 1024])).tolist()
    assert bp.bitwise_count(bp.asarray([7, 8])).tolist() == [3, 1]


def test_parts_that_are_written_by_index():
    x, src = bp.zeros(2, 3), bp.asarray([[1.0, 2, 3], [4, 5, 6]])
    index = bp.asarray([[0, 1, 0], [0, 0, 1]])
    assert bp.scatter_reduce(x, 0, index, src, "sum").tolist() == [[5, 5, 3], [0, 2, 6]]
    assert bp.index_reduce(bp.ones(2, 3), 0, bp.asarray([1, 1]), src, "prod").tolist() == [[1, 1, 1], [4, 10, 18]]
    assert bp.masked_scatter(x, src > 3, bp.asarray([7.0, 8, 9])).tolist() == [[0, 0, 0], [7, 8, 9]]
    assert bp.renorm(bp.asarray([[3.0, 4], [0.3, 0.4]]), 2, 0, 1.0).numpy() == pytest.approx(np.asarray([[0.6, 0.8], [0.3, 0.4]]))
