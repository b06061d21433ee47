"""Wrappers that leave a function's results as they are: control flow, compile, graphs, checkpoints and rules of its own.

Each takes a function from tensors to a tuple of tensors, tensors to call it with, and its results for these. It returns a
function of the same arguments. Tensors may be arguments of the wrapped function, or captured by it.
"""

import backplane as bp

__all__ = ["BATCHING", "DERIVING", "FORWARD_ALONE", "WRAPPERS"]


def scan(f, inputs, like):
    return lambda *xs: _second(bp.scan(lambda count, x: (count + 1, f(*x)), bp.asarray(0), _twice(xs))[1])


def scan_captured(f, inputs, like):
    return lambda *xs: _second(bp.scan(lambda count, _: (count + 1, f(*xs)), bp.asarray(0), length=2)[1])


def carry(f, inputs, like):
    return lambda *xs: bp.scan(lambda found, x: (f(*x), ()), _zeros(like), _twice(xs))[0]


def map_rows(f, inputs, like):
    return lambda *xs: _second(bp.map(lambda x: f(*x), _twice(xs)))


def cond_operand(f, inputs, like):
    return lambda *xs: bp.cond(_true(xs), f, lambda *_: _zeros(like), *xs)


def cond_captured(f, inputs, like):
    return lambda *xs: bp.cond(bp.asarray(False), lambda: _zeros(like), lambda: f(*xs))


def switch(f, inputs, like):
    return lambda *xs: bp.switch(bp.asarray(1), [lambda *_: _zeros(like), f, lambda *_: _zeros(like)], *xs)


def fori_loop(f, inputs, like):
    return lambda *xs: bp.fori_loop(0, 2, lambda i, found: f(*xs), _zeros(like))


def while_loop(f, inputs, like):
    return lambda *xs: bp.while_loop(lambda state: state[0] < 2, lambda state: (state[0] + 1, f(*xs)), (bp.asarray(0), _zeros(like)))[1]


def compiled(f, inputs, like):
    return bp.compile(lambda *xs: f(*xs))


def compiled_captured(f, inputs, like):
    return lambda *xs: bp.compile(lambda first, *_: f(first, *xs[1:]))(*xs)


def graph(f, inputs, like):
    return bp.make_graph(lambda *xs: f(*xs))(*inputs)


def checkpoint(f, inputs, like):
    return bp.checkpoint(f)


def checkpoint_captured(f, inputs, like):
    return lambda *xs: bp.checkpoint(lambda first: f(first, *xs[1:]))(xs[0])


def rules(f, inputs, like):
    made = bp.custom_function(lambda *xs: f(*xs))
    made.defvjp(lambda *xs: (made(*xs), xs), lambda xs, cotangent: bp.vjp(f, *xs)[1](cotangent))
    made.defjvp(lambda primals, tangents: bp.jvp(f, primals, tangents))
    return made


def forward_rule(f, inputs, like):
    made = bp.custom_function(lambda *xs: f(*xs))
    made.defjvp(lambda primals, tangents: bp.jvp(f, primals, tangents))
    return made


def one_row(f, inputs, like):
    return lambda *xs: tuple(found[0] for found in bp.vmap(lambda *x: f(*x), randomness="same")(*(x[None] for x in xs)))


def chosen_row(f, inputs, like):
    """A batch of two rows. The second row does not choose f, and its values are NaN."""

    def call(*xs):
        first = xs[0]
        other = bp.full(first.shape, float("nan"), dtype=first.dtype) if first.dtype.kind.endswith("floating") else bp.zeros_like(first)
        rows = bp.vmap(lambda holds, x: bp.cond(holds, lambda x: f(x, *xs[1:]), lambda _: _zeros(like), x))
        return tuple(found[0] for found in rows(bp.asarray([True, False]), bp.stack([first, other])))

    return call


def _zeros(like):
    return tuple(bp.zeros(x.shape, dtype=x.dtype) for x in like)


def _twice(xs):
    return tuple(bp.stack([x, x]) for x in xs)


def _second(rows):
    return tuple(row[1] for row in rows)


def _true(xs):
    """True, computed from the operands: under vmap each row has its own condition."""
    return bp.sum(xs[0] != xs[0]) >= 0


WRAPPERS = {
    made.__name__: made
    for made in (
        scan, scan_captured, carry, map_rows, cond_operand, cond_captured, switch, fori_loop, while_loop, compiled, compiled_captured, graph,
        checkpoint, checkpoint_captured, rules, forward_rule, one_row, chosen_row,
    )
}  # fmt: skip
# Wrappers that batch the function or take derivatives of it by themselves, and those without a reverse mode.
BATCHING = {"one_row", "chosen_row"}
DERIVING = {"rules", "forward_rule"}
FORWARD_ALONE = {"while_loop"}
