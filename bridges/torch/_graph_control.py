"""Ops of graphs that take functions or draw random numbers, as PyTorch's: what to_torch calls for them."""

from __future__ import annotations

import torch

import backplane as bp

__all__ = ["FUNCTIONS", "OPS"]


def _inlined(results, space, function, args):
    """checkpoint and custom_function: their function's own ops."""
    return function(*args)


def _cond(results, space, on_true, on_false, condition, operands):
    return torch.ops.higher_order.cond(condition, lambda *xs: tuple(on_true(*xs)), lambda *xs: tuple(on_false(*xs)), tuple(operands))


def _while_loop(results, space, condition, body, carry, constants):
    return torch.ops.higher_order.while_loop(
        lambda *xs: condition(*xs)[0], lambda *xs: tuple(_fresh(body(*xs), xs))[: len(carry)], tuple(carry), tuple(constants)
    )


def _scan(results, space, body, carry, xs, constants, length, reverse):
    if not xs:
        xs = [torch.zeros(length, dtype=torch.bool)]
        step = lambda *args: body(*args[: len(carry)], *args[len(carry) + 1 :])  # noqa: E731
    else:
        step = body
    if reverse:
        xs = [torch.flip(x, [0]) for x in xs]
    found = torch.ops.higher_order.scan(lambda *args: list(_fresh(step(*args), args)), list(carry), list(xs), tuple(constants))
    found, stacked = list(found[: len(carry)]), list(found[len(carry) :])
    return found + ([torch.flip(x, [0]) for x in stacked] if reverse else stacked)


def _fresh(found, given):
    """Results in memory of their own: PyTorch's loops refuse results that are their operands."""
    known = {id(x) for x in given}
    made = []
    for x in found:
        made.append(x.clone() if id(x) in known else x)
        known.add(id(x))
    return made


def _drawn(draw):
    """A draw of Backplane as one of PyTorch's generator. One place of a draw gives one tensor, however often it is read."""

    def call(results, space, *arguments):
        *given, generator = arguments
        key = (draw.__name__, generator, repr(results[0].dtype), repr(given))
        if key not in space["draws"]:
            space["draws"][key] = draw(results[0].dtype, *given)
        return space["draws"][key]

    return call


def _uniform(dtype, shape, low, high, *_):
    return torch.rand(shape, dtype=dtype) * (high - low) + low


def _normal(dtype, shape, mean, std, *_):
    return torch.randn(shape, dtype=dtype) * std + mean


def _randint(dtype, low, high, shape, *_):
    return torch.randint(low, high, shape, dtype=dtype)


def _bernoulli(dtype, p, shape, *_):
    return torch.rand(shape) < p


def _bits(*_):
    raise bp.MissingRuleError("to_torch: bp::random_bits: PyTorch has no operator for random bits. Fix: draw with uniform, normal, randint or bernoulli")


FUNCTIONS = {
    "checkpoint": _inlined,
    "custom_function": _inlined,
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "uniform": _drawn(_uniform),
    "normal": _drawn(_normal),
    "randint": _drawn(_randint),
    "bernoulli": _drawn(_bernoulli),
    "random_bits": _bits,
}
OPS = {f"bp::{name}" for name in FUNCTIONS}
