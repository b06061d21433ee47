"""backplane.numpy: elementwise ops as ufuncs of NumPy do what NumPy's own do, and other ops are functions of arrays."""

import operator
import threading

import numpy as np
import pytest

import backplane as bp
import backplane.numpy as bn

FLOATS = (np.float16, np.float32, np.float64)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
# Ours, NumPy's, and the dtypes in which both compute the same.
UNARY = {
    "negative": ("negative", SIGNED + FLOATS), "square": ("square", SIGNED + FLOATS), "sqrt": ("sqrt", FLOATS), "exp": ("exp", FLOATS), "sin": ("sin", FLOATS),
    "tanh": ("tanh", FLOATS), "floor": ("floor", FLOATS), "abs": ("absolute", SIGNED + FLOATS), "logical_not": ("logical_not", (np.bool_,)),
    "isnan": ("isnan", FLOATS), "bitwise_invert": ("invert", SIGNED + UNSIGNED),
}  # fmt: skip
BINARY = {
    "add": ("add", SIGNED + UNSIGNED + FLOATS), "subtract": ("subtract", SIGNED + FLOATS), "multiply": ("multiply", SIGNED + UNSIGNED + FLOATS),
    "maximum": ("maximum", SIGNED + FLOATS), "minimum": ("minimum", SIGNED + FLOATS), "less": ("less", SIGNED + FLOATS), "equal": ("equal", SIGNED + FLOATS),
    "divide": ("divide", FLOATS), "hypot": ("hypot", FLOATS), "logical_and": ("logical_and", (np.bool_,)), "logical_or": ("logical_or", (np.bool_,)),
    "bitwise_and": ("bitwise_and", SIGNED + UNSIGNED + (np.bool_,)), "bitwise_xor": ("bitwise_xor", SIGNED + UNSIGNED),
}  # fmt: skip
FOLDED = ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "bitwise_and", "bitwise_xor", "subtract")


def same(found, wanted):
    assert type(found) is type(wanted)
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    if wanted.dtype.kind in "fc":
        narrow = {2: 4e-3, 4: 1e-5, 8: 1e-12}[wanted.dtype.itemsize] if wanted.dtype.kind == "f" else 1e-5
        np.testing.assert_allclose(found, wanted, rtol=narrow, atol=narrow)
    else:
        np.testing.assert_array_equal(found, wanted)


class Draw:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def one_of(self, *choices):
        return choices[self.random.integers(len(choices))]

    def array(self, dtype, shape):
        """Of the shape, perhaps strided, reversed, unaligned, or in the other byte order."""
        dtype = np.dtype(dtype)
        steps = [self.one_of(1, 1, 2, -1, -2) for _ in shape]
        whole = tuple(size * abs(step) for size, step in zip(shape, steps))
        if dtype.kind == "b":
            data = self.random.integers(0, 2, whole).astype(dtype)
        elif dtype.kind in "iu":
            data = self.random.integers(0, 12, whole).astype(dtype)
        else:
            data = self.random.uniform(0.1, 2, whole).astype(dtype)
        form = self.one_of("plain", "plain", "plain", "field", "packed", "swapped")
        if form in ("field", "packed"):
            record = np.zeros(whole, np.dtype([("other", np.float32 if form == "field" else np.int8), ("x", dtype)], align=form == "field"))
            record["x"] = data
            data = record["x"]
        elif form == "swapped":
            data = data.astype(dtype.newbyteorder())
        return data[(*(slice(None, None, step) for step in steps), ...)]

    def shape(self):
        return tuple(int(self.random.integers(0, 8)) if self.random.random() < 0.9 else int(self.random.integers(500, 1500)) for _ in range(self.random.integers(0, 4)))

    def narrowed(self, shape):
        shape = [1 if self.random.random() < 0.2 else size for size in shape]
        return tuple(shape[int(self.random.integers(0, len(shape) + 1)) :]) if self.random.random() < 0.2 else tuple(shape)


def call(draw, table, kinds, n_inputs):
    name = draw.one_of(*table)
    theirs, dtypes = table[name]
    ours, theirs = getattr(bn, name), getattr(np, theirs)
    dtype = draw.one_of(*dtypes)
    shape = draw.shape()
    if np.prod(shape, dtype=float) > 200_000:
        shape = shape[:1]
    inputs = [draw.array(dtype, shape if i == 0 else draw.narrowed(shape)) for i in range(n_inputs)]
    kind = draw.one_of(*kinds)
    if kind == "plain":
        return ours(*inputs), theirs(*inputs)
    if kind == "mixed":  # a Python number or another dtype
        inputs[-1] = draw.array(draw.one_of(*dtypes), inputs[-1].shape) if n_inputs == 1 or draw.random.random() < 0.5 else inputs[-1].dtype.type(1).item()
        try:
            wanted = theirs(*inputs)
        except TypeError:  # no common dtype
            with pytest.raises(TypeError):
                ours(*inputs)
            return np.zeros(1), np.zeros(1)
        return ours(*inputs), wanted
    if kind in ("out", "where"):
        wanted = theirs(*inputs)
        outs = [draw.array(np.asarray(wanted).dtype.newbyteorder("="), shape) for _ in range(1)]
        outs.append(outs[0].copy())
        where = draw.random.random(shape) < 0.5 if kind == "where" else True
        return ours(*inputs, out=outs[0], where=where), theirs(*inputs, out=outs[1], where=where)
    if kind == "over":  # a result over an input, also moved by some elements
        data = [draw.array(dtype, (40,)) for _ in range(1)]
        data.append(data[0].copy())
        shift = int(draw.random.integers(0, 4))
        for function, x in zip((ours, theirs), data):
            views = [x[shift:]] + [x[: 40 - shift]] * (n_inputs - 1)
            if theirs(*(view[:1] for view in views)).dtype == dtype:
                function(*views, out=x[: 40 - shift])
        return tuple(data)
    assert kind == "fold"
    name = draw.one_of(*FOLDED)
    ours, theirs = getattr(bn, name), getattr(np, name)
    dtype = draw.one_of(*BINARY[name][1])
    x = draw.array(dtype, draw.one_of((5,), (0,), (700,), (3000,), (6, 7), (30, 40), (3, 4, 5)))
    if dtype in FLOATS and name == "multiply":
        x = np.minimum(x, dtype(1))
    form = draw.one_of("reduce", "accumulate", "reduceat", "outer", "at", "axes")
    if form == "accumulate":
        axis = int(draw.random.integers(x.ndim))
        return ours.accumulate(x, axis=axis), theirs.accumulate(x, axis=axis)
    if x.size == 0:
        x = draw.array(dtype, (3,))
    if form == "outer":
        return ours.outer(x[:9], x[:7]), theirs.outer(x[:9], x[:7])
    if form == "reduceat":
        places = draw.random.integers(0, x.shape[0], 4)
        return ours.reduceat(x, places), theirs.reduceat(x, places)
    if form == "axes" and name != "subtract":
        return ours.reduce(x, axis=None, keepdims=True), theirs.reduce(x, axis=None, keepdims=True)
    if form == "at":
        data = [x.astype(dtype), x.astype(dtype)]
        places = draw.random.integers(0, x.shape[0], 9)
        for function, y in zip((ours, theirs), data):
            function.at(y, places, dtype(1))
        return tuple(data)
    axis = int(draw.random.integers(x.ndim))
    return ours.reduce(x, axis=axis), theirs.reduce(x, axis=axis)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(10))
def test_random_calls_equal_those_of_numpy(seed):
    draw = Draw(seed)
    for _ in range(100):
        if draw.random.random() < 0.4:
            found, wanted = call(draw, UNARY, ("plain", "out", "where", "over"), 1)
        else:
            found, wanted = call(draw, BINARY, ("plain", "plain", "mixed", "out", "where", "over", "fold", "fold", "fold"), 2)
        if np.asarray(wanted).dtype == np.float16:
            assert found.dtype == wanted.dtype
            found, wanted = np.asarray(found).astype(np.float32), np.asarray(wanted).astype(np.float32)
            np.testing.assert_allclose(found, wanted, rtol=3e-2, atol=3e-2)
        else:
            same(found, wanted)


def test_it_is_a_ufunc_with_the_loops_of_its_entry():
    add = bn.ufunc("bp::add")
    assert type(add) is np.ufunc and add is bn.add and (add.nin, add.nout, add.__name__) == (2, 1, "add")
    assert "dd->d" in add.types and "DD->D" in add.types and "ll->l" in add.types
    assert bn.exp.types == ["e->e", "f->f", "d->d", "F->F", "D->D"]
    assert bn.exp(np.int8(1)).dtype == np.exp(np.int8(1)).dtype == np.float16
    assert bn.exp([1, 2]).dtype == np.float64
    assert bn.less(1.5, 2) is np.True_
    with pytest.raises(TypeError, match="sin"):
        bn.sin("text")


def test_attributes_are_fixed():
    x = np.linspace(-1, 1, 9)
    leaky = bn.ufunc("leaky_relu", negative_slope=0.25)
    np.testing.assert_allclose(leaky(x), np.where(x < 0, 0.25 * x, x))
    assert leaky is bn.ufunc("leaky_relu", negative_slope=0.25) and leaky is not bn.ufunc("leaky_relu", negative_slope=0.5)
    half = bn.ufunc("multiply", y=0.5)
    assert half.nin == 1 and half(np.float32(3)) == np.float32(1.5)


def test_what_is_no_ufunc_is_refused_with_the_way_out():
    with pytest.raises(bp.ArgumentValueError, match="not an elementwise op.*backplane.numpy.function"):
        bn.ufunc("softmax")
    with pytest.raises(bp.ArgumentValueError, match="no such op"):
        bn.ufunc("mine::nothing")
    with pytest.raises(bp.ArgumentTypeError, match='has no argument "slope"'):
        bn.ufunc("leaky_relu", slope=1)
    with pytest.raises(bp.ArgumentTypeError, match="negative_slope.*expected a Scalar"):
        bn.ufunc("leaky_relu", negative_slope="steep")
    with pytest.raises(TypeError, match="found an attribute of type list"):
        bn.ufunc("leaky_relu", negative_slope=[1])
    with pytest.raises(bp.ArgumentTypeError, match="min=None"):
        bn.ufunc("clip")
    with pytest.raises(bp.ArgumentValueError, match="two inputs"):
        bn.ufunc("sin", reduction="sum")
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        bn.nothing_of_this_name


def test_a_reduction_has_an_identity_and_an_order():
    assert bn.add.identity == 0 and bn.multiply.identity == 1 and bn.maximum.identity is None and bn.logical_and.identity is True
    assert bn.add.reduce(np.zeros((0, 3))).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="no identity"):
        bn.maximum.reduce(np.zeros(0))
    x = np.arange(1.0, 2000)
    assert bn.subtract.reduce(x) == np.subtract.reduce(x)  # one step after the other
    with pytest.raises(ValueError, match="reorderable"):
        bn.subtract.reduce(np.ones((2, 2)), axis=(0, 1))
    with pytest.raises(bp.ArgumentValueError, match="initial="):
        bn.ufunc("maximum", identity=-np.inf)
    assert bn.maximum.reduce(np.zeros(0), initial=-np.inf) == -np.inf and bn.maximum.reduce(x) == 1999
    largest = bn.ufunc("maximum", identity=0, reduction="max", scan="cummax")
    assert largest.reduce(np.zeros(0)) == 0 and largest.reduce(x) == largest.accumulate(x)[-1] == 1999
    assert bn.add.reduce(np.full(100_000, 0.1, np.float32)) == pytest.approx(10_000, rel=1e-5)
    nan = np.array([1, np.nan, 3] * 9)
    assert np.isnan(bn.maximum.reduce(nan)) and np.isnan(bn.maximum.accumulate(nan)[1:]).all()


def test_large_arrays_on_several_threads_of_the_program():
    x = np.random.default_rng(0).uniform(0, 1, 1 << 20)
    wanted = np.sin(x)
    failures = []

    def work():
        for _ in range(5):
            if not np.allclose(bn.sin(x), wanted, rtol=1e-12) or not np.allclose(bn.sin(x[::-3]), wanted[::-3], rtol=1e-12):
                failures.append("differs")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    np.testing.assert_allclose(bn.multiply(x, 2.0), x * 2)
    np.testing.assert_allclose(bn.add(np.float64(1), np.broadcast_to(2.0, 5000)), np.full(5000, 3.0))


def test_bytes_that_are_no_bools_count_as_true():
    odd = np.array([0, 1, 2, 255] * 400, np.uint8).view(np.bool_)
    assert bn.logical_not(odd).tolist() == [True, False, False, False] * 400
    assert bn.logical_and(odd, True).view(np.uint8).tolist() == [0, 1, 1, 1] * 400


def test_a_failure_in_a_kernel_is_an_exception():
    for size in (1, 5, 3000):
        with pytest.raises(bp.DataError, match="pow: an integer exponent is negative"):
            bn.pow(np.full(size, 2), np.full(size, -1))
        with pytest.raises(bp.DataError, match="floor_divide"):
            bn.floor_divide.outer(np.arange(size), np.zeros(3, np.int64))
    with pytest.raises(bp.DataError):
        bn.floor_divide.at(np.arange(3), [0, 1], 0)
    assert bn.add(1, 1) == 2


def test_transforms_do_not_see_the_arrays():
    x, seen = np.arange(4.0), []

    def f(t):
        seen.append(bn.multiply(x, 2.0))
        return (t * bp.asarray(seen[-1])).sum()

    assert bp.grad(f)(bp.ones(4)).tolist() == [0, 2, 4, 6]
    assert bp.vmap(lambda t: t * float(bn.add.reduce(x)))(bp.ones(3)).tolist() == [6, 6, 6]
    graph = bp.make_graph(lambda t: t + bp.asarray(bn.add(x, x)))(bp.ones(4))
    assert graph(bp.ones(4)).tolist() == [1, 3, 5, 7]
    assert [each.tolist() for each in seen] == [[0, 2, 4, 6]]


def test_other_ops_are_functions_of_arrays():
    x = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_allclose(bn.softmax(x, axis=1).sum(1), np.ones(3))
    values, places = bn.function("topk")(x, 2)
    assert type(values) is np.ndarray and places.tolist() == np.argsort(-x, axis=1)[:, :2].tolist()
    np.testing.assert_array_equal(bn.concat([x, x], axis=0), np.concatenate([x, x]))
    np.testing.assert_allclose(bn.matmul(x.astype(">f8"), x.T), x @ x.T)
    assert bn.clip(x, 0, 1).max() <= 1 and bn.ufunc("clip", min=0, max=None)(x).min() >= 0
    with pytest.raises(bp.ShapeError):
        bn.matmul(x, x)


def test_names_are_the_registry_s():
    assert {"add", "softmax", "ufunc", "function"} <= set(dir(bn))
    with pytest.raises(AttributeError, match="pass out="):
        bn.add_
    assert operator.attrgetter("bp.add")(bn) is bn.add


def test_identities_are_numpys():
    for name in dir(np):
        theirs = getattr(np, name)
        ours = getattr(bn, name, None) if isinstance(theirs, np.ufunc) and theirs.nin == 2 else None
        if isinstance(ours, np.ufunc) and name != "logaddexp2":
            assert ours.identity == theirs.identity, name
    assert bn.hypot.reduce([-3.0]) == 3.0


@pytest.mark.parametrize("code", "qQlL")
@pytest.mark.parametrize("name", ["add", "multiply", "maximum"])
def test_both_types_of_64_bits_are_reduced(name, code):
    x = np.arange(1, 6).astype(code)
    found, expected = getattr(bn, name).reduce(x), getattr(np, name).reduce(x)
    assert found == expected and found.dtype == expected.dtype and found.dtype.char == expected.dtype.char
    np.testing.assert_array_equal(getattr(bn, name).accumulate(x), getattr(np, name).accumulate(x))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.longlong, np.float16, np.float64, np.complex64])
def test_reductions_of_truths(name, dtype):
    ours, theirs = getattr(bn, name), getattr(np, name)
    for shape in ((0,), (1,), (3,), (700,), (4, 6), (2, 0, 3)):
        x = (np.arange(np.prod(shape)).reshape(shape) % 3).astype(dtype)
        for y in (x, x[..., ::-1], np.zeros_like(x), np.ones_like(x)):
            for options in ({}, {"axis": None}, {"axis": -1, "keepdims": True}, {"where": y.astype(bool) ^ True}, {"initial": True}):
                same(ours.reduce(y, **options), theirs.reduce(y, **options))
            same(ours.accumulate(y.astype(bool), axis=-1), theirs.accumulate(y.astype(bool), axis=-1))
    same(ours(np.array([True, False]), np.array([0, 2]).astype(dtype)), theirs(np.array([True, False]), np.array([0, 2]).astype(dtype)))
