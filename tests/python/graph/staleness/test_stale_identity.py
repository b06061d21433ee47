"""Kinds of staleness: which object is which. Arguments that are the same object or share memory, captured tensors that are replaced or changed."""

import backplane as bp
from staleness_kinds import GUARDED, NO_LINE, X, kind


def vector():
    return bp.asarray([1.0, 2.0, 3.0])


@kind
def test_identity_of_arguments(run):
    f, a, b = run(lambda a, b: a * (2.0 if a is b else 3.0)), vector(), vector()
    for pair in ((a, b), (a, a), (b, b), (b, a)):
        yield f(*pair)


@kind
def test_identity_of_an_argument_and_a_captured_tensor(run):
    w = vector()
    f = run(lambda x: x * (2.0 if x is w else 3.0))
    for x in (X, w, X):
        yield f(x)


@kind
def test_argument_in_a_list_of_tensors(run):
    w, v = vector(), vector()
    tensors = [w]
    f = run(lambda x: x * (2.0 if any(t is x for t in tensors) else 3.0))
    for x in (v, w):
        yield f(x)
    tensors.append(v)
    yield f(v)


@kind
def test_id_of_an_argument(run):
    a, b = vector(), vector()
    names = {id(a): 2.0, id(b): 3.0}
    f = run(lambda x: x * names[id(x)])
    yield f(a), f(b)


@kind
def test_tensor_as_a_key(run):
    a, b = vector(), vector()
    state = {a: 2.0, b: 3.0}
    f = run(lambda x: x * state[x])
    yield f(a), f(b)


@kind(GUARDED)
def test_one_tensor_twice_then_two(run):
    def change(a, b):
        a += 1
        return a + b

    a, b = vector(), vector()
    f = run(change, state=lambda: (a, b))
    yield f(a, a)
    yield f(a, b)
    yield f(b, b)


@kind
def test_arguments_that_share_memory(run):
    def change(a, b):
        a += 1
        return a.sum() + b.sum()

    base = bp.arange(6.0)
    f = run(change, state=lambda: base)
    yield f(base[:3], base[3:])
    yield f(base[:4], base[2:])
    yield f(base, base[1:])


@kind
def test_identity_of_objects_in_an_argument(run):
    f, a, b = run(lambda x, pair: x * (2.0 if pair[0] is pair[1] else 3.0)), [1], [1]
    yield f(X, (a, b)), f(X, (a, a))


@kind(GUARDED)
def test_identity_of_captured_objects(run):
    a, b = [1], [1]
    f = run(lambda x: x * (2.0 if first is second else 3.0) + (first == second))
    for first, second in ((a, b), (a, a), (b, a), (None, None)):
        yield f(X)


@kind(GUARDED)
def test_captured_tensor_that_is_replaced(run):
    f = run(lambda x: x * w)
    for w in (vector(), vector() + 1, bp.ones(()), bp.ones((2, 1)), bp.ones(3, dtype=bp.int32), bp.ones(3, dtype=bp.float64)):
        yield f(X)


@kind(GUARDED)
def test_captured_tensor_in_place(run):
    w, table = vector(), {"w": vector()}
    f = run(lambda x: x * w + table["w"])
    yield f(X)
    w += 1
    yield f(X)
    table["w"][0] = 9.0
    yield f(X)
    table["w"] = vector() * 5
    yield f(X)


@kind(GUARDED)
def test_captured_tensor_whose_values_are_read(run):
    w = vector()
    f = run(lambda x: x * w.tolist()[0] + float(w.tolist()[1]) + len(w))
    yield f(X)
    w[0] = 5.0
    yield f(X)
    w = vector() * 2
    yield f(X)


@kind(GUARDED)
def test_gradients_that_are_required(run):
    w = vector()
    f = run(lambda x: x * (2.0 if w.requires_grad else 3.0))
    yield f(X)
    w.requires_grad = True
    yield f(X)


@kind(NO_LINE)
def test_gradient_of_a_captured_tensor(run):
    w = vector().requires_grad_()
    f = run(lambda x: x if w.grad is None else x * 2)
    yield f(X)
    (w * w).sum().backward()
    yield f(X)


@kind
def test_attribute_of_a_tensor(run):
    w = vector()
    f = run(lambda x: x * getattr(w, "scale", 1.0))
    yield f(X)
    try:
        w.scale = 2.0
    except AttributeError:
        pass
    yield f(X)
