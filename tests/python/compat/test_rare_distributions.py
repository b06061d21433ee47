"""Samplers of numpy.random that reject candidates: the frequencies agree with the probabilities, in the middle and in the tails."""

import math

import numpy as np
import pytest

import backplane as bp

COUNT = 40000


def generator(seed=0):
    return bp.random.default_rng(seed)


def log_choose(n, k):
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def hypergeometric(good, bad, drawn):
    low, high = max(0, drawn - bad), min(good, drawn)
    return {k: math.exp(log_choose(good, k) + log_choose(bad, drawn - k) - log_choose(good + bad, drawn)) for k in range(low, high + 1)}


def zipf(a):
    total = sum(k**-a for k in range(1, 10000)) + 9999.5 ** (1 - a) / (a - 1)
    return {k: k**-a / total for k in range(1, 40)}


def logseries(p):
    return {k: -(p**k) / (k * math.log1p(-p)) for k in range(1, 60)}


CASES = [
    *(("hypergeometric", given, hypergeometric(*given)) for given in [(5, 3, 4), (3, 5, 7), (1, 1, 1), (40, 7, 20), (7, 40, 30), (300, 200, 100), (200, 300, 450), (9, 400, 40)]),
    *(("zipf", (a,), zipf(a)) for a in (1.5, 2.0, 4.0)),
    *(("logseries", (p,), logseries(p)) for p in (0.05, 0.5, 0.97)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "expected"), CASES)
def test_frequencies(name, given, expected):
    found = getattr(generator(), name)(*given, size=COUNT)
    assert found.dtype == bp.int64 and found.shape == (COUNT,)
    values, counts = np.unique(found.numpy(), return_counts=True)
    counts = dict(zip(values.tolist(), counts.tolist()))
    if name == "hypergeometric":
        assert set(counts) <= set(expected) and math.isclose(sum(expected.values()), 1, rel_tol=1e-9)
    else:
        assert min(counts) == 1
    likely = [k for k in expected if expected[k] * COUNT > 10]
    differences = [(counts.get(k, 0) - COUNT * expected[k]) ** 2 / (COUNT * expected[k] * (1 - expected[k])) for k in likely if expected[k] < 1]
    assert sum(differences) < len(differences) + 6 * math.sqrt(2 * len(differences)) + 6  # chi-squared, six deviations
    beyond = COUNT - sum(counts.get(k, 0) for k in likely)
    rest = max(0.0, COUNT * (1 - sum(expected[k] for k in likely)))
    assert abs(beyond - rest) < 6 * math.sqrt(rest) + 6


def test_edges_of_the_parameters():
    draw = generator().hypergeometric
    assert draw([0, 5, 5, 0], [5, 0, 3, 0], [3, 4, 8, 0]).tolist() == [0, 4, 5, 0] and draw(10**9 - 1, 10**9 - 1, 10**6).item() == pytest.approx(5e5, abs=6000)
    assert generator().logseries(0.0, size=3).tolist() == [1, 1, 1] and set(generator().zipf(60.0, size=50).tolist()) == {1}
    heavy = generator().zipf(1.01, size=1000)
    assert bool((heavy >= 1).all()) and heavy.max() > 2**40
    assert generator().vonmises([0.0, 1.0], [[1.0], [2.0], [3.0]]).shape == (3, 2)


def ratio_of_bessel(k):
    """I1(k) / I0(k), by their series."""
    terms = [(k / 2) ** (2 * j) / math.factorial(j) ** 2 for j in range(60)]
    return sum(t * k / 2 / (j + 1) for j, t in enumerate(terms)) / sum(terms)


@pytest.mark.parametrize("kappa", [0.0, 1e-6, 0.5, 4.0, 20.0])
def test_angles(kappa):
    x = generator().vonmises(1.0, kappa, size=COUNT).numpy()
    assert x.dtype == np.float64 and np.all(np.abs(x) <= math.pi)
    assert abs(np.cos(x - 1.0).mean() - ratio_of_bessel(kappa)) < 5 * np.cos(x - 1.0).std() / math.sqrt(COUNT) + 1e-6
    assert abs(np.sin(x - 1.0).mean()) < 5 * np.sin(x - 1.0).std() / math.sqrt(COUNT)


def test_noncentral_f():
    count = 8000
    m, n, shift = 5.0, 20.0, 3.0
    x = generator().noncentral_f(m, n, shift, size=count).numpy()
    mean = n * (m + shift) / (m * (n - 2))
    variance = 2 * (n / m) ** 2 * ((m + shift) ** 2 + (m + 2 * shift) * (n - 2)) / ((n - 2) ** 2 * (n - 4))
    assert abs(x.mean() - mean) < 5 * math.sqrt(variance / count) and abs(x.var() / variance - 1) < 0.3


def test_refusals():
    for name, given, match in (
        ("zipf", (1.0,), r"zipf: argument a: found 1\.0, expected numbers above 1"), ("logseries", (1.0,), "expected probabilities below 1"),
        ("hypergeometric", (2.5, 1, 1), r"ngood: found 2\.5, expected integers from 0 to 999999999"), ("hypergeometric", (1, 10**9, 1), "argument nbad"),
        ("hypergeometric", (2, 3, 6), r"nsample: found 6\.0, expected at most ngood \+ nbad"), ("vonmises", (0.0, -1.0), "kappa"), ("noncentral_f", (0, 1, 1), "dfnum"),
    ):  # fmt: skip
        with pytest.raises(bp.ArgumentValueError, match=match):
            getattr(generator(), name)(*given)
