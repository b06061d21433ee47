"""to_graph: JAX functions as graphs that give JAX's results, uncompiled, compiled and as files."""

import jax
import jax.ad_checkpoint
import jax.numpy as jnp
import numpy as np
import pytest

import backplane as bp
import backplane.jax as bj

rng = np.random.default_rng(0)


def floats(*shape):
    return jnp.asarray(rng.standard_normal(shape), jnp.float32)


def perceptron(p, x, y):
    return jnp.mean((jax.nn.softmax(jax.nn.relu(x @ p["w"] + p["b"]) @ p["v"]) - y) ** 2)


def perceptron_step(p, x, y):
    return jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(perceptron)(p, x, y))


def network(w, v, x):
    y = jax.nn.relu(jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    y = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jnp.sum(jnp.tanh(y.reshape(y.shape[0], -1) @ v))


def transformer(q, k, v, x):
    scores = (x @ q) @ (x @ k).swapaxes(-1, -2) / np.sqrt(8)
    y = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((5, 5), bool)), scores, -jnp.inf)) @ (x @ v)
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
    return jax.nn.gelu(y).sum()


POSITIVE = (lambda m: m @ m.T + 3 * jnp.eye(3))(floats(3, 3))
P = {"w": floats(3, 8), "b": floats(8), "v": floats(8, 4)}
CASES = {
    "a perceptron": (perceptron, P, floats(5, 3), floats(5, 4)),
    "its training step": (perceptron_step, P, floats(5, 3), floats(5, 4)),
    "a convolutional network": (network, floats(3, 3, 2, 4), floats(64, 3), floats(2, 8, 8, 2)),
    "its gradient": (jax.grad(network, argnums=(0, 1, 2)), floats(3, 3, 2, 4), floats(64, 3), floats(2, 8, 8, 2)),
    "a transformer": (transformer, floats(8, 8), floats(8, 8), floats(8, 8), floats(2, 5, 8)),
    "its gradient and value": (jax.value_and_grad(transformer, argnums=(0, 1, 2, 3)), floats(8, 8), floats(8, 8), floats(8, 8), floats(2, 5, 8)),
    "scan": (lambda x: jax.lax.scan(lambda c, e: (jnp.tanh(c + e), c * 2), jnp.zeros(3), x), floats(5, 3)),
    "while_loop": (lambda x: jax.lax.while_loop(lambda s: s.sum() < 100, lambda s: s * 2 + 1, x), jnp.abs(floats(3))),
    "fori_loop": (lambda x: jax.lax.fori_loop(0, 5, lambda i, s: s + i, x), floats(3)),
    "cond": (lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), floats(3)),
    "switch": (lambda i, x: jax.lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x), jnp.int32(2), floats(3)),
    "indices": (lambda x, i: (x[i], x[1:, ::2], x.at[i].set(0), x.at[i].add(1), x.at[i, 1].multiply(2), x[i, i], x.at[9].set(1)), floats(4, 4), jnp.array([0, 2])),
    "dynamic slices": (lambda x, i: (jax.lax.dynamic_slice(x, (i, 1), (2, 2)), jax.lax.dynamic_update_slice(x, jnp.ones((2, 2)), (i, i))), floats(4, 4), jnp.int32(3)),
    "sorting": (lambda x: (jnp.sort(x), jnp.argsort(x), jax.lax.top_k(x, 2), jnp.argmax(x, 0), jnp.cumsum(x, 1), jnp.median(x)), floats(4, 4)),
    "elementary": (lambda x: (jnp.expm1(x), jnp.log1p(abs(x)), jax.scipy.special.erf(x), jnp.sinc(x), x**3, x // 0.7, x % 0.7, jnp.round(x), jnp.clip(x, -1, 1)), floats(4, 4)),
    "batches": (jax.vmap(lambda a, b: jnp.dot(a, b) + jnp.outer(a, b).sum()), floats(4, 3), floats(4, 3)),
    "hessian": (jax.hessian(lambda x: jnp.sin(x).prod()), floats(4)),
    "einsum": (lambda x, y: jnp.einsum("bij,bkj->bik", x, y), floats(2, 3, 4), floats(2, 5, 4)),
    "moves": (lambda x: (jnp.pad(x, 1), jnp.pad(x, 1, mode="reflect"), jnp.roll(x, 1), jnp.flip(x), jnp.tile(x, 2), jnp.repeat(x, 2, 0), jnp.stack([x, x])), floats(4, 4)),
    "windows": (lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 3, 3), (1, 2, 2), "SAME"), floats(2, 8, 8)),
    "transposed convolution": (lambda x, w: jax.lax.conv_transpose(x, w, (2, 2), "SAME"), floats(1, 5, 5, 2), floats(3, 3, 2, 4)),
    "grouped convolution": (
        jax.grad(lambda x, w: (jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=2) ** 2).sum(), argnums=(0, 1)), floats(2, 4, 6, 6), floats(4, 2, 3, 3),
    ),
    "an op of Backplane": (jax.grad(lambda x: bj.op("sinc")(x).sum()), floats(4)),
    "checkpoint": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), floats(4)),
    "keys": (lambda k: (jax.random.normal(k, (3,)), jax.random.randint(k, (2, 2), 0, 9), jax.random.permutation(k, 5), jax.random.bernoulli(k, 0.4, (6,))), jax.random.key(7)),
    "keys of keys": (lambda k: jax.vmap(lambda one: jax.random.uniform(jax.random.fold_in(one, 3), (2,)))(jax.random.split(k, 3)), jax.random.key(8)),
    "a key of a number": (lambda seed: jax.random.categorical(jax.random.key(seed), jnp.arange(4.0)), jnp.int32(5)),
    "old keys": (lambda k: [jax.random.normal(one) for one in jax.random.split(k)], jax.random.PRNGKey(9)),
    "a scan over keys": (lambda k: jax.lax.scan(lambda c, one: (c + jax.random.normal(one), c), 0.0, jax.random.split(k, 4)), jax.random.key(3)),
    "dropout": (jax.grad(lambda x, k: jnp.where(jax.random.bernoulli(k, 0.5, x.shape), x * x, 0).sum()), floats(4, 4), jax.random.key(1)),
    "Fourier": (lambda x: (jnp.fft.fft(x), jnp.fft.ifft2(x), jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x), 4)), floats(3, 4)),
    "solve": (jax.value_and_grad(lambda a, b: jnp.linalg.solve(a, b).sum(), argnums=(0, 1)), POSITIVE, floats(3, 2)),
    "inverses": (lambda a: (jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.slogdet(a), jax.scipy.linalg.expm(a)), POSITIVE),
    "triangles": (jax.grad(lambda a, b: (jnp.linalg.cholesky(a).sum() + jax.scipy.linalg.solve_triangular(a, b, trans=1).sum())), POSITIVE, floats(3)),
    "lu": (lambda a, b: (jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(a), b), jax.scipy.linalg.lu(a)), POSITIVE[::-1], floats(3)),
    "eigenvalues": (lambda a: (jnp.linalg.eigvalsh(a), jnp.linalg.svd(a, compute_uv=False)), POSITIVE),
    "order": (lambda x, y: (jnp.lexsort((x, y)), jnp.searchsorted(jnp.sort(x), y), jnp.interp(x, jnp.sort(y), x)), floats(5), floats(5)),
    "rounding": (lambda x: (jax.lax.round(x), jnp.round(x), jnp.trunc(x)), jnp.array([0.49999997, 0.5, -0.5, 2.5, -2.5, 8388609.0, jnp.nan, jnp.inf])),
    "bits": (lambda x: (jax.lax.population_count(x), jax.lax.clz(x), jax.lax.shift_right_logical(x, 3)), jnp.array([-5, 0, 1, 77])),
    "special functions": (
        lambda x: (jax.scipy.special.i0e(x * 9), jax.scipy.special.i1e(x * 30), jax.scipy.special.i0(x), jax.scipy.special.polygamma(2, abs(x) + 0.1), jax.scipy.special.zeta(3.5, abs(x) + 0.1)), floats(40),
    ),
    "edges of special functions": (
        lambda x: (jax.lax.bessel_i0e(x), jax.lax.bessel_i1e(x), jax.lax.zeta(jnp.float32(2), -abs(x)), jax.lax.polygamma(jnp.arange(7.0) - 1, abs(x) + 0.5)), jnp.array([0.0, -0.0, 1.0, 50.0, -50.0, 1e30, jnp.nan]),
    ),
    "incomplete functions": (
        lambda a, x: (jax.scipy.special.gammainc(a, x), jax.scipy.special.gammaincc(a, x), jax.scipy.special.betainc(a, x + 1, jnp.clip(x / 9, 0, 1)), jax.grad(lambda a: jax.scipy.special.gammainc(a, x).sum())(a)),
        abs(floats(9)) + 0.1, abs(floats(9)) * 3,
    ),
    "random gammas": (lambda k: (jax.random.gamma(k, 2.5, (5,)), jax.random.dirichlet(k, jnp.ones(3))), jax.random.key(11)),
    "a gradient of gammas": (jax.grad(lambda a, k: jax.random.gamma(k, a).sum()), abs(floats(4)) + 1, jax.random.key(12)),
    "a batch of loops": (jax.vmap(lambda x: jax.lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] * 2 + 1, s[1] + 1), (x, 0))), abs(floats(5))),
    "reductions of bits": (lambda x: (jax.lax.reduce_and(x, (0,)), jax.lax.reduce_or(x, (0, 1)), jax.lax.reduce_xor(x, (1,)), jax.lax.reduce_and(x > 3, (1,))), jnp.arange(-6, 9).reshape(3, 5)),
    "other reductions": (
        lambda x: (
            jax.lax.reduce(x, 0.0, lambda a, b: a + b, (0,)), jax.lax.reduce(x, 2.0, lambda a, b: jnp.maximum(a, b) * 1.0, (0, 2)),
            jax.lax.reduce((x, x + 1), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,)), jax.lax.reduce(x[:, :0], 3.0, lambda a, b: a * b, (1,)),
        ),
        floats(3, 5, 2),
    ),
    "forward derivatives of maxima": (
        lambda x: jax.jvp(lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 3), (1, 2), "SAME"), (x,), (jnp.cos(x),)), floats(6, 7),
    ),
    "names and composites": (lambda x: jax.lax.composite(lambda x: jax.ad_checkpoint.checkpoint_name(x, "a") * 2, "my.double")(x), floats(4)),
    "parts": (lambda x: (*jnp.unstack(x), x.at[0].subtract(3), jax.lax.approx_max_k(x, 2), jax.lax.approx_min_k(x, 3)), floats(3, 5)),
    "reflections": (lambda x: (jax.lax.linalg.householder_product(x, jnp.array([0.5, 1.2])), abs(jnp.linalg.eigvals(x.T @ x).sum())), floats(4, 2)),
    "three diagonals": (lambda x, b: jax.lax.linalg.tridiagonal_solve(x[0].at[0].set(0), x[1] + 4, x[2].at[-1].set(0), b), floats(3, 6), floats(6, 2)),
    "integers": (lambda x: (x // 3, x % 3, x * 2, x.astype(jnp.float32) / 2, x << 1, x >> 1), jnp.arange(-5, 5)),
}  # fmt: skip


def flat(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


def words(leaf):
    """A random key as its words, and other arrays as they are."""
    return np.asarray(jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)


@pytest.mark.parametrize("name", list(CASES))
def test_a_graph_gives_jaxs_results(name):
    function, *args = CASES[name]
    graph = bj.to_graph(function)(*args)
    tensors = [bp.asarray(words(leaf)) for leaf in jax.tree.leaves(args)]
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(function(*args))]
    for run in (graph, bp.compile(lambda *tensors: graph(*tensors))):
        for got, want in zip(flat(run(*tensors)), expected, strict=True):
            assert got.numpy().dtype == want.dtype and got.numpy().shape == want.shape
            np.testing.assert_allclose(got.numpy(), want, rtol=2e-4, atol=2e-5)


@pytest.mark.skipif(all(device.name != "vulkan" for device in bp.devices()), reason="no Vulkan backend")
@pytest.mark.parametrize("name", ["its training step", "its gradient", "its gradient and value", "scan", "while_loop", "dropout"])
def test_a_graph_gives_jaxs_results_on_vulkan(name):
    function, *args = CASES[name]
    graph = bj.to_graph(function, device="vulkan")(*args)
    tensors = [bp.asarray(words(leaf), device="vulkan") for leaf in jax.tree.leaves(args)]
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(function(*args))]
    for run in (graph, bp.compile(lambda *tensors: graph(*tensors))):
        for got, want in zip(flat(run(*tensors)), expected, strict=True):
            assert str(got.device).startswith("vulkan")
            np.testing.assert_allclose(got.to("cpu").numpy(), want, rtol=2e-4, atol=2e-5)
    assert str(bp.default_device()).startswith("cpu")


def test_a_graph_goes_to_a_file(tmp_path):
    graph = bj.to_graph(transformer)(*CASES["a transformer"][1:])
    graph.save(str(tmp_path / "model.safetensors"))
    args = CASES["a transformer"][1:]
    (y,) = bp.load(tmp_path / "model.safetensors")(*[bp.asarray(np.asarray(a)) for a in args])
    np.testing.assert_allclose(y.numpy(), transformer(*args), rtol=2e-4)


def test_an_unknown_primitive_is_refused_by_name():
    with pytest.raises(bp.MissingRuleError, match="primitive mulhi"):
        bj.to_graph(lambda x: jax.lax.mulhi(x, x))(jnp.arange(4))
    with pytest.raises(bp.MissingRuleError, match="threefry"):
        bj.to_graph(lambda x: x + jax.random.normal(jax.random.key(0, impl="rbg"), (4,)))(jnp.ones(4))
