"""linearize, and Jacobians whose rows are computed in chunks."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(2)
X = bp.asarray(RNG.normal(size=(3, 2)))
Y = bp.asarray(RNG.normal(size=2))


def _function(x, y):
    return {"product": bp.tanh(x @ y), "sum": (x * x).sum()}


def test_a_linearized_function_is_its_jvp():
    value, derivative = bp.linearize(_function, X, Y)
    for _ in range(2):
        tangents = bp.asarray(RNG.normal(size=(3, 2))), bp.asarray(RNG.normal(size=2))
        wanted_value, wanted = bp.jvp(_function, (X, Y), tangents)
        found = derivative(*tangents)
        for key in wanted:
            np.testing.assert_allclose(value[key].numpy(), wanted_value[key].numpy())
            np.testing.assert_allclose(found[key].numpy(), wanted[key].numpy(), rtol=1e-12)


def test_it_is_linear_and_runs_the_function_once():
    calls = []
    _, derivative = bp.linearize(lambda x: (calls.append(1), bp.sin(x) * x)[1], X)
    np.testing.assert_allclose((derivative(3 * X) - derivative(X)).numpy(), derivative(2 * X).numpy(), rtol=1e-12)
    assert len(calls) == 1


def test_it_passes_through_transforms():
    tangents = bp.asarray(RNG.normal(size=(4, 3, 2)))
    _, derivative = bp.linearize(lambda x: bp.exp(x).sum(0), X)
    rows = bp.stack([derivative(t) for t in tangents])
    np.testing.assert_allclose(bp.vmap(derivative)(tangents).numpy(), rows.numpy(), rtol=1e-12)
    np.testing.assert_allclose(bp.compile(lambda x, t: bp.linearize(lambda x: bp.exp(x).sum(0), x)[1](t))(X, tangents[0]).numpy(), rows[0].numpy(), rtol=1e-12)
    gradient = bp.grad(lambda x: bp.linearize(lambda x: bp.exp(x).sum(0), x)[1](tangents[0]).sum())(X)
    np.testing.assert_allclose(gradient.numpy(), (bp.exp(X) * tangents[0]).numpy(), rtol=1e-12)


def test_complex_numbers():
    z, t = (bp.asarray(RNG.normal(size=3) + 1j * RNG.normal(size=3)) for _ in range(2))
    np.testing.assert_allclose(bp.linearize(lambda z: z * z, z)[1](t).numpy(), (2 * z * t).numpy(), rtol=1e-12)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4, 100])
def test_rows_in_chunks(chunk_size):
    whole, chunks = (bp.jacrev(_function, argnums=(0, 1), chunk_size=size)(X, Y) for size in (None, chunk_size))
    for key in whole:
        for a, b in zip(whole[key], chunks[key]):
            assert a.shape == b.shape and a.tolist() == b.tolist()


def test_no_rows_and_wrong_chunks():
    assert bp.jacrev(lambda x: x[:0], chunk_size=2)(Y).shape == (0, 2)
    for wrong in (0, -1, 2.5, "2"):
        with pytest.raises(bp.ArgumentValueError, match="chunk_size: found .*, expected a number of rows from 1 on"):
            bp.jacrev(_function, chunk_size=wrong)
