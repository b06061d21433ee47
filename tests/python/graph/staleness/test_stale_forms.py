"""The main kinds of staleness under every transform, and in every form of function, inside of compile."""

import backplane as bp
from staleness_bodies import BODIES, READS, SOURCES, World, state_of
from staleness_kinds import GUARDED, X, kind


def carried(body):
    return lambda x: bp.scan(lambda c, _: (body(c), c), x, bp.ones(2))[0]


# body -> function of a tensor that calls it inside of a transform.
TRANSFORMS = {
    "plain": lambda body: body,
    "grad": lambda body: bp.grad(lambda x: body(x * x).sum()),
    "value_and_grad": lambda body: lambda x: bp.value_and_grad(lambda x: body(x * x).sum())(x),
    "grad of grad": lambda body: bp.grad(lambda x: bp.grad(lambda x: body(x * x * x).sum())(x).sum()),
    "jvp": lambda body: lambda x: bp.jvp(body, (x,), (x,)),
    "vmap": lambda body: bp.vmap(body),
    "vmap of grad": lambda body: bp.vmap(bp.grad(lambda x: body(x * x).sum())),
    "checkpoint": lambda body: lambda x: bp.grad(lambda x: bp.checkpoint(body)(bp.tanh(x)).sum())(x),
    "cond": lambda body: lambda x: bp.cond(x.sum() > 1, body, lambda x: x * 9, x),
    "scan": carried,
    "map": lambda body: lambda x: bp.map(body, x),
    "while_loop": lambda body: lambda x: bp.while_loop(lambda v: v.sum() < 50, lambda v: bp.maximum(body(v), v) + 4, x),
    "compile": lambda body: bp.compile(body),
    "make_graph": lambda body: lambda x: bp.make_graph(body)(x)(x),
    "comprehension": lambda body: lambda x: bp.stack([body(row) for row in [x, x + 1]]),
    "generator": lambda body: lambda x: sum(body(x + i) for i in range(2)),
    "coroutine": lambda body: lambda x: awaited(body, x),
    "method": lambda body: type("Model", (), {"__call__": lambda self, x: body(x)})(),
}


def awaited(body, x):
    async def inner():
        return body(x)

    async def outer():
        return await inner()

    try:
        outer().send(None)
    except StopIteration as stop:
        return stop.value


def pytest_generate_tests(metafunc):
    for name, table in (("body", READS), ("source", SOURCES), ("transform", TRANSFORMS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind(GUARDED)
def test_read_under_a_transform(run, body, transform):
    yield from transformed(run, body, transform)


@kind
def test_source_under_a_transform(run, source, transform):
    yield from transformed(run, source, transform)


def transformed(run, body, transform):
    w = World()
    read, change = BODIES[body]
    inside = TRANSFORMS["plain" if transform in ("compile", "make_graph") and not run.compiled else transform]
    f = run(inside(lambda x: read(w, x)), state=state_of(w))
    yield f(X)
    yield f(X)
    change(w)
    yield f(X)
    yield f(X)
