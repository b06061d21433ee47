"""Laws of arguments whose methods raise: KeyboardInterrupt and SystemExit always come out, and an error of __index__ comes out unchanged."""

import gc
import threading

import backplane as bp
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def collector_callback():
    """A function of Python that the collector calls, as hypothesis has one, and a collection at every allocation of an object."""
    collections = []

    def callback(phase, info):
        collections.append(phase)

    threshold = gc.get_threshold()
    gc.callbacks.append(callback)
    gc.set_threshold(1)
    yield
    gc.set_threshold(*threshold)
    gc.callbacks.remove(callback)
    assert collections


X = bp.ones((3, 4))
CALLS = {
    "index": lambda v: X[v], "index in a list": lambda v: X[[0, v]], "index in a tuple": lambda v: X[0, v], "value of an index": lambda v: bp.ones(3).__setitem__(0, v),
    "asarray": bp.asarray, "asarray of a list": lambda v: bp.asarray([1, v]), "asarray of a nested list": lambda v: bp.asarray([[1, 2], v]),
    "zeros": bp.zeros, "size in a tuple": lambda v: bp.zeros((2, v)), "reshape": X.reshape, "axis": lambda v: X.sum(axis=v), "axis in a tuple": lambda v: X.sum(axis=(0, v)),
    "operand": lambda v: X + v, "operand in front": lambda v: v + X, "compared": lambda v: X == v, "in place": lambda v: bp.ones(3).__iadd__(v), "argument": lambda v: bp.add(X, v),
    "full": lambda v: bp.full((2,), v), "arange": bp.arange, "concat": bp.concat, "element of concat": lambda v: bp.concat([X, v]), "where": lambda v: bp.where(v, X, X),
    "roll": lambda v: bp.roll(X, v), "tile": lambda v: bp.tile(X, v), "permute_dims": lambda v: bp.permute_dims(X, v), "take": lambda v: bp.take(X, v), "clip": lambda v: bp.clip(X, v, 2),
    "dtype": lambda v: bp.zeros(2, dtype=v), "seed": bp.Generator, "in_axes": lambda v: bp.vmap(lambda x: x, in_axes=v)(X), "in_axes in a tuple": lambda v: bp.vmap(lambda x: x, in_axes=(v,))(X),
    "grad": lambda v: bp.grad(lambda x: X.sum())(v), "tangent": lambda v: bp.jvp(lambda x: x, (X,), (v,)), "compiled": lambda v: bp.compile(lambda x: X + 1)(v),
    "tree": lambda v: bp.grad(lambda t: t["a"].sum())({"a": X, "b": v}), "from_dlpack": bp.from_dlpack, "einsum": lambda v: bp.einsum("ij->i", v), "memory limit": bp.set_memory_limit,
    "donate": lambda v: bp.compile(lambda x: x, donate=v), "budget": lambda v: bp.compile(lambda x: x, memory_budget=v),
}  # fmt: skip
METHODS = ("__index__", "__iter__", "__getitem__", "__len__", "__float__", "__complex__", "__bool__", "__array__", "__dlpack__", "__array_interface__")


class Boom(BaseException):
    pass


def having(kind, error):
    """(an object with a method or property that raises, how often it has)."""
    raised = []

    def boom(self, *args, **kwargs):
        raised.append(kind)
        raise error

    name, _, form = kind.partition(" ")
    members = {name: property(boom) if form == "property" else boom}
    if name == "__getitem__":
        members["__len__"] = lambda self: 2
    if name in ("shape", "dtype", "mask"):
        members["__array__"] = lambda self, *args, **kwargs: np.ones(2)
    return type("Raising", (), members)(), raised


def run_on(call, value):
    """The call, and then some bytecodes at which the interpreter looks for signals."""
    try:
        call(value)
    except Exception:
        pass
    for _ in range(10):
        int()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [*METHODS, "__array__ property", "__dlpack__ property", "__iter__ property", "shape property", "dtype property", "mask property"])
def test_what_is_no_exception_comes_out(kind, call):
    value, raised = having(kind, Boom())
    try:
        run_on(CALLS[call], value)
    except Boom:
        return
    assert not raised


@pytest.mark.parametrize("call", CALLS)
def test_what_index_raises_comes_out_as_it_is(call):
    error = LookupError("of the index")
    value, raised = having("__index__", error)
    try:
        CALLS[call](value)
    except LookupError as found:
        assert found is error
    except Exception as other:
        assert not raised, repr(other)
    else:
        assert not raised


def test_on_another_thread_its_class_comes_out():
    seen = []

    def work():
        try:
            run_on(bp.zeros, having("__getitem__", Boom())[0])
        except Boom as error:
            seen.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [Boom]


def test_an_axis_beyond_64_bits_is_out_of_range():
    for axis in (-(2**63), 2**63, -(2**70)):
        with pytest.raises(bp.BackplaneError, match="axis|in_axes"):
            bp.vmap(lambda x: x, in_axes=axis)(X)
