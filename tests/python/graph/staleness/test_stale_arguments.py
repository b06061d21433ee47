"""Kinds of staleness: arguments. Dtypes, shapes, keywords, order, containers and objects that differ from call to call."""

import types

import backplane as bp
import numpy as np
import pytest
from staleness_kinds import GUARDED, X, kind


@kind(GUARDED)
def test_dtype(run):
    f = run(lambda x, dtype: bp.astype(x, dtype))
    for dtype in (bp.float64, bp.int32, bp.float32):
        yield f(X, dtype)


@kind(GUARDED)
def test_dtypes_of_tensors(run):
    f = run(lambda x: x / 2 * (2 if x.dtype is bp.float32 else 3))
    for dtype in (bp.float32, bp.float64, bp.int32, bp.float16, bp.bool, bp.float32):
        yield f(bp.ones(3, dtype=dtype))


@kind(GUARDED)
def test_default_dtype(run):
    f = run(lambda x: (x * 2.0, bp.zeros(2), bp.asarray(1.5)))
    yield f(X)
    with bp.default_dtype(bp.float64):
        yield f(X)
    yield f(X)


@kind(GUARDED)
def test_shapes_of_tensors(run):
    f = run(lambda x: x * x.shape[0] + x.ndim)
    for shape in ((3,), (1,), (0,), (2, 2), (3,)):
        yield f(bp.ones(shape))


@kind(GUARDED)
def test_shape_as_an_argument(run):
    f = run(lambda x, shape: bp.reshape(x, shape) + bp.ones(shape))
    for shape in ((3, 1), (1, 3), [3, 1], 3):
        yield f(X, shape)


@kind(GUARDED)
def test_device(run):
    f = run(lambda x, device: x.to(device) * 2)
    for device in ("cpu", bp.device("cpu")):
        yield f(X, device)


@kind(GUARDED)
def test_layouts_of_tensors(run):
    f, base = run(lambda x: (x.reshape(-1), x + 1)), bp.arange(12.0)
    for x in (base.reshape(3, 4), base.reshape(4, 3).T, base.reshape(3, 4)[:, ::2], base.reshape(3, 4)[::-1]):
        yield f(x)


@kind(GUARDED)
def test_order_of_keywords(run):
    f = run(lambda x, **kw: x * len(next(iter(kw))) + sum(v * i for i, v in enumerate(kw.values())))
    yield f(X, a=1.0, long=2.0)
    yield f(X, long=2.0, a=1.0)
    yield f(X, a=1.0, long=2.0, b=3.0)
    yield f(X, long=1.0)


@kind(GUARDED)
def test_order_of_keyword_tensors(run):
    f = run(lambda **kw: [v * (i + 1) for i, v in enumerate(kw.values())])
    yield f(a=X, b=X + 1), f(b=X + 1, a=X)


@kind(GUARDED)
def test_positional_then_keyword(run):
    f = run(lambda x, scale=1.0, *rest, shift=0.0: x * scale + shift + len(rest))
    yield f(X), f(X, 2.0), f(X, scale=3.0), f(x=X, scale=2.0), f(X, 2.0, 5, 6, shift=1.0), f(X, shift=2.0)


@kind(GUARDED)
def test_order_of_a_dict_argument(run):
    f = run(lambda d: [v * (i + 1) for i, v in enumerate(d.values())])
    yield f({"a": X, "b": X + 1}), f({"b": X + 1, "a": X})


@kind(GUARDED)
def test_dict_argument_in_place(run):
    d = {"w": X, "scale": 2.0}
    f = run(lambda d: d["w"] * d["scale"] + len(d))
    yield f(d)
    d["scale"] = 3.0
    yield f(d)
    d["w"] = X + 1
    yield f(d)
    d["more"] = None
    yield f(d)
    yield f({"scale": 3.0, "w": X})


@kind(GUARDED)
def test_lengths_of_containers(run):
    f = run(lambda tensors: sum(t * (i + 1) for i, t in enumerate(tensors)))
    for tensors in ([X], [X, X + 1], (X, X + 1), [X, X + 1, X], []):
        yield f(tensors)


@kind(GUARDED)
def test_types_of_containers(run):
    f = run(lambda c: (bp.tree.leaves(c)[0] * (2.0 if isinstance(c, list) else 3.0), type(c).__name__))
    for c in ([X], (X,), {"a": X}, [X]):
        yield f(c)


@kind(GUARDED)
def test_number_where_a_tensor_was(run):
    f = run(lambda x, y: x * y)
    for y in (X, 2.0, X + 1, 3):
        yield f(X, y)


@kind
def test_generator_as_an_argument(run):
    f = run(lambda x, numbers: x * sum(numbers))
    for stop in (3, 5):
        yield f(X, (v for v in range(stop)))
        yield f(X, map(float, range(stop)))


@kind(GUARDED)
def test_object_with_fields(run):
    f = run(lambda x, o: x * o.s)
    a, b = types.SimpleNamespace(s=2.0), types.SimpleNamespace(s=3.0)
    for o in (a, b, a):
        yield f(X, o)
    a.s = 5.0
    yield f(X, a), f(X, b)


@kind(GUARDED)
def test_object_whose_memory_is_used_again(run):
    f = run(lambda x, o: x * o.s)
    for s in range(12):
        yield f(X, types.SimpleNamespace(s=s))


@kind(GUARDED)
def test_default_argument_that_is_given_later(run):
    f = run(lambda x, mask=None: x * 2 if mask is None else x * mask)
    yield f(X), f(X, X), f(X), f(X, mask=X), f(X, None)


@kind
def test_gradient_that_an_argument_requires(run):
    f = run(lambda x: x * (2.0 if x.requires_grad else 3.0))
    for _ in range(2):
        yield f(bp.ones(3)).detach(), f(bp.ones(3).requires_grad_()).detach()


@kind(GUARDED)
def test_whether_gradients_are_recorded(run):
    f = run(lambda x: x * (2.0 if bp.is_grad_enabled() else 3.0))
    for _ in range(2):
        yield f(X)
        with bp.no_grad():
            yield f(X)


@kind(GUARDED)
def test_exception_of_the_function(run):
    f = run(lambda x, key: x * {"a": 2.0}[key])
    for key in ("a", "b", "a"):
        try:
            yield f(X, key)
        except KeyError as error:
            yield str(error)


@kind(GUARDED)
def test_result_of_another_structure(run):
    f = run(lambda x, many: [x * 2 for _ in range(many)] if many else {"x": x * 3})
    for many in (1, 2, 0, 2):
        yield f(X, many)


# What the code does with an array of float64 among the arguments, beside a tensor of float32.
OF_ARRAYS = {
    "operand": lambda x, a: x * a,
    "slice": lambda x, a: x[:2] * a[1:],
    "transposed": lambda x, a: x + a.T,
    "function": lambda x, a: bp.sin(a) * x,
    "function of NumPy": lambda x, a: np.sin(a) * x,
    "element": lambda x, a: x * a[1],
    "sum": lambda x, a: x * a.sum(),
    "mean of NumPy": lambda x, a: x * np.mean(a),
    "sum along an axis": lambda x, a: x * a.reshape(1, 3).sum(axis=0),
    "type": lambda x, a: x * (2.0 if isinstance(a, np.ndarray) else 3.0),
    "other type": lambda x, a: x * (2.0 if type(a) is bp.Tensor else 3.0),
}


@pytest.mark.parametrize("of_array", OF_ARRAYS)
@kind
def test_dtype_of_what_is_made_of_an_array(run, of_array):
    f = run(lambda x, a: OF_ARRAYS[of_array](x, a))
    yield f(X, np.array([1.0, 2.0, 3.0]))
    yield f(X, np.array([4.0, 5.0, 6.0]))
