"""Gradients of tensors that are cut into slices: compiled, the slices' gradients are joined, with the bits of their sum (of zeros not the sign)."""

import backplane as bp
import numpy as np
import pytest


def values(*shape, dtype="float32", seed=0):
    found = np.random.default_rng(seed).standard_normal(shape)
    found[np.abs(found) < 0.3] = -0.0
    return bp.asarray(found, dtype=dtype)


def by_slices(x):
    return bp.sin(x[:, :2]) * x[:, 2:4] + bp.maximum(x[:, 4:], 0.0)


def by_chunks(x):
    a, b, c = bp.split(x, 3, axis=1)
    return a * b - c


def from_the_end(x):
    return x[:, -2:] * x[:, :-4] + x[:, -4:-2]


def with_more_readers(x):
    return x[:, :2] * x[:, 2:4] * x[:, 4:] + x.sum()


def overlapping(x):
    return x[:, 1:] - x[:, :-1]


def in_part(x):
    return x[:, :2] * x[:, 4:]


def of_rows(x):
    return x[0] * x[1:3].sum() + x[3:].sum()


CUTS = [by_slices, by_chunks, from_the_end, with_more_readers, overlapping, in_part, of_rows]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("cut", CUTS, ids=lambda f: f.__name__)
def test_gradients_have_the_bits_of_the_sum(cut, dtype):
    x = values(4, 6, dtype=dtype)
    weights = values(*cut(x).shape, dtype=dtype, seed=1)
    gradient = bp.grad(lambda x: bp.sum(cut(x) * weights))
    found, expected = np.asarray(bp.compile(gradient)(x)), np.asarray(gradient(x))
    np.testing.assert_allclose(found, expected, rtol=2e-2 if dtype == "float16" else 1e-5, atol=1e-2 if dtype == "float16" else 1e-6)
    if dtype == "float64" and cut in (by_chunks, in_part):
        assert (found + 0.0).tobytes() == (expected + 0.0).tobytes()


@pytest.mark.parametrize("cut", [by_slices, by_chunks, from_the_end], ids=lambda f: f.__name__)
def test_no_sum_of_zeros_is_left(cut):
    plan = str(bp.explain_plan(bp.grad(lambda x: bp.sum(cut(x))))(values(4, 6)))
    assert "bp::concat" in plan and "slice_put" not in plan and "bp::full([4, 6]" not in plan, plan
