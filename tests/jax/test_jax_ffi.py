"""Calls from XLA's programs: by the handler, without Python; values, errors, captured tensors, exported programs, and the way without it."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import backplane as bp
import backplane.jax as bj
from backplane.jax import _ffi

X = jnp.linspace(0.3, 1.9, 5, dtype=jnp.float32)
wave = bj.op("bp::sinc")


def text_of(f, *args):
    return jax.jit(f).lower(*args).as_text()


@pytest.mark.parametrize("f", [wave, jax.grad(lambda x: wave(x).sum()), jax.vmap(wave), bj.function(lambda x: bp.tanh(x) * 2 + bp.flip(x))])
def test_a_call_is_the_handlers_and_not_a_callback(f):
    text = text_of(f, X)
    assert _ffi.TARGET in text and "callback" not in text


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_dtypes_and_shapes_pass(dtype, shape):
    x = jnp.ones(shape, dtype)
    y = jax.jit(bj.op("bp::where"))(x == 1, x, x)
    assert y.dtype == x.dtype and y.shape == x.shape and bool((y == x).all())


def test_ops_with_attributes_and_several_results():
    x = jnp.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(jax.jit(lambda x: bj.op("bp::sum")(x, 1, keepdims=True))(x), x.sum(1, keepdims=True))
    np.testing.assert_array_equal(jax.jit(lambda x: bj.op("bp::clip")(x, 2.5, 7))(x), jnp.clip(x, 2.5, 7))
    values, places = jax.jit(lambda x: bj.op("bp::topk")(x, 2))(x)
    np.testing.assert_array_equal(values, jax.lax.top_k(x, 2)[0])
    np.testing.assert_array_equal(places, jax.lax.top_k(x, 2)[1])
    np.testing.assert_array_equal(jax.jit(lambda x: bj.op("bp::argmax")(x))(x), 11)
    np.testing.assert_array_equal(jax.jit(bj.op("bp::permute_dims"), static_argnums=1)(x, (1, 0)), x.T)


@pytest.mark.parametrize("size", [3, 400])
def test_captured_tensors_are_operands(size):
    w = bp.arange(float(size))
    f = bj.function(lambda x, y: (x * w + y, w))
    x = jnp.linspace(0, 1, size, dtype=jnp.float32)
    for found in (f(x, x), jax.jit(f)(x, x)):
        np.testing.assert_allclose(found[0], x * np.arange(size) + x, rtol=1e-6)
        np.testing.assert_array_equal(found[1], np.arange(size))


def test_many_calls_in_a_loop_and_from_threads():
    add = bj.op("bp::add")
    run = jax.jit(lambda x: jax.lax.fori_loop(0, 1000, lambda i, c: add(c, x), jnp.zeros_like(x)))
    np.testing.assert_allclose(run(X), 1000 * X, rtol=1e-4)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda k: run(X * k), range(8)):
            assert found.shape == X.shape


def test_an_error_at_run_time_has_our_text():
    solve = bj.op("bp::cholesky")
    with pytest.raises(Exception, match="cholesky"):
        jax.block_until_ready(jax.jit(solve)(-jnp.eye(3)))


def test_exported_programs_hold_the_call(tmp_path):
    """In another process too."""
    exported = jax.export.export(jax.jit(lambda x: wave(x) + 1), disabled_checks=bj.register())(X)
    np.testing.assert_allclose(exported.call(X), jnp.sinc(X) + 1, rtol=1e-5)
    pytest.importorskip("flatbuffers")
    (tmp_path / "program").write_bytes(exported.serialize())
    program = (
        "import sys, jax, jax.numpy as jnp, backplane.jax as bj; bj.register(); "
        "print(float(jax.export.deserialize(bytearray(open(sys.argv[1], 'rb').read())).call(jnp.linspace(0.3, 1.9, 5, dtype=jnp.float32))[0]))"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "program"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(float(done.stdout), float(jnp.sinc(X)[0] + 1), rtol=1e-5)


def test_without_the_handler_a_warning_says_so(monkeypatch):
    monkeypatch.setattr(_ffi, "LIBRARY", _ffi.LIBRARY.with_name("none.so"))
    _ffi.is_registered.cache_clear()
    try:
        with pytest.warns(UserWarning, match="host callback"):
            text = text_of(lambda x: wave(x) * 3, X)
        assert "callback" in text
    finally:
        monkeypatch.undo()
        _ffi.is_registered.cache_clear()


def test_random_functions_and_python_calls_go_through_the_callback():
    generator = bp.Generator(3)
    noisy = bj.function(lambda x: x + bp.normal(x.shape, generator=generator))
    assert "callback" in text_of(noisy, X)


def test_symbolic_shapes_are_exported():
    n, m = jax.export.symbolic_shape("n, m")
    f = bj.function(lambda x, w: (bp.concat([bp.tanh(x) @ w, x @ w], axis=0), x.sum(axis=0)))
    product = bj.function(lambda x, w: bp.tanh(x) @ w)
    g = jax.grad(lambda x, w: product(x, w).sum())
    x, w = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((n, 3), (3, m)))
    for function in (f, g):
        exported = jax.export.export(jax.jit(function), disabled_checks=bj.register())(x, w)
        for rows, columns in ((5, 2), (1, 7)):
            args = (jnp.linspace(0, 1, rows * 3, dtype=jnp.float32).reshape(rows, 3), jnp.ones((3, columns), jnp.float32))
            for found, wanted in zip(jax.tree.leaves(exported.call(*args)), jax.tree.leaves(function(*args)), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert "2*n" in str(jax.export.export(jax.jit(f), disabled_checks=bj.register())(x, w).out_avals[0].shape)
    with pytest.raises(bp.ShapeError, match="expected a name"):
        jax.export.export(jax.jit(wave), disabled_checks=bj.register())(jax.ShapeDtypeStruct((2 * n,), jnp.float32))


def test_bools_are_written_over_any_bytes():
    x = jnp.arange(1 << 12)
    less = jax.jit(lambda x: bj.op("bp::less")(x, x[::-1]))
    for _ in range(5):
        np.testing.assert_array_equal(less(x), x < x[::-1])
