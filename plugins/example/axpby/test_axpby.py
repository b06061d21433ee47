"""axpby against NumPy, and its gradient, which stands in ops.yaml alone, against finite differences."""

import numpy as np
import pytest

import backplane as bp

SHAPES = [((3, 1), (4,)), ((2, 3), (2, 3)), ((0,), (0,)), ((), (5,))]


@pytest.mark.parametrize("device", ["cpu", "sim", "sim:1", "simh"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_value_and_gradient(device, shapes, axpby):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape) for shape in shapes)
    alpha, beta, step = -2.0, 0.5, 1e-6
    tx, ty = (bp.asarray(value, device=device).requires_grad_() for value in (x, y))
    out = axpby(tx, ty, alpha=alpha, beta=beta)
    np.testing.assert_allclose(bp.to_numpy(out.detach()), alpha * x + beta * y, rtol=1e-12)

    cotangent = rng.standard_normal(out.shape)
    (out * bp.asarray(cotangent, device=device)).sum().backward()
    for value, grad, f in ((x, tx.grad, lambda v: alpha * v + beta * y), (y, ty.grad, lambda v: alpha * x + beta * v)):
        for at in np.ndindex(value.shape):
            delta = np.zeros_like(value)
            delta[at] = step
            slope = ((f(value + delta) - f(value - delta)) * cotangent).sum() / (2 * step)
            np.testing.assert_allclose(bp.to_numpy(grad)[at], slope, rtol=1e-6, atol=1e-8)
