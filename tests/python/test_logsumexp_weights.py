"""logsumexp's b= and return_sign= are SciPy's: factors of the exponentials, without overflow, and differentiated in both."""

import backplane as bp
import numpy as np
import pytest

X = np.array([[0.5, -1.0, 2.0], [3.0, 1.0, -2.0]])
B = np.array([[0.5, 2.0, 0.0], [1.0, 0.25, 3.0]])


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_values(axis, keepdims):
    found = bp.logsumexp(bp.asarray(X), axis, b=bp.asarray(B), keepdims=keepdims)
    np.testing.assert_allclose(found.numpy(), np.log(np.sum(B * np.exp(X), axis=axis, keepdims=keepdims)), rtol=1e-12)


def test_large_numbers_zeros_and_signs():
    assert bp.logsumexp(bp.asarray([1000.0, 2000.0, 5000.0]), b=bp.asarray([1.0, 2.0, 0.0])).item() == pytest.approx(2000 + np.log(2))
    assert bp.logsumexp(bp.asarray([1.0, 2.0]), b=0.0).item() == -np.inf
    assert np.isnan(bp.logsumexp(bp.asarray([1.0, 2.0]), b=bp.asarray([1.0, -1.0])).item())
    log, sign = bp.logsumexp(bp.asarray([1.0, 2.0]), b=bp.asarray([1.0, -1.0]), return_sign=True)
    assert sign.item() == -1 and log.item() == pytest.approx(np.log(np.e**2 - np.e))
    log, sign = bp.logsumexp(bp.asarray(X), 1, b=bp.asarray(-B), keepdims=True, return_sign=True)
    assert sign.tolist() == [[-1], [-1]] and log.shape == (2, 1)


def test_derivatives_exist_where_a_factor_is_zero():
    def f(x, b):
        return bp.logsumexp(x, 1, b=b).sum()

    total = np.sum(B * np.exp(X), axis=1, keepdims=True)
    for derive in (lambda f: f, bp.compile):
        of_x, of_b = derive(bp.grad(f, argnums=(0, 1)))(bp.asarray(X), bp.asarray(B))
        np.testing.assert_allclose(of_x.numpy(), B * np.exp(X) / total, rtol=1e-12)
        np.testing.assert_allclose(of_b.numpy(), np.exp(X) / total, rtol=1e-12)
    signed = bp.grad(lambda b: bp.logsumexp(bp.asarray(X), 1, b=-b, return_sign=True)[0].sum())(bp.asarray(B))
    np.testing.assert_allclose(signed.numpy(), np.exp(X) / total, rtol=1e-12)


def test_complex_numbers():
    z = X + 1j * B
    np.testing.assert_allclose(bp.logsumexp(bp.asarray(z), 1, b=bp.asarray(B)).numpy(), np.log(np.sum(B * np.exp(z), axis=1)), rtol=1e-12)
    with pytest.raises(bp.DtypeError, match="return_sign"):
        bp.logsumexp(bp.asarray(z), return_sign=True)
