"""Random numbers, from Backplane's default generator or from the node's seed. Other libraries draw other numbers from the same seed."""

import struct

import backplane as bp

from ._table import op
from ._types import dtype_of


def _generator(seed):
    """A float attribute as a seed: equal numbers give equal draws."""
    return None if seed is None else bp.Generator(struct.unpack("<I", struct.pack("<f", seed))[0])


def _normal(shape, dtype, device, mean, scale, seed):
    return bp.cast(bp.normal(tuple(shape), mean=mean, std=scale, device=device, generator=_generator(seed)), dtype)


def _uniform(shape, dtype, device, low, high, seed):
    return bp.cast(bp.uniform(tuple(shape), low=low, high=high, device=device, generator=_generator(seed)), dtype)


@op("RandomNormal", 1)
def random_normal(node, *, dtype=1, mean=0.0, scale=1.0, seed=None, shape):
    return _normal(shape, dtype_of(dtype), node.device, mean, scale, seed)


@op("RandomUniform", 1)
def random_uniform(node, *, dtype=1, high=1.0, low=0.0, seed=None, shape):
    return _uniform(shape, dtype_of(dtype), node.device, low, high, seed)


@op("RandomNormalLike", 1)
def random_normal_like(x, *, dtype=None, mean=0.0, scale=1.0, seed=None):
    return _normal(x.shape, x.dtype if dtype is None else dtype_of(dtype), x.device, mean, scale, seed)


@op("RandomUniformLike", 1)
def random_uniform_like(x, *, dtype=None, high=1.0, low=0.0, seed=None):
    return _uniform(x.shape, x.dtype if dtype is None else dtype_of(dtype), x.device, low, high, seed)


@op("Bernoulli", 15)
def bernoulli(x, *, dtype=None, seed=None):
    draws = bp.uniform(tuple(x.shape), device=x.device, generator=_generator(seed))
    return bp.cast(bp.cast(draws, x.dtype) < x, x.dtype if dtype is None else dtype_of(dtype))


@op("Multinomial", 7)
def multinomial(x, *, dtype=6, sample_size=1, seed=None):
    """Indices of classes, by the largest of logits plus Gumbel noise."""
    shape = (x.shape[0], sample_size, x.shape[1])
    draws = bp.uniform(shape, low=1e-30, device=x.device, generator=_generator(seed))
    noise = -bp.log(-bp.log(draws))
    return bp.cast(bp.argmax(bp.expand_dims(x, axis=1) + bp.cast(noise, x.dtype), axis=-1), dtype_of(dtype))
