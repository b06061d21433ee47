"""Laws of what the bodies of control flow take from around them: views of it, writes into it, and no_grad."""

import backplane as bp
import pytest
from test_control import MODES, RUN
from test_make_graph import same, tensor

# Ops that give a view or a copy. Their tensor comes from outside of the body, so the body knows its strides from the tensor alone.
MAYBE_VIEWS = {
    "reshape": lambda y: bp.reshape(y, [3, 2]),
    "reshape of transposed": lambda y: bp.reshape(y.mT, [-1]),
    "ravel": bp.ravel,
    "unfold and reshape": lambda y: bp.reshape(bp.unfold(y, 1, 2), [-1]),
    "contiguous": lambda y: y.mT.contiguous(),
    "astype": lambda y: y.astype(y.dtype, copy=False),
}
BODIES = {
    "cond": lambda of, x: bp.cond(x.sum() > 0, lambda z: z.sum() + of(x * 2).sum(), lambda z: z.sum(), x),
    "captured by cond": lambda of, x: (lambda y: bp.cond(x.sum() > 0, lambda z: z.sum() + of(y).sum(), lambda z: z.sum(), x))(x * 2),
    "scan": lambda of, x: (lambda y: bp.scan(lambda c, r: (c + of(y).sum() + r, c), bp.zeros((), dtype=x.dtype), bp.ones(4, dtype=x.dtype))[0])(x * 2),
    "while_loop": lambda of, x: (lambda y: bp.while_loop(lambda c: c < 9, lambda c: c + of(y).max() + 1, x.sum()))(x * 2),
    "map": lambda of, x: (lambda y: bp.map(lambda r: of(y).sum() + r.sum(), x))(x * 2),
    "an argument": lambda of, x: bp.map(lambda r: of(x).sum() + r.sum(), x),
}


@MODES
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("of", MAYBE_VIEWS.values(), ids=MAYBE_VIEWS)
def test_views_of_what_a_body_captures(run, of, body):
    x = bp.abs(tensor(2, 3))
    same(run(lambda x: body(of, x), x), body(of, x))
    if body is not BODIES["while_loop"]:
        same(run(bp.grad(lambda x: body(of, x).sum()), x), bp.grad(lambda x: body(of, x).sum())(x))
    same(run(bp.vmap(lambda x: body(of, x)), bp.stack([x, x + 1])), bp.stack([body(of, x), body(of, x + 1)]))


def half_recorded(x, c):
    with bp.no_grad():
        y = bp.sin(x * c)
        z = y[..., None] * 2  # a view, and what is computed of it
    return y * c + x + z[..., 0]


UNRECORDED = {
    "scan": lambda c, x: bp.scan(lambda k, r: (k + half_recorded(r, c), r), bp.zeros((), dtype=x.dtype), x)[0],
    "map": lambda c, x: bp.map(lambda r: half_recorded(r, c), x).sum(),
    "cond": lambda c, x: bp.cond(c > 0, lambda: half_recorded(x, c), lambda: x).sum(),
    "fori_loop": lambda c, x: bp.fori_loop(0, 3, lambda i, s: s + half_recorded(x[i], c), bp.zeros((), dtype=x.dtype)),
    "no loop": lambda c, x: half_recorded(x, c).sum(),
    "a loop under no_grad": lambda c, x: bp.no_grad(lambda: bp.map(lambda r: bp.sin(r * c), x))().sum() * c,
}


@MODES
@pytest.mark.parametrize("function", UNRECORDED.values(), ids=UNRECORDED)
def test_what_is_computed_under_no_grad_is_a_constant_of_a_body(run, function):
    x = tensor(3)
    c = bp.asarray(0.7, dtype=x.dtype)
    expected = bp.no_grad(lambda: bp.sin(x * c).sum())()
    found = run(bp.grad(lambda c: function(c, x)), c)
    same(found, expected)
    traced = bp.make_graph(lambda c: function(c, x))(c)
    same(bp.grad(lambda c: traced(c))(c), expected)
    if function is not UNRECORDED["a loop under no_grad"]:  # forward mode does not mind no_grad
        slope = bp.jvp(lambda c: half_recorded(x, c).sum(), (c,), (bp.ones_like(c),))[1]
        same(run(lambda c: bp.jvp(lambda c: function(c, x), (c,), (bp.ones_like(c),))[1], c), slope)


def test_a_change_under_no_grad_is_not_differentiated_in_a_body():
    def body(carry, row):
        y = carry * row
        with bp.no_grad():
            y += 1
        return y, y

    def last(c):
        return bp.scan(body, c, bp.ones(3))[0]

    assert last(bp.asarray(2.0)).item() == 5
    with pytest.raises(NotImplementedError, match="changes a tensor under no_grad"):
        bp.grad(last)(bp.asarray(2.0))


WRITES = {
    "an index": lambda y, v: y.__setitem__(0, v),
    "a number": lambda y, v: y.__setitem__(0, 5.0),
    "a transpose": lambda y, v: y.T.__setitem__((slice(None), 0), v),
    "an update of a view": lambda y, v: y[0].add_(v),
    "a view of a view": lambda y, v: y[0:2][0].mul_(v),
}


@pytest.mark.parametrize("transform", ["eager", "graph", "compiled", "grad", "vmap"])
@pytest.mark.parametrize("of", [lambda x: x, lambda x: x * 2, lambda x: (x * 2)[0:2]], ids=["argument", "computed", "view"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_view_of_what_a_body_captures_is_not_written_through(write, of, transform):
    v = tensor(3)

    def f(x):
        y = of(x)

        def body(r):
            write(y, r)
            return y.sum() * r

        return bp.map(body, bp.stack([v, v])).sum()

    run = {**RUN, "grad": lambda f, x: bp.grad(f)(x), "vmap": lambda f, x: bp.vmap(f)(bp.stack([x, x]))}[transform]
    with pytest.raises(ValueError, match="refused"):
        run(f, tensor(2, 3))


FILLS = {
    "a mask": lambda v, mask: v.__setitem__(mask, 0.5),
    "a computed mask": lambda v, mask: v.__setitem__(v > 1, 0.5),
    "masked_fill_": lambda v, mask: v.masked_fill_(mask, 0.5),
    "a mask of a view": lambda v, mask: v[1:].__setitem__(mask[1:], 0.5),
    "clamp_": lambda v, mask: v.clamp_(0.5, 1),
}
OUTER = {**RUN, "vmap": lambda f, x: bp.vmap(f)(bp.stack([x, x * 2])), "map": lambda f, x: bp.map(f, bp.stack([x, x * 2]))}
INNER = {
    "grad": lambda g, k: bp.grad(lambda a: g(a).sum())(k),
    "vmap": lambda g, k: bp.vmap(g)(bp.stack([k, k + 1])),
    "jvp": lambda g, k: bp.jvp(g, (k,), (bp.ones_like(k),))[1],
}


@pytest.mark.parametrize("outer", OUTER.values(), ids=OUTER)
@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
def test_a_number_is_written_into_what_belongs_to_an_outer_transform(fill, inner, outer):
    mask = bp.asarray([True, False, True])
    x = bp.abs(tensor(3)) + 0.1

    def f(k):
        def g(a):
            v = k * 1.5
            fill(v, mask)
            return v * a * a

        return inner(g, k)

    rows = [x] if outer in RUN.values() else [x, x * 2]
    expected = [f(row) for row in rows]
    same(outer(f, x), expected[0] if len(rows) == 1 else bp.stack(expected))
