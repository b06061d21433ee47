"""Kinds of staleness: memory that more than one object shows. Views of arrays, of array.array, of memoryviews; stores through them."""

import array
import types

import backplane as bp
import numpy as np
from staleness_kinds import X, kind


def matrix():
    return np.arange(6.0).reshape(2, 3)  # a view itself


def of_records():
    return np.array([(1.0, 2), (3.0, 4)], dtype=[("p", float), ("q", int)])


# How elements of a matrix are read through a view, or as a copy of a part.
READS = {
    "row": lambda a: a[1].max(),
    "element of a row": lambda a: float(a[1][0]),
    "slice": lambda a: a[1:].sum(),
    "negative row": lambda a: a[-1].sum(),
    "column": lambda a: a[:, 0].sum(),
    "ellipsis": lambda a: a[..., 0].max(),
    "new axis": lambda a: a[None].ravel()[3],
    "reversed": lambda a: a[::-1].ravel()[0],
    "strided": lambda a: a[:, ::2].ravel()[2],
    "transposed": lambda a: a.T.ravel()[1],
    "transposed twice": lambda a: a.T.T.ravel()[3],
    "element of the transposed": lambda a: a.T[0][1],
    "swapped axes": lambda a: a.swapaxes(0, 1).copy()[0, 1],
    "real part": lambda a: a.real[1].max(),
    "diagonal": lambda a: a.diagonal(-1).copy()[0],
    "flat": lambda a: a.flat[4:].max(),
    "flat element": lambda a: a.flat[3],
    "index list": lambda a: a[[1]].max(),
    "index array": lambda a: a[np.array([1])].ravel()[0],
    "mask": lambda a: len(a[a[:, 0] > 10]) + 1.0,
    "sliding windows": lambda a: float(np.lib.stride_tricks.sliding_window_view(a[1], 2)[0].sum()),
    "broadcast": lambda a: np.broadcast_to(a[1], (2, 3))[0].max(),
    "other dtype": lambda a: a[1].view(np.int64)[0] % 1000,
    "comparison": lambda a: 2.0 if (a[1] > 10).all() else 3.0,
    "loop": lambda a: sum(q for q in a[1]),
    "sum of Python": lambda a: sum(a[1]),
    "list": lambda a: a[1].tolist()[0],
    "product": lambda a: a[1] @ a[1],
    "function": lambda a: np.linalg.norm(a[1]),
    "interface": lambda a: a[1].__array_interface__["data"][0] * 0 + a[1][0],
    "iterator": lambda a: [float(q) for q in np.nditer(a[1])][0],
    "memoryview": lambda a: memoryview(a)[1, 0],
    "tensor of a row": lambda a: bp.asarray(a[1].copy()).sum(),
    "tensor over a row": lambda a: bp.from_numpy(a[1]).sum(),
}
MATRICES = {
    "reshaped": matrix,
    "slice": lambda: np.zeros((4, 3))[1:3],
    "columns": lambda: np.zeros((2, 6))[:, :3],
    "transposed": lambda: np.zeros((3, 2)).T,
    "of a bytearray": lambda: np.frombuffer(bytearray(48)).reshape(2, 3),
    "of a memoryview": lambda: np.asarray(memoryview(array.array("d", [0.0] * 6))).reshape(2, 3),
    "field": lambda: np.zeros(2, dtype=[("v", float, 3)])["v"],
    "subclass": lambda: np.zeros((2, 3)).view(type("Sub", (np.ndarray,), {})),
}
# Parts of buffers that are not NumPy arrays.
BUFFERS = {
    "slice of an array": (lambda: array.array("d", [1, 2, 3]), lambda b: b[1:][0]),
    "slice of a bytearray": (lambda: bytearray(b"abc"), lambda b: b[1:][0]),
    "number of a bytearray": (lambda: bytearray(b"abc"), lambda b: int.from_bytes(b[1:2], "big")),
    "slice of a memoryview": (lambda: memoryview(array.array("d", [1, 2, 3])), lambda b: b[1:][0]),
    "list of a memoryview": (lambda: memoryview(bytearray(b"abc")), lambda b: b[1:].tolist()[0]),
    "memoryview of an array": (lambda: array.array("d", [1, 2, 3]), lambda b: sum(memoryview(b)[1:])),
    "array over a memoryview": (lambda: memoryview(array.array("d", [1, 2, 3])), lambda b: np.asarray(b[1:]).sum()),
}
def element_of_a_row(a):
    a[1][0] += 1


def row(a):
    a[1] += 1


def whole_row(a):
    a[1][:] += 1


def column_of_the_transposed(a):
    a.T[0] += 1


def index_list(a):
    a[[1]] += 1


def view_in_a_variable(a):
    v = a[:]
    v += 1


def transposed_in_a_variable(a):
    v = a.T
    v *= 2
    v += 1


def assigned_slice(a):
    a[1, :2] = a[1, :2] + 1


def real_part(a):
    a.real[0] += 1


# Changes of a matrix by the function itself.
STORES = {
    "element of a row": element_of_a_row,
    "row": row,
    "whole row": whole_row,
    "column of the transposed": column_of_the_transposed,
    "index list": index_list,
    "view in a variable": view_in_a_variable,
    "transposed in a variable": transposed_in_a_variable,
    "assigned slice": assigned_slice,
    "real part": real_part,
    "method": lambda a: a[1].__setitem__(0, 7.0),
    "ufunc": lambda a: np.add(a[1], 1, out=a[1]),
    "copyto": lambda a: np.copyto(a[1], a[1] + 1),
    "fill": lambda a: a[1].fill(3.0),
}


def pytest_generate_tests(metafunc):
    for name, table in (("read", READS), ("made", MATRICES), ("buffer", BUFFERS), ("store", STORES)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind
def test_view(run, read):
    a = matrix()
    f = run(lambda x: x * READS[read](a))
    yield f(X)
    a[1] = 50.0
    yield f(X)
    a[1] = 2.0, 3.0, 4.0
    yield f(X)


@kind
def test_matrix_that_is_a_view(run, made):
    a = MATRICES[made]()
    o = types.SimpleNamespace(a=a)
    f, g = run(lambda x: x * a[1].max()), run(lambda x: x * float(o.a[1][0]))
    for value in (2.0, 5.0, 3.0):
        a[1, 0] = value
        yield f(X), g(X)


@kind
def test_part_of_a_buffer(run, buffer):
    make, read = BUFFERS[buffer]
    b = make()
    f = run(lambda x: x * read(b))
    for value in (2, 5, 3):
        b[1] = value
        yield f(X)


@kind
def test_records(run):
    a = of_records()
    r = a.view(np.recarray)
    f, g, h = run(lambda x: x + a["p"][1]), run(lambda x: x + r[1].q), run(lambda x: x + a[0]["p"])
    yield f(X), g(X), h(X)
    a[1], a[0] = (5.0, 7), (9.0, 1)
    yield f(X), g(X), h(X)


@kind
def test_form_of_an_array(run):
    a = np.arange(6.0).reshape(2, 3)
    f, g = run(lambda x: x * len(a)), run(lambda x: x * a[0].sum())
    yield f(X), g(X)
    a.shape = 3, 2
    yield f(X), g(X)


@kind
def test_objects_in_an_array(run):
    a = np.empty(2, object)
    a[:] = [[1.0], 2.0]
    f, g = run(lambda x: x * a[0][0]), run(lambda x: x * sum(v if isinstance(v, float) else v[0] for v in a))
    for value in (3.0, 4.0):
        yield f(X), g(X)
        a[0] = [value]
    a[0][0] = 7.0
    yield f(X), g(X)


@kind
def test_rows_of_a_table(run):
    rows = np.arange(12.0).reshape(4, 3)
    o = types.SimpleNamespace(step=0)
    f = run(lambda x: x * float(rows[o.step].sum()))
    for o.step in (0, 1, 2):
        yield f(X)
    rows[2] = 1.0
    yield f(X)


@kind
def test_store_through_a_view(run, store):
    a = np.zeros((2, 6))[:, :3]
    f = run(lambda x: (STORES[store](a), x * 1)[1], state=lambda: a)
    for _ in range(3):
        yield f(X)


@kind
def test_sum_behind_a_store_through_a_view(run):
    a = np.zeros((2, 3))
    v = a[1]

    def f(x):
        v[0] += 1
        a[0] = v
        return x * float(a.sum())

    f = run(f, state=lambda: a)
    for _ in range(3):
        yield f(X)


@kind
def test_scratch_memory(run):
    """It is written before it is read: no value of a call hangs on the one before."""
    scratch, given = np.zeros(3), np.arange(3.0)

    def f(x):
        scratch[:] = given
        scratch[1:] *= 2
        return x * float(scratch[:2].sum())

    f = run(f, state=lambda: scratch)
    yield f(X)
    given[1] = 5.0
    yield f(X)
    scratch[:] = 100.0
    yield f(X)
