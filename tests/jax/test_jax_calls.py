"""Ops and functions of Backplane in JAX: values, derivatives of order 2 in both modes, every nesting, dtypes, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import backplane as bp
import backplane.jax as bj

X = jnp.linspace(0.3, 1.9, 5, dtype=jnp.float32)
wave = bj.op("bp::sinc")


def close(found, expected, tolerance=2e-5):
    for got, want in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


NESTINGS = {
    "jit": lambda f: jax.jit(f)(X),
    "grad": lambda f: jax.grad(lambda x: f(x).sum())(X),
    "jit of grad": lambda f: jax.jit(jax.grad(lambda x: f(x).sum()))(X),
    "jvp": lambda f: jax.jvp(f, (X,), (X,)),
    "vjp": lambda f: jax.vjp(f, X)[1](X),
    "linearize": lambda f: jax.linearize(f, X)[1](X),
    "vmap": lambda f: jax.vmap(f)(X[:, None]),
    "vmap of grad": lambda f: jax.vmap(jax.grad(lambda x: f(x).sum()))(X[:, None]),
    "grad of vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum())(X[:, None]),
    "hessian": lambda f: jax.hessian(lambda x: (f(x) ** 2).sum())(X),
    "jacfwd of jacrev": lambda f: jax.jacfwd(jax.jacrev(f))(X),
    "grad of grad": lambda f: jax.grad(lambda x: jax.grad(lambda z: f(z).sum())(x).sum())(X),
    "scan": lambda f: jax.lax.scan(lambda c, e: (c + f(e), f(c)), jnp.float32(0.5), X),
    "grad of scan": lambda f: jax.grad(lambda x: jax.lax.scan(lambda c, e: (f(c) + e, c), jnp.float32(0.5), x)[0])(X),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(lambda x: f(f(x)).sum()))(X),
    "while_loop": lambda f: jax.lax.fori_loop(0, 3, lambda _, x: f(x) + 0.5, X),
    "cond": lambda f: jax.lax.cond(X.sum() > 0, f, lambda x: x, X),
    "jit of vmap of hessian": lambda f: jax.jit(jax.vmap(jax.hessian(lambda x: f(x).sum())))(X[:, None]),
}


@pytest.mark.parametrize("nesting", list(NESTINGS))
def test_nestings_give_what_jax_gives_for_its_own_function(nesting):
    close(NESTINGS[nesting](wave), NESTINGS[nesting](jnp.sinc), 2e-3)


@pytest.mark.parametrize(
    ("name", "shapes", "options"),
    [
        ("sinc", [(4,)], {}), ("matmul", [(2, 3), (3, 2)], {}), ("softmax", [(2, 3)], {"axis": -1}), ("layer_norm", [(2, 4)], {}),
        ("gelu", [(3,)], {}), ("logsumexp", [(2, 3)], {"axis": 1}), ("conv2d", [(1, 2, 4, 4), (2, 2, 3, 3)], {"padding": (1, 1)}), ("cumsum", [(3, 2)], {"axis": 0}),
    ],
)  # fmt: skip
def test_derivatives_of_order_two_in_both_modes(name, shapes, options):
    rng = np.random.default_rng(0)
    arrays = [jnp.asarray(rng.uniform(0.3, 1.5, shape), dtype=jnp.float32) for shape in shapes]
    check_grads(lambda *args: bj.op(name)(*args, **options), arrays, 2, ["fwd", "rev"], rtol=5e-2, atol=5e-2, eps=1e-2)


def test_results_in_other_structures_and_dtypes():
    y = jnp.arange(6.0).reshape(2, 3)
    values, places = bj.op("topk")(y, 2)
    assert values.tolist() == [[2, 1], [5, 4]] and places.dtype == jnp.int32
    assert bj.op("argmax")(y, axis=1).dtype == jnp.int32
    half = bj.op("sinc")(X.astype(jnp.bfloat16))
    assert half.dtype == jnp.bfloat16
    close(half.astype(jnp.float32), jnp.sinc(X.astype(jnp.bfloat16).astype(jnp.float32)), 1e-2)
    with jax.enable_x64(True):
        assert bj.op("argmax")(jnp.arange(3.0)).dtype == jnp.int64
        assert bj.op("sinc")(jnp.arange(3.0, dtype=jnp.float64)).dtype == jnp.float64


def test_functions_with_containers():
    layer = bj.function(lambda p, x, scale: {"y": bp.tanh(x @ p["w"] + p["b"]) * scale})
    p, x = {"w": jnp.ones((3, 2)), "b": jnp.zeros(2)}, jnp.arange(6.0).reshape(2, 3) / 10

    def reference(p, x):
        return jnp.tanh(x @ p["w"] + p["b"]) * 2

    close(layer(p, x, 2)["y"], reference(p, x))
    close(jax.grad(lambda p: layer(p, x, 2)["y"].sum())(p), jax.grad(lambda p: reference(p, x).sum())(p))


def test_integer_arguments_beside_floats_have_no_derivative():
    def picked(x):
        return bj.op("take")(x, jnp.array([0, 2, 2]), axis=0).sum()

    assert jax.grad(picked)(X).tolist() == [1.0, 0.0, 2.0, 0.0, 0.0]


def test_static_arguments_and_shapes_that_differ_are_distinguished():
    signs = bj.function(lambda x, y: bp.copysign(x, y))
    assert signs(jnp.ones(2), 0.0).tolist() == [1.0, 1.0] and signs(jnp.ones(2), -0.0).tolist() == [-1.0, -1.0]
    parts = bj.function(lambda x: tuple(x[i] for i in range(x.shape[0])))
    for n in (2, 3, 2):
        assert len(jax.jit(parts)(jnp.ones(n))) == len(parts(jnp.ones(n))) == n
    assert wave(bp.ones(3)).shape == (3,)


def test_errors_keep_their_words():
    with pytest.raises(bp.ArgumentValueError, match="no such op"):
        bj.op("mine::nothing")
    with pytest.raises(bp.ShapeError, match="matmul"):
        jax.jit(bj.op("matmul"))(jnp.ones((2, 3)), jnp.ones((2, 3)))


def test_a_custom_op_of_python():
    @bp.custom_op("jaxtest::shifted")
    def shifted(x: bp.Tensor, by: float = 1.0) -> bp.Tensor:
        return bp.asarray(x.numpy() + by)

    @shifted.register_shape
    def _(x, by=1.0):
        return x

    found = bj.op("jaxtest::shifted")(X, 2.0)
    close(found, X + 2)
