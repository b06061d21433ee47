"""Kinds of staleness: arrays of NumPy that change in place, NumPy's numbers, and its settings."""

import types

import backplane as bp
import numpy as np
from staleness_kinds import GUARDED, X, kind


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


def pytest_generate_tests(metafunc):
    if "read" in metafunc.fixturenames:
        metafunc.parametrize("read", READS)


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
def test_mask(run):
    mask = of(1, 0, 1, dtype=bool)
    f, g = run(lambda x: x[mask]), run(lambda x: bp.where(bp.asarray(mask), x, 0.0))
    yield f(X), g(X)
    mask[1] = True
    yield f(X), g(X)


@kind
def test_mask_through_a_tensor(run):
    mask = of(1, 0, 1, dtype=bool)
    t = bp.from_numpy(mask)
    f = run(lambda x: x[t])
    yield f(X)
    mask[1] = True
    yield f(X)


@kind
def test_indices(run):
    index = of(0, 2, dtype=np.int64)
    f, g = run(lambda x: x[index]), run(lambda x: bp.take(x, bp.from_numpy(index)))
    yield f(X), g(X)
    index[0] = 1
    yield f(X), g(X)


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
def test_structured_array(run):
    k = np.zeros(2, [("a", "f8"), ("b", "i4")])
    r = k.view(np.recarray)
    f = run(lambda x: x * k["a"][0] + k[0]["b"] + float(r.a[1]))
    yield f(X)
    k["a"] = 2.0
    yield f(X)
    k[0] = (3.0, 4)
    yield f(X)


@kind
def test_array_of_objects(run):
    k = np.array([2.0, {"s": 1.0}], dtype=object)
    f = run(lambda x: x * k[0] + k[1]["s"])
    yield f(X)
    k[0] = 3.0
    yield f(X)
    k[1]["s"] = 4.0
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
def test_shape_in_place(run):
    k = of(1, 2, 3, 4)
    f = run(lambda x: x * k.shape[0] + k.ndim + len(k))
    for k.shape in ((4,), (2, 2), (1, 4)):
        yield f(X)


@kind
def test_dtype_in_place(run):
    k = of(1, 2, 3)
    f = run(lambda x: (x * float(k[0]), x * k.itemsize, k.dtype.kind))
    for k.dtype in (np.float64, np.int64):
        yield f(X)


@kind
def test_flags_in_place(run):
    k = of(1, 2, 3)
    f = run(lambda x: x * (2.0 if k.flags.writeable else 1.0))
    for k.flags.writeable in (True, False):
        yield f(X)


@kind
def test_masked_array(run):
    k = np.ma.array([1.0, 2.0], mask=[False, False])
    f = run(lambda x: x * float(k.sum()))
    yield f(X)
    k[1] = np.ma.masked
    yield f(X)
    k[0] = 5.0
    yield f(X)


@kind
def test_subclass_of_an_array(run):
    class Named(np.ndarray):
        scale = 2.0

    k = of(1, 2, 3).view(Named)
    f = run(lambda x: x * k.scale + float(k[0]))
    yield f(X)
    k.scale = 3.0
    yield f(X)
    k[0] = 4.0
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


@kind(GUARDED)
def test_number_of_numpy_in_a_container(run):
    table = {"k": 2.0}
    f = run(lambda x: (x * table["k"], type(table["k"]).__name__))
    for table["k"] in (2.0, np.float64(2), np.float32(2), np.int64(2), 2, np.float64(3), np.bool_(True)):
        yield f(X)


@kind(GUARDED)
def test_number_of_numpy_as_an_argument(run):
    f = run(lambda x, k: x * k)
    for k in (2.0, np.float64(2), np.float32(2), np.int64(2), 2, np.float64(-0.0), np.float64("nan")):
        yield f(X, k)


@kind
def test_frombuffer(run):
    held = bytearray(of(2, 1).tobytes())
    k = np.frombuffer(held)
    f = run(lambda x: x * float(k[0]))
    yield f(X)
    held[:8] = of(3).tobytes()
    yield f(X)


@kind
def test_settings_of_numpy(run):
    f = run(lambda x: x * len(str(np.array([1 / 3]))) + (2.0 if np.geterr()["divide"] == "raise" else 1.0))
    yield f(X)
    with np.printoptions(precision=2), np.errstate(divide="raise"):
        yield f(X)


@kind
def test_function_of_numpy_that_is_replaced(run):
    f = run(lambda x: x * float(np.stale_scale(2.0)))
    for np.stale_scale in (np.negative, np.square):
        yield f(X)
    del np.stale_scale
