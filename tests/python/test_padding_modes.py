"""Every mode of pad is NumPy's, in integers too, and is differentiated, batched and compiled."""

import backplane as bp
import numpy as np
import pytest

CASES = [
    *[(mode, {}) for mode in ("constant", "edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean", "median", "linear_ramp")],
    *[(mode, {"stat_length": length}) for mode in ("maximum", "minimum", "mean", "median") for length in (1, (2, 1))],
    ("linear_ramp", {"end_values": (3, -4)}), ("reflect", {"reflect_type": "odd"}), ("symmetric", {"reflect_type": "odd"}),
]  # fmt: skip
WIDTHS = [1, (2, 7), (0, 3)]
case = pytest.mark.parametrize("mode, options", CASES, ids=lambda p: p if isinstance(p, str) else "-".join(map(str, p.values())))


def array(shape, dtype=np.float64):
    return (np.random.default_rng(7).standard_normal(shape) * 5).astype(dtype)


@case
@pytest.mark.parametrize("shape", [(4,), (1,), (2, 3)])
def test_modes_are_numpys(shape, mode, options):
    for dtype in (np.float64, np.int64):
        for width in WIDTHS:
            a = array(shape, dtype)
            found, expected = bp.pad(bp.asarray(a), width, mode=mode, **options).numpy(), np.pad(a, width, mode=mode, **options)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@case
def test_modes_are_differentiated_batched_and_compiled(mode, options):
    x = bp.asarray(array((2, 4)))
    weight = bp.arange(1.0, 9.0, dtype=bp.float64)

    def f(row):
        return (bp.pad(row, (3, 1), mode=mode, **options) * weight).sum()

    step = 1e-6
    expected = [[(float(f(row + step * e)) - float(f(row - step * e))) / (2 * step) for e in bp.eye(4, dtype=bp.float64)] for row in x]
    for derived in (bp.vmap(bp.grad(f)), bp.compile(bp.vmap(bp.grad(f)))):
        np.testing.assert_allclose(derived(x).numpy(), expected, atol=1e-6)


def test_a_function_writes_into_each_vector():
    def fill(vector, width, axis, options):
        vector[: width[0]] = options["value"]
        vector[vector.shape[0] - width[1] :] = vector[width[0]] * axis

    a = array((2, 3))
    np.testing.assert_array_equal(bp.pad(bp.asarray(a), (1, 2), fill, value=7.0).numpy(), np.pad(a, (1, 2), fill, value=7.0))
    x = bp.asarray(a[0]).requires_grad_()
    bp.pad(x, 1, lambda v, width, axis, options: v[:1].copy_(v[1:2] * 10)).sum().backward()
    assert x.grad.tolist() == [11, 1, 1]


def test_empty_keeps_the_middle():
    x = bp.arange(3.0)
    assert bp.pad(x, 2, mode="empty")[2:5].tolist() == x.tolist()
    with pytest.raises(ValueError, match="no elements along axis 0"):
        bp.pad(bp.zeros((0, 2)), 1, mode="mean")
