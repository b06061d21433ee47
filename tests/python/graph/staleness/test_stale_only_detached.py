"""A tensor that a function only detaches, or returns as it is, is guarded like one that it computes with."""

import types

import pytest

import backplane as bp

USES = {
    "detach": lambda t, x: t.detach() + x,
    "data": lambda t, x: t.data * 2 + x,
    "stop_gradient": lambda t, x: bp.stop_gradient(t) + x,
    "view of detach": lambda t, x: t.detach()[:1] + x,
    "as it is": lambda t, x: (t, x + 1)[0],
    "as it is beside": lambda t, x: (t, x + 1),
}
HOLDERS = {
    "attribute": (lambda: types.SimpleNamespace(e=None), lambda h, t: setattr(h, "e", t), lambda h: h.e),
    "entry": (dict, lambda h, t: h.__setitem__("e", t), lambda h: h["e"]),
    "element": (lambda: [None], lambda h, t: h.__setitem__(0, t), lambda h: h[0]),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(("make", "put", "get"), HOLDERS.values(), ids=HOLDERS)
def test_another_tensor_in_the_place_is_seen(use, make, put, get):
    holder = make()
    compiled = bp.compile(lambda x: use(get(holder), x))
    for i in range(4):
        put(holder, bp.full((2,), float(i)))
        found, expected = compiled(bp.ones((2,))), use(get(holder), bp.ones((2,)))
        assert [t.tolist() for t in bp.tree.leaves(found)] == [t.tolist() for t in bp.tree.leaves(expected)]


def test_a_write_through_detach_reaches_the_tensor_that_is_there():
    holder = types.SimpleNamespace()

    def write(x):
        holder.e.detach()[...] = x * 5

    compiled = bp.compile(write)
    for i in range(3):
        holder.e = bp.zeros((2,))
        compiled(bp.full((2,), float(i)))
        assert holder.e.tolist() == [5.0 * i] * 2
