"""Kinds of staleness: memory of tensors that something else shows. Results of detach, arrays of NumPy over tensors, tensors over arrays."""

import backplane as bp
import numpy as np
from staleness_kinds import X, kind

# How values of a tensor of shape (2, 3) are read through another object.
READS = {
    "detach": lambda t: t.detach().tolist()[1][0],
    "item": lambda t: t.detach().numpy()[1, 0],
    "max": lambda t: t.detach().numpy()[1].max(),
    "data": lambda t: t.data.numpy().max(),
    "stop_gradient": lambda t: bp.stop_gradient(t).numpy().max(),
    "asarray": lambda t: np.asarray(t.detach()).max(),
    "array": lambda t: np.array(t.detach())[1, 0],
    "memoryview": lambda t: memoryview(t.detach())[1, 0],
    "numpy": lambda t: t.numpy()[1].max(),
    "detached twice": lambda t: t.detach().detach().numpy().max(),
    "cpu": lambda t: t.detach().cpu().numpy().max(),
}
def through_numpy(t):
    t.numpy()[0] += 1


def through_asarray(t):
    np.asarray(t)[0] += 1


def through_detach(t):
    t.detach().numpy()[0] = 5


def through_a_variable(t):
    v = t.numpy()
    v[0] += 1


def all_elements(t):
    t.numpy()[:] = t.numpy() + 1


# What the function does to the memory of a tensor, behind the tensor's back.
WRITES = {
    "numpy": through_numpy,
    "asarray": through_asarray,
    "detach": through_detach,
    "variable": through_a_variable,
    "all elements": all_elements,
    "fill": lambda t: t.numpy().fill(2.0),
    "ufunc": lambda t: np.add(t.numpy(), 1, out=t.numpy()),
}
CHANGES = {
    "in place": lambda t, x: t.__iadd__(x),
    "element": lambda t, x: t.__setitem__(0, t[0] + 1),
    "view": lambda t, x: t[:].__iadd__(1),
}


def pytest_generate_tests(metafunc):
    for name, table in (("read", READS), ("write", WRITES), ("change", CHANGES)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind
def test_values_through_another_tensor(run, read):
    t = bp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    f = run(lambda x: x * float(READS[read](t)))
    yield f(X)
    t[1] = 50.0
    yield f(X)
    t *= 2
    yield f(X)


@kind
def test_number_of_a_detached_scalar(run):
    s = bp.asarray(2.0)
    f, g = run(lambda x: x * float(s.detach())), run(lambda x: x * s.detach().item())
    yield f(X), g(X)
    s += 7
    yield f(X), g(X)
    s = bp.asarray(3.0)
    yield f(X), g(X)


@kind
def test_write_into_the_memory_of_a_tensor(run, write):
    t = bp.zeros((3,))
    f = run(lambda x: (WRITES[write](t), x * t)[1], state=lambda: t)
    for _ in range(3):
        yield f(X)


@kind
def test_write_into_an_array_that_a_tensor_shows(run):
    n = np.zeros(3, np.float32)
    t = bp.from_numpy(n)

    def f(x):
        y = x * t
        n[0] += 1
        return y + t

    f = run(f, state=lambda: n)
    for _ in range(3):
        yield f(X)


@kind
def test_read_behind_a_change_of_the_tensor(run, change):
    n = np.zeros(3, np.float32)
    t = bp.from_numpy(n)
    f = run(lambda x: (CHANGES[change](t, x), x * float(n[0]))[1], state=lambda: n)
    g = run(lambda x: (CHANGES[change](t, x), x * float(n.sum()))[1], state=lambda: n)
    for _ in range(2):
        yield f(X), g(X)


@kind
def test_values_behind_a_change_of_what_shows_them(run):
    t = bp.zeros((3,))
    v = t[1:]
    f = run(lambda x: (t.__iadd__(x), x * v.tolist()[0])[1], state=lambda: t)
    for _ in range(2):
        yield f(X)
