"""Methods, classes and draws of NumPy and PyTorch that no one-line case shows: ambiguous methods, Function, distributions, exact values."""

import io
import math

import backplane as bp
import backplane.compat.numpy as np
import backplane.compat.torch as torch
import pytest


def test_methods_that_both_libraries_have_are_refused_where_both_mean_something():
    vector, matrix = bp.arange(3), bp.ones(2, 2)
    for call in (lambda: vector.repeat(2), lambda: matrix.repeat(2, 1), lambda: vector.sort(), lambda: vector.sort(0), lambda: matrix.transpose(0, 1)):
        with pytest.raises(bp.ArgumentTypeError, match="NumPy"):
            call()
    assert vector.repeat(2, axis=0).tolist() == [0, 0, 1, 1, 2, 2]
    assert vector.repeat(2, 2).tolist() == [[0, 1, 2, 0, 1, 2]] * 2
    assert matrix.repeat(2).shape == (8,) and matrix.repeat(1, 1, 2).shape == (1, 2, 4) and bp.asarray(3).repeat(2).tolist() == [3, 3]
    assert vector.sort(descending=True).values.tolist() == [2, 1, 0]
    with pytest.raises(AttributeError, match="copy"):
        vector.put


def test_size_is_a_number_and_a_method():
    x = bp.ones((2, 3, 4))
    assert x.size == 24 and x.size() == (2, 3, 4) and x.size(0) == 2 and x.size(-1) == x.size(dim=2) == 4
    with pytest.raises(IndexError, match="axis"):
        x.size(3)
    kept, _ = x.size, bp.ones(5).size
    with pytest.raises(TypeError, match="kept"):
        kept()
    assert bp.compile(lambda x: x.reshape(x.size(0), -1).sum(1) * x.size(2))(x).tolist() == [48, 48]
    assert bp.vmap(lambda x: x * x.size(0))(x).tolist() == (x * 3).tolist()


def test_sizes_in_a_function_of_many_shapes():
    f = bp.compile(lambda x: x.sum() * x.size(0) + len(x.size()), dynamic={"x": {0: "n"}})
    assert [float(f(bp.ones(n, 2))) for n in (2, 3, 5)] == [2.0 * n * n + 2 for n in (2, 3, 5)]


def test_a_dtype_makes_tensors():
    x = bp.float32(1.5)
    assert (x.dtype, x.shape, float(x)) == (bp.float32, (), 1.5) and bp.int8().tolist() == 0
    assert bp.int16([1.9, -1.9]).tolist() == [1, -1] and bp.complex64(2).dtype is bp.complex64
    base = bp.ones(2)
    made = bp.float32(base)
    made[0] = 7
    assert base.tolist() == [1, 1]
    with pytest.raises(TypeError, match="one value"):
        bp.float32(1, 2)


def test_python_floats_as_dtypes():
    assert bp.arange(2).astype(float).dtype is bp.float64 and bp.arange(2).astype(complex).dtype is bp.complex128
    assert torch.zeros(2, dtype=float).dtype is bp.float64 and np.zeros(2, dtype=complex).dtype is bp.complex128


def test_gammainc_is_exact():
    """Of whole a, Q(a, x) = exp(-x) * (1 + x + ... + x**(a - 1) / (a - 1)!)."""
    for a in (1, 5, 30, 300):
        for factor in (0.5, 0.99, 1.01, 1.5):
            x = a * factor
            exact = math.fsum(math.exp(k * math.log(x) - x - math.lgamma(k + 1)) for k in range(a))
            found = float(torch.special.gammaincc(bp.asarray(float(a), bp.float64), bp.asarray(x, bp.float64)))
            assert abs(found - exact) <= 1e-11 * exact + 1e-300, (a, x)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * ctx.scale * x**2, None


class Pair(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, of_product, of_sum):
        x, y = ctx.saved_tensors
        return of_product * y + of_sum, of_product * x + of_sum


def test_functions_with_a_backward_pass():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    Cube.apply(x, 2.0).sum().backward()
    assert x.grad.tolist() == [6, 24]
    assert torch.func.grad(lambda x: Cube.apply(x, 2.0).sum())(x.detach()).tolist() == [6, 24]
    assert torch.func.vmap(torch.func.grad(lambda x: Cube.apply(x, 1.0)))(x.detach()).tolist() == [3, 12]
    assert bp.compile(lambda x: Cube.apply(x, 1.0))(x.detach()).tolist() == [1, 8]
    y = torch.tensor([3.0, 5.0], requires_grad=True)
    product, total = Pair.apply(x, y)
    found = torch.autograd.grad((product + 2 * total).sum(), [x, y])
    assert [one.tolist() for one in found] == [[5, 7], [3, 4]]
    first = torch.autograd.grad(Cube.apply(x, 1.0).sum(), x, create_graph=True)[0]
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [6, 12]


def test_files_in_memory():
    content = io.BytesIO()
    torch.save({"w": torch.arange(3), "step": 2}, content)
    content.seek(0)
    found = torch.load(content)
    assert found["w"].tolist() == [0, 1, 2] and found["step"] == 2


# Mean and variance of each distribution.
MOMENTS = {
    "gamma": ((2.0, 3.0), 6.0, 18.0), "beta": ((2.0, 3.0), 0.4, 0.04), "chisquare": ((3.0,), 3.0, 6.0), "noncentral_chisquare": ((3.0, 2.0), 5.0, 14.0),
    "f": ((3.0, 20.0), 20 / 18, 2 * 400 * 21 / (3 * 324 * 16)), "standard_t": ((9.0,), 0.0, 9 / 7), "gumbel": ((1.0, 2.0), 1 + 2 * 0.5772156649, math.pi**2 * 4 / 6),
    "laplace": ((1.0, 2.0), 1.0, 8.0), "logistic": ((1.0, 2.0), 1.0, math.pi**2 * 4 / 3), "lognormal": ((0.0, 0.5), math.exp(0.125), (math.exp(0.25) - 1) * math.exp(0.25)),
    "pareto": ((5.0,), 0.25, 5 / (16 * 3)), "power": ((3.0,), 0.75, 3 / 80), "rayleigh": ((2.0,), 2 * math.sqrt(math.pi / 2), (4 - math.pi) / 2 * 4),
    "triangular": ((0.0, 1.0, 4.0), 5 / 3, (16 + 1 - 4) / 18), "weibull": ((2.0,), math.gamma(1.5), 1 - math.gamma(1.5) ** 2), "wald": ((2.0, 5.0), 2.0, 8 / 5),
    "poisson": ((4.0,), 4.0, 4.0), "binomial": ((10, 0.3), 3.0, 2.1), "negative_binomial": ((5, 0.4), 7.5, 18.75), "geometric": ((0.25,), 4.0, 12.0),
}  # fmt: skip


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_of_distributions(name):
    parameters, mean, variance = MOMENTS[name]
    x = getattr(np.random.default_rng(7), name)(*parameters, size=20000)
    assert x.shape == (20000,) and x.dtype is (bp.int64 if name in ("poisson", "binomial", "negative_binomial", "geometric") else bp.float64)
    spread = math.sqrt(variance / 20000)
    assert abs(float(np.mean(x)) - mean) < 5 * spread
    assert abs(float(np.var(x)) / variance - 1) < 0.25


def test_vectors_of_distributions():
    rng = np.random.default_rng(3)
    x = rng.multivariate_normal([1.0, 2.0], [[2.0, 0.6], [0.6, 1.0]], size=20000)
    assert np.allclose(np.cov(x, rowvar=False), [[2.0, 0.6], [0.6, 1.0]], atol=0.08) and np.allclose(np.mean(x, 0), [1, 2], atol=0.05)
    shares = rng.dirichlet([1.0, 2.0, 5.0], size=5000)
    assert np.allclose(shares.sum(-1), 1) and np.allclose(np.mean(shares, 0), [0.125, 0.25, 0.625], atol=0.02)
    counts = rng.multinomial(20, [0.2, 0.3, 0.5], size=5000)
    assert (counts.sum(-1) == 20).all() and np.allclose(np.mean(counts, 0), [4, 6, 10], atol=0.2)
    assert abs(float(np.median(rng.standard_cauchy(20000)))) < 0.05 and rng.standard_gamma(2.0, 3).shape == rng.standard_exponential(3).shape == (3,)
    assert rng.normal(np.zeros((2, 1)), np.ones(3)).shape == (2, 3) and len(rng.bytes(5)) == 5
    assert np.random.RandomState(4).rand(3).tolist() == np.random.RandomState(4).rand(3).tolist()


def test_draws_in_place():
    torch.manual_seed(2)
    x = torch.empty(20000)
    assert abs(float(x.exponential_(2.0).mean()) - 0.5) < 0.03 and x.exponential_() is x
    assert abs(float(x.geometric_(0.25).mean()) - 4) < 0.2 and float(x.min()) == 1
    assert abs(float(x.bernoulli_(0.3).mean()) - 0.3) < 0.03
    assert abs(float(x.log_normal_(0.0, 0.5).mean()) - math.exp(0.125)) < 0.05
    assert abs(float(bp.median(x.cauchy_(1.0, 2.0))) - 1) < 0.2
    integers = torch.empty(1000, dtype=torch.int64).random_(3, 6)
    assert sorted(set(integers.tolist())) == [3, 4, 5]
