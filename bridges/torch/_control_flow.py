"""PyTorch's operators that take functions (cond, while_loop, scan, map and those that only wrap a function) as Backplane's."""

from __future__ import annotations

import backplane as bp

__all__ = ["FUNCTIONS"]


def _cond(pred, true_fun, false_fun, operands):
    if isinstance(pred, bool):
        return list((true_fun if pred else false_fun)(*operands))
    return list(bp.cond(pred, lambda *xs: list(true_fun(*xs)), lambda *xs: list(false_fun(*xs)), *operands))


def _while_loop(cond_fun, body_fun, carried, additional):
    found = bp.while_loop(lambda xs: cond_fun(*xs, *additional)[0] if isinstance(cond_fun(*xs, *additional), (list, tuple)) else cond_fun(*xs, *additional),
                          lambda xs: list(body_fun(*xs, *additional)), list(carried))
    return list(found)


def _scan(combine, init, xs, additional):
    count = len(init)

    def step(carry, x):
        found = list(combine(*carry, *x, *additional))
        return found[:count], found[count:]

    carry, stacked = bp.scan(step, list(init), list(xs))
    return [*carry, *stacked]


def _map(function, xs, additional):
    return list(bp.map(lambda x: list(function(*x, *additional)), list(xs)))


def _associative_scan(combine, xs, additional):
    count = len(xs)
    over = bp.vmap(lambda a, b: list(combine(*a, *b, *additional)))
    return list(bp.associative_scan(lambda a, b: over(a, b), list(xs))) if count else []


def _call(function, *args):
    return function(*args)


FUNCTIONS = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "map_impl": _map,
    "associative_scan": _associative_scan,
    "wrap_with_set_grad_enabled": lambda enabled, function, *args: function(*args),
    "wrap_with_autocast": lambda device, dtype, enabled, cache, function, *args: function(*args),
    "invoke_subgraph": lambda function, identifier, *args: function(*args),
    "wrap": _call,
    "strict_mode": lambda function, args: function(*args),
    "tag_activation_checkpoint": lambda function, *args, **kwargs: function(*args),
    "wrap_activation_checkpoint": lambda function, *args, **kwargs: function(*args),
}
