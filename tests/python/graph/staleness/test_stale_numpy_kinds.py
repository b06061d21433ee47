"""Kinds of staleness: arrays of NumPy of other kinds, what changes in an array beside its elements, NumPy's numbers and settings."""

import numpy as np
from staleness_kinds import GUARDED, X, kind


def of(*values, dtype=np.float64):
    return np.array(values, dtype)


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
