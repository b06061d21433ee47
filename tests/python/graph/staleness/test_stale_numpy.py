"""Kinds of staleness: arrays of NumPy whose elements change in place."""

import types

import backplane as bp
import numpy as np
from staleness_kinds import X, kind


def of(*values, dtype=np.float64):
    return np.array(values, dtype)


# How an array is read: a number, an array or a tensor of it.
READS = {
    "float": lambda k: float(k[0]),
    "element": lambda k: k[0],
    "item": lambda k: k.item(0),
    "tolist": lambda k: k.tolist()[0],
    "sum": lambda k: k.sum(),
    "np.sum": lambda k: np.sum(k),
    "operand": lambda k: k,
    "expression": lambda k: k * 2 + 1,
    "slice": lambda k: k[:1],
    "loop": lambda k: sum(v for v in k),
    "asarray": lambda k: bp.asarray(k),
    "from_numpy": lambda k: bp.from_numpy(k),
    "comparison": lambda k: 2.0 if (k > 2.5).any() else 1.0,
    "where": lambda k: np.where(k > 2.5, 5.0, 1.0),
    "transposed": lambda k: k.T[0],
    "view": lambda k: k.view(np.int64)[0] % 1000,
    "bytes": lambda k: k.tobytes()[7],
    "copy": lambda k: k.copy()[0],
    "nditer": lambda k: sum(float(v) for v in np.nditer(k)),
    "memory": lambda k: memoryview(k)[0],
    "str": lambda k: len(str(k)),
    "array of arrays": lambda k: np.stack([k, k])[1, 0],
    "vectorize": lambda k: np.vectorize(lambda v: v + 1)(k)[0],
}


OF_MASK = {
    "index": lambda x, mask: x[mask],
    "where": lambda x, mask: bp.where(bp.asarray(mask), x, 0.0),
    "product": lambda x, mask: x * mask,
    "nonzero": lambda x, mask: x * mask.nonzero()[0].sum(),
    "any": lambda x, mask: x * 2 if mask.all() else x * 3,
    "compress": lambda x, mask: bp.compress(mask, x),
}
OF_INDEX = {
    "index": lambda x, index: x[index],
    "take": lambda x, index: bp.take(x, bp.from_numpy(index)),
    "element": lambda x, index: x[index[0]],
    "slice": lambda x, index: x[int(index[0]) : int(index[1])],
    "delete": lambda x, index: bp.delete(x, index),
    "repeat": lambda x, index: bp.repeat(x[:2], index),
    "one_hot": lambda x, index: x * bp.nn.functional.one_hot(bp.asarray(index), 3).sum(),
}


def pytest_generate_tests(metafunc):
    for name, table in (("read", READS), ("of_mask", OF_MASK), ("of_index", OF_INDEX)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind
def test_array(run, read):
    k = of(2, 1, 1)
    f = run(lambda x: x * READS[read](k))
    for k[0] in (2, 3, 12.5, 2):
        yield f(X)


@kind
def test_array_argument(run):
    k = of(2, 1, 1)
    f = run(lambda x, k: x * k)
    for k[0] in (2, 3, 2):
        yield f(X, k)


@kind
def test_array_argument_whose_values_are_read(run):
    k = of(2, 1, 1)
    f = run(lambda x, k: x * float(k[0]))
    for k[0] in (2, 3, 2):
        yield f(X, k)


@kind
def test_array_through_a_tensor(run):
    k = of(2, 1, 1)
    t = bp.from_numpy(k)
    f, g = run(lambda x: x * t), run(lambda x: x * t.tolist()[0])
    for k[0] in (2, 3, 2):
        yield f(X), g(X)


@kind
def test_tensor_argument_of_an_array(run):
    k = of(2, 1, 1)
    t = bp.from_numpy(k)
    f, g = run(lambda x, t: x * t), run(lambda x, box: x * box["t"])
    for k[0] in (2, 3, 2):
        yield f(X, t), g(X, {"t": t})


@kind
def test_mask(run, of_mask):
    mask = of(1, 0, 1, dtype=bool)
    f = run(lambda x: OF_MASK[of_mask](x, mask))
    yield f(X)
    mask[1] = True
    yield f(X)


@kind
def test_mask_through_a_tensor(run):
    mask = of(1, 0, 1, dtype=bool)
    t = bp.from_numpy(mask)
    f = run(lambda x: x[t])
    yield f(X)
    mask[1] = True
    yield f(X)


@kind
def test_indices(run, of_index):
    index = of(0, 2, dtype=np.int64)
    f = run(lambda x: OF_INDEX[of_index](x, index))
    yield f(X)
    index[0] = 1
    yield f(X)


@kind
def test_sizes_in_an_array(run):
    size = of(3, 1, dtype=np.int64)
    f = run(lambda x: bp.reshape(x, tuple(size)) + bp.zeros([int(n) for n in size]))
    yield f(X)
    size[:] = 1, 3
    yield f(X)


@kind
def test_array_without_axes(run):
    k = np.array(2.0)
    f = run(lambda x: x * float(k) + k + k[()])
    for k[()] in (2.0, 3.0):
        yield f(X)


@kind
def test_view_of_an_array(run):
    k = of(1, 2, 3)
    view = k[1:]
    f = run(lambda x: x * float(view[0]) + np.broadcast_to(k[:1], (3,))[2])
    yield f(X)
    k[:] = 5.0
    yield f(X)


@kind
def test_read_only_view_of_an_array(run):
    k = of(1, 2, 3)
    view = k[:]
    view.flags.writeable = False
    f = run(lambda x: x * float(view[0]))
    yield f(X)
    k[0] = 5.0
    yield f(X)


@kind
def test_array_in_containers(run):
    o = types.SimpleNamespace(table={"k": [of(2, 1)]})
    f = run(lambda x: x * float(o.table["k"][0][0]))
    yield f(X)
    o.table["k"][0][0] = 3.0
    yield f(X)
    o.table["k"][0] = of(4, 1)
    yield f(X)
