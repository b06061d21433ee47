"""Ops that the tests of custom ops define, and names for them."""

import itertools

import backplane as bp
import numpy as np
import pytest

_numbers = itertools.count()


@pytest.fixture
def name():
    """A full name that no test has used."""
    return f"custom::op{next(_numbers)}"


def values(tensor):
    return np.asarray(bp.to_numpy(tensor.detach()))


def scaled(name, **options):
    """x times a number, with all rules."""

    @bp.custom_op(name, **options)
    def scale(x: bp.Tensor, factor: bp.types.Scalar = 2) -> bp.Tensor:
        """Scales a tensor."""
        return bp.asarray(x.numpy() * np.asarray(factor, dtype=x.numpy().dtype))

    @scale.register_shape
    def scale_shape(x):
        return x

    @scale.register_vjp
    def scale_vjp(g, factor):
        return bp.multiply(g, factor)

    @scale.register_jvp
    def scale_jvp(t_x, factor):
        return bp.multiply(t_x, factor)

    return scale


def bare(name):
    @bp.custom_op(name)
    def bare_op(x: bp.Tensor) -> bp.Tensor:
        return bp.add(x, 1)

    return bare_op
